/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actor system: what the actors of one daemon share beyond names and
 * sessions. How many there may be, the daemon's timers, the threads that have
 * to be joined, and the last ones that ended.
 */
#include "daemon/core/system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/actor.h"
#include "daemon/core/failure.h"

int tr_system_new(const struct tr_system_limits *limits, const struct tr_behaviour *behaviour, void *behaviour_shared,
                  const struct tr_system_hooks *hooks, struct tr_system **ret_system) {
        struct tr_system *system = calloc(1, sizeof(*system));
        if (!system)
                return tr_error_origin(-ENOMEM);
        system->limits = *limits;
        system->behaviour = behaviour;
        system->behaviour_shared = behaviour_shared;
        system->hooks = *hooks;
        system->own_uid = (uint32_t)geteuid();
        tr_lock_init(&system->session_lock);
        tr_standstill_init(&system->standstill);
        tr_lock_init(&system->lock);
        pthread_cond_init(&system->no_threads, NULL);
        tr_list_init(&system->reap);
        tr_components_init(&system->components);

        int r = tr_registry_init(&system->registry);
        if (r == 0)
                r = tr_spans_init(&system->spans);
        system->ended = calloc(TR_SYSTEM_ENDED_KEPT, sizeof(struct tr_target *));
        system->daemon_session = tr_session_new(system);
        if (r < 0 || !system->ended || !system->daemon_session) {
                tr_system_free(system);
                return r < 0 ? tr_error_fold(r) : tr_error_origin(-ENOMEM);
        }
        snprintf(system->daemon_session->name, sizeof(system->daemon_session->name), "%s", "daemon");
        *ret_system = system;
        return 0;
}

/* Joins the threads that are over, and drops the reference that each of them had to its actor. */
static void system_join(struct tr_system *system) {
        for (;;) {
                tr_lock_acquire(&system->lock);
                struct tr_actor *actor = tr_list_first(&system->reap, struct tr_actor, reap_link);
                if (actor) {
                        tr_list_unlink(&actor->reap_link);
                        system->threads--;
                }
                tr_lock_release(&system->lock);
                if (!actor)
                        return;
                pthread_join(actor->thread, NULL);
                tr_target_unref(&actor->target);
        }
}

static uint32_t system_count_stuck(struct tr_system *system) {
        struct tr_target **targets;
        size_t count;
        uint32_t stuck = 0;
        if (tr_registry_list(&system->registry, &targets, &count) < 0)
                return UINT32_MAX;
        for (size_t i = 0; i < count; i++) {
                struct tr_actor *actor = tr_actor_of(targets[i]);
                stuck += actor && atomic_load(&actor->state) == TR_ACTOR_STUCK;
                tr_target_unref(targets[i]);
        }
        free(targets);
        return stuck;
}

uint32_t tr_system_free(struct tr_system *system) {
        if (!system)
                return 0;
        for (;;) {
                system_join(system);
                uint32_t stuck = system->registry.handles ? system_count_stuck(system) : 0;
                tr_lock_acquire(&system->lock);
                uint32_t threads = system->threads;
                /* A stuck thread may come back between the two looks; then it is in `reap`, and the next round joins it. */
                if (threads > stuck && tr_list_is_empty(&system->reap))
                        pthread_cond_wait(&system->no_threads, &system->lock.mutex);
                tr_lock_release(&system->lock);
                if (threads == 0)
                        break;
                if (threads <= stuck)
                        return stuck;
        }

        /* What is still set are deadlines of actors that have ended: firing one only drops its reference. */
        tr_system_run_due(system, TR_NEVER);
        for (uint32_t i = 0; system->ended && i < TR_SYSTEM_ENDED_KEPT; i++)
                tr_target_unref(system->ended[i]);
        free(system->ended);
        tr_session_unref(system->daemon_session);
        tr_registry_deinit(&system->registry);
        tr_spans_deinit(&system->spans);
        tr_components_deinit(&system->components);
        tr_timers_deinit(&system->timers);
        free(system->users);
        pthread_cond_destroy(&system->no_threads);
        tr_lock_deinit(&system->lock);
        tr_standstill_deinit(&system->standstill);
        tr_lock_deinit(&system->session_lock);
        free(system);
        return 0;
}

/* The entry of a user, made where there is none; NULL for want of memory. */
static struct tr_system_user *system_user_locked(struct tr_system *system, uint32_t uid) TR_REQUIRES(system->lock) {
        for (uint32_t i = 0; i < system->users_count; i++)
                if (system->users[i].uid == uid)
                        return &system->users[i];
        struct tr_system_user *users = reallocarray(system->users, system->users_count + 1, sizeof(*users));
        if (!users)
                return NULL;
        system->users = users;
        users[system->users_count] = (struct tr_system_user){ .uid = uid };
        return &users[system->users_count++];
}

void tr_system_set_limits(struct tr_system *system, const struct tr_system_limits *limits) {
        struct tr_system_limits *own = &system->limits;
        own->actors = limits->actors;
        own->actors_per_user = limits->actors_per_user;
        own->heap_bytes = limits->heap_bytes;
        own->heap_max_bytes = limits->heap_max_bytes;
        own->mailbox = limits->mailbox;
        own->mailbox_bytes = limits->mailbox_bytes;
        own->async = limits->async;
        own->queue = limits->queue;
        own->memory_bytes = limits->memory_bytes;
        own->slow_ns = limits->slow_ns;
        own->grace_ns = limits->grace_ns;
}

struct tr_failure *tr_system_reserve_actor(struct tr_system *system, uint32_t uid) {
        enum { ROOM, CLOSED, FULL, USER_FULL, NO_MEMORY } verdict = ROOM;
        const struct tr_system_limits *limits = &system->limits;
        bool counted = uid != 0 && uid != system->own_uid;

        tr_lock_acquire(&system->lock);
        struct tr_system_user *user = system_user_locked(system, uid);
        if (system->shutting_down)
                verdict = CLOSED;
        else if (system->actors >= limits->actors)
                verdict = FULL;
        else if (!user)
                verdict = NO_MEMORY;
        else if (counted && user->actors >= limits->actors_per_user)
                verdict = USER_FULL;
        if (verdict == ROOM) {
                system->actors++;
                user->actors++;
        }
        tr_lock_release(&system->lock);

        switch (verdict) {
        case CLOSED:
                return tr_failure_new(TR_CODE_SHUTTING_DOWN, "the daemon is shutting down");
        case FULL:
                return tr_failure_new(TR_CODE_LIMIT, "%u actors are running, and limits.actors allows no more", limits->actors);
        case USER_FULL:
                return tr_failure_new(TR_CODE_LIMIT, "user %u has %u actors, and limits.actors_per_user allows no more", uid,
                                      limits->actors_per_user);
        case NO_MEMORY:
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        case ROOM:
                break;
        }
        if (limits->memory_bytes && atomic_load_explicit(&system->heap_bytes, memory_order_relaxed) >= limits->memory_bytes) {
                tr_system_release_actor(system, uid);
                return tr_failure_new(TR_CODE_NO_MEMORY, "the heaps of all actors together have reached limits.memory");
        }
        return NULL;
}

void tr_system_release_actor(struct tr_system *system, uint32_t uid) {
        tr_lock_acquire(&system->lock);
        system->actors--;
        for (uint32_t i = 0; i < system->users_count; i++) {
                if (system->users[i].uid != uid)
                        continue;
                if (--system->users[i].actors == 0)
                        system->users[i] = system->users[--system->users_count];
                break;
        }
        tr_lock_release(&system->lock);
}

uint32_t tr_system_actors(struct tr_system *system) {
        tr_lock_acquire(&system->lock);
        uint32_t actors = system->actors;
        tr_lock_release(&system->lock);
        return actors;
}

/* Under one lock with those who count, so that an actor's messages are counted once, among its own or here, and the sum never falls. */
void tr_system_keep_count(struct tr_system *system, struct tr_actor *actor) {
        tr_lock_acquire(&system->lock);
        system->ended_messages += atomic_load_explicit(&actor->messages_total, memory_order_relaxed);
        actor->is_counted = true;
        tr_lock_release(&system->lock);
}

uint64_t tr_system_messages(struct tr_system *system, struct tr_target *const *targets, size_t count) {
        tr_lock_acquire(&system->lock);
        uint64_t messages = system->ended_messages;
        for (size_t i = 0; i < count; i++) {
                struct tr_actor *actor = tr_actor_of(targets[i]);
                if (actor && !actor->is_counted)
                        messages += atomic_load_explicit(&actor->messages_total, memory_order_relaxed);
        }
        tr_lock_release(&system->lock);
        return messages;
}

static void system_wake(struct tr_system *system) {
        if (system->hooks.wake)
                system->hooks.wake(system->hooks.userdata);
}

int tr_system_set_timer(struct tr_system *system, struct tr_timer *timer, uint64_t deadline_ns) {
        tr_lock_acquire(&system->lock);
        uint64_t before = tr_timers_next_ns(&system->timers);
        bool was_set = tr_timer_is_set(timer);
        int r = 0;
        if (!was_set || deadline_ns < timer->deadline_ns) {
                tr_timers_remove(&system->timers, timer);
                r = tr_timers_add(&system->timers, timer, deadline_ns);
        }
        tr_lock_release(&system->lock);
        if (r < 0)
                return tr_error_origin(r);
        if (deadline_ns < before)
                system_wake(system);
        return was_set ? TR_TIMER_WAS_SET : 0;
}

int tr_system_reserve_timer(struct tr_system *system, struct tr_timer *timer) {
        tr_lock_acquire(&system->lock);
        int r = tr_timers_reserve(&system->timers, timer);
        tr_lock_release(&system->lock);
        return r < 0 ? tr_error_origin(r) : 0;
}

void tr_system_release_timer(struct tr_system *system, struct tr_timer *timer) {
        tr_lock_acquire(&system->lock);
        tr_timers_unreserve(&system->timers, timer);
        tr_lock_release(&system->lock);
}

bool tr_system_clear_timer(struct tr_system *system, struct tr_timer *timer) {
        tr_lock_acquire(&system->lock);
        bool was_set = tr_timer_is_set(timer);
        tr_timers_remove(&system->timers, timer);
        tr_lock_release(&system->lock);
        return was_set;
}

uint64_t tr_system_run_due(struct tr_system *system, uint64_t now_ns) {
        system_join(system);
        for (;;) {
                tr_lock_acquire(&system->lock);
                struct tr_timer *timer = tr_timers_take_due(&system->timers, now_ns);
                uint64_t next_ns = tr_timers_next_ns(&system->timers);
                tr_lock_release(&system->lock);
                if (!timer)
                        return next_ns;
                timer->fire(timer);
        }
}

void tr_system_reap(struct tr_system *system, struct tr_actor *actor) {
        /* All under the lock: whoever frees the system joins this thread first, and finds it only when the lock is free. */
        tr_lock_acquire(&system->lock);
        tr_list_append(&system->reap, &actor->reap_link);
        pthread_cond_broadcast(&system->no_threads);
        system_wake(system);
        tr_lock_release(&system->lock);
}

struct tr_refused tr_refused_message(struct tr_target *target, const struct tr_message *message,
                                     const struct tr_failure *failure) {
        return (struct tr_refused){
                .code = failure->code,
                .why = failure->message,
                .is_ask = message->asker,
                .target = target,
                .handler = tr_message_handler(message),
                .handler_len = message->handler_len,
                .sender_uid = message->caller_uid,
        };
}

enum tr_event tr_event_of_end(const struct tr_failure *failure) {
        if (!failure)
                return TR_EVENT_STOPPED;
        return failure->code == TR_CODE_KILLED ? TR_EVENT_KILLED : TR_EVENT_FAULTED;
}

void tr_system_tell(struct tr_system *system, const struct tr_news *news) {
        if (system->hooks.event)
                system->hooks.event(system->hooks.userdata, news);
}

void tr_system_tell_refused(struct tr_system *system, const struct tr_refused *refused) {
        /* relaxed: a figure for people */
        atomic_fetch_add_explicit(&system->refused_total[refused->code], 1, memory_order_relaxed);
        if (system->hooks.refused)
                system->hooks.refused(system->hooks.userdata, refused);
}

void tr_system_close(struct tr_system *system) {
        tr_lock_acquire(&system->lock);
        system->shutting_down = true;
        tr_lock_release(&system->lock);
}

void tr_system_keep_ended(struct tr_system *system, struct tr_target *target) {
        tr_target_ref(target);
        tr_lock_acquire(&system->lock);
        struct tr_target *oldest = system->ended[system->ended_at];
        system->ended[system->ended_at] = target;
        system->ended_at = (system->ended_at + 1) % TR_SYSTEM_ENDED_KEPT;
        tr_lock_release(&system->lock);
        tr_target_unref(oldest);
}

void tr_system_visit_ended(struct tr_system *system, void (*visit)(void *userdata, struct tr_target *target), void *userdata) {
        for (uint32_t i = 0; i < TR_SYSTEM_ENDED_KEPT; i++) {
                tr_lock_acquire(&system->lock);
                struct tr_target *target = tr_target_ref(system->ended[i]);
                tr_lock_release(&system->lock);
                if (target)
                        visit(userdata, target);
                tr_target_unref(target);
        }
}
