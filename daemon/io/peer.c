/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a peer is comes from the kernel, read once, when it has just connected: a process that changes its ids or hands
 * its socket on later stays who it was. Everything starts as nobody, so that whatever goes wrong takes rights away
 * and gives none.
 */
#include "config.h"

#include "daemon/io/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/error.h"

/* Linux knows no more supplementary groups of one process (NGROUPS_MAX). */
#define GROUPS_MAX 65536

static void peer_read_groups(struct tr_peer *peer, int fd) {
        socklen_t bytes = 0;
        gid_t *groups = NULL;
        /* The first call says how many there are; it answers ERANGE, unless there are none. */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0)
                return;
        peer->groups_failed = true;
        if (errno != ERANGE || bytes > GROUPS_MAX * sizeof(*groups) || !(groups = malloc(bytes)))
                return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0) {
                free(groups);
                return;
        }
        peer->groups = groups;
        peer->groups_count = bytes / sizeof(*groups);
        peer->groups_failed = false;
}

void tr_peer_read(struct tr_peer *ret_peer, int fd) {
        struct ucred credentials = { .uid = TR_NOBODY, .gid = TR_NOBODY };
        socklen_t bytes = sizeof(credentials);
        *ret_peer = (struct tr_peer){ .uid = TR_NOBODY, .gid = TR_NOBODY };

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0 || bytes != sizeof(credentials)) {
                tr_error_origin(-errno);
                return;
        }
        ret_peer->uid = credentials.uid;
        ret_peer->gid = credentials.gid;
        ret_peer->pid = credentials.pid;
        peer_read_groups(ret_peer, fd);
}

void tr_peer_deinit(struct tr_peer *peer) {
        free(peer->groups);
        peer->groups = NULL;
        peer->groups_count = 0;
}

bool tr_peer_has_group(const struct tr_peer *peer, gid_t gid) {
        if (gid == TR_NOBODY)
                return false;
        if (peer->gid == gid)
                return true;
        for (size_t i = 0; i < peer->groups_count; i++)
                if (peer->groups[i] == gid)
                        return true;
        return false;
}

const char *tr_role_text(enum tr_role role) {
        switch (role) {
        case TR_ROLE_CALL:
                return "call";
        case TR_ROLE_SERVE:
                return "serve";
        case TR_ROLE_SPAWN:
                return "spawn";
        case TR_ROLE_OPERATE:
                return "operate";
        case TR_ROLE_NONE:
        case TR_ROLE_ALL:
                break;
        }
        return "none";
}
