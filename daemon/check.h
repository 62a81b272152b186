/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CHECK_H
#define TR_CHECK_H

#include "daemon/settings/settings.h"

/*
 * `trouped --check`: as tr_settings_load(), and what else of the configuration would keep the daemon from starting on
 * this machine.
 */
TR_MUST_CHECK int tr_check(const char *file, enum tr_settings_scope scope, struct tr_problems *problems,
                           struct tr_problems *notes, struct tr_settings **ret_settings);

#endif
