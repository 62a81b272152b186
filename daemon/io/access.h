/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_ACCESS_H
#define TR_IO_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/io/peer.h"

struct tr_connection;

/*
 * Access: which roles a peer has, and which names it may use: those of components that it calls and serves, and those that it
 * publishes, or reaches something by. A handle needs no name.
 *
 * Root and the daemon's own user have every role and every name, whatever the rules say. For others the first rule that matches
 * decides; whom none matches has the role `call` and every name. Nobody (TR_NOBODY) matches none, and no rule is for it.
 * Where a group would decide, and the peer's could not be read, it has no role.
 */
struct tr_access_rule {
        bool is_group;      /* `id` is a group's: the peer's own, or one of its supplementary ones */
        uint32_t id;        /* TR_NOBODY: it matches nobody */
        unsigned int roles; /* of enum tr_role */
        char **names;       /* patterns, NULL-terminated; NULL: every name */
};

/* All rules, in their order. */
struct tr_access {
        struct tr_access_rule *rules;
        size_t count;
};

void tr_access_deinit(struct tr_access *access);

/* What a peer was granted. */
struct tr_grant {
        unsigned int roles;
        char *const *names; /* the rule's, borrowed; NULL: every name */
};

/* For a peer of a daemon that runs as own_uid. */
struct tr_grant tr_access_grant(const struct tr_access *access, const struct tr_peer *peer, uid_t own_uid);

/* Whether a name is one of those that a pattern stands for: itself, or, where that ends with `*`, all that begin like it. */
bool tr_access_matches(const char *pattern, const char *name, size_t len);
/* Whether a connection may use a name. Loop thread. */
bool tr_access_allows_name(const struct tr_connection *connection, const char *name, size_t len);

#endif
