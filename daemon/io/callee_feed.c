/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeding a client with what waits, whichever of its callees it is for: when its socket has room again, in the order in which it came.
 */
#include "config.h"

#include <event2/event.h>

#include "daemon/io/callee.h"

/* How often more is written, before the loop sees to others. */
#define FEED_ROUNDS 4

/* Writes what waits, as much as is to be sent at once. */
static void fill_locked(struct tr_connection *connection, struct tr_list *done) TR_REQUIRES(connection->lock) {
        struct tr_outgoing *outgoing = &connection->outgoing;
        struct tr_outgoing_message next;
        while (!connection->doom && tr_output_waiting(&connection->output) < TR_CALLEE_FEED_BYTES &&
               tr_outgoing_next(outgoing, &next)) {
                struct tr_span args = tr_outgoing_args(&next);
                int r = tr_callee_write_locked(next.callee, connection, next.message, next.id, &args);
                if (r < 0) /* it was taken, so it may not be lost in silence */
                        connection->doom = "out of memory for what is sent to it";
                tr_outgoing_let_go(outgoing, &next, r == 0, done);
        }
}

void tr_callee_feed_locked(struct tr_connection *connection, struct tr_list *ret_done) {
        struct tr_outgoing *outgoing = &connection->outgoing;
        struct tr_output *output = &connection->output;
        for (unsigned int i = 0; i < FEED_ROUNDS && outgoing->waiting_count && !output->blocked && !output->broken; i++) {
                fill_locked(connection, ret_done);
                tr_output_send(output, connection->fd);
        }
        if (outgoing->waiting_count && !output->blocked && !output->broken) {
                output->blocked = true; /* nobody else writes before what waits is written */
                event_active(&connection->write_event, EV_WRITE, 0);
        }
}
