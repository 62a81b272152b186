/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_SYSTEM_H
#define TR_CORE_SYSTEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/core/component.h"
#include "daemon/core/registry.h"
#include "daemon/core/session.h"
#include "daemon/core/standstill.h"
#include "daemon/core/timer.h"
#include "daemon/core/trace.h"
#include "proto/code.h"

struct tr_actor;
struct tr_behaviour;
struct tr_message;
struct tr_store;
struct tr_task_news;

/*
 * The actor system: everything that actors of one daemon share. It knows no socket and no Lua: whoever makes it gives it a
 * behaviour (what runs in an actor), and hooks (what the loop does for it).
 */

/* How many ended targets are remembered while nobody holds their handle. */
#define TR_SYSTEM_ENDED_KEPT 4096

/* What the configuration's `limits` say to core. Any thread reads them while the loop thread changes them, one by one. */
struct tr_system_limits {
        _Atomic uint32_t actors;
        _Atomic uint32_t actors_per_user;
        _Atomic uint64_t heap_bytes;
        _Atomic uint64_t heap_max_bytes;
        _Atomic uint32_t mailbox;
        _Atomic uint64_t mailbox_bytes;
        _Atomic uint32_t async;
        _Atomic uint32_t queue; /* of a pool */
        _Atomic uint64_t memory_bytes; /* of all heaps together; 0: no bound */
        _Atomic uint64_t slow_ns; /* a handler that runs longer is reported; 0: never */
        _Atomic uint64_t grace_ns;
};

enum tr_event {
        TR_EVENT_STARTED,
        TR_EVENT_STOPPED,
        TR_EVENT_FAULTED,
        TR_EVENT_KILLED,
        TR_EVENT_STUCK,
        TR_EVENT_RESTARTED, /* told of the replacement, behind its STARTED, by who supervises it */
        TR_EVENT_SLOT_GIVEN_UP, /* told of the pool */
        TR_EVENT_SLOW,
};

/* What an end is told as: STOPPED, FAULTED or KILLED. NULL: it was orderly. */
enum tr_event tr_event_of_end(const struct tr_failure *failure);

/* Something that happened to a target. All of it is borrowed for the call. */
struct tr_news {
        enum tr_event event;
        struct tr_target *target;
        const struct tr_failure *failure; /* FAULTED, KILLED: how it ended; SLOT_GIVEN_UP: how its worker did; else NULL */
        const char *slot;                 /* SLOT_GIVEN_UP: which; else NULL */
        /* SLOW: which handler (NULL: it is not known), for how long, and where it is (NULL: that could not be had). */
        const char *handler;
        uint64_t running_ns;
        const char *traceback;
};

/* A message that was refused or dropped, or a notification that was refused. All of it is borrowed for the call. */
struct tr_refused {
        enum tr_code code;
        const char *why;          /* a sentence */
        bool is_ask;              /* whoever asked is told */
        struct tr_target *target; /* NULL: none is known */
        const char *to;           /* to_len bytes: the target as the sender wrote it, where none is known; or NULL */
        size_t to_len;
        const char *handler;      /* handler_len bytes; NULL: it was for none */
        size_t handler_len;
        const char *method; /* of a notification; NULL: it was none, or names none */
        size_t method_len;
        uint32_t sender_uid;
        int32_t sender_pid; /* 0: not known */
};

/* A message as that, from nobody who is known further. */
struct tr_refused tr_refused_message(struct tr_target *target, const struct tr_message *message,
                                     const struct tr_failure *failure);

struct tr_system_hooks {
        /* Any thread, perhaps under a lock of the system's (so it must not call back): tr_system_run_due() has to be called
         * sooner than it last said, or a thread waits to be joined. NULL: nobody runs timers (tests call it themselves). */
        void (*wake)(void *userdata);
        /* Any thread, no lock held: something happened to a target (daemon/watch). May be NULL. */
        void (*event)(void *userdata, const struct tr_news *news);
        /* Any thread: an actor is ready for turns on somebody else's thread. It gets the reference that a thread would have, and
         * calls tr_actor_turn() until `over`. NULL: it gets a thread of its own. */
        void (*run)(void *userdata, struct tr_actor *actor);
        /* Any thread, perhaps under a connection's lock: a message was refused or dropped (daemon/watch). May be NULL. */
        void (*refused)(void *userdata, const struct tr_refused *refused);
        /* Any thread, no lock held: a call of an operation has ended (daemon/watch). May be NULL. */
        void (*span)(void *userdata, const struct tr_span_news *span);
        /* Any thread, no lock held: a component with processes of its own was declared, was given another manifest, is to stop or to
         * be killed, or has ended. NULL: nobody starts processes. */
        void (*crew)(void *userdata, struct tr_component *component);
        /* Any thread, no lock held: something has become of a task (core/task.h; daemon/watch). May be NULL. */
        void (*task)(void *userdata, const struct tr_task_news *news);
        void *userdata;
};

/* How many actors each user has. */
struct tr_system_user {
        uint32_t uid;
        uint32_t actors;
};

struct tr_system {
        struct tr_registry registry;
        const struct tr_behaviour *behaviour;
        void *behaviour_shared; /* the behaviour's own: paths, permissions */
        struct tr_system_hooks hooks;
        struct tr_system_limits limits;
        uint32_t own_uid; /* the daemon's user: as root, exempt from limits per user */

        struct tr_lock session_lock;
        struct tr_session *daemon_session;

        struct tr_standstill standstill;

        struct tr_components components;
        struct tr_spans spans;

        /* Both are set by whoever makes the system, before anything is declared in it, and outlive all of that. */
        struct tr_store *store; /* NULL: there is none */
        const char *store_why;  /* why not: a sentence's end; or NULL */

        struct tr_lock lock; /* guards what follows; nothing else is acquired under it */
        pthread_cond_t no_threads;
        struct tr_timers timers TR_GUARDED_BY(lock);
        bool shutting_down TR_GUARDED_BY(lock);
        uint32_t actors TR_GUARDED_BY(lock);  /* reserved: being started or not ended */
        uint32_t threads TR_GUARDED_BY(lock); /* not joined yet */
        struct tr_system_user *users TR_GUARDED_BY(lock);
        uint32_t users_count TR_GUARDED_BY(lock);
        struct tr_list reap TR_GUARDED_BY(lock);  /* actors whose thread is over and not joined */
        struct tr_target **ended TR_GUARDED_BY(lock); /* a ring of the last targets that ended, each a reference */
        uint32_t ended_at TR_GUARDED_BY(lock);
        uint64_t ended_messages TR_GUARDED_BY(lock); /* of all actors that have ended */

        /* The watch for slow handlers (slow.c): its timer is set, or about to be. */
        _Atomic bool slow_watching;
        struct tr_timer slow_timer;

        _Atomic uint64_t heap_bytes; /* of all actors */
        _Atomic uint64_t refused_total[TR_CODES_COUNT];
};

/* The behaviour and what hooks point to must outlive it. */
TR_MUST_CHECK int tr_system_new(const struct tr_system_limits *limits, const struct tr_behaviour *behaviour,
                                void *behaviour_shared, const struct tr_system_hooks *hooks, struct tr_system **ret_system);
/* Waits for the threads of actors that have ended. With stuck ones left nothing is freed, since they may still come back to
 * it: answers how many, and the process has to end without it. All sessions are ended and all targets dropped before. */
uint32_t tr_system_free(struct tr_system *system);

/* For a reload: applies to what comes from now on. */
void tr_system_set_limits(struct tr_system *system, const struct tr_system_limits *limits);

/* Room for one more actor of a user: NULL, or why not (limit, no-memory, shutting-down), the caller's reference. */
struct tr_failure *tr_system_reserve_actor(struct tr_system *system, uint32_t uid);
void tr_system_release_actor(struct tr_system *system, uint32_t uid);
uint32_t tr_system_actors(struct tr_system *system);
/* An actor ends: what it has begun stays counted. */
void tr_system_keep_count(struct tr_system *system, struct tr_actor *actor);
/* Messages that actors have begun, ever. `targets` are all there are, or were a moment ago. */
uint64_t tr_system_messages(struct tr_system *system, struct tr_target *const *targets, size_t count);

enum {
        TR_TIMER_WAS_SET = 1, /* it was set already: it fires at the earlier of both deadlines */
};

/* Timers of the daemon. They fire on the loop thread, in tr_system_run_due(), no lock held. Any thread sets and clears; a
 * clear does not wait for a timer that is firing. 0, TR_TIMER_WAS_SET, or -ENOMEM with the timer not set. */
TR_MUST_CHECK int tr_system_set_timer(struct tr_system *system, struct tr_timer *timer, uint64_t deadline_ns);
/* From here on, until it is released, it can be set whatever memory there is. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_system_reserve_timer(struct tr_system *system, struct tr_timer *timer);
/* It is not set any more. Not to have been reserved is fine. */
void tr_system_release_timer(struct tr_system *system, struct tr_timer *timer);
/* Answers whether it was set and is not any more. */
bool tr_system_clear_timer(struct tr_system *system, struct tr_timer *timer);
/* Loop thread: fires what is due, joins threads that are over; answers the next deadline (TR_NEVER: none). */
uint64_t tr_system_run_due(struct tr_system *system, uint64_t now_ns);
/* A thread puts itself here last of all. */
void tr_system_reap(struct tr_system *system, struct tr_actor *actor);

/* Tells the hooks. Any thread, no lock held. */
void tr_system_tell(struct tr_system *system, const struct tr_news *news);
/* Counts it, and tells the hooks. Any thread, perhaps under a connection's lock. */
void tr_system_tell_refused(struct tr_system *system, const struct tr_refused *refused);

/* No spawn from now on (shutting-down). */
void tr_system_close(struct tr_system *system);
/* Keeps an ended target (a new reference of the system's), dropping the oldest beyond the bound. */
void tr_system_keep_ended(struct tr_system *system, struct tr_target *target);
/* Any thread, no lock held: each of those. */
void tr_system_visit_ended(struct tr_system *system, void (*visit)(void *userdata, struct tr_target *target), void *userdata);

#endif
