/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_COMPONENT_H
#define TR_CORE_COMPONENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/contract/manifest.h"
#include "daemon/core/entity_turn.h"
#include "daemon/core/message.h"
#include "daemon/core/target.h"
#include "daemon/core/task_held.h"
#include "daemon/core/timer.h"

struct tr_component_figures;
struct tr_component_slot;
struct tr_replica;
struct tr_session;
struct tr_system;

/*
 * Components: a name, a manifest, the calls that wait, and the replicas that answer them.
 *
 * A component is a target, so that a session ends it and lists show it; but nobody posts to its handle: it is called by its
 * name (core/invocation.h). Replicas join it from whoever makes them (core/replica.h): Lua actors of its module, which it starts
 * itself (component_slot.c), and connections. Each gets calls as messages, [input, context], of which the component is the
 * asker: it hears how each delivery ended, and whether the call ends with that or goes to another replica.
 *
 * Routing happens on the thread of whoever calls, or of whoever has answered: there is no dispatcher.
 *
 * Lock order: the component's lock is held to look and to change; nothing else is acquired under it. What is to be posted,
 * answered or told is done after.
 */

/* The calls that wait for one operation, in the order in which they came. */
struct tr_component_line {
        struct tr_list calls; /* caller's messages, each a reference, by tr_message.link */
        struct tr_list tasks; /* the same of those that are tasks */
};

struct tr_component {
        struct tr_target target; /* first; its label is the component's name */
        struct tr_asker asker;   /* of deliveries */

        struct tr_component *next_by_name; /* the table's, guarded by its lock */
        bool listed;                       /* the same */

        struct tr_lock lock;
        struct tr_manifest *manifest TR_GUARDED_BY(lock); /* strong */
        struct tr_component_line *lines TR_GUARDED_BY(lock); /* one for each operation, in the manifest's order */
        struct tr_component_figures *figures TR_GUARDED_BY(lock); /* the same, and one more for operations that it has not; both are
                                                                   * replaced together with the manifest */
        uint64_t restarts_total TR_GUARDED_BY(lock); /* replicas that the daemon has started in the place of others */
        _Atomic uint32_t waiting; /* in all lines and all replicas' own queues. Changes under the lock; read without it as a hint */
        uint32_t waiting_max TR_GUARDED_BY(lock);
        uint64_t sequence TR_GUARDED_BY(lock); /* of the calls: which came first */
        uint32_t in_lines TR_GUARDED_BY(lock); /* of those: in lines */
        struct tr_entity_turns turns TR_GUARDED_BY(lock); /* those that they have to wait for are aside; they count as where they were */
        bool turns_timed TR_GUARDED_BY(lock);             /* turns_timer is set, or about to be */
        uint32_t writes TR_GUARDED_BY(lock); /* calls whose changes are being written */
        struct tr_component_tasks tasks;
        struct tr_list replicas TR_GUARDED_BY(lock); /* by tr_replica.link, each a reference; the next to be tried first */
        uint32_t holding TR_GUARDED_BY(lock);  /* replicas in that state */
        /* Those that the daemon starts. They stay until the component is freed; of some the manifest may say nothing any more. */
        struct tr_component_slot **slots TR_GUARDED_BY(lock);
        uint32_t slots_count TR_GUARDED_BY(lock);
        uint32_t staff TR_GUARDED_BY(lock);    /* actors and processes that were started and have not ended */
        bool has_crew TR_GUARDED_BY(lock);     /* some manifest has had processes */
        bool stopping TR_GUARDED_BY(lock); /* takes no more calls; ends when its replicas are gone */
        bool replicas_stopped TR_GUARDED_BY(lock); /* they have been told */
        bool telling TR_GUARDED_BY(lock);          /* somebody is telling them */
        bool killed TR_GUARDED_BY(lock);
        bool over TR_GUARDED_BY(lock);
        enum tr_stop_reason stop_reason TR_GUARDED_BY(lock);
        void (*settled)(void *userdata) TR_GUARDED_BY(lock); /* see tr_component_when_settled() */
        void *settled_userdata TR_GUARDED_BY(lock);
        struct tr_timer stop_timer; /* holds a reference while it is set */
        struct tr_timer turns_timer; /* the same; it can always be set */
};

/* All components of a system, by name. */
struct tr_components {
        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_component *buckets[64] TR_GUARDED_BY(lock);
};

void tr_components_init(struct tr_components *components);
void tr_components_deinit(struct tr_components *components);

/* New references to all of them, in an array that the caller frees. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_components_list(struct tr_system *system, struct tr_component ***ret_components, size_t *ret_count);
/* A new reference, or NULL. The component may be stopping. */
struct tr_component *tr_component_find(struct tr_system *system, const char *name, size_t len);

/*
 * Declares a component in a session, and starts its module's replicas. Any thread. NULL and a new reference in *ret_component
 * (which may be NULL: not wanted); or why not (taken, no-memory, shutting-down).
 */
struct tr_failure *tr_component_declare(struct tr_system *system, struct tr_session *session, struct tr_manifest *manifest,
                                        uint32_t owner_uid, int32_t owner_pid, struct tr_component **ret_component);

/*
 * Gives it another manifest, of the same name: what is checked from now on is checked by that. Replicas of the module are
 * replaced one by one, each when its successor takes calls; those of connections stay. Calls that wait go on waiting, those
 * of operations that are gone are refused (not-found). NULL or no-memory. Any thread.
 */
struct tr_failure *tr_component_replace(struct tr_component *component, struct tr_manifest *manifest);

/* Calls back, once, when every first start of a replica of its module has ended, well or not: now, or later on any thread, no lock
 * held. */
void tr_component_when_settled(struct tr_component *component, void (*settled)(void *userdata), void *userdata);

/* A process is being started for it, or what it is to be told is on its way: it does not end before tr_component_leave_staff(). Any
 * thread, no lock held. */
void tr_component_enter_staff(struct tr_component *component);
void tr_component_leave_staff(struct tr_component *component);
/* A process that was started in the place of another one serves. Any thread, no lock held. */
void tr_component_count_restarted(struct tr_component *component);

static inline struct tr_component *tr_component_ref(struct tr_component *component) {
        tr_target_ref(&component->target);
        return component;
}

/* NULL is fine. */
static inline void tr_component_unref(struct tr_component *component) {
        tr_target_unref(component ? &component->target : NULL);
}

TR_DEFINE_CLEANUP(struct tr_component, tr_component_unref)

extern const struct tr_target_ops tr_component_target_ops;

static inline struct tr_component *tr_component_of(struct tr_target *target) {
        return target->ops == &tr_component_target_ops ? (struct tr_component *)target : NULL;
}

/* A new reference to the manifest in effect. */
struct tr_manifest *tr_component_manifest(struct tr_component *component);

/* Between the files of core that make up a component. */

/* Delivers what can be delivered. No lock held. */
void tr_component_dispatch(struct tr_component *component);
/* Where it stops: tells its replicas to, once nothing waits for them; and ends, when nobody is left. No lock held. */
void tr_component_try_end(struct tr_component *component);
/* The line of an operation, in the manifest in effect; UINT32_MAX: it has none. */
uint32_t tr_component_line_locked(const struct tr_component *component, const char *operation) TR_REQUIRES(component->lock);
/* Takes all tasks out of its lines; the list gets their references. */
void tr_component_take_tasks_locked(struct tr_component *component, struct tr_list *ret_tasks) TR_REQUIRES(component->lock);
/* Rejects all calls in a list, which holds their references; `sentence` stands behind the component's name. No lock held. */
void tr_component_reject_all(struct tr_component *component, struct tr_list *calls, enum tr_code code, const char *sentence);
/* Its turns_timer. Loop thread. */
void tr_component_pass_turns(struct tr_timer *timer);
extern const struct tr_asker_ops tr_component_asker_ops;

#endif
