/* SPDX-License-Identifier: Apache-2.0 */
/* Actors on their threads: what they answer, and that everybody who is owed an answer gets one, however they end. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
}

static void teardown(void) {
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

static void ask(struct tr_target *target, uint64_t id, const char *handler, int argument) {
        (void)tr_target_send(target, fake_message(&asker, id, handler, argument));
}

static void send_some(struct tr_target *target, int count) {
        while (count--)
                ck_assert_int_eq(tr_target_send(target, fake_message(NULL, 0, "echo", 0)), TR_POST_OK);
}

static void watch(struct tr_target *target, uint64_t id) {
        struct tr_message *message = fake_message(&asker, id, "", 0);
        message->kind = TR_MESSAGE_DONE;
        tr_target_watch(target, message);
}

static struct fake_outcome *outcome(uint64_t id) {
        for (size_t i = 0; i < asker.count; i++)
                if (asker.outcomes[i].id == id)
                        return &asker.outcomes[i];
        ck_abort_msg("no outcome %lu", (unsigned long)id);
}

static void expect_rejected(uint64_t id, enum tr_code code, enum tr_ran ran) {
        struct fake_outcome *found = outcome(id);
        ck_assert_msg(!found->resolved && found->code == code && found->ran == ran, "outcome %lu: %s, ran %s",
                      (unsigned long)id, found->resolved ? "resolved" : tr_code_text(found->code),
                      tr_ran_text(found->ran));
}

START_TEST(answers_in_order) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        for (int i = 1; i <= 1000; i++)
                ask(target, (uint64_t)i, "count", 0);
        fake_asker_wait(&asker, 1000);
        for (int i = 0; i < 1000; i++) {
                ck_assert(asker.outcomes[i].resolved);
                ck_assert_uint_eq(asker.outcomes[i].id, (uint64_t)i + 1);
        }
        ask(target, 2000, "missing", 0);
        ask(target, 2001, "echo", 5);
        fake_asker_wait(&asker, 1002);
        expect_rejected(2000, TR_CODE_NO_SUCH_HANDLER, TR_RAN_NO);
        ck_assert_int_eq(outcome(2001)->value[0], 5);
        tr_target_unref(target);
}
END_TEST

START_TEST(a_fault_answers_everybody) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        watch(target, 1);
        ask(target, 2, "hold", 0);
        ask(target, 3, "block", 0);
        sem_wait(&fake.shared.entered);
        send_some(target, 1); /* served */
        ask(target, 4, "fault", 0);
        ask(target, 5, "echo", 0);
        send_some(target, 3); /* dropped, and told */
        sem_post(&fake.shared.go);
        fake_system_run_until_outcomes(&fake, &asker, 5);
        ck_assert_int_eq(atomic_load(&fake.refused), 3);
        expect_rejected(1, TR_CODE_FAULT, TR_RAN_YES);
        expect_rejected(2, TR_CODE_FAULT, TR_RAN_MAYBE);
        ck_assert(outcome(3)->resolved);
        expect_rejected(4, TR_CODE_FAULT, TR_RAN_YES);
        expect_rejected(5, TR_CODE_FAULT, TR_RAN_NO);

        ask(target, 6, "echo", 0);
        watch(target, 7);
        expect_rejected(6, TR_CODE_NOT_RUNNING, TR_RAN_NO);
        expect_rejected(7, TR_CODE_FAULT, TR_RAN_YES);
        tr_target_unref(target);
}
END_TEST

START_TEST(stop_serves_what_is_queued) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        ask(target, 1, "block", 0);
        sem_wait(&fake.shared.entered);
        for (uint64_t id = 2; id < 600; id++)
                ask(target, id, "echo", 1);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        ask(target, 600, "echo", 1);
        expect_rejected(600, TR_CODE_NOT_RUNNING, TR_RAN_NO);
        watch(target, 601);
        sem_post(&fake.shared.go);
        fake_system_run_until_outcomes(&fake, &asker, 601);
        for (uint64_t id = 1; id < 600; id++)
                ck_assert(outcome(id)->resolved);
        ck_assert(outcome(601)->resolved);
        ck_assert_int_eq(atomic_load(&fake.shared.closed), 1);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        tr_target_unref(target);
}
END_TEST

START_TEST(stop_ends_early_where_nothing_can_settle) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        ask(target, 1, "hold", 0);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        watch(target, 2);
        fake_system_run_until_outcomes(&fake, &asker, 2);
        expect_rejected(1, TR_CODE_STOPPED, TR_RAN_MAYBE);
        ck_assert(outcome(2)->resolved);
        tr_target_unref(target);
}
END_TEST

START_TEST(kill_interrupts_what_runs) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        watch(target, 1);
        ask(target, 2, "block", 0);
        sem_wait(&fake.shared.entered);
        ask(target, 3, "echo", 0);
        send_some(target, 2);
        target->ops->kill(target);
        ask(target, 4, "echo", 0);
        fake_system_run_until_outcomes(&fake, &asker, 4);
        ck_assert_int_eq(atomic_load(&fake.refused), 2);
        expect_rejected(1, TR_CODE_KILLED, TR_RAN_MAYBE);
        ck_assert(outcome(2)->resolved || outcome(2)->code == TR_CODE_KILLED); /* it returned, interrupted */
        expect_rejected(3, TR_CODE_KILLED, TR_RAN_NO);
        expect_rejected(4, TR_CODE_NOT_RUNNING, TR_RAN_NO);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_KILLED]), 1);
        tr_target_unref(target);
}
END_TEST

START_TEST(kill_of_an_idle_one) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        watch(target, 1);
        target->ops->kill(target);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        expect_rejected(1, TR_CODE_KILLED, TR_RAN_MAYBE);
        tr_target_unref(target);
}
END_TEST

START_TEST(stop_within_kills_in_the_end) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        ask(target, 1, "block", 0);
        sem_wait(&fake.shared.entered);
        watch(target, 2);
        target->ops->stop(target, TR_STOP_ASKED, TR_NS_PER_MS);
        fake_system_run_until_outcomes(&fake, &asker, 2);
        expect_rejected(2, TR_CODE_KILLED, TR_RAN_MAYBE);
        tr_target_unref(target);
}
END_TEST

START_TEST(one_that_does_not_return_is_stuck_and_nobody_waits) {
        struct tr_actor_options options = { .publish = "deaf" };
        struct tr_target *target = fake_spawn(&fake, "worker", &options);
        ask(target, 1, "stuck", 0);
        sem_wait(&fake.shared.entered);
        ask(target, 2, "echo", 0);
        send_some(target, 2);
        watch(target, 3);
        target->ops->kill(target);
        fake_system_run_until_outcomes(&fake, &asker, 3);
        ck_assert_int_eq(atomic_load(&fake.refused), 2);
        expect_rejected(1, TR_CODE_KILLED, TR_RAN_MAYBE);
        expect_rejected(2, TR_CODE_KILLED, TR_RAN_NO);
        expect_rejected(3, TR_CODE_KILLED, TR_RAN_MAYBE);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_STUCK]), 1);
        ck_assert_int_eq(atomic_load(&((struct tr_actor *)target)->state), TR_ACTOR_STUCK);
        ck_assert_ptr_null(tr_registry_find_name(&fake.system->registry, "deaf", 4));
        ck_assert_uint_eq(tr_system_actors(fake.system), 1); /* its thread still counts */

        sem_post(&fake.shared.go); /* it comes back after all, and ends; teardown waits for it */
        tr_target_unref(target);
}
END_TEST

START_TEST(one_that_is_stuck_in_its_init_may_still_come_back_to_it) {
        struct tr_actor_options options = { .actor = "stuck-init" };
        struct tr_message *init = fake_message(&asker, 1, "init", 0);
        init->kind = TR_MESSAGE_INIT;
        struct tr_target *target;
        ck_assert_ptr_null(tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &target, NULL));
        sem_wait(&fake.shared.entered);
        target->ops->kill(target);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        expect_rejected(1, TR_CODE_KILLED, TR_RAN_MAYBE);
        sem_post(&fake.shared.go);
        tr_target_unref(target);
}
END_TEST

START_TEST(init_fails) {
        static const struct {
                const char *actor;
                enum tr_code code;
                enum tr_ran ran;
        } cases[] = { { "broken", TR_CODE_LOAD, TR_RAN_NO }, { "bad-init", TR_CODE_FAULT, TR_RAN_YES } };
        for (size_t i = 0; i < 2; i++) {
                struct tr_actor_options options = { .actor = cases[i].actor, .publish = "door" };
                struct tr_message *init = fake_message(&asker, i, "init", 0);
                init->kind = TR_MESSAGE_INIT;
                struct tr_target *target;
                ck_assert_ptr_null(
                        tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &target, NULL));
                fake_system_run_until_outcomes(&fake, &asker, 2 * i + 1);
                expect_rejected(i, cases[i].code, cases[i].ran);
                /* An ask that comes late hears of it too, and did not run. */
                ask(target, 100 + i, "echo", 0);
                expect_rejected(100 + i, cases[i].code, TR_RAN_NO);
                tr_target_unref(target);
        }
}
END_TEST

START_TEST(messages_queue_while_it_starts) {
        struct tr_actor_options options = { .actor = "slow-init", .publish = "door" };
        struct tr_message *init = fake_message(&asker, 1, "init", 0);
        init->kind = TR_MESSAGE_INIT;
        struct tr_target *target;
        ck_assert_ptr_null(tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &target, NULL));
        struct tr_target *found = tr_registry_find_name(&fake.system->registry, "door", 4);
        ck_assert_ptr_eq(found, target);
        ask(found, 2, "echo", 1);
        tr_mailbox_post_answer(&((struct tr_actor *)target)->mailbox, tr_answer_new(0, "\xc0", 1));
        fake_asker_wait(&asker, 2);
        ck_assert_uint_eq(asker.outcomes[0].id, 1);
        ck_assert(outcome(2)->resolved);

        struct tr_target *second = NULL, *holder = NULL;
        options.actor = "worker";
        init = fake_message(&asker, 3, "init", 0);
        init->kind = TR_MESSAGE_INIT;
        struct tr_failure *failure =
                tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &second, &holder);
        ck_assert_ptr_nonnull(failure);
        ck_assert_int_eq(failure->code, TR_CODE_TAKEN);
        ck_assert_ptr_eq(holder, target);
        ck_assert_uint_eq(asker.count, 2); /* the caller answers for it */
        tr_failure_unref(failure);
        tr_target_unref(holder);
        tr_target_unref(found);
        tr_target_unref(target);
}
END_TEST

START_TEST(a_bound_on_handlers_in_progress_holds_back_messages_only) {
        struct tr_actor_options options = { .async = 4 };
        struct tr_target *target = fake_spawn(&fake, "worker", &options);
        for (uint64_t id = 1; id <= 10; id++)
                ask(target, id, "hold", 0);
        struct tr_actor *actor = (struct tr_actor *)target;
        while (atomic_load(&actor->mailbox.messages) != 6)
                sched_yield();
        /* An answer gets through, and lets those go that are held: the next four begin. */
        tr_mailbox_post_answer(&actor->mailbox, tr_answer_new(0, "\xc0", 1));
        fake_asker_wait(&asker, 4);
        while (atomic_load(&actor->mailbox.messages) != 2)
                sched_yield();
        tr_mailbox_post_answer(&actor->mailbox, tr_answer_new(0, "\xc0", 1));
        fake_asker_wait(&asker, 8);
        tr_target_unref(target);
}
END_TEST

START_TEST(so_many_actors_and_no_more) {
        struct tr_target *targets[64];
        for (int i = 0; i < 64; i++)
                targets[i] = fake_spawn(&fake, "worker", NULL);
        for (int round = 0; round < 3; round++) {
                struct tr_actor_options options = { .actor = "worker" };
                struct tr_message *init = fake_message(NULL, 0, "init", 0);
                init->kind = TR_MESSAGE_INIT;
                struct tr_target *more = NULL;
                struct tr_failure *failure =
                        tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &more, NULL);
                ck_assert_ptr_nonnull(failure);
                ck_assert_int_eq(failure->code, TR_CODE_LIMIT);
                tr_failure_unref(failure);
        }
        watch(targets[0], 1);
        targets[0]->ops->stop(targets[0], TR_STOP_ASKED, TR_NEVER);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        tr_target_unref(targets[0]);
        targets[0] = fake_spawn(&fake, "worker", NULL);
        for (int i = 0; i < 64; i++)
                tr_target_unref(targets[i]);
}
END_TEST

START_TEST(watching_with_deadlines_leaves_nothing_behind) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        struct tr_failure *failure = tr_failure_new(TR_CODE_TIMEOUT, "too late");
        for (uint64_t id = 0; id < 10000; id++) {
                struct tr_message *message = tr_message_ref(fake_message(&asker, id, "", 0));
                message->kind = TR_MESSAGE_DONE;
                tr_target_watch(target, message);
                ck_assert(tr_message_reject(message, failure, TR_RAN_NO));
                tr_message_unref(message);
                ck_assert_int_le(atomic_load(&asker.refs), 40);
        }
        tr_failure_unref(failure);
        tr_target_unref(target);
}
END_TEST

/* Actors' threads look at it while the test moves it. */
static _Atomic uint64_t now_ns;

static uint64_t driven_clock(void) {
        return now_ns;
}

/* Looks as the loop would, over so many seconds of the driven clock. */
static void pass_seconds(unsigned int seconds) {
        for (unsigned int i = 0; i < 10 * seconds; i++) {
                now_ns += TR_NS_PER_S / 10;
                tr_system_run_due(fake.system, now_ns);
        }
}

START_TEST(a_slow_handler_is_reported_at_doubling_times) {
        now_ns = tr_clock_ns();
        tr_clock_set_source(driven_clock);
        fake.system->limits.slow_ns = 5 * TR_NS_PER_S;
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        ask(target, 1, "block", 0);
        sem_wait(&fake.shared.entered);
        pass_seconds(4);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_SLOW]), 0);
        pass_seconds(4); /* it gets a second to say where it is, which this behaviour does not do */
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_SLOW]), 1);
        pass_seconds(5);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_SLOW]), 2);
        pass_seconds(10);
        ck_assert_int_eq(atomic_load(&fake.events[TR_EVENT_SLOW]), 3);
        while (atomic_load(&fake.shared.reported) == 0) /* by a signal, which comes when it comes */
                sched_yield();

        /* When it is idle again the looks end by themselves. */
        sem_post(&fake.shared.go);
        fake_asker_wait(&asker, 1);
        while (atomic_load(&((struct tr_actor *)target)->in_turn))
                sched_yield();
        pass_seconds(5);
        ck_assert(tr_system_run_due(fake.system, now_ns) == TR_NEVER);
        tr_target_unref(target);
}
END_TEST

struct sender {
        struct tr_target *target;
        int number;
};

static void *send_many(void *userdata) {
        struct sender *sender = userdata;
        for (int i = 0; i < 10000; i++) {
                struct tr_message *message =
                        fake_message(&asker, (uint64_t)sender->number * 100000 + (uint64_t)i, "nothing", i);
                ck_assert_int_eq(tr_target_send(sender->target, message), TR_POST_OK);
        }
        return NULL;
}

START_TEST(per_sender_order) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        pthread_t threads[4];
        struct sender senders[4];
        for (int i = 0; i < 4; i++) {
                senders[i] = (struct sender){ target, i };
                ck_assert_int_eq(pthread_create(&threads[i], NULL, send_many, &senders[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        fake_asker_wait(&asker, 40000);
        uint64_t next[4] = { 0 };
        for (size_t i = 0; i < 40000; i++) {
                uint64_t number = asker.outcomes[i].id / 100000;
                ck_assert_uint_eq(asker.outcomes[i].id % 100000, next[number]++);
        }
        tr_target_unref(target);
}
END_TEST

START_TEST(the_registry_forgets_when_nobody_holds_it) {
        struct tr_target *target = fake_spawn(&fake, "worker", NULL);
        struct tr_handle handle = target->handle;
        struct tr_registry *registry = &fake.system->registry;
        ck_assert_int_eq(tr_registry_publish(registry, "a.b", 3, target, NULL, NULL), 0);
        ck_assert_int_eq(tr_registry_publish(registry, "a.c", 3, target, NULL, NULL), 0);
        ck_assert_int_eq(tr_registry_publish(registry, "a.b", 3, target, NULL, NULL), TR_REGISTRY_TAKEN);
        ck_assert_int_eq(tr_registry_unpublish(registry, "a.c", 3), 0);
        ck_assert_int_eq(tr_registry_unpublish(registry, "a.c", 3), TR_REGISTRY_NOT_FOUND);
        watch(target, 1);
        target->ops->kill(target);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        ck_assert_ptr_null(tr_registry_find_name(registry, "a.b", 3));
        ck_assert_int_eq(tr_registry_publish(registry, "a.b", 3, target, NULL, NULL), TR_REGISTRY_ENDED);
        tr_target_unref(target);

        /* Among the last that ended it is still found, and says how it ended. */
        target = tr_registry_find(registry, &handle);
        ck_assert_ptr_nonnull(target);
        watch(target, 2);
        expect_rejected(2, TR_CODE_KILLED, TR_RAN_MAYBE);
        tr_target_unref(target);
        for (int i = 0; i < TR_SYSTEM_ENDED_KEPT; i++) {
                struct tr_actor_options options = { .actor = "broken" };
                struct tr_message *init = fake_message(&asker, 10, "init", 0);
                init->kind = TR_MESSAGE_INIT;
                ck_assert_ptr_null(
                        tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &target, NULL));
                tr_target_unref(target);
                fake_system_run_until_outcomes(&fake, &asker, (size_t)i + 3);
        }
        while ((target = tr_registry_find(registry, &handle))) { /* its thread has still to be joined */
                tr_target_unref(target);
                tr_system_run_due(fake.system, tr_clock_ns());
        }
}
END_TEST

suite_main_with("core/actor", setup, teardown, answers_in_order, a_fault_answers_everybody, stop_serves_what_is_queued, stop_ends_early_where_nothing_can_settle, kill_interrupts_what_runs, kill_of_an_idle_one, stop_within_kills_in_the_end, one_that_does_not_return_is_stuck_and_nobody_waits, one_that_is_stuck_in_its_init_may_still_come_back_to_it, init_fails, messages_queue_while_it_starts, a_bound_on_handlers_in_progress_holds_back_messages_only, so_many_actors_and_no_more, watching_with_deadlines_leaves_nothing_behind, a_slow_handler_is_reported_at_doubling_times, per_sender_order, the_registry_forgets_when_nobody_holds_it);
