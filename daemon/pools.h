/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_POOLS_H
#define TR_POOLS_H

#include "daemon/core/system.h"
#include "daemon/settings/settings.h"

/*
 * Configured pools: they are the daemon's own, and see to their workers themselves. One that cannot be started at all (a name that
 * is taken) is logged, and the daemon goes on.
 */
void tr_pools_start(struct tr_system *system, const struct tr_settings_pools *pools);

#endif
