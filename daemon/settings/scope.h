/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_SCOPE_H
#define TR_SETTINGS_SCOPE_H

#include "daemon/settings/settings.h"

/* Where a daemon's files are: the system's at fixed places, a user's where the XDG base directories say. */

/* The configuration file of a scope, the caller's; NULL where memory is short. */
char *tr_scope_configuration(enum tr_settings_scope scope);

/* Puts a user's own places (socket, Lua path) over the system's defaults, and a user's socket is the user's alone.
 * 0 or a negative errno. */
TR_MUST_CHECK int tr_scope_apply_user(struct tr_settings *settings);

#endif
