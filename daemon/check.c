/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration names outside of itself is looked up here, not where it is read: it may be written elsewhere. */
#include "daemon/check.h"

#include <errno.h>
#include <grp.h>
#include <string.h>

#include "daemon/access.h"
#include "daemon/io/access.h"

/* 0 or -ENOMEM. */
static int check_group(const struct tr_settings *settings, struct tr_problems *problems) {
        char *key;

        if (settings->socket_group_line == 0 || getgrnam(settings->socket_group))
                return 0;
        key = strdup("socket.group");
        if (!key)
                return tr_error_origin(-ENOMEM);
        return tr_error_fold(tr_problems_add(problems, settings->file, settings->socket_group_line, key,
                                             "there is no group %s", settings->socket_group));
}

/* 0 or -ENOMEM. */
static int check_access(const struct tr_settings *settings, struct tr_problems *notes) {
        struct tr_access access;
        int r = tr_access_resolve(settings, notes, &access);

        if (r < 0)
                return tr_error_fold(r);
        tr_access_deinit(&access);
        return 0;
}

int tr_check(const char *file, enum tr_settings_scope scope, struct tr_problems *problems, struct tr_problems *notes,
             struct tr_settings **ret_settings) {
        TR_CLEANUP(tr_settings_free_cleanup_) struct tr_settings *settings = NULL;
        int r;

        r = tr_settings_load(file, scope, problems, notes, &settings);
        if (r != 0)
                return r;
        r = check_group(settings, problems);
        if (r == 0)
                r = check_access(settings, notes);
        if (r < 0)
                return tr_error_fold(r);
        *ret_settings = tr_steal(settings);
        return problems->count > 0 ? TR_SETTINGS_WRONG : 0;
}
