/* SPDX-License-Identifier: Apache-2.0 */
/* The spans that ended last: how many are kept, who finds which, and how they are told. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/traces.h"
#include "daemon/watch/watch.h"
#include "tests/unit/failing.h"
#include "tests/unit/io_fixture.h"
#include "tests/unit/suite.h"

static struct tr_traces *traces;

static void begin(void) {
        ck_assert_int_eq(tr_traces_new(&traces), 0);
}

static void end(void) {
        tr_traces_free(traces);
}

/* A call of `number`, in the trace of that byte. */
static struct tr_span_id span_id(uint8_t trace, uint8_t number) {
        struct tr_span_id id = { .flags = 1, .depth = 1 };
        memset(id.trace, trace, sizeof(id.trace));
        memset(id.span, number, sizeof(id.span));
        return id;
}

static struct tr_span_record put(struct tr_traces *into, struct tr_span_id id, uint32_t uid, uint64_t came_ns) {
        const struct tr_span_news news = {
                .span = &id,
                .component = "media.streams",
                .operation = "create",
                .instance = "left",
                .uid = uid,
                .pid = 77,
                .attempt = 1,
                .came_ns = came_ns,
                .queued_ns = 12 * TR_NS_PER_US,
                .run_ns = 1204 * TR_NS_PER_US + 999,
        };
        struct tr_span_record record;
        tr_traces_put(into, &news, &record);
        return record;
}

START_TEST(the_last_ones_are_kept) {
        static struct tr_span_record records[8];
        uint64_t now_ns = tr_clock_ns();

        begin();
        ck_assert_uint_eq(tr_traces_last(traces), 0);
        ck_assert_uint_eq(tr_traces_read(traces, 1, records, 8), 0);
        for (int i = 1; i <= TR_TRACES_KEPT + 5; i++)
                ck_assert_uint_eq(put(traces, span_id(1, (uint8_t)i), 7, now_ns).number, (uint64_t)i);
        ck_assert_uint_eq(tr_traces_last(traces), TR_TRACES_KEPT + 5);
        ck_assert_uint_eq(tr_traces_read(traces, 1, records, 8), 8);
        for (size_t i = 0; i < 8; i++) {
                ck_assert_uint_eq(records[i].number, 6 + i);
                ck_assert_uint_eq(records[i].span[0], (uint8_t)records[i].number);
        }
        ck_assert_uint_eq(tr_traces_read(traces, TR_TRACES_KEPT + 4, records, 8), 2);
        ck_assert_uint_eq(records[1].number, TR_TRACES_KEPT + 5);
        ck_assert_uint_eq(tr_traces_read(traces, TR_TRACES_KEPT + 6, records, 8), 0);
        end();
}
END_TEST

START_TEST(texts_are_cut_between_characters) {
        char longest[TR_NAME_MAX + 10], message[400];
        struct tr_span_id id = span_id(1, 1);
        struct tr_span_news news = { .span = &id, .component = longest, .operation = "op", .failed = true, .message = message };
        struct tr_span_record record;

        memset(longest, 'n', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        memset(message, 'm', sizeof(message));
        memcpy(message + TR_SPAN_MESSAGE_MAX - 1, "\xc3\xa9", 3); /* the second byte has no room */
        begin();
        tr_traces_put(traces, &news, &record);
        ck_assert_uint_eq(strlen(record.component), TR_NAME_MAX);
        ck_assert_str_eq(record.operation, "op");
        ck_assert_str_eq(record.instance, "");
        ck_assert_uint_eq(strlen(record.message), TR_SPAN_MESSAGE_MAX - 1);
        message[TR_SPAN_MESSAGE_MAX] = '\0';
        message[TR_SPAN_MESSAGE_MAX - 1] = 'm';
        tr_traces_put(traces, &news, &record);
        ck_assert_str_eq(record.message, message);
        end();
}
END_TEST

static void assert_found(struct tr_traces_wanted wanted, const char *spans) {
        struct tr_span_record *records;
        char text[64] = "";
        size_t count;

        ck_assert_int_eq(tr_traces_find(traces, &wanted, &records, &count), 0);
        for (size_t i = 0; i < count; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%x", records[i].span[0]);
        ck_assert_str_eq(text, spans);
        free(records);
}

START_TEST(they_are_found_in_the_order_in_which_they_began) {
        static const uint8_t one[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, other[16] = { 1 };
        uint64_t now_ns = tr_clock_ns();
        struct tr_span_id deep = span_id(1, 4);

        begin();
        assert_found((struct tr_traces_wanted){ .everybodys = true }, "");
        deep.depth = 2;
        put(traces, deep, 8, now_ns);
        put(traces, span_id(1, 3), 7, now_ns);
        put(traces, span_id(2, 2), 7, now_ns - 5);
        put(traces, span_id(1, 1), 7, now_ns - TR_NS_PER_S);
        put(traces, span_id(1, 5), 7, now_ns);
        assert_found((struct tr_traces_wanted){ .everybodys = true }, "12354");
        assert_found((struct tr_traces_wanted){ .everybodys = true, .limit = 3 }, "125");
        assert_found((struct tr_traces_wanted){ .everybodys = true, .limit = 5 }, "12354");
        assert_found((struct tr_traces_wanted){ .everybodys = true, .trace = one }, "1354");
        assert_found((struct tr_traces_wanted){ .everybodys = true, .trace = other }, "");
        assert_found((struct tr_traces_wanted){ .uid = 7 }, "1235");
        assert_found((struct tr_traces_wanted){ .uid = 8 }, "4");
        assert_found((struct tr_traces_wanted){ .uid = 9 }, "");
        assert_found((struct tr_traces_wanted){ .uid = 7, .trace = one, .limit = 2 }, "15");
        end();
}
END_TEST

START_TEST(when_a_call_came_is_a_time_of_day) {
        uint64_t now_ns = tr_clock_ns();
        struct timespec before, after;
        struct tr_span_record first, second;

        begin();
        clock_gettime(CLOCK_REALTIME, &before);
        first = put(traces, span_id(1, 1), 7, tr_clock_ns());
        clock_gettime(CLOCK_REALTIME, &after);
        /* right to a millisecond, however long the calls took */
        ck_assert_int_ge(first.began_ns, before.tv_sec * (int64_t)TR_NS_PER_S + before.tv_nsec - (int64_t)TR_NS_PER_MS);
        ck_assert_int_le(first.began_ns, after.tv_sec * (int64_t)TR_NS_PER_S + after.tv_nsec + (int64_t)TR_NS_PER_MS);
        /* and to each other spans are as they were, to the nanosecond, unless the clock was set meanwhile */
        for (int tries = 0;; tries++) {
                first = put(traces, span_id(1, 1), 7, now_ns);
                second = put(traces, span_id(1, 2), 7, now_ns + 1);
                if (second.began_ns == first.began_ns + 1)
                        break;
                ck_assert_int_lt(tries, 100);
        }
        end();
}
END_TEST

START_TEST(want_of_memory_finds_nothing) {
        long after = 0;
        uint64_t now_ns = tr_clock_ns();
        int r;

        tr_log_set_level(TR_LOG_ERROR);
        do {
                traces = NULL;
                failing_arm(++after);
                r = tr_traces_new(&traces);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
        } while (failing_hit());
        for (int i = 0; i < 100; i++)
                put(traces, span_id(1, (uint8_t)i), 7, now_ns);
        after = 0;
        do {
                const struct tr_traces_wanted wanted = { .everybodys = true };
                struct tr_span_record *records = NULL;
                size_t count = 0;
                failing_arm(++after);
                r = tr_traces_find(traces, &wanted, &records, &count);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert_uint_eq(count, r == 0 ? 100 : 0);
                free(records);
        } while (failing_hit());
        ck_assert_int_gt(after, 3);
        end();
}
END_TEST

/* As answers and events */

static struct io_fixture fixture;
static struct io_client client;

/* What differs from run to run is an `x`. */
static const char *hear_without_time(void) {
        char *text = (char *)io_client_hear(&client), *at = text;
        while ((at = strstr(at, "'began':'"))) {
                at += strlen("'began':'");
                size_t len = strcspn(at, "'");
                ck_assert_uint_ge(len, strlen("2026-01-01T00:00:00Z"));
                *at = 'x';
                memmove(at + 1, at + len, strlen(at + len) + 1);
        }
        return text;
}

START_TEST(a_span_is_a_map) {
        struct tr_span_id id = span_id(0xab, 0x0c);
        struct tr_span_news news = { .span = &id, .component = "c", .operation = "o", .uid = 7, .failed = true, .code = TR_CODE_ADDRESSEE, .message = "nobody" };
        struct tr_span_record record;

        io_begin(&fixture, &client, NULL);
        io_client_say(&client, "[0,1,'trace',[]]");
        io_client_expect(&client, "[1,1,nil,[]]");
        memset(id.parent, 0xd0, sizeof(id.parent));
        tr_traces_put(fixture.traces, &news, &record);
        io_client_say(&client, "[0,2,'trace',[]]");
        ck_assert_str_eq(hear_without_time(), "[1,2,nil,[{'trace':'abababababababababababababababab','span':'0c0c0c0c0c0c0c0c',"
                                              "'parent':'d0d0d0d0d0d0d0d0','component':'c','operation':'o','caller':{'uid':7},"
                                              "'began':'x','queued':0.000000,'run':0.000000,'outcome':'addressee','message':'nobody','attempt':0}]]");
        put(fixture.traces, span_id(0xac, 0x01), 7, tr_clock_ns());
        io_client_say(&client, "[0,3,'trace',[{'id':'acacacacacacacacacacacacacacacac','limit':1}]]");
        ck_assert_str_eq(hear_without_time(), "[1,3,nil,[{'trace':'acacacacacacacacacacacacacacacac','span':'0101010101010101',"
                                              "'component':'media.streams','operation':'create','instance':'left','caller':{'uid':7,'pid':77},"
                                              "'began':'x','queued':0.012000,'run':1.204000,'outcome':'ok','attempt':1}]]");
        io_client_say(&client, "[0,4,'trace',[{'id':'00-acacacacacacacacacacacacacacacac-0102030405060708-01'}]]");
        ck_assert_ptr_nonnull(strstr(hear_without_time(), "'span':'0101010101010101'"));
        io_end(&fixture, &client);
}
END_TEST

static void leave_the_role_call(struct io_fixture *own, void *userdata) {
        struct tr_connection *connection = tr_list_first(&own->server->connections, struct tr_connection, link);
        ck_assert_ptr_nonnull(connection);
        if (connection) {
                connection->roles = TR_ROLE_CALL;
                connection->peer.uid = 1000;
        }
}

START_TEST(with_the_role_call_one_sees_ones_own) {
        io_begin(&fixture, &client, NULL);
        put(fixture.traces, span_id(1, 1), 1000, tr_clock_ns());
        put(fixture.traces, span_id(1, 2), 1001, tr_clock_ns());
        io_client_say(&client, "[0,1,'trace',[]]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "'span':'0202020202020202'"));
        io_fixture_run(&fixture, leave_the_role_call, NULL);
        io_client_say(&client, "[0,2,'trace',[]]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "'span':'0101010101010101'"));
        ck_assert_ptr_null(strstr(client.text, "'span':'0202020202020202'"));
        io_end(&fixture, &client);
}
END_TEST

START_TEST(what_is_no_id_is_refused) {
        static const char *const wrong[] = {
                "ac", "acacacacacacacacacacacacacacaca", "acacacacacacacacacacacacacacacacac", "acacacacacacacacacacacacacacacag",
                "ACACACACACACACACACACACACACACACAC", "01-acacacacacacacacacacacacacacacac-01",
        };

        io_begin(&fixture, &client, NULL);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                io_client_say(&client, "[0,1,'trace',[{'id':'%s'}]]", wrong[i]);
                io_client_expect(&client, "[1,1,[1,'bad-request: trace: the option id has to be 32 lower-case hexadecimal digits (ran: no)'],nil]");
        }
        io_client_say(&client, "[0,1,'trace',[{'limit':0}]]");
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "bad-request"));
        io_end(&fixture, &client);
}
END_TEST

START_TEST(who_subscribed_is_told_of_each) {
        struct tr_span_id id = span_id(1, 1);
        const struct tr_span_news news = { .span = &id, .component = "c", .operation = "o", .uid = 1000, .attempt = 1 };
        const struct tr_span_news others = { .span = &id, .component = "others", .operation = "o", .uid = 1001, .attempt = 1 };

        io_begin(&fixture, &client, NULL);
        tr_watch_span(fixture.feed, fixture.traces, &others);
        io_client_say(&client, "[0,1,'subscribe',['trace']]");
        io_client_expect(&client, "[1,1,nil,nil]");
        io_fixture_run(&fixture, leave_the_role_call, NULL);
        tr_watch_span(fixture.feed, fixture.traces, &others);
        tr_watch_span(fixture.feed, fixture.traces, &news);
        ck_assert_ptr_nonnull(strstr(io_client_hear(&client), "[2,'event',['trace',{'time':'"));
        ck_assert_ptr_nonnull(strstr(client.text, "'trace':'01010101010101010101010101010101'"));
        ck_assert_ptr_nonnull(strstr(client.text, "'component':'c'"));
        ck_assert_uint_eq(tr_traces_last(fixture.traces), 3);
        io_end(&fixture, &client);
}
END_TEST

suite_main("traces", the_last_ones_are_kept, texts_are_cut_between_characters, they_are_found_in_the_order_in_which_they_began,
           when_a_call_came_is_a_time_of_day, want_of_memory_finds_nothing, a_span_is_a_map, with_the_role_call_one_sees_ones_own,
           what_is_no_id_is_refused, who_subscribed_is_told_of_each);
