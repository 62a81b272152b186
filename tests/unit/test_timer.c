/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: whatever is added and removed, what is due comes out in order. */
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/core/timer.h"
#include "tests/unit/suite.h"

#define TIMERS 500
#define SEEDS 20

START_TEST(empty) {
        struct tr_timers timers = { 0 };
        ck_assert(tr_timers_next_ns(&timers) == TR_NEVER);
        ck_assert_ptr_null(tr_timers_take_due(&timers, TR_NEVER));
}
END_TEST

static void run_through(unsigned int seed) {
        struct tr_timers timers = { 0 };
        struct tr_timer entries[TIMERS] = { 0 };
        srandom(seed);
        for (int i = 0; i < TIMERS; i++)
                ck_assert_int_eq(tr_timers_add(&timers, &entries[i], (uint64_t)random() % 50), 0);
        for (int i = 0; i < TIMERS; i += 3) {
                tr_timers_remove(&timers, &entries[i]);
                tr_timers_remove(&timers, &entries[i]);
                ck_assert(!tr_timer_is_set(&entries[i]));
        }
        uint64_t last = 0, last_order = 0;
        uint32_t seen = 0;
        struct tr_timer *timer;
        while ((timer = tr_timers_take_due(&timers, 30))) {
                ck_assert(timer->deadline_ns >= last && timer->deadline_ns <= 30);
                ck_assert(timer->deadline_ns > last || timer->order >= last_order);
                last = timer->deadline_ns;
                last_order = timer->order;
                seen++;
        }
        ck_assert(tr_timers_next_ns(&timers) > 30);
        while ((timer = tr_timers_take_due(&timers, TR_NEVER)))
                seen++;
        ck_assert_uint_eq(seen, TIMERS - (TIMERS + 2) / 3);
        tr_timers_deinit(&timers);
}

START_TEST(due_in_order_ties_in_the_order_they_were_added) {
        for (unsigned int seed = 0; seed < SEEDS; seed++)
                run_through(seed);
}
END_TEST

suite_main("core/timer", empty, due_in_order_ties_in_the_order_they_were_added);
