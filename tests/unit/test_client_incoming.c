/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from the daemon without being an answer: events, messages, and calls of what is served. */
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
        must_tell("subscribed null; lifecycle {\"event\":\"early\"}; lifecycle {\"event\":\"started\"}; "
                  "lifecycle {\"event\":\"stopped\"}; ");
        end();
}
END_TEST

START_TEST(events_that_come_before_the_answer_are_told_after_it) {
        begin();
        subscribe("log");
        subscribe("refused");
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_notify(&peer, "event", "[\"refused\", 2]");
        peer_notify(&peer, "event", "[\"log\", 3]");
        must_tell("");
        peer_answer(&peer, 2, "null", "null");
        peer_notify(&peer, "event", "[\"refused\", 4]");
        must_tell("subscribed null; refused 2; refused 4; ");
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[\"log\", 5]");
        must_tell("subscribed null; log 1; log 3; log 5; ");

        /* of one that is replaced they are the earlier's; of one that ended, the later's */
        ck_assert_int_eq(troupe_unsubscribe_async(t, "log", NULL, NULL, NULL), 0);
        ck_assert_int_eq(troupe_subscribe_async(t, "log", NULL, on_other_event, NULL, NULL, NULL, NULL), 0);
        peer_notify(&peer, "event", "[\"log\", 6]");
        peer_answer(&peer, 3, "null", "null");
        peer_notify(&peer, "event", "[\"log\", 7]");
        must_tell("log 6; ");
        peer_answer(&peer, 4, "null", "null");
        must_tell("other 7; ");
        end();
}
END_TEST

START_TEST(events_before_an_answer_that_comes_while_a_call_waits_are_told_after_it) {
        begin();
        subscribe("log");
        peer_notify(&peer, "event", "[\"log\", 1]");
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[\"log\", 2]");
        peer_answer(&peer, 2, "null", "null");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_str_eq(told, "");
        must_tell("subscribed null; log 1; log 2; ");
        end();
}
END_TEST

START_TEST(events_before_an_answer_that_never_comes_are_dropped) {
        begin();
        subscribe("log");
        peer_notify(&peer, "event", "[\"log\", 1]");
        must_tell("");
        peer_close(&peer);
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "subscribed disconnected; ");
        end();
}
END_TEST

START_TEST(events_that_make_no_sense_are_passed_over) {
        begin();
        subscribe("log");
        peer_answer(&peer, 1, "null", "null");
        peer_notify(&peer, "event", "[]");
        peer_notify(&peer, "event", "[\"log\"]");
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

START_TEST(what_comes_before_an_answer_does_not_fill_the_memory) {
        static char text[1000000];
        struct troupe_value frame;
        int status;
        pid_t pid;

        begin();
        memset(text, 'x', sizeof(text));
        counted = 0;
        ck_assert_int_eq(troupe_pack(&frame, "[is[sS]]", 2, "event", "log", text, sizeof(text)), 0);
        ck_assert_int_eq(troupe_subscribe_async(t, "log", NULL, count_event, NULL, on_answer, subscribed, NULL), 0);
        pid = fork();
        if (!pid) {
                for (int i = 0; i < 30; i++)
                        peer_write(&peer, frame.data, frame.size);
                peer_answer(&peer, 1, "null", "null");
                _exit(0);
        }
        while (!*told)
                ck_assert_int_ge(troupe_process(t, POLLIN), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(counted, 17); /* 16 MiB, and the one that reached that */
        troupe_value_free(&frame);
        end();
}
END_TEST

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

#define HANDLE "actor:00112233445566778899aabbccddeeff"

/* What was asked and is not answered yet, in order. */
static struct troupe_asked *asks[16];
static int asked;

static void on_message(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                       struct troupe_asked *ask, void *userdata) {
        char text[80];

        snprintf(text, sizeof(text), "%s%s%s", (const char *)userdata, ask ? "?" : "!", handler);
        tell(text, args);
        if (ask)
                asks[asked++] = ask;
}

static char one[] = "", two[] = "two:";

/* The library's next request is answered with a handle. */
static void listen_as(char *name, uint32_t id) {
        char handle[TROUPE_HANDLE_SIZE];

        peer_answer(&peer, id, "null", "{\"$handle\":\"" HANDLE "\"}");
        ck_assert_int_eq(troupe_listen(t, on_message, name, handle), 0);
        ck_assert_str_eq(handle, HANDLE);
}

static void begin_listening(void) {
        begin();
        asked = 0;
        listen_as(one, 1);
        must_hear("[0,1,\"listen\",[]]\n");
}

START_TEST(what_actors_send_and_ask_comes_with_its_arguments) {
        begin_listening();
        peer_notify(&peer, "message", "[\"tick\"]");
        peer_notify(&peer, "message", "[\"tock\", 1, {\"two\":2}]");
        peer_request(&peer, 0, "message", "[\"add\", 1, 2]");
        peer_request(&peer, 4294967295, "message", "[\"\"]");
        must_tell("!tick []; !tock [1,{\"two\":2}]; ?add [1,2]; ? []; ");
        ck_assert_int_eq(asked, 2);
        ck_assert_int_eq(troupe_reply(asks[0], "i", 3), 0);
        ck_assert_int_eq(troupe_reply(asks[1], NULL), 0);
        must_hear("[1,0,null,3]\n[1,4294967295,null,null]\n");
        end();
}
END_TEST

static size_t whole;

static void count_whole(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                        struct troupe_asked *ask, void *userdata) {
        const size_t *expected = userdata; /* the length of the name, and how many arguments */
        struct troupe_value last;
        int64_t number;
        size_t count;

        ck_assert_uint_eq(strlen(handler), expected[0]);
        ck_assert_uint_eq(strspn(handler, "n"), expected[0]);
        ck_assert_int_eq(troupe_value_count(args, &count), 0);
        ck_assert_uint_eq(count, expected[1]);
        ck_assert_int_eq(troupe_value_at(args, count - 1, &last), 0);
        ck_assert_int_eq(troupe_value_int(&last, &number), 0);
        ck_assert_int_eq(number, 7);
        whole++;
}

/* A notification `message` with so long a handler and so many arguments, in as few bytes as can be. */
static void write_message(size_t length, size_t count) {
        static uint8_t bytes[300000];
        uint8_t *at = bytes;

        *at++ = 0x93;
        *at++ = 2;
        at = (uint8_t *)stpcpy((char *)at, "\xa7message");
        if (count + 1 < 16) {
                *at++ = 0x90 | (count + 1);
        } else if (count + 1 < 65536) {
                *at++ = 0xdc;
                *at++ = (count + 1) >> 8;
                *at++ = count + 1;
        } else {
                *at++ = 0xdd;
                *at++ = 0;
                *at++ = (count + 1) >> 16;
                *at++ = (count + 1) >> 8;
                *at++ = count + 1;
        }
        if (length < 32) {
                *at++ = 0xa0 | length;
        } else {
                *at++ = 0xda;
                *at++ = length >> 8;
                *at++ = length;
        }
        memset(at, 'n', length);
        memset(at + length, 7, count);
        for (size_t sent = 0, size = at + length + count - bytes; sent < size; sent += 10000) {
                peer_write(&peer, bytes + sent, size - sent < 10000 ? size - sent : 10000);
                ck_assert_int_ge(troupe_process(t, POLLIN), 0);
        }
}

START_TEST(arguments_of_any_number_come_whole) {
        static const size_t counts[] = { 14, 15, 16, 17, 65534, 65535, 65536 };
        static const size_t lengths[] = { 0, 1, 31, 32, 60000 };
        size_t expected[2];

        begin();
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_listen(t, count_whole, expected, NULL), 0);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
                        expected[0] = lengths[k];
                        expected[1] = counts[i];
                        write_message(lengths[k], counts[i]);
                }
        ck_assert_uint_eq(whole, 7 * 5);
        end();
}
END_TEST

START_TEST(an_ask_is_answered_after_its_callback_or_refused) {
        begin_listening();
        for (uint32_t id = 1; id <= 3; id++)
                peer_request(&peer, id, "message", "[\"work\"]");
        must_tell("?work []; ?work []; ?work []; ");
        ck_assert_int_eq(troupe_refuse(asks[2], "I would rather not", NULL), 0);
        /* what makes no sense is not sent, and leaves it to be answered */
        ck_assert_int_eq(troupe_reply(asks[0], "ii", 1, 2), -EINVAL);
        ck_assert_int_eq(troupe_reply(asks[0], "q"), -EINVAL);
        ck_assert_int_eq(troupe_refuse(asks[0], NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_refuse(asks[0], "BUSY", "[ii", 1, 2), -EINVAL);
        ck_assert_int_eq(troupe_reply(NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_refuse(NULL, "no", NULL), -EINVAL);
        ck_assert_int_eq(troupe_events(t), POLLIN | POLLOUT);
        ck_assert_int_eq(troupe_refuse(asks[0], "BUSY", "{si}", "until", 5), 0);
        ck_assert_int_eq(troupe_reply(asks[1], "*j", "[[1]]"), 0);
        must_hear("[1,3,\"I would rather not\",null]\n[1,1,[\"BUSY\",{\"until\":5}],null]\n[1,2,null,[1]]\n");
        end();
}
END_TEST

START_TEST(messages_that_make_no_sense_are_answered_so) {
        begin_listening();
        peer_request(&peer, 1, "message", "[]");
        peer_request(&peer, 2, "message", "{}");
        peer_request(&peer, 3, "message", "[17]");
        peer_request(&peer, 4, "massage", "[\"x\"]");
        peer_request(&peer, 5, "event", "[\"x\", {}]");
        peer_request(&peer, 6, "call", "[\"x\", 1, {\"component\":\"c\"}]");
        peer_notify(&peer, "message", "[]");
        peer_notify(&peer, "call", "[\"x\", 1, {\"component\":\"c\"}]");
        must_tell("");
        must_hear("[1,1,\"bad-request\",null]\n[1,2,\"bad-request\",null]\n[1,3,\"bad-request\",null]\n"
                  "[1,4,\"unknown-method\",null]\n[1,5,\"unknown-method\",null]\n[1,6,\"unknown-method\",null]\n");
        end();
}
END_TEST

START_TEST(an_ask_that_cannot_be_taken_is_answered_so) {
        static const char unknown_type[] = "\x94\x00\x05\xa7message\x92\xa1x\xd4\x05\x00";
        static const char too_large[] = "\x94\x00\x06\xa7message\x92\xa1x\xc6\x7f\xff\xff\xff";

        begin_listening();
        peer_write(&peer, unknown_type, sizeof(unknown_type) - 1);
        peer_request(&peer, 1, "message", "[\"tick\"]");
        peer_write(&peer, too_large, sizeof(too_large) - 1);
        must_tell("?tick []; ");
        must_hear("[1,5,\"not-sendable\",null]\n[1,6,\"too-large\",null]\n");
        end();
}
END_TEST

START_TEST(nobody_listens_before_the_daemon_has_agreed) {
        begin();
        ck_assert_int_eq(troupe_listen(t, NULL, NULL, NULL), -EINVAL);
        ck_assert_int_eq(troupe_listen_async(t, on_message, one, on_answer, answer, NULL), 0);
        peer_request(&peer, 1, "message", "[\"early\"]");
        peer_answer(&peer, 2, "{\"code\":\"denied\",\"message\":\"no\",\"ran\":\"no\"}", "null");
        peer_request(&peer, 2, "message", "[\"late\"]");
        must_tell("answer denied; ");
        must_hear("[0,2,\"listen\",[]]\n[1,1,\"unknown-method\",null]\n[1,2,\"unknown-method\",null]\n");
        end();
}
END_TEST

START_TEST(what_is_asked_before_the_answer_to_listen_comes_after_it) {
        begin();
        asked = 0;
        ck_assert_int_eq(troupe_listen_async(t, on_message, one, on_answer, answer, NULL), 0);
        peer_request(&peer, 1, "message", "[\"early\", 1]");
        peer_notify(&peer, "message", "[\"early\", 2]");
        must_tell("");
        peer_answer(&peer, 1, "null", "{\"$handle\":\"" HANDLE "\"}");
        peer_request(&peer, 2, "message", "[\"late\"]");
        must_tell("answer {\"$handle\":\"" HANDLE "\"}; ?early [1]; !early [2]; ?late []; ");
        end();
}
END_TEST

START_TEST(listening_again_replaces_the_callback) {
        begin_listening();
        listen_as(two, 2);
        peer_notify(&peer, "message", "[\"tick\"]");
        must_tell("two:!tick []; ");
        end();
}
END_TEST

START_TEST(an_ask_that_comes_while_a_call_waits_is_kept) {
        begin_listening();
        peer_notify(&peer, "message", "[\"first\", 1]");
        peer_request(&peer, 1, "message", "[\"second\", 2]");
        peer_answer(&peer, 2, "null", "null");
        ck_assert_int_eq(troupe_request(t, "ping", NULL, NULL), 0);
        ck_assert_int_eq(asked, 0);
        must_tell("!first [1]; ?second [2]; ");
        ck_assert_int_eq(troupe_reply(asks[0], "s", "done"), 0);
        must_hear("[0,2,\"ping\",[]]\n[1,1,null,\"done\"]\n");
        end();
}
END_TEST

START_TEST(what_is_not_answered_at_the_end_is_dropped) {
        begin_listening();
        for (uint32_t id = 1; id <= 3; id++)
                peer_request(&peer, id, "message", "[\"work\"]");
        must_tell("?work []; ?work []; ?work []; ");
        ck_assert_int_eq(troupe_reply(asks[0], NULL), 0);
        peer_close(&peer);
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_int_eq(troupe_reply(asks[1], "i", 1), -ENOTCONN);
        end(); /* which frees the last */
}
END_TEST

static void reply_and_free(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                           struct troupe_asked *ask, void *userdata) {
        on_message(troupe, handler, args, ask, userdata);
        ck_assert_int_eq(troupe_reply(ask, "v", args), 0);
        ck_assert_int_eq(troupe_listen_async(troupe, on_message, userdata, NULL, NULL, NULL), 0);
        ck_assert_int_eq(troupe_request(troupe, "ping", NULL, NULL), -EDEADLK);
        troupe_free(troupe);
}

START_TEST(a_message_may_free_the_connection) {
        begin();
        asked = 0;
        peer_answer(&peer, 1, "null", "null");
        ck_assert_int_eq(troupe_listen(t, reply_and_free, one, NULL), 0);
        peer_request(&peer, 1, "message", "[\"work\", 1]");
        peer_request(&peer, 2, "message", "[\"work\", 2]");
        ck_assert_int_eq(troupe_process(t, POLLIN), -ENOTCONN);
        ck_assert_str_eq(told, "?work [1]; ");
        peer_deinit(&peer);
}
END_TEST

START_TEST(a_child_answers_nothing) {
        int status;
        pid_t pid;

        begin_listening();
        peer_request(&peer, 1, "message", "[\"work\"]");
        must_tell("?work []; ");
        pid = fork();
        if (!pid) {
                int r = troupe_reply(asks[0], NULL), s = troupe_refuse(asks[0], "no", NULL);

                troupe_free(t);
                _exit(r == -ECHILD && s == -ECHILD ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_eq(troupe_reply(asks[0], NULL), 0);
        must_hear("[1,1,null,null]\n");
        end();
}
END_TEST

static void on_operation(struct troupe *troupe, const char *operation, const struct troupe_value *input,
                         const struct troupe_value *context, struct troupe_asked *ask, void *userdata) {
        char text[80];

        snprintf(text, sizeof(text), "%s%s", (const char *)userdata, operation);
        tell(text, input);
        tell("in", context);
        asks[asked++] = ask;
}

static void on_cancelled(struct troupe *troupe, struct troupe_asked *ask, void *userdata) {
        snprintf(told + strlen(told), sizeof(told) - strlen(told), "%scancelled; ", (const char *)userdata);
        ck_assert_ptr_eq(ask, asks[0]);
}

static char thumbs[] = "thumbs:", clocks[] = "clocks:";

static void begin_serving(void) {
        static const char *const operations[] = { "make", "drop", NULL };
        struct troupe_serve_options options = { .size = sizeof(options),
                                                .instance = "left",
                                                .operations = operations,
                                                .concurrency = 4,
                                                .on_cancelled = on_cancelled };
        struct troupe_value served;

        begin();
        asked = 0;
        peer_answer(&peer, 1, "null", "{\"instance\":\"left\"}");
        ck_assert_int_eq(troupe_serve(t, "thumbs", &options, on_operation, thumbs, &served), 0);
        tell("served", &served);
        ck_assert_int_eq(troupe_serve_async(t, "clocks", NULL, on_operation, clocks, NULL, NULL, NULL), 0);
        peer_answer(&peer, 2, "null", "{\"instance\":\"r2\"}");
        must_tell("served {\"instance\":\"left\"}; ");
        must_hear("[0,1,\"serve\",[\"thumbs\",{\"instance\":\"left\",\"operations\":[\"make\",\"drop\"],"
                  "\"concurrency\":4}]]\n[0,2,\"serve\",[\"clocks\"]]\n");
}

START_TEST(calls_come_to_the_component_that_is_served) {
        begin_serving();
        peer_request(&peer, 1, "call", "[\"make\", {\"w\":1}, {\"component\":\"thumbs\", \"attempt\":1}]");
        peer_request(&peer, 2, "call", "[\"now\", null, {\"component\":\"clocks\"}]");
        peer_request(&peer, 3, "call", "[\"now\", null, {\"component\":\"clock\"}]");
        peer_request(&peer, 4, "call", "[\"now\", null]");
        peer_request(&peer, 5, "call", "[\"now\", null, 1]");
        peer_request(&peer, 6, "call", "[17, null, {\"component\":\"clocks\"}]");
        must_tell("thumbs:make {\"w\":1}; in {\"component\":\"thumbs\",\"attempt\":1}; clocks:now null; "
                  "in {\"component\":\"clocks\"}; ");
        ck_assert_int_eq(troupe_refuse(asks[0], "TOO_BIG", "{si}", "max", 9), 0);
        ck_assert_int_eq(troupe_reply(asks[1], "d", 0.5), 0);
        must_hear("[1,3,\"unknown-method\",null]\n[1,4,\"unknown-method\",null]\n[1,5,\"unknown-method\",null]\n"
                  "[1,6,\"bad-request\",null]\n[1,1,[\"TOO_BIG\",{\"max\":9}],null]\n[1,2,null,0.5]\n");
        end();
}
END_TEST

START_TEST(calls_that_come_before_the_answer_to_serve_come_after_it) {
        begin();
        asked = 0;
        ck_assert_int_eq(troupe_serve_async(t, "clocks", NULL, on_operation, clocks, on_answer, answer, NULL), 0);
        peer_request(&peer, 1, "call", "[\"now\", null, {\"component\":\"clocks\"}]");
        peer_request(&peer, 2, "call", "[\"now\", null, {\"component\":\"thumbs\"}]");
        must_tell("");
        peer_answer(&peer, 1, "null", "{\"instance\":\"r2\"}");
        must_tell("answer {\"instance\":\"r2\"}; clocks:now null; in {\"component\":\"clocks\"}; ");
        must_hear("[0,1,\"serve\",[\"clocks\"]]\n[1,2,\"unknown-method\",null]\n");
        end();
}
END_TEST

START_TEST(a_call_that_nobody_waits_for_is_told_and_still_answered) {
        begin_serving();
        peer_request(&peer, 7, "call", "[\"make\", 1, {\"component\":\"thumbs\"}]");
        peer_request(&peer, 8, "call", "[\"now\", 2, {\"component\":\"clocks\"}]");
        peer_notify(&peer, "cancel", "[7]");
        peer_notify(&peer, "cancel", "[8]"); /* whose service did not ask to be told */
        peer_notify(&peer, "cancel", "[9]");
        peer_notify(&peer, "cancel", "[-1]");
        peer_notify(&peer, "cancel", "[\"7\"]");
        peer_notify(&peer, "cancel", "[]");
        must_tell("thumbs:make 1; in {\"component\":\"thumbs\"}; clocks:now 2; in {\"component\":\"clocks\"}; "
                  "thumbs:cancelled; ");
        ck_assert_int_eq(troupe_reply(asks[0], "n"), 0);
        peer_notify(&peer, "cancel", "[7]");
        must_tell("");
        must_hear("[1,7,null,null]\n");
        end();
}
END_TEST

START_TEST(no_call_comes_after_a_withdrawal) {
        begin_serving();
        ck_assert_int_eq(troupe_withdraw_async(t, "thumbs", on_answer, answer, NULL), 0);
        ck_assert_int_eq(troupe_withdraw_async(t, NULL, on_answer, answer, NULL), -EINVAL);
        peer_request(&peer, 1, "call", "[\"make\", 1, {\"component\":\"thumbs\"}]");
        peer_answer(&peer, 3, "null", "null");
        peer_request(&peer, 2, "call", "[\"make\", 2, {\"component\":\"thumbs\"}]");
        must_tell("thumbs:make 1; in {\"component\":\"thumbs\"}; answer null; ");
        must_hear("[0,3,\"withdraw\",[\"thumbs\"]]\n[1,2,\"unknown-method\",null]\n");
        end();
}
END_TEST

suite_main("client_incoming", events_come_with_their_topic_once_subscribed,
           events_that_come_before_the_answer_are_told_after_it,
           events_before_an_answer_that_comes_while_a_call_waits_are_told_after_it,
           events_before_an_answer_that_never_comes_are_dropped, what_comes_before_an_answer_does_not_fill_the_memory,
           what_is_asked_before_the_answer_to_listen_comes_after_it, calls_that_come_before_the_answer_to_serve_come_after_it,
           events_that_make_no_sense_are_passed_over,
           a_subscription_that_is_refused_brings_no_events, a_subscription_has_options,
           a_second_subscription_replaces_the_first_once_it_is_agreed_on,
           no_event_comes_after_the_end_of_a_subscription, events_that_come_while_a_call_waits_come_later_in_order,
           a_call_that_waits_does_not_fill_the_memory, an_event_may_free_the_connection,
           an_event_that_was_kept_may_free_the_connection, what_was_kept_is_freed_with_the_connection,
           what_actors_send_and_ask_comes_with_its_arguments, arguments_of_any_number_come_whole,
           an_ask_is_answered_after_its_callback_or_refused, messages_that_make_no_sense_are_answered_so,
           an_ask_that_cannot_be_taken_is_answered_so, nobody_listens_before_the_daemon_has_agreed,
           listening_again_replaces_the_callback, an_ask_that_comes_while_a_call_waits_is_kept,
           what_is_not_answered_at_the_end_is_dropped, a_message_may_free_the_connection, a_child_answers_nothing,
           calls_come_to_the_component_that_is_served, a_call_that_nobody_waits_for_is_told_and_still_answered,
           no_call_comes_after_a_withdrawal);
