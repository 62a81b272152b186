/* SPDX-License-Identifier: Apache-2.0 */
/* Cargo: whatever becomes of what it travels in, its blocks are taken by one, come home, or are freed, and nothing is copied. */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/cargo.h"
#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

#define BLOCK_BYTES 1000

static struct fake_system fake;
/* They have no thread: the tests play it. */
static struct tr_actor *home, *worker;
static struct tr_target *home_target, *worker_target;

static void run_here(void *userdata, struct tr_actor *actor) {
        if (!home)
                home = actor;
        else
                worker = actor;
}

static struct tr_target *start(const char *name) {
        struct tr_actor_options options = { .actor = name, .mailbox_bytes = 3 * BLOCK_BYTES };
        struct tr_message *init = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_target *target = NULL;

        ck_assert_ptr_null(tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &target, NULL));
        tr_actor_turn((struct tr_actor *)target);
        return target;
}

static void setup(void) {
        tr_stock_disable();
        fake_system_init(&fake, 8);
        fake.system->hooks.run = run_here;
        home = worker = NULL;
        home_target = start("home");
        worker_target = start("worker");
}

static void end(struct tr_actor *actor, struct tr_target *target) {
        if (!actor->over)
                tr_actor_end(actor, NULL);
        tr_target_unref(&actor->target);
        tr_target_unref(target);
}

static void teardown(void) {
        end(worker, worker_target);
        end(home, home_target);
        fake_system_deinit(&fake);
}

/* Cargo of one block; *ret_memory is where it lies. */
static struct tr_cargo *one_block(void **ret_memory) {
        struct tr_cargo *cargo = tr_cargo_new(home, 1);

        ck_assert_ptr_nonnull(cargo);
        *ret_memory = malloc(BLOCK_BYTES);
        cargo->blocks[0] = (struct tr_block){ .memory = *ret_memory, .len = 5, .heap_bytes = BLOCK_BYTES, .place = 7 };
        cargo->heap_bytes = BLOCK_BYTES;
        return cargo;
}

/* A message for a handler of the worker's, with one block; asked by the home actor, under the id, or sent (0). */
static struct tr_message *loaded(const char *handler, uint64_t id, void **ret_memory) {
        struct tr_message *message = fake_message(NULL, 0, handler, 1);

        tr_message_load(message, one_block(ret_memory));
        if (id) {
                message->asker = &home->asker;
                message->asker->ops->ref(message->asker);
                message->ask.id = id;
        }
        return message;
}

/* What is in the home actor's mailbox: the next answer, NULL where there is none. */
static struct tr_answer *next_answer(void) {
        static struct tr_list answers = TR_LIST_INIT(answers);
        struct tr_answer *answer;

        if (tr_list_is_empty(&answers))
                tr_mailbox_take(&home->mailbox, 0, NULL, &answers);
        answer = tr_list_first(&answers, struct tr_answer, link);
        if (answer)
                tr_list_unlink(&answer->link);
        return answer;
}

/* The next answer is the block, come home. */
static void expect_home(const void *memory) {
        struct tr_answer *answer = next_answer();

        ck_assert_ptr_nonnull(answer);
        ck_assert_uint_eq(answer->id, TR_ANSWER_CARGO);
        ck_assert_ptr_nonnull(answer->cargo);
        ck_assert_uint_eq(answer->cargo->count, 1);
        ck_assert_ptr_eq(answer->cargo->blocks[0].memory, memory);
        ck_assert_uint_eq(answer->cargo->blocks[0].len, 5);
        ck_assert_uint_eq(answer->cargo->blocks[0].place, 7);
        tr_answer_free(answer);
}

static void expect_rejected(uint64_t id, enum tr_code code) {
        struct tr_answer *answer = next_answer();

        ck_assert_ptr_nonnull(answer);
        ck_assert_uint_eq(answer->id, id);
        ck_assert_int_eq(answer->failure->code, code);
        tr_answer_free(answer);
}

static void expect_nothing(void) {
        ck_assert_ptr_null(next_answer());
}

START_TEST(it_counts_in_the_mailbox) {
        void *memory;
        struct tr_message *message = loaded("hold", 0, &memory), *other;
        struct tr_cargo *cargo;

        ck_assert_uint_gt(tr_message_bytes(message), BLOCK_BYTES);
        ck_assert_int_eq(tr_target_post(worker_target, message), TR_POST_OK);
        ck_assert_uint_eq(atomic_load(&worker->mailbox.bytes), tr_message_bytes(message));
        ck_assert_int_eq(tr_target_post(worker_target, loaded("hold", 0, &memory)), TR_POST_OK);
        other = loaded("hold", 0, &memory);
        ck_assert_int_eq(tr_target_post(worker_target, other), TR_POST_FULL);
        tr_message_unref(other);
        expect_home(memory);
        other = fake_message(NULL, 0, "hold", 1);
        cargo = one_block(&memory);
        cargo->heap_bytes = 4 * BLOCK_BYTES;
        tr_message_load(other, cargo);
        ck_assert_int_eq(tr_target_post(worker_target, other), TR_POST_TOO_LARGE);
        tr_message_unref(other);
        expect_home(memory);

        tr_actor_turn(worker);
        ck_assert_uint_eq(atomic_load(&worker->mailbox.bytes), 0);
        expect_nothing();
}
END_TEST

START_TEST(who_takes_it_has_it) {
        void *memory;
        struct tr_message *message = loaded("hold", 0, &memory);
        struct tr_cargo *cargo = tr_message_take_cargo(message);

        ck_assert_ptr_eq(cargo->blocks[0].memory, memory);
        ck_assert_ptr_null(tr_message_take_cargo(message));
        tr_message_unref(message);
        expect_nothing();
        free(memory);
        cargo->blocks[0].memory = NULL;
        tr_cargo_free(cargo);
        expect_nothing();
}
END_TEST

START_TEST(a_refused_message_sends_it_home) {
        void *memory;

        /* what asks hears of it first */
        ck_assert_int_eq(tr_target_send(worker_target, loaded("missing", 1, &memory)), TR_POST_OK);
        tr_actor_turn(worker);
        expect_home(memory);
        expect_rejected(1, TR_CODE_NO_SUCH_HANDLER);

        /* what was sent comes when it is put away */
        ck_assert_int_eq(tr_target_send(worker_target, loaded("missing", 0, &memory)), TR_POST_OK);
        tr_actor_turn(worker);
        tr_actor_turn(worker);
        expect_home(memory);
        expect_nothing();
}
END_TEST

START_TEST(the_end_of_the_receiver_sends_it_home) {
        void *asked, *sent, *late;

        ck_assert_int_eq(tr_target_send(worker_target, fake_message(NULL, 0, "fault", 1)), TR_POST_OK);
        ck_assert_int_eq(tr_target_send(worker_target, loaded("echo", 1, &asked)), TR_POST_OK);
        ck_assert_int_eq(tr_target_send(worker_target, loaded("echo", 0, &sent)), TR_POST_OK);
        tr_actor_turn(worker);
        ck_assert(worker->over);
        expect_home(asked);
        expect_rejected(1, TR_CODE_FAULT);
        expect_home(sent);
        ck_assert_int_eq(tr_target_send(worker_target, loaded("echo", 2, &late)), TR_POST_CLOSED);
        expect_home(late);
        expect_rejected(2, TR_CODE_NOT_RUNNING);
        expect_nothing();
}
END_TEST

START_TEST(a_receiver_that_is_given_up_sends_it_home) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_KILLED, "killed");
        void *asked, *sent;

        ck_assert_int_eq(tr_target_send(worker_target, loaded("echo", 1, &asked)), TR_POST_OK);
        ck_assert_int_eq(tr_target_send(worker_target, fake_message(NULL, 0, "echo", 1)), TR_POST_OK);
        ck_assert_int_eq(tr_target_send(worker_target, loaded("echo", 0, &sent)), TR_POST_OK);
        struct tr_message *dropped = tr_mailbox_reject_all(&worker->mailbox, failure);
        expect_home(asked);
        expect_rejected(1, TR_CODE_KILLED);
        expect_home(sent);
        expect_nothing();
        int sends = 0;
        for (struct tr_message *next; dropped; dropped = next, sends++) {
                next = dropped->next_rejected;
                tr_message_unref(dropped);
        }
        ck_assert_int_eq(sends, 2);
        tr_failure_unref(failure);
}
END_TEST

START_TEST(an_answer_carries_it) {
        struct tr_message *message;
        struct tr_answer *answer;
        void *asked, *answered;

        message = loaded("hold", 1, &asked);
        ck_assert(tr_message_begin(message));
        tr_cargo_free(tr_message_take_cargo(message));
        tr_message_put_cargo(message, one_block(&answered));
        ck_assert(tr_message_resolve(message, "\xc0", 1, false));
        ck_assert_ptr_null(tr_message_take_cargo(message));
        tr_message_unref(message);
        answer = next_answer();
        ck_assert_uint_eq(answer->id, 1);
        ck_assert_ptr_eq(answer->cargo->blocks[0].memory, answered);
        /* the home actor is both here: what it does not take comes back to it */
        tr_answer_free(answer);
        expect_home(answered);
        expect_nothing();
}
END_TEST

START_TEST(an_answer_that_comes_too_late_sends_it_home) {
        struct tr_message *message;
        void *memory;
        bool begun;

        message = loaded("hold", 1, &memory);
        ck_assert(tr_message_begin(message));
        ck_assert(tr_message_settle(message, &begun));
        ck_assert(!tr_message_resolve(message, "\xc0", 1, false));
        tr_message_unref(message);
        expect_home(memory);
        expect_nothing();
}
END_TEST

START_TEST(without_a_home_it_is_freed) {
        struct tr_message *message;
        void *memory;

        message = loaded("hold", 0, &memory);
        tr_actor_end(home, NULL);
        tr_message_unref(message);

        /* and what is on its way when its home ends */
        message = loaded("hold", 0, &memory);
        tr_message_unref(message);
}
END_TEST

START_TEST(memory_ends) {
        struct tr_cargo *cargo;
        void *memory;
        long after = 0;

        do {
                failing_arm(++after);
                cargo = tr_cargo_new(home, 3);
                failing_arm(0);
                tr_cargo_free(cargo);
        } while (failing_hit());
        ck_assert_int_eq(after, 3);

        /* the way home needs none */
        cargo = one_block(&memory);
        failing_arm(1);
        tr_cargo_return(cargo);
        failing_arm(0);
        ck_assert(!failing_hit());
        expect_home(memory);
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                it_counts_in_the_mailbox,
                who_takes_it_has_it,
                a_refused_message_sends_it_home,
                the_end_of_the_receiver_sends_it_home,
                a_receiver_that_is_given_up_sends_it_home,
                an_answer_carries_it,
                an_answer_that_comes_too_late_sends_it_home,
                without_a_home_it_is_freed,
                memory_ends,
        };

        return suite_run_with("cargo", setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));
}
