/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that do not read what they are answered: they hurt nobody but themselves. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

static struct io_fixture fixture;
static struct io_client client;

static void begin_with(const struct tr_server_limits *limits) {
        io_begin(&fixture, &client, limits);
}

static void begin(void) {
        begin_with(NULL);
}

static void end(void) {
        io_end(&fixture, &client);
}

/* Has the server write more than a socket holds, and more than a connection may leave unread and be read from. */
#define FLOOD 40
static void flood(struct io_client *who, const char *handle) {
        for (int i = 0; i < FLOOD; i++)
                io_client_say(who, "[0,%d,'ask',['%s','large',[]]]", i, handle);
}

START_TEST(who_does_not_read_is_not_read_from_and_loses_nothing) {
        begin();
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        flood(&other, handle);
        io_client_say(&client, "[0,1,'ask',['%s','echo',[1]]]", handle);
        io_client_expect(&client, "[1,1,nil,1]");
        for (int i = 0; i < FLOOD; i++)
                ck_assert_int_eq(io_client_hear_id(&other), i);
        io_client_say(&other, "[0,1,'ping',[]]");
        io_client_expect(&other, "[1,1,nil,'pong']");
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(a_piece_of_requests_with_large_answers_is_served_as_they_are_read) {
        enum {
                ACTORS = 30,
                REQUESTS = 2000
        };
        struct tr_server_limits limits = io_fixture_limits();
        limits.output_bytes = 1 << 20; /* much less than all answers together */
        begin_with(&limits);
        for (int i = 0; i < ACTORS; i++)
                io_client_spawn(&client, "worker");
        struct tr_writer writer = TR_WRITER_INIT;
        for (uint32_t i = 0; i < REQUESTS; i++) {
                tr_write_array(&writer, 4);
                tr_write_int(&writer, 0);
                tr_write_uint(&writer, i);
                tr_write_text(&writer, "list");
                tr_write_array(&writer, 0);
        }
        io_client_send(&client, writer.data, writer.len);
        tr_writer_deinit(&writer);
        for (int i = 0; i < REQUESTS; i++)
                ck_assert_int_eq(io_client_hear_id(&client), i);
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        end();
}
END_TEST

START_TEST(who_never_reads_is_closed) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.stalled_ns = 50 * TR_NS_PER_MS;
        begin_with(&limits);
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,99,'spawn',['worker',[],{'publish':'theirs'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['theirs']]");
        flood(&other, handle);
        io_client_expect(&client, "[1,1,nil,nil]"); /* its session has ended */
        io_client_deinit(&other);
        end();
}
END_TEST

static _Atomic uint64_t jumped_ns;

static uint64_t jumping(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * TR_NS_PER_S + (uint64_t)now.tv_nsec + atomic_load(&jumped_ns);
}

static void do_nothing(struct io_fixture *on, void *userdata) {}

/* As when the machine was suspended: the time has passed for the daemon and its client, and neither did anything. */
START_TEST(time_in_which_nobody_ran_is_no_stall) {
        struct io_client other;
        char handle[64];

        tr_clock_set_source(jumping);
        begin();
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        flood(&other, handle);
        io_client_say(&client, "[0,1,'ask',['%s','echo',[1]]]", handle);
        io_client_expect(&client, "[1,1,nil,1]");
        io_fixture_run(&fixture, do_nothing, NULL); /* the loop has seen that the other one is blocked */
        for (int i = 0; i < 2; i++) {
                atomic_fetch_add(&jumped_ns, 1000 * TR_NS_PER_S);
                io_fixture_run(&fixture, do_nothing, NULL);
        }
        for (int i = 0; i < FLOOD; i++)
                ck_assert_int_eq(io_client_hear_id(&other), i);
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(more_output_than_allowed_is_the_end) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.output_bytes = 512 << 10;
        begin_with(&limits);
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,99,'spawn',['worker',[],{'publish':'theirs'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['theirs']]");
        flood(&other, handle);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_deinit(&other);
        end();
}
END_TEST

suite_main("unread", who_does_not_read_is_not_read_from_and_loses_nothing,
           a_piece_of_requests_with_large_answers_is_served_as_they_are_read, who_never_reads_is_closed,
           time_in_which_nobody_ran_is_no_stall, more_output_than_allowed_is_the_end);
