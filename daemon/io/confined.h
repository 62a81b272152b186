/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_CONFINED_H
#define TR_IO_CONFINED_H

#include <stdbool.h>

#include "daemon/io/server.h"

struct tr_connection;
struct tr_failure;
struct tr_method;
struct tr_replica;
struct tr_replica_options;

/*
 * What a connection is bound to that nobody made but the daemon, for a process that it has started: it serves its own component under
 * the name that is meant for it, and calls; any other method is denied. It is the daemon's user, but has no right beyond that.
 *
 * Immutable; the connection's own, until it is closed. Loop thread.
 */
struct tr_confined;

/* A copy of what was adopted; NULL where memory is short. */
struct tr_confined *tr_confined_new(const struct tr_adoption *adoption);
/* NULL is fine. */
void tr_confined_free(struct tr_confined *confined);

/* NULL; or denied: the method is none of those that are left. Also for a connection that is not confined. */
struct tr_failure *tr_confined_check_method(const struct tr_connection *connection, const struct tr_method *method);
/* The same for what is to be served: whose name, and kind, and index are filled in. */
struct tr_failure *tr_confined_check_serve(const struct tr_connection *connection, const char *component,
                                           struct tr_replica_options *options);

/* It has begun to serve. */
void tr_confined_tell_serves(const struct tr_connection *connection, struct tr_replica *replica);
/* It is closed. */
void tr_confined_tell_ended(const struct tr_connection *connection);

#endif
