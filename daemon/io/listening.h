/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_LISTENING_H
#define TR_IO_LISTENING_H

#include "daemon/io/callee.h"

/*
 * A connection that listens: a callee with a handle, which others get like that of an actor. It ends with its connection. Loop thread.
 */

/* Gives the connection a handle, or, where it has one, has it called by another method: NULL, or why not. */
struct tr_failure *tr_listening_begin(struct tr_connection *connection, const struct tr_chosen_options *options);
/* The connection has ended: its descriptor is closed, and nobody writes to it. */
void tr_listening_end(struct tr_connection *connection);

#endif
