/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CALLS_H
#define TR_IO_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/core/message.h"

/* What one message that a client keeps waiting costs, beyond its bytes. */
#define TR_CALL_BYTES (sizeof(struct tr_message) + 64)

static inline uint64_t tr_call_bytes(const struct tr_message *message) {
        return tr_message_bytes(message) + TR_CALL_BYTES;
}

struct tr_callee;

struct tr_call {
        uint32_t id;
        bool waiting; /* it has not gone out: nobody can answer it, and it is not swept */
        struct tr_message *message; /* strong; NULL: the slot is free */
        struct tr_callee *callee;   /* whom it was posted to; borrowed */
};

/*
 * What a client was asked, by all its callees, and has not answered, by the id that the daemon gave it. Guarded by its connection's lock.
 *
 * Nobody tells it that an ask was settled otherwise (its asker gave up, or ended). Such asks are found by looking at
 * some slots now and then (tr_calls_sweep), and until then their ids stay taken, for late answers to find.
 */
struct tr_calls {
        struct tr_call *slots; /* each at its id's lowest bits */
        uint32_t room;         /* a power of two, or 0; at most half of it is used */
        uint32_t count;
        uint32_t next_id;
        uint32_t swept;        /* where the next look begins */
        uint64_t bytes;        /* of all that are in it */
};

/* Takes a message in, which waits or goes out at once. 0 or -ENOMEM, and it is still the caller's. */
TR_MUST_CHECK int tr_calls_add(struct tr_calls *calls, struct tr_message *take_message, struct tr_callee *callee, bool waiting,
                               uint32_t *ret_id);
/* Whether a message is in it, and has gone out; its id is its call_id then. */
bool tr_calls_has_sent(const struct tr_calls *calls, const struct tr_message *message);
/* What waited has gone out. */
void tr_calls_set_sent(struct tr_calls *calls, uint32_t id);
/* Takes a message out, or NULL where none has that id. */
struct tr_message *tr_calls_take(struct tr_calls *calls, uint32_t id);
/* The same, of those that went out, and whom it was posted to. */
struct tr_message *tr_calls_take_sent(struct tr_calls *calls, uint32_t id, struct tr_callee **ret_callee);
/* Looks at so many slots, and moves what went out and is settled there to the list. */
void tr_calls_sweep(struct tr_calls *calls, uint32_t looks, struct tr_list *ret_settled);
/* Moves all that was posted to a callee into the list. NULL: to any of them; then what the table has is freed too. */
void tr_calls_take_all(struct tr_calls *calls, const struct tr_callee *callee, struct tr_list *ret_all);

#endif
