/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is configured, without memory: each allocation from its first start to its second reload fails in turn. Whatever fails, it is
 * said or tried again, everything ends, and nothing is left (which AddressSanitizer's leak check sees).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/components.h"
#include "daemon/core/actor.h"
#include "daemon/drain.h"
#include "daemon/io/loop.h"
#include "daemon/pools.h"
#include "daemon/script/script.h"
#include "daemon/supervisor.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

static struct fake_shared shared;
static const struct tr_script script;
static struct tr_loop *loop;
static struct tr_system *system_;
static struct tr_supervisor *supervisor;
static struct tr_pools *pools;
static struct tr_configured_components *components;
static struct tr_drain *drain;
static bool drained;

static uint8_t args[] = { 0x01, 0x02 };
static struct tr_settings_actor actors[] = {
        { .actor = (char *)"one", .publish = (char *)"one", .restart = TR_RESTART_ON_FAULT },
        { .actor = (char *)"two", .name = (char *)"two", .args = { args, 2, 2 } },
        { .actor = (char *)"three", .publish = (char *)"one" },
};
static struct tr_settings_pool pool[] = {
        { .name = (char *)"pool", .actor = (char *)"one", .workers = 2, .args = { args, 2, 2 } },
        { .name = (char *)"pool", .actor = (char *)"one", .workers = 1 },
        { .name = (char *)"other", .actor = (char *)"one", .workers = 1 },
};
static struct tr_settings_component component[3];

static struct tr_manifest *read_manifest(const char *text) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        json_t *json = json_loads(text, 0, NULL);

        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
        return manifest;
}

static void on_wake(void *userdata) {
        tr_loop_wake(loop);
}

static void on_ready(void *userdata) {}

static void on_drained(void *userdata) {
        drained = true;
        tr_loop_stop(loop);
}

static void set_up(void) {
        const struct tr_system_limits limits = {
                .actors = 100, .actors_per_user = 100, .heap_bytes = 1 << 20, .heap_max_bytes = 1 << 30, .mailbox = 100,
                .mailbox_bytes = 1 << 20, .async = 10, .queue = 100, .grace_ns = TR_NEVER,
        };
        const struct tr_system_hooks hooks = { .wake = on_wake };

        fake_shared_init(&shared);
        ck_assert_int_eq(tr_actor_install_signal(), 0);
        ck_assert_int_eq(tr_loop_new(&loop), 0);
        ck_assert_int_eq(tr_system_new(&limits, &fake_behaviour, &shared, &hooks, &system_), 0);
        ck_assert_int_eq(tr_drain_new(loop, system_, on_drained, NULL, &drain), 0);
        tr_loop_attach(loop, system_);
}

static void tear_down(void) {
        if (supervisor)
                tr_supervisor_stop(supervisor);
        drained = false;
        tr_drain_start(drain, TR_NEVER);
        if (!drained)
                ck_assert_int_eq(tr_loop_run(loop), 0);
        tr_configured_components_free(components);
        tr_pools_free(pools);
        tr_supervisor_free(supervisor);
        supervisor = NULL;
        pools = NULL;
        components = NULL;
        tr_drain_free(drain);
        ck_assert_uint_eq(tr_system_free(system_), 0);
        tr_loop_free(loop);
        ck_assert_int_eq(atomic_load(&shared.opened), atomic_load(&shared.freed));
}

/* So many of each, from that one on. Not ck_assert(), which allocates. */
static void configure(size_t from, size_t count) {
        const struct tr_settings_actors wanted_actors = { &actors[from], count };
        const struct tr_settings_pools wanted_pools = { &pool[from], count };
        const struct tr_settings_components wanted_components = { &component[from], count };

        if (supervisor && tr_supervisor_reload(supervisor, &wanted_actors) < 0 && !failing_hit())
                abort();
        if (pools)
                tr_failure_unref(tr_pools_set(pools, &wanted_pools));
        if (components)
                tr_failure_unref(tr_configured_components_set(components, &wanted_components));
}

static void begin(void) {
        const struct tr_settings_actors none = { 0 };
        const struct tr_supervisor_options options = {
                .loop = loop, .system = system_, .actors = &none, .ready = on_ready,
        };
        const struct tr_configured_components_options component_options = {
                .loop = loop, .system = system_, .script = &script, .ready = on_ready,
        };

        if (tr_supervisor_new(&options, &supervisor) == 0)
                tr_supervisor_start(supervisor);
        else
                supervisor = NULL;
        if (tr_pools_new(system_, &script, &pools) < 0)
                pools = NULL;
        if (tr_configured_components_new(&component_options, &components) < 0)
                components = NULL;
}

START_TEST(each_allocation_fails_in_turn) {
        long after = 0;

        tr_log_set_level(TR_LOG_ERROR);
        tr_log_set_hook(NULL, NULL);
        component[0].manifest = read_manifest("{\"name\": \"a\", \"module\": \"mod\", \"operations\": {\"nothing\": {}}}");
        component[1].manifest =
                read_manifest("{\"name\": \"a\", \"module\": \"mod\", \"replicas\": 2, \"operations\": {\"echo\": {}, \"nothing\": {}}}");
        component[2].manifest = read_manifest("{\"name\": \"b\", \"operations\": {\"nothing\": {}}}");
        for (size_t i = 0; i < 3; i++)
                component[i].file = (char *)"file";
        do {
                set_up();
                failing_arm(++after);
                begin();
                configure(0, 1);
                configure(1, 1);
                configure(1, 2);
                configure(2, 0);
                failing_arm(0);
                tear_down();
        } while (failing_hit());
        ck_assert_int_gt(after, 30);
        for (size_t i = 0; i < 3; i++)
                tr_manifest_unref(component[i].manifest);
}
END_TEST

suite_main("reload_memory", each_allocation_fails_in_turn);
