/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager passes, and what it is told. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/io/systemd.h"
#include "tests/unit/suite.h"

static struct tr_systemd systemd;

static void set_number(const char *name, unsigned long number) {
        char text[32];

        snprintf(text, sizeof(text), "%lu", number);
        setenv(name, text, 1);
}

/* Descriptors 3 and 4 are open, 5 is not. */
static void open_descriptors(void) {
        ck_assert_int_eq(dup2(STDIN_FILENO, 3), 3);
        ck_assert_int_eq(dup2(STDIN_FILENO, 4), 4);
        close(5);
}

START_TEST(nothing_is_passed_and_nobody_listens) {
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 0);
        ck_assert_uint_eq(systemd.watchdog_ns, 0);
        ck_assert_uint_eq(systemd.address_len, 0);
        tr_systemd_notify(&systemd, "READY=1");
}
END_TEST

START_TEST(sockets_are_taken_once) {
        open_descriptors();
        set_number("LISTEN_PID", (unsigned long)getpid());
        set_number("LISTEN_FDS", 2);
        setenv("LISTEN_FDNAMES", "a:b", 1);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 2);
        ck_assert_int_eq(fcntl(3, F_GETFD), FD_CLOEXEC);
        ck_assert_int_eq(fcntl(4, F_GETFD), FD_CLOEXEC);
        ck_assert_ptr_null(getenv("LISTEN_PID"));
        ck_assert_ptr_null(getenv("LISTEN_FDS"));
        ck_assert_ptr_null(getenv("LISTEN_FDNAMES"));
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 0);
}
END_TEST

START_TEST(another_process_sockets_are_not_ours) {
        open_descriptors();
        set_number("LISTEN_PID", (unsigned long)getpid() + 1);
        set_number("LISTEN_FDS", 2);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 0);
        ck_assert_int_eq(fcntl(3, F_GETFD), 0);
        ck_assert_ptr_null(getenv("LISTEN_FDS"));

        set_number("LISTEN_FDS", 2);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 0);
}
END_TEST

START_TEST(nonsense_is_ignored) {
        static const char *const numbers[] = { "", "x", "-1", "1x", "99999999999999999999999", "100000", " 1" };

        open_descriptors();
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
                set_number("LISTEN_PID", (unsigned long)getpid());
                setenv("LISTEN_FDS", numbers[i], 1);
                tr_systemd_init(&systemd);
                ck_assert_msg(systemd.sockets == 0, "%s", numbers[i]);
        }
        /* one that was promised and is not there */
        set_number("LISTEN_PID", (unsigned long)getpid());
        set_number("LISTEN_FDS", 3);
        setenv("NOTIFY_SOCKET", "relative", 1);
        setenv("WATCHDOG_USEC", "soon", 1);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.sockets, 2);
        ck_assert_uint_eq(systemd.address_len, 0);
        ck_assert_uint_eq(systemd.watchdog_ns, 0);
}
END_TEST

START_TEST(the_watchdog_is_this_process) {
        set_number("WATCHDOG_USEC", 30000000);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.watchdog_ns, 30 * TR_NS_PER_S);
        ck_assert_ptr_null(getenv("WATCHDOG_USEC"));

        set_number("WATCHDOG_USEC", 30000000);
        set_number("WATCHDOG_PID", (unsigned long)getpid());
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.watchdog_ns, 30 * TR_NS_PER_S);

        set_number("WATCHDOG_USEC", 30000000);
        set_number("WATCHDOG_PID", (unsigned long)getpid() + 1);
        tr_systemd_init(&systemd);
        ck_assert_uint_eq(systemd.watchdog_ns, 0);
}
END_TEST

/* Listens as a service manager does, at an address as NOTIFY_SOCKET has it. */
static int listen_at(const char *address) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        size_t len = strlen(address);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

        ck_assert_int_ge(fd, 0);
        memcpy(name.sun_path, address, len);
        if (*address == '@')
                name.sun_path[0] = '\0';
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                         0);
        return fd;
}

START_TEST(it_is_told) {
        char addresses[2][64], text[64];

        snprintf(addresses[0], sizeof(addresses[0]), "/tmp/test_systemd.%d", getpid());
        snprintf(addresses[1], sizeof(addresses[1]), "@test_systemd.%d", getpid());
        for (int i = 0; i < 2; i++) {
                int fd = listen_at(addresses[i]);
                ssize_t len;

                setenv("NOTIFY_SOCKET", addresses[i], 1);
                tr_systemd_init(&systemd);
                ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
                tr_systemd_notify(&systemd, "READY=1\nSTATUS=text");
                len = recv(fd, text, sizeof(text) - 1, 0);
                ck_assert_int_gt(len, 0);
                text[len] = '\0';
                ck_assert_str_eq(text, "READY=1\nSTATUS=text");
                close(fd);
                /* nobody there any more */
                tr_systemd_notify(&systemd, "STOPPING=1");
        }
        unlink(addresses[0]);
}
END_TEST

suite_main("systemd", nothing_is_passed_and_nobody_listens, sockets_are_taken_once,
           another_process_sockets_are_not_ours, nonsense_is_ignored, the_watchdog_is_this_process, it_is_told);
