/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_ACTOR_H
#define TR_CORE_ACTOR_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/mailbox.h"
#include "daemon/core/pool.h"
#include "daemon/core/standstill.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"

/*
 * An actor: a thread that takes turns at a mailbox. What its code is belongs to the behaviour; when it runs, what it
 * owes to whom, and how it ends belong here.
 *
 *      starting -> running <-> idle/waiting -> stopping -> ended
 *
 * A turn (tr_actor_turn) puts away what is finished, takes what is there, runs it and returns: it never waits. The thread
 * around it waits in the mailbox until something comes or the next timer is due.
 */

/* What runs in an actor. */
struct tr_behaviour {
        /*
         * All on the actor's own thread, but where it says otherwise. `self` is what open() made.
         *
         * open: makes the runtime and loads the code. 0; or 1 with *ret_failure (not-found, load, fault, no-memory), the
         * caller's reference. *ret_self is set as soon as interrupt() can be answered, which is before the actor's code runs
         * for the first time; what is set is freed with free(), also after a failure.
         */
        int (*open)(struct tr_actor *actor, void **ret_self, struct tr_failure **ret_failure);
        /* Runs a message that has begun (handler, constructor, close). Every one is ended by exactly one call of
         * tr_actor_resolve(), tr_actor_reject(), tr_actor_refuse() or tr_actor_fault(), in begin() or later. */
        void (*begin)(void *self, struct tr_message *message);
        /* The answer to something it asked. Takes it. */
        void (*answered)(void *self, struct tr_answer *take_answer);
        /* Runs timers that are due; answers the next deadline, TR_NEVER where there is none. */
        uint64_t (*run_timers)(void *self, uint64_t now_ns);
        /* What is pending in it that holds a program open: asks, sleeps. */
        uint32_t (*pending)(void *self);
        /* What its handlers may wait for. True where some of it comes by itself: a timer, an answer that is on its way. Else false, and
         * `awaited` has everybody whose answer or end is waited for, itself included. */
        bool (*awaits)(void *self, struct tr_awaited *awaited);
        /* Once, behind the first turn: gives back what loading the code has left. NULL: it leaves nothing. */
        void (*trim)(void *self);
        /* An orderly stop begins: recurring timers end. */
        void (*drain)(void *self);
        /* Frees the runtime. Never runs the actor's code. */
        void (*free)(void *self);
        /* In a signal handler on the actor's thread, inside its turn: makes running code give up at its next instruction.
         * Async-signal-safe. */
        void (*interrupt)(void *self);
        /* As interrupt(), but the code goes on: it logs where it is, soon. NULL: it cannot. */
        void (*report)(void *self);
        /* Appends pairs for `info` (any thread): handlers, hash, module. Answers how many. */
        uint32_t (*info)(struct tr_actor *actor, struct tr_writer *writer);
};

enum tr_actor_state {
        TR_ACTOR_STARTING,
        TR_ACTOR_IDLE,
        TR_ACTOR_RUNNING, /* in a turn */
        TR_ACTOR_WAITING, /* no turn, but asynchronous handlers in progress */
        TR_ACTOR_STOPPING,
        TR_ACTOR_STUCK,
        TR_ACTOR_ENDED,
};

const char *tr_actor_state_text(enum tr_actor_state state);

/* What may be said of an actor when it is started. Everything is copied. 0 stands for the system's default. */
struct tr_actor_options {
        const char *actor; /* "module:Name" or "module", valid */
        const char *label; /* for people; NULL: the actor's name */
        const char *publish; /* valid, or NULL */
        struct tr_keeper *keeper; /* whose `publish` is; NULL: the actor's own */
        const char *const *keep; /* names that the actor itself keeps, valid, NULL-terminated; or NULL */
        uint32_t owner_uid;
        int32_t owner_pid; /* of the client that starts it; 0: none does */
        uint64_t heap_bytes;
        uint32_t mailbox;
        uint64_t mailbox_bytes;
        uint32_t async;
        bool program; /* the actor is a program's main: it ends when nothing is pending in it */
        struct tr_slot *slot; /* the actor is a pool's worker, in this one; or NULL */
        struct tr_replica *replica; /* the actor is this replica of a component, whose module it runs; or NULL */
};

#define TR_ACTOR_FLUSH_MAX 16
/* Bytes of a handler's name that `info` shows; a longer one is not shown. */
#define TR_HANDLER_SHOWN_MAX 128

struct tr_replica;
struct tr_slow_report;

struct tr_actor {
        struct tr_target target; /* first */
        struct tr_asker asker;   /* of what it asks; answers go to its mailbox */
        struct tr_mailbox mailbox;
        pthread_t thread;
        bool thread_over TR_GUARDED_BY(target.lock); /* it may be joined: no signal may be sent to it any more */
        bool is_counted; /* its messages are among those of the ended; guarded by the system's lock */
        struct tr_list reap_link;

        /* Immutable. */
        uint64_t heap_max_bytes;
        uint32_t async_max;
        bool program;
        struct tr_slot *slot; /* where it is a worker, whose pool it holds; or NULL */
        struct tr_replica *replica; /* strong: where it is one; or NULL */

        /* Any thread. */
        _Atomic uint32_t state;     /* enum tr_actor_state */
        _Atomic bool killed;        /* set once; the turn ends as soon as it can */
        _Atomic bool stop_asked;
        _Atomic uint32_t stop_reason; /* enum tr_stop_reason, + 1; 0: none yet */
        _Atomic bool in_turn;
        _Atomic uint64_t heap_bytes; /* kept by the behaviour */
        _Atomic uint64_t messages_total;
        _Atomic uint64_t turns_total;
        void *behaviour_info; /* the behaviour's, for its info(): set once by open(), under target.lock; freed with free() */

        struct tr_message *init TR_GUARDED_BY(target.lock); /* strong; until it has ended. Set by its own thread only */

        /* Its own thread's. */
        void *self;                  /* the behaviour's */
        struct tr_message *finished; /* to be put away */
        struct tr_failure *failure;  /* set: the actor dies of it when control is back in the turn */
        struct tr_message *raised_by; /* the message that raised it, borrowed from what is in hand */
        uint32_t in_progress;        /* begun and not ended */
        bool started;                /* init has ended well */
        bool drained;                /* the behaviour was told of the stop */
        struct tr_message *closing;  /* the close message, in progress or done */
        bool opened;
        bool pulled;                 /* what it took last was from its pool's queue: the next one is from its own */
        bool over;                   /* the last turn is done */
        struct tr_message *taken;    /* and not begun; borrowed from what is in hand */
        uint64_t next_timer_ns;      /* the behaviour's next */
        uint64_t now_ns;             /* when the clock was looked at; 0: its code has run since */
        struct tr_asker *flush[TR_ACTOR_FLUSH_MAX]; /* answered with `more`, strong */
        uint32_t flush_count;
        bool more;                   /* the present turn has further messages */

        struct tr_standing standing;

        /* The kill and stop timers, on the loop thread; each holds a reference to the actor while it is set. */
        struct tr_timer stop_timer;
        struct tr_timer kill_timer;
        uint32_t kill_signals; /* loop thread */

        /* That it is slow, not told yet (slow.c). Who takes it out tells it and frees it. */
        _Atomic(struct tr_slow_report *) slow_report;
        /* What the watch for slow handlers saw at its last look. Loop thread. */
        struct {
                uint64_t begun;      /* turns and messages so far: while it stays the same, the same handler runs */
                uint64_t since_ns;
                uint64_t report_ns;  /* how long it has to run until it is reported the next time */
                uint64_t reported_ns; /* when it was */
        } slow;
};

/* Once per process, before the first actor: installs the handler of the signals that interrupt. 0 or a negative errno. */
TR_MUST_CHECK int tr_actor_install_signal(void);

/*
 * Starts an actor. Any thread. `take_init` is a message of kind TR_MESSAGE_INIT whose asker, where it has one, is answered when
 * the constructor has returned (with nil: who asked turns that into the handle) or with how it failed; its `spawned` is set here.
 * The actor joins the session. NULL and a new reference in *ret_target; or why not (limit, taken, no-memory, shutting-down), which
 * the caller gets; the init message is then freed without an answer. *ret_holder (may be NULL) gets who holds the name where that is why.
 */
struct tr_failure *tr_actor_spawn(struct tr_system *system, struct tr_session *session, const struct tr_actor_options *options,
                                  struct tr_message *take_init, struct tr_target **ret_target, struct tr_target **ret_holder);

/* One turn. Its own thread. */
void tr_actor_turn(struct tr_actor *actor);
/* Waits for something to do. Its own thread, between two turns. */
void tr_actor_wait(struct tr_actor *actor);

/* For behaviours, on the actor's own thread: how a message that began has ended. */
void tr_actor_resolve(struct tr_actor *actor, struct tr_message *message, const void *value, size_t bytes);
/* Its handler ran, and this is what it came to: a promise that was rejected, an answer that cannot be sent. The actor lives on. Takes
 * the failure. */
void tr_actor_reject(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure);
/* It could not be handled at all (no-such-handler, too-large), which is counted. The actor lives on. Takes the failure. */
void tr_actor_refuse(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure);
/* The actor dies of this: `message` (NULL: a timer) raised it. Takes the failure. */
void tr_actor_fault(struct tr_actor *actor, struct tr_message *message, struct tr_failure *take_failure);

static inline bool tr_actor_is_killed(struct tr_actor *actor) {
        /* relaxed: a flag that is only ever raised; who sees it late sees it at the next look */
        return atomic_load_explicit(&actor->killed, memory_order_relaxed);
}

/* The actor whose thread this is; NULL elsewhere. */
struct tr_actor *tr_actor_current(void);
void tr_actor_set_current(struct tr_actor *actor);

/* Between the files of core that make up an actor. */

extern const struct tr_asker_ops tr_actor_asker_ops;

/* Everything it owes is rejected, its target ends, its runtime is freed. Its own thread, or who failed to start one. Takes the
 * failure; NULL: it stopped orderly. */
void tr_actor_end(struct tr_actor *actor, struct tr_failure *take_failure);
/* The init message, which is the caller's now; NULL where it has ended. */
struct tr_message *tr_actor_take_init(struct tr_actor *actor);
/* Forgets that it would be killed if it does not stop in time. */
void tr_actor_clear_stop(struct tr_actor *actor);
/* A turn begins: the watch for slow handlers goes on, or starts. */
void tr_system_note_turn(struct tr_system *system);
/* Takes the signals that are for actors' threads out of a mask. */
void tr_actor_unblock_signals(sigset_t *mask);
/* Tells that it is slow, where that is to be told, and where it is (NULL: that could not be had). Any thread, no lock held. */
void tr_actor_tell_slow(struct tr_actor *actor, const char *traceback);
/* Has a running actor log where it is. Any thread. */
void tr_actor_ask_report(struct tr_actor *actor);
/* The target's functions. */
void tr_actor_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns);
void tr_actor_kill(struct tr_target *target);

extern const struct tr_target_ops tr_actor_target_ops;
/* The same for workers. */
extern const struct tr_target_ops tr_worker_target_ops;
/* The same for actors that are replicas of a component. */
extern const struct tr_target_ops tr_replica_target_ops;

static inline struct tr_actor *tr_actor_of(struct tr_target *target) {
        bool is_actor = target->ops == &tr_actor_target_ops || target->ops == &tr_worker_target_ops ||
                        target->ops == &tr_replica_target_ops;
        return is_actor ? (struct tr_actor *)target : NULL;
}

#endif
