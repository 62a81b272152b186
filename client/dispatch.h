/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_DISPATCH_H
#define TR_CLIENT_DISPATCH_H

#include <stdbool.h>

#include "client/connection.h"

/*
 * From bytes to callbacks.
 */

enum tr_dispatch {
        TR_DISPATCH_RUN,  /* callbacks run, straight from the input buffer */
        TR_DISPATCH_KEEP, /* a call waits, and no callback may run: answers are copied and kept */
};

/* Reads once, and deals with every whole frame. 0; 1 where there may be more to read; -ENOMEM, or -EOVERFLOW where too
 * much would be kept, with nothing lost. The connection may be over after. */
TR_MUST_CHECK int tr_dispatch_input(struct troupe *troupe, enum tr_dispatch how, bool wait);

/* The connection has ended: so has every request that is not answered, with the error that the daemon gave for that
 * (NULL: none). Runs no callback. */
void tr_dispatch_lose_all(struct troupe *troupe, const struct troupe_value *why);

/* Runs the callbacks of what was kept. 0, or -ENOMEM with the rest still kept. */
TR_MUST_CHECK int tr_dispatch_settle(struct troupe *troupe);

/* Around everything that runs callbacks: a connection that one of them frees is released by the last leave, which
 * then answers false. */
void tr_dispatch_enter(struct troupe *troupe);
bool tr_dispatch_leave(struct troupe *troupe);

/* What became of a request that a call waits for, once it is answered or lost: sets the error,
 * hands over the answer as the connection's own, and frees the request. */
TR_MUST_CHECK int tr_dispatch_take(struct troupe *troupe, struct troupe_pending *take_pending);

#endif
