/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_OUTGOING_H
#define TR_IO_OUTGOING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/core/message.h"
#include "daemon/io/calls.h"
#include "daemon/io/output.h"
#include "proto/frame.h"

struct tr_callee;

/* A message that waits for room in the socket. */
struct tr_outgoing_message {
        struct tr_list link;
        struct tr_message *message; /* strong */
        struct tr_callee *callee;   /* whom it was posted to; borrowed */
        uint32_t id;                /* of an ask */
        uint8_t *plain;             /* its arguments in the plain form; NULL: they go out as they are */
        size_t plain_bytes;
};

/*
 * What others have to say to the client of a connection, whichever of its callees they said it to: what waits for room in the
 * socket, and the asks that went out and are not answered. Guarded by the connection's lock; callees that end take out what is theirs.
 *
 * An ask is in `calls` from its post until it is answered, and, while it waits, in `waiting` too; each holds a reference of its own. A
 * send is in `waiting` only.
 */
struct tr_outgoing {
        struct tr_calls calls;
        struct tr_list waiting; /* struct tr_outgoing_message; empty unless the output is blocked, or held */
        uint32_t waiting_count;
        uint64_t waiting_bytes;
        uint32_t asks_max;
        bool deaf; /* nothing more is received from the client: it cannot be asked */
        bool held; /* nothing goes out at present: the loop is about to write something before */
        _Atomic bool congested; /* some callee is; written under the lock */
};

void tr_outgoing_init(struct tr_outgoing *outgoing);

/* Whether what is posted has to wait. */
static inline bool tr_outgoing_waits(const struct tr_outgoing *outgoing, const struct tr_output *output) {
        return output->blocked || outgoing->held;
}

/* Whether there is room for so many bytes more, and for an ask where it is one. */
bool tr_outgoing_has_room(const struct tr_outgoing *outgoing, const struct tr_output *output, bool ask, uint64_t bytes);
/* Puts a message where it waits: a new reference, and what is in `plain`. 0 or -ENOMEM, and nothing was taken. */
TR_MUST_CHECK int tr_outgoing_queue(struct tr_outgoing *outgoing, struct tr_callee *callee, struct tr_message *message, uint32_t id,
                                    struct tr_writer *plain);
/* Takes the first that waits: the caller's to let go of. False where none does. */
bool tr_outgoing_next(struct tr_outgoing *outgoing, struct tr_outgoing_message *ret_next);
/* Its arguments as they go out. */
struct tr_span tr_outgoing_args(const struct tr_outgoing_message *next);
/* Drops what waiting held, and the call of an ask that did not go out. A message that nobody else may hold is put into the list. */
void tr_outgoing_let_go(struct tr_outgoing *outgoing, const struct tr_outgoing_message *next, bool went_out, struct tr_list *ret_done);
/* Takes out all that is a callee's (NULL: of all callees): asks as messages, whatever waits as struct tr_outgoing_message. */
void tr_outgoing_take(struct tr_outgoing *outgoing, const struct tr_callee *callee, struct tr_list *ret_asks, struct tr_list *ret_waiting);

#endif
