/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: where messages go, and what becomes of them and of the workers. */
#define SUITE_TIMEOUT_S 120
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/actor.h"
#include "daemon/core/pool.h"
#include "daemon/core/session.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_target *target;
static struct tr_pool *pool;
static struct tr_pool_options options;

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        options = (struct tr_pool_options){
                .name = "thumbs",
                .actor = "thumb",
                .workers = 4,
                .backoff_min_ns = TR_NS_PER_MS,
                .backoff_max_ns = 2 * TR_NS_PER_MS,
        };
}

static void teardown(void) {
        tr_target_unref(target);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

#define START_ID 1000000

static void start_pool(void) {
        struct tr_message *start = fake_message(&asker, START_ID, "init", 0);
        start->kind = TR_MESSAGE_INIT;
        ck_assert_ptr_null(tr_pool_start(fake.system, fake.system->daemon_session, &options, start, &target, NULL));
        pool = tr_pool_of(target);
        ck_assert_ptr_nonnull(pool);
}

static uint32_t running(void) {
        tr_lock_acquire(&pool->lock);
        uint32_t count = pool->running;
        tr_lock_release(&pool->lock);
        return count;
}

static bool all_run(void *userdata) {
        return running() == pool->workers;
}

/* A pool whose workers all run; the answer of its start is dropped. */
static void run_pool(void) {
        start_pool();
        fake_system_run_until(&fake, all_run, NULL);
        fake_asker_wait(&asker, 1);
        ck_assert(asker.outcomes[0].resolved);
        asker.count = 0;
}

static void ask(const char *handler, uint64_t id) {
        ck_assert_int_eq(tr_target_send(target, fake_message(&asker, id, handler, 1)), TR_POST_OK);
}

/* A reference to the worker in a slot. */
static struct tr_target *worker_at(uint32_t at) {
        tr_lock_acquire(&pool->lock);
        struct tr_target *worker = tr_target_ref(&pool->slots[at].worker->target);
        tr_lock_release(&pool->lock);
        return worker;
}

/* Messages that the worker in a slot has begun, its init not counted. */
static uint64_t handled_at(uint32_t at) {
        struct tr_target *worker = worker_at(at);
        uint64_t handled = atomic_load(&((struct tr_actor *)worker)->messages_total) - 1;
        tr_target_unref(worker);
        return handled;
}

static void wait_outcomes(size_t count) {
        fake_system_run_until_outcomes(&fake, &asker, count);
}

/* Each id from `first` on has one outcome; answers how many of them are rejected. */
static size_t check_each_once(uint64_t first, size_t count) {
        size_t rejected = 0;
        char *seen = calloc(count, 1);
        for (size_t i = 0; i < asker.count; i++) {
                if (asker.outcomes[i].id < first || asker.outcomes[i].id >= first + count)
                        continue;
                ck_assert_int_eq(seen[asker.outcomes[i].id - first]++, 0);
                rejected += !asker.outcomes[i].resolved;
        }
        for (size_t i = 0; i < count; i++)
                ck_assert_int_eq(seen[i], 1);
        free(seen);
        return rejected;
}

START_TEST(round_robin_is_even) {
        run_pool();
        for (uint64_t i = 0; i < 100; i++)
                ask("nothing", i);
        wait_outcomes(100);
        ck_assert_uint_eq(check_each_once(0, 100), 0);
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_uint_eq(handled_at(i), 25);
        ck_assert_uint_eq(atomic_load(&pool->messages_total), 100);
}
END_TEST

START_TEST(smallest_mailbox_passes_the_busy_over) {
        options.routing = TR_ROUTING_SMALLEST_MAILBOX;
        run_pool();
        ask("block", 0);
        sem_wait(&fake.shared.entered);
        /* one after another, so that the others are free each time */
        for (uint64_t i = 1; i <= 30; i++) {
                ask("nothing", i);
                wait_outcomes((size_t)i);
        }
        sem_post(&fake.shared.go);
        wait_outcomes(31);
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < 4; i++)
                least = handled_at(i) < least ? handled_at(i) : least;
        ck_assert_uint_eq(least, 1);
}
END_TEST

START_TEST(ties_rotate) {
        options.routing = TR_ROUTING_SMALLEST_MAILBOX;
        run_pool();
        for (uint64_t i = 0; i < 40; i++) {
                ask("nothing", i);
                wait_outcomes((size_t)i + 1);
        }
        for (uint32_t i = 0; i < 4; i++)
                ck_assert_uint_gt(handled_at(i), 0);
}
END_TEST

START_TEST(random_is_even_in_the_long_run) {
        options.routing = TR_ROUTING_RANDOM;
        run_pool();
        for (uint64_t i = 0; i < 8000; i++)
                ask("nothing", i);
        wait_outcomes(8000);
        /* 2,000 each; the standard deviation is 39, and six of them are one run in 10^8 */
        for (uint32_t i = 0; i < 4; i++) {
                ck_assert_uint_gt(handled_at(i), 1766);
                ck_assert_uint_lt(handled_at(i), 2234);
        }
}
END_TEST

START_TEST(shared_holds_nobody_up) {
        options.routing = TR_ROUTING_SHARED;
        run_pool();
        for (uint64_t i = 0; i < 3; i++) {
                ask("block", i);
                sem_wait(&fake.shared.entered);
        }
        for (uint64_t i = 3; i < 203; i++)
                ask("nothing", i);
        wait_outcomes(200);
        ck_assert_uint_eq(check_each_once(3, 200), 0);
        for (int i = 0; i < 3; i++)
                sem_post(&fake.shared.go);
        wait_outcomes(203);
}
END_TEST

START_TEST(a_worker_whose_handler_waits_is_busy) {
        options.routing = TR_ROUTING_SHARED;
        options.workers = 1;
        run_pool();
        ask("hold", 0);
        ask("nothing", 1);
        struct tr_target *worker = worker_at(0);
        /* straight to the worker, which takes it all the same */
        ck_assert_int_eq(tr_target_send(worker, fake_message(&asker, 2, "release", 1)), TR_POST_OK);
        tr_target_unref(worker);
        wait_outcomes(3);
        ck_assert_uint_eq(asker.outcomes[2].id, 1);
}
END_TEST

static void check_a_fault_loses_nothing(void) {
        options.workers = 2;
        run_pool();
        for (uint64_t i = 0; i < 2; i++) {
                ask("block", i);
                sem_wait(&fake.shared.entered);
        }
        ask("fault", 2);
        for (uint64_t i = 3; i < 1003; i++)
                ask("nothing", i);
        sem_post(&fake.shared.go);
        sem_post(&fake.shared.go);
        wait_outcomes(1003);
        ck_assert_uint_eq(check_each_once(0, 1003), 1);
        for (size_t i = 0; i < asker.count; i++) {
                if (asker.outcomes[i].resolved)
                        continue;
                ck_assert_uint_eq(asker.outcomes[i].id, 2);
                ck_assert_int_eq(asker.outcomes[i].code, TR_CODE_FAULT);
                ck_assert_int_eq(asker.outcomes[i].ran, TR_RAN_YES);
        }
        fake_system_run_until(&fake, all_run, NULL);
        ck_assert_uint_eq(atomic_load(&pool->faults_total), 1);
        ck_assert_uint_eq(atomic_load(&pool->restarts_total), 1);
}

/* It takes the second in the turn in which it has answered the first, and been shown at rest by that. */
START_TEST(a_worker_is_shown_running_whatever_it_takes) {
        options.workers = 1;
        run_pool();
        struct tr_target *worker = worker_at(0);
        for (uint64_t i = 0; i < 40; i++)
                ask("block", i);
        for (size_t i = 0; i < 40; i++) {
                sem_wait(&fake.shared.entered);
                ck_assert_int_eq(atomic_load(&((struct tr_actor *)worker)->state), TR_ACTOR_RUNNING);
                sem_post(&fake.shared.go);
        }
        wait_outcomes(40);
        ck_assert_uint_eq(check_each_once(0, 40), 0);
        tr_target_unref(worker);
}
END_TEST

START_TEST(a_fault_loses_nothing) {
        check_a_fault_loses_nothing();
}
END_TEST

START_TEST(a_fault_loses_nothing_shared) {
        options.routing = TR_ROUTING_SHARED;
        check_a_fault_loses_nothing();
}
END_TEST

START_TEST(a_fault_loses_nothing_smallest) {
        options.routing = TR_ROUTING_SMALLEST_MAILBOX;
        check_a_fault_loses_nothing();
}
END_TEST

START_TEST(a_killed_worker_is_replaced) {
        run_pool();
        struct tr_target *killed = worker_at(2);
        ck_assert_str_eq(killed->label, "w-3");
        ck_assert_int_eq(killed->ops->kind, TR_TARGET_WORKER);
        killed->ops->kill(killed);
        struct tr_message *done = fake_message(&asker, 1, "", 0);
        done->kind = TR_MESSAGE_DONE;
        tr_target_watch(killed, done);
        wait_outcomes(1);
        ck_assert_int_eq(asker.outcomes[0].code, TR_CODE_KILLED);
        tr_target_unref(killed);
        fake_system_run_until(&fake, all_run, NULL);
        struct tr_target *replacement = worker_at(2);
        ck_assert_str_eq(replacement->label, "w-3.1");
        tr_target_unref(replacement);
}
END_TEST

START_TEST(a_stuck_worker_is_replaced_and_what_it_had_not_taken_is_served) {
        options.workers = 2;
        run_pool();
        ask("stuck", 0);
        sem_wait(&fake.shared.entered);
        struct tr_target *stuck = worker_at(0);
        for (uint64_t i = 1; i <= 100; i++)
                ask("nothing", i);
        stuck->ops->kill(stuck);
        wait_outcomes(101);
        ck_assert_uint_eq(check_each_once(0, 101), 1);
        fake_system_run_until(&fake, all_run, NULL);
        sem_post(&fake.shared.go);
        tr_target_unref(stuck);
}
END_TEST

static bool has_ended(void *userdata) {
        return tr_target_has_ended(target);
}

static void stop_and_check(void) {
        for (uint64_t i = 0; i < 200; i++)
                ask("nothing", i);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        struct tr_message *late = fake_message(&asker, 999, "nothing", 1);
        ck_assert_int_eq(tr_target_send(target, late), TR_POST_CLOSED);
        fake_system_run_until(&fake, has_ended, NULL);
        wait_outcomes(201);
        ck_assert_uint_eq(check_each_once(0, 200), 0);
        ck_assert_ptr_null(tr_target_failure(target));
        ck_assert(!tr_registry_is_held(&fake.system->registry, "thumbs", 6));
        ck_assert_uint_eq(tr_system_actors(fake.system), 0);
        ck_assert_int_eq(atomic_load(&fake.shared.closed), 4);
}

START_TEST(a_stop_serves_what_is_queued) {
        run_pool();
        stop_and_check();
}
END_TEST

START_TEST(a_stop_serves_the_queue_too) {
        options.routing = TR_ROUTING_SHARED;
        run_pool();
        stop_and_check();
}
END_TEST

START_TEST(a_killed_pool_answers_everybody) {
        options.routing = TR_ROUTING_SHARED;
        options.workers = 2;
        run_pool();
        for (uint64_t i = 0; i < 2; i++)
                ask("hold", i);
        while (handled_at(0) + handled_at(1) < 2)
                sched_yield();
        for (uint64_t i = 2; i < 50; i++)
                ask("nothing", i);
        ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "nothing", 1)), TR_POST_OK);
        target->ops->kill(target);
        fake_system_run_until(&fake, has_ended, NULL);
        wait_outcomes(50);
        ck_assert_int_eq(atomic_load(&fake.refused), 1);
        ck_assert_uint_eq(check_each_once(0, 50), 50);
        for (size_t i = 0; i < 50; i++) {
                ck_assert_int_eq(asker.outcomes[i].code, TR_CODE_KILLED);
                ck_assert_int_eq(asker.outcomes[i].ran, asker.outcomes[i].id < 2 ? TR_RAN_MAYBE : TR_RAN_NO);
        }
        struct tr_failure *failure = tr_target_failure(target);
        ck_assert_int_eq(failure->code, TR_CODE_KILLED);
        tr_failure_unref(failure);
}
END_TEST

START_TEST(where_all_first_starts_fail_the_pool_is_gone) {
        options.actor = "bad-init";
        start_pool();
        fake_system_run_until(&fake, has_ended, NULL);
        wait_outcomes(1);
        ck_assert(!asker.outcomes[0].resolved);
        ck_assert_int_eq(asker.outcomes[0].code, TR_CODE_FAULT);
        ck_assert(!tr_registry_is_held(&fake.system->registry, "thumbs", 6));
        /* who asks later hears of it too */
        ck_assert_int_eq(tr_target_send(target, fake_message(&asker, 1, "nothing", 1)), TR_POST_CLOSED);
        ck_assert_int_eq(asker.outcomes[1].code, TR_CODE_FAULT);
        ck_assert_int_eq(asker.outcomes[1].ran, TR_RAN_NO);
}
END_TEST

static _Atomic uint64_t now_ns;

static uint64_t driven(void) {
        return atomic_load(&now_ns);
}

START_TEST(an_init_that_takes_ten_seconds_has_failed) {
        const uint64_t began_ns = 1000 * TR_NS_PER_S;
        atomic_store(&now_ns, began_ns);
        tr_clock_set_source(driven);
        options.actor = "slow-init";
        options.workers = 1;
        start_pool();
        atomic_store(&now_ns, began_ns + 10 * TR_NS_PER_S - 1);
        tr_system_run_due(fake.system, tr_clock_ns());
        ck_assert_uint_eq(atomic_load(&pool->faults_total), 0);
        ck_assert_uint_eq(asker.count, 0);
        atomic_store(&now_ns, began_ns + 10 * TR_NS_PER_S);
        fake_system_run_until(&fake, has_ended, NULL);
        fake_asker_wait(&asker, 1);
        ck_assert_int_eq(asker.outcomes[0].code, TR_CODE_KILLED);
        ck_assert_uint_eq(atomic_load(&pool->faults_total), 1);
        tr_clock_set_source(NULL);
}
END_TEST

static bool has_restarted(void *userdata) {
        return atomic_load(&pool->restarts_total) >= 8;
}

START_TEST(a_persistent_one_goes_on_trying) {
        options.actor = "bad-init";
        options.persistent = true;
        start_pool();
        ask("nothing", 1);
        fake_system_run_until(&fake, has_restarted, NULL);
        ck_assert(!has_ended(NULL));
        ck_assert_uint_eq(asker.count, 0);
        target->ops->kill(target);
        fake_system_run_until(&fake, has_ended, NULL);
        wait_outcomes(2);
}
END_TEST

static bool has_given_up(void *userdata) {
        return atomic_load(&fake.events[TR_EVENT_SLOT_GIVEN_UP]) > 0;
}

START_TEST(a_slot_that_keeps_failing_is_given_up_once) {
        options.actor = "bad-init";
        options.persistent = true;
        options.workers = 1;
        start_pool();
        fake_system_run_until(&fake, has_given_up, NULL);
        ck_assert_uint_eq(atomic_load(&pool->restarts_total), TR_BACKOFF_FAILURES - 1);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_SLOT_GIVEN_UP]), 1);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_RESTARTED]), 0); /* no start has gone well */
        target->ops->kill(target);
        fake_system_run_until(&fake, has_ended, NULL);
}
END_TEST

START_TEST(without_a_worker_messages_wait) {
        options.actor = "slow-init";
        options.queue = 10;
        start_pool();
        for (uint64_t i = 0; i < 10; i++)
                ask("nothing", i);
        ck_assert_int_eq(tr_target_send(target, fake_message(&asker, 10, "nothing", 1)), TR_POST_FULL);
        ck_assert_int_eq(asker.outcomes[0].code, TR_CODE_MAILBOX_FULL);
        target->ops->kill(target);
        fake_system_run_until(&fake, has_ended, NULL);
        wait_outcomes(12);
}
END_TEST

START_TEST(a_full_worker_is_passed_over) {
        options.workers = 2;
        options.mailbox = 2;
        run_pool();
        for (uint64_t i = 0; i < 2; i++) {
                ask("block", i);
                sem_wait(&fake.shared.entered);
        }
        /* two each */
        for (uint64_t i = 2; i < 6; i++)
                ask("nothing", i);
        ck_assert_int_eq(tr_target_send(target, fake_message(&asker, 6, "nothing", 1)), TR_POST_FULL);
        sem_post(&fake.shared.go);
        wait_outcomes(3);
        /* one of them is free again; whichever it is, it is found */
        ask("nothing", 7);
        ask("nothing", 8);
        sem_post(&fake.shared.go);
        wait_outcomes(9);
        ck_assert_uint_eq(check_each_once(0, 9), 1);
}
END_TEST

/* Nobody's thread but the test's. */
static void run_here(void *userdata, struct tr_actor *actor) {}

static struct tr_actor *begun_at(uint32_t at) {
        struct tr_actor *worker = pool->slots[at].worker;
        tr_actor_turn(worker);
        return worker;
}

static void end_here(struct tr_actor *worker) {
        while (!worker->over)
                tr_actor_turn(worker);
        tr_target_unref(&worker->target); /* its thread's, which there is none of */
}

START_TEST(what_one_was_called_for_and_cannot_take_goes_to_another) {
        fake.system->hooks.run = run_here;
        options.routing = TR_ROUTING_SHARED;
        options.workers = 2;
        start_pool();
        struct tr_actor *busy = begun_at(0), *free = begun_at(1);
        busy->pulled = true; /* so it is its own mailbox's turn */
        ck_assert(!tr_slot_rest(&pool->slots[1], true));
        ck_assert(!tr_slot_rest(&pool->slots[0], true));
        ask("nothing", 1);
        ck_assert(atomic_load(&busy->mailbox.attention));
        ck_assert(!atomic_load(&free->mailbox.attention));

        ck_assert_int_eq(tr_target_send(&busy->target, fake_message(&asker, 2, "hold", 1)), TR_POST_OK);
        tr_actor_turn(busy);
        ck_assert_uint_eq(busy->in_progress, 1);
        busy->next_timer_ns = 1; /* long ago: it does not wait */
        tr_actor_wait(busy);
        ck_assert(atomic_load(&free->mailbox.attention));

        tr_actor_turn(free);
        ck_assert_uint_eq(asker.outcomes[asker.count - 1].id, 1);
        target->ops->kill(target);
        end_here(busy);
        end_here(free);
}
END_TEST

START_TEST(a_name_that_is_taken) {
        run_pool();
        struct tr_target *second = NULL, *holder = NULL;
        struct tr_message *start = fake_message(NULL, 0, "init", 0);
        start->kind = TR_MESSAGE_INIT;
        struct tr_failure *failure =
                tr_pool_start(fake.system, fake.system->daemon_session, &options, start, &second, &holder);
        ck_assert_int_eq(failure->code, TR_CODE_TAKEN);
        ck_assert_ptr_eq(holder, target);
        tr_target_unref(holder);
        tr_failure_unref(failure);
}
END_TEST

START_TEST(the_limit_of_actors_is_every_workers) {
        options.workers = 64;
        struct tr_target *other = fake_spawn(&fake, "thumb", NULL);
        start_pool();
        fake_asker_wait(&asker, 1);
        ck_assert(asker.outcomes[0].resolved);
        other->ops->stop(other, TR_STOP_ASKED, TR_NEVER);
        tr_target_unref(other);
        fake_system_run_until(&fake, all_run, NULL);
}
END_TEST

START_TEST(its_session_stops_it) {
        struct tr_session *session = tr_session_new(fake.system);
        struct tr_message *start = fake_message(&asker, START_ID, "init", 0);
        start->kind = TR_MESSAGE_INIT;
        ck_assert_ptr_null(tr_pool_start(fake.system, session, &options, start, &target, NULL));
        pool = tr_pool_of(target);
        fake_system_run_until(&fake, all_run, NULL);
        tr_session_end(session, TR_STOP_SESSION, TR_NEVER, NULL, NULL);
        fake_system_run_until(&fake, has_ended, NULL);
        ck_assert_int_eq(atomic_load(&fake.shared.closed), 4);
        tr_session_unref(session);
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                round_robin_is_even,
                smallest_mailbox_passes_the_busy_over,
                ties_rotate,
                random_is_even_in_the_long_run,
                shared_holds_nobody_up,
                a_worker_whose_handler_waits_is_busy,
                a_worker_is_shown_running_whatever_it_takes,
                a_fault_loses_nothing,
                a_fault_loses_nothing_shared,
                a_fault_loses_nothing_smallest,
                a_killed_worker_is_replaced,
                a_stuck_worker_is_replaced_and_what_it_had_not_taken_is_served,
                a_stop_serves_what_is_queued,
                a_stop_serves_the_queue_too,
                a_killed_pool_answers_everybody,
                where_all_first_starts_fail_the_pool_is_gone,
                an_init_that_takes_ten_seconds_has_failed,
                a_persistent_one_goes_on_trying, a_slot_that_keeps_failing_is_given_up_once,
                without_a_worker_messages_wait,
                a_full_worker_is_passed_over,
                what_one_was_called_for_and_cannot_take_goes_to_another,
                a_name_that_is_taken,
                the_limit_of_actors_is_every_workers,
                its_session_stops_it,
        };
        return suite_run_with("pool", setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));
}
