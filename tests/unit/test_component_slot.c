/* SPDX-License-Identifier: Apache-2.0 */
/* The replicas that a component starts itself: actors, here of a behaviour in C. */
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/component_slot.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_component *component;
static _Atomic int settled;

static struct tr_manifest *manifest_read(const char *module, const char *rest) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"name\": \"work\", \"module\": \"%s\", %s, \"operations\": {\"nothing\": {}, \"block\": {}, \"hold\": {},"
                 " \"fault\": {}, \"named\": {\"stateful\": true}}}",
                 module, rest);
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(json);
        int r = tr_manifest_read(json, "/", &problem, &manifest);
        ck_assert_msg(r == 0, "%s %s", problem.path, problem.reason);
        json_decref(json);
        return manifest;
}

static void on_settled(void *userdata) {
        settled++;
}

static void declare(const char *module, const char *rest) {
        struct tr_manifest *manifest = manifest_read(module, rest);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
        tr_component_when_settled(component, on_settled, NULL);
}

static void replace(const char *module, const char *rest) {
        struct tr_manifest *manifest = manifest_read(module, rest);
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
}

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        component = NULL;
        settled = 0;
}

static void teardown(void) {
        tr_component_unref(component);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

static uint32_t holding(void) {
        tr_lock_acquire(&component->lock);
        uint32_t count = component->holding;
        tr_lock_release(&component->lock);
        return count;
}

static uint32_t wanted;

static bool so_many_hold(void *userdata) {
        return holding() == wanted;
}

static void run_until_holding(uint32_t count) {
        wanted = count;
        fake_system_run_until(&fake, so_many_hold, NULL);
}

static void call(uint64_t id, const char *operation) {
        const struct tr_call_options options = { .uid = 0 };
        struct tr_message *message = fake_message(&asker, id, operation, 1);
        ck_assert_ptr_null(tr_component_call(component, message, &options));
}

/* A reference to the replica in a slot. */
static struct tr_replica *replica_at(uint32_t at) {
        struct tr_replica **replicas, *found = NULL;
        uint32_t count;
        ck_assert_int_eq(tr_component_list_replicas(component, &replicas, &count), 0);
        for (uint32_t i = 0; i < count; i++) {
                tr_lock_acquire(&component->lock);
                bool holds = replicas[i]->state == TR_REPLICA_HOLDING;
                tr_lock_release(&component->lock);
                if (replicas[i]->index == at && holds && !found)
                        found = tr_replica_ref(replicas[i]);
                tr_replica_unref(replicas[i]);
        }
        free(replicas);
        ck_assert_ptr_nonnull(found);
        return found;
}

static bool has_settled(void *userdata) {
        return settled > 0;
}

START_TEST(replicas_are_started_and_answer) {
        declare("mod", "\"replicas\": 3, \"concurrency\": 4");
        run_until_holding(3);
        fake_system_run_until(&fake, has_settled, NULL); /* a moment after the last one holds its name */
        ck_assert_int_eq(settled, 1);
        for (uint64_t i = 0; i < 300; i++)
                call(i, "nothing");
        fake_system_run_until_outcomes(&fake, &asker, 300);
        for (size_t i = 0; i < 300; i++)
                ck_assert(asker.outcomes[i].resolved);
}
END_TEST

START_TEST(names_and_arguments_are_the_manifest_s) {
        declare("mod", "\"replicas\": [{\"instance\": \"left\", \"args\": {\"port\": 1}}, {\"instance\": \"right\"}]");
        run_until_holding(2);
        struct tr_replica *left = replica_at(0), *right = replica_at(1);
        ck_assert_str_eq(left->instance, "left");
        ck_assert_str_eq(right->instance, "right");
        ck_assert_ptr_nonnull(left->started_as->args);
        ck_assert_ptr_null(right->started_as->args);
        tr_replica_unref(left);
        tr_replica_unref(right);
}
END_TEST

START_TEST(concurrency_is_kept) {
        declare("mod", "\"concurrency\": 2");
        run_until_holding(1);
        for (uint64_t i = 0; i < 5; i++)
                call(i, "hold");
        struct tr_replica *replica = replica_at(0);
        tr_lock_acquire(&component->lock);
        ck_assert_uint_eq(replica->in_hand_count, 2);
        ck_assert_uint_eq(component->waiting, 3);
        tr_lock_release(&component->lock);
        replica->target->ops->kill(replica->target);
        tr_replica_unref(replica);
}
END_TEST

START_TEST(one_that_is_killed_is_replaced_and_its_call_answered) {
        declare("mod", "\"concurrency\": 1");
        run_until_holding(1);
        call(1, "block");
        sem_wait(&fake.shared.entered);
        call(2, "nothing");
        struct tr_replica *first = replica_at(0);
        first->target->ops->kill(first->target);
        sem_post(&fake.shared.go); /* for the second attempt */
        fake_system_run_until_outcomes(&fake, &asker, 2);
        ck_assert(asker.outcomes[0].resolved && asker.outcomes[1].resolved);
        run_until_holding(1);
        struct tr_replica *second = replica_at(0);
        ck_assert_str_ne(first->instance, second->instance);
        tr_replica_unref(first);
        tr_replica_unref(second);
}
END_TEST

START_TEST(a_start_that_fails_is_tried_again) {
        declare("bad-init", "\"replicas\": 2");
        fake_system_run_until(&fake, has_settled, NULL);
        ck_assert_uint_eq(holding(), 0);
        call(1, "nothing");
        replace("mod", "\"replicas\": 2");
        run_until_holding(2);
        fake_system_run_until_outcomes(&fake, &asker, 1);
        ck_assert(asker.outcomes[0].resolved);
}
END_TEST

START_TEST(replaced_one_by_one_without_a_refused_call) {
        declare("mod", "\"replicas\": 3, \"concurrency\": 4");
        run_until_holding(3);
        for (uint64_t i = 0; i < 2000; i++) {
                if (i % 200 == 100)
                        replace(i % 400 == 100 ? "mod2" : "mod", "\"replicas\": 3, \"concurrency\": 4");
                call(i, "nothing");
                ck_assert_uint_ge(holding(), 3);
        }
        fake_system_run_until_outcomes(&fake, &asker, 2000);
        for (size_t i = 0; i < 2000; i++)
                ck_assert(asker.outcomes[i].resolved);
        run_until_holding(3);
}
END_TEST

static bool is_mod2(void *userdata) {
        struct tr_replica *replica = replica_at(0);
        bool is = strcmp(replica->manifest->module, "mod2") == 0;
        tr_replica_unref(replica);
        return is;
}

START_TEST(a_name_passes_to_its_successor) {
        declare("mod", "\"replicas\": [{\"instance\": \"left\"}]");
        run_until_holding(1);
        replace("mod2", "\"replicas\": [{\"instance\": \"left\"}]");
        fake_system_run_until(&fake, is_mod2, NULL);
        ck_assert_uint_eq(holding(), 1);
}
END_TEST

START_TEST(fewer_replicas) {
        declare("mod", "\"replicas\": 3");
        run_until_holding(3);
        replace("mod", "\"replicas\": 1");
        run_until_holding(1);
        replace("mod", "\"replicas\": 2");
        run_until_holding(2);
}
END_TEST

START_TEST(a_start_that_fails_leaves_the_one_before) {
        declare("mod", "\"replicas\": 1");
        run_until_holding(1);
        int faults = atomic_load(&fake.events[TR_EVENT_FAULTED]);
        replace("bad-init", "\"replicas\": 1");
        while (atomic_load(&fake.events[TR_EVENT_FAULTED]) == faults)
                sched_yield();
        ck_assert_uint_eq(holding(), 1);
        call(1, "nothing");
        fake_system_run_until_outcomes(&fake, &asker, 1);
        ck_assert(asker.outcomes[0].resolved);
}
END_TEST

static bool has_ended(void *userdata) {
        return tr_target_has_ended(&component->target);
}

START_TEST(an_orderly_stop_ends_its_replicas) {
        declare("mod", "\"replicas\": 4");
        run_until_holding(4);
        for (uint64_t i = 0; i < 100; i++)
                call(i, "nothing");
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        fake_system_run_until(&fake, has_ended, NULL);
        ck_assert_uint_eq(asker.count, 100);
        for (size_t i = 0; i < 100; i++)
                ck_assert(asker.outcomes[i].resolved);
        ck_assert_int_eq(atomic_load(&fake.shared.closed), 4);
}
END_TEST

START_TEST(a_stop_while_they_start) {
        declare("slow-init", "\"replicas\": 2");
        component->target.ops->stop(&component->target, TR_STOP_ASKED, 0);
        fake_system_run_until(&fake, has_ended, NULL);
        fake_system_run_until(&fake, has_settled, NULL);
        ck_assert_int_eq(settled, 1);
}
END_TEST

suite_main_with("component_slot", setup, teardown, replicas_are_started_and_answer, names_and_arguments_are_the_manifest_s,
                concurrency_is_kept, one_that_is_killed_is_replaced_and_its_call_answered, a_start_that_fails_is_tried_again,
                replaced_one_by_one_without_a_refused_call, a_name_passes_to_its_successor, fewer_replicas,
                a_start_that_fails_leaves_the_one_before, an_orderly_stop_ends_its_replicas, a_stop_while_they_start);
