/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: what other threads post is run once, and the system's timers fire. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/core/system.h"
#include "daemon/io/loop.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct tr_loop *loop;

#define POSTS 20000
#define THREADS 4

struct counted {
        struct tr_work work;
        _Atomic unsigned int posted; /* posts that were taken */
        unsigned int run;            /* the loop thread's */
};

static struct counted works[THREADS];
static _Atomic unsigned int threads_over;
static struct tr_work over;

static void on_counted(struct tr_work *work) {
        tr_container_of(work, struct counted, work)->run++;
}

static void on_over(struct tr_work *work) {
        tr_loop_stop(loop);
}

static void *poster(void *userdata) {
        struct counted *counted = userdata;
        for (int i = 0; i < POSTS; i++)
                if (tr_loop_post(loop, &counted->work))
                        atomic_fetch_add(&counted->posted, 1);
        if (atomic_fetch_add(&threads_over, 1) + 1 == THREADS)
                tr_loop_post(loop, &over);
        return NULL;
}

START_TEST(every_post_that_was_taken_runs) {
        pthread_t threads[THREADS];
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        tr_work_init(&over, on_over);
        for (int i = 0; i < THREADS; i++) {
                tr_work_init(&works[i].work, on_counted);
                ck_assert_int_eq(pthread_create(&threads[i], NULL, poster, &works[i]), 0);
        }
        ck_assert_int_eq(tr_loop_run(loop), 0);
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                ck_assert_uint_ge(works[i].run, 1);
                ck_assert_uint_eq(works[i].run, atomic_load(&works[i].posted));
        }
        tr_loop_free(loop);
}
END_TEST

START_TEST(forgotten_work_does_not_run) {
        struct counted counted = { 0 };
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        tr_work_init(&counted.work, on_counted);
        tr_work_init(&over, on_over);
        ck_assert(!tr_loop_forget(loop, &counted.work));
        ck_assert(tr_loop_post(loop, &counted.work));
        ck_assert(!tr_loop_post(loop, &counted.work));
        ck_assert(tr_loop_forget(loop, &counted.work));
        tr_loop_post(loop, &over);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_uint_eq(counted.run, 0);
        tr_loop_free(loop);
}
END_TEST

static unsigned int fired;

static void on_first(struct tr_timer *timer) {
        ck_assert_uint_eq(fired++, 0);
}

static void on_second(struct tr_timer *timer) {
        ck_assert_uint_eq(fired++, 1);
        tr_loop_stop(loop);
}

static void wake(void *userdata) {
        tr_loop_wake(userdata);
}

START_TEST(the_systems_timers_fire_in_order) {
        struct tr_timer first = { .fire = on_first }, second = { .fire = on_second };
        struct fake_shared shared;
        struct tr_system *system;
        fake_shared_init(&shared);
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        const struct tr_system_hooks hooks = { .wake = wake, .userdata = loop };
        const struct tr_system_limits limits = { .actors = 1 };
        ck_assert_int_eq(tr_system_new(&limits, &fake_behaviour, &shared, &hooks, &system), 0);
        tr_loop_attach(loop, system);
        uint64_t now_ns = tr_clock_ns();
        ck_assert_int_eq(tr_system_set_timer(system, &second, now_ns + 20 * TR_NS_PER_MS), 0);
        ck_assert_int_eq(tr_system_set_timer(system, &first, now_ns + 5 * TR_NS_PER_MS), 0);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_uint_eq(fired, 2);
        ck_assert_uint_ge(tr_clock_ns(), now_ns + 20 * TR_NS_PER_MS);
        tr_loop_attach(loop, NULL);
        ck_assert_uint_eq(tr_system_free(system), 0);
        tr_loop_free(loop);
}
END_TEST

suite_main("loop", every_post_that_was_taken_runs, forgotten_work_does_not_run, the_systems_timers_fire_in_order);
