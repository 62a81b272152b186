/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing calls to replicas, and hearing how each delivery ended.
 *
 * A call goes to the replica that has least in hand of those that serve its operation and have room; ties rotate, because whoever got
 * one goes to the end of the list. A replica serves what is addressed to it first. All of it happens on the thread of whoever
 * makes it possible: the caller's, or that of whoever has answered.
 *
 * Each delivery is accounted for once: when it is answered or rejected, when it is taken back, or when its message is freed without any of
 * those, because the call that it is for was over before it could begin.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/component_figures.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/stock.h"
#include "daemon/core/system.h"

/* Which replica, and which call */

static bool replica_has_room(const struct tr_replica *replica) {
        return replica->state == TR_REPLICA_HOLDING && !replica->congested && replica->in_hand_count < replica->concurrency;
}

/* One that joined under another manifest may not know the operation. */
static bool replica_serves_locked(const struct tr_component *component, const struct tr_replica *replica, const char *operation)
        TR_REQUIRES(component->lock) {
        char *const *name = replica->operations;
        if (replica->manifest != component->manifest && !tr_manifest_find(replica->manifest, operation, strlen(operation)))
                return false;
        while (name && *name && strcmp(*name, operation) != 0)
                name++;
        return !name || *name;
}

/* The oldest call in a line that the replica serves, and whose turn it is, or the oldest task; NULL: none waits. */
static struct tr_message *oldest_for_locked(struct tr_component *component, const struct tr_replica *replica, bool task)
        TR_REQUIRES(component->lock) {
        struct tr_message *oldest = NULL;
        for (uint32_t i = 0; i < component->manifest->operations_count; i++) {
                struct tr_list *calls = task ? &component->lines[i].tasks : &component->lines[i].calls;
                if (tr_list_is_empty(calls) || !replica_serves_locked(component, replica, component->manifest->operations[i].name))
                        continue;
                struct tr_message *first = tr_entity_turns_first(&component->turns, calls);
                if (first && (!oldest || first->invocation->sequence < oldest->invocation->sequence))
                        oldest = first;
        }
        return oldest;
}

/* What comes next of what waits in lines: a call, unless it is a task's turn; and where a replica can have none of the one, the other. */
static struct tr_message *next_for_locked(struct tr_component *component, const struct tr_replica *replica)
        TR_REQUIRES(component->lock) {
        bool tasks = component->tasks.waiting > 0, calls = component->in_lines > 0;
        bool task_first = tasks && (!calls || component->tasks.calls_picked >= TR_TASKS_AFTER_CALLS);
        struct tr_message *next = task_first ? oldest_for_locked(component, replica, true) : NULL;
        if (!next && calls)
                next = oldest_for_locked(component, replica, false);
        if (!next && tasks && !task_first)
                next = oldest_for_locked(component, replica, true);
        return next;
}

/* One was picked. */
static void count_pick_locked(struct tr_component *component, const struct tr_invocation *invocation) TR_REQUIRES(component->lock) {
        if (component->tasks.waiting == 0)
                return;
        if (invocation->task)
                component->tasks.calls_picked = 0;
        else
                component->tasks.calls_picked += !invocation->addressed;
}

/* Who waits for the turn of another passes one day. */
static void time_turns(struct tr_component *component, uint64_t wake_ns) {
        tr_component_ref(component);
        if (tr_system_set_timer(component->target.system, &component->turns_timer, wake_ns) != 0)
                tr_component_unref(component);
}

/* When they are to be looked at, where nobody has seen to that; 0: not at all, or somebody has. */
static uint64_t turns_to_time_locked(struct tr_component *component) TR_REQUIRES(component->lock) {
        bool is_new = component->turns.wake_ns > 0 && !component->turns_timed && !component->over;
        component->turns_timed |= is_new;
        return is_new ? component->turns.wake_ns : 0;
}

void tr_component_pass_turns(struct tr_timer *timer) {
        struct tr_component *component = tr_container_of(timer, struct tr_component, turns_timer);
        tr_lock_acquire(&component->lock);
        component->turns_timed = false;
        bool any = tr_entity_turns_pass(&component->turns, tr_clock_ns());
        uint64_t wake_ns = turns_to_time_locked(component);
        tr_lock_release(&component->lock);
        if (wake_ns)
                time_turns(component, wake_ns);
        if (any)
                tr_component_dispatch(component);
        tr_component_unref(component);
}

/* The next delivery to be made: the call, which has left its queue (its reference is the caller's), and references to who gets it. */
static struct tr_message *component_pick(struct tr_component *component, struct tr_replica **ret_replica,
                                         struct tr_target **ret_target) {
        struct tr_replica *replica, *chosen = NULL;
        struct tr_message *message = NULL;
        tr_lock_acquire(&component->lock);
        if (component->waiting > 0 || component->tasks.waiting > 0)
                tr_list_for_each(replica, &component->replicas, link) {
                        if (!replica_has_room(replica))
                                continue;
                        struct tr_message *own = tr_entity_turns_first(&component->turns, &replica->queue);
                        if (own) {
                                chosen = replica;
                                message = own;
                                break;
                        }
                        if (chosen && chosen->in_hand_count <= replica->in_hand_count)
                                continue;
                        struct tr_message *next = next_for_locked(component, replica);
                        if (next) {
                                chosen = replica;
                                message = next;
                        }
                }
        if (message) {
                struct tr_invocation *invocation = message->invocation;
                count_pick_locked(component, invocation);
                tr_invocation_dequeue_locked(component, invocation);
                if (invocation->entity)
                        tr_entity_turns_take(&component->turns, invocation, tr_clock_ns());
                chosen->in_hand_count++;
                tr_list_unlink(&chosen->link);
                tr_list_append(&component->replicas, &chosen->link);
                *ret_replica = tr_replica_ref(chosen);
                *ret_target = tr_target_ref(chosen->target);
        }
        uint64_t wake_ns = turns_to_time_locked(component);
        tr_lock_release(&component->lock);
        if (wake_ns)
                time_turns(component, wake_ns);
        return message;
}

/* Delivering */

/* The message that goes to the replica: the input. The context is asked for (tr_delivery_context()). NULL where memory is short. */
static struct tr_message *delivery_message(struct tr_message *call) {
        struct tr_message *own = tr_message_new(TR_MESSAGE_HANDLER, tr_message_handler(call), call->handler_len,
                                                tr_message_args(call), call->args_bytes, 1);
        if (!own)
                return NULL;
        own->form = TR_FORM_TYPED;
        own->internal = false;
        own->caller_uid = call->invocation->uid;
        own->lone = call->lone;
        own->behalf = call;
        return own;
}

/* Makes it what the replica has in hand. Takes the call's reference and the replica's; answers the message, or NULL, and nothing was
 * taken. */
static struct tr_message *delivery_new(struct tr_message *take_call, struct tr_replica *take_replica) {
        struct tr_invocation *invocation = take_call->invocation;
        struct tr_component *component = invocation->component;
        struct tr_delivery *delivery = tr_stock_alloc(sizeof(*delivery));
        struct tr_message *own = delivery ? delivery_message(take_call) : NULL;
        if (!own) {
                tr_stock_free(delivery, sizeof(*delivery));
                return NULL;
        }
        *delivery = (struct tr_delivery){ .attempt = invocation->deliveries + (invocation->task ? invocation->task->runs : 0) + 1 };
        tr_list_init(&delivery->link);
        if (invocation->entity)
                tr_entity_use_hand(invocation, &delivery->entity);
        own->asker = &tr_component_ref(component)->asker;
        own->ask.data = delivery;
        delivery->message = take_call;
        delivery->own = own;
        delivery->replica = take_replica;
        delivery->sent_ns = tr_clock_ns();
        tr_lock_acquire(&component->lock);
        tr_list_append(&take_replica->in_hand, &delivery->link);
        delivery->reliefs = take_replica->reliefs;
        invocation->delivery = delivery;
        tr_lock_release(&component->lock);
        return own;
}

/* The delivery is over for its replica. True for the first caller, who then sees to what becomes of the call. */
static bool delivery_account(struct tr_delivery *delivery, bool begun) {
        struct tr_replica *replica = delivery->replica;
        struct tr_component *component = replica->component;
        struct tr_invocation *invocation = delivery->message->invocation;
        struct tr_replica *before = NULL;
        tr_lock_acquire(&component->lock);
        bool first = !delivery->over;
        if (first) {
                delivery->over = true;
                tr_list_unlink(&delivery->link);
                replica->in_hand_count--;
                replica->congested = false;
                if (invocation->delivery == delivery) {
                        invocation->delivery = NULL;
                        before = invocation->answered_by;
                        invocation->answered_by = tr_replica_ref(replica);
                        invocation->sent_ns = delivery->sent_ns;
                }
                invocation->deliveries += begun;
                atomic_fetch_add_explicit(&replica->calls_total, begun, memory_order_relaxed);
        }
        tr_lock_release(&component->lock);
        tr_replica_unref(before);
        return first;
}

/* What follows on each, where the replica was told to retire meanwhile: nobody else looks whether it has anything in hand. */
static void delivery_left(struct tr_component *component, struct tr_replica *replica) {
        tr_replica_tell_retired(replica);
        tr_component_try_end(component);
}

/* And the replica has room. */
static void delivery_done(struct tr_component *component, struct tr_replica *replica) {
        tr_component_dispatch(component);
        delivery_left(component, replica);
}

bool tr_delivery_withdraw(struct tr_message *own) {
        struct tr_delivery *delivery = own->ask.data;
        /* Settled: it could not begin, or its answer has come this moment and settles nothing. */
        if (!tr_message_withdraw(own) && tr_message_state(own) != TR_MESSAGE_SETTLED)
                return false;
        if (!delivery_account(delivery, false))
                return false;
        delivery_done(delivery->replica->component, delivery->replica);
        return true;
}

/* Puts a call that was delivered to nobody first in its queue again: in the replica's own, where it is addressed to it, else in its line.
 * False where it cannot be. */
static bool call_requeue(struct tr_message *call, struct tr_replica *replica) {
        struct tr_invocation *invocation = call->invocation;
        struct tr_component *component = invocation->component;
        tr_lock_acquire(&component->lock);
        invocation->line = tr_component_line_locked(component, invocation->operation->name);
        bool there = invocation->line != UINT32_MAX && !component->over && !component->killed &&
                     !(invocation->task && component->stopping) && (!invocation->addressed || replica->state == TR_REPLICA_HOLDING);
        if (there)
                tr_invocation_enqueue_locked(component, invocation, invocation->addressed ? replica : NULL);
        tr_lock_release(&component->lock);
        return there;
}

static void call_again(struct tr_message *call) {
        if (call_requeue(call, NULL))
                return;
        struct tr_failure *failure =
                tr_failure_new(TR_CODE_STOPPED, "%s ended before it answered this", call->invocation->component->target.label);
        tr_invocation_reject(call, failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
}

/* How many: all that have begun it, but those that have answered, too late. */
static uint32_t died_under_it(const struct tr_invocation *invocation) {
        return invocation->deliveries - (invocation->entity ? invocation->entity->conflicts : 0);
}

/* The replica died under it, or before it got it. */
static void call_orphaned(struct tr_message *call, struct tr_replica *replica, bool begun) {
        struct tr_invocation *invocation = call->invocation;
        struct tr_failure *failure = NULL;
        if (tr_message_state(call) == TR_MESSAGE_SETTLED)
                return;
        if (invocation->addressed && begun)
                failure = tr_failure_new(TR_CODE_ABANDONED, "%s died before it answered this", replica->instance);
        else if (invocation->addressed)
                failure = tr_addressee_failure(invocation->component, replica->instance, strlen(replica->instance));
        else if (invocation->task && !begun) /* the store has it as one that runs, which may be long from now */
                failure = tr_failure_new(TR_CODE_STOPPED, "%s ended before it had it", replica->instance);
        else if (begun && (died_under_it(invocation) >= invocation->manifest->deliveries ||
                           (invocation->task && !tr_task_held_may_go_on(invocation))))
                failure = tr_failure_new(TR_CODE_UNDELIVERABLE, "%u replicas of %s died under it", died_under_it(invocation),
                                         invocation->component->target.label);
        if (failure) {
                tr_invocation_reject(call, failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
                return;
        }
        if (begun)
                tr_component_count_redelivered(invocation->component, invocation->operation->name);
        call_again(call);
}

/* Its target takes no more at present, which passes: a connection's output is sent, what an actor has in hand is answered. Where it has
 * passed already, it is tried again. */
static bool delivery_wait(const struct tr_delivery *delivery, const struct tr_target *target) {
        struct tr_message *call = delivery->message;
        struct tr_replica *replica = delivery->replica;
        tr_lock_acquire(&replica->component->lock);
        bool passes = replica->in_hand_count > 0 || target->ops->kind == TR_TARGET_CONNECTION;
        replica->congested = passes && replica->reliefs == delivery->reliefs;
        tr_lock_release(&replica->component->lock);
        return passes && !call->invocation->task && call_requeue(call, replica); /* a task waits in the store */
}

/* Its target did not take it. */
static void delivery_refused(struct tr_delivery *delivery, const struct tr_target *target, enum tr_post post) {
        struct tr_message *call = delivery->message;
        struct tr_replica *replica = delivery->replica;
        delivery_account(delivery, false);
        if (post == TR_POST_FULL && delivery_wait(delivery, target))
                return;
        if (post == TR_POST_CLOSED) {
                tr_replica_died(replica);
                call_orphaned(call, replica, false);
                return;
        }
        struct tr_failure *failure = tr_post_failure(post);
        tr_invocation_reject(call, failure, TR_RAN_NO);
        tr_failure_unref(failure);
}

/* It was picked, and is not delivered: it was settled meanwhile, or is now. */
static void not_delivered(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_failure *failure) {
        struct tr_component *component = take_replica->component;
        tr_lock_acquire(&component->lock);
        take_replica->in_hand_count--;
        tr_lock_release(&component->lock);
        if (failure)
                tr_invocation_reject(take_call, failure, TR_RAN_MAYBE); /* a run before this one may have begun */
        tr_message_unref(take_call);
        delivery_left(component, take_replica);
        tr_replica_unref(take_replica);
}

static void deliver(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_target *target) {
        struct tr_component *component = take_replica->component;
        if (take_call->invocation->task && !tr_task_held_begin(take_call->invocation)) {
                not_delivered(take_call, take_replica, NULL);
                return;
        }
        struct tr_message *own = delivery_new(take_call, take_replica);
        if (!own) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a call");
                not_delivered(take_call, take_replica, failure);
                tr_failure_unref(failure);
                return;
        }
        enum tr_post post = tr_target_post(target, own);
        if (post == TR_POST_OK)
                return;
        delivery_refused(own->ask.data, target, post);
        delivery_left(component, take_replica); /* the delivery's reference is there as long as its message */
        tr_message_unref(own);
}

void tr_component_deliver(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_target *target,
                          struct tr_failure *failure) {
        if (failure || tr_message_state(take_call) == TR_MESSAGE_SETTLED)
                not_delivered(take_call, take_replica, failure);
        else
                deliver(take_call, take_replica, target);
}

/*
 * Who has made a call wait, or room for one, looks here, after the lock under which he did so. So where nothing waits nothing is to be
 * done, and the lock is left alone: the loop would hold it when its client, who has the answer by then, takes its CPU, and the
 * replica would sleep for it.
 */
void tr_component_dispatch(struct tr_component *component) {
        struct tr_replica *replica;
        struct tr_target *target;
        struct tr_message *call;
        /* relaxed: the lock has ordered what is to be seen */
        while ((atomic_load_explicit(&component->waiting, memory_order_relaxed) > 0 ||
                atomic_load_explicit(&component->tasks.waiting, memory_order_relaxed) > 0) &&
               (call = component_pick(component, &replica, &target))) {
                if (call->invocation->entity && tr_entity_use_read(call, replica, target))
                        continue;
                deliver(call, replica, target);
                tr_target_unref(target);
        }
}

/* How a delivery ended */

static struct tr_component *component_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_component, asker);
}

static void component_on_resolve(struct tr_asker *asker, struct tr_message *own, const void *value, size_t bytes, bool more) {
        struct tr_delivery *delivery = own->ask.data;
        delivery_account(delivery, true);
        if (delivery->message->invocation->entity)
                tr_entity_use_answered(delivery, value, bytes);
        else
                tr_invocation_resolve(delivery->message, value, bytes);
        delivery_done(component_of(asker), delivery->replica);
}

/* Whether that failure is the end of who had it, rather than its answer. */
static bool is_death(const struct tr_failure *failure, enum tr_ran ran) {
        const char *kind;
        size_t len;
        switch (failure->code) {
        case TR_CODE_STOPPED:
        case TR_CODE_KILLED:
        case TR_CODE_NOT_RUNNING:
        case TR_CODE_DISCONNECTED:
        case TR_CODE_SHUTTING_DOWN:
                return true;
        case TR_CODE_FAULT:
                if (ran != TR_RAN_YES)
                        return true;
                return tr_failure_find_text(failure, "kind", &kind, &len) && len == 4 && memcmp(kind, "heap", 4) == 0;
        default:
                return false;
        }
}

static void component_on_reject(struct tr_asker *asker, struct tr_message *own, struct tr_failure *failure, enum tr_ran ran,
                                bool more) {
        struct tr_delivery *delivery = own->ask.data;
        bool begun = ran != TR_RAN_NO;
        delivery_account(delivery, begun);
        if (is_death(failure, ran)) {
                tr_replica_died_of(delivery->replica, failure);
                call_orphaned(delivery->message, delivery->replica, begun);
        } else {
                if (failure->code == TR_CODE_FAULT)
                        atomic_fetch_add_explicit(&delivery->replica->faults_total, 1, memory_order_relaxed);
                tr_invocation_reject(delivery->message, failure, ran);
        }
        delivery_done(component_of(asker), delivery->replica);
}

/* The delivery's message is being freed. */
static void component_on_forget(struct tr_asker *asker, struct tr_message *own) {
        struct tr_delivery *delivery = own->ask.data;
        if (delivery_account(delivery, false))
                delivery_done(component_of(asker), delivery->replica);
        tr_message_unref(delivery->message);
        tr_replica_unref(delivery->replica);
        free(delivery->entity.memory);
        tr_stock_free(delivery, sizeof(*delivery));
}

static void component_on_ref(struct tr_asker *asker) {
        tr_component_ref(component_of(asker));
}

static void component_on_unref(struct tr_asker *asker, uint32_t count) {
        tr_target_unref_many(&component_of(asker)->target, count);
}

const struct tr_asker_ops tr_component_asker_ops = {
        .resolve = component_on_resolve,
        .reject = component_on_reject,
        .forget = component_on_forget,
        .ref = component_on_ref,
        .unref = component_on_unref,
};

/* What has changed */

void tr_component_run_again(struct tr_message *call) {
        struct tr_invocation *invocation = call->invocation;
        tr_lock_acquire(&invocation->component->lock);
        struct tr_replica *replica = tr_replica_ref(invocation->answered_by);
        tr_lock_release(&invocation->component->lock);
        if (!invocation->addressed)
                call_again(call);
        else if (!call_requeue(call, replica))
                call_orphaned(call, replica, true);
        tr_replica_unref(replica);
}

void tr_component_begin_write(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        component->writes++;
        tr_lock_release(&component->lock);
}

void tr_component_end_write(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        component->writes--;
        tr_lock_release(&component->lock);
        tr_component_dispatch(component);
        tr_component_try_end(component);
}

void tr_component_end_turn(struct tr_invocation *invocation) {
        struct tr_component *component = invocation->component;
        tr_lock_acquire(&component->lock);
        tr_entity_turns_leave(&component->turns, invocation, tr_clock_ns());
        tr_lock_release(&component->lock);
}

const struct tr_operation *tr_delivery_operation(const struct tr_message *message) {
        return message->behalf ? message->behalf->invocation->operation : NULL;
}

/* Figures */

static void count(struct tr_component *component, const char *operation, bool late) {
        tr_lock_acquire(&component->lock);
        uint32_t line = tr_component_line_locked(component, operation);
        if (line != UINT32_MAX)
                atomic_fetch_add_explicit(late ? &component->figures[line].late_total : &component->figures[line].redelivered_total, 1,
                                          memory_order_relaxed);
        tr_lock_release(&component->lock);
}

void tr_component_count_late(struct tr_component *component, const char *operation) {
        count(component, operation, true);
}

void tr_component_count_redelivered(struct tr_component *component, const char *operation) {
        count(component, operation, false);
}
