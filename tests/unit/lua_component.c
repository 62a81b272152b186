/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_component.h"

#include <check.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/component.h"
#include "daemon/core/replica.h"
#include "daemon/core/system.h"
#include "daemon/store/sqlite_store.h"

static struct tr_manifest *manifest_of(const char *json) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        json_t *value = json_loads(json, 0, NULL);
        int r;

        ck_assert_msg(value, "no JSON: %s", json);
        r = tr_manifest_read(value, "/", &problem, &manifest);
        ck_assert_msg(r == 0, "%s %s", problem.path ?: "", problem.reason ?: "");
        json_decref(value);
        return manifest;
}

static void close_store(struct lua_fixture *fixture) {
        tr_sqlite_store_close(fixture->store);
        tr_sqlite_store_free(fixture->store);
}

void lua_component_store(struct lua_fixture *fixture) {
        struct tr_sqlite_store *store;
        char *why = NULL;

        ck_assert_msg(tr_sqlite_store_new(NULL, &store, &why) == 0, "no store: %s", why ?: "");
        fixture->store = store;
        fixture->before_free = close_store;
        fixture->system->store = tr_sqlite_store_interface(store);
}

void lua_component_declare(struct lua_fixture *fixture, const char *json) {
        struct tr_manifest *manifest = manifest_of(json);
        struct tr_failure *failure;

        failure = tr_component_declare(fixture->system, fixture->system->daemon_session, manifest, getuid(), 0, NULL);
        ck_assert_msg(!failure, "declare: %s", failure ? failure->message : "");
        tr_manifest_unref(manifest);
}

void lua_component_replace(struct lua_fixture *fixture, const char *name, const char *json) {
        struct tr_component *component = tr_component_find(fixture->system, name, strlen(name));
        struct tr_manifest *manifest = manifest_of(json);
        struct tr_failure *failure;

        ck_assert_ptr_nonnull(component);
        failure = tr_component_replace(component, manifest);
        ck_assert_msg(!failure, "replace: %s", failure ? failure->message : "");
        tr_component_unref(component);
        tr_manifest_unref(manifest);
}

struct tr_target *lua_component_replica(struct lua_fixture *fixture, const char *component, const char *json) {
        static const struct tr_replica_ops none;
        struct tr_manifest *manifest = manifest_of(json);
        struct tr_component *joined = tr_component_find(fixture->system, component, strlen(component));
        const struct tr_replica_options options = { .ops = &none, .manifest = manifest, .kind = "module", .whole_entities = true };
        struct tr_actor_options actor = { 0 };
        struct tr_failure *failure;
        struct tr_target *target;

        ck_assert_ptr_nonnull(joined);
        failure = tr_replica_join(joined, &options, NULL, &actor.replica);
        ck_assert_msg(!failure, "join: %s", failure ? failure->message : "");
        target = lua_fixture_spawn(fixture, manifest->module, &actor);
        tr_replica_died(actor.replica);
        tr_replica_unref(actor.replica);
        tr_component_unref(joined);
        tr_manifest_unref(manifest);
        return target;
}
