/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_REPLICA_H
#define TR_CORE_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/component.h"
#include "daemon/core/timer.h"
#include "proto/limits.h"

/*
 * A replica: one who answers calls of one component, under a name of its own. What it is, an actor or a connection, is a
 * target: deliveries are posted to that, at most `concurrency` at a time.
 *
 *      joined --hold--> holding --retire--> retiring --> gone
 *         \------------------ died --------------------/
 *
 * Its name is held from `joined` on against a second claim, and can be called while it is holding. Who retires gives the name
 * up at once and finishes what it has. When it is gone, calls that wait for it by name are `addressee`; those that it had begun are
 * `abandoned` if they are addressed, and go to another if not.
 *
 * Reference-counted; everything that moves is guarded by the component's lock.
 */
enum tr_replica_state {
        TR_REPLICA_JOINED,
        TR_REPLICA_HOLDING,
        TR_REPLICA_RETIRING,
        TR_REPLICA_GONE,
};

struct tr_replica_ops {
        /* Nobody waits any more for the answer to a delivery that has begun. No lock held. NULL: it is not told. */
        void (*cancel)(struct tr_replica *replica, struct tr_message *delivery);
        /* It was told to retire, and has nothing in hand any more. Once, no lock held, any thread. */
        void (*retired)(struct tr_replica *replica);
        /* It retires, and nobody waits any more, since a grace or longer, for any of what it has in hand: it may never say that it has
         * answered that. No lock held. NULL: it is waited for. */
        void (*forsaken)(struct tr_replica *replica);
        /* It is to end soon: its component does. To be answered by tr_replica_retire() or tr_replica_died(), now or later. No lock
         * held, any thread. */
        void (*stop)(struct tr_replica *replica, enum tr_stop_reason reason);
        /* It is to end at once. */
        void (*kill)(struct tr_replica *replica);
        /* It is being freed: drops the userdata. NULL: there is nothing to drop. */
        void (*release)(struct tr_replica *replica);
};

/* What is said of a replica when it joins. All of it is copied. */
struct tr_replica_options {
        const struct tr_replica_ops *ops;
        void *userdata;           /* for the ops */
        const char *instance;     /* a valid name, NUL-terminated; NULL: a random one */
        struct tr_replica *successor_of; /* which retires when this one holds, and may have the same name; or NULL */
        uint32_t index;           /* of those that the daemon starts; from 0 */
        struct tr_manifest *manifest; /* that it is started for; NULL: the one in effect */
        const struct tr_manifest_replica *started_as; /* in it; NULL: the daemon did not start it */
        uint32_t concurrency;     /* 0: the manifest's */
        const char *const *operations; /* that it serves: NULL-terminated; NULL: all of them */
        uint32_t uid;             /* who serves */
        int32_t pid;              /* 0: the daemon */
        const char *kind;         /* "module", "process", "connection": for people, static */
        bool whole_entities;      /* what its transitions answer as changes is the whole entity, as it is to be; else it is merged */
};

struct tr_replica {
        _Atomic uint32_t refs;

        /* Immutable. */
        struct tr_component *component; /* strong */
        struct tr_manifest *manifest;   /* strong: that it was started for */
        const struct tr_manifest_replica *started_as; /* in it, where the daemon started it; or NULL */
        const struct tr_replica_ops *ops;
        void *userdata;
        char instance[TR_NAME_MAX + 1];
        uint32_t index;
        uint32_t concurrency;
        uint32_t uid;
        int32_t pid;
        const char *kind;
        bool whole_entities;
        int64_t since_ms;

        /* Guarded by the component's lock. */
        struct tr_target *target; /* strong, from before it holds (tr_replica_join, or tr_replica_enter) until it is gone */
        struct tr_list link; /* in component->replicas, until it is gone */
        struct tr_replica *successor_of; /* strong, until it holds */
        bool stop_told;
        enum tr_replica_state state;
        struct tr_list queue;   /* calls that are addressed to it, as in a line */
        struct tr_list in_hand; /* struct tr_delivery */
        uint32_t in_hand_count;
        bool congested;         /* its target took no more; until something is answered, or tr_replica_relieved() */
        uint32_t reliefs;       /* how often that was called */
        bool retired_told;
        bool noted;             /* the store knows that it holds its name (core/lost.h) */
        bool given_up;          /* it has given its name up, or is about to */
        bool forsaken;          /* it retires, and nobody waited any more for what it has in hand when that was looked at last */
        struct tr_timer leave_timer; /* until that is looked at again; holds a reference while it is set */
        char **operations;      /* that it serves; NULL: all */
        _Atomic uint64_t calls_total;
        _Atomic uint64_t faults_total;
};

/*
 * Joins a component: NULL and a new reference in *ret_replica, or why not: `taken` (the instance), `not-found` (an operation
 * that the component has not, or a stateful one that is left out), `not-running` (the component stops), no-memory. Any thread.
 * The target may be NULL, where it is made later.
 */
struct tr_failure *tr_replica_join(struct tr_component *component, const struct tr_replica_options *options,
                                   struct tr_target *target, struct tr_replica **ret_replica);
/* Its target, which is there now. Once, before it holds. */
void tr_replica_enter(struct tr_replica *replica, struct tr_target *target);
/* It takes calls from now on. Any thread, no lock held: what waits is delivered before this returns. */
void tr_replica_hold(struct tr_replica *replica);
/* It gives its name up and takes no more; ops->retired is called when it has nothing in hand. */
void tr_replica_retire(struct tr_replica *replica);
/* It is gone. Deliveries that are in hand have been, or will be, rejected by its target. Idempotent. */
void tr_replica_died(struct tr_replica *replica);
/* The same, and why. The failure is borrowed; NULL: it is not known. */
void tr_replica_died_of(struct tr_replica *replica, const struct tr_failure *failure);
/* Its target may take more again. */
void tr_replica_relieved(struct tr_replica *replica);

struct tr_replica *tr_replica_ref(struct tr_replica *replica);
/* NULL is fine. */
void tr_replica_unref(struct tr_replica *replica);

/* Writes an array of the names held now. */
void tr_component_write_instances(struct tr_component *component, struct tr_writer *writer);
/* New references to all replicas, in an array that the caller frees. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_component_list_replicas(struct tr_component *component, struct tr_replica ***ret_replicas,
                                             uint32_t *ret_count);
/* Writes a map, as `list` has it: kind (replica), name (the instance), component, state, mailbox, ... */
void tr_replica_write_info(struct tr_replica *replica, bool plain, struct tr_writer *writer);

/* Between the files of core that make up a component. */

/* Tells its owner that it has nothing in hand any more, where it retires; once. No lock held. */
void tr_replica_tell_retired(struct tr_replica *replica);
/* A new reference to its target; NULL where it has none yet, or is gone. */
struct tr_target *tr_replica_target(struct tr_replica *replica);
/* Appends the pairs that every replica has; answers how many. */
uint32_t tr_replica_write_pairs(struct tr_replica *replica, struct tr_writer *writer);

#endif
