/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading: what is due of a component's tasks comes into its lines, at most so many at a time.
 *
 * The store is asked when something is due, by the clock that people have, and there is room: when the component is declared, when a task
 * comes or is to be run again, when half of those in hand are gone, and by one timer. There is one question at a time; what comes
 * meanwhile is looked at behind it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/component.h"
#include "daemon/core/component_figures.h"
#include "daemon/core/invocation.h"
#include "daemon/core/system.h"
#include "daemon/core/task_held.h"

/* Until what could not be done is tried again. */
#define AGAIN_NS TR_NS_PER_S
/* The clock by which tasks are due may be set, and goes on while the machine sleeps: it is looked at so often, where one waits. */
#define CLOCK_NS (60 * TR_NS_PER_S)
/* From how late on a delayed one is late, and has to wait for its share of a second. */
#define LATE_MS 1000

static void on_timer(struct tr_timer *timer);
static void on_loaded(struct tr_store_job *job);

void tr_component_tasks_init(struct tr_component *component) {
        struct tr_component_tasks *tasks = &component->tasks;
        tasks->asker.ops = &tr_task_asker_ops;
        tr_list_init(&tasks->held);
        tr_list_init(&tasks->unsaved);
        tasks->fresh = true;
        tasks->next_ms = TR_STORE_NEVER;
        tasks->timer.fire = on_timer;
}

int tr_component_tasks_reserve(struct tr_component *component) {
        return tr_system_reserve_timer(component->target.system, &component->tasks.timer);
}

void tr_component_tasks_deinit(struct tr_component *component) {
        tr_system_release_timer(component->target.system, &component->tasks.timer);
}

/* When */

void tr_component_tasks_time(struct tr_component *component, uint64_t at_ns) {
        tr_component_ref(component);
        if (tr_system_set_timer(component->target.system, &component->tasks.timer, at_ns) != 0)
                tr_component_unref(component);
}

/* What is asked: all that is due, as far as there is room. */
static void prepare_locked(struct tr_component *component, int64_t now_ms, uint64_t now_ns) TR_REQUIRES(component->lock) {
        struct tr_component_tasks *tasks = &component->tasks;
        if (tasks->late_since_ns == 0 || now_ns - tasks->late_since_ns >= TR_NS_PER_S) {
                tasks->late_since_ns = now_ns;
                tasks->late_left = TR_TASKS_LATE_PER_S;
        }
        tasks->load = (struct tr_store_job){
                .kind = TR_STORE_TASK_LOAD,
                .done = on_loaded,
                .component = component->target.label,
                .now_ms = now_ms,
                .limit = TR_TASKS_HELD_MAX - tasks->held_count,
                .late_limit = tasks->late_left,
                .fresh = tasks->fresh,
        };
        tasks->next_ms = TR_STORE_NEVER;
        tasks->loading = true;
}

void tr_component_tasks_look(struct tr_component *component) {
        struct tr_component_tasks *tasks = &component->tasks;
        struct tr_system *system = component->target.system;
        uint64_t now_ns = tr_clock_ns(), at_ns = 0;
        int64_t now_ms = tr_clock_wall_ms();
        bool load = false;
        if (!system->store)
                return;
        tr_lock_acquire(&component->lock);
        if (tasks->loading || component->stopping || tasks->next_ms == TR_STORE_NEVER)
                ;
        else if (tasks->next_ms > now_ms)
                at_ns = now_ns + ((uint64_t)(tasks->next_ms - now_ms) < CLOCK_NS / TR_NS_PER_MS
                                          ? (uint64_t)(tasks->next_ms - now_ms) * TR_NS_PER_MS
                                          : CLOCK_NS);
        else if (now_ns < tasks->not_before_ns)
                at_ns = tasks->not_before_ns;
        else
                load = tasks->held_count <= TR_TASKS_HELD_MAX / 2;
        if (load)
                prepare_locked(component, now_ms, now_ns);
        tr_lock_release(&component->lock);
        if (at_ns)
                tr_component_tasks_time(component, at_ns);
        if (load) {
                tr_component_ref(component);
                tr_store_submit(system->store, &tasks->load);
        }
}

void tr_component_tasks_due(struct tr_component *component, int64_t due_ms) {
        struct tr_component_tasks *tasks = &component->tasks;
        int64_t now_ms = tr_clock_wall_ms();
        tr_lock_acquire(&component->lock);
        if (due_ms < tasks->next_ms)
                tasks->next_ms = due_ms;
        if (due_ms <= now_ms)
                tasks->not_before_ns = 0; /* it is not one of those that have to wait */
        tr_lock_release(&component->lock);
        tr_component_tasks_look(component);
}

void tr_component_tasks_begin(struct tr_component *component) {
        tr_component_tasks_due(component, INT64_MIN);
}

/* What comes */

/* Too late already: it is gone. */
static void tell_expired(struct tr_component *component, const struct tr_store_task *task) {
        atomic_fetch_add_explicit(&component->tasks.expired_total, 1, memory_order_relaxed);
        tr_log(TR_LOG_WARNING, "component %s: the task %s of %s was not run in time, and is dropped", component->target.label, task->id,
               task->operation);
        tr_task_tell(component, &(struct tr_task_news){
                                        .event = TR_TASK_EXPIRED,
                                        .id = task->id,
                                        .component = component->target.label,
                                        .operation = task->operation,
                                        .attempt = task->runs,
                                        .uid = task->uid,
                                        .pid = task->pid,
                                });
}

/* The message that it is from now on, with its invocation. NULL, or why there is none. */
static struct tr_failure *make_message(struct tr_component *component, struct tr_manifest *manifest, const struct tr_operation *operation,
                                       const struct tr_store_task *task, struct tr_task_held *held, struct tr_message **ret_message) {
        size_t trace_len = task->trace ? strlen(task->trace) : 0;
        bool has_trace = task->trace && tr_traceparent_is_valid(task->trace, trace_len); /* people may write to the file */
        const struct tr_call_options options = {
                .id = task->entity,
                .id_len = task->entity ? strlen(task->entity) : 0,
                .trace = has_trace ? task->trace : NULL,
                .trace_len = trace_len,
                .uid = task->uid,
                .gid = task->gid,
                .pid = task->pid,
        };
        struct tr_message *message = tr_message_new(TR_MESSAGE_HANDLER, task->operation, strlen(task->operation), task->input,
                                                    task->input_bytes, 1);
        if (!message)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a task");
        message->form = TR_FORM_TYPED;
        message->caller_uid = task->uid;
        struct tr_failure *failure = tr_invocation_make_task(component, manifest, operation, message, &options, task->depth, held);
        if (!failure) {
                message->asker = &tr_component_ref(component)->tasks.asker;
                *ret_message = message;
                return NULL;
        }
        tr_message_unref(message);
        return failure;
}

/* What it may be run by: the contract may have changed since it was accepted. */
static struct tr_failure *check(const struct tr_manifest *manifest, const struct tr_operation *operation, const struct tr_store_task *task) {
        if (!operation)
                return tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s", manifest->name, task->operation);
        if (operation->stateful)
                return tr_contract_failure("request", "", "names no instance, and the operation is stateful", operation->name);
        if (task->runs >= manifest->attempts) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_UNDELIVERABLE, "the daemon ended while it ran");
                tr_failure_set_ran(failure, TR_RAN_MAYBE);
                return failure;
        }
        return NULL;
}

/* In its line, or not: the component stops, or has no such operation any more. */
static struct tr_failure *enqueue(struct tr_component *component, struct tr_message *message, struct tr_task_held *held) {
        struct tr_invocation *invocation = message->invocation;
        struct tr_failure *failure = NULL;
        tr_lock_acquire(&component->lock);
        invocation->line = tr_component_line_locked(component, invocation->operation->name);
        if (component->stopping) {
                failure = tr_failure_new(TR_CODE_STOPPED, "the component %s is stopping", component->target.label);
        } else if (invocation->line == UINT32_MAX) {
                failure = tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s any more", component->target.label,
                                         invocation->operation->name);
        } else {
                invocation->sequence = component->sequence++;
                atomic_fetch_add_explicit(&component->figures[invocation->line].calls_total, 1, memory_order_relaxed);
                tr_task_held_enlist_locked(held, message);
                tr_invocation_enqueue_locked(component, invocation, NULL);
        }
        tr_lock_release(&component->lock);
        return failure;
}

/* False: for want of memory, nothing has been done. */
static bool take(struct tr_component *component, const struct tr_store_task *task) {
        struct tr_message *message = NULL;
        struct tr_task_held *held = tr_task_held_new(component, task);
        if (!held)
                return false;
        struct tr_manifest *manifest = tr_component_manifest(component);
        const struct tr_operation *operation = tr_manifest_find(manifest, task->operation, strlen(task->operation));
        struct tr_failure *failure = check(manifest, operation, task);
        if (!failure)
                failure = make_message(component, manifest, operation, task, held, &message);
        bool no_memory = failure && failure->code == TR_CODE_NO_MEMORY;
        if (!no_memory && !message) {
                tr_task_held_park(held, failure);
        } else if (message) {
                failure = enqueue(component, message, held);
                if (failure)
                        tr_invocation_reject(message, failure, TR_RAN_NO);
                else
                        tr_task_held_watch(held, message);
        }
        tr_failure_unref(failure);
        tr_message_unref(message);
        tr_manifest_unref(manifest);
        tr_task_held_unref(held);
        return !no_memory;
}

/* All that was loaded, as far as there is memory; the rest waits for the timer. */
static void take_loaded(struct tr_component *component) {
        struct tr_component_tasks *tasks = &component->tasks;
        for (; tasks->taken < tasks->load.tasks_count; tasks->taken++) {
                const struct tr_store_task *task = &tasks->load.tasks[tasks->taken];
                if (task->expired) {
                        tell_expired(component, task);
                        continue;
                }
                if (take(component, task))
                        continue;
                tr_log(TR_LOG_ERROR, "component %s: out of memory for its tasks; it is tried again", component->target.label);
                tr_lock_acquire(&component->lock);
                tasks->left = true;
                tr_lock_release(&component->lock);
                tr_component_tasks_time(component, tr_clock_deadline_ns(AGAIN_NS));
                tr_component_dispatch(component);
                return;
        }
        bool any = tasks->taken > 0;
        tr_store_job_deinit(&tasks->load);
        tr_lock_acquire(&component->lock);
        tasks->loading = false;
        tr_lock_release(&component->lock);
        if (any) /* and else it is nobody's business here: what two threads deliver may come out of order */
                tr_component_dispatch(component);
        tr_component_tasks_look(component);
        tr_component_unref(component);
}

static uint32_t count_late(const struct tr_store_job *job) {
        uint32_t late = 0;
        for (uint32_t i = 0; i < job->tasks_count; i++)
                late += job->tasks[i].delayed && job->tasks[i].due_ms <= job->now_ms - LATE_MS;
        return late;
}

static void on_loaded(struct tr_store_job *job) {
        struct tr_component *component = tr_container_of(job, struct tr_component, tasks.load);
        struct tr_component_tasks *tasks = &component->tasks;
        uint32_t late = count_late(job);
        bool over = job->failure && job->failure->code == TR_CODE_SHUTTING_DOWN;
        tr_lock_acquire(&component->lock);
        if (job->failure) {
                tasks->next_ms = over ? TR_STORE_NEVER : INT64_MIN;
                tasks->not_before_ns = tr_clock_deadline_ns(AGAIN_NS);
        } else {
                tasks->fresh = false;
                if (job->next_ms < tasks->next_ms)
                        tasks->next_ms = job->next_ms;
                tasks->late_left -= late < tasks->late_left ? late : tasks->late_left;
                /* what is due, and did not come though there was room, is late, and has had its share */
                if (job->tasks_count < job->limit && tasks->next_ms <= job->now_ms)
                        tasks->not_before_ns = tasks->late_since_ns + TR_NS_PER_S;
        }
        tasks->taken = 0;
        tr_lock_release(&component->lock);
        take_loaded(component);
}

static void on_timer(struct tr_timer *timer) {
        struct tr_component *component = tr_container_of(timer, struct tr_component, tasks.timer);
        struct tr_component_tasks *tasks = &component->tasks;
        struct tr_list unsaved = TR_LIST_INIT(unsaved);
        struct tr_task_held *held;
        tr_lock_acquire(&component->lock);
        bool left = tasks->left;
        bool over = component->over;
        tasks->left = false;
        tr_list_splice(&unsaved, &tasks->unsaved);
        tr_lock_release(&component->lock);
        while ((held = tr_list_first(&unsaved, struct tr_task_held, link))) {
                tr_list_unlink(&held->link);
                if (over)
                        tr_task_held_unref(held); /* another of its name may have it in hand */
                else
                        tr_task_held_save(held);
        }
        if (left)
                take_loaded(component);
        else
                tr_component_tasks_look(component);
        tr_component_unref(component);
}

/* The end */

void tr_component_tasks_stop(struct tr_component *component) {
        struct tr_list tasks = TR_LIST_INIT(tasks);
        tr_lock_acquire(&component->lock);
        tr_component_take_tasks_locked(component, &tasks);
        tr_lock_release(&component->lock);
        tr_component_reject_all(component, &tasks, TR_CODE_STOPPED, "the component has ended");
}

void tr_component_tasks_end(struct tr_component *component) {
        struct tr_component_tasks *tasks = &component->tasks;
        tr_lock_acquire(&component->lock);
        bool is_needed = tasks->left || !tr_list_is_empty(&tasks->unsaved);
        tr_lock_release(&component->lock);
        if (!is_needed && tr_system_clear_timer(component->target.system, &tasks->timer))
                tr_component_unref(component);
}
