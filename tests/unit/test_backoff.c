/* SPDX-License-Identifier: Apache-2.0 */
/* The pauses before something is started again. */
#include "daemon/base/clock.h"
#include "daemon/core/backoff.h"
#include "tests/unit/suite.h"

#define MIDDLE (UINT32_MAX / 2)
#define MS TR_NS_PER_MS
#define S TR_NS_PER_S

static struct tr_backoff backoff;
static uint64_t now_ns;

static void set_up(void) {
        now_ns = 1000 * S;
        tr_backoff_init(&backoff, 200 * MS, 10 * S, 10 * S);
}

/* It runs for so long and fails; answers the pause, which passes. */
static uint64_t fail_after(uint64_t ran_ns, uint32_t random) {
        uint64_t began_ns = now_ns, pause_ns;

        now_ns += ran_ns;
        pause_ns = tr_backoff_failed(&backoff, began_ns, now_ns, random);
        now_ns += pause_ns;
        return pause_ns;
}

/* Within a millionth: the jitter is computed in floating point. */
static void assert_about(uint64_t actual_ns, uint64_t expected_ns) {
        ck_assert_uint_ge(actual_ns, expected_ns - expected_ns / 1000000);
        ck_assert_uint_le(actual_ns, expected_ns + expected_ns / 1000000);
}

START_TEST(pauses_double_up_to_the_longest) {
        static const uint64_t expected_ms[] = { 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };

        set_up();
        for (size_t i = 0; i < sizeof(expected_ms) / sizeof(*expected_ms); i++)
                assert_about(fail_after(0, MIDDLE), expected_ms[i] * MS);
}
END_TEST

START_TEST(jitter_is_a_fifth) {
        set_up();
        assert_about(fail_after(0, 0), 160 * MS);
        assert_about(fail_after(0, UINT32_MAX), 480 * MS);
}
END_TEST

START_TEST(a_long_run_is_forgiven) {
        set_up();
        assert_about(fail_after(0, MIDDLE), 200 * MS);
        assert_about(fail_after(9999 * MS, MIDDLE), 400 * MS);
        assert_about(fail_after(10 * S, MIDDLE), 200 * MS);
        assert_about(fail_after(0, MIDDLE), 400 * MS);
}
END_TEST

START_TEST(ten_failures_within_a_minute_slow_it_down) {
        set_up();
        for (int i = 0; i < 9; i++) {
                ck_assert_uint_le(fail_after(0, 0), 8 * S);
                ck_assert(!backoff.slowed);
        }
        ck_assert_uint_eq(fail_after(0, 0), 60 * S);
        ck_assert(backoff.slowed);
        ck_assert_uint_eq(fail_after(9 * S, 0), 60 * S);
        /* until it has run for a while */
        assert_about(fail_after(10 * S, MIDDLE), 200 * MS);
        ck_assert(!backoff.slowed);
}
END_TEST

START_TEST(ten_failures_in_more_than_a_minute_do_not) {
        set_up();
        for (int i = 0; i < 30; i++)
                ck_assert_uint_le(fail_after(8 * S, UINT32_MAX), 12 * S);
        ck_assert(!backoff.slowed);
}
END_TEST

START_TEST(a_clean_end_has_the_shortest_pause) {
        set_up();
        fail_after(0, 0);
        fail_after(0, 0);
        assert_about(tr_backoff_ended(&backoff, now_ns, now_ns, MIDDLE), 200 * MS);
        /* and forgives nothing */
        assert_about(fail_after(0, MIDDLE), 800 * MS);
        tr_backoff_ended(&backoff, now_ns - 10 * S, now_ns, MIDDLE);
        assert_about(fail_after(0, MIDDLE), 200 * MS);
}
END_TEST

suite_main("backoff", pauses_double_up_to_the_longest, jitter_is_a_fifth, a_long_run_is_forgiven,
           ten_failures_within_a_minute_slow_it_down, ten_failures_in_more_than_a_minute_do_not,
           a_clean_end_has_the_shortest_pause);
