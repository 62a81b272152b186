/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "daemon/io/access.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/io/connection.h"

void tr_access_deinit(struct tr_access *access) {
        for (size_t i = 0; i < access->count; i++) {
                for (char **at = access->rules[i].names; at && *at; at++)
                        free(*at);
                free(access->rules[i].names);
        }
        free(access->rules);
        *access = (struct tr_access){ 0 };
}

static bool rule_matches(const struct tr_access_rule *rule, const struct tr_peer *peer) {
        if (rule->id == TR_NOBODY)
                return false;
        return rule->is_group ? tr_peer_has_group(peer, rule->id) : peer->uid == rule->id;
}

/* It may match, and then it is perhaps there to take something away. */
static bool is_undecided(const struct tr_access_rule *rule, const struct tr_peer *peer) {
        return rule->is_group && rule->id != TR_NOBODY && peer->groups_failed && !tr_peer_has_group(peer, rule->id);
}

struct tr_grant tr_access_grant(const struct tr_access *access, const struct tr_peer *peer, uid_t own_uid) {
        if (peer->uid == TR_NOBODY)
                return (struct tr_grant){ .roles = TR_ROLE_CALL };
        if (peer->uid == 0 || peer->uid == own_uid)
                return (struct tr_grant){ .roles = TR_ROLE_ALL };
        for (size_t i = 0; i < access->count; i++) {
                const struct tr_access_rule *rule = &access->rules[i];
                if (is_undecided(rule, peer))
                        return (struct tr_grant){ .roles = TR_ROLE_NONE };
                if (rule_matches(rule, peer))
                        return (struct tr_grant){
                                .roles = rule->roles & TR_ROLE_OPERATE ? TR_ROLE_ALL : rule->roles,
                                .names = rule->names,
                        };
        }
        return (struct tr_grant){ .roles = TR_ROLE_CALL };
}

bool tr_access_matches(const char *pattern, const char *name, size_t len) {
        size_t pattern_len = strlen(pattern);
        if (pattern_len > 0 && pattern[pattern_len - 1] == '*')
                return len >= pattern_len - 1 && memcmp(pattern, name, pattern_len - 1) == 0;
        return len == pattern_len && memcmp(pattern, name, len) == 0;
}

bool tr_access_allows_name(const struct tr_connection *connection, const char *name, size_t len) {
        if (!connection->names)
                return true;
        for (char *const *at = connection->names; *at; at++)
                if (tr_access_matches(*at, name, len))
                        return true;
        return false;
}
