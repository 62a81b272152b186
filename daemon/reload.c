/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "daemon/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/check.h"

/* All problems in one text, which the caller frees; NULL where memory is short. */
static char *join(const struct tr_problems *problems) {
        char *text = NULL;
        size_t len;
        FILE *stream = open_memstream(&text, &len);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < problems->count; i++) {
                TR_AUTO_FREE char *one = tr_problem_text(&problems->list[i]);

                fprintf(stream, "%s%s", i ? "; " : "", one ? one : "out of memory");
        }
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

static struct tr_failure *refusal(const struct tr_problems *problems) {
        TR_AUTO_FREE char *text = join(problems);

        return tr_failure_new(TR_CODE_LOAD, "the configuration is refused, and nothing has changed: %s",
                              text ? text : "out of memory");
}

struct tr_failure *tr_reload_read(const char *config, enum tr_settings_scope scope, struct tr_settings **ret_settings) {
        struct tr_problems problems = { 0 }, notes = { 0 };
        struct tr_failure *failure = NULL;
        int r = tr_check(config, scope, &problems, &notes, ret_settings);

        if (r < 0)
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "the configuration could not be read, and nothing has changed: %s",
                                         strerrordesc_np(-r));
        else if (r > 0)
                failure = refusal(&problems);
        else
                tr_problems_log(&notes);
        tr_problems_deinit(&problems);
        tr_problems_deinit(&notes);
        return failure;
}

static bool same_text(const char *one, const char *other) {
        return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool same_texts(char *const *one, char *const *other) {
        for (; *one && *other && strcmp(*one, *other) == 0; one++, other++)
                ;
        return !*one && !*other;
}

void tr_reload_log_unapplied(const struct tr_settings *before, const struct tr_settings *after) {
        const struct {
                const char *key;
                bool same;
        } keys[] = {
                { "socket.path", same_text(before->socket_path, after->socket_path) },
                { "socket.mode", before->socket_mode == after->socket_mode },
                { "socket.group", same_text(before->socket_group, after->socket_group) },
                { "path", same_texts(before->path, after->path) },
                { "store.path", same_text(before->store_path, after->store_path) },
                { "allow", before->allow == after->allow },
                { "limits.nesting", before->limits.nesting == after->limits.nesting },
        };

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (!keys[i].same)
                        tr_log(TR_LOG_WARNING, "reload: %s has changed, which has no effect until the daemon is started again",
                               keys[i].key);
}
