/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LIBRARY_H
#define TR_SCRIPT_LIBRARY_H

#include <lauxlib.h>
#include <lua.h>

/* What `require "troupe"` answers. Makes its table and puts everything into it. Once per VM, protected. */
void tr_library_open(lua_State *L);
/* Adds functions to it. Protected. */
void tr_library_add(lua_State *L, const luaL_Reg *functions);

#endif
