/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replicas: joining a component, holding a name, giving it up.
 *
 * A name belongs to the replica that has joined with it until that retires or is gone; nobody else can join with it meanwhile but its
 * successor, which gets it in the step in which the one before retires. What is addressed to a name goes to the replica that is
 * holding it at that moment, never to the name.
 */
#include "daemon/core/replica.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/random.h"
#include "daemon/core/invocation.h"
#include "daemon/core/lost.h"
#include "daemon/core/system.h"

/* How soon what one that leaves has in hand is looked at again, at least. */
#define LEAVE_LOOK_NS (100 * TR_NS_PER_MS)

struct tr_replica *tr_replica_ref(struct tr_replica *replica) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&replica->refs, 1, memory_order_relaxed);
        return replica;
}

static void operations_free(char **operations) {
        for (char **name = operations; name && *name; name++)
                free(*name);
        free(operations);
}

void tr_replica_unref(struct tr_replica *replica) {
        if (!replica || atomic_fetch_sub_explicit(&replica->refs, 1, memory_order_acq_rel) != 1)
                return;
        if (replica->ops->release)
                replica->ops->release(replica);
        operations_free(replica->operations);
        tr_replica_unref(replica->successor_of);
        tr_target_unref(replica->target);
        tr_manifest_unref(replica->manifest);
        tr_component_unref(replica->component);
        free(replica);
}

/* Leaving with something in hand */

/* Whether all that it has in hand is over for who asked for it. It gets no more, so that lasts. */
static bool is_forsaken_locked(const struct tr_component *component, const struct tr_replica *replica)
        TR_REQUIRES(component->lock) {
        const struct tr_delivery *delivery;
        uint32_t over = 0;
        tr_list_for_each(delivery, &replica->in_hand, link)
                over += tr_message_state(delivery->message) == TR_MESSAGE_SETTLED;
        return over == replica->in_hand_count; /* what is on its way is counted, and not listed yet */
}

static bool is_leaving_locked(const struct tr_component *component, const struct tr_replica *replica)
        TR_REQUIRES(component->lock) {
        return replica->state == TR_REPLICA_RETIRING && replica->in_hand_count > 0;
}

static bool is_leaving(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        tr_lock_acquire(&component->lock);
        bool leaving = is_leaving_locked(component, replica);
        tr_lock_release(&component->lock);
        return leaving;
}

static void leave_clear_timer(struct tr_replica *replica) {
        if (tr_system_clear_timer(replica->component->target.system, &replica->leave_timer))
                tr_replica_unref(replica);
}

/*
 * Who retires is waited for as long as somebody waits for what it has in hand. What nobody waits for a client may never answer: it was
 * told so, and has dropped it; or it hangs, which is why nobody waits any more. So that does not keep it for ever: when nobody has
 * waited at two looks, a grace apart, it is told.
 */
static void leave_set_timer(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        uint64_t grace_ns = component->target.system->limits.grace_ns;
        if (!replica->ops->forsaken || grace_ns == TR_NEVER || !is_leaving(replica))
                return;
        uint64_t after_ns = grace_ns > LEAVE_LOOK_NS ? grace_ns : LEAVE_LOOK_NS;
        tr_replica_ref(replica);
        int r = tr_system_set_timer(component->target.system, &replica->leave_timer, tr_clock_deadline_ns(after_ns));
        if (r != 0)
                tr_replica_unref(replica);
        if (r < 0)
                tr_log(TR_LOG_ERROR, "component %s: out of memory for the timer of %s, which leaves", component->target.label,
                       replica->instance);
        if (!is_leaving(replica)) /* meanwhile it has gone, and saw no timer */
                leave_clear_timer(replica);
}

static void on_leave_timer(struct tr_timer *timer) {
        struct tr_replica *replica = tr_container_of(timer, struct tr_replica, leave_timer);
        struct tr_component *component = replica->component;
        tr_lock_acquire(&component->lock);
        bool was_forsaken = replica->forsaken;
        replica->forsaken = is_leaving_locked(component, replica) && is_forsaken_locked(component, replica);
        bool tell = replica->forsaken && was_forsaken;
        uint32_t in_hand = replica->in_hand_count;
        tr_lock_release(&component->lock);
        if (tell) {
                tr_log(TR_LOG_WARNING, "component %s: %s leaves without an answer to %u calls, which nobody waits for",
                       component->target.label, replica->instance, in_hand);
                replica->ops->forsaken(replica);
        } else {
                leave_set_timer(replica);
        }
        tr_replica_unref(replica);
}

/* Joining */

static char **operations_copy(const char *const *operations) {
        size_t count = 0;
        while (operations[count])
                count++;
        char **copy = calloc(count + 1, sizeof(*copy));
        for (size_t i = 0; copy && i < count; i++) {
                copy[i] = strdup(operations[i]);
                if (!copy[i]) {
                        operations_free(copy);
                        return NULL;
                }
        }
        return copy;
}

static struct tr_replica *replica_new(struct tr_component *component, const struct tr_replica_options *options) {
        struct tr_replica *replica = calloc(1, sizeof(*replica));
        if (!replica)
                return NULL;
        atomic_init(&replica->refs, 1);
        tr_list_init(&replica->link);
        tr_list_init(&replica->queue);
        tr_list_init(&replica->in_hand);
        if (options->operations && !(replica->operations = operations_copy(options->operations))) {
                free(replica);
                return NULL;
        }
        replica->component = tr_component_ref(component);
        replica->manifest = options->manifest ? tr_manifest_ref(options->manifest) : tr_component_manifest(component);
        replica->ops = options->ops;
        replica->userdata = options->userdata;
        replica->started_as = options->started_as;
        replica->index = options->index;
        replica->concurrency = options->concurrency ? options->concurrency : replica->manifest->concurrency;
        replica->uid = options->uid;
        replica->pid = options->pid;
        replica->kind = options->kind;
        replica->whole_entities = options->whole_entities;
        replica->since_ms = tr_clock_wall_ms();
        replica->leave_timer.fire = on_leave_timer;
        if (options->successor_of)
                replica->successor_of = tr_replica_ref(options->successor_of);
        return replica;
}

/* A name that nobody has, nor ever had: 64 random bits. */
static bool replica_make_name(struct tr_replica *replica) {
        uint64_t number;
        if (tr_random_bytes(&number, sizeof(number)) < 0)
                return false;
        snprintf(replica->instance, sizeof(replica->instance), "r-%016" PRIx64, number);
        return true;
}

static bool names_one(char *const *operations, const char *name) {
        for (; *operations; operations++)
                if (strcmp(*operations, name) == 0)
                        return true;
        return false;
}

/* NULL, or which operation it cannot, or has to, serve. */
static struct tr_failure *replica_check_operations(const struct tr_replica *replica) {
        const struct tr_manifest *manifest = replica->manifest;
        if (!replica->operations)
                return NULL;
        for (char **name = replica->operations; *name; name++)
                if (!tr_manifest_find(manifest, *name, strlen(*name)))
                        return tr_failure_new(TR_CODE_NOT_FOUND, "the component %s has no operation %s", manifest->name, *name);
        for (uint32_t i = 0; i < manifest->operations_count; i++)
                if (manifest->operations[i].stateful && !names_one(replica->operations, manifest->operations[i].name))
                        return tr_failure_new(TR_CODE_NOT_FOUND, "%s is stateful, and every replica of %s has to serve it",
                                              manifest->operations[i].name, manifest->name);
        return NULL;
}

static bool name_is_free_locked(const struct tr_component *component, const struct tr_replica *replica)
        TR_REQUIRES(component->lock) {
        struct tr_replica *other;
        tr_list_for_each(other, &component->replicas, link)
                if (other->state != TR_REPLICA_RETIRING && other != replica->successor_of &&
                    strcmp(other->instance, replica->instance) == 0)
                        return false;
        return true;
}

static struct tr_failure *replica_enlist(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        struct tr_failure *failure = NULL;
        tr_lock_acquire(&component->lock);
        if (component->stopping)
                failure = tr_failure_new(TR_CODE_NOT_RUNNING, "the component %s is stopping", component->target.label);
        else if (!name_is_free_locked(component, replica))
                failure = tr_failure_new(TR_CODE_TAKEN, "a replica of %s has the name %s already", component->target.label,
                                         replica->instance);
        else
                tr_list_append(&component->replicas, &tr_replica_ref(replica)->link);
        tr_lock_release(&component->lock);
        return failure;
}

/* What has not joined: its userdata stays the caller's. */
static void replica_discard(struct tr_replica *replica) {
        static const struct tr_replica_ops none;
        replica->ops = &none;
        tr_replica_unref(replica);
}

struct tr_failure *tr_replica_join(struct tr_component *component, const struct tr_replica_options *options,
                                   struct tr_target *target, struct tr_replica **ret_replica) {
        struct tr_replica *replica = replica_new(component, options);
        if (!replica)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a replica");
        if (options->instance)
                snprintf(replica->instance, sizeof(replica->instance), "%s", options->instance);
        struct tr_failure *failure = NULL;
        if (!options->instance && !replica_make_name(replica))
                failure = tr_failure_new(TR_CODE_INTERNAL, "no random bytes for the name of a replica");
        if (!failure)
                failure = replica_check_operations(replica);
        if (target)
                replica->target = tr_target_ref(target);
        if (!failure)
                failure = replica_enlist(replica);
        if (failure) {
                replica_discard(replica);
                return failure;
        }
        *ret_replica = replica;
        return NULL;
}

void tr_replica_enter(struct tr_replica *replica, struct tr_target *target) {
        tr_target_ref(target);
        tr_lock_acquire(&replica->component->lock);
        replica->target = target;
        tr_lock_release(&replica->component->lock);
}

struct tr_target *tr_replica_target(struct tr_replica *replica) {
        tr_lock_acquire(&replica->component->lock);
        struct tr_target *target = replica->target ? tr_target_ref(replica->target) : NULL;
        tr_lock_release(&replica->component->lock);
        return target;
}

/* Holding a name, and giving it up */

/* Its own queue, whose calls are for a name that nobody has any more. */
static void take_queue_locked(struct tr_component *component, struct tr_replica *replica, struct tr_list *ret_calls)
        TR_REQUIRES(component->lock) {
        struct tr_message *message;
        tr_entity_turns_restore(&component->turns); /* some were put aside from it */
        tr_list_splice(ret_calls, &replica->queue);
        tr_list_for_each(message, ret_calls, link) {
                message->invocation->queued = false;
                component->waiting--;
        }
}

static bool retire_locked(struct tr_component *component, struct tr_replica *replica, struct tr_list *ret_calls)
        TR_REQUIRES(component->lock) {
        if (replica->state != TR_REPLICA_JOINED && replica->state != TR_REPLICA_HOLDING)
                return false;
        component->holding -= replica->state == TR_REPLICA_HOLDING;
        replica->state = TR_REPLICA_RETIRING;
        replica->forsaken = is_forsaken_locked(component, replica);
        take_queue_locked(component, replica, ret_calls);
        return true;
}

/* Whether its owner is to be told now that it has nothing in hand any more; once. */
static bool is_retired_locked(struct tr_replica *replica) {
        if (replica->state != TR_REPLICA_RETIRING || replica->in_hand_count > 0 || replica->retired_told)
                return false;
        replica->retired_told = true;
        return true;
}

void tr_replica_tell_retired(struct tr_replica *replica) {
        tr_lock_acquire(&replica->component->lock);
        bool tell = is_retired_locked(replica);
        tr_lock_release(&replica->component->lock);
        if (tell && replica->ops->retired)
                replica->ops->retired(replica);
}

static void refuse_addressed(struct tr_replica *replica, struct tr_list *calls) {
        struct tr_message *message;
        if (tr_list_is_empty(calls))
                return;
        struct tr_failure *failure = tr_addressee_failure(replica->component, replica->instance, strlen(replica->instance));
        tr_list_for_each(message, calls, link) {
                tr_list_unlink(&message->link);
                tr_invocation_reject(message, failure, TR_RAN_NO);
                tr_message_unref(message);
        }
        tr_failure_unref(failure);
}

void tr_replica_hold(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        struct tr_list calls = TR_LIST_INIT(calls);
        bool hands_over = false;
        tr_lost_note(replica);
        tr_lock_acquire(&component->lock);
        struct tr_replica *before = tr_steal(replica->successor_of);
        if (replica->state == TR_REPLICA_JOINED) {
                replica->state = TR_REPLICA_HOLDING;
                component->holding++;
                /* what waits for the name goes on waiting, where it is the same one: nobody is refused for that */
                if (before && before->state == TR_REPLICA_HOLDING && strcmp(before->instance, replica->instance) == 0) {
                        tr_entity_turns_restore(&component->turns);
                        tr_list_splice(&replica->queue, &before->queue);
                }
                if (before)
                        hands_over = retire_locked(component, before, &calls);
        }
        tr_lock_release(&component->lock);
        if (hands_over)
                tr_lost_hand_over(before, replica);
        if (before) {
                refuse_addressed(before, &calls);
                tr_replica_tell_retired(before);
                leave_set_timer(before);
        }
        tr_replica_unref(before);
        tr_component_dispatch(component);
}

void tr_replica_retire(struct tr_replica *replica) {
        struct tr_component *component = replica->component;
        struct tr_list calls = TR_LIST_INIT(calls);
        tr_lost_give_up(replica);
        tr_lock_acquire(&component->lock);
        bool first = retire_locked(component, replica, &calls);
        tr_lock_release(&component->lock);
        refuse_addressed(replica, &calls);
        tr_replica_tell_retired(replica);
        if (first) {
                leave_set_timer(replica);
                tr_component_try_end(component);
        }
}

void tr_replica_died(struct tr_replica *replica) {
        tr_replica_died_of(replica, NULL);
}

void tr_replica_died_of(struct tr_replica *replica, const struct tr_failure *failure) {
        struct tr_component *component = replica->component;
        struct tr_list calls = TR_LIST_INIT(calls);
        struct tr_target *target = NULL;
        tr_lost_die(replica, failure);
        tr_lock_acquire(&component->lock);
        bool first = replica->state != TR_REPLICA_GONE;
        if (first) {
                target = tr_steal(replica->target); /* an actor holds its replica */
                component->holding -= replica->state == TR_REPLICA_HOLDING;
                replica->state = TR_REPLICA_GONE;
                tr_list_unlink(&replica->link);
                take_queue_locked(component, replica, &calls);
        }
        struct tr_replica *before = tr_steal(replica->successor_of);
        tr_lock_release(&component->lock);
        refuse_addressed(replica, &calls);
        tr_replica_unref(before);
        tr_target_unref(target);
        if (first) {
                leave_clear_timer(replica);
                tr_component_try_end(component);
                tr_replica_unref(replica); /* the list's */
        }
}

void tr_replica_relieved(struct tr_replica *replica) {
        tr_lock_acquire(&replica->component->lock);
        bool was = replica->congested;
        replica->congested = false;
        replica->reliefs++;
        tr_lock_release(&replica->component->lock);
        if (was)
                tr_component_dispatch(replica->component);
}

/* What they say of themselves */

void tr_component_write_instances(struct tr_component *component, struct tr_writer *writer) {
        struct tr_replica *replica;
        tr_lock_acquire(&component->lock);
        tr_write_array(writer, component->holding);
        tr_list_for_each(replica, &component->replicas, link)
                if (replica->state == TR_REPLICA_HOLDING)
                        tr_write_text(writer, replica->instance);
        tr_lock_release(&component->lock);
}

int tr_component_list_replicas(struct tr_component *component, struct tr_replica ***ret_replicas, uint32_t *ret_count) {
        struct tr_replica *replica, **replicas;
        uint32_t count = 0, at = 0;
        tr_lock_acquire(&component->lock);
        tr_list_for_each(replica, &component->replicas, link)
                count++;
        replicas = calloc(count + 1, sizeof(struct tr_replica *));
        if (replicas)
                tr_list_for_each(replica, &component->replicas, link)
                        replicas[at++] = tr_replica_ref(replica);
        tr_lock_release(&component->lock);
        if (!replicas)
                return tr_error_origin(-ENOMEM);
        *ret_replicas = replicas;
        *ret_count = count;
        return 0;
}

static const char *replica_state_text(const struct tr_replica *replica, uint32_t in_hand) {
        switch (replica->state) {
        case TR_REPLICA_JOINED:
                return "starting";
        case TR_REPLICA_HOLDING:
                return in_hand > 0 ? "running" : "idle";
        default:
                return "stopping";
        }
}

static void write_figure(struct tr_writer *writer, const char *key, uint64_t value) {
        tr_write_text(writer, key);
        tr_write_uint(writer, value);
}

uint32_t tr_replica_write_pairs(struct tr_replica *replica, struct tr_writer *writer) {
        struct tr_component *component = replica->component;
        uint32_t queued = 0;
        struct tr_message *message;
        tr_lock_acquire(&component->lock);
        uint32_t in_hand = replica->in_hand_count;
        const char *state = replica_state_text(replica, in_hand);
        tr_list_for_each(message, &replica->queue, link)
                queued++;
        tr_lock_release(&component->lock);
        tr_write_text(writer, "component");
        tr_write_text(writer, component->target.label);
        tr_write_text(writer, "instance");
        tr_write_text(writer, replica->instance);
        tr_write_text(writer, "serves");
        tr_write_text(writer, state);
        tr_write_text(writer, "by");
        tr_write_text(writer, replica->kind);
        write_figure(writer, "concurrency", replica->concurrency);
        write_figure(writer, "in_hand", in_hand);
        write_figure(writer, "addressed", queued);
        /* relaxed: figures for people */
        write_figure(writer, "calls", atomic_load_explicit(&replica->calls_total, memory_order_relaxed));
        return 8;
}

void tr_replica_write_info(struct tr_replica *replica, bool plain, struct tr_writer *writer) {
        struct tr_target *target = tr_replica_target(replica);
        bool is_actor = target && target->ops->kind == TR_TARGET_REPLICA;
        if (is_actor)
                tr_target_write_info(target, plain, writer); /* which has these pairs too */
        tr_target_unref(target);
        if (is_actor)
                return;
        tr_write_map(writer, 8 + 8);
        tr_write_text(writer, "kind");
        tr_write_text(writer, "replica");
        tr_write_text(writer, "name");
        tr_write_text(writer, replica->instance);
        tr_write_text(writer, "since");
        tr_write_int(writer, replica->since_ms);
        tr_lock_acquire(&replica->component->lock);
        const char *state = replica_state_text(replica, replica->in_hand_count);
        uint32_t in_hand = replica->in_hand_count;
        tr_lock_release(&replica->component->lock);
        tr_write_text(writer, "state");
        tr_write_text(writer, state);
        write_figure(writer, "mailbox", in_hand);
        write_figure(writer, "messages", atomic_load_explicit(&replica->calls_total, memory_order_relaxed));
        write_figure(writer, "faults", atomic_load_explicit(&replica->faults_total, memory_order_relaxed));
        write_figure(writer, "pid", replica->pid > 0 ? (uint64_t)replica->pid : 0);
        tr_replica_write_pairs(replica, writer);
}
