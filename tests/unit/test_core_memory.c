/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core without memory: each allocation on an actor's way from its start to its end fails in turn. Whatever fails, everybody
 * is told, once, and nothing is left (which AddressSanitizer's leak check sees).
 */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/stock.h"
#include "daemon/base/clock.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

enum { ID_INIT, ID_ECHO, ID_HOLD, ID_DONE, IDS };

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_actor *ready; /* an actor that takes its turns here */

static void run_here(void *userdata, struct tr_actor *actor) {
        ready = actor;
}

static struct tr_message *request(uint64_t id, enum tr_message_kind kind, const char *handler) {
        struct tr_message *message = fake_message(&asker, id, handler, 1);
        message->kind = (uint8_t)kind;
        return message;
}

/* What an actor goes through; the requests are made before. Answers whether it was started. */
static bool live(struct tr_message *requests[IDS]) {
        struct tr_actor_options options = { .actor = "worker", .publish = "door" };
        struct tr_target *target = NULL;
        struct tr_failure *failure = tr_actor_spawn(fake.system, fake.system->daemon_session, &options, requests[ID_INIT], &target,
                                                    NULL);
        if (failure) {
                ck_assert_int_eq(failure->code, TR_CODE_NO_MEMORY);
                tr_failure_unref(failure);
                return false;
        }
        tr_target_watch(target, requests[ID_DONE]);
        (void)tr_target_send(target, requests[ID_HOLD]);
        (void)tr_target_send(target, requests[ID_ECHO]);
        tr_actor_turn(ready);

        struct tr_writer info = TR_WRITER_INIT;
        tr_target_write_info(target, true, &info);
        tr_writer_deinit(&info);
        target->ops->stop(target, TR_STOP_ASKED, TR_NS_PER_S);
        while (!ready->over)
                tr_actor_turn(ready);
        tr_target_unref(&ready->target); /* the thread's */
        tr_target_unref(target);
        return true;
}

START_TEST(each_allocation_of_an_actors_life_fails) {
        tr_stock_disable();
        long n = 0;
        do {
                fake_system_init(&fake, 8);
                fake.system->hooks.run = run_here;
                fake_asker_init(&asker);
                struct tr_message *requests[IDS] = {
                        [ID_INIT] = request(ID_INIT, TR_MESSAGE_INIT, "init"),
                        [ID_ECHO] = request(ID_ECHO, TR_MESSAGE_HANDLER, "echo"),
                        [ID_HOLD] = request(ID_HOLD, TR_MESSAGE_HANDLER, "hold"),
                        [ID_DONE] = request(ID_DONE, TR_MESSAGE_DONE, ""),
                };
                failing_arm(++n);
                bool started = live(requests);
                failing_arm(0);
                if (started) {
                        unsigned int seen[IDS] = { 0 };
                        for (size_t i = 0; i < asker.count; i++)
                                seen[asker.outcomes[i].id]++;
                        for (int id = 0; id < IDS; id++)
                                ck_assert_msg(seen[id] == 1, "allocation %ld: request %d has %u outcomes", n, id, seen[id]);
                } else {
                        ck_assert_uint_eq(asker.count, 0); /* the caller was told */
                        for (int id = ID_INIT + 1; id < IDS; id++)
                                tr_message_unref(requests[id]);
                }
                ck_assert_uint_eq(tr_system_actors(fake.system), 0);
                ck_assert_ptr_null(tr_registry_find_name(&fake.system->registry, "door", 4));
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker);
        } while (failing_hit());
        ck_assert_int_gt(n, 5);
}
END_TEST

/* Pools */

static struct tr_actor *workers[16];
static size_t workers_count;

/* check's own assertions allocate, which is not what is to fail. */
static void run_worker_here(void *userdata, struct tr_actor *actor) {
        if (workers_count == sizeof(workers) / sizeof(workers[0]))
                abort();
        workers[workers_count++] = actor;
}

/* A turn for each worker that has one, and what is due. */
static void go_on(void) {
        for (size_t i = 0; i < workers_count; i++) {
                struct tr_actor *worker = workers[i];
                if (!worker)
                        continue;
                tr_actor_turn(worker);
                if (!worker->over)
                        continue;
                workers[i] = NULL;
                tr_target_unref(&worker->target); /* the thread's */
        }
        tr_system_run_due(fake.system, tr_clock_ns());
}

enum { ID_POOL, ID_FIRST, ID_SECOND, ID_POOL_DONE, POOL_IDS };

/* As live(), of a pool: it starts, is asked twice, and stops. */
static bool live_as_pool(struct tr_message *requests[POOL_IDS], uint32_t size, enum tr_routing routing) {
        const struct tr_pool_options options = {
                .name = "crew",
                .actor = "worker",
                .workers = size,
                .routing = routing,
                .backoff_min_ns = TR_NS_PER_MS,
                .backoff_max_ns = TR_NS_PER_MS,
        };
        struct tr_target *target = NULL;
        struct tr_failure *failure =
                tr_pool_start(fake.system, fake.system->daemon_session, &options, requests[ID_POOL], &target, NULL);
        if (failure) {
                ck_assert_int_eq(failure->code, TR_CODE_NO_MEMORY);
                tr_failure_unref(failure);
                return false;
        }
        tr_target_watch(target, requests[ID_POOL_DONE]);
        (void)tr_target_send(target, requests[ID_FIRST]);
        while (asker.count < 2 && !tr_target_has_ended(target))
                go_on();
        (void)tr_target_send(target, requests[ID_SECOND]);

        struct tr_writer info = TR_WRITER_INIT;
        tr_target_write_info(target, true, &info);
        tr_writer_deinit(&info);
        target->ops->stop(target, TR_STOP_ASKED, 60 * TR_NS_PER_S);
        while (!tr_target_has_ended(target))
                go_on();
        tr_target_unref(target);
        return true;
}

static void check_pool(uint32_t size, enum tr_routing routing) {
        tr_stock_disable();
        long n = 0;
        do {
                workers_count = 0;
                fake_system_init(&fake, 8);
                fake.system->hooks.run = run_worker_here;
                fake_asker_init(&asker);
                struct tr_message *requests[POOL_IDS] = {
                        [ID_POOL] = request(ID_POOL, TR_MESSAGE_INIT, "init"),
                        [ID_FIRST] = request(ID_FIRST, TR_MESSAGE_HANDLER, "echo"),
                        [ID_SECOND] = request(ID_SECOND, TR_MESSAGE_HANDLER, "nothing"),
                        [ID_POOL_DONE] = request(ID_POOL_DONE, TR_MESSAGE_DONE, ""),
                };
                failing_arm(++n);
                bool started = live_as_pool(requests, size, routing);
                failing_arm(0);
                unsigned int seen[POOL_IDS] = { 0 };
                for (size_t i = 0; i < asker.count; i++)
                        seen[asker.outcomes[i].id]++;
                for (int id = 0; id < POOL_IDS; id++) {
                        ck_assert_msg(seen[id] == started, "allocation %ld: request %d has %u outcomes", n, id, seen[id]);
                        if (!started && id != ID_POOL)
                                tr_message_unref(requests[id]); /* the caller was told */
                }
                ck_assert_uint_eq(tr_system_actors(fake.system), 0);
                ck_assert(!tr_registry_is_held(&fake.system->registry, "crew", 4));
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker);
        } while (failing_hit());
        ck_assert_int_gt(n, 10);
}

START_TEST(each_allocation_of_a_pools_life_fails) {
        check_pool(2, TR_ROUTING_ROUND_ROBIN);
        check_pool(2, TR_ROUTING_SHARED);
}
END_TEST

/* Where the one first start fails, so does the pool's. */
START_TEST(each_allocation_of_the_only_worker_fails) {
        check_pool(1, TR_ROUTING_ROUND_ROBIN);
}
END_TEST

#define RESERVED 20
#define OTHERS 500

START_TEST(a_reserved_timer_needs_no_memory) {
        struct tr_timers timers = { 0 };
        struct tr_timer reserved[RESERVED] = { 0 }, others[OTHERS] = { 0 };
        for (int i = 0; i < RESERVED; i++)
                ck_assert_int_eq(tr_timers_reserve(&timers, &reserved[i]), 0);
        for (int i = 0; i < OTHERS; i++) {
                struct tr_timer *timer = &reserved[i % RESERVED];
                ck_assert_int_eq(tr_timers_add(&timers, &others[i], 1), 0);
                if (i % 3 == 0)
                        tr_timers_remove(&timers, timer);
                if (tr_timer_is_set(timer))
                        continue;
                failing_arm(1);
                int r = tr_timers_add(&timers, timer, 1);
                failing_arm(0);
                ck_assert_int_eq(r, 0);
        }
        for (int i = 0; i < RESERVED; i++) {
                tr_timers_remove(&timers, &reserved[i]);
                tr_timers_unreserve(&timers, &reserved[i]);
                tr_timers_unreserve(&timers, &reserved[i]);
        }
        ck_assert_uint_eq(timers.reserved, 0);
        tr_timers_deinit(&timers);
}
END_TEST

START_TEST(a_system_is_made_whole_or_not_at_all) {
        tr_stock_disable();
        const struct tr_system_limits limits = { .actors = 1 };
        const struct tr_system_hooks hooks = { 0 };
        struct tr_system *system;
        long n = 0;
        int r;
        do {
                failing_arm(++n);
                r = tr_system_new(&limits, &fake_behaviour, NULL, &hooks, &system);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
        } while (failing_hit());
        ck_assert_uint_eq(tr_system_free(system), 0);
}
END_TEST

START_TEST(a_session_is_made_or_not) {
        tr_stock_disable();
        fake_system_init(&fake, 8);
        struct tr_target *owner = fake_spawn(&fake, "worker", NULL);
        struct tr_session *session, *inner;
        long n = 0;
        do {
                failing_arm(++n);
                session = tr_session_new(fake.system);
                failing_arm(0);
                ck_assert(!session == failing_hit());
        } while (failing_hit());
        ck_assert_int_gt(n, 1);
        tr_session_unref(session);
        n = 0;
        do {
                ck_assert_ptr_null(owner->inner);
                failing_arm(++n);
                inner = tr_session_inside(owner);
                failing_arm(0);
                ck_assert(!inner == failing_hit());
        } while (failing_hit());
        ck_assert_int_gt(n, 1);
        ck_assert_ptr_eq(owner->inner, inner);
        tr_session_unref(inner);
        tr_target_unref(owner);
        fake_system_deinit(&fake);
}
END_TEST

suite_main("core/memory", each_allocation_of_an_actors_life_fails, each_allocation_of_a_pools_life_fails,
           each_allocation_of_the_only_worker_fails, a_reserved_timer_needs_no_memory, a_session_is_made_or_not, a_system_is_made_whole_or_not_at_all);
