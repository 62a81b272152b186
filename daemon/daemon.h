/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_DAEMON_H
#define TR_DAEMON_H

#include "daemon/base/error.h"
#include "daemon/settings/settings.h"

struct tr_daemon;
struct tr_systemd;

/* The daemon: a host of actors behind a socket, under a service manager or not. Main thread, which is the loop's. */
struct tr_daemon_options {
        const struct tr_settings *settings;
        const char *config; /* that they were read from, and are on a reload; NULL: the scope's own */
        enum tr_settings_scope scope;
        const struct tr_systemd *systemd; /* what was passed, and who is told */
        const char *socket_path;          /* of an own socket; NULL: the settings' */
        char *const *path;                /* Lua directories before the settings' path; NULL-terminated */
};

/* Why there is no daemon, beside TR_LISTEN_* of daemon/io/server.h. The log says more. */
enum {
        TR_DAEMON_NO_TRACE_FILE = 64, /* the configured trace.file cannot be written */
        TR_DAEMON_STORE_IN_USE,       /* by another daemon */
        TR_DAEMON_STORE_NEWER,        /* it is of a version that is not known */
        TR_DAEMON_NO_STORE,           /* it cannot be opened */
};

/* Creates everything and listens; nothing runs yet. 0, TR_LISTEN_*, TR_DAEMON_*, or a negative errno.
 * What the options point to outlives it. */
TR_MUST_CHECK int tr_daemon_new(const struct tr_daemon_options *options, struct tr_daemon **ret_daemon);
/* Starts the configured actors and serves until it is told to stop. 0 or a negative errno. */
TR_MUST_CHECK int tr_daemon_run(struct tr_daemon *daemon);
/* NULL is fine. Where an actor is stuck, what it may come back to is left. */
void tr_daemon_free(struct tr_daemon *daemon);

#endif
