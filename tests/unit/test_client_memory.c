/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the library fails once: the call says -ENOMEM and sends nothing, or the request ends once, and
 * it goes on. */
#include "config.h"

#include <errno.h>
#include <poll.h>
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

suite_main("client_memory", connecting, packing_and_printing, a_call_that_waits, callbacks_run_once_all_the_same,
           no_event_is_lost);
