/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration says of access, as the socket side has it. A rule that cannot be resolved stays in its place, so that the
 * numbers of rules are those of the file, and matches nobody: it gives no rights to whoever has another's number.
 */
#include "config.h"

#include "daemon/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/io/access.h"

/* The configuration's roles are bits of the same order. */
_Static_assert(TR_ROLE_CALL == 1 && TR_ROLE_SERVE == 2 && TR_ROLE_SPAWN == 4 && TR_ROLE_OPERATE == 8, "roles");

/* Neither (uid_t)-1, which stands for none, nor a number with a sign. */
static bool parse_id(const char *text, uint32_t *ret_id) {
        size_t digits = strspn(text, "0123456789");
        unsigned long long number;

        if (digits == 0 || digits > 10 || text[digits])
                return false;
        number = strtoull(text, NULL, 10);
        if (number >= UINT32_MAX)
                return false;
        *ret_id = (uint32_t)number;
        return true;
}

static bool find_user(const char *text, uint32_t *ret_id) {
        const struct passwd *entry = getpwnam(text);

        if (!entry)
                return parse_id(text, ret_id);
        *ret_id = entry->pw_uid;
        return true;
}

static bool find_group(const char *text, uint32_t *ret_id) {
        const struct group *entry = getgrnam(text);

        if (!entry)
                return parse_id(text, ret_id);
        *ret_id = entry->gr_gid;
        return true;
}

/* Tells that a rule matches nobody. 0 or -ENOMEM. */
static int note(const struct tr_settings *settings, size_t index, struct tr_problems *notes, bool found) {
        const struct tr_settings_rule *rule = &settings->access.list[index];
        const char *text = rule->user ? rule->user : rule->group, *kind = rule->user ? "user" : "group";
        char *key;
        int r;

        if (asprintf(&key, "access[%zu].%s", index, kind) < 0)
                return tr_error_origin(-ENOMEM);
        if (found)
                r = tr_problems_add(notes, settings->file, rule->line, key, "the %s %s is nobody, whom no rule matches", kind,
                                    text);
        else
                r = tr_problems_add(notes, settings->file, rule->line, key, "there is no %s %s here: the rule matches nobody",
                                    kind, text);
        return tr_error_fold(r);
}

/* 0 or -ENOMEM. */
static int resolve_id(const struct tr_settings *settings, size_t index, struct tr_problems *notes,
                      struct tr_access_rule *rule) {
        const struct tr_settings_rule *from = &settings->access.list[index];
        bool found;

        rule->is_group = !from->user;
        rule->id = TR_NOBODY;
        found = rule->is_group ? find_group(from->group, &rule->id) : find_user(from->user, &rule->id);
        return rule->id == TR_NOBODY ? note(settings, index, notes, found) : 0;
}

/* 0 or -ENOMEM, with what was copied so far. */
static int copy_names(char *const *names, char ***ret_copy) {
        size_t count = 0;

        if (!names)
                return 0;
        while (names[count])
                count++;
        *ret_copy = calloc(count + 1, sizeof(**ret_copy));
        if (!*ret_copy)
                return tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < count; i++) {
                (*ret_copy)[i] = strdup(names[i]);
                if (!(*ret_copy)[i])
                        return tr_error_origin(-ENOMEM);
        }
        return 0;
}

int tr_access_resolve(const struct tr_settings *settings, struct tr_problems *notes, struct tr_access *ret_access) {
        struct tr_access access = { .rules = calloc(settings->access.count + 1, sizeof(*access.rules)) };
        int r = access.rules ? 0 : tr_error_origin(-ENOMEM);

        for (size_t i = 0; r == 0 && i < settings->access.count; i++) {
                access.rules[i].roles = (unsigned int)settings->access.list[i].roles;
                access.count++;
                r = copy_names(settings->access.list[i].names, &access.rules[i].names);
                if (r == 0)
                        r = resolve_id(settings, i, notes, &access.rules[i]);
        }
        if (r < 0) {
                tr_access_deinit(&access);
                return tr_error_fold(r);
        }
        *ret_access = access;
        return 0;
}
