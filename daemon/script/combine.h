/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_COMBINE_H
#define TR_SCRIPT_COMBINE_H

#include <lua.h>

/* Loads the combinators of promises (all, any, race, settled, timeout): pushes a table of them. Protected. */
void tr_combine_load(lua_State *L);

/* Functions that what is written in Lua stands on (lua/promises.lua). Their callers pass promises. */
int tr_combine_state(lua_State *L);
int tr_combine_when(lua_State *L);

#endif
