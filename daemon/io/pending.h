/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_PENDING_H
#define TR_IO_PENDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/message.h"
#include "daemon/core/timer.h"

/*
 * The unanswered requests of one connection, by id, and their deadlines. Guarded by its connection's lock.
 *
 * It holds no references: whoever settles a message answers it, and takes it out of here, before letting go of it, so a
 * message that is found here under the lock is alive.
 */
struct tr_pending {
        struct tr_message **slots; /* chains through ask.next and ask.pprev */
        unsigned int bits;         /* 1 << bits slots; no slots yet where it is 0 */
        /* Changed under the lock. The loop, which alone adds any, may read it without: where it is 0 it stays so. */
        _Atomic uint32_t count;
        uint64_t multiplier;        /* random and odd: a peer that chooses its ids cannot choose their slots */
        struct tr_timers deadlines; /* of those that have one: ask.deadline */
};

enum {
        TR_PENDING_DUPLICATE = 1, /* a request of that id is pending */
        TR_PENDING_FULL = 2,      /* as many as allowed are pending */
};

/* 0 or a negative errno. */
TR_MUST_CHECK int tr_pending_init(struct tr_pending *pending);
/* It must be empty. */
void tr_pending_deinit(struct tr_pending *pending);

/* Takes in a message by its ask.id, with a deadline unless it is TR_NEVER. 0, TR_PENDING_*, or -ENOMEM. */
TR_MUST_CHECK int tr_pending_add(struct tr_pending *pending, struct tr_message *message, uint64_t deadline_ns,
                                 uint32_t max);
/* NULL where none is pending. */
struct tr_message *tr_pending_find(struct tr_pending *pending, uint64_t id);
/* False where it is not in it. */
bool tr_pending_remove(struct tr_pending *pending, struct tr_message *message);
/* Empties it: all of them, chained through ask.next, each a new reference. */
struct tr_message *tr_pending_take_all(struct tr_pending *pending);
/* One whose deadline has passed; it stays pending, but has no deadline any more. NULL where there is none. */
struct tr_message *tr_pending_take_due(struct tr_pending *pending, uint64_t now_ns);

#endif
