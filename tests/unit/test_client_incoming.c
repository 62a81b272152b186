/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from the daemon without being an answer: events. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/troupe.h"
#include "tests/unit/peer.h"
#include "tests/unit/suite.h"

/* All that callbacks were told, in order. */
static char told[4096];

/* Userdata: what an answer is called, and what an event's is to be. */
static char events[] = "events", answer[] = "answer", subscribed[] = "subscribed", unsubscribed[] = "unsubscribed";

static void tell(const char *what, const struct troupe_value *value) {
        char *json;

        ck_assert_int_eq(troupe_value_json(value, &json, NULL), 0);
        snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s %s; ", what, json);
        free(json);
}

static void on_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        ck_assert_ptr_eq(userdata, events);
        tell(topic, event);
}

static void on_other_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        tell("other", event);
}

static void on_answer(struct troupe *troupe, int result, const struct troupe_value *value, void *userdata) {
        if (!result)
                tell(userdata, value);
        else
                snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s %s; ", (const char *)userdata,
                         result == -EREMOTEIO ? troupe_error(troupe)->code : strerror(-result));
}

static struct peer peer;
static struct troupe *t;

static void begin(void) {
        told[0] = '\0';
        peer_init(&peer, 8);
        t = peer_connect(&peer, 0, "{}");
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
}

static void end(void) {
        troupe_free(t);
        peer_deinit(&peer);
}

static void must_hear(const char *expected) {
        char *heard;

        ck_assert_int_eq(troupe_process(t, 0), 0);
        heard = peer_heard(&peer);
        ck_assert_str_eq(heard, expected);
        free(heard);
}

/* Processes what has come, and holds what callbacks were told since the last time. */
static void must_tell(const char *expected) {
        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
        ck_assert_str_eq(told, expected);
        told[0] = '\0';
}

static void subscribe(const char *topic) {
        ck_assert_int_eq(troupe_subscribe_async(t, topic, NULL, on_event, events, on_answer, subscribed, NULL), 0);
}

START_TEST(events_come_with_their_topic_once_subscribed) {
        begin();
        subscribe("lifecycle");
        must_hear("[0,1,\"subscribe\",[\"lifecycle\"]]\n");
        peer_notify(&peer, "event", "[\"lifecycle\", {\"event\":\"early\"}]");
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[\"lifecycle\", {\"event\":\"started\"}]");
        peer_notify(&peer, "event", "[\"log\", {\"event\":\"of another topic\"}]");
        peer_notify(&peer, "happening", "[\"lifecycle\", {}]");
        peer_notify(&peer, "event", "[\"lifecycle\", {\"event\":\"stopped\"}]");
        must_tell("subscribed null; lifecycle {\"event\":\"started\"}; lifecycle {\"event\":\"stopped\"}; ");
        end();
}
END_TEST

START_TEST(events_that_make_no_sense_are_passed_over) {
        begin();
        subscribe("log");
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[]");
        peer_notify(&peer, "event", "[\"log\"]");
        peer_notify(&peer, "event", "[\"log\", 1, 2]");
        peer_notify(&peer, "event", "[17, {}]");
        peer_notify(&peer, "event", "[\"log\\u0000\", {}]");
        peer_notify(&peer, "event", "{\"log\": {}}");
        peer_notify(&peer, "event", "[\"log\", {\"level\":\"info\"}]");
        must_tell("subscribed null; log {\"level\":\"info\"}; ");
        end();
}
END_TEST

START_TEST(a_subscription_that_is_refused_brings_no_events) {
        begin();
        subscribe("trace");
        peer_answer(&peer, 1, "{\"code\":\"denied\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_notify(&peer, "event", "[\"trace\", {}]");
        must_tell("subscribed denied; ");
        end();
}
END_TEST

START_TEST(a_subscription_has_options) {
        struct troupe_subscribe_options options = { .size = sizeof(options), .rate = 10 };

        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", &options, on_event, events), 0);
        must_hear("[0,1,\"subscribe\",[\"log\",{\"rate\":10}]]\n");
        options.rate = UINT64_MAX;
        ck_assert_int_eq(troupe_subscribe(t, "log", &options, on_event, events), -EINVAL);
        options.size = 1;
        ck_assert_int_eq(troupe_subscribe(t, "log", &options, on_event, events), -EINVAL);
        ck_assert_int_eq(troupe_subscribe(t, NULL, NULL, on_event, events), -EINVAL);
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_unsubscribe(t, NULL), -EINVAL);
        must_hear("");
        peer_notify(&peer, "event", "[\"log\", {}]");
        must_tell("log {}; ");
        end();
}
END_TEST

START_TEST(a_second_subscription_replaces_the_first_once_it_is_agreed_on) {
        begin();
        subscribe("log");
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe_async(t, "log", NULL, on_other_event, NULL, NULL, NULL, NULL), 0);
        ck_assert_int_eq(troupe_subscribe_async(t, "log", NULL, on_event, events, NULL, NULL, NULL), 0);
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 2, "null", "null");
        peer_answer(&peer, 3, "{\"code\":\"limit\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_notify(&peer, "event", "[\"log\", 2]");
        must_tell("subscribed null; log 1; other 2; ");
        end();
}
END_TEST

START_TEST(no_event_comes_after_the_end_of_a_subscription) {
        begin();
        subscribe("log");
        subscribe("refused");
        peer_answer(&peer, 1, "null", "null");
        peer_answer(&peer, 2, "null", "null");
        must_tell("subscribed null; subscribed null; ");
        ck_assert_int_eq(troupe_unsubscribe_async(t, "log", on_answer, unsubscribed, NULL), 0);
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 3, "null", "null");
        peer_notify(&peer, "event", "[\"log\", 2]");
        peer_notify(&peer, "event", "[\"refused\", 3]");
        must_tell("log 1; unsubscribed null; refused 3; ");

        /* one that came while the call waited for that is not told either */
        peer_notify(&peer, "event", "[\"refused\", 4]");
        peer_answer(&peer, 4, "null", "null");
        ck_assert_int_eq(troupe_unsubscribe(t, "refused"), 0);
        must_tell("");
        end();
}
END_TEST

START_TEST(events_that_come_while_a_call_waits_come_later_in_order) {
        begin();
        subscribe("log");
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, answer, NULL, NULL), 0);
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 2, "null", "2");
        peer_notify(&peer, "event", "[\"log\", 3]");
        peer_answer(&peer, 3, "null", "null");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_str_eq(told, "");
        ck_assert_int_eq(troupe_timeout_ms(t), 0);
        must_tell("subscribed null; log 1; answer 2; log 3; ");
        ck_assert_int_eq(troupe_timeout_ms(t), -1);
        end();
}
END_TEST

static int counted;

static void count_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        counted++;
}

START_TEST(a_call_that_waits_does_not_fill_the_memory) {
        static char text[100000];
        struct troupe_value frame;
        int status;
        pid_t pid;

        begin();
        memset(text, 'x', sizeof(text));
        ck_assert_int_eq(troupe_pack(&frame, "[is[sS]]", 2, "event", "log", text, sizeof(text)), 0);
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, count_event, NULL), 0);
        pid = fork();
        if (!pid) {
                for (int i = 0; i < 300; i++)
                        peer_write(&peer, frame.data, frame.size);
                peer_answer(&peer, 2, "null", "null");
                peer_answer(&peer, 4, "null", "4");
                _exit(0);
        }
        ck_assert_int_eq(troupe_request(t, "done", NULL, NULL), -EOVERFLOW);
        ck_assert_int_eq(troupe_request(t, "done", NULL, NULL), -EOVERFLOW);
        ck_assert_int_eq(counted, 0);
        while (counted < 300)
                ck_assert_int_ge(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        peer_answer(&peer, 3, "null", "3");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_int_eq(counted, 300);
        troupe_value_free(&frame);
        end();
}
END_TEST

static void free_in_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        on_event(troupe, topic, event, events);
        troupe_free(troupe);
}

START_TEST(an_event_may_free_the_connection) {
        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, free_in_event, NULL), 0);
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, answer, NULL, NULL), 0);
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_notify(&peer, "event", "[\"log\", 2]");
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "log 1; answer disconnected; ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(an_event_that_was_kept_may_free_the_connection) {
        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, free_in_event, NULL), 0);
        ck_assert_int_eq(troupe_request_async(t, "ask", on_answer, answer, NULL, NULL), 0);
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 2, "null", "2");
        peer_notify(&peer, "event", "[\"log\", 3]");
        peer_answer(&peer, 3, "null", "null");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "log 1; answer 2; ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(what_was_kept_is_freed_with_the_connection) {
        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_subscribe(t, "log", NULL, on_event, events), 0);
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 2, "null", "null");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        end();
        ck_assert_str_eq(told, "");
}
END_TEST

suite_main("client_incoming", events_come_with_their_topic_once_subscribed, events_that_make_no_sense_are_passed_over,
           a_subscription_that_is_refused_brings_no_events, a_subscription_has_options,
           a_second_subscription_replaces_the_first_once_it_is_agreed_on,
           no_event_comes_after_the_end_of_a_subscription, events_that_come_while_a_call_waits_come_later_in_order,
           a_call_that_waits_does_not_fill_the_memory, an_event_may_free_the_connection,
           an_event_that_was_kept_may_free_the_connection, what_was_kept_is_freed_with_the_connection);
