/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_GATHER_H
#define TR_IO_GATHER_H

#include <stdbool.h>

#include "daemon/base/list.h"

struct tr_connection;

/*
 * What the loop writes to other connections while it goes through a piece of one: calls to who serves, and what those answer to who
 * called. It is sent when the piece is over, so that a piece of many frames is one write to each of them, and not one for each frame.
 *
 * All of it is the loop thread's. Output that others write meanwhile is sent as ever, and takes along what waits here.
 */
struct tr_gather {
        bool on;
        struct tr_list connections; /* by tr_connection.gather_link, each a reference */
};

void tr_gather_init(struct tr_gather *gather);
/* A piece begins. */
void tr_gather_begin(struct tr_gather *gather);
/* Any thread, under the connection's lock: whether what was written to it is sent when the piece is over. */
bool tr_gather_takes_locked(struct tr_gather *gather, struct tr_connection *connection);
/* The piece is over: all is sent. No lock held. */
void tr_gather_end(struct tr_gather *gather);

#endif
