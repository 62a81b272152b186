/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_RELOAD_H
#define TR_RELOAD_H

#include "daemon/core/failure.h"
#include "daemon/settings/settings.h"

/*
 * Reloading: the configuration is read again, all of it, before anything changes. What is applied is the business of whoever has the
 * parts (daemon/daemon.c).
 */

/* Reads and checks it, as `trouped --check` does. NULL, or a failure that says all that is wrong, the caller's. */
struct tr_failure *tr_reload_read(const char *config, enum tr_settings_scope scope, struct tr_settings **ret_settings);
/* Logs each key that has changed, and has an effect when the daemon is started only. */
void tr_reload_log_unapplied(const struct tr_settings *before, const struct tr_settings *after);

#endif
