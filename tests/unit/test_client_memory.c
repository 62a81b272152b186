/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the library fails once: the call says -ENOMEM and sends nothing, or the request ends once, and
 * it goes on. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/troupe.h"
#include "tests/unit/failing.h"
#include "tests/unit/peer.h"
#include "tests/unit/suite.h"

START_TEST(connecting) {
        struct peer peer;
        struct troupe *t;
        long n = 0;
        int r;

        peer_init(&peer, 64);
        do {
                t = NULL;
                failing_arm(++n);
                r = troupe_connect(&t, peer.path, 0);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                ck_assert_int_eq(!t, failing_hit());
                troupe_free(t);
        } while (failing_hit());
        ck_assert_int_gt(n, 2);
        peer_deinit(&peer);
}
END_TEST

START_TEST(packing_and_printing) {
        struct troupe_value value;
        char *text;
        long n = 0;
        int r;

        do {
                failing_arm(++n);
                r = troupe_pack(&value, "{s:[dSy], s:j}", "key", 1.5, "text", (size_t)4, "\0\1\2", (size_t)3, "more",
                                "{\"$bin\":\"AAECAwQFBgcICQ==\"}");
                if (!r) {
                        r = troupe_value_json(&value, &text, NULL);
                        troupe_value_free(&value);
                        if (!r)
                                free(text);
                }
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
        } while (failing_hit());
        ck_assert_int_gt(n, 3);
}
END_TEST

START_TEST(a_call_that_waits) {
        struct troupe_value answer;
        struct peer peer;
        struct troupe *t;
        int64_t number;
        long n = 0;
        int r;

        peer_init(&peer, 64);
        do {
                t = peer_connect(&peer, 0, "{}");
                peer_answer(&peer, 1, "null", "42");
                failing_arm(++n);
                r = troupe_ask(t, "x", "y", NULL, &answer, "s", "text");
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                if (!r) {
                        ck_assert_int_eq(troupe_value_int(&answer, &number), 0);
                        ck_assert_int_eq(number, 42);
                }
                troupe_free(t);
                peer_close(&peer);
        } while (failing_hit());
        ck_assert_int_gt(n, 2);
        peer_deinit(&peer);
}
END_TEST

/* check allocates too, so nothing is asserted while allocations fail. */
struct count {
        int times;
        int wrong;
};

static void count(struct troupe *troupe, int result, const struct troupe_value *answer, void *userdata) {
        struct count *seen = userdata;

        seen->times++;
        seen->wrong += !(result == 0 || result == -ENOMEM || (result == -EREMOTEIO && troupe_error(troupe)));
}

START_TEST(callbacks_run_once_all_the_same) {
        struct peer peer;
        struct troupe *t;
        long n = 0;

        peer_init(&peer, 64);
        do {
                struct count seen = { 0 };
                int expected = 0;

                t = peer_connect(&peer, 0, "{}");
                peer_answer(&peer, 1, "{\"code\":\"fault\",\"message\":\"it broke\"}", "null");
                peer_answer(&peer, 2, "null", "2");
                peer_answer(&peer, 3, "null", "3");
                ck_assert_int_eq(shutdown(peer.fd, SHUT_WR), 0);
                failing_arm(++n);
                for (int i = 0; i < 40; i++)
                        expected += !troupe_ask_async(t, "x", "y", NULL, count, &seen, NULL, "s", "text");
                /* nobody answers this one; while it waits the others' answers are kept */
                (void)!troupe_request(t, "ping", NULL, NULL);
                while (troupe_process(t, POLLIN) == -ENOMEM)
                        ;
                failing_arm(0);
                ck_assert_int_ge(seen.times, failing_hit() ? 0 : 3);
                troupe_free(t);
                ck_assert_int_eq(seen.times, expected);
                ck_assert_int_eq(seen.wrong, 0);
                peer_close(&peer);
        } while (failing_hit());
        ck_assert_int_gt(n, 10);
        peer_deinit(&peer);
}
END_TEST

static void count_event(struct troupe *troupe, const char *topic, const struct troupe_value *event, void *userdata) {
        ++*(int *)userdata;
}

START_TEST(no_event_is_lost) {
        struct peer peer;
        struct troupe *t;
        long n = 0;

        peer_init(&peer, 64);
        do {
                int events = 0, subscribed, r;

                t = peer_connect(&peer, 0, "{}");
                peer_answer(&peer, 1, "null", "null");
                failing_arm(++n);
                subscribed = troupe_subscribe(t, "log", NULL, count_event, &events);
                failing_arm(0);
                if (!subscribed) {
                        for (int i = 0; i < 3; i++)
                                peer_notify(&peer, "event", "[\"log\", {}]");
                        peer_answer(&peer, 2, "null", "null");
                        failing_arm(n);
                        r = troupe_request(t, "ping", NULL, NULL);
                        while (troupe_process(t, POLLIN) == -ENOMEM)
                                ;
                        failing_arm(0);
                        ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                        ck_assert_int_eq(troupe_process(t, POLLIN), 0);
                }
                ck_assert(subscribed == 0 || subscribed == -ENOMEM);
                ck_assert_int_eq(events, subscribed ? 0 : 3);
                troupe_free(t);
                peer_close(&peer);
        } while (failing_hit());
        ck_assert_int_gt(n, 4);
        peer_deinit(&peer);
}
END_TEST

struct asks {
        struct troupe_asked *at[3];
        int count;
        int cancelled;
};

static void keep_ask(struct troupe *troupe, const char *handler, const struct troupe_value *args,
                     struct troupe_asked *asked, void *userdata) {
        struct asks *asks = userdata;

        if (asks->count < 3)
                asks->at[asks->count] = asked;
        asks->count++;
}

/* Each is tried again until there is memory, as a program would. */
static int reply_all(struct asks *asks) {
        int failed = 0, r;

        for (int i = 0; i < asks->count; i++)
                while ((r = i % 2 ? troupe_refuse(asks->at[i], "NO", "s", "a long enough text")
                                  : troupe_reply(asks->at[i], "j", "[\"a long enough text\"]")))
                        if (r != -ENOMEM || failed++ > 9)
                                return -1;
        return failed;
}

START_TEST(no_ask_is_lost) {
        struct peer peer;
        struct troupe *t;
        char *heard;
        long n = 0;

        peer_init(&peer, 64);
        do {
                struct asks asks = { .count = 0 };
                int listening, failed;

                t = peer_connect(&peer, 0, "{}");
                peer_answer(&peer, 1, "null", "null");
                failing_arm(++n);
                listening = troupe_listen(t, keep_ask, &asks, NULL);
                failing_arm(0);
                ck_assert_int_eq(listening, failing_hit() ? -ENOMEM : 0);
                if (!listening) {
                        for (int i = 1; i <= 3; i++)
                                peer_request(&peer, i, "message", "[\"work\", 1]");
                        peer_request(&peer, 4, "massage", "[]");
                        failing_arm(n);
                        while (troupe_process(t, POLLIN) == -ENOMEM)
                                ;
                        failed = reply_all(&asks);
                        while (troupe_process(t, 0) == -ENOMEM)
                                ;
                        failing_arm(0);
                        ck_assert_int_eq(asks.count, 3);
                        ck_assert_int_ge(failed, 0);
                        heard = peer_heard(&peer);
                        ck_assert_ptr_nonnull(strstr(heard, "[1,4,\"unknown-method\",null]\n"));
                        ck_assert_ptr_nonnull(strstr(heard, "[1,1,null,[\"a long enough text\"]]\n"
                                                            "[1,2,[\"NO\",\"a long enough text\"],null]\n"
                                                            "[1,3,null,[\"a long enough text\"]]\n"));
                        free(heard);
                }
                troupe_free(t);
                peer_close(&peer);
        } while (failing_hit());
        ck_assert_int_gt(n, 4);
        peer_deinit(&peer);
}
END_TEST

static void keep_call(struct troupe *troupe, const char *operation, const struct troupe_value *input,
                      const struct troupe_value *context, struct troupe_asked *asked, void *userdata) {
        keep_ask(troupe, operation, input, asked, userdata);
}

static void count_cancelled(struct troupe *troupe, struct troupe_asked *asked, void *userdata) {
        struct asks *asks = userdata;

        asks->cancelled += asked == asks->at[1];
}

START_TEST(no_call_is_lost) {
        static const char *const operations[] = { "make", NULL };
        const struct troupe_serve_options serve = { .size = sizeof(serve),
                                                    .operations = operations,
                                                    .on_cancelled = count_cancelled };
        struct peer peer;
        struct troupe *t;
        long n = 0;

        peer_init(&peer, 64);
        do {
                struct asks asks = { .count = 0 };
                int serving, waited = 0, failed = 0;

                t = peer_connect(&peer, 0, "{}");
                peer_answer(&peer, 1, "null", "{}");
                failing_arm(++n);
                serving = troupe_serve(t, "thumbs", &serve, keep_call, &asks, NULL);
                failing_arm(0);
                ck_assert_int_eq(serving, failing_hit() ? -ENOMEM : 0);
                if (!serving) {
                        for (int i = 1; i <= 3; i++)
                                peer_request(&peer, i, "call", "[\"make\", 1, {\"component\":\"thumbs\"}]");
                        peer_notify(&peer, "cancel", "[2]");
                        peer_answer(&peer, 2, "null", "null");
                        failing_arm(n);
                        /* while this waits they are kept */
                        waited = troupe_call(t, "clocks", "now", NULL, NULL, "{ss}", "zone", "UTC");
                        while (troupe_process(t, POLLIN) == -ENOMEM)
                                ;
                        failed = reply_all(&asks);
                        while (troupe_withdraw_async(t, "thumbs", NULL, NULL, NULL) == -ENOMEM)
                                failed++;
                        failing_arm(0);
                        ck_assert_int_eq(asks.count, 3);
                        ck_assert_int_eq(asks.cancelled, 1);
                        ck_assert_int_ge(failed, 0);
                        ck_assert(waited == 0 || waited == -ENOMEM);
                }
                troupe_free(t);
                peer_close(&peer);
        } while (failing_hit());
        ck_assert_int_gt(n, 6);
        peer_deinit(&peer);
}
END_TEST

static void count_link(struct troupe *troupe, enum troupe_link link, const char *method, const char *name,
                       void *userdata) {
        int *links = userdata;

        links[link]++;
}

/* Until the library has connected again. */
static void come_back(struct peer *peer, struct troupe *t) {
        struct pollfd listener = { peer->listen_fd, POLLIN, 0 };

        while (!poll(&listener, 1, 0)) {
                (void)!poll(NULL, 0, troupe_timeout_ms(t));
                while (troupe_process(t, 0) == -ENOMEM)
                        ;
        }
}

/* The id of the request that is in a line of what was heard. */
static uint32_t id_in(const char *heard, const char *request) {
        const char *line = strstr(heard, request);
        unsigned int id;

        ck_assert_ptr_nonnull(line);
        while (line > heard && line[-1] != '\n')
                line--;
        ck_assert_int_eq(sscanf(line, "[0,%u,", &id), 1);
        return id;
}

START_TEST(what_was_agreed_on_is_restored_all_the_same) {
        const struct troupe_hello_options hello = { .size = sizeof(hello), .client = "test" };
        struct peer peer;
        struct troupe *t;
        char *heard;
        bool has_failed;
        long n = 0;

        peer_init(&peer, 64);
        do {
                struct count seen = { 0 };
                int links[3] = { 0 }, events = 0, sent;
                uint32_t refused;

                t = peer_connect(&peer, TROUPE_RECONNECT, "{}");
                ck_assert_int_eq(troupe_on_link(t, count_link, links), 0);
                peer_answer(&peer, 1, "null", "null");
                ck_assert_int_eq(troupe_hello(t, &hello, NULL), 0);
                peer_answer(&peer, 2, "null", "null");
                ck_assert_int_eq(troupe_subscribe(t, "log", NULL, count_event, &events), 0);
                peer_answer(&peer, 3, "null", "null");
                ck_assert_int_eq(troupe_subscribe(t, "trace", NULL, count_event, &events), 0);
                peer_close(&peer);
                failing_arm(++n);
                sent = !troupe_request_async(t, "lost", count, &seen, NULL, "s", "text");
                while (troupe_process(t, POLLIN) == -ENOMEM)
                        ;
                while (troupe_request_async(t, "kept", count, &seen, NULL, "s", "text") == -ENOMEM)
                        ;
                come_back(&peer, t);
                while (troupe_process(t, 0) == -ENOMEM)
                        ;
                failing_arm(0);
                peer_accept(&peer);
                heard = peer_heard_all(&peer);
                ck_assert_ptr_nonnull(strstr(heard, "\"subscribe\",[\"log\"]]\n"));
                ck_assert_ptr_nonnull(strstr(heard, "\"kept\",[\"text\"]]\n"));
                ck_assert_ptr_null(strstr(heard, "lost"));
                refused = id_in(heard, "\"subscribe\",[\"trace\"]");
                free(heard);
                peer_answer(&peer, refused, "{\"code\":\"denied\",\"message\":\"no\",\"ran\":\"no\"}", "null");
                /* the library's hello, the program's, the subscription, and the request, whatever their ids are */
                for (uint32_t id = 4; id < 14; id++)
                        if (id != refused)
                                peer_answer(&peer, id, "null", "{}");
                peer_notify(&peer, "event", "[\"log\", 1]");
                has_failed = failing_hit();
                failing_arm(n);
                while (troupe_process(t, POLLIN) == -ENOMEM)
                        ;
                failing_arm(0);
                has_failed |= failing_hit();
                ck_assert_int_eq(links[TROUPE_LINK_LOST], 1);
                ck_assert_int_eq(links[TROUPE_LINK_RESTORED], 1);
                ck_assert_int_eq(links[TROUPE_LINK_REFUSED], 1);
                ck_assert_int_eq(events, 1);
                troupe_free(t);
                ck_assert_int_eq(seen.times, sent + 1);
                ck_assert_int_eq(seen.wrong, 0);
                peer_close(&peer);
        } while (has_failed);
        ck_assert_int_gt(n, 5);
        peer_deinit(&peer);
}
END_TEST

suite_main("client_memory", connecting, packing_and_printing, a_call_that_waits, callbacks_run_once_all_the_same,
           no_event_is_lost, no_ask_is_lost, no_call_is_lost, what_was_agreed_on_is_restored_all_the_same);
