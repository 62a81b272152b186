/* SPDX-License-Identifier: Apache-2.0 */
/* Timers: whatever is added and removed, what is due comes out in order. */
#include <check.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/core/timer.h"

#define TIMERS 500

START_TEST(empty) {
        struct tr_timers timers = { 0 };
        ck_assert(tr_timers_next_ns(&timers) == TR_NEVER);
        ck_assert_ptr_null(tr_timers_take_due(&timers, TR_NEVER));
}
END_TEST

START_TEST(due_in_order_ties_in_the_order_they_were_added) {
        struct tr_timers timers = { 0 };
        static struct tr_timer entries[TIMERS];
        srandom((unsigned int)_i);
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
END_TEST

int main(void) {
        Suite *suite = suite_create("core/timer");
        TCase *heap = tcase_create("heap");
        tcase_add_test(heap, empty);
        tcase_add_loop_test(heap, due_in_order_ties_in_the_order_they_were_added, 0, 20);
        suite_add_tcase(suite, heap);
        SRunner *runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        int failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? 0 : 1;
}
