/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepting tasks, and what people ask of them. Whoever asks is answered from the store's thread, when what he is told is on disk.
 */
#include "daemon/core/task.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/entity_use.h"
#include "daemon/core/invocation.h"
#include "daemon/core/system.h"
#include "daemon/core/task_held.h"
#include "proto/limits.h"

const char *tr_task_event_text(enum tr_task_event event) {
        static const char *const texts[TR_TASK_EVENTS_COUNT] = {
                [TR_TASK_ACCEPTED] = "accepted", [TR_TASK_STARTED] = "started", [TR_TASK_FINISHED] = "finished",
                [TR_TASK_FAILED] = "failed",     [TR_TASK_PARKED] = "parked",   [TR_TASK_EXPIRED] = "expired",
                [TR_TASK_DROPPED] = "dropped",   [TR_TASK_RETRIED] = "retried",
        };
        return texts[event];
}

/* From here on nobody can say that it was not done. Where it was settled before nothing is: false, and the reference is gone. */
static bool begin(struct tr_message *take_message) {
        if (tr_message_begin(take_message))
                return true;
        assert(tr_message_state(take_message) == TR_MESSAGE_SETTLED);
        tr_message_unref(take_message);
        return false;
}

/* Accepting */

/* One that is on its way to the store. */
struct accepting {
        struct tr_store_job job;
        struct tr_component *component; /* strong */
        struct tr_message *message;     /* strong: the operation and the input are its */
        char key[TR_STORE_TEXT_MAX + 1];
        char entity[TR_STORE_TEXT_MAX + 1];
        char trace[TR_TRACEPARENT_LEN + 1];
};

static struct tr_failure *check_text(const char *what, const char *text, size_t len) {
        if (!text || tr_store_text_is_valid(text, len))
                return NULL;
        return tr_failure_new(TR_CODE_BAD_REQUEST, "task: the option %s has to be 1 to %d bytes of UTF-8 without control characters", what,
                              TR_STORE_TEXT_MAX);
}

static struct tr_failure *check_options(const struct tr_task_options *options) {
        struct tr_failure *failure = check_text("key", options->key, options->key_len);
        if (!failure)
                failure = check_text("id", options->id, options->id_len);
        if (failure)
                return failure;
        if (options->delay_ms > 0 && options->at_ms != 0)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "task: it has a delay or a time (at), and not both");
        if (options->expires_ms > 0 && options->delay_ms == 0 && options->at_ms == 0)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "task: only one that is delayed (delay, at) expires");
        return NULL;
}

static struct tr_failure *check(struct tr_component *component, struct tr_manifest *manifest, const struct tr_task_options *options,
                                struct tr_message *message) {
        const struct tr_operation *operation = tr_manifest_find(manifest, tr_message_handler(message), message->handler_len);
        const struct tr_call_options as_call = {
                .instance = options->instance,
                .instance_len = options->instance_len,
                .id = options->id,
                .id_len = options->id_len,
        };
        struct tr_failure *failure = check_options(options);
        if (failure)
                return failure;
        if (!operation)
                return tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s", manifest->name,
                                      tr_message_handler(message));
        if (operation->stateful)
                return tr_contract_failure("request", "", "is a task, and the operation is stateful", operation->name);
        failure = tr_operation_check_addressing(operation, &as_call);
        if (!failure)
                failure = tr_entity_use_check(component, operation, &as_call);
        if (!failure)
                failure = tr_operation_check_input(operation, message);
        return failure;
}

/* Where it stands in its chain of calls: one deeper than what asks for it. */
static struct tr_failure *place(struct accepting *accepting, const struct tr_task_options *options) {
        struct tr_spans *spans = &accepting->component->target.system->spans;
        struct tr_span_id span;
        if (tr_spans_begin(spans, options->trace, &span) != 0)
                return tr_failure_new(TR_CODE_LOOP, "%s.%s: a chain of calls deeper than %d", accepting->component->target.label,
                                      tr_message_handler(accepting->message), TR_CHAIN_MAX);
        if (options->trace)
                memcpy(accepting->trace, options->trace, TR_TRACEPARENT_LEN);
        else
                tr_traceparent_write(&span, accepting->trace);
        accepting->job.task.depth = span.depth;
        tr_spans_end(spans, &span);
        return NULL;
}

static int64_t later_ms(int64_t from_ms, uint64_t by_ms) {
        int64_t at_ms;
        return by_ms > INT64_MAX || __builtin_add_overflow(from_ms, (int64_t)by_ms, &at_ms) ? TR_STORE_NEVER : at_ms;
}

static const char *copy_text(char room[static TR_STORE_TEXT_MAX + 1], const char *text, size_t len) {
        if (!text)
                return NULL;
        memcpy(room, text, len);
        return room;
}

/* Whoever has the name by now has it to run: the component that it was accepted for may have ended, and been declared again, meanwhile. */
static void note_due(struct tr_component *component, int64_t due_ms) {
        const char *name = component->target.label;
        struct tr_component *present = tr_component_find(component->target.system, name, strlen(name));
        if (present)
                tr_component_tasks_due(present, due_ms);
        tr_component_unref(present);
}

static void on_accepted(struct tr_store_job *job) {
        struct accepting *accepting = tr_container_of(job, struct accepting, job);
        struct tr_component *component = accepting->component;
        if (job->failure) {
                tr_message_reject(accepting->message, job->failure, TR_RAN_NO);
        } else {
                if (!job->found)
                        tr_task_tell(component, &(struct tr_task_news){
                                                        .event = TR_TASK_ACCEPTED,
                                                        .id = job->new_id,
                                                        .component = component->target.label,
                                                        .operation = job->task.operation,
                                                        .uid = job->task.uid,
                                                        .pid = job->task.pid,
                                                });
                tr_message_resolve(accepting->message, job->value, job->value_bytes, false);
                if (!job->found)
                        note_due(component, job->task.due_ms);
        }
        tr_message_unref(accepting->message);
        tr_component_unref(component);
        tr_store_job_deinit(job);
        free(accepting);
}

static void fill(struct accepting *accepting, const struct tr_task_options *options) {
        struct tr_store_task *task = &accepting->job.task;
        const struct tr_message *message = accepting->message;
        int64_t now_ms = tr_clock_wall_ms();
        accepting->job.kind = TR_STORE_TASK_ADD;
        accepting->job.done = on_accepted;
        task->component = accepting->component->target.label;
        task->operation = tr_message_handler(message);
        task->input = tr_message_args(message);
        task->input_bytes = message->args_bytes;
        task->key = copy_text(accepting->key, options->key, options->key_len);
        task->entity = copy_text(accepting->entity, options->id, options->id_len);
        task->trace = accepting->trace;
        task->uid = options->uid;
        task->gid = options->gid;
        task->pid = options->pid;
        task->delayed = options->delay_ms > 0 || options->at_ms != 0;
        task->due_ms = options->at_ms > now_ms ? options->at_ms : later_ms(now_ms, options->delay_ms);
        task->expires_ms = options->expires_ms > 0 ? later_ms(task->due_ms, options->expires_ms) : TR_STORE_NEVER;
}

struct tr_failure *tr_task_accept(struct tr_component *component, const struct tr_task_options *options,
                                  struct tr_message *take_message) {
        struct tr_store *store = component->target.system->store;
        if (!store)
                return tr_store_none(component->target.system);
        struct tr_manifest *manifest = tr_component_manifest(component);
        struct tr_failure *failure = check(component, manifest, options, take_message);
        tr_manifest_unref(manifest);
        if (failure)
                return failure;
        struct accepting *accepting = calloc(1, sizeof(*accepting));
        if (!accepting)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a task");
        accepting->component = component;
        accepting->message = take_message;
        failure = place(accepting, options);
        if (failure || !begin(take_message)) {
                free(accepting);
                return failure;
        }
        tr_component_ref(component);
        fill(accepting, options);
        tr_store_submit(store, &accepting->job);
        return NULL;
}

/* Asking */

struct asking {
        struct tr_store_job job;
        struct tr_system *system;
        struct tr_message *message; /* strong */
        char component[TR_NAME_MAX + 1];
        char state[8];
        char id[TR_STORE_ID_LEN + 1];
};

/* It was retried, or dropped. Of what is known of it the store has said what is told. */
static void follow(const struct asking *asking) {
        const struct tr_store_job *job = &asking->job;
        bool dropped = job->kind == TR_STORE_TASK_DROP;
        struct tr_component *component = tr_component_find(asking->system, job->task_component, strlen(job->task_component));
        if (component && dropped)
                tr_component_tasks_drop(component, asking->id);
        else if (component)
                tr_component_tasks_retry(component, asking->id);
        tr_component_unref(component);
        if ((dropped || job->found) && asking->system->hooks.task)
                asking->system->hooks.task(asking->system->hooks.userdata,
                                           &(struct tr_task_news){
                                                   .event = dropped ? TR_TASK_DROPPED : TR_TASK_RETRIED,
                                                   .id = asking->id,
                                                   .component = job->task_component,
                                                   .operation = job->task_operation,
                                                   .uid = job->task_uid,
                                           });
}

static void on_asked(struct tr_store_job *job) {
        static const uint8_t nil[] = { 0xc0 };
        struct asking *asking = tr_container_of(job, struct asking, job);
        if (job->failure) {
                tr_message_reject(asking->message, job->failure, TR_RAN_NO);
        } else if (job->kind == TR_STORE_TASK_LIST) {
                tr_store_resolve(asking->message, job);
        } else {
                follow(asking);
                tr_message_resolve(asking->message, nil, sizeof(nil), false);
        }
        tr_message_unref(asking->message);
        tr_store_job_deinit(job);
        free(asking);
}

static bool is_state(const char *text, size_t len) {
        static const char *const states[] = { "waiting", "running", "parked" };
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                if (strlen(states[i]) == len && memcmp(states[i], text, len) == 0)
                        return true;
        return false;
}

static bool is_id(const char *text, size_t len) {
        for (size_t i = 0; i < len; i++)
                if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
                        return false;
        return len == TR_STORE_ID_LEN;
}

static struct tr_failure *check_request(const struct tr_tasks_request *request) {
        if (request->kind != TR_STORE_TASK_LIST)
                return is_id(request->id, request->id_len)
                               ? NULL
                               : tr_failure_new(TR_CODE_NOT_FOUND, "there is no task %.*s", (int)request->id_len, request->id);
        if (request->state && !is_state(request->state, request->state_len))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "tasks: the option state has to be waiting, running or parked");
        if (request->component && request->component_len > TR_NAME_MAX)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "tasks: the option component has to be a name");
        return NULL;
}

/* NUL-terminated, or NULL. */
static const char *copy(char *room, const char *text, size_t len) {
        if (!text)
                return NULL;
        memcpy(room, text, len);
        return room;
}

struct tr_failure *tr_tasks_ask(struct tr_system *system, const struct tr_tasks_request *request, struct tr_message *take_message) {
        struct tr_failure *failure = system->store ? check_request(request) : tr_store_none(system);
        if (failure)
                return failure;
        struct asking *asking = calloc(1, sizeof(*asking));
        if (!asking)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a question to the store");
        if (!begin(take_message)) {
                free(asking);
                return NULL;
        }
        asking->system = system;
        asking->message = take_message;
        asking->job.kind = request->kind;
        asking->job.done = on_asked;
        asking->job.component = copy(asking->component, request->component, request->component_len);
        asking->job.state = copy(asking->state, request->state, request->state_len);
        asking->job.id = copy(asking->id, request->id, request->id_len);
        asking->job.now_ms = tr_clock_wall_ms();
        tr_store_submit(system->store, &asking->job);
        return NULL;
}
