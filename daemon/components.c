/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component is known by its name. Its module's hash is that of what was on disk when its replicas were last started or replaced: it
 * tells whether a reload finds another.
 *
 * That the first starts are over is told on whatever thread that happens, so it is counted in something that outlives whoever waits.
 */
#include "daemon/components.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/core/component.h"
#include "daemon/core/system.h"
#include "daemon/io/loop.h"
#include "daemon/script/script.h"
#include "proto/limits.h"

struct configured {
        struct tr_list link;
        struct tr_component *component; /* strong */
        char name[TR_NAME_MAX + 1];
        char hash[TR_MODULE_HASH_SIZE]; /* of its module; "": it has none, or there is none */
};

/* The first starts that are not over. */
struct countdown {
        _Atomic uint32_t refs;
        _Atomic uint32_t left; /* components, and one until all have been declared */
        struct tr_lock lock;
        struct tr_configured_components *components TR_GUARDED_BY(lock); /* NULL: nobody waits any more */
};

struct tr_configured_components {
        struct tr_configured_components_options options;
        struct tr_list list;
        struct countdown *countdown; /* strong */
        bool counted;                /* the first are declared */
        struct tr_work work;         /* the countdown is over */
};

/* Ready */

static void countdown_unref(struct countdown *countdown) {
        /* acq_rel: the last one sees all that the others did with it */
        if (!countdown || atomic_fetch_sub_explicit(&countdown->refs, 1, memory_order_acq_rel) != 1)
                return;
        tr_lock_deinit(&countdown->lock);
        free(countdown);
}

/* One is over. Any thread. Takes a reference. */
static void count_down(void *userdata) {
        struct countdown *countdown = userdata;

        /* acq_rel: the loop sees what whoever counted before has done */
        if (atomic_fetch_sub_explicit(&countdown->left, 1, memory_order_acq_rel) == 1) {
                tr_lock_acquire(&countdown->lock);
                if (countdown->components)
                        tr_loop_post(countdown->components->options.loop, &countdown->components->work);
                tr_lock_release(&countdown->lock);
        }
        countdown_unref(countdown);
}

static void count_in(struct countdown *countdown, struct tr_component *component) {
        /* relaxed: who copies a reference has one, and the count has its first one still */
        atomic_fetch_add_explicit(&countdown->refs, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&countdown->left, 1, memory_order_relaxed);
        tr_component_when_settled(component, count_down, countdown);
}

static void on_over(struct tr_work *work) {
        struct tr_configured_components *components = tr_container_of(work, struct tr_configured_components, work);

        components->options.ready(components->options.userdata);
}

/* Declaring */

static void module_hash(const struct tr_configured_components *components, const struct tr_manifest *manifest,
                        char ret_hash[TR_MODULE_HASH_SIZE]) {
        ret_hash[0] = '\0';
        if (manifest->module)
                tr_script_module_hash(components->options.script, manifest->module, ret_hash);
}

static struct configured *find(struct tr_configured_components *components, const char *name) {
        struct configured *configured;

        tr_list_for_each(configured, &components->list, link)
                if (strcmp(configured->name, name) == 0)
                        return configured;
        return NULL;
}

/* It is known no more. */
static void drop(struct configured *configured) {
        tr_list_unlink(&configured->link);
        tr_component_unref(configured->component);
        free(configured);
}

static struct tr_failure *declare(struct tr_configured_components *components, struct tr_manifest *manifest) {
        struct tr_system *system = components->options.system;
        struct configured *configured = calloc(1, sizeof(*configured));
        struct tr_failure *failure;

        if (!configured)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        module_hash(components, manifest, configured->hash);
        failure = tr_component_declare(system, system->daemon_session, manifest, system->own_uid, 0, &configured->component);
        if (failure) {
                free(configured);
                return failure;
        }
        memcpy(configured->name, manifest->name, strlen(manifest->name) + 1);
        tr_list_append(&components->list, &configured->link);
        return NULL;
}

static struct tr_failure *replace(struct tr_configured_components *components, struct configured *configured,
                                  struct tr_manifest *manifest) {
        struct tr_manifest *before = tr_component_manifest(configured->component);
        bool changed = strcmp(before->hash, manifest->hash) != 0;
        char hash[TR_MODULE_HASH_SIZE];
        struct tr_failure *failure;

        tr_manifest_unref(before);
        module_hash(components, manifest, hash);
        if (!changed && strcmp(hash, configured->hash) == 0)
                return NULL;
        tr_log(TR_LOG_INFO, "component %s: its %s has changed; its replicas are replaced", manifest->name,
               changed ? "manifest" : "module");
        failure = tr_component_replace(configured->component, manifest);
        if (!failure)
                memcpy(configured->hash, hash, sizeof(hash));
        return failure;
}

static struct tr_failure *set_one(struct tr_configured_components *components, struct tr_manifest *manifest) {
        struct configured *configured = find(components, manifest->name);

        if (configured && tr_target_has_ended(&configured->component->target)) {
                drop(configured);
                configured = NULL;
        }
        return configured ? replace(components, configured, manifest) : declare(components, manifest);
}

static bool is_among(const struct tr_settings_components *settings, const char *name) {
        for (size_t i = 0; i < settings->count; i++)
                if (strcmp(settings->list[i].manifest->name, name) == 0)
                        return true;
        return false;
}

static void remove_others(struct tr_configured_components *components, const struct tr_settings_components *settings) {
        struct configured *configured;

        tr_list_for_each(configured, &components->list, link) {
                struct tr_target *target = &configured->component->target;

                if (is_among(settings, configured->name))
                        continue;
                tr_log(TR_LOG_INFO, "component %s: it is not configured any more", configured->name);
                target->ops->stop(target, TR_STOP_ASKED, target->system->limits.grace_ns);
                drop(configured);
        }
}

int tr_configured_components_new(const struct tr_configured_components_options *options,
                                 struct tr_configured_components **ret_components) {
        struct tr_configured_components *components = calloc(1, sizeof(*components));
        struct countdown *countdown = calloc(1, sizeof(*countdown));

        if (!components || !countdown) {
                free(components);
                free(countdown);
                return tr_error_origin(-ENOMEM);
        }
        atomic_init(&countdown->refs, 1);
        atomic_init(&countdown->left, 1);
        tr_lock_init(&countdown->lock);
        countdown->components = components;
        components->options = *options;
        components->countdown = countdown;
        tr_list_init(&components->list);
        tr_work_init(&components->work, on_over);
        *ret_components = components;
        return 0;
}

/* The first time: those that are there are waited for. */
static void count_all_in(struct tr_configured_components *components) {
        struct countdown *countdown = components->countdown;
        struct configured *configured;

        if (components->counted)
                return;
        components->counted = true;
        tr_list_for_each(configured, &components->list, link)
                count_in(countdown, configured->component);
        atomic_fetch_add_explicit(&countdown->refs, 1, memory_order_relaxed);
        count_down(countdown);
}

struct tr_failure *tr_configured_components_set(struct tr_configured_components *components,
                                                const struct tr_settings_components *settings) {
        struct tr_failure *first = NULL;

        remove_others(components, settings);
        for (size_t i = 0; i < settings->count; i++) {
                struct tr_failure *failure = set_one(components, settings->list[i].manifest);

                if (!failure)
                        continue;
                tr_log(TR_LOG_ERROR, "configured component %s (%s): %s: %s", settings->list[i].manifest->name,
                       settings->list[i].file, tr_code_text(failure->code), failure->message);
                if (first)
                        tr_failure_unref(failure);
                else
                        first = failure;
        }
        count_all_in(components);
        return first;
}

void tr_configured_components_free(struct tr_configured_components *components) {
        struct configured *configured;

        if (!components)
                return;
        tr_list_for_each(configured, &components->list, link)
                drop(configured);
        tr_lock_acquire(&components->countdown->lock);
        components->countdown->components = NULL;
        tr_loop_forget(components->options.loop, &components->work);
        tr_lock_release(&components->countdown->lock);
        countdown_unref(components->countdown);
        free(components);
}
