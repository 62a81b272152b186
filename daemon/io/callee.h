/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CALLEE_H
#define TR_IO_CALLEE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/target.h"
#include "daemon/io/calls.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "proto/frame.h"

/*
 * A connection that listens, as a target: what is sent to it goes out as a notification, and what it is asked as a
 * request, [handler, args...] being what the client's method is called with.
 *
 * Whoever posts writes to the connection's output and sends, as whoever answers does. Where the socket is full, a
 * message waits here, queued, until the loop has sent what is before it: it can still be cancelled then and never goes
 * out. When it is written to the output it begins. So much may wait as the connection's limits allow, the asks that
 * went out and are not answered counted; whatever is more is refused, and nobody ever waits.
 */
struct tr_callee {
        struct tr_target target;
        /* A reference, until the connection ends. Guarded by the target's lock. */
        struct tr_connection *connection;

        uint32_t asks_max;
        _Atomic uint8_t form; /* enum tr_form: of what goes out from now on */

        /* Guarded by the connection's lock. */
        struct tr_chosen chosen;
        bool deaf;              /* nothing more is received from the client: it cannot be asked */
        struct tr_calls calls;  /* asks that wait, and those that went out */
        struct tr_list waiting; /* struct tr_outgoing; empty unless the output is blocked */
        uint32_t waiting_count;
        uint64_t waiting_bytes;
};

/* All that follows is for the loop thread. */

/* Makes the connection a target, or, where it is one, has it called by another method: NULL, or why not. */
struct tr_failure *tr_callee_listen(struct tr_connection *connection, const struct tr_chosen_options *options);
/* The connection's form of values is another one from now on. */
void tr_callee_set_form(struct tr_connection *connection);
/* The socket took all there was: what waits follows. Under the connection's lock; the messages in the list are to be
 * dropped after it (tr_callee_drop). */
void tr_callee_feed_locked(struct tr_connection *connection, struct tr_list *ret_done) TR_REQUIRES(connection->lock);
void tr_callee_drop(struct tr_list *messages);
/* Whether something waits to be written to the output. */
bool tr_callee_has_waiting_locked(struct tr_connection *connection) TR_REQUIRES(connection->lock);
/* A response came. */
void tr_callee_answered(struct tr_connection *connection, const struct tr_frame *frame);
/* One came that cannot be accepted, and why. */
void tr_callee_answer_refused(struct tr_connection *connection, uint32_t id, struct tr_failure *failure);
/* Nothing more is received: what it was asked is not answered any more. */
void tr_callee_deafen(struct tr_connection *connection);
/* The connection has ended: its descriptor is closed, and nobody writes to it. */
void tr_callee_end(struct tr_connection *connection);

#endif
