/* SPDX-License-Identifier: Apache-2.0 */
/* Who a peer is, and what it may do. */
#include "config.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/io/peer.h"
#include "tests/unit/suite.h"

START_TEST(a_peer_is_who_the_kernel_says) {
        int fds[2];
        struct tr_peer peer;
        gid_t groups[1024];
        int groups_count = getgroups(1024, groups);
        ck_assert_int_ge(groups_count, 0);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);

        tr_peer_read(&peer, fds[0]);
        ck_assert_uint_eq(peer.uid, geteuid());
        ck_assert_uint_eq(peer.gid, getegid());
        ck_assert_int_eq(peer.pid, getpid());
        ck_assert(tr_peer_has_group(&peer, getegid()));
        ck_assert_uint_eq(peer.groups_count, (size_t)groups_count);
        for (int i = 0; i < groups_count; i++)
                ck_assert(tr_peer_has_group(&peer, groups[i]));
        tr_peer_deinit(&peer);
        close(fds[0]);
        close(fds[1]);
}
END_TEST

START_TEST(what_the_kernel_does_not_say_is_nobodys) {
        struct tr_peer peer;
        int pipes[2];
        ck_assert_int_eq(pipe(pipes), 0);
        tr_peer_read(&peer, pipes[0]);
        ck_assert_uint_eq(peer.uid, TR_NOBODY);
        ck_assert_uint_eq(peer.gid, TR_NOBODY);
        ck_assert_int_eq(peer.pid, 0);
        ck_assert_uint_eq(peer.groups_count, 0);
        ck_assert(!tr_peer_has_group(&peer, TR_NOBODY));
        tr_peer_deinit(&peer);
        close(pipes[0]);
        close(pipes[1]);
}
END_TEST

suite_main("peer", a_peer_is_who_the_kernel_says, what_the_kernel_does_not_say_is_nobodys);
