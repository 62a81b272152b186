/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component without memory: each allocation from its declaration to its end fails in turn. Whatever fails, each call that was accepted
 * ends once, and nothing is left (which AddressSanitizer's leak check sees).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

enum { ORDINARY, ADDRESSED, TYPED, CALLS };

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_manifest *manifest;
/* Actors take their turns here. */
#define ACTORS_MAX 8
static struct tr_actor *actors[ACTORS_MAX];
static int actors_count;

static void run_here(void *userdata, struct tr_actor *actor) {
        if (actors_count == ACTORS_MAX) /* not ck_assert(), which allocates, and allocations may be failing */
                abort();
        actors[actors_count++] = actor;
}

/* Answers whether any is there that is not over. */
static bool turn(void) {
        bool any = false;
        for (int i = 0; i < actors_count; i++)
                if (!actors[i]->over) {
                        tr_actor_turn(actors[i]);
                        any = true;
                }
        return any;
}

static void read_manifest(void) {
        static const char text[] =
                "{\"name\": \"work\", \"module\": \"mod\", \"replicas\": [{\"instance\": \"one\"}], \"operations\":"
                " {\"nothing\": {}, \"echo\": {\"stateful\": true}, \"count\": {\"output\": {\"type\": \"integer\"}}}}";
        struct tr_manifest_problem problem = { 0 };
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
}

/* Answers whether it was accepted. */
static bool call(struct tr_component *component, struct tr_message *message, const char *instance) {
        const struct tr_call_options options = {
                .instance = instance, .instance_len = instance ? strlen(instance) : 0, .id = "7", .id_len = 1, .timeout_ns = TR_NS_PER_S,
        };
        struct tr_failure *failure = tr_component_call(component, message, &options);
        if (!failure)
                return true;
        ck_assert(failure->code == TR_CODE_NO_MEMORY || (instance && failure->code == TR_CODE_ADDRESSEE));
        tr_failure_unref(failure);
        tr_message_unref(message);
        return false;
}

/* What a component goes through; the messages are made before. */
static void live(struct tr_message *messages[CALLS], bool accepted[CALLS]) {
        struct tr_component *component;
        struct tr_failure *failure =
                tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component);
        if (failure) {
                ck_assert_int_eq(failure->code, TR_CODE_NO_MEMORY);
                tr_failure_unref(failure);
                for (int i = 0; i < CALLS; i++)
                        tr_message_unref(messages[i]);
                return;
        }
        turn();
        accepted[ORDINARY] = call(component, messages[ORDINARY], NULL);
        accepted[ADDRESSED] = call(component, messages[ADDRESSED], "one");
        accepted[TYPED] = call(component, messages[TYPED], NULL);
        for (int i = 0; i < CALLS; i++)
                turn();
        failure = tr_component_replace(component, manifest);
        tr_failure_unref(failure);
        struct tr_writer info = TR_WRITER_INIT;
        tr_target_write_info(&component->target, true, &info);
        tr_writer_deinit(&info);
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        while (turn())
                ;
        if (!tr_target_has_ended(&component->target))
                abort();
        tr_component_unref(component);
}

START_TEST(each_allocation_of_a_component_s_life_fails) {
        static const char *const operations[CALLS] = { "nothing", "echo", "count" };
        tr_stock_disable();
        read_manifest();
        long n = 0;
        do {
                struct tr_message *messages[CALLS];
                bool accepted[CALLS] = { 0 };
                unsigned int seen[CALLS] = { 0 };
                fake_system_init(&fake, 8);
                fake.system->hooks.run = run_here;
                fake_asker_init(&asker);
                actors_count = 0;
                for (uint64_t i = 0; i < CALLS; i++)
                        messages[i] = fake_message(&asker, i, operations[i], 1);
                failing_arm(++n);
                live(messages, accepted);
                failing_arm(0);
                for (size_t i = 0; i < asker.count; i++)
                        seen[asker.outcomes[i].id]++;
                for (int i = 0; i < CALLS; i++)
                        ck_assert_msg(seen[i] == accepted[i], "allocation %ld: call %d has %u outcomes", n, i, seen[i]);
                for (int i = 0; i < actors_count; i++)
                        tr_target_unref(&actors[i]->target); /* the thread's */
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker);
        } while (failing_hit());
        ck_assert_int_gt(n, 20);
        tr_manifest_unref(manifest);
}
END_TEST

suite_main("component_memory", each_allocation_of_a_component_s_life_fails);
