/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a component: its name, its manifest, what it says of itself, how it ends.
 *
 * An orderly stop closes it to new calls, waits until what is in its lines is answered (and what was changed is written: that may have to
 * be run again), as long as anybody holds a name, tells its replicas to stop, and ends with the last of them. One reference is that of its
 * being alive, dropped in component_end(); each replica and each call has one, and the stop timer while it is set.
 */
#include "daemon/core/component.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/component_figures.h"
#include "daemon/core/component_slot.h"
#include "daemon/core/invocation.h"
#include "daemon/core/lost.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"

/* Names */

void tr_components_init(struct tr_components *components) {
        *components = (struct tr_components){ 0 };
        tr_lock_init(&components->lock);
}

void tr_components_deinit(struct tr_components *components) {
        tr_lock_deinit(&components->lock);
}

/* FNV-1a (Fowler, Noll, Vo). */
static struct tr_component **bucket_of(struct tr_components *components, const char *name, size_t len) {
        uint32_t hash = UINT32_C(2166136261);
        for (size_t i = 0; i < len; i++)
                hash = (hash ^ (uint8_t)name[i]) * UINT32_C(16777619);
        return &components->buckets[hash % (sizeof(components->buckets) / sizeof(components->buckets[0]))];
}

static struct tr_component *find_locked(struct tr_components *components, const char *name, size_t len)
        TR_REQUIRES(components->lock) {
        struct tr_component *component = *bucket_of(components, name, len);
        while (component && (strlen(component->target.label) != len || memcmp(component->target.label, name, len) != 0))
                component = component->next_by_name;
        return component;
}

struct tr_component *tr_component_find(struct tr_system *system, const char *name, size_t len) {
        tr_lock_acquire(&system->components.lock);
        /* It is listed as long as it is alive, which is a reference. */
        struct tr_component *component = find_locked(&system->components, name, len);
        if (component)
                tr_component_ref(component);
        tr_lock_release(&system->components.lock);
        return component;
}

int tr_components_list(struct tr_system *system, struct tr_component ***ret_components, size_t *ret_count) {
        struct tr_components *components = &system->components;
        size_t count = 0, at = 0;
        tr_lock_acquire(&components->lock);
        for (size_t i = 0; i < sizeof(components->buckets) / sizeof(components->buckets[0]); i++)
                for (struct tr_component *component = components->buckets[i]; component; component = component->next_by_name)
                        count++;
        struct tr_component **list = calloc(count + 1, sizeof(struct tr_component *));
        for (size_t i = 0; list && i < sizeof(components->buckets) / sizeof(components->buckets[0]); i++)
                for (struct tr_component *component = components->buckets[i]; component; component = component->next_by_name)
                        list[at++] = tr_component_ref(component);
        tr_lock_release(&components->lock);
        if (!list)
                return tr_error_origin(-ENOMEM);
        *ret_components = list;
        *ret_count = count;
        return 0;
}

static bool component_enlist(struct tr_component *component) {
        struct tr_components *components = &component->target.system->components;
        const char *name = component->target.label;
        tr_lock_acquire(&components->lock);
        bool is_free = !find_locked(components, name, strlen(name));
        if (is_free) {
                struct tr_component **bucket = bucket_of(components, name, strlen(name));
                component->next_by_name = *bucket;
                component->listed = true;
                *bucket = component;
        }
        tr_lock_release(&components->lock);
        return is_free;
}

static void component_delist(struct tr_component *component) {
        struct tr_components *components = &component->target.system->components;
        const char *name = component->target.label;
        tr_lock_acquire(&components->lock);
        if (component->listed) {
                struct tr_component **at = bucket_of(components, name, strlen(name));
                while (*at != component)
                        at = &(*at)->next_by_name;
                *at = component->next_by_name;
                component->listed = false;
        }
        tr_lock_release(&components->lock);
}

/* Who starts processes looks at it, where it has any. */
static void component_tell_crew(struct tr_component *component) {
        const struct tr_system_hooks *hooks = &component->target.system->hooks;
        tr_lock_acquire(&component->lock);
        component->has_crew |= component->manifest->process != NULL;
        bool tell = component->has_crew;
        tr_lock_release(&component->lock);
        if (tell && hooks->crew)
                hooks->crew(hooks->userdata, component);
}

void tr_component_enter_staff(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        component->staff++;
        tr_lock_release(&component->lock);
}

void tr_component_leave_staff(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        component->staff--;
        tr_lock_release(&component->lock);
        tr_component_try_end(component);
}

void tr_component_count_restarted(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        component->restarts_total++;
        tr_lock_release(&component->lock);
}

/* The manifest */

struct tr_manifest *tr_component_manifest(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        struct tr_manifest *manifest = tr_manifest_ref(component->manifest);
        tr_lock_release(&component->lock);
        return manifest;
}

uint32_t tr_component_line_locked(const struct tr_component *component, const char *operation) {
        const struct tr_manifest *manifest = component->manifest;
        const struct tr_operation *found = tr_manifest_find(manifest, operation, strlen(operation));
        return found ? (uint32_t)(found - manifest->operations) : UINT32_MAX;
}

static struct tr_component_line *lines_new(uint32_t count) {
        struct tr_component_line *lines = calloc(count ? count : 1, sizeof(*lines));
        for (uint32_t i = 0; lines && i < count; i++) {
                tr_list_init(&lines[i].calls);
                tr_list_init(&lines[i].tasks);
        }
        return lines;
}

static void component_set_limits(struct tr_component *component) {
        uint32_t queue = component->manifest->queue;
        component->waiting_max = queue ? queue : component->target.system->limits.queue;
}

/* Moves what waits in the lines of the old manifest to those of the new one; calls of operations that are gone go to the list. */
static void move_lines_locked(struct tr_component *component, struct tr_manifest *manifest, struct tr_component_line *lines,
                              struct tr_component_figures *figures, struct tr_list *gone) TR_REQUIRES(component->lock) {
        struct tr_manifest *before = component->manifest;
        for (uint32_t i = 0; i < before->operations_count; i++) {
                const char *name = before->operations[i].name;
                const struct tr_operation *after = tr_manifest_find(manifest, name, strlen(name));
                struct tr_list *to = after ? &lines[after - manifest->operations].calls : gone;
                struct tr_list *tasks_to = after ? &lines[after - manifest->operations].tasks : gone;
                struct tr_message *message;
                tr_list_for_each(message, &component->lines[i].calls, link) {
                        struct tr_invocation *invocation = message->invocation;
                        invocation->queued = after;
                        component->waiting -= !after;
                        component->in_lines -= !after;
                }
                tr_list_for_each(message, &component->lines[i].tasks, link) {
                        message->invocation->queued = after;
                        component->tasks.waiting -= !after;
                }
                tr_list_splice(to, &component->lines[i].calls);
                tr_list_splice(tasks_to, &component->lines[i].tasks);
                if (after)
                        figures[after - manifest->operations] = component->figures[i];
        }
        figures[manifest->operations_count] = component->figures[before->operations_count];
}

struct tr_failure *tr_component_replace(struct tr_component *component, struct tr_manifest *manifest) {
        struct tr_component_line *lines = lines_new(manifest->operations_count);
        struct tr_component_figures *figures = calloc(manifest->operations_count + 1, sizeof(*figures));
        struct tr_list gone = TR_LIST_INIT(gone);
        if (!lines || !figures || tr_component_make_slots(component, manifest->module ? manifest->replicas.count : 0) < 0) {
                free(lines);
                free(figures);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        tr_lock_acquire(&component->lock);
        struct tr_manifest *before = component->manifest;
        tr_entity_turns_restore(&component->turns);
        move_lines_locked(component, manifest, lines, figures, &gone);
        free(component->lines);
        free(component->figures);
        component->manifest = tr_manifest_ref(manifest);
        component->lines = lines;
        component->figures = figures;
        component_set_limits(component);
        tr_lock_release(&component->lock);
        tr_manifest_unref(before);
        tr_component_reject_all(component, &gone, TR_CODE_NOT_FOUND, "the component has no such operation any more");
        tr_lost_note_all(component);
        tr_component_renew_slots(component);
        component_tell_crew(component);
        tr_component_dispatch(component);
        return NULL;
}

/* The beginning */

static void component_free(struct tr_target *target) {
        struct tr_component *component = (struct tr_component *)target;
        tr_component_free_slots(component);
        tr_system_release_timer(target->system, &component->turns_timer);
        tr_component_tasks_deinit(component);
        tr_manifest_unref(component->manifest);
        free(component->lines);
        free(component->figures);
        tr_lock_deinit(&component->lock);
        tr_target_deinit(target);
        free(component);
}

static void on_stop_timer(struct tr_timer *timer) {
        struct tr_component *component = tr_container_of(timer, struct tr_component, stop_timer);
        component->target.ops->kill(&component->target);
        tr_component_unref(component);
}

static struct tr_component *component_new(struct tr_system *system, struct tr_manifest *manifest, uint32_t owner_uid,
                                          int32_t owner_pid) {
        struct tr_component *component = calloc(1, sizeof(*component));
        struct tr_component_line *lines = lines_new(manifest->operations_count);
        struct tr_component_figures *figures = calloc(manifest->operations_count + 1, sizeof(*figures));
        if (!component || !lines || !figures ||
            tr_target_init(&component->target, &tr_component_target_ops, system, owner_uid, manifest->name, "") < 0) {
                free(component);
                free(lines);
                free(figures);
                return NULL;
        }
        component->target.owner_pid = owner_pid;
        component->asker.ops = &tr_component_asker_ops;
        tr_lock_init(&component->lock);
        tr_list_init(&component->replicas);
        component->manifest = tr_manifest_ref(manifest);
        component->lines = lines;
        component->figures = figures;
        component->stop_timer.fire = on_stop_timer;
        component->turns_timer.fire = tr_component_pass_turns;
        tr_component_tasks_init(component);
        component_set_limits(component);
        return component;
}

struct tr_failure *tr_component_declare(struct tr_system *system, struct tr_session *session, struct tr_manifest *manifest,
                                        uint32_t owner_uid, int32_t owner_pid, struct tr_component **ret_component) {
        struct tr_component *component = component_new(system, manifest, owner_uid, owner_pid);
        struct tr_failure *failure = NULL;
        if (!component)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        if (tr_component_make_slots(component, manifest->module ? manifest->replicas.count : 0) < 0 ||
            tr_system_reserve_timer(system, &component->turns_timer) < 0 || tr_component_tasks_reserve(component) < 0 ||
            tr_registry_add(&system->registry, &component->target) < 0)
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        else if (!component_enlist(component))
                failure = tr_failure_new(TR_CODE_TAKEN, "there is a component %s already", manifest->name);
        if (failure) {
                tr_component_unref(component);
                return failure;
        }
        if (ret_component)
                *ret_component = tr_component_ref(component);
        tr_session_join(session, &component->target);
        tr_system_tell(system, &(struct tr_news){ .event = TR_EVENT_STARTED, .target = &component->target });
        tr_lost_begin(component); /* before anybody holds one of those names */
        tr_component_renew_slots(component);
        component_tell_crew(component);
        tr_component_tasks_begin(component);
        return NULL;
}

/* The end */

void tr_component_reject_all(struct tr_component *component, struct tr_list *calls, enum tr_code code, const char *sentence) {
        struct tr_message *message;
        if (tr_list_is_empty(calls))
                return;
        struct tr_failure *failure = tr_failure_new(code, "%s: %s", component->target.label, sentence);
        tr_list_for_each(message, calls, link) {
                tr_list_unlink(&message->link);
                tr_invocation_reject(message, failure, TR_RAN_MAYBE);
                tr_message_unref(message);
        }
        tr_failure_unref(failure);
}

void tr_component_take_tasks_locked(struct tr_component *component, struct tr_list *ret_tasks) {
        struct tr_message *message;
        tr_entity_turns_restore(&component->turns);
        for (uint32_t i = 0; i < component->manifest->operations_count; i++) {
                tr_list_for_each(message, &component->lines[i].tasks, link)
                        message->invocation->queued = false;
                tr_list_splice(ret_tasks, &component->lines[i].tasks);
        }
        component->tasks.waiting = 0;
}

static void take_lines_locked(struct tr_component *component, struct tr_list *ret_calls) TR_REQUIRES(component->lock) {
        struct tr_message *message;
        tr_entity_turns_restore(&component->turns);
        for (uint32_t i = 0; i < component->manifest->operations_count; i++)
                tr_list_splice(ret_calls, &component->lines[i].calls);
        tr_list_for_each(message, ret_calls, link)
                message->invocation->queued = false;
        component->waiting -= component->in_lines;
        component->in_lines = 0;
        tr_component_take_tasks_locked(component, ret_calls);
}

static void component_end(struct tr_component *component, bool killed, struct tr_list *calls) {
        struct tr_target *target = &component->target;
        struct tr_failure *failure = killed ? tr_failure_new(TR_CODE_KILLED, "the component was killed") : NULL;
        if (tr_system_clear_timer(target->system, &component->stop_timer))
                tr_component_unref(component);
        if (tr_system_clear_timer(target->system, &component->turns_timer))
                tr_component_unref(component);
        atomic_store_explicit(&target->gone, true, memory_order_relaxed);
        /* Before anybody is answered: who hears of the end may declare another one of the name at once. */
        component_delist(component);
        tr_component_reject_all(component, calls, killed ? TR_CODE_KILLED : TR_CODE_STOPPED, "the component has ended");
        tr_target_end(target, failure);
        tr_system_tell(target->system, &(struct tr_news){
                                               .event = killed ? TR_EVENT_KILLED : TR_EVENT_STOPPED,
                                               .target = target,
                                               .failure = failure,
                                       });
        tr_failure_unref(failure);
        component_tell_crew(component);
        tr_component_tasks_end(component);
        tr_component_unref(component);
}

/* A replica that was not told yet, and is from now on; a reference, or NULL: then nobody tells them any more. */
static struct tr_replica *component_next_to_stop(struct tr_component *component, bool *ret_kill) {
        struct tr_replica *replica, *found = NULL;
        tr_lock_acquire(&component->lock);
        tr_list_for_each(replica, &component->replicas, link)
                if (!replica->stop_told) {
                        found = tr_replica_ref(replica);
                        found->stop_told = true;
                        break;
                }
        component->telling = found;
        *ret_kill = component->killed;
        tr_lock_release(&component->lock);
        return found;
}

/* Tells all that were not told. One that ends by that comes here too, on the way to the component's end: it leaves the others to who is
 * here already, or they would all stand on one stack. */
static void component_stop_replicas(struct tr_component *component, enum tr_stop_reason reason) {
        struct tr_replica *replica;
        bool kill;
        tr_lock_acquire(&component->lock);
        bool others = component->telling;
        component->telling = true;
        tr_lock_release(&component->lock);
        while (!others && (replica = component_next_to_stop(component, &kill))) {
                if (kill)
                        replica->ops->kill(replica);
                else
                        replica->ops->stop(replica, reason);
                tr_replica_unref(replica);
        }
}

void tr_component_try_end(struct tr_component *component) {
        struct tr_list calls = TR_LIST_INIT(calls);
        tr_lock_acquire(&component->lock);
        bool stop = component->stopping && ((component->in_lines == 0 && component->writes == 0) || component->holding == 0);
        bool first = stop && !component->replicas_stopped;
        component->replicas_stopped |= stop;
        enum tr_stop_reason reason = component->stop_reason;
        tr_lock_release(&component->lock);
        if (!stop)
                return;
        tr_component_stop_slots(component);
        if (first)
                component_tell_crew(component);
        component_stop_replicas(component, reason);

        tr_lock_acquire(&component->lock);
        bool killed = component->killed;
        bool over = !component->over && tr_list_is_empty(&component->replicas) && component->staff == 0 &&
                    (component->writes == 0 || killed);
        if (over) {
                component->over = true;
                take_lines_locked(component, &calls);
        }
        tr_lock_release(&component->lock);
        if (over)
                component_end(component, killed, &calls);
}

static void component_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
        struct tr_component *component = (struct tr_component *)target;
        tr_lock_acquire(&component->lock);
        bool over = component->over;
        if (!component->stopping) {
                component->stopping = true;
                component->stop_reason = reason;
        }
        tr_lock_release(&component->lock);
        if (over)
                return;
        tr_component_tasks_stop(component);
        if (within_ns != TR_NEVER) {
                tr_component_ref(component);
                if (tr_system_set_timer(target->system, &component->stop_timer, tr_clock_deadline_ns(within_ns)) != 0)
                        tr_component_unref(component);
        }
        tr_component_try_end(component);
}

static void component_kill(struct tr_target *target) {
        struct tr_component *component = (struct tr_component *)target;
        struct tr_list calls = TR_LIST_INIT(calls);
        struct tr_replica *replica;
        tr_component_ref(component);
        tr_lock_acquire(&component->lock);
        bool first = !component->killed && !component->over;
        if (first) {
                component->killed = component->stopping = true;
                take_lines_locked(component, &calls);
                tr_list_for_each(replica, &component->replicas, link)
                        replica->stop_told = false;
        }
        tr_lock_release(&component->lock);
        tr_component_reject_all(component, &calls, TR_CODE_KILLED, "the component was killed");
        if (first) {
                component_stop_replicas(component, TR_STOP_ASKED);
                component_tell_crew(component);
                tr_component_try_end(component);
        }
        tr_component_unref(component);
}

static enum tr_post component_post(struct tr_target *target, struct tr_list *messages) {
        return TR_POST_CLOSED; /* it is called by its name, and has no handlers */
}

/* What it says of itself */

static void write_operations(const struct tr_manifest *manifest, struct tr_writer *writer) {
        static const char *const types[] = {
                [TR_OPERATION_COMPUTATION] = "computation", [TR_OPERATION_EFFECT] = "effect",
                [TR_OPERATION_OBSERVATION] = "observation", [TR_OPERATION_TRANSITION] = "transition",
                [TR_OPERATION_ASSIGNMENT] = "assignment",
        };
        tr_write_text(writer, "operations");
        tr_write_array(writer, manifest->operations_count);
        for (uint32_t i = 0; i < manifest->operations_count; i++) {
                const struct tr_operation *operation = &manifest->operations[i];
                tr_write_map(writer, operation->doc ? 4 : 3);
                tr_write_text(writer, "name");
                tr_write_text(writer, operation->name);
                tr_write_text(writer, "type");
                tr_write_text(writer, types[operation->type]);
                tr_write_text(writer, "stateful");
                tr_write_bool(writer, operation->stateful);
                if (operation->doc) {
                        tr_write_text(writer, "doc");
                        tr_write_string(writer, operation->doc, strlen(operation->doc));
                }
        }
}

static uint32_t component_info(struct tr_target *target, struct tr_writer *writer) {
        struct tr_component *component = (struct tr_component *)target;
        uint64_t calls = 0, faults = 0;
        tr_lock_acquire(&component->lock);
        struct tr_manifest *manifest = tr_manifest_ref(component->manifest);
        uint32_t waiting = component->waiting, waiting_max = component->waiting_max, holding = component->holding;
        const char *state = component->stopping ? "stopping" : holding > 0 ? "running" : "waiting";
        for (uint32_t i = 0; i < manifest->operations_count; i++) {
                calls += atomic_load_explicit(&component->figures[i].calls_total, memory_order_relaxed);
                faults += atomic_load_explicit(&component->figures[i].faults_total, memory_order_relaxed);
        }
        tr_lock_release(&component->lock);
        const struct {
                const char *key;
                uint64_t value;
        } figures[] = {
                { "running", holding },   { "mailbox", waiting }, { "mailbox_max", waiting_max },
                { "messages", calls }, { "faults", faults },
        };
        uint32_t pairs = 3;
        tr_write_text(writer, "state");
        tr_write_text(writer, state);
        tr_write_text(writer, "hash");
        tr_write_text(writer, manifest->hash);
        if (manifest->module) {
                tr_write_text(writer, "module");
                tr_write_text(writer, manifest->module);
                pairs++;
        }
        for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++, pairs++) {
                tr_write_text(writer, figures[i].key);
                tr_write_uint(writer, figures[i].value);
        }
        write_operations(manifest, writer);
        tr_manifest_unref(manifest);
        return pairs;
}

const struct tr_target_ops tr_component_target_ops = {
        .kind = TR_TARGET_COMPONENT,
        .post = component_post,
        .stop = component_stop,
        .kill = component_kill,
        .info = component_info,
        .free = component_free,
};
