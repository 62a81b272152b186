/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_SERVING_H
#define TR_IO_SERVING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/replica.h"
#include "daemon/io/callee.h"

/*
 * A connection that serves a component: a replica of it, and the callee that its calls are posted to, so that they go out as
 * whatever others ask of a connection does: [operation, input, context]. One for each component that the connection serves.
 *
 *      join -> hold, answered {instance} -> ... -> retired (withdrawn, or the component stops), or the connection ends
 *
 * While it begins, the connection is held (outgoing.held): its name can be called before the client hears that it has it, and the first
 * call goes out behind that answer.
 */

/* What a client chose. All of it is borrowed. */
struct tr_serving_options {
        const char *instance;          /* NULL: a random one */
        const char *const *operations; /* NULL-terminated; NULL: all */
        uint32_t concurrency;          /* 0: the manifest's */
        struct tr_chosen_options chosen;
};

/* Loop thread. */

/* It is a replica, and takes calls, which do not go out before tr_serving_release(). NULL and its name written to ret_instance; or why
 * not. */
struct tr_failure *tr_serving_begin(struct tr_connection *connection, struct tr_component *component,
                                    const struct tr_serving_options *options, char ret_instance[static TR_NAME_MAX + 1]);
/* What has come for it meanwhile goes out, behind what the loop has written. */
void tr_serving_release(struct tr_connection *connection);
/* Gives its name up; it ends when it has answered what it holds. NULL and a new reference to what is over then (tr_target_watch); or
 * not-found: the connection does not serve that. */
struct tr_failure *tr_serving_withdraw(struct tr_connection *connection, const char *component, size_t len, struct tr_target **ret_target);
/* Nothing is answered any more: all that the connection serves dies. */
void tr_serving_end_all(struct tr_connection *connection);
/* Where something was refused for want of room, and there is some: it is told. */
void tr_serving_relieve(struct tr_connection *connection);

#endif
