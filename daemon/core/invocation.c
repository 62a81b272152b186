/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: how one is accepted, and how it ends.
 *
 * The caller's message is settled by exactly one of: the answer of a replica, a refusal of the component, the deadline (all of which
 * come here), and whoever asked, who takes it back (and then says so by tr_invocation_given_up()). Whoever wins ends the span and
 * drops what is left of the call in the component: its place in a queue, or a delivery that has not begun.
 */
#include "daemon/core/invocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/contract/schema.h"
#include "daemon/core/component_figures.h"
#include "daemon/core/entity_use.h"
#include "daemon/core/replica.h"
#include "daemon/core/system.h"
#include "daemon/core/task_held.h"

/* Of an addressed call that names none, and whose operation has none. */
#define ADDRESSED_NS (5 * TR_NS_PER_S)

void tr_invocation_free(struct tr_invocation *invocation) {
        if (!invocation)
                return;
        tr_spans_end(&invocation->component->target.system->spans, &invocation->span);
        tr_replica_unref(invocation->answered_by);
        tr_manifest_unref(invocation->manifest);
        tr_component_unref(invocation->component);
        tr_entity_use_free(invocation->entity);
        tr_task_held_unref(invocation->task);
        free(invocation->instance);
        free(invocation->id);
        free(invocation);
}

/* Failures */

struct tr_failure *tr_addressee_failure(const struct tr_component *component, const char *instance, size_t len) {
        return tr_failure_new(TR_CODE_ADDRESSEE, "no replica of %s holds the name %.*s", component->target.label, (int)len, instance);
}

struct tr_failure *tr_contract_failure(const char *subject, const char *path, const char *reason, const char *what) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_CONTRACT, "%s: %s%s%s %s", what, subject, *path ? " at " : "", path, reason);
        tr_failure_add_text(failure, "subject", subject, strlen(subject));
        tr_failure_add_text(failure, "path", path, strlen(path));
        tr_failure_add_text(failure, "reason", reason, strlen(reason));
        return failure;
}

struct tr_failure *tr_operation_error(const struct tr_operation *operation, const char *error, size_t error_len, const void *data,
                                      size_t data_bytes) {
        struct tr_failure *failure;
        if (tr_operation_declares(operation, error, error_len)) {
                failure = tr_failure_new(TR_CODE_REFUSED, "%s answered %.*s", operation->name, (int)error_len, error);
                tr_failure_add_text(failure, "error", error, error_len);
                if (data)
                        tr_failure_add_raw(failure, "data", data, data_bytes);
        } else {
                char reason[256];
                snprintf(reason, sizeof(reason), "is %.*s, which the operation does not declare",
                         (int)(error_len < TR_NAME_MAX ? error_len : TR_NAME_MAX), error);
                failure = tr_contract_failure("error", "", reason, operation->name);
        }
        tr_failure_set_ran(failure, TR_RAN_YES);
        return failure;
}

/* Checks a value, and changes empty arrays in it that are to be maps. NULL, or what is wrong with it. */
static struct tr_failure *check_value(const struct tr_schema *schema, const char *subject, const char *operation, void *value,
                                      size_t bytes) {
        struct tr_schema_violation violation = { 0 };
        struct tr_failure *failure = NULL;
        int r = schema ? tr_schema_check(schema, value, bytes, &violation) : 0;
        if (r < 0)
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a check");
        else if (r > 0)
                failure = tr_contract_failure(subject, violation.path ? violation.path : "",
                                           violation.reason ? violation.reason : "is against the schema", operation);
        tr_schema_violation_deinit(&violation);
        return failure;
}

/* The end */

static void tell_span(struct tr_invocation *invocation, const char *instance, uint64_t sent_ns, const struct tr_failure *failure) {
        struct tr_system *system = invocation->component->target.system;
        uint64_t now_ns = tr_clock_ns();
        if (!system->hooks.span || (invocation->task && !sent_ns)) /* what is given back to the store has not been called */
                return;
        system->hooks.span(system->hooks.userdata,
                           &(struct tr_span_news){
                                   .span = &invocation->span,
                                   .component = invocation->component->target.label,
                                   .operation = invocation->operation->name,
                                   .instance = instance,
                                   .uid = invocation->uid,
                                   .pid = invocation->pid,
                                   .attempt = invocation->deliveries + (invocation->task ? invocation->task->runs : 0),
                                   .came_ns = invocation->came_ns,
                                   .queued_ns = (sent_ns ? sent_ns : now_ns) - invocation->came_ns,
                                   .run_ns = sent_ns ? now_ns - sent_ns : 0,
                                   .failed = failure,
                                   .code = failure ? failure->code : TR_CODE_INTERNAL,
                                   .message = failure ? failure->message : NULL,
                           });
}

static void count_end_locked(struct tr_component *component, const struct tr_invocation *invocation, uint64_t sent_ns,
                             const struct tr_failure *failure) TR_REQUIRES(component->lock) {
        struct tr_component_figures *figures = tr_component_figures_of(component, invocation->operation->name);
        if (invocation->task && !sent_ns) /* the store has it again */
                return;
        if (failure && failure->code == TR_CODE_FAULT)
                atomic_fetch_add_explicit(&figures->faults_total, 1, memory_order_relaxed);
        else if (failure)
                atomic_fetch_add_explicit(&figures->refused_total[failure->code], 1, memory_order_relaxed);
        if (!sent_ns)
                return;
        tr_times_add(&figures->wait, sent_ns - invocation->came_ns);
        tr_times_add(&figures->run, tr_clock_ns() - sent_ns);
}

/* A reference to a delivery's message that is in hand still; NULL where it is being freed. */
static struct tr_message *delivery_ref_locked(const struct tr_delivery *delivery) {
        uint32_t refs = atomic_load_explicit(&delivery->own->refs, memory_order_relaxed);
        while (refs > 0)
                if (atomic_compare_exchange_weak_explicit(&delivery->own->refs, &refs, refs + 1, memory_order_relaxed,
                                                          memory_order_relaxed))
                        return delivery->own;
        return NULL;
}

/*
 * The caller's message was settled, by whoever calls this: what is left of the call goes. `failure` NULL: it was answered. The
 * delivery that is in hand then, where there is one, is not what settled it: a replica that runs it is told.
 */
static void invocation_over(struct tr_invocation *invocation, const struct tr_failure *failure) {
        struct tr_component *component = invocation->component;
        struct tr_message *own = NULL;
        struct tr_replica *replica = NULL;
        uint64_t sent_ns = 0;

        tr_lock_acquire(&component->lock);
        bool queued = invocation->queued;
        if (queued)
                tr_invocation_dequeue_locked(component, invocation);
        if (invocation->entity) /* a replica that has it still may never answer */
                tr_entity_turns_leave(&component->turns, invocation, tr_clock_ns());
        if (invocation->delivery) {
                own = delivery_ref_locked(invocation->delivery);
                replica = tr_replica_ref(invocation->delivery->replica);
                sent_ns = invocation->delivery->sent_ns;
        } else if (invocation->answered_by) {
                replica = tr_replica_ref(invocation->answered_by);
                sent_ns = invocation->sent_ns;
        }
        count_end_locked(component, invocation, sent_ns, failure);
        tr_lock_release(&component->lock);

        if (tr_system_clear_timer(component->target.system, &invocation->timer))
                tr_message_unref(invocation->message);
        tell_span(invocation, replica ? replica->instance : NULL, sent_ns, failure);
        if (own && !tr_delivery_withdraw(own) && tr_message_state(own) == TR_MESSAGE_BEGUN && replica->ops->cancel)
                replica->ops->cancel(replica, own);
        tr_message_unref(own);
        tr_replica_unref(replica);
        if (queued) {
                tr_component_try_end(component);
                tr_message_unref(invocation->message); /* the queue's: perhaps the last */
        }
}

void tr_invocation_reject(struct tr_message *message, struct tr_failure *failure, enum tr_ran ran_begun) {
        bool begun;
        if (!tr_message_settle(message, &begun))
                return;
        tr_message_ref(message);
        invocation_over(message->invocation, failure);
        if (message->asker)
                message->asker->ops->reject(message->asker, message, failure, begun ? ran_begun : TR_RAN_NO, false);
        tr_message_unref(message);
}

struct tr_failure *tr_invocation_make_answer(const struct tr_message *message, const void *value, size_t bytes,
                                             struct tr_writer *ret_answer) {
        const struct tr_operation *operation = message->invocation->operation;
        struct tr_failure *failure = NULL;
        if (operation->output) { /* a check may change it */
                tr_write_raw(ret_answer, value, bytes);
                failure = tr_writer_error(ret_answer)
                                  ? tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer")
                                  : check_value(operation->output, "output", operation->name, ret_answer->data, ret_answer->len);
                value = ret_answer->data;
                bytes = ret_answer->len;
        }
        if (!failure && message->form == TR_FORM_PLAIN) {
                struct tr_writer plain = TR_WRITER_INIT;
                struct tr_reader reader = tr_reader(value, bytes);
                int r = tr_write_plain(&plain, &reader);
                if (r < 0)
                        failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                else if (r > 0)
                        failure = tr_failure_new(TR_CODE_NOT_SENDABLE, "%s: the output has two keys that are the same as text",
                                                 operation->name);
                tr_writer_deinit(ret_answer);
                *ret_answer = plain;
        }
        return failure;
}

void tr_invocation_answer(struct tr_message *message, const void *value, size_t bytes) {
        struct tr_invocation *invocation = message->invocation;
        bool begun;
        if (!tr_message_settle(message, &begun)) {
                tr_component_count_late(invocation->component, invocation->operation->name);
                return;
        }
        tr_message_ref(message);
        invocation_over(invocation, NULL);
        if (message->asker)
                message->asker->ops->resolve(message->asker, message, value, bytes, false);
        tr_message_unref(message);
}

void tr_invocation_resolve(struct tr_message *message, const void *value, size_t bytes) {
        struct tr_writer answer = TR_WRITER_INIT;
        struct tr_failure *failure = tr_invocation_make_answer(message, value, bytes, &answer);
        if (failure)
                tr_invocation_reject(message, failure, TR_RAN_YES);
        else if (answer.len > 0)
                tr_invocation_answer(message, answer.data, answer.len);
        else
                tr_invocation_answer(message, value, bytes);
        tr_failure_unref(failure);
        tr_writer_deinit(&answer);
}

void tr_invocation_given_up(struct tr_message *message) {
        if (!message->invocation)
                return;
        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "the caller took it back");
        tr_message_ref(message);
        invocation_over(message->invocation, failure);
        tr_component_dispatch(message->invocation->component);
        tr_message_unref(message);
        tr_failure_unref(failure);
}

/* On the loop thread. The timer's reference. */
static void on_deadline(struct tr_timer *timer) {
        struct tr_invocation *invocation = tr_container_of(timer, struct tr_invocation, timer);
        struct tr_message *message = invocation->message;
        struct tr_component *component = tr_component_ref(invocation->component);
        struct tr_failure *failure =
                invocation->addressed ?
                        tr_failure_new(TR_CODE_ABANDONED, "%s did not answer in time", invocation->instance) :
                        tr_failure_new(TR_CODE_TIMEOUT, "the deadline passed before it was answered");
        tr_invocation_reject(message, failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
        tr_message_unref(message);
        tr_component_dispatch(component);
        tr_component_unref(component);
}

/* The beginning */

struct tr_failure *tr_operation_check_addressing(const struct tr_operation *operation, const struct tr_call_options *options) {
        if (operation->stateful && !options->instance)
                return tr_contract_failure("request", "", "names no instance, and the operation is stateful", operation->name);
        if (!operation->stateful && options->instance)
                return tr_contract_failure("request", "", "names an instance, and the operation is not stateful", operation->name);
        return NULL;
}

static char *copy_text(const char *text, size_t len) {
        return text ? strndup(text, len) : NULL;
}

/* NULL, or why the message cannot be a call. `depth` is that of its span; 0: as its trace says. */
static struct tr_failure *make_invocation(struct tr_component *component, struct tr_manifest *manifest,
                                          const struct tr_operation *operation, struct tr_message *message,
                                          const struct tr_call_options *options, uint32_t depth) {
        char trace[TR_TRACEPARENT_LEN + 1] = "";
        struct tr_invocation *invocation = calloc(1, sizeof(*invocation));
        if (!invocation)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a call");
        invocation->instance = copy_text(options->instance, options->instance_len);
        invocation->id = copy_text(options->id, options->id_len);
        if ((options->instance && !invocation->instance) || (options->id && !invocation->id)) {
                free(invocation->instance);
                free(invocation->id);
                free(invocation);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a call");
        }
        if (options->trace)
                memcpy(trace, options->trace, TR_TRACEPARENT_LEN);
        if (depth > 0) {
                tr_spans_resume(&component->target.system->spans, options->trace ? trace : NULL, depth, &invocation->span);
        } else if (tr_spans_begin(&component->target.system->spans, options->trace ? trace : NULL, &invocation->span) != 0) {
                free(invocation->instance);
                free(invocation->id);
                free(invocation);
                return tr_failure_new(TR_CODE_LOOP, "%s.%s: a chain of calls deeper than %d", component->target.label,
                                      operation->name, TR_CHAIN_MAX);
        }
        invocation->message = message;
        invocation->component = tr_component_ref(component);
        invocation->manifest = tr_manifest_ref(manifest);
        invocation->operation = operation;
        invocation->addressed = operation->stateful;
        invocation->came_ns = tr_clock_ns();
        uint64_t timeout_ns = options->timeout_ns ? options->timeout_ns : operation->timeout_ms * TR_NS_PER_MS;
        if (!timeout_ns && invocation->addressed)
                timeout_ns = ADDRESSED_NS;
        invocation->deadline_ns = timeout_ns ? tr_clock_deadline_ns(timeout_ns) : TR_NEVER;
        invocation->timer.fire = on_deadline;
        invocation->uid = options->uid;
        invocation->gid = options->gid;
        invocation->pid = options->pid;
        struct tr_failure *failure = tr_entity_use_make(invocation, options);
        if (failure)
                tr_invocation_free(invocation);
        else
                message->invocation = invocation;
        return failure;
}

void tr_invocation_put(struct tr_list *calls, struct tr_invocation *invocation) {
        struct tr_list *before = calls->prev;
        /* One that comes back is as a rule older than all that wait. */
        if (!tr_list_is_empty(calls) &&
            tr_list_first(calls, struct tr_message, link)->invocation->sequence > invocation->sequence)
                before = calls;
        else
                while (before != calls &&
                       tr_container_of(before, struct tr_message, link)->invocation->sequence > invocation->sequence)
                        before = before->prev;
        tr_list_append(before->next, &invocation->message->link);
}

void tr_invocation_enqueue_locked(struct tr_component *component, struct tr_invocation *invocation, struct tr_replica *replica) {
        /* Whoever settled it before looks for it under this lock, has looked already, or will find it. */
        if (tr_message_state(invocation->message) == TR_MESSAGE_SETTLED)
                return;
        tr_message_ref(invocation->message);
        struct tr_component_line *line = replica ? NULL : &component->lines[invocation->line];
        tr_invocation_put(replica ? &replica->queue : invocation->task ? &line->tasks : &line->calls, invocation);
        invocation->queued = true;
        if (invocation->task) {
                component->tasks.waiting++;
        } else {
                component->waiting++;
                component->in_lines += !replica;
        }
}

void tr_invocation_dequeue_locked(struct tr_component *component, struct tr_invocation *invocation) {
        tr_list_unlink(&invocation->message->link);
        invocation->queued = false;
        if (invocation->task) {
                component->tasks.waiting--;
        } else {
                component->waiting--;
                component->in_lines -= !invocation->addressed;
        }
}

/* Queued, or why not. */
static struct tr_failure *enqueue_locked(struct tr_component *component, struct tr_message *message)
        TR_REQUIRES(component->lock) {
        struct tr_invocation *invocation = message->invocation;
        struct tr_replica *replica, *found = NULL;
        if (component->stopping)
                return tr_failure_new(TR_CODE_NOT_RUNNING, "the component %s is stopping", component->target.label);
        invocation->line = tr_component_line_locked(component, invocation->operation->name);
        if (invocation->line == UINT32_MAX)
                return tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s any more", component->target.label,
                                      invocation->operation->name);
        if (invocation->addressed) {
                tr_list_for_each(replica, &component->replicas, link)
                        if (replica->state == TR_REPLICA_HOLDING && strcmp(replica->instance, invocation->instance) == 0)
                                found = replica;
                if (!found)
                        return tr_addressee_failure(component, invocation->instance, strlen(invocation->instance));
        }
        if (component->waiting >= component->waiting_max)
                return tr_failure_new(TR_CODE_MAILBOX_FULL, "%u calls wait for %s, and its queue takes no more", component->waiting,
                                      component->target.label);
        invocation->sequence = component->sequence++;
        atomic_fetch_add_explicit(&component->figures[invocation->line].calls_total, 1, memory_order_relaxed);
        tr_invocation_enqueue_locked(component, invocation, found);
        return NULL;
}

/* It is in a queue already, or on its way out of one, so whoever refuses it knows that nobody else answers. */
void tr_invocation_set_deadline(struct tr_invocation *invocation) {
        struct tr_system *system = invocation->component->target.system;
        struct tr_message *message = invocation->message;
        if (invocation->deadline_ns == TR_NEVER)
                return;
        tr_message_ref(message);
        if (tr_system_set_timer(system, &invocation->timer, invocation->deadline_ns) < 0) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a deadline");
                tr_invocation_reject(message, failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
                tr_message_unref(message);
        } else if (tr_message_state(message) == TR_MESSAGE_SETTLED && tr_system_clear_timer(system, &invocation->timer)) {
                tr_message_unref(message); /* whoever settled it may have looked for the timer before it was there */
        }
}

struct tr_failure *tr_operation_check_input(const struct tr_operation *operation, struct tr_message *message) {
        return check_value(operation->input, "input", operation->name, message->data + message->handler_len + 1, message->args_bytes);
}

struct tr_failure *tr_invocation_make_task(struct tr_component *component, struct tr_manifest *manifest,
                                           const struct tr_operation *operation, struct tr_message *message,
                                           const struct tr_call_options *options, uint32_t depth, struct tr_task_held *held) {
        struct tr_failure *failure = tr_entity_use_check(component, operation, options);
        if (!failure)
                failure = make_invocation(component, manifest, operation, message, options, depth ? depth : 1);
        if (failure)
                return failure;
        message->invocation->task = tr_task_held_ref(held);
        message->invocation->deadline_ns = TR_NEVER;
        return tr_operation_check_input(operation, message);
}

struct tr_failure *tr_component_call(struct tr_component *component, struct tr_message *take_message,
                                     const struct tr_call_options *options) {
        struct tr_manifest *manifest = tr_component_manifest(component);
        const struct tr_operation *operation =
                tr_manifest_find(manifest, tr_message_handler(take_message), take_message->handler_len);
        struct tr_failure *failure =
                operation ? tr_operation_check_addressing(operation, options)
                          : tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s", manifest->name,
                                           tr_message_handler(take_message));
        if (!failure)
                failure = tr_entity_use_check(component, operation, options);
        if (!failure)
                failure = make_invocation(component, manifest, operation, take_message, options, 0);
        if (!failure) {
                failure = tr_operation_check_input(operation, take_message);
                if (!failure) {
                        tr_lock_acquire(&component->lock);
                        failure = enqueue_locked(component, take_message);
                        tr_lock_release(&component->lock);
                }
                if (failure) /* it was a call: it has a span, too */
                        tell_span(take_message->invocation, NULL, 0, failure);
        }
        if (failure)
                tr_component_count_refused(component, tr_message_handler(take_message), failure);
        tr_manifest_unref(manifest);
        if (failure)
                return failure;
        tr_invocation_set_deadline(take_message->invocation);
        tr_component_dispatch(component);
        tr_message_unref(take_message);
        return NULL;
}
