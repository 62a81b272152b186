/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TASK_HELD_H
#define TR_CORE_TASK_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/message.h"
#include "daemon/core/store.h"
#include "daemon/core/task.h"
#include "daemon/core/timer.h"

struct tr_component;
struct tr_invocation;
struct tr_manifest;

/*
 * Tasks in hand. The store has all of them; a component has some of those that are due in its lines, beside its calls, as messages that
 * nobody made: their asker is the component, which has the store know how each ended.
 *
 *      store: waiting --LOAD--> in a line --BEGIN--> delivered --END--> gone
 *                ^                  |                    |--PARK--> parked
 *                \------AGAIN-------+--------AGAIN-------/
 *
 * Jobs for one task are submitted in the order in which they happen, and that of its end is the last: no task is in hand twice. How often
 * it has begun is said by each job, so that a delivery that never began counts for nothing.
 */

/* In hand at most; more are loaded when half of them are gone. */
#define TR_TASKS_HELD_MAX 256
/* Of those that are delayed and are late, since the whole daemon had a pause: as many are released a second at most. */
#define TR_TASKS_LATE_PER_S 100
/* A task is picked after so many calls, where one waits. */
#define TR_TASKS_AFTER_CALLS 3
/* Pauses between runs. */
#define TR_TASK_PAUSE_MIN_NS UINT64_C(1000000000)
#define TR_TASK_PAUSE_MAX_NS UINT64_C(900000000000)

/* Of one component; all of it is guarded by its lock but what is atomic. */
struct tr_component_tasks {
        struct tr_asker asker;    /* of their messages */
        struct tr_list held;      /* by tr_task_held.link */
        struct tr_list unsaved;   /* the same: those whose end could not be written; each has a reference. Tried again */
        uint32_t held_count;
        _Atomic uint32_t waiting; /* in lines. Read without the lock as a hint */
        uint32_t calls_picked;    /* since a task was, while one waited */
        bool fresh;               /* nothing was loaded yet */
        bool loading;             /* the store is, or what it has loaded is being taken. It has a reference to the component */
        bool left;                /* what was loaded could not be taken for want of memory; it is tried again */
        int64_t next_ms;          /* the earliest that is due and not in hand; TR_STORE_NEVER: none is known of */
        uint64_t not_before_ns;   /* nothing is loaded before, though it is due */
        uint64_t late_since_ns;   /* of the second in which late ones were counted last */
        uint32_t late_left;       /* in it */
        struct tr_store_job load; /* while loading */
        uint32_t taken;           /* of what was loaded */
        struct tr_timer timer;    /* holds a reference while it is set; it can always be set */
        _Atomic uint64_t expired_total;
};

/* One task in hand. Reference-counted: its invocation has one, and each job while it is the store's. */
struct tr_task_held {
        _Atomic uint32_t refs;

        /* Immutable. */
        struct tr_component *component; /* strong */
        char id[TR_STORE_ID_LEN + 1];
        uint32_t runs; /* that had begun when it was loaded */
        int64_t due_ms;
        uint32_t uid;
        int32_t pid;

        /* Guarded by the component's lock. */
        struct tr_list link;
        struct tr_message *message; /* that it stands beside: borrowed, which owns the invocation; NULL: it is in no line yet */
        bool counted;  /* it is among the component's */
        int64_t expires_ms; /* TR_STORE_NEVER */
        struct tr_timer expiry; /* holds a reference to the message while it is set; it can always be set. The system's */
        bool expired;  /* it is too late, and is being taken out of its line */
        bool dropped;  /* the store has it no more */
        bool begun;    /* the store knows that it runs, or will */
        bool beginning; /* `begin` is the store's */

        struct tr_store_job begin;
        /* Its end; once. */
        struct tr_store_job end;
        struct tr_writer cause;        /* the document of that */
        enum tr_task_event event;      /* what is told then; TR_TASK_EVENTS_COUNT: nothing */
        struct tr_failure *failure;    /* the same; or NULL */
        char operation[];
};

/* Of a component that is being made, and one that is being freed. */
void tr_component_tasks_init(struct tr_component *component);
/* 0 or -ENOMEM: its timer can be set from here on. */
TR_MUST_CHECK int tr_component_tasks_reserve(struct tr_component *component);
void tr_component_tasks_deinit(struct tr_component *component);

/* From here on no lock is held. */

/* It was declared: tasks are loaded from now on. */
void tr_component_tasks_begin(struct tr_component *component);
/* It stops: what waits in its lines is the store's again. Then it has ended. */
void tr_component_tasks_stop(struct tr_component *component);
void tr_component_tasks_end(struct tr_component *component);
/* A task is due then that is not in hand, or will be. */
void tr_component_tasks_due(struct tr_component *component, int64_t due_ms);
/* Loads what is due, where there is room for it, or sees to that it is when it will be. */
void tr_component_tasks_look(struct tr_component *component);
/* It looks again at that time, by tr_clock_ns(), or sooner. */
void tr_component_tasks_time(struct tr_component *component, uint64_t at_ns);

/* NULL where memory is short. */
struct tr_task_held *tr_task_held_new(struct tr_component *component, const struct tr_store_task *task);
struct tr_task_held *tr_task_held_ref(struct tr_task_held *held);
/* NULL is fine. */
void tr_task_held_unref(struct tr_task_held *held);
/* It is being put in a line, as this message. */
void tr_task_held_enlist_locked(struct tr_task_held *held, struct tr_message *message);
/* It is in one: that it expires is noticed. */
void tr_task_held_watch(struct tr_task_held *held, struct tr_message *message);
/* It is parked before it was in a line. The failure is borrowed. */
void tr_task_held_park(struct tr_task_held *held, struct tr_failure *failure);
/* Its end could not be written: once more. Takes a reference. */
void tr_task_held_save(struct tr_task_held *take_held);

/* It is being delivered. False where it is not to be: it was too late, and is gone. */
bool tr_task_held_begin(struct tr_invocation *invocation);
/* Whether a replica may die under it once more. */
bool tr_task_held_may_go_on(const struct tr_invocation *invocation);
/* Runs that have begun before a delivery that begins now. */
uint32_t tr_task_held_runs(const struct tr_invocation *invocation);
/* A person has asked for that. Of a task that may be in hand. */
void tr_component_tasks_retry(struct tr_component *component, const char *id);
void tr_component_tasks_drop(struct tr_component *component, const char *id);

/* Tells of it. */
void tr_task_tell(struct tr_component *component, const struct tr_task_news *news);

extern const struct tr_asker_ops tr_task_asker_ops;

#endif
