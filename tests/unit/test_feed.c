/* SPDX-License-Identifier: Apache-2.0 */
/* The feed: who is told what, how often at most, and what is said of the rest. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/io/connection.h"
#include "daemon/io/feed.h"
#include "daemon/io/server_internal.h"
#include "tests/unit/failing.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

static struct io_fixture fixture;
static struct io_client client;

static void begin_with(const struct tr_server_limits *limits) {
        io_fixture_init(&fixture, limits);
        io_client_init(&client, &fixture);
}

static void begin(void) {
        struct tr_server_limits limits = io_fixture_limits();
        begin_with(&limits);
}

static void end(void) {
        io_client_deinit(&client);
        io_fixture_deinit(&fixture);
}

/* An event {n: number} that concerns a user, with `fill` bytes of text where that is not 0. */
static void put(enum tr_topic topic, int number, uint32_t uid, size_t fill) {
        struct tr_event_writer event = { .topic = topic, .uids = { uid }, .uids_count = 1, .pairs_count = 1 };
        char *text;

        tr_write_text(&event.pairs, "n");
        tr_write_int(&event.pairs, number);
        if (fill) {
                text = malloc(fill);
                ck_assert_ptr_nonnull(text);
                memset(text, 'x', fill);
                tr_write_text(&event.pairs, "fill");
                tr_write_str(&event.pairs, text, fill);
                event.pairs_count++;
                free(text);
        }
        tr_feed_put(fixture.feed, &event);
        tr_writer_deinit(&event.pairs);
}

static void nothing(struct io_fixture *own, void *userdata) {
}

/* What was put is told when this returns. */
static void wait_until_told(void) {
        io_fixture_run(&fixture, nothing, NULL);
}

static void say(struct io_client *to, const char *text) {
        io_client_say(to, "[0,1,%s]", text);
        io_client_expect(to, "[1,1,nil,nil]");
}

/* Nothing has come but this answer. */
static void expect_nothing(struct io_client *from) {
        wait_until_told();
        io_client_say(from, "[0,2,'ping',[]]");
        io_client_expect(from, "[1,2,nil,'pong']");
}

START_TEST(who_subscribed_to_a_topic_is_told) {
        struct io_client other;

        begin();
        io_client_init(&other, &fixture);
        ck_assert(!tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG));
        say(&client, "'subscribe',['log']");
        say(&client, "'subscribe',['task']");
        say(&other, "'subscribe',['log',{'method':'m','params':[1,{'a':nil}]}]");
        ck_assert(tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG));
        ck_assert(!tr_feed_is_wanted(fixture.feed, TR_TOPIC_TRACE));
        put(TR_TOPIC_LOG, 1, 0, 0);
        put(TR_TOPIC_TASK, 2, 0, 0);
        put(TR_TOPIC_TRACE, 3, 0, 0);
        put(TR_TOPIC_LOG, 4, 0, 3);
        io_client_expect(&client, "[2,'event',['log',{'n':1}]]");
        io_client_expect(&client, "[2,'event',['task',{'n':2}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':4,'fill':'xxx'}]]");
        io_client_expect(&other, "[2,'m',[1,{'a':nil},['log',{'n':1}]]]");
        io_client_expect(&other, "[2,'m',[1,{'a':nil},['log',{'n':4,'fill':'xxx'}]]]");

        say(&client, "'unsubscribe',['log']");
        put(TR_TOPIC_LOG, 5, 0, 0);
        io_client_expect(&other, "[2,'m',[1,{'a':nil},['log',{'n':5}]]]");
        expect_nothing(&client);
        io_client_deinit(&other);
        while (tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG)) /* the loop sees that it has gone when it does */
                wait_until_told();
        end();
}
END_TEST

static void leave_the_role_call(struct io_fixture *own, void *userdata) {
        struct tr_connection *connection = tr_list_first(&own->server->connections, struct tr_connection, link);

        ck_assert_ptr_nonnull(connection);
        if (!connection)
                return;
        connection->roles = TR_ROLE_CALL;
        connection->peer.uid = 1000;
}

START_TEST(with_the_role_call_it_has_to_concern_the_user) {
        struct tr_event_writer both = { .topic = TR_TOPIC_LOG, .uids = { 5, 1000 }, .uids_count = 2 };
        struct tr_event_writer nobodys = { .topic = TR_TOPIC_LOG };

        begin();
        io_fixture_run(&fixture, leave_the_role_call, NULL);
        say(&client, "'subscribe',['log']");
        put(TR_TOPIC_LOG, 1, 999, 0);
        put(TR_TOPIC_LOG, 2, 1000, 0);
        tr_feed_put(fixture.feed, &nobodys);
        tr_feed_put(fixture.feed, &both);
        io_client_expect(&client, "[2,'event',['log',{'n':2}]]");
        io_client_expect(&client, "[2,'event',['log',{}]]");
        expect_nothing(&client);
        end();
}
END_TEST

static _Atomic uint64_t now_ns;

static uint64_t driven(void) {
        return atomic_load(&now_ns);
}

static void look_at_dropped(struct io_fixture *own, void *userdata) {
        *(uint64_t *)userdata = tr_feed_dropped(own->feed);
}

/* What the daemon has counted of all that were left out for want of room. */
static uint64_t dropped_in_all(void) {
        uint64_t dropped;
        io_fixture_run(&fixture, look_at_dropped, &dropped);
        return dropped;
}

START_TEST(a_rate_leaves_the_rest_out_and_counts_it) {
        atomic_store(&now_ns, 1000 * TR_NS_PER_S);
        tr_clock_set_source(driven);
        begin();
        say(&client, "'subscribe',['log',{'rate':2}]");
        for (int n = 1; n <= 5; n++)
                put(TR_TOPIC_LOG, n, 0, 0);
        wait_until_told();
        atomic_fetch_add(&now_ns, TR_NS_PER_S - 1);
        put(TR_TOPIC_LOG, 6, 0, 0);
        wait_until_told();
        atomic_fetch_add(&now_ns, 1);
        for (int n = 7; n <= 9; n++)
                put(TR_TOPIC_LOG, n, 0, 0);
        wait_until_told();
        atomic_fetch_add(&now_ns, 100 * TR_NS_PER_S);
        put(TR_TOPIC_LOG, 10, 0, 0);
        put(TR_TOPIC_LOG, 11, 0, 0);
        io_client_expect(&client, "[2,'event',['log',{'n':1}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':2}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':7,'dropped':4}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':8}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':10,'dropped':1}]]");
        io_client_expect(&client, "[2,'event',['log',{'n':11}]]");
        ck_assert_uint_eq(dropped_in_all(), 0); /* that was the client's wish */
        end();
}
END_TEST

#define MANY 1000

/* On the loop, which tells nothing meanwhile. */
static void put_many(struct io_fixture *own, void *userdata) {
        for (int n = 0; n < MANY; n++)
                put(TR_TOPIC_LOG, n, 0, 1024);
        put(TR_TOPIC_TASK, 0, 0, 0);
}

/* The next event: its number, and what was left out before it. */
static int hear(struct io_client *from, int *ret_dropped) {
        const char *text = io_client_hear(from), *dropped = strstr(text, "'dropped':");
        int number;

        ck_assert_int_eq(sscanf(text, "[2,'event',['log',{'n':%d", &number), 1);
        *ret_dropped = dropped ? atoi(dropped + strlen("'dropped':")) : 0;
        return number;
}

/* Puts an event, of those from `next` on, for each that the client hears, until one of them says how many were left out. */
static int hear_of_dropped(int next, int *told, int *ret_dropped) {
        int last;

        do {
                put(TR_TOPIC_LOG, next++, 0, 0);
                last = hear(&client, ret_dropped);
                (*told)++;
        } while (*ret_dropped == 0);
        return last;
}

START_TEST(a_flood_of_one_topic_is_bounded_and_costs_no_other) {
        int told = 0, dropped = 0, last;
        struct io_client other;

        begin();
        io_client_init(&other, &fixture);
        say(&client, "'subscribe',['log']");
        say(&other, "'subscribe',['task']");
        io_fixture_run(&fixture, put_many, NULL);
        io_client_expect(&other, "[2,'event',['task',{'n':0}]]");
        last = hear_of_dropped(MANY, &told, &dropped);
        ck_assert_int_gt(told, MANY / 4);
        ck_assert_int_gt(dropped, MANY / 4);
        ck_assert_int_eq(told + dropped, last + 1);
        ck_assert_uint_eq(dropped_in_all(), (uint64_t)dropped);
        /* Whoever comes now has missed nothing. */
        say(&other, "'subscribe',['log']");
        put(TR_TOPIC_LOG, 1, 0, 0);
        ck_assert_int_eq(hear(&other, &dropped), 1);
        ck_assert_int_eq(dropped, 0);
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(who_does_not_read_loses_events_and_keeps_the_connection) {
        int told = 0, dropped = 0, last;
        struct io_client other;

        begin();
        io_client_init(&other, &fixture);
        say(&client, "'subscribe',['log']");
        say(&other, "'subscribe',['log']");
        for (int n = 1; n <= MANY; n++) {
                put(TR_TOPIC_LOG, n, 0, 2048);
                ck_assert_int_eq(hear(&other, &dropped), n); /* nobody waits for the one who does not */
                ck_assert_int_eq(dropped, 0);
        }
        do {
                last = hear(&client, &dropped);
                ck_assert_int_eq(dropped, 0);
                ck_assert_int_eq(last, ++told);
                expect_nothing(&other);
        } while (told < 100);
        ck_assert_int_lt(told, MANY);
        /* What was left out is told with the first that is not. */
        last = hear_of_dropped(MANY + 1, &told, &dropped);
        ck_assert_int_eq(told + dropped, last);
        ck_assert_uint_eq(dropped_in_all(), (uint64_t)dropped);
        io_client_deinit(&other);
        end();
}
END_TEST

START_TEST(what_is_larger_than_a_frame_is_left_out) {
        struct tr_server_limits limits = io_fixture_limits();
        int dropped;

        limits.frame_bytes = 4096;
        begin_with(&limits);
        say(&client, "'subscribe',['log']");
        put(TR_TOPIC_LOG, 1, 0, 5000);
        put(TR_TOPIC_LOG, 2, 0, 3000);
        ck_assert_int_eq(hear(&client, &dropped), 2);
        ck_assert_int_eq(dropped, 1);
        end();
}
END_TEST

START_TEST(without_memory_an_event_is_left_out) {
        struct tr_event_writer broken = { .topic = TR_TOPIC_LOG, .pairs = { .error = -12 } };
        int dropped;

        begin();
        say(&client, "'subscribe',['log']");
        tr_feed_put(fixture.feed, &broken);
        failing_arm(1);
        tr_feed_put(fixture.feed, &(struct tr_event_writer){ .topic = TR_TOPIC_LOG });
        failing_arm(0);
        ck_assert(failing_hit());
        put(TR_TOPIC_LOG, 3, 0, 0);
        ck_assert_int_eq(hear(&client, &dropped), 3);
        ck_assert_int_eq(dropped, 2);
        end();
}
END_TEST

static _Atomic int looks_while_telling;

static _Atomic bool looking;

/* For the rate it is looked at while an event is told. */
static uint64_t clock_that_sees(void) {
        if (atomic_load(&looking) && !tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG))
                atomic_fetch_add(&looks_while_telling, 1);
        return 1;
}

START_TEST(what_happens_while_the_loop_tells_is_told_to_nobody) {
        tr_clock_set_source(clock_that_sees);
        begin();
        say(&client, "'subscribe',['log',{'rate':2}]");
        ck_assert(tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG));
        atomic_store(&looking, true);
        put(TR_TOPIC_LOG, 1, 0, 0);
        io_client_expect(&client, "[2,'event',['log',{'n':1}]]");
        wait_until_told();
        ck_assert_int_eq(atomic_load(&looks_while_telling), 1);
        ck_assert(tr_feed_is_wanted(fixture.feed, TR_TOPIC_LOG));
        end();
}
END_TEST

suite_main("feed", who_subscribed_to_a_topic_is_told, with_the_role_call_it_has_to_concern_the_user,
           a_rate_leaves_the_rest_out_and_counts_it, a_flood_of_one_topic_is_bounded_and_costs_no_other,
           who_does_not_read_loses_events_and_keeps_the_connection, what_is_larger_than_a_frame_is_left_out,
           without_memory_an_event_is_left_out, what_happens_while_the_loop_tells_is_told_to_nobody);
