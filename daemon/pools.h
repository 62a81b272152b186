/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_POOLS_H
#define TR_POOLS_H

#include "daemon/base/error.h"
#include "daemon/settings/settings.h"

struct tr_pools;
struct tr_script;
struct tr_system;

/*
 * Configured pools: they are the daemon's own, and see to their workers themselves. One that cannot be started at all (a name that
 * is taken) is logged, and the daemon goes on. Loop thread.
 */

/* What it is given outlives it. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_pools_new(struct tr_system *system, const struct tr_script *script, struct tr_pools **ret_pools);
/* They are these from now on: what is gone is stopped, orderly within the grace; what has changed is followed by a pool of the new
 * settings, which has its name at once, and stopped; of one whose module has changed the workers are replaced, one after the other. NULL,
 * or why some pool could not be started, the caller's; the others are. */
struct tr_failure *tr_pools_set(struct tr_pools *pools, const struct tr_settings_pools *settings);
/* The pools go on. NULL is fine. */
void tr_pools_free(struct tr_pools *pools);

#endif
