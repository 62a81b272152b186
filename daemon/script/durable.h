/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_DURABLE_H
#define TR_SCRIPT_DURABLE_H

#include <lauxlib.h>
#include <lua.h>

/* `task` and `delay`, by name; see library.c. */
extern const luaL_Reg tr_durable_functions[];

/* As these, Lua functions whose upvalue is the trace that the task is part of; nil: a new one. */
int tr_durable_task_in_chain(lua_State *L);
int tr_durable_delay_in_chain(lua_State *L);

#endif
