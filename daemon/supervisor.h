/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SUPERVISOR_H
#define TR_SUPERVISOR_H

#include "daemon/base/error.h"
#include "daemon/settings/settings.h"

struct tr_loop;
struct tr_supervisor;
struct tr_system;

/*
 * Starts the configured actors and starts them again when they end, as `restart` says: never, on a fault (or a kill, or
 * where they could not be started), always. Loop thread.
 */
struct tr_supervisor_options {
        struct tr_loop *loop;
        struct tr_system *system;
        const struct tr_settings_actors *actors;
        /* Once, on the loop thread: every actor has finished its init or failed once. */
        void (*ready)(void *userdata);
        void *userdata;
};

/* 0 or a negative errno. What the options point to outlives it, but for the actors, which are copied. */
TR_MUST_CHECK int tr_supervisor_new(const struct tr_supervisor_options *options, struct tr_supervisor **ret_supervisor);
/* Starts all of them. Where there is none, ready is called at once. */
void tr_supervisor_start(struct tr_supervisor *supervisor);
/*
 * Other actors are configured from now on. What has not changed goes on; what is gone is stopped, orderly within the grace; what
 * has changed (it has the same published name, else the same label, else is of the same actor) is stopped, and started by its new
 * settings. 0, or -ENOMEM with nothing changed.
 */
TR_MUST_CHECK int tr_supervisor_reload(struct tr_supervisor *supervisor, const struct tr_settings_actors *actors);
/* Nothing is started again from now on. The actors themselves are stopped by whoever ends their session. */
void tr_supervisor_stop(struct tr_supervisor *supervisor);
/* Stops it and lets go of it: what is owed to it by actors that still run is dropped. NULL is fine. */
void tr_supervisor_free(struct tr_supervisor *supervisor);

#endif
