/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that send more than is taken: they rest, for a while by the clock (which stands still here, and is moved
 * by hand), are answered all the same, and keep nobody else.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/clock.h"
#include "daemon/core/stock.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"
#include "tests/unit/failing.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

#define FULL "[0,'mailbox-full: the mailbox is full (ran: no)'],nil]"
#define MAILBOX 2

static struct io_fixture fixture;
static struct io_client client, flooder;
static char handle[64]; /* of an actor that is blocked, and whose mailbox is full */
static _Atomic uint64_t now_ns;

static uint64_t standing(void) {
        return atomic_load(&now_ns);
}

static void pass(uint64_t ms) {
        atomic_fetch_add(&now_ns, ms * TR_NS_PER_MS);
}

/* The loop has been round since, so often that it has read what it would read. */
static void see_others_served(void) {
        for (int i = 0; i < 3; i++) {
                io_client_say(&client, "[0,1,'ping',[]]");
                io_client_expect(&client, "[1,1,nil,'pong']");
        }
}

static void begin(void) {
        atomic_store(&now_ns, TR_NS_PER_S);
        tr_clock_set_source(standing);
        io_begin(&fixture, &client, NULL);
        io_client_init(&flooder, &fixture);
        io_client_say(&client, "[0,1,'spawn',['worker',[],{'mailbox':%d}]]", MAILBOX);
        ck_assert_int_eq(sscanf(io_client_hear(&client), "[1,1,nil,'%63[^']']", handle), 1);
        io_client_say(&client, "[2,'send',['%s','block',[]]]", handle);
        sem_wait(&fixture.shared.entered);
        for (int i = 0; i < MAILBOX; i++) {
                io_client_say(&client, "[0,1,'send',['%s','count',[]]]", handle);
                io_client_expect(&client, "[1,1,nil,nil]");
        }
}

static void end(void) {
        sem_post(&fixture.shared.go);
        io_client_deinit(&flooder);
        io_end(&fixture, &client);
}

/* Sends what is refused at once, since the flooder does not rest; it does after. */
static void be_refused(void) {
        io_client_say(&flooder, "[0,7,'send',['%s','count',[]]]", handle);
        io_client_expect(&flooder, "[1,7," FULL);
}

static void must_have_no_answer(void) {
        char byte;
        see_others_served();
        ck_assert_int_eq(recv(flooder.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
        ck_assert_int_eq(errno, EAGAIN);
}

START_TEST(who_was_refused_rests_and_nobody_else_does) {
        begin();
        be_refused();
        io_client_say(&flooder, "[0,8,'ping',[]]");
        must_have_no_answer();
        pass(1);
        io_client_expect(&flooder, "[1,8,nil,'pong']");
        io_client_say(&flooder, "[0,9,'ping',[]]");
        io_client_expect(&flooder, "[1,9,nil,'pong']");
        end();
}
END_TEST

START_TEST(rests_grow_to_a_bound_and_end_with_what_is_taken) {
        begin();
        be_refused();
        for (int i = 1; i < 6; i++) {
                static const unsigned int rest_ms[] = { 1, 2, 4, 8, 8 };
                io_client_say(&flooder, "[0,8,'send',['%s','count',[]]]", handle);
                pass(rest_ms[i - 1] - 1);
                must_have_no_answer();
                pass(1);
                io_client_expect(&flooder, "[1,8," FULL);
        }
        io_client_say(&flooder, "[0,9,'ping',[]]");
        pass(8);
        io_client_expect(&flooder, "[1,9,nil,'pong']");
        be_refused();
        io_client_say(&flooder, "[0,9,'ping',[]]");
        pass(1);
        io_client_expect(&flooder, "[1,9,nil,'pong']");
        end();
}
END_TEST

START_TEST(sends_without_an_answer_count_too) {
        begin();
        io_client_say(&flooder, "[2,'send',['%s','count',[]]]", handle);
        while (atomic_load(&fixture.refused) == 0)
                see_others_served();
        io_client_say(&flooder, "[0,8,'ping',[]]");
        must_have_no_answer();
        pass(1);
        io_client_expect(&flooder, "[1,8,nil,'pong']");
        end();
}
END_TEST

START_TEST(other_refusals_are_no_flood) {
        begin();
        io_client_say(&flooder, "[0,1,'done',['%s']][0,1,'done',['%s']][0,2,'send',['nobody','x',[]]][0,3,'nonsense',[]]", handle,
                      handle);
        for (int i = 0; i < 3; i++)
                ck_assert_ptr_nonnull(strstr(io_client_hear(&flooder), "(ran: no)"));
        io_client_say(&flooder, "[0,8,'ping',[]]");
        io_client_expect(&flooder, "[1,8,nil,'pong']");
        end();
}
END_TEST

static void read_piece_bytes(struct io_fixture *on, void *userdata) {
        struct tr_connection *connection;
        tr_list_for_each(connection, &on->server->connections, link)
                *(size_t *)userdata = connection->piece_bytes; /* the flooder is the last of them */
}

static size_t piece_bytes(void) {
        size_t bytes;
        io_fixture_run(&fixture, read_piece_bytes, &bytes);
        return bytes;
}

/* Sends that are answered, as fast as they are read; every one of them is. */
START_TEST(a_flood_is_read_in_small_pieces_and_answered_whole) {
        enum {
                FLOOD = 1000 /* its socket holds all of them */
        };
        static bool answered[FLOOD];
        struct tr_writer writer = TR_WRITER_INIT;
        begin();
        ck_assert_uint_eq(piece_bytes(), TR_PIECE_BYTES);
        for (uint32_t i = 0; i < FLOOD; i++) {
                tr_write_array(&writer, 4);
                tr_write_int(&writer, 0);
                tr_write_uint(&writer, i);
                tr_write_text(&writer, "send");
                tr_write_array(&writer, 3);
                tr_write_text(&writer, handle);
                tr_write_text(&writer, "count");
                tr_write_array(&writer, 0);
        }
        io_client_send(&flooder, writer.data, writer.len);
        for (int i = 0; i < FLOOD; i++) {
                int64_t id;
                pass(8);
                id = io_client_hear_id(&flooder);
                ck_assert(id >= 0 && id < FLOOD && !answered[id]);
                answered[id] = true;
        }
        ck_assert_uint_lt(piece_bytes(), TR_PIECE_BYTES);
        tr_writer_deinit(&writer);
        end();
}
END_TEST

START_TEST(what_is_unread_is_served_after_the_rest) {
        begin();
        be_refused();
        io_client_say(&flooder, "[0,1,'done',['%s']][2,'cancel',[1]][0,2,'send',['%s','count',[]]][0,3,'ping',[]]", handle, handle);
        ck_assert_int_eq(shutdown(flooder.fd, SHUT_WR), 0);
        must_have_no_answer();
        pass(1);
        io_client_expect(&flooder, "[1,1,[0,'cancelled: the caller took the request back (ran: no)'],nil]");
        io_client_expect(&flooder, "[1,2," FULL);
        io_client_expect(&flooder, "[1,3,nil,'pong']");
        pass(2);
        ck_assert_str_eq(io_client_hear(&flooder), "end");
        end();
}
END_TEST

/* Both keep it from being read: it is read on when both are over, whichever is first. */
START_TEST(who_rests_and_does_not_read_is_read_from_after_both) {
        enum {
                LARGE = 40
        };
        char other[64];
        begin();
        strcpy(other, io_client_spawn(&client, "worker"));
        for (int i = 0; i < LARGE; i++)
                io_client_say(&flooder, "[0,%d,'ask',['%s','large',[]]]", i, other);
        io_client_say(&flooder, "[0,100,'send',['%s','count',[]]]", handle);
        io_client_say(&flooder, "[0,101,'ping',[]]");
        see_others_served();
        pass(1);
        see_others_served();
        for (int i = 0; i < LARGE + 2; i++) {
                pass(8);
                ck_assert_int_ge(io_client_hear_id(&flooder), 0);
        }
        io_client_say(&flooder, "[0,1,'ping',[]]");
        pass(8);
        io_client_expect(&flooder, "[1,1,nil,'pong']");
        end();
}
END_TEST

START_TEST(a_connection_may_end_in_a_rest) {
        struct io_client watcher;
        begin();
        io_client_init(&watcher, &fixture);
        io_client_say(&flooder, "[0,1,'spawn',['worker',[],{'publish':'theirs'}]]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&flooder), "[1,1,nil,'actor:"));
        io_client_say(&watcher, "[0,1,'done',['theirs']]");
        be_refused();
        ck_assert_int_eq(shutdown(flooder.fd, SHUT_RDWR), 0);
        pass(1);
        io_client_expect(&watcher, "[1,1,nil,nil]");
        io_client_deinit(&watcher);
        end();
}
END_TEST

START_TEST(the_daemon_may_end_in_a_rest) {
        begin();
        be_refused();
        end();
}
END_TEST

/* Whichever allocation fails, the one for the timer of the rest included: what was read is answered or the connection
 * ends, and the next is served. */
START_TEST(a_flood_without_memory) {
        static uint8_t answer[4096];
        struct tr_writer writer = TR_WRITER_INIT;
        bool hit;
        long n = 0;
        tr_stock_disable();
        begin();
        tr_write_array(&writer, 4);
        tr_write_int(&writer, 0);
        tr_write_uint(&writer, 7);
        tr_write_text(&writer, "send");
        tr_write_array(&writer, 3);
        tr_write_text(&writer, handle);
        tr_write_text(&writer, "count");
        tr_write_array(&writer, 0);
        do {
                failing_arm(++n);
                ssize_t sent = send(flooder.fd, writer.data, writer.len, MSG_NOSIGNAL);
                ssize_t received = recv(flooder.fd, answer, sizeof(answer), 0);
                failing_arm(0);
                hit = failing_hit();
                ck_assert_int_eq(sent, (ssize_t)writer.len);
                ck_assert(received > 0 || hit);
                pass(8);
                io_client_deinit(&flooder);
                io_client_init(&flooder, &fixture);
        } while (hit);
        ck_assert_int_gt(n, 3);
        io_client_say(&flooder, "[0,8,'ping',[]]");
        io_client_expect(&flooder, "[1,8,nil,'pong']");
        tr_writer_deinit(&writer);
        end();
}
END_TEST

suite_main("flooding", who_was_refused_rests_and_nobody_else_does, rests_grow_to_a_bound_and_end_with_what_is_taken,
           sends_without_an_answer_count_too, other_refusals_are_no_flood,
           a_flood_is_read_in_small_pieces_and_answered_whole, what_is_unread_is_served_after_the_rest,
           who_rests_and_does_not_read_is_read_from_after_both, a_connection_may_end_in_a_rest,
           the_daemon_may_end_in_a_rest, a_flood_without_memory);
