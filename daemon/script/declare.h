/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_DECLARE_H
#define TR_SCRIPT_DECLARE_H

#include <lua.h>
#include <stdbool.h>

/* Whether the value at an index is an actor's declaration (what `troupe.actor` answers). */
bool tr_declared_is(lua_State *L, int index);

#endif
