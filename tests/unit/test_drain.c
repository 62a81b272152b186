/* SPDX-License-Identifier: Apache-2.0 */
/* The end of all actors, over a real loop and real actor threads. */
#include <semaphore.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log_line.h"
#include "daemon/core/actor.h"
#include "daemon/drain.h"
#include "daemon/io/loop.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_shared shared;
static struct tr_loop *loop;
static struct tr_system *system_;
static struct tr_drain *drain;
static int dones;
static _Atomic int named; /* stuck actors in the log */

static void on_wake(void *userdata) {
        tr_loop_wake(loop);
}

static void on_done(void *userdata) {
        dones++;
        tr_loop_stop(loop);
}

static void on_log(void *userdata, const struct tr_log_line *line) {
        if (strstr(line->text, "stuck in a C function; nothing waits for it"))
                named++;
}

static void set_up(void) {
        const struct tr_system_limits limits = {
                .actors = 100,
                .actors_per_user = 100,
                .heap_bytes = 1 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 100,
                .mailbox_bytes = 1 << 20,
                .async = 10,
                .grace_ns = TR_NEVER,
        };
        const struct tr_system_hooks hooks = { .wake = on_wake };

        tr_log_set_hook(on_log, NULL);
        fake_shared_init(&shared);
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        ck_assert_int_eq(tr_system_new(&limits, &fake_behaviour, &shared, &hooks, &system_), 0);
        ck_assert_int_eq(tr_drain_new(loop, system_, on_done, NULL, &drain), 0);
        tr_loop_attach(loop, system_);
}

static struct tr_target *spawn(struct tr_session *session) {
        const struct tr_actor_options options = { .actor = "counter", .owner_uid = system_->own_uid };
        struct tr_message *init = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_target *target;

        ck_assert_ptr_null(tr_actor_spawn(system_, session, &options, init, &target, NULL));
        return target;
}

static void tear_down(uint32_t stuck) {
        ck_assert_int_eq(dones, 1);
        ck_assert_uint_eq(tr_system_free(system_), stuck);
        if (stuck == 0) {
                tr_drain_free(drain);
                tr_loop_free(loop);
        }
}

START_TEST(nobody_is_there) {
        struct tr_failure *failure;

        set_up();
        tr_drain_start(drain, TR_NEVER);
        ck_assert_int_eq(dones, 1);
        failure = tr_system_reserve_actor(system_, 0);
        ck_assert_ptr_nonnull(failure);
        ck_assert_int_eq(failure->code, TR_CODE_SHUTTING_DOWN);
        tr_failure_unref(failure);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

START_TEST(all_sessions_end_orderly) {
        struct tr_session *session;

        set_up();
        session = tr_session_new(system_);
        for (int i = 0; i < 20; i++)
                tr_target_unref(spawn(i % 2 ? session : system_->daemon_session));
        tr_drain_start(drain, TR_NEVER);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_uint_eq(tr_system_actors(system_), 0);
        ck_assert_int_eq(atomic_load(&shared.closed), 20);
        tr_session_unref(session);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

/* An actor that waits in a handler until `go`. */
static struct tr_target *spawn_busy(const char *handler) {
        struct tr_target *target = spawn(system_->daemon_session);

        ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, handler, 0)), TR_POST_OK);
        while (sem_wait(&shared.entered) < 0)
                ;
        return target;
}

START_TEST(who_is_busy_is_waited_for) {
        struct tr_target *busy;

        set_up();
        busy = spawn_busy("block");
        tr_drain_start(drain, TR_NEVER);
        ck_assert_int_eq(dones, 0);
        sem_post(&shared.go);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_int_eq(atomic_load(&shared.closed), 1);
        ck_assert_ptr_null(tr_target_failure(busy));
        tr_target_unref(busy);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

START_TEST(who_has_a_supervisor_is_left_to_it) {
        struct tr_target *owner, *member;
        struct tr_session *inner;

        set_up();
        owner = spawn_busy("block");
        inner = tr_session_inside(owner);
        member = spawn(inner);
        tr_session_unref(inner);
        tr_drain_start(drain, TR_NEVER);
        ck_assert(tr_mailbox_is_closed(&tr_actor_of(owner)->mailbox));
        ck_assert(!tr_mailbox_is_closed(&tr_actor_of(member)->mailbox));
        sem_post(&shared.go);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_int_eq(atomic_load(&shared.closed), 2);
        ck_assert(tr_target_has_ended(member));
        tr_target_unref(owner);
        tr_target_unref(member);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

static void assert_killed(struct tr_target *target) {
        struct tr_failure *failure = tr_target_failure(target);

        ck_assert_ptr_nonnull(failure);
        ck_assert_int_eq(failure->code, TR_CODE_KILLED);
        tr_failure_unref(failure);
        tr_target_unref(target);
}

START_TEST(past_the_grace_they_are_killed) {
        struct tr_target *busy;

        set_up();
        busy = spawn_busy("block");
        tr_drain_start(drain, TR_NS_PER_MS);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        assert_killed(busy);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

START_TEST(in_a_hurry_they_are_killed) {
        struct tr_target *busy;

        set_up();
        busy = spawn_busy("block");
        tr_drain_start(drain, TR_NEVER);
        tr_drain_hurry(drain);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        assert_killed(busy);
        tr_drain_free(tr_steal(drain));
        tear_down(0);
}
END_TEST

START_TEST(who_is_stuck_is_named_and_not_waited_for) {
        struct tr_target *stuck;

        set_up();
        stuck = spawn_busy("stuck");
        tr_target_unref(spawn(system_->daemon_session));
        /* time enough for the other one, however busy the machine is */
        tr_drain_start(drain, TR_NS_PER_S);
        ck_assert_int_eq(tr_loop_run(loop), 0);
        ck_assert_int_eq(atomic_load(&named), 1);
        assert_killed(stuck);
        ck_assert_int_eq(atomic_load(&shared.closed), 1);
        tear_down(1);
}
END_TEST

suite_main("drain", nobody_is_there, all_sessions_end_orderly, who_is_busy_is_waited_for,
           who_has_a_supervisor_is_left_to_it, past_the_grace_they_are_killed, in_a_hurry_they_are_killed,
           who_is_stuck_is_named_and_not_waited_for);
