/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: who ends with whom, and that what is supervised ends after nobody but its supervisor. */
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_session *session;
static _Atomic bool empty;

static void set_up(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        session = tr_session_new(fake.system);
        atomic_store(&empty, false);
}

static void tear_down(void) {
        tr_session_unref(session);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

static bool is_empty(void *userdata) {
        return atomic_load(&empty);
}

static void on_empty(void *userdata) {
        atomic_store(&empty, true);
}

static void end_session(void) {
        tr_session_end(session, TR_STOP_SESSION, TR_NEVER, on_empty, NULL);
}

static struct tr_target *spawn_in(struct tr_session *where) {
        const struct tr_actor_options options = { .actor = "worker" };
        struct tr_message *init = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_target *target;

        ck_assert_ptr_null(tr_actor_spawn(fake.system, where, &options, init, &target, NULL));
        return target;
}

static struct tr_target *spawn_inside(struct tr_target *owner) {
        struct tr_session *inner = tr_session_inside(owner);
        struct tr_target *target;

        ck_assert_ptr_nonnull(inner);
        target = spawn_in(inner);
        tr_session_unref(inner);
        return target;
}

/* An actor that waits in a handler until `go`. */
static void occupy(struct tr_target *target) {
        ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "block", 0)), TR_POST_OK);
        while (sem_wait(&fake.shared.entered) < 0)
                ;
}

static bool has_ended(void *userdata) {
        return tr_target_has_ended(userdata);
}

static void wait_for_end(struct tr_target *target) {
        fake_system_run_until(&fake, has_ended, target);
}

/* It was told to stop. */
static bool is_stopped(struct tr_target *target) {
        return tr_mailbox_is_closed(&tr_actor_of(target)->mailbox);
}

static struct tr_session *around(struct tr_target *target) {
        struct tr_session *found = tr_session_around(target);

        tr_session_unref(found);
        return found; /* the tests hold it */
}

START_TEST(a_session_ends_with_its_members_but_not_the_detached) {
        struct tr_target *targets[3], *late;

        set_up();
        for (int i = 0; i < 3; i++)
                targets[i] = spawn_in(session);
        tr_session_detach(targets[1]);
        end_session();
        fake_system_run_until(&fake, is_empty, NULL);
        ck_assert(tr_target_has_ended(targets[0]));
        ck_assert(!is_stopped(targets[1]));
        ck_assert(tr_target_has_ended(targets[2]));

        /* Who joins an ending session is stopped as well. */
        late = spawn_in(session);
        wait_for_end(late);
        ck_assert_ptr_null(tr_target_failure(late));
        tr_target_unref(late);
        for (int i = 0; i < 3; i++)
                tr_target_unref(targets[i]);
        tear_down();
}
END_TEST

START_TEST(who_is_supervised_is_stopped_after_the_supervisor) {
        struct tr_target *owner, *member;

        set_up();
        owner = spawn_in(session);
        member = spawn_inside(owner);
        ck_assert(tr_session_is_supervised(member));
        ck_assert(!tr_session_is_supervised(owner));
        ck_assert_ptr_eq(around(member), session);
        occupy(owner);
        occupy(member);
        end_session();
        ck_assert(is_stopped(owner));
        ck_assert(!is_stopped(member));

        sem_post(&fake.shared.go);
        sem_post(&fake.shared.go);
        fake_system_run_until(&fake, is_empty, NULL);
        ck_assert(tr_target_has_ended(owner));
        ck_assert(tr_target_has_ended(member));
        ck_assert_ptr_null(tr_target_failure(member));
        ck_assert_int_eq(atomic_load(&fake.shared.closed), 2);
        tr_target_unref(owner);
        tr_target_unref(member);
        tear_down();
}
END_TEST

START_TEST(nobody_is_left_behind_by_a_killed_supervisor) {
        struct tr_target *outer, *inner, *member;

        set_up();
        outer = spawn_in(session);
        inner = spawn_inside(outer);
        member = spawn_inside(inner);
        ck_assert_ptr_eq(around(member), session);
        outer->ops->kill(outer);
        wait_for_end(member);
        ck_assert(tr_target_has_ended(inner));
        ck_assert_ptr_null(tr_target_failure(member));
        tr_target_unref(outer);
        tr_target_unref(inner);
        tr_target_unref(member);
        tear_down();
}
END_TEST

START_TEST(detaching_a_supervisor_takes_what_it_supervises_along) {
        struct tr_target *owner, *member;

        set_up();
        owner = spawn_in(session);
        member = spawn_inside(owner);
        tr_session_detach(owner);
        ck_assert_ptr_eq(around(member), fake.system->daemon_session);
        end_session();
        fake_system_run_until(&fake, is_empty, NULL);
        ck_assert(!is_stopped(owner));
        ck_assert(!is_stopped(member));

        tr_session_detach(member);
        ck_assert(!tr_session_is_supervised(member));
        owner->ops->kill(owner);
        wait_for_end(owner);
        ck_assert(!is_stopped(member));
        tr_target_unref(owner);
        tr_target_unref(member);
        tear_down();
}
END_TEST

START_TEST(who_joins_when_the_supervisor_is_gone_is_stopped) {
        struct tr_session *inner, *after;
        struct tr_target *owner, *late;

        set_up();
        owner = spawn_in(session);
        inner = tr_session_inside(owner);
        owner->ops->kill(owner);
        wait_for_end(owner);
        while (around(owner)) /* it is told of the end before it leaves */
                ;
        late = spawn_in(inner);
        wait_for_end(late);
        after = tr_session_inside(owner);
        ck_assert_ptr_eq(after, fake.system->daemon_session);
        tr_session_unref(after);
        tr_session_unref(inner);
        tr_target_unref(owner);
        tr_target_unref(late);
        tear_down();
}
END_TEST

suite_main("session", a_session_ends_with_its_members_but_not_the_detached,
           who_is_supervised_is_stopped_after_the_supervisor, nobody_is_left_behind_by_a_killed_supervisor,
           detaching_a_supervisor_takes_what_it_supervises_along, who_joins_when_the_supervisor_is_gone_is_stopped);
