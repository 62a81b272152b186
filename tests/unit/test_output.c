/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a connection: every byte once and in order, whatever the socket takes, and no more than allowed. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/io/output.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

static struct tr_output output;
static int fds[2];

static void begin(size_t max_bytes) {
        output = (struct tr_output){ .max_bytes = max_bytes };
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void end(void) {
        tr_output_deinit(&output);
        close(fds[0]);
        close(fds[1]);
}

/* Appends numbered bytes: the n-th byte of all is n modulo 251. */
static int append(size_t bytes) {
        static size_t total;
        size_t mark = tr_output_begin(&output);
        if (bytes == 0)
                total = 0;
        for (size_t i = 0; i < bytes; i++) {
                uint8_t byte = (uint8_t)((total + i) % 251);
                tr_write_raw(&output.writer, &byte, 1);
        }
        int r = tr_output_end(&output, mark);
        if (r == 0)
                total += bytes;
        return r;
}

/* Reads what is there, and holds that it goes on from what was read before. */
static size_t drain(size_t from) {
        uint8_t data[65536];
        ssize_t received;
        bool right = true;
        while ((received = recv(fds[1], data, sizeof(data), MSG_DONTWAIT)) > 0)
                for (ssize_t i = 0; i < received; i++, from++)
                        right &= data[i] == from % 251;
        ck_assert(right);
        return from;
}

START_TEST(every_byte_arrives_once) {
        begin(64 << 20);
        size_t written = 0, read = 0;
        bool was_blocked = false;
        ck_assert_int_eq(append(0), 0);
        for (int round = 0; round < 200; round++) {
                ck_assert_int_eq(append(10000), 0);
                written += 10000;
                was_blocked |= tr_output_send(&output, fds[0]) == TR_OUTPUT_BLOCKED;
                ck_assert_uint_eq(output.sent_total + tr_output_waiting(&output), written);
                if (round % 50 == 49)
                        read = drain(read);
        }
        ck_assert(was_blocked);
        while (tr_output_send(&output, fds[0]) == TR_OUTPUT_BLOCKED)
                read = drain(read);
        ck_assert_uint_eq(drain(read), written);
        ck_assert_uint_eq(tr_output_waiting(&output), 0);
        end();
}
END_TEST

START_TEST(more_than_allowed_breaks_it) {
        begin(1000);
        ck_assert_int_eq(append(0), 0);
        ck_assert_int_eq(append(1000), 0);
        ck_assert_int_eq(append(1), -ENOBUFS);
        ck_assert(output.broken);
        ck_assert_uint_eq(tr_output_waiting(&output), 0);
        ck_assert_int_eq(append(10), 0); /* thrown away */
        ck_assert_uint_eq(tr_output_waiting(&output), 0);
        ck_assert_int_eq(tr_output_send(&output, fds[0]), TR_OUTPUT_BROKEN);
        end();
}
END_TEST

START_TEST(a_peer_that_has_gone_breaks_it) {
        begin(1000);
        ck_assert_int_eq(append(100), 0);
        close(fds[1]);
        ck_assert_int_eq(tr_output_send(&output, fds[0]), TR_OUTPUT_BROKEN);
        ck_assert_uint_eq(tr_output_waiting(&output), 0);
        fds[1] = dup(fds[0]);
        end();
}
END_TEST

START_TEST(a_want_of_memory_takes_back_what_was_appended) {
        begin(64 << 20);
        ck_assert_int_eq(append(0), 0);
        ck_assert_int_eq(append(100), 0);
        long n = 0;
        int r;
        do {
                size_t before = tr_output_waiting(&output);
                failing_arm(++n);
                r = append(1 << 20);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                if (r)
                        ck_assert_uint_eq(tr_output_waiting(&output), before);
        } while (r);
        ck_assert_int_gt(n, 1);
        size_t read = 0;
        while (tr_output_send(&output, fds[0]) == TR_OUTPUT_BLOCKED)
                read = drain(read);
        ck_assert_uint_eq(drain(read), 100 + (1 << 20));
        end();
}
END_TEST

suite_main("output", every_byte_arrives_once, more_than_allowed_breaks_it, a_peer_that_has_gone_breaks_it,
           a_want_of_memory_takes_back_what_was_appended);
