/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from several threads, some taken back, some with deadlines, some addressed, while replicas are killed and the component is
 * replaced: each call ends in exactly one way, and nothing is left over.
 */
#define SUITE_TIMEOUT_S 300
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/stock.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

#define CALLERS 3
#define CALLS 4000
#define REPLICAS 4
/* Each slot may fail nine times within a minute before it is tried once a minute only. */
#define KILLS 24

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_component *component;
static _Atomic int callers_left;
static _Atomic int taken_back, refused_calls;

static struct tr_manifest *manifest_read(const char *module) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"name\": \"work\", \"module\": \"%s\", \"concurrency\": 8, \"queue\": 512, \"replicas\": "
                 "[{\"instance\": \"a\"}, {\"instance\": \"b\"}, {\"instance\": \"c\"}, {\"instance\": \"d\"}],"
                 " \"operations\": {\"nothing\": {}, \"count\": {\"stateful\": true}}}", module);
        json_t *json = json_loads(text, 0, NULL);
        int r = tr_manifest_read(json, "/", &problem, &manifest);
        ck_assert_msg(r == 0, "%s %s", problem.path, problem.reason);
        json_decref(json);
        return manifest;
}

static uint32_t next_random(uint32_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        return *state;
}

/* An outcome of the test's own, for calls that were never accepted. */
static void note(uint64_t id) {
        struct tr_message *message = fake_message(&asker, id, "nothing", 0);
        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "by the test");
        tr_message_reject(message, failure, TR_RAN_NO);
        tr_failure_unref(failure);
        tr_message_unref(message);
}

static void call(uint64_t id, uint32_t random) {
        static const char *const instances[] = { "a", "b", "c", "d" };
        bool addressed = random % 4 == 0, take_back = random % 7 == 0;
        const struct tr_call_options options = {
                .instance = addressed ? instances[random / 16 % 4] : NULL,
                .instance_len = addressed ? 1 : 0,
                .timeout_ns = random % 5 == 0 ? TR_NS_PER_MS : 0,
        };
        struct tr_message *message = tr_message_ref(fake_message(&asker, id, addressed ? "count" : "nothing", 1));
        struct tr_failure *failure = tr_component_call(component, message, &options);
        bool begun;
        if (failure) {
                ck_assert(failure->code == TR_CODE_ADDRESSEE || failure->code == TR_CODE_MAILBOX_FULL);
                tr_failure_unref(failure);
                tr_message_unref(message);
                atomic_fetch_add(&refused_calls, 1);
                note(id);
        } else if (take_back && tr_message_settle(message, &begun)) {
                tr_invocation_given_up(message);
                atomic_fetch_add(&taken_back, 1);
                note(id);
        }
        tr_message_unref(message);
}

static void *caller(void *data) {
        uint32_t number = (uint32_t)(uintptr_t)data, random = 2463534242u + number;
        for (uint32_t i = 0; i < CALLS; i++)
                call((uint64_t)number * CALLS + i, next_random(&random));
        tr_stock_hand_in();
        atomic_fetch_sub(&callers_left, 1);
        return NULL;
}

static void kill_one(uint32_t random) {
        struct tr_replica **replicas;
        uint32_t count;
        ck_assert_int_eq(tr_component_list_replicas(component, &replicas, &count), 0);
        struct tr_target *target = count > 0 ? tr_replica_target(replicas[random % count]) : NULL;
        if (target)
                target->ops->kill(target);
        tr_target_unref(target);
        for (uint32_t i = 0; i < count; i++)
                tr_replica_unref(replicas[i]);
        free(replicas);
}

static void replace(const char *module) {
        struct tr_manifest *manifest = manifest_read(module);
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
}

static bool never(void *userdata) {
        return true;
}

static bool is_idle(void *userdata) {
        tr_lock_acquire(&component->lock);
        bool idle = component->waiting == 0;
        struct tr_replica *replica;
        tr_list_for_each(replica, &component->replicas, link)
                idle &= replica->in_hand_count == 0;
        tr_lock_release(&component->lock);
        return idle;
}

/* A call is gone when all that was made for it is, which is a moment after it ended. */
static bool no_span_runs(void *userdata) {
        tr_lock_acquire(&fake.system->spans.lock);
        bool none = fake.system->spans.count == 0;
        tr_lock_release(&fake.system->spans.lock);
        return none;
}

START_TEST(each_call_ends_once) {
        pthread_t threads[CALLERS];
        uint32_t random = 88172645u;
        struct tr_manifest *manifest = manifest_read("mod");
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
        atomic_store(&callers_left, CALLERS);
        for (uintptr_t i = 0; i < CALLERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, caller, (void *)i), 0);
        for (int kills = 0; atomic_load(&callers_left) > 0 || kills < KILLS;) {
                fake_system_run_until(&fake, never, NULL);
                if (kills++ < KILLS)
                        kill_one(next_random(&random));
                if (kills % 8 == 0 && kills < KILLS)
                        replace(kills % 16 == 0 ? "mod" : "mod2");
        }
        for (size_t i = 0; i < CALLERS; i++)
                pthread_join(threads[i], NULL);
        fake_system_run_until_outcomes(&fake, &asker, (size_t)CALLERS * CALLS);
        fake_system_run_until(&fake, is_idle, NULL);

        ck_assert_uint_eq(asker.count, (size_t)CALLERS * CALLS);
        char *seen = calloc(CALLERS * CALLS, 1);
        size_t answered = 0;
        for (size_t i = 0; i < asker.count; i++) {
                ck_assert_int_eq(seen[asker.outcomes[i].id]++, 0);
                answered += asker.outcomes[i].resolved;
        }
        free(seen);
        ck_assert_uint_gt(answered, 0);
        ck_assert_int_gt(atomic_load(&taken_back), 0);
        fake_system_run_until(&fake, no_span_runs, NULL);
}
END_TEST

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
}

static void teardown(void) {
        tr_component_unref(component);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

suite_main_with("component_chaos", setup, teardown, each_call_ends_once);
