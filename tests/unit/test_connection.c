/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: how they come and go, and that what comes over them may come in any shape. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

START_TEST(a_session_ends_with_its_connection) {
        begin();
        struct io_client other;
        char attached[64], detached[64];
        io_client_init(&other, &fixture);
        strcpy(attached, io_client_spawn(&other, "worker"));
        strcpy(detached, io_client_spawn(&other, "worker"));
        io_client_say(&other, "[0,1,'detach',['%s']]", detached);
        io_client_expect(&other, "[1,1,nil,nil]");
        io_client_say(&client, "[0,1,'done',['%s']][0,3,'ping',[]]", attached);
        io_client_expect(&client, "[1,3,nil,'pong']");
        io_client_deinit(&other);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_say(&client, "[0,4,'ask',['%s','echo',[1]]]", detached);
        io_client_expect(&client, "[1,4,nil,1]");
        io_client_say(&client, "[0,5,'stop',['%s']]", detached);
        io_client_expect(&client, "[1,5,nil,nil]");
        io_client_say(&client, "[0,2,'done',['%s']]", detached);
        io_client_expect(&client, "[1,2,nil,nil]");
        end();
}
END_TEST

START_TEST(a_half_closed_peer_is_answered) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','block',[]]][0,2,'ask',['%s','echo',[2]]]", handle, handle);
        io_client_send(&client, "\x94\x00\x03", 3);
        shutdown(client.fd, SHUT_WR);
        sem_wait(&fixture.shared.entered);
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,1,nil,nil]");
        io_client_expect(&client, "[1,2,nil,2]");
        io_client_expect(&client, "end");
        end();
}
END_TEST

START_TEST(a_peer_that_goes_while_it_is_owed_an_answer_is_let_go) {
        begin();
        struct io_client other;
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_init(&other, &fixture);
        io_client_say(&other, "[0,1,'spawn',['worker',[],{'publish':'others'}]]");
        io_client_hear(&other);
        io_client_say(&client, "[0,1,'done',['others']][0,2,'ask',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        io_client_say(&other, "[0,2,'ask',['%s','count',[]]][2,'send',['%s','count',[]]]", handle, handle);
        shutdown(other.fd, SHUT_WR);
        io_client_deinit(&other); /* its ask is queued for ever: only the end of the peer can end the connection */
        io_client_expect(&client, "[1,1,nil,nil]");
        sem_post(&fixture.shared.go);
        io_client_expect(&client, "[1,2,nil,nil]");
        io_client_say(&client, "[0,3,'ask',['%s','count',[]]]", handle);
        io_client_expect(&client, "[1,3,nil,2]"); /* its send was served, its ask was not */
        end();
}
END_TEST

START_TEST(garbage_ends_the_connection_after_what_came_before) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        io_client_say(&client, "[0,1,'ask',['%s','echo',[1]]][0,2,'ping']", handle);
        io_client_expect_both(&client, "[1,2,[0,'bad-frame: this is not a frame of MessagePack-RPC (ran: no)'],nil]",
                              "[1,1,nil,1]");
        io_client_expect(&client, "end");
        end();
}
END_TEST

START_TEST(a_refused_frame_is_passed_over) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.frame_bytes = 1024;
        begin_with(&limits);
        char text[4096];
        memset(text, 'x', 2000);
        text[2000] = '\0';
        io_client_say(&client, "[0,1,'send',['a','b',['%s']]][0,2,'ping',[]]", text);
        io_client_expect(
                &client,
                "[1,1,[1,'too-large: the frame is larger than limits.frame allows (1024 bytes) (ran: no)'],nil]");
        io_client_expect(&client, "[1,2,nil,'pong']");
        io_client_say(&client,
                      "[0,3,'hello',[{'errors':'map'}]][0,4,'send',['a','b',[1,[{'k':18446744073709551615}]]]]");
        io_client_hear(&client);
        io_client_expect(&client,
                         "[1,4,{'code':'not-sendable','message':'a message may not carry an integer above 2^63-1: "
                         "`args[2][1].k` is one','ran':'no','path':'args[2][1].k'},nil]");
        end();
}
END_TEST

START_TEST(a_frame_may_come_in_any_pieces) {
        begin();
        char handle[64];
        strcpy(handle, io_client_spawn(&client, "worker"));
        static char text[600001];
        memset(text, 'x', sizeof(text) - 1);
        struct tr_writer writer = TR_WRITER_INIT;
        tr_write_array(&writer, 4);
        tr_write_int(&writer, 0);
        tr_write_int(&writer, 1);
        tr_write_text(&writer, "ask");
        tr_write_array(&writer, 3);
        tr_write_text(&writer, handle);
        tr_write_text(&writer, "echo");
        tr_write_array(&writer, 1);
        tr_write_text(&writer, text);
        size_t steps[] = { 1, 7, 1000, 20000, 100000, 1000000 };
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                /* Small steps for the beginning only: its end, and what is behind it, are in one piece. */
                size_t at = 0;
                for (unsigned int step = 0; step < 64 && at + steps[i] < writer.len; step++, at += steps[i])
                        io_client_send(&client, writer.data + at, steps[i]);
                io_client_send(&client, writer.data + at, writer.len - at);
                io_client_say(&client, "[0,2,'ping',[]]");
                ck_assert_int_eq(io_client_hear_id(&client) + io_client_hear_id(&client), 3);
        }
        tr_writer_deinit(&writer);
        end();
}
END_TEST

/* Asks the counting handler, and wants that it has counted every ask so far. */
static void count_one(const char *handle, int nth) {
        char wanted[64];
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]", nth, handle);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
}

START_TEST(who_asks_one_at_a_time_is_heard_once) {
        begin();
        char handle[64], wanted[64];
        int nth = 1;
        strcpy(handle, io_client_spawn(&client, "worker"));
        for (; nth <= 20; nth++)
                count_one(handle, nth);
        /* More than was to be expected: two at once, */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]][0,%d,'ask',['%s','count',[]]]", nth, handle, nth + 1,
                      handle);
        for (int i = 0; i < 2; i++, nth++) {
                snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
                io_client_expect(&client, wanted);
        }
        count_one(handle, nth++);
        count_one(handle, nth++);
        /* one, and the beginning of another; 0x94 is an array of four, and the rest of it comes once the first is answered, */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]", nth, handle);
        io_client_send(&client, "\x94", 1);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
        nth++;
        io_client_send(&client, "\x00\x7f\xa4ping\x90", 8);
        io_client_expect(&client, "[1,127,nil,'pong']");
        count_one(handle, nth++);
        count_one(handle, nth++);
        /* and what is no frame. */
        io_client_say(&client, "[0,%d,'ask',['%s','count',[]]]7", nth, handle);
        snprintf(wanted, sizeof(wanted), "[1,%d,nil,%d]", nth, nth);
        io_client_expect(&client, wanted);
        end();
}
END_TEST

START_TEST(one_connection_too_many_is_told) {
        struct tr_server_limits limits = io_fixture_limits();
        limits.connections = 2;
        begin_with(&limits);
        struct io_client second, third;
        io_client_init(&second, &fixture);
        io_client_init(&third, &fixture);
        io_client_say(&third, "[0,1,'ping',[]][0,2,'ping',[]]");
        io_client_expect(&third, "[1,1,[0,'limit: too many connections, in all or of this user (ran: no)'],nil]");
        io_client_expect(&third, "end");
        io_client_deinit(&third);
        io_client_say(&client, "[0,1,'ping',[]]");
        io_client_expect(&client, "[1,1,nil,'pong']");
        io_client_deinit(&second);
        end();
}
END_TEST

suite_main("connection", a_session_ends_with_its_connection, a_half_closed_peer_is_answered,
           a_peer_that_goes_while_it_is_owed_an_answer_is_let_go, garbage_ends_the_connection_after_what_came_before,
           a_refused_frame_is_passed_over, a_frame_may_come_in_any_pieces, who_asks_one_at_a_time_is_heard_once,
           one_connection_too_many_is_told);
