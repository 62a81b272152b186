/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TARGET_H
#define TR_CORE_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"
#include "daemon/core/mailbox.h"
#include "daemon/core/message.h"
#include "daemon/core/registry.h"
#include "proto/handle.h"

struct tr_log_context;
struct tr_system;
struct tr_session;

/*
 * What a handle names: an actor, a pool, a component, or a connection that listens. Methods and the Lua library know targets only; what
 * differs between the kinds is behind the table of functions.
 *
 * Reference-counted, any thread. A target outlives what it names: after its end it still says how it ended, to whoever
 * holds it, and the system holds the last TR_SYSTEM_ENDED_KEPT of them.
 */
enum tr_target_kind {
        TR_TARGET_ACTOR,
        TR_TARGET_POOL,
        TR_TARGET_WORKER, /* an actor in a pool */
        TR_TARGET_CONNECTION,
        TR_TARGET_COMPONENT,
        TR_TARGET_REPLICA, /* an actor that serves a component */
};

enum tr_stop_reason {
        TR_STOP_ASKED,    /* "stop" */
        TR_STOP_SESSION,  /* "session" */
        TR_STOP_SHUTDOWN, /* "shutdown" */
};

const char *tr_stop_reason_text(enum tr_stop_reason reason);

struct tr_target_ops {
        enum tr_target_kind kind;
        /* As tr_mailbox_post(). */
        enum tr_post (*post)(struct tr_target *target, struct tr_list *messages);
        /* Orderly; killed where it has not ended `within_ns` from now (TR_NEVER: never). Nothing where it has ended. */
        void (*stop)(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns);
        void (*kill)(struct tr_target *target);
        /* Appends the pairs that `info` knows beyond those of every target; answers how many. */
        uint32_t (*info)(struct tr_target *target, struct tr_writer *writer);
        bool (*is_busy)(struct tr_target *target);
        /* The last reference is gone. */
        void (*free)(struct tr_target *target);
};

struct tr_target {
        const struct tr_target_ops *ops;
        struct tr_system *system; /* outlives every target */
        _Atomic uint32_t refs;
        struct tr_handle handle;

        /* Immutable once it was registered. */
        uint32_t owner_uid;   /* who started it */
        int32_t owner_pid;    /* of the client that did; 0: none did, or it is not known */
        char *label;          /* for people: its name, else its actor's */
        char *asked_for;      /* "module:Name", or "module" where that declares one actor; "": it is none */
        int64_t since_ms;
        /* "module:Name": what was asked for, until its module is loaded and says its name. Any text that it ever held stays
         * valid as long as the target does. Read with tr_target_actor(): gcc 12 does not load atomically what stands
         * before []. */
        char *_Atomic actor;

        /* The registry's, guarded by its lock. */
        struct tr_target *next_by_handle;
        bool registered;
        bool withdrawn;                 /* it has ended: no name may be given to it any more */
        struct tr_published *published; /* the names that lead to it */
        struct tr_keeper keeper;        /* of names that lead to others */
        _Atomic bool heard; /* somebody was told how it failed */
        _Atomic bool gone; /* nothing is left of it but how it ended: not listed any more */

        /* The session's. Guarded by the system's session lock. */
        struct tr_session *session; /* NULL once it has ended */
        struct tr_session *inner;   /* of what it supervises, strong; NULL: none */
        struct tr_list session_link;

        struct tr_lock lock; /* nothing else is acquired under it */
        bool ended TR_GUARDED_BY(lock);
        bool stillborn TR_GUARDED_BY(lock); /* its start has failed, of `failure` */
        struct tr_failure *failure TR_GUARDED_BY(lock); /* how it ended; NULL: orderly, or it has not */
        uint32_t stopper_uid TR_GUARDED_BY(lock);       /* the client that asked for its end */
        int32_t stopper_pid TR_GUARDED_BY(lock);        /* 0: none did, or it is not known */
        struct tr_list watchers TR_GUARDED_BY(lock);    /* messages of kind TR_MESSAGE_DONE, each a reference */
        uint32_t watchers_count TR_GUARDED_BY(lock);
        uint32_t watchers_swept TR_GUARDED_BY(lock); /* how many were left when those settled elsewhere were last dropped */
};

/* Fills in a new target with one reference, a fresh handle, not registered. 0 or a negative errno. Texts are copied. */
TR_MUST_CHECK int tr_target_init(struct tr_target *target, const struct tr_target_ops *ops, struct tr_system *system,
                                 uint32_t owner_uid, const char *label, const char *actor);
/* Its actor's whole name has become known. Once, before it tells anybody of its start. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_target_name_actor(struct tr_target *target, const char *actor);
/* For ops->free: frees what tr_target_init() made. */
void tr_target_deinit(struct tr_target *target);

/* What it is called at present. Any thread; valid as long as the target is. */
static inline const char *tr_target_actor(const struct tr_target *target) {
        return atomic_load_explicit(&target->actor, memory_order_acquire);
}

struct tr_target *tr_target_ref(struct tr_target *target);
/* NULL is fine. */
void tr_target_unref(struct tr_target *target);
/* Drops `count` references. */
void tr_target_unref_many(struct tr_target *target, uint32_t count);

/* Posts one message, and takes it where the answer is TR_POST_OK. Else it is still the caller's. */
TR_MUST_CHECK enum tr_post tr_target_post(struct tr_target *target, struct tr_message *message);
/* What could not be posted: rejects its asker with the code that belongs to the answer. Takes it. */
void tr_target_refuse(struct tr_target *target, struct tr_message *take_message, enum tr_post post);
/* Posts one message and drops the caller's reference; where it is refused, rejects its asker with the code that belongs to
 * the answer (which is also returned, for a send whose sender must know). */
enum tr_post tr_target_send(struct tr_target *target, struct tr_message *take_message);
/* What was posted and the target's end leaves over: rejects its asker, with `ran_begun` where its handler has been entered;
 * a send that was still queued is told to `refused`. Answers whether an asker was told. The reference stays the caller's. */
bool tr_target_abandon(struct tr_target *target, struct tr_message *message, struct tr_failure *failure,
                       enum tr_ran ran_begun);
/* The last part of that, for a send that the caller has settled. */
void tr_target_tell_dropped(struct tr_target *target, const struct tr_message *message, const struct tr_failure *failure);
/* The failure for a refusal: mailbox-full, not-running, too-large. A new reference. */
struct tr_failure *tr_post_failure(enum tr_post post);
/* The same for an ask, which hears of a start that failed (not-found, load, fault) however late it comes. To be told with ran "no". */
struct tr_failure *tr_target_refusal(struct tr_target *target, enum tr_post post);
/* Its start has failed: to be said before its mailbox is closed. The failure is borrowed. */
void tr_target_set_stillborn(struct tr_target *target, struct tr_failure *failure);

/* Settles the message (kind TR_MESSAGE_DONE) when the target has ended, at once where it has: nil, or its failure. Takes the reference. */
void tr_target_watch(struct tr_target *target, struct tr_message *take_message);

/* It has ended: how (NULL: orderly). Frees its names, leaves its session, keeps it among the ended, tells the watchers. Only
 * the first call does something; it answers true. The failure is borrowed. */
bool tr_target_end(struct tr_target *target, struct tr_failure *failure);
bool tr_target_has_ended(struct tr_target *target);

/* A client is about to stop or kill it. A kill's is the last word, else the first is. */
void tr_target_note_stopper(struct tr_target *target, uint32_t uid, int32_t pid, bool kill);
/* False where none asked for its end, or it is not known. */
bool tr_target_stopper(struct tr_target *target, uint32_t *ret_uid, int32_t *ret_pid);

/* A new reference to how it failed; NULL where it ended orderly or has not ended. */
struct tr_failure *tr_target_failure(struct tr_target *target);
/* The same where nobody was told of it so far. The caller is told with that. */
struct tr_failure *tr_target_take_unheard(struct tr_target *target);

/* Whether it has work in hand, so that answers from it are to be expected soon. Any thread; a hint. */
bool tr_target_is_busy(struct tr_target *target);

/* What a line of the log that is about it says of it. The first digits of its handle are written to ret_handle, and all of
 * it is borrowed. */
struct tr_log_context tr_target_log_context(const struct tr_target *target, char ret_handle[TR_HANDLE_SHORT + 1]);

/* Writes the map that `info` and `list` answer with: what every target has, and what its kind adds. Only strings as keys. */
void tr_target_write_info(struct tr_target *target, bool plain, struct tr_writer *writer);

#endif
