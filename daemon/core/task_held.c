/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One task in hand: how it begins, and how it ends.
 *
 * It ends when its message is settled, by an answer, its operation's timeout, its component's end, or because it is too late. What
 * follows on that is one job, which is made beforehand, so that no task is lost for want of memory. Where the store cannot do it, it is
 * tried again until it can, or the component or the daemon has ended: then the file says what it said before, that the task runs or
 * waits, and it is run when the component is declared again.
 */
#include "daemon/core/task_held.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/random.h"
#include "daemon/core/backoff.h"
#include "daemon/core/entity_use.h"
#include "daemon/core/invocation.h"
#include "daemon/core/system.h"

/* Until what the store could not write is tried again. */
#define SAVE_AGAIN_NS TR_NS_PER_S
/* The clock by which one expires may be set, and goes on while the machine sleeps: it is looked at so often. */
#define CLOCK_NS (60 * TR_NS_PER_S)

void tr_task_tell(struct tr_component *component, const struct tr_task_news *news) {
        const struct tr_system_hooks *hooks = &component->target.system->hooks;
        if (hooks->task)
                hooks->task(hooks->userdata, news);
}

static void held_tell(struct tr_task_held *held, enum tr_task_event event, uint32_t attempt, const struct tr_failure *cause) {
        tr_task_tell(held->component, &(struct tr_task_news){
                                              .event = event,
                                              .id = held->id,
                                              .component = held->component->target.label,
                                              .operation = held->operation,
                                              .attempt = attempt,
                                              .cause = cause,
                                              .uid = held->uid,
                                              .pid = held->pid,
                                      });
}

static void on_expiry(struct tr_timer *timer);

struct tr_task_held *tr_task_held_new(struct tr_component *component, const struct tr_store_task *task) {
        size_t bytes = strlen(task->operation) + 1;
        struct tr_task_held *held = calloc(1, sizeof(*held) + bytes);
        if (!held)
                return NULL;
        atomic_init(&held->refs, 1);
        held->component = tr_component_ref(component);
        tr_list_init(&held->link);
        memcpy(held->id, task->id, sizeof(held->id));
        memcpy(held->operation, task->operation, bytes);
        held->runs = task->runs;
        held->due_ms = task->due_ms;
        held->expires_ms = task->expires_ms;
        held->expiry.fire = on_expiry;
        if (task->expires_ms != TR_STORE_NEVER && tr_system_reserve_timer(component->target.system, &held->expiry) < 0) {
                tr_task_held_unref(held);
                return NULL;
        }
        held->uid = task->uid;
        held->pid = task->pid;
        return held;
}

struct tr_task_held *tr_task_held_ref(struct tr_task_held *held) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
        return held;
}

void tr_task_held_unref(struct tr_task_held *held) {
        if (!held || atomic_fetch_sub_explicit(&held->refs, 1, memory_order_acq_rel) != 1)
                return;
        tr_failure_unref(held->failure);
        tr_writer_deinit(&held->cause);
        tr_system_release_timer(held->component->target.system, &held->expiry);
        tr_component_unref(held->component);
        free(held);
}

void tr_task_held_enlist_locked(struct tr_task_held *held, struct tr_message *message) {
        struct tr_component_tasks *tasks = &held->component->tasks;
        held->message = message;
        tr_list_append(&tasks->held, &held->link);
        tasks->held_count++;
        held->counted = true;
}

/* The end */

static void on_saved(struct tr_store_job *job) {
        struct tr_task_held *held = tr_container_of(job, struct tr_task_held, end);
        struct tr_component *component = held->component;
        struct tr_component_tasks *tasks = &component->tasks;
        bool failed = job->failure && job->failure->code != TR_CODE_SHUTTING_DOWN;
        bool done = !job->failure;
        tr_store_job_deinit(job);
        if (failed) {
                tr_lock_acquire(&component->lock);
                failed = !component->over;
                if (failed)
                        tr_list_append(&tasks->unsaved, &held->link);
                tr_lock_release(&component->lock);
        }
        if (failed) {
                tr_component_tasks_time(component, tr_clock_deadline_ns(SAVE_AGAIN_NS));
                return;
        }
        if (done && held->event != TR_TASK_EVENTS_COUNT)
                held_tell(held, held->event, held->end.task.runs, held->failure);
        if (done && held->event == TR_TASK_PARKED && held->failure)
                tr_log(TR_LOG_WARNING, "component %s: the task %s of %s is parked after %" PRIu32 " runs: %s: %s",
                       component->target.label, held->id, held->operation, held->end.task.runs, tr_code_text(held->failure->code),
                       held->failure->message);
        if (done && held->event == TR_TASK_EXPIRED)
                tr_log(TR_LOG_WARNING, "component %s: the task %s of %s was not run in time, and is dropped", component->target.label,
                       held->id, held->operation);
        if (done && job->kind == TR_STORE_TASK_AGAIN)
                tr_component_tasks_due(component, job->due_ms);
        tr_task_held_unref(held);
}

void tr_task_held_save(struct tr_task_held *take_held) {
        tr_store_submit(take_held->component->target.system->store, &take_held->end);
}

/* What becomes of it: the kind of job, when it is due again, how often it has begun, what is told, and why. */
struct ending {
        enum tr_store_kind kind;
        int64_t due_ms;
        uint32_t runs;
        enum tr_task_event event;
        struct tr_failure *cause; /* NULL: as it was */
        bool forgotten;           /* the store need not know */
};

/* Without memory for it a task goes without its cause, which is said in the log. */
static void write_cause(struct tr_task_held *held, struct tr_failure *cause) {
        tr_failure_write_map(cause, cause->ran, &held->cause);
        if (tr_writer_error(&held->cause)) {
                tr_log(TR_LOG_ERROR, "component %s: out of memory for why the task %s failed: %s", held->component->target.label, held->id,
                       cause->message);
                return;
        }
        held->end.document = held->cause.data;
        held->end.document_bytes = held->cause.len;
}

/* Not in hand any more. Once. */
static void held_end(struct tr_task_held *held, const struct ending *ending) {
        struct tr_component *component = held->component;
        tr_lock_acquire(&component->lock);
        tr_list_unlink(&held->link);
        component->tasks.held_count -= held->counted;
        held->counted = false;
        bool forgotten = held->dropped || ending->forgotten;
        tr_lock_release(&component->lock);
        if (tr_system_clear_timer(component->target.system, &held->expiry))
                tr_message_unref(held->message); /* who ends it has another */
        if (!forgotten) {
                held->end = (struct tr_store_job){
                        .kind = ending->kind, .done = on_saved, .id = held->id, .due_ms = ending->due_ms, .task.runs = ending->runs,
                };
                held->event = ending->event;
                held->failure = ending->cause ? tr_failure_ref(ending->cause) : NULL;
                if (ending->cause && ending->kind != TR_STORE_TASK_END)
                        write_cause(held, ending->cause);
                if (ending->event == TR_TASK_EXPIRED)
                        atomic_fetch_add_explicit(&component->tasks.expired_total, 1, memory_order_relaxed);
                tr_task_held_save(tr_task_held_ref(held));
        }
        tr_component_tasks_look(component);
}

void tr_task_held_park(struct tr_task_held *held, struct tr_failure *failure) {
        held_end(held, &(struct ending){ .kind = TR_STORE_TASK_PARK, .runs = held->runs, .event = TR_TASK_PARKED, .cause = failure });
}

/* Runs that have come too late with what they changed are no failures of it. */
uint32_t tr_task_held_runs(const struct tr_invocation *invocation) {
        return invocation->task->runs + invocation->deliveries - (invocation->entity ? invocation->entity->conflicts : 0);
}

bool tr_task_held_may_go_on(const struct tr_invocation *invocation) {
        return tr_task_held_runs(invocation) < invocation->manifest->attempts;
}

/* That have begun, the one that is under way included. */
static uint32_t runs_begun(struct tr_invocation *invocation) {
        struct tr_component *component = invocation->component;
        tr_lock_acquire(&component->lock);
        uint32_t runs = tr_task_held_runs(invocation) + (invocation->delivery != NULL);
        tr_lock_release(&component->lock);
        return runs;
}

static int64_t pause_ms(uint32_t runs) {
        uint32_t random = 0;
        /* without randomness the jitter is the same for all, which is no reason not to run them again */
        (void)!tr_random_bytes(&random, sizeof(random));
        return (int64_t)(tr_backoff_pause_ns(TR_TASK_PAUSE_MIN_NS, TR_TASK_PAUSE_MAX_NS, runs, random) / TR_NS_PER_MS);
}

/* Its component, or who had it, ended, which is no failure of the task. It runs at once where somebody can. */
static void given_back(struct tr_invocation *invocation, struct tr_failure *failure, enum tr_ran ran) {
        struct tr_task_held *held = invocation->task;
        struct ending ending = { .kind = TR_STORE_TASK_AGAIN, .event = TR_TASK_EVENTS_COUNT, .due_ms = held->due_ms, .runs = held->runs };
        if (ran != TR_RAN_NO) {
                ending.runs = runs_begun(invocation);
                ending.due_ms = tr_clock_wall_ms();
        }
        if (ran != TR_RAN_NO && ending.runs >= invocation->manifest->attempts) {
                ending.kind = TR_STORE_TASK_PARK;
                ending.event = TR_TASK_PARKED;
                ending.cause = failure;
        }
        /* One that waits in the file, too, is loaded when the component is declared again. */
        tr_lock_acquire(&invocation->component->lock);
        ending.forgotten = !held->begun && ran == TR_RAN_NO && invocation->component->stopping;
        tr_lock_release(&invocation->component->lock);
        held_end(held, &ending);
}

/* What passes by itself, and has kept it from being run. */
static bool is_passing(enum tr_code code) {
        return code == TR_CODE_NO_MEMORY || code == TR_CODE_STORE || code == TR_CODE_MAILBOX_FULL || code == TR_CODE_LIMIT;
}

static void failed(struct tr_invocation *invocation, struct tr_failure *failure, enum tr_ran ran) {
        struct tr_task_held *held = invocation->task;
        struct ending ending = { .kind = TR_STORE_TASK_AGAIN, .event = TR_TASK_FAILED, .cause = failure, .runs = held->runs };
        bool parks = failure->code == TR_CODE_CONTRACT || failure->code == TR_CODE_NOT_FOUND || failure->code == TR_CODE_NOT_SENDABLE;
        if (ran != TR_RAN_NO)
                ending.runs = runs_begun(invocation);
        else if (!parks && !is_passing(failure->code))
                ending.runs++; /* it could not begin, and would not the next time */
        if (ran != TR_RAN_NO || !is_passing(failure->code))
                parks |= ending.runs >= invocation->manifest->attempts;
        if (parks) {
                ending.kind = TR_STORE_TASK_PARK;
                ending.event = TR_TASK_PARKED;
        } else {
                ending.due_ms = tr_clock_wall_ms() + pause_ms(ending.runs);
        }
        held_end(held, &ending);
}

static struct tr_component *component_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_component, tasks.asker);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        struct tr_invocation *invocation = message->invocation;
        held_end(invocation->task, &(struct ending){
                                           .kind = TR_STORE_TASK_END, .event = TR_TASK_FINISHED, .runs = runs_begun(invocation),
                                   });
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran, bool more) {
        struct tr_invocation *invocation = message->invocation;
        struct tr_task_held *held = invocation->task;
        tr_lock_acquire(&held->component->lock);
        bool expired = held->expired;
        tr_lock_release(&held->component->lock);
        if (expired) {
                held_end(held, &(struct ending){ .kind = TR_STORE_TASK_END, .event = TR_TASK_EXPIRED, .runs = tr_task_held_runs(invocation) });
                return;
        }
        switch (failure->code) {
        case TR_CODE_REFUSED: /* which its operation declares: that is an answer */
                held_end(held, &(struct ending){
                                       .kind = TR_STORE_TASK_END, .event = TR_TASK_FINISHED, .runs = runs_begun(invocation), .cause = failure,
                               });
                return;
        case TR_CODE_STOPPED:
        case TR_CODE_KILLED:
        case TR_CODE_NOT_RUNNING:
        case TR_CODE_DISCONNECTED:
        case TR_CODE_SHUTTING_DOWN:
                given_back(invocation, failure, ran);
                return;
        default:
                failed(invocation, failure, ran);
        }
}

static void on_ref(struct tr_asker *asker) {
        tr_component_ref(component_of(asker));
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        tr_target_unref_many(&component_of(asker)->target, count);
}

const struct tr_asker_ops tr_task_asker_ops = { .resolve = on_resolve, .reject = on_reject, .ref = on_ref, .unref = on_unref };

/* Time */

static void expire(struct tr_message *message) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_TIMEOUT, "it was not run in time");
        tr_invocation_reject(message, failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
}

/* Whether it is too late: it is to be taken out of its line then, or not to be delivered. */
static bool is_late_locked(struct tr_task_held *held) {
        held->expired = held->expires_ms <= tr_clock_wall_ms();
        return held->expired;
}

/* The clock by which it expires is not that of timers, and may be set. */
static uint64_t expiry_ns(int64_t expires_ms) {
        int64_t now_ms = tr_clock_wall_ms();
        uint64_t left_ms = expires_ms > now_ms ? (uint64_t)expires_ms - (uint64_t)now_ms : 0;
        return tr_clock_deadline_ns(left_ms < CLOCK_NS / TR_NS_PER_MS ? left_ms * TR_NS_PER_MS : CLOCK_NS);
}

static void watch(struct tr_task_held *held, struct tr_message *message, int64_t expires_ms) {
        struct tr_system *system = held->component->target.system;
        tr_message_ref(message);
        if (tr_system_set_timer(system, &held->expiry, expiry_ns(expires_ms)) != 0)
                tr_message_unref(message);
        else if (tr_message_state(message) == TR_MESSAGE_SETTLED && tr_system_clear_timer(system, &held->expiry))
                tr_message_unref(message); /* whoever settled it may have looked for the timer before it was there */
}

/* On the loop thread, with the timer's reference. */
static void on_expiry(struct tr_timer *timer) {
        struct tr_task_held *held = tr_container_of(timer, struct tr_task_held, expiry);
        struct tr_component *component = held->component;
        tr_lock_acquire(&component->lock);
        struct tr_message *message = held->message;
        int64_t expires_ms = held->expires_ms;
        bool late = message->invocation->queued && is_late_locked(held);
        tr_lock_release(&component->lock);
        if (late)
                expire(message);
        else if (expires_ms != TR_STORE_NEVER && expires_ms > tr_clock_wall_ms())
                watch(held, message, expires_ms);
        tr_message_unref(message);
}

void tr_task_held_watch(struct tr_task_held *held, struct tr_message *message) {
        tr_lock_acquire(&held->component->lock);
        int64_t expires_ms = held->expires_ms;
        tr_lock_release(&held->component->lock);
        if (expires_ms != TR_STORE_NEVER)
                watch(held, message, expires_ms);
}

/* The beginning */

static void on_begun(struct tr_store_job *job) {
        struct tr_task_held *held = tr_container_of(job, struct tr_task_held, begin);
        /* Where it could not be written nothing is lost: the file has it as one that waits, and so it is run. */
        tr_store_job_deinit(job);
        tr_lock_acquire(&held->component->lock);
        held->beginning = false;
        tr_lock_release(&held->component->lock);
        tr_task_held_unref(held);
}

bool tr_task_held_begin(struct tr_invocation *invocation) {
        struct tr_task_held *held = invocation->task;
        struct tr_component *component = invocation->component;
        uint64_t timeout_ns = invocation->operation->timeout_ms * TR_NS_PER_MS;
        tr_lock_acquire(&component->lock);
        bool late = is_late_locked(held);
        uint32_t runs = tr_task_held_runs(invocation) + 1;
        /* A second run before the store has heard of the first: it will hear of both when they end. */
        bool tell_store = !late && !held->beginning;
        if (tell_store) {
                held->begun = held->beginning = true;
                held->begin = (struct tr_store_job){ .kind = TR_STORE_TASK_BEGIN, .done = on_begun, .id = held->id, .task.runs = runs };
        }
        if (!late)
                invocation->deadline_ns = timeout_ns ? tr_clock_deadline_ns(timeout_ns) : TR_NEVER;
        tr_lock_release(&component->lock);
        if (late) {
                expire(invocation->message);
                return false;
        }
        if (tell_store) {
                tr_task_held_ref(held);
                tr_store_submit(component->target.system->store, &held->begin);
        }
        /* behind that: its end may come at once */
        if (tr_system_clear_timer(component->target.system, &invocation->timer)) /* a run's before this one */
                tr_message_unref(invocation->message);
        tr_invocation_set_deadline(invocation);
        held_tell(held, TR_TASK_STARTED, runs, NULL);
        return true;
}

/* What people ask */

/* NULL: it is not in hand. */
static struct tr_task_held *find_locked(struct tr_component *component, const char *id) {
        struct tr_task_held *held;
        tr_list_for_each(held, &component->tasks.held, link)
                if (strcmp(held->id, id) == 0)
                        return held;
        return NULL;
}

void tr_component_tasks_retry(struct tr_component *component, const char *id) {
        tr_lock_acquire(&component->lock);
        struct tr_task_held *held = find_locked(component, id);
        if (held)
                held->expires_ms = TR_STORE_NEVER;
        tr_lock_release(&component->lock);
        if (!held)
                tr_component_tasks_due(component, tr_clock_wall_ms());
}

void tr_component_tasks_drop(struct tr_component *component, const char *id) {
        struct tr_message *message = NULL;
        tr_lock_acquire(&component->lock);
        struct tr_task_held *held = find_locked(component, id);
        if (held) {
                held->dropped = true;
                if (held->message->invocation->queued)
                        message = tr_message_ref(held->message); /* the queue has one */
        }
        tr_lock_release(&component->lock);
        if (!message)
                return;
        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "it was dropped");
        tr_invocation_reject(message, failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
        tr_message_unref(message);
}
