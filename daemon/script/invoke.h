/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_INVOKE_H
#define TR_SCRIPT_INVOKE_H

#include <lauxlib.h>
#include <lua.h>

/* `call` and `instances`, by name; see library.c. */
extern const luaL_Reg tr_invoke_functions[];

/* As `call`, a Lua function whose upvalue is the trace that the call is part of; nil: a new one. */
int tr_invoke_in_chain(lua_State *L);

#endif
