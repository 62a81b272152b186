/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under seeded interleavings: actors take their turns on the test's
 * one thread, in an order that a seed decides, between sends, cancels, stops,
 * kills and answers that the seed decides too. Whatever the order, every ask
 * has exactly one outcome, every watcher is told, and nothing is left.
 *
 * A failing seed is named in the failure, and fails every time.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/cargo.h"
#include "tests/unit/fake_behaviour.h"
/* seconds: many seeds, on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 300
#include "tests/unit/suite.h"

#define ACTORS 4
#define STEPS 400
#define SEEDS 1200
#define IDS (STEPS + ACTORS * 2)

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_actor *actors[ACTORS * STEPS]; /* every one that was started, until it is over */
static size_t actors_count;
static struct tr_target *targets[ACTORS];
static struct tr_message *pending[IDS]; /* asks that may be taken back */
static uint64_t ids;
static uint64_t now_ns = TR_NS_PER_S;

static uint64_t driven_clock(void) {
        return now_ns;
}

static void run_here(void *userdata, struct tr_actor *actor) {
        actors[actors_count++] = actor;
}

static struct tr_message *new_ask(const char *handler) {
        struct tr_message *message = fake_message(&asker, ids, handler, (int)(ids % 100));
        pending[ids++] = tr_message_ref(message);
        return message;
}

static void turn_one(size_t which) {
        struct tr_actor *actor = actors[which];
        tr_actor_turn(actor);
        if (!actor->over)
                return;
        actors[which] = actors[--actors_count];
        tr_target_unref(&actor->target);
}

static void start(int slot) {
        static const char *const kinds[] = { "worker", "slow-init", "bad-init", "broken" };
        struct tr_actor_options options = { .actor = kinds[random() % 8 < 5 ? 0 : 1 + random() % 3], .async = 3, .mailbox = 20 };
        struct tr_message *init = new_ask("init");
        init->kind = TR_MESSAGE_INIT;
        ck_assert_ptr_null(
                tr_actor_spawn(fake.system, fake.system->daemon_session, &options, init, &targets[slot], NULL));
        struct tr_message *done = new_ask("");
        done->kind = TR_MESSAGE_DONE;
        tr_target_watch(targets[slot], done);
}

static void cancel(uint64_t id) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "taken back");
        tr_message_reject(pending[id], failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
}

/* Something that some actor hands over with the message. */
static void load(struct tr_message *message) {
        struct tr_cargo *cargo = tr_cargo_new((struct tr_actor *)targets[random() % ACTORS], 1);
        cargo->blocks[0].memory = malloc(1);
        tr_message_load(message, cargo);
}

static void send_one(struct tr_target *target) {
        static const char *const handlers[] = { "echo", "count", "hold", "hold", "release", "nothing", "missing", "echo" };
        const char *handler = random() % 60 == 0 ? "fault" : handlers[random() % 8];
        struct tr_message *message = random() % 4 == 0 ? fake_message(NULL, 0, handler, 1) : new_ask(handler);
        if (random() % 4 == 0)
                load(message);
        (void)tr_target_send(target, message);
}

static void step(void) {
        struct tr_target *target = targets[random() % ACTORS];
        switch (random() % 40) {
        case 0:
                target->ops->stop(target, TR_STOP_ASKED, random() % 2 ? TR_NEVER : 40 * TR_NS_PER_MS);
                break;
        case 1:
                target->ops->kill(target);
                break;
        case 2:
        case 3:
                cancel((uint64_t)random() % ids);
                break;
        case 4:
                tr_mailbox_post_answer(&((struct tr_actor *)target)->mailbox, tr_answer_new(0, "\xc0", 1));
                break;
        case 5:
                now_ns += 25 * TR_NS_PER_MS;
                tr_system_run_due(fake.system, now_ns);
                break;
        default:
                if (random() % 3 && actors_count > 0)
                        turn_one((size_t)random() % actors_count);
                else
                        send_one(target);
                break;
        }
}

static void expect_one_outcome_each(int seed) {
        unsigned char seen[IDS] = { 0 };
        for (size_t i = 0; i < asker.count; i++)
                seen[asker.outcomes[i].id]++;
        for (uint64_t id = 0; id < ids; id++)
                ck_assert_msg(seen[id] == 1, "seed %d: request %lu has %u outcomes", seed, (unsigned long)id, seen[id]);
}

START_TEST(every_request_has_one_outcome) {
        tr_clock_set_source(driven_clock);
        for (int seed = 0; seed < SEEDS; seed++) {
                srandom((unsigned int)seed);
                fake_system_init(&fake, ACTORS);
                fake.system->hooks.run = run_here;
                fake_asker_init(&asker);
                ids = 0;
                actors_count = 0;
                for (int i = 0; i < ACTORS; i++)
                        start(i);
                for (int i = 0; i < STEPS; i++)
                        step();
                for (int i = 0; i < ACTORS; i++)
                        targets[i]->ops->kill(targets[i]);
                while (actors_count > 0)
                        turn_one(0);
                expect_one_outcome_each(seed);
                for (uint64_t id = 0; id < ids; id++)
                        tr_message_unref(pending[id]);
                for (int i = 0; i < ACTORS; i++)
                        tr_target_unref(targets[i]);
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker); /* nobody refers to it any more */
        }
}
END_TEST

suite_main("core/interleaving", every_request_has_one_outcome);
