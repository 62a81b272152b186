/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's own socket: who gets the path, with which access, and what is never taken over. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/io/socket.h"
#include "tests/unit/suite.h"

static char directory[64];
static char path[80];
static struct tr_listen wanted;

static void begin(void) {
        strcpy(directory, "/tmp/troupe-socket-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/sub/s", directory);
        wanted = (struct tr_listen){ .path = path, .mode = 0640 };
}

static void end(void) {
        char command[128];
        snprintf(command, sizeof(command), "rm -r %s", directory);
        ck_assert_int_eq(system(command), 0);
}

static void socket_close(struct tr_socket *socket_) {
        close(socket_->fd);
        close(socket_->lock_fd);
}

/* 0, or an errno. */
static int try_to_connect(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        strcpy(address.sun_path, path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        int error = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
        close(fd);
        return error;
}

static struct stat status_of_path(void) {
        struct stat status;
        ck_assert_int_eq(stat(path, &status), 0);
        return status;
}

START_TEST(without_a_group_only_its_owner_may_connect) {
        struct tr_socket first;
        begin();
        wanted.group = "no-such-group-anywhere";
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), 0);
        ck_assert_uint_eq(status_of_path().st_mode & 07777, 0600);
        ck_assert_int_eq(try_to_connect(), 0);
        ck_assert_int_eq(tr_socket_check(first.fd), 0);
        socket_close(&first);
        end();
}
END_TEST

START_TEST(a_group_may_connect_where_it_is_to_be_had) {
        struct tr_socket first;
        begin();
        struct group *own = getgrgid(getegid());
        ck_assert_ptr_nonnull(own);
        wanted.group = own->gr_name;
        wanted.group_configured = true;
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), 0);
        ck_assert_uint_eq(status_of_path().st_mode & 07777, 0640);
        ck_assert_uint_eq(status_of_path().st_gid, getegid());
        socket_close(&first);
        end();
}
END_TEST

START_TEST(a_configured_group_has_to_exist) {
        struct tr_socket first;
        begin();
        wanted.group = "no-such-group-anywhere";
        wanted.group_configured = true;
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), TR_LISTEN_NO_GROUP);
        ck_assert_int_eq(try_to_connect(), ENOENT);
        end();
}
END_TEST

START_TEST(what_a_dead_daemon_left_is_taken_over) {
        struct tr_socket first, second;
        begin();
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), 0);
        socket_close(&first);
        ck_assert_int_eq(try_to_connect(), ECONNREFUSED);
        ck_assert_int_eq(tr_socket_listen(&wanted, &second), 0);
        ck_assert_int_eq(try_to_connect(), 0);
        socket_close(&second);
        end();
}
END_TEST

START_TEST(a_live_one_is_not_taken_over) {
        struct tr_socket first, second;
        begin();
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), 0);
        ck_assert_int_eq(tr_socket_listen(&wanted, &second), TR_LISTEN_IN_USE);
        close(first.lock_fd); /* as if it were somebody's who knows nothing of lock files */
        ck_assert_int_eq(tr_socket_listen(&wanted, &second), TR_LISTEN_IN_USE);
        ck_assert_int_eq(try_to_connect(), 0);
        close(first.fd);
        end();
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone) {
        struct tr_socket first;
        begin();
        char parent[80];
        snprintf(parent, sizeof(parent), "%s/sub", directory);
        ck_assert_int_eq(mkdir(parent, 0700), 0);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), TR_LISTEN_BAD_PATH);
        ck_assert(S_ISREG(status_of_path().st_mode));
        end();
}
END_TEST

START_TEST(a_path_has_to_fit) {
        struct tr_socket first;
        char longer[200] = "/tmp/";
        memset(longer + 5, 'x', 110);
        wanted = (struct tr_listen){ .path = longer, .mode = 0600 };
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), TR_LISTEN_BAD_PATH);
        wanted.path = "/no-such-directory-anywhere/below/s";
        ck_assert_int_eq(tr_socket_listen(&wanted, &first), TR_LISTEN_BAD_PATH);
}
END_TEST

START_TEST(a_passed_descriptor_has_to_listen) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int datagrams = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(tr_socket_check(fd), TR_LISTEN_BAD_FD);
        ck_assert_int_eq(tr_socket_check(datagrams), TR_LISTEN_BAD_FD);
        ck_assert_int_eq(tr_socket_check(-1), TR_LISTEN_BAD_FD);
        close(fd);
        close(datagrams);
}
END_TEST

suite_main("socket", without_a_group_only_its_owner_may_connect, a_group_may_connect_where_it_is_to_be_had,
           a_configured_group_has_to_exist, what_a_dead_daemon_left_is_taken_over, a_live_one_is_not_taken_over,
           what_is_no_socket_is_left_alone, a_path_has_to_fit, a_passed_descriptor_has_to_listen);
