/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_UNSENT_H
#define TR_IO_UNSENT_H

#include <stdbool.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"

struct tr_loop;
struct tr_unsent;

/*
 * Connections with answers that were written but not sent, because whoever wrote them said that more would follow.
 * Normally it does, and then sends them all at once; but what follows may be a handler that runs for seconds. So a
 * tick sends, within milliseconds, what nobody else has.
 */

/* An entry: part of a connection. The list holds a reference to it. */
struct tr_unsent_entry {
        struct tr_list link;
        bool listed; /* guarded by the connection's lock */
};

/* `send` is called on the loop thread with each entry, which is not listed any more, and takes the list's reference. It
 * answers whether there was something to send. 0 or a negative errno. */
TR_MUST_CHECK int tr_unsent_new(struct tr_loop *loop, bool (*send)(struct tr_unsent_entry *entry),
                                struct tr_unsent **ret_unsent);
/* It must be empty. NULL is fine. */
void tr_unsent_free(struct tr_unsent *unsent);

/* Any thread, under the connection's lock: lists it, and makes the tick run. The caller has taken the list's
 * reference. */
void tr_unsent_add(struct tr_unsent *unsent, struct tr_unsent_entry *entry);
/* Under the connection's lock. Answers whether it was listed: the list's reference is the caller's then. */
bool tr_unsent_remove(struct tr_unsent *unsent, struct tr_unsent_entry *entry);

#endif
