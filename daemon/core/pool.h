/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_POOL_H
#define TR_CORE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/core/backoff.h"
#include "daemon/core/message.h"
#include "daemon/core/target.h"
#include "daemon/core/timer.h"
#include "daemon/core/times.h"

struct tr_actor;
struct tr_session;
struct tr_system;

/*
 * A pool: a fixed number of identical workers behind one handle. A worker is an actor; what makes it one is its slot, which is
 * filled again when the worker in it has ended.
 *
 *      slot:   vacant --start--> starting --init has ended--> running --end--> vacant (a pause) --> ...
 *      pool:   starts -> runs -> stops -> has ended
 *
 * Messages are routed in the sender's thread, straight into a worker's mailbox (pool_route.c). What is for no worker in
 * particular (routing `shared`, no worker runs, what an ended worker left) is in the pool's own queue, from which each worker
 * pulls when it has nothing to do.
 */

enum tr_routing {
        TR_ROUTING_ROUND_ROBIN,
        TR_ROUTING_SMALLEST_MAILBOX,
        TR_ROUTING_RANDOM,
        TR_ROUTING_SHARED,
};

const char *tr_routing_text(enum tr_routing routing);
/* False where the text names none. */
bool tr_routing_parse(const char *text, size_t len, enum tr_routing *ret_routing);

#define TR_POOL_WORKERS_MAX 1024
/* Where the number of CPUs cannot be read. */
#define TR_POOL_WORKERS_UNKNOWN 4

/* What may be said of a pool when it is started. Everything is copied. 0 stands for the default. */
struct tr_pool_options {
        const char *name;    /* valid: for people, and the name it is published under unless `publish` says another one */
        const char *publish; /* valid, or NULL */
        const char *actor;   /* "module:Name" or "module", valid */
        const void *args;    /* of every worker's constructor: args_count values */
        size_t args_bytes;
        uint32_t args_count;
        bool args_internal; /* in the internal form */
        uint32_t owner_uid;
        int32_t owner_pid; /* of the client that starts it; 0: none does */
        uint32_t workers; /* at most TR_POOL_WORKERS_MAX; 0: as many as CPUs */
        enum tr_routing routing;
        uint32_t queue; /* messages in the pool's own queue */
        uint64_t queue_bytes;
        uint64_t heap_bytes;
        uint32_t mailbox;
        uint64_t mailbox_bytes;
        uint32_t async;
        uint64_t backoff_min_ns;
        uint64_t backoff_max_ns;
        uint64_t backoff_reset_ns;
        bool persistent; /* it goes on trying where all first starts fail */
        struct tr_target *replaces; /* a target whose name it takes in one step; NULL: the name is free */
};

/* Whether its longest pause is no shorter than its shortest, the defaults filled in. */
bool tr_pool_backoff_is_valid(const struct tr_pool_options *options);

enum tr_slot_state {
        TR_SLOT_VACANT,
        TR_SLOT_STARTING,
        TR_SLOT_RUNNING,
};

/* One worker's place. Guarded by the pool's lock, but where it says otherwise. */
struct tr_slot {
        struct tr_pool *pool; /* immutable */
        uint32_t number;      /* immutable; from 1 */
        enum tr_slot_state state;
        uint32_t incarnation;    /* how many workers were in it */
        bool renew;              /* its worker is to be replaced */
        bool renewing;           /* its worker was told to stop, and no other runs yet */
        struct tr_actor *worker; /* strong */
        struct tr_backoff backoff;
        uint64_t began_ns;
        uint64_t due_ns;      /* of the timer: one that fires earlier is an older one */
        struct tr_timer timer; /* until the end of the pause, or of the time that its init has. While set it holds the pool */
        struct tr_list free_link; /* among those who wait for work */
        /* The worker's thread sets it and clears it, whoever gives it work clears it. A hint outside of the lock. */
        _Atomic bool free;
        _Atomic uint32_t dealt;       /* messages that are routed here and not posted yet */
        _Atomic uint32_t in_progress; /* messages that its worker has begun and not ended: the worker's thread writes it */
        /* Of messages that the pool routed, and this slot's workers began: from the post to the beginning, and from there to the
         * end. The worker's thread adds. */
        struct tr_times wait;
        struct tr_times run;
};

struct tr_pool {
        struct tr_target target; /* first */

        /* Immutable. */
        enum tr_routing routing;
        uint32_t workers;
        uint32_t queue_max;
        uint64_t queue_bytes_max;
        uint64_t heap_bytes;
        uint32_t mailbox;
        uint64_t mailbox_bytes;
        uint32_t async;
        bool persistent;
        uint8_t *args;
        size_t args_bytes;
        uint32_t args_count;
        bool args_internal;

        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_list queue TR_GUARDED_BY(lock);
        _Atomic uint32_t queue_count; /* written under the lock */
        uint64_t queue_bytes TR_GUARDED_BY(lock);
        struct tr_list free TR_GUARDED_BY(lock); /* slots */
        uint32_t next TR_GUARDED_BY(lock);       /* where the next round of routing begins */
        uint32_t running TR_GUARDED_BY(lock);    /* slots in that state */
        uint32_t occupied TR_GUARDED_BY(lock);   /* workers that are being made, or are not gone */
        uint32_t first_failures TR_GUARDED_BY(lock);
        bool has_started TR_GUARDED_BY(lock); /* some worker has, ever */
        bool stopping TR_GUARDED_BY(lock);    /* takes nothing more */
        bool workers_stopped TR_GUARDED_BY(lock); /* they have been told */
        bool killed TR_GUARDED_BY(lock);
        bool over TR_GUARDED_BY(lock);
        enum tr_stop_reason stop_reason TR_GUARDED_BY(lock);
        bool introduced TR_GUARDED_BY(lock); /* it has its name: others may have heard of it */
        struct tr_message *start TR_GUARDED_BY(lock); /* who started it waits for the first worker; strong */
        struct tr_failure *failure TR_GUARDED_BY(lock); /* what it ends with */
        struct tr_timer stop_timer; /* as an actor's */

        _Atomic uint64_t messages_total; /* routed */
        _Atomic uint64_t faults_total;
        _Atomic uint64_t restarts_total;

        struct tr_slot slots[];
};

/*
 * Starts a pool in a session. Any thread. `take_start` is a message of kind TR_MESSAGE_INIT whose asker, where it has one, is
 * answered when the first worker runs (with nil: who asked turns that into the handle), or with the failure of the last first
 * start where all of them fail: then the pool has ended. NULL and a new reference in *ret_target; or why not (taken, no-memory,
 * shutting-down), with *ret_holder (may be NULL) as tr_actor_spawn() has it.
 */
struct tr_failure *tr_pool_start(struct tr_system *system, struct tr_session *session, const struct tr_pool_options *options,
                                 struct tr_message *take_start, struct tr_target **ret_target, struct tr_target **ret_holder);

/*
 * Replaces the workers that there are by new ones, one after the other: each is told to stop, and killed where it has not within the
 * system's grace, and the next one is when its replacement runs. Meanwhile what comes goes to the others, or waits. Any thread, no lock
 * held.
 */
void tr_pool_renew(struct tr_pool *pool);

extern const struct tr_target_ops tr_pool_target_ops;

static inline struct tr_pool *tr_pool_of(struct tr_target *target) {
        return target->ops == &tr_pool_target_ops ? (struct tr_pool *)target : NULL;
}

/* What there is to say of a pool in numbers. */
struct tr_pool_figures {
        uint64_t size;
        uint64_t running;
        uint64_t queued;
        uint64_t given_up; /* slots that are tried once a minute only */
        uint64_t messages;
        uint64_t faults;
        uint64_t restarts;
        struct tr_times_sum wait;
        struct tr_times_sum run;
};

/* Adds a pool's to what is there already. `depths` (may be NULL) are as many as it has workers: to each is added what waits in the
 * mailbox of the worker in that slot. Any thread. */
void tr_pool_add_figures(struct tr_pool *pool, struct tr_pool_figures *figures, uint64_t *depths);

/* Writes "w-3", or "w-3.1" of the first replacement. */
void tr_slot_write_name(const struct tr_slot *slot, uint32_t incarnation, char ret_name[32]);

/* For actors that are workers: what they tell their slot, and get from it. */

/* Under no lock, before its thread is there: it is in the slot from now on. */
void tr_slot_enter(struct tr_slot *slot, struct tr_actor *worker);
/* Its init has ended well. Its own thread. */
void tr_slot_started(struct tr_slot *slot, struct tr_actor *worker);
/* It ends, or is given up; `left` are the messages that it had not begun, which are others' now. Any thread, before anybody is told of the
 * end. False, and nothing is done, where it is not in the slot any more. Of a pool that was killed the messages stay in the list. The
 * failure is borrowed. */
bool tr_slot_left(struct tr_slot *slot, struct tr_actor *worker, struct tr_failure *failure, struct tr_list *left);
/* After tr_slot_left() was true: it has ended for everybody, so that its pool may end. */
void tr_slot_gone(struct tr_slot *slot);
/* A message from the pool's queue for a worker that may take one; NULL where there is none. It is in no list. Its own thread.
 * `idle`: it has nothing in hand, for which `shared` asks. */
struct tr_message *tr_slot_pull(struct tr_slot *slot, bool idle);
/* Its worker may take more, and is about to wait: false, and it is called when there is work for it; or true, there is some now. Its own
 * thread. */
bool tr_slot_rest(struct tr_slot *slot, bool idle);
/* It waits no more. Its own thread. */
void tr_slot_wake(struct tr_slot *slot);
/* Whether something is queued that a worker which stops has to serve first. */
bool tr_slot_has_work(struct tr_slot *slot);
/* Whether something is in the pool's queue. A hint. */
static inline bool tr_slot_sees_work(const struct tr_slot *slot) {
        /* relaxed: a hint */
        return atomic_load_explicit(&slot->pool->queue_count, memory_order_relaxed) > 0;
}

/* Between the files of core that make up a pool. */

/* As tr_target_ops.post. */
enum tr_post tr_pool_post(struct tr_target *target, struct tr_list *messages);
/* Something is in the queue: those who wait are called, one for each message. No lock held. */
void tr_pool_call_free(struct tr_pool *pool);
/* Tells all workers to stop, once, where the pool stops and its queue is empty. No lock held. */
void tr_pool_stop_workers(struct tr_pool *pool);
/* It ends, where it has to and nobody is left. No lock held. */
void tr_pool_try_end(struct tr_pool *pool);
/* Fills a slot, now. No lock held. */
void tr_slot_start(struct tr_slot *slot);
void tr_slot_init(struct tr_slot *slot, struct tr_pool *pool, uint32_t number);
/* Forgets its timer. */
void tr_slot_clear_timer(struct tr_slot *slot);

#endif
