/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replicas of a module: actors that the daemon starts, and starts again.
 *
 * What is known of one start is its staff: it is the asker of the init message (whose answer says that the actor has started) and of a
 * watch on the actor (whose answer says that it has ended); so it hears of both on whatever thread they happen.
 *
 * A replica is replaced by starting its successor, which has the name it will have ready, and takes over when its init has
 * ended; the one before retires, and its actor stops when it has answered what it has. One slot is renewed after another.
 */
#include "daemon/core/component_slot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/actor.h"
#include "daemon/core/replica.h"
#include "daemon/core/retry.h"
#include "daemon/core/session.h"
#include "daemon/core/system.h"

#define INIT_NS (10 * TR_NS_PER_S)

/* One start of one slot. */
struct tr_staff {
        struct tr_asker asker; /* of its init, and of the watch on its end */
        _Atomic uint32_t refs;
        struct tr_component_slot *slot;
        struct tr_component *component; /* strong, so that the slot is there */
        struct tr_replica *replica;     /* strong, and holds the staff; NULL before it has joined and when it has ended */
        bool ended;                     /* guarded by the component's lock, as are the replica and what follows */
        bool stops;                     /* the component does */
        enum tr_stop_reason stop_reason;
};

static const struct tr_asker_ops staff_asker_ops;

static struct tr_staff *staff_ref(struct tr_staff *staff) {
        atomic_fetch_add_explicit(&staff->refs, 1, memory_order_relaxed);
        return staff;
}

static void staff_unref_many(struct tr_staff *staff, uint32_t count) {
        if (!staff || atomic_fetch_sub_explicit(&staff->refs, count, memory_order_acq_rel) != count)
                return;
        tr_component_unref(staff->component);
        free(staff);
}

static void staff_unref(struct tr_staff *staff) {
        staff_unref_many(staff, 1);
}

static struct tr_staff *staff_new(struct tr_component_slot *slot) {
        struct tr_staff *staff = calloc(1, sizeof(*staff));
        if (!staff)
                return NULL;
        staff->asker.ops = &staff_asker_ops;
        atomic_init(&staff->refs, 1);
        staff->slot = slot;
        staff->component = tr_component_ref(slot->component);
        return staff;
}

/* The timer */

static void slot_start(struct tr_component_slot *slot);

static void on_slot_timer(struct tr_timer *timer) {
        struct tr_component_slot *slot = tr_container_of(timer, struct tr_component_slot, timer);
        struct tr_component *component = slot->component;
        struct tr_target *late = NULL;
        bool start = false;

        tr_lock_acquire(&component->lock);
        if (tr_clock_ns() >= slot->due_ns) {
                const struct tr_replica *replica = slot->starting ? slot->starting->replica : NULL;
                late = replica && replica->target ? tr_target_ref(replica->target) : NULL;
                start = !slot->starting;
        }
        tr_lock_release(&component->lock);

        if (late)
                late->ops->kill(late);
        tr_target_unref(late);
        if (start)
                slot_start(slot);
        tr_component_unref(component);
}

static void slot_clear_timer(struct tr_component_slot *slot) {
        if (tr_system_clear_timer(slot->component->target.system, &slot->timer))
                tr_component_unref(slot->component);
}

static void slot_set_timer(struct tr_component_slot *slot, uint64_t due_ns) {
        struct tr_component *component = slot->component;
        slot_clear_timer(slot);
        tr_component_ref(component);
        int r = tr_system_set_timer(component->target.system, &slot->timer, due_ns);
        if (r == 0)
                return;
        tr_component_unref(component); /* somebody else set it meanwhile, with a reference of his; or it is not set */
        if (r < 0)
                tr_log(TR_LOG_ERROR, "component %s: out of memory for the timer of a replica", component->target.label);
}

/* As a replica: what the component asks of it */

/* Its actor is told when nothing is in hand any more: a call that is on its way to it would find it closed. How long that may take is
 * for whoever stops the component to say. */
static void staff_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        struct tr_staff *staff = replica->userdata;
        tr_lock_acquire(&staff->component->lock);
        staff->stops = true;
        staff->stop_reason = reason;
        tr_lock_release(&staff->component->lock);
        tr_replica_retire(replica);
}

static void staff_retired(struct tr_replica *replica) {
        struct tr_staff *staff = replica->userdata;
        struct tr_target *target = tr_replica_target(replica);
        tr_lock_acquire(&staff->component->lock);
        bool stops = staff->stops;
        enum tr_stop_reason reason = stops ? staff->stop_reason : TR_STOP_ASKED;
        tr_lock_release(&staff->component->lock);
        if (target)
                target->ops->stop(target, reason, stops ? TR_NEVER : target->system->limits.grace_ns);
        tr_target_unref(target);
}

static void staff_kill(struct tr_replica *replica) {
        struct tr_target *target = tr_replica_target(replica);
        if (target)
                target->ops->kill(target);
        tr_target_unref(target);
}

static void staff_release(struct tr_replica *replica) {
        staff_unref(replica->userdata);
}

static const struct tr_replica_ops staff_replica_ops = {
        .retired = staff_retired,
        .stop = staff_stop,
        .kill = staff_kill,
        .release = staff_release,
};

/* Starting */

/* A message that tells the staff; NULL where memory is short. */
static struct tr_message *staff_message(struct tr_staff *staff, enum tr_message_kind kind) {
        struct tr_message *message = tr_message_new(kind, "init", 4, NULL, 0, 0);
        if (!message)
                return NULL;
        message->form = TR_FORM_TYPED;
        message->caller_uid = staff->component->target.owner_uid;
        message->asker = &staff_ref(staff)->asker;
        return message;
}

/* Its actor, which joins what is inside of the component. NULL, or why there is none. */
static struct tr_failure *staff_spawn(struct tr_staff *staff) {
        struct tr_component *component = staff->component;
        struct tr_replica *replica = staff->replica;
        struct tr_session *session = tr_session_inside(&component->target);
        struct tr_message *init = staff_message(staff, TR_MESSAGE_INIT);
        struct tr_message *watch = staff_message(staff, TR_MESSAGE_DONE);
        struct tr_failure *failure;
        const struct tr_actor_options options = {
                .actor = replica->manifest->module,
                .label = replica->instance,
                .owner_uid = component->target.owner_uid,
                .heap_bytes = replica->manifest->heap_bytes,
                .async = replica->concurrency,
                .replica = replica,
        };
        if (session && init && watch) {
                struct tr_target *target;
                failure = tr_actor_spawn(component->target.system, session, &options, init, &target, NULL);
                if (!failure) {
                        tr_target_watch(target, tr_message_ref(watch));
                        tr_target_unref(target);
                }
        } else {
                tr_message_unref(init);
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        tr_message_unref(watch);
        tr_session_unref(session);
        return failure;
}

static struct tr_failure *staff_join(struct tr_staff *staff, const struct tr_replica_options *options) {
        struct tr_replica *replica;
        staff_ref(staff); /* the replica's */
        struct tr_failure *failure = tr_replica_join(staff->component, options, NULL, &replica);
        if (failure) {
                staff_unref(staff);
                return failure;
        }
        tr_lock_acquire(&staff->component->lock);
        staff->replica = replica;
        tr_lock_release(&staff->component->lock);
        return NULL;
}

/* It joins as a replica, and its actor is started. NULL, or why not. */
static struct tr_failure *staff_start(struct tr_staff *staff, struct tr_replica *before) {
        struct tr_component_slot *slot = staff->slot;
        struct tr_manifest *manifest = tr_component_manifest(staff->component);
        struct tr_failure *failure = NULL;
        if (manifest->module && slot->number < manifest->replicas.count) {
                const struct tr_manifest_replica *as = &manifest->replicas.list[slot->number];
                const struct tr_replica_options options = {
                        .ops = &staff_replica_ops,
                        .userdata = staff,
                        .instance = as->instance,
                        .successor_of = before,
                        .index = slot->number,
                        .manifest = manifest,
                        .started_as = as,
                        .uid = staff->component->target.owner_uid,
                        .kind = "module",
                        .whole_entities = true,
                };
                failure = staff_join(staff, &options);
        } else {
                failure = tr_failure_new(TR_CODE_NOT_RUNNING, "the manifest has changed");
        }
        tr_manifest_unref(manifest);
        if (!failure)
                failure = staff_spawn(staff);
        if (failure)
                return failure;
        /* A component that was stopped meanwhile may have missed the actor, which was not there yet. */
        tr_lock_acquire(&staff->component->lock);
        bool stop = staff->component->stopping && staff->replica && staff->replica->target;
        struct tr_target *target = stop ? tr_target_ref(staff->replica->target) : NULL;
        tr_lock_release(&staff->component->lock);
        if (target)
                target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        tr_target_unref(target);
        return NULL;
}

static void staff_ended(struct tr_staff *staff, struct tr_failure *failure);
static void tell_settled(struct tr_component *component);

static void slot_try_later(struct tr_component_slot *slot) {
        uint64_t due_ns = tr_clock_deadline_ns(TR_RETRY_MAX_NS);
        tr_lock_acquire(&slot->component->lock);
        slot->due_ns = due_ns;
        slot->settled = true;
        tr_lock_release(&slot->component->lock);
        slot_set_timer(slot, due_ns);
        tell_settled(slot->component);
}

static void slot_start(struct tr_component_slot *slot) {
        struct tr_component *component = slot->component;
        struct tr_staff *staff = staff_new(slot);
        struct tr_replica *before = NULL;
        if (!staff) {
                tr_log(TR_LOG_ERROR, "component %s: out of memory for a replica", component->target.label);
                slot_try_later(slot);
                return;
        }
        tr_lock_acquire(&component->lock);
        bool start = slot->wanted && !slot->starting && !component->stopping && !(slot->current && !slot->renew);
        if (start) {
                slot->starting = staff_ref(staff);
                slot->renew = false; /* unless the manifest changes once more before it is there */
                slot->began_ns = tr_clock_ns();
                slot->due_ns = slot->began_ns + INIT_NS;
                component->staff++;
                if (slot->current && slot->current->replica)
                        before = tr_replica_ref(slot->current->replica);
        }
        uint64_t due_ns = slot->due_ns;
        tr_lock_release(&component->lock);
        if (start) {
                slot_set_timer(slot, due_ns);
                struct tr_failure *failure = staff_start(staff, before);
                if (failure)
                        staff_ended(staff, failure);
                tr_failure_unref(failure);
        }
        tr_replica_unref(before);
        staff_unref(staff);
}

/* The first slot that has to be renewed, where none is being; NULL: there is nothing to do. */
static struct tr_component_slot *slot_to_renew_locked(const struct tr_component *component) TR_REQUIRES(component->lock) {
        struct tr_component_slot *found = NULL;
        for (uint32_t i = 0; i < component->slots_count; i++) {
                struct tr_component_slot *slot = component->slots[i];
                if (slot->starting && slot->current)
                        return NULL;
                if (!found && slot->wanted && slot->current && slot->renew && !slot->starting)
                        found = slot;
        }
        return found;
}

static void renew_next(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        struct tr_component_slot *slot = slot_to_renew_locked(component);
        tr_lock_release(&component->lock);
        if (slot)
                slot_start(slot);
}

/* Whoever waits for the first starts is called, where all have ended. */
static void tell_settled(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        bool settled = true;
        for (uint32_t i = 0; i < component->slots_count; i++)
                settled &= component->slots[i]->settled || !component->slots[i]->wanted;
        settled |= component->stopping;
        void (*tell)(void *userdata) = settled ? component->settled : NULL;
        void *userdata = component->settled_userdata;
        if (tell)
                component->settled = NULL;
        tr_lock_release(&component->lock);
        if (tell)
                tell(userdata);
}

void tr_component_when_settled(struct tr_component *component, void (*settled)(void *userdata), void *userdata) {
        tr_lock_acquire(&component->lock);
        component->settled = settled;
        component->settled_userdata = userdata;
        tr_lock_release(&component->lock);
        tell_settled(component);
}

/* Its init has ended well: on its actor's thread, before whoever waits for that is told. */
static void staff_started(struct tr_staff *staff) {
        struct tr_component_slot *slot = staff->slot;
        struct tr_component *component = staff->component;
        tr_lock_acquire(&component->lock);
        bool is_the_one = slot->starting == staff;
        bool again = slot->settled;
        struct tr_staff *before = NULL;
        if (is_the_one) {
                before = slot->current;
                slot->current = slot->starting;
                slot->starting = NULL;
                slot->settled = true;
                slot->due_ns = TR_NEVER;
                component->restarts_total += again;
        }
        bool wanted = slot->wanted && !component->stopping;
        struct tr_replica *replica = is_the_one ? tr_replica_ref(staff->replica) : NULL;
        tr_lock_release(&component->lock);
        if (!is_the_one)
                return; /* it was given up in its init, and has come back */
        slot_clear_timer(slot);
        struct tr_target *target = tr_replica_target(replica);
        if (again && target)
                tr_system_tell(component->target.system, &(struct tr_news){ .event = TR_EVENT_RESTARTED, .target = target });
        tr_target_unref(target);
        tr_replica_hold(replica); /* and the one before it retires */
        if (!wanted)
                staff_stop(replica, TR_STOP_ASKED);
        tr_replica_unref(replica);
        staff_unref(before);
        tell_settled(component);
        renew_next(component);
}

/* Ending */

static void log_end(const struct tr_component_slot *slot, const struct tr_failure *failure, uint64_t pause_ns) {
        tr_log(failure ? TR_LOG_WARNING : TR_LOG_INFO, "component %s: replica %" PRIu32 ": %s: %s; it is replaced in %" PRIu64 " ms",
               slot->component->target.label, slot->number, failure ? tr_code_text(failure->code) : "stopped",
               failure ? failure->message : "it stopped", pause_ns / TR_NS_PER_MS);
}

/* Its actor has ended, or could not be made. The failure is borrowed; NULL: it stopped orderly. */
static void staff_ended(struct tr_staff *staff, struct tr_failure *failure) {
        struct tr_component_slot *slot = staff->slot;
        struct tr_component *component = staff->component;
        uint64_t pause_ns = 0;
        bool comes_back = false, given_up = false;

        tr_lock_acquire(&component->lock);
        struct tr_replica *replica = staff->replica;
        staff->replica = NULL;
        tr_lock_release(&component->lock);
        if (replica)
                tr_replica_died_of(replica, failure);
        tr_lock_acquire(&component->lock);
        bool was_starting = slot->starting == staff, was_current = slot->current == staff;
        if (was_starting)
                slot->starting = NULL;
        if (was_current)
                slot->current = NULL;
        if (was_starting || was_current) {
                slot->settled = true;
                slot->renew |= slot->current != NULL; /* the one that it should have followed is there still */
                comes_back = slot->wanted && !component->stopping && !slot->starting;
        }
        if (comes_back) {
                bool was_given_up = slot->backoff.slowed;
                pause_ns = tr_retry_pause_ns(&slot->backoff, slot->began_ns, failure);
                given_up = slot->backoff.slowed && !was_given_up;
                slot->due_ns = tr_clock_deadline_ns(pause_ns);
        }
        uint64_t due_ns = slot->due_ns;
        bool first = !staff->ended;
        staff->ended = true;
        component->staff -= first;
        tr_lock_release(&component->lock);

        if (was_starting && !comes_back)
                slot_clear_timer(slot);
        if (comes_back) {
                log_end(slot, failure, pause_ns);
                if (given_up)
                        tr_retry_tell_given_up(&component->target, "replica", slot->number, failure);
                slot_set_timer(slot, due_ns);
        }
        tell_settled(component);
        tr_component_try_end(component);
        if (was_starting)
                staff_unref(staff);
        if (was_current)
                staff_unref(staff);
        tr_replica_unref(replica);
}

/* What it is told */

static struct tr_staff *staff_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_staff, asker);
}

static void staff_on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        if (message->kind == TR_MESSAGE_INIT)
                staff_started(staff_of(asker));
        else
                staff_ended(staff_of(asker), NULL);
}

/* That init has failed is told again, as the end. */
static void staff_on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                            bool more) {
        if (message->kind == TR_MESSAGE_DONE)
                staff_ended(staff_of(asker), failure);
}

static void staff_on_ref(struct tr_asker *asker) {
        staff_ref(staff_of(asker));
}

static void staff_on_unref(struct tr_asker *asker, uint32_t count) {
        staff_unref_many(staff_of(asker), count);
}

static const struct tr_asker_ops staff_asker_ops = {
        .resolve = staff_on_resolve,
        .reject = staff_on_reject,
        .ref = staff_on_ref,
        .unref = staff_on_unref,
};

/* All slots of a component */

static struct tr_component_slot *slot_new(struct tr_component *component, uint32_t number) {
        struct tr_component_slot *slot = calloc(1, sizeof(*slot));
        if (!slot)
                return NULL;
        slot->component = component;
        slot->number = number;
        slot->timer.fire = on_slot_timer;
        tr_backoff_init(&slot->backoff, TR_RETRY_MIN_NS, TR_RETRY_MAX_NS, TR_RETRY_RESET_NS);
        return slot;
}

static bool component_add_slot(struct tr_component *component, struct tr_component_slot *take_slot) {
        tr_lock_acquire(&component->lock);
        struct tr_component_slot **slots =
                reallocarray(component->slots, component->slots_count + 1, sizeof(struct tr_component_slot *));
        if (slots) {
                slots[component->slots_count++] = take_slot;
                component->slots = slots;
        }
        tr_lock_release(&component->lock);
        if (!slots)
                free(take_slot);
        return slots;
}

int tr_component_make_slots(struct tr_component *component, uint32_t count) {
        while (component->slots_count < count) {
                struct tr_component_slot *slot = slot_new(component, component->slots_count);
                if (!slot || !component_add_slot(component, slot))
                        return tr_error_origin(-ENOMEM);
        }
        return 0;
}

void tr_component_renew_slots(struct tr_component *component) {
        tr_lock_acquire(&component->lock);
        uint32_t count = component->slots_count;
        const struct tr_manifest *manifest = component->manifest;
        for (uint32_t i = 0; i < count; i++) {
                component->slots[i]->wanted = manifest->module && i < manifest->replicas.count;
                component->slots[i]->renew = component->slots[i]->current || component->slots[i]->starting;
        }
        tr_lock_release(&component->lock);

        for (uint32_t i = 0; i < count; i++) {
                tr_lock_acquire(&component->lock);
                struct tr_component_slot *slot = component->slots[i];
                bool start = slot->wanted && !slot->current && !slot->starting;
                struct tr_replica *dismissed = !slot->wanted && slot->current ? slot->current->replica : NULL;
                if (dismissed)
                        tr_replica_ref(dismissed);
                tr_lock_release(&component->lock);
                if (start)
                        slot_start(slot);
                if (dismissed)
                        tr_replica_retire(dismissed);
                tr_replica_unref(dismissed);
        }
        renew_next(component);
}

/* NULL: there are no more. Another manifest may move the array. */
static struct tr_component_slot *slot_at(struct tr_component *component, uint32_t number) {
        tr_lock_acquire(&component->lock);
        struct tr_component_slot *slot = number < component->slots_count ? component->slots[number] : NULL;
        tr_lock_release(&component->lock);
        return slot;
}

void tr_component_stop_slots(struct tr_component *component) {
        struct tr_component_slot *slot;
        for (uint32_t i = 0; (slot = slot_at(component, i)); i++)
                slot_clear_timer(slot);
        tell_settled(component);
}

void tr_component_free_slots(struct tr_component *component) {
        for (uint32_t i = 0; i < component->slots_count; i++)
                free(component->slots[i]);
        free(component->slots);
}
