/* SPDX-License-Identifier: Apache-2.0 */
/* The small modules of daemon/base: clock, errors, randomness, thread roles. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/base/log_line.h"
#include "daemon/base/random.h"
#include "daemon/base/thread.h"
#include "tests/unit/suite.h"

static uint64_t now_ns;

static uint64_t driven(void) {
        return now_ns;
}

START_TEST(the_clock_is_driven_by_a_test) {
        now_ns = 5;
        tr_clock_set_source(driven);
        ck_assert_uint_eq(tr_clock_ns(), 5);
        now_ns = 7 * TR_NS_PER_S;
        ck_assert_uint_eq(tr_clock_ns(), 7 * TR_NS_PER_S);
        ck_assert_uint_eq(tr_clock_deadline_ns(TR_NS_PER_MS), 7 * TR_NS_PER_S + TR_NS_PER_MS);
}
END_TEST

START_TEST(a_deadline_beyond_the_clock_never_comes) {
        now_ns = 10;
        tr_clock_set_source(driven);
        ck_assert_uint_eq(tr_clock_deadline_ns(TR_NEVER), TR_NEVER);
        ck_assert_uint_eq(tr_clock_deadline_ns(TR_NEVER - 10), TR_NEVER);
        ck_assert_uint_eq(tr_clock_deadline_ns(TR_NEVER - 11), TR_NEVER - 1);
}
END_TEST

START_TEST(the_kernels_clock_goes_forward) {
        uint64_t before, after;

        tr_clock_set_source(driven);
        tr_clock_set_source(NULL);
        before = tr_clock_ns();
        after = tr_clock_ns();
        ck_assert_uint_gt(before, 0);
        ck_assert_uint_ge(after, before);
        /* 2020, in milliseconds */
        ck_assert_int_gt(tr_clock_wall_ms(), INT64_C(1577836800000));
}
END_TEST

static char last_line[256];

static void keep_line(void *userdata, const struct tr_log_line *line) {
        strncpy(last_line, line->text, sizeof(last_line) - 1);
}

START_TEST(an_error_says_where_it_was_born_and_passed) {
        tr_log_set_hook(keep_line, NULL);
        ck_assert_int_eq(tr_error_origin(-ENOMEM), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(last_line, "error ENOMEM in an_error_says_where_it_was_born_and_passed"));
        ck_assert_ptr_nonnull(strstr(last_line, "test_base.c:"));
        ck_assert_int_eq(tr_error_fold(-EMFILE), -EMFILE);
        ck_assert_ptr_nonnull(strstr(last_line, "passed on as EMFILE in"));
        ck_assert_int_eq(tr_error_fold(-9999), -9999);
        ck_assert_ptr_nonnull(strstr(last_line, "passed on as 9999 in"));
}
END_TEST

START_TEST(an_outcome_is_never_passed_on) {
        tr_log_set_hook(keep_line, NULL);
        ck_assert_int_eq(tr_error_fold(0), 0);
        ck_assert_str_eq(last_line, "");
        ck_assert_int_eq(tr_error_fold(3), -ENOTRECOVERABLE);
        ck_assert_ptr_nonnull(strstr(last_line, "outcome 3 was not handled"));
}
END_TEST

START_TEST(random_bytes_fill_what_was_asked_for) {
        uint8_t first[1000] = { 0 }, second[1000] = { 0 };
        size_t zeros = 0;

        ck_assert_int_eq(tr_random_bytes(first, sizeof(first) - 1), 0);
        ck_assert_int_eq(tr_random_bytes(second, sizeof(second)), 0);
        ck_assert_int_ne(memcmp(first, second, sizeof(first)), 0);
        ck_assert_uint_eq(first[999], 0);
        for (size_t i = 900; i < 999; i++)
                zeros += first[i] == 0;
        /* of 99 random bytes ten zeros are less likely than 1 in 10^11 */
        ck_assert_uint_lt(zeros, 10);
        ck_assert_int_eq(tr_random_bytes(first, 0), 0);
}
END_TEST

static void *other_thread(void *userdata) {
        char name[16];

        ck_assert_int_eq(tr_thread_role(), TR_THREAD_OTHER);
        tr_thread_enter(TR_THREAD_ACTOR, "a-rather-long-name");
        ck_assert_int_eq(tr_thread_role(), TR_THREAD_ACTOR);
        ck_assert_int_eq(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
        ck_assert_str_eq(name, "troupe/a-rather");
        return NULL;
}

START_TEST(a_role_is_the_threads_own) {
        pthread_t thread;
        char before[16], after[16];

        ck_assert_int_eq(pthread_getname_np(pthread_self(), before, sizeof(before)), 0);
        tr_thread_enter(TR_THREAD_LOOP, "loop");
        ck_assert_int_eq(pthread_getname_np(pthread_self(), after, sizeof(after)), 0);
        ck_assert_str_eq(after, before);
        ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_int_eq(tr_thread_role(), TR_THREAD_LOOP);
        tr_thread_assert(TR_THREAD_LOOP);
}
END_TEST

suite_main("base", the_clock_is_driven_by_a_test, a_deadline_beyond_the_clock_never_comes,
           the_kernels_clock_goes_forward, an_error_says_where_it_was_born_and_passed, an_outcome_is_never_passed_on,
           random_bytes_fill_what_was_asked_for, a_role_is_the_threads_own);
