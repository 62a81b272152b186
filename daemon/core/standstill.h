/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_STANDSTILL_H
#define TR_CORE_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"

struct tr_actor;
struct tr_target;

/* Whom a stopping actor's handlers wait for, by what is waited for: collected by its behaviour's awaits(). */
struct tr_awaited {
        const struct tr_target **targets; /* owned; compared, and never looked into */
        uint32_t count;
        uint32_t room;
        bool no_memory;
};

/* Adds one, once. */
void tr_awaited_add(struct tr_awaited *awaited, const struct tr_target *target);

/* An actor's part: it is listed while it is stopping, in no turn, and waits for others. */
struct tr_standing {
        struct tr_list link;       /* guarded by the system's standstill lock, as what follows */
        struct tr_awaited awaited;
        bool closing;              /* what waits is its close handler */
        bool reached;              /* by the search under way */
        bool given_up;             /* another found that it is the one to end early; its own thread's again when it has left */
        bool listed;               /* its own thread's: it may be in the list, and looks under the lock */
};

/* The system's. */
struct tr_standstill {
        struct tr_lock lock; /* a mailbox's is acquired under it */
        struct tr_list standing TR_GUARDED_BY(lock);
};

void tr_standstill_init(struct tr_standstill *standstill);
void tr_standstill_deinit(struct tr_standstill *standstill);

/* Its own thread, at the end of a turn of an orderly stop that waits for something: whether that can never come, so that it is to end. */
bool tr_standstill_reached(struct tr_actor *actor);
/* Its own thread, before anything in it can change, and when it ends. Nothing where it is not listed. */
void tr_standstill_leave(struct tr_actor *actor);

#endif
