/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_PEER_H
#define TR_IO_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a user or group is where the kernel cannot say: nobody's, and never the right to anything. */
#define TR_NOBODY 65534

/* Who is at the other end, as the kernel had it when it connected. Immutable once read. */
struct tr_peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;     /* 0: not known */
        gid_t *groups; /* the supplementary ones */
        size_t groups_count;
        bool groups_failed; /* it may have some, which could not be read */
};

/* Roles, as a set. */
enum tr_role {
        TR_ROLE_NONE = 0, /* a method for everybody */
        TR_ROLE_CALL = 1 << 0,
        TR_ROLE_SERVE = 1 << 1,
        TR_ROLE_SPAWN = 1 << 2,
        TR_ROLE_OPERATE = 1 << 3,
        TR_ROLE_ALL = TR_ROLE_CALL | TR_ROLE_SERVE | TR_ROLE_SPAWN | TR_ROLE_OPERATE,
};
#define TR_ROLES_COUNT 4

/* Asks the kernel. What it does not tell stays nobody's. */
void tr_peer_read(struct tr_peer *ret_peer, int fd);
void tr_peer_deinit(struct tr_peer *peer);
bool tr_peer_has_group(const struct tr_peer *peer, gid_t gid);

/* "call" and so on, for one role. */
const char *tr_role_text(enum tr_role role);

#endif
