/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_OPEN_H
#define TR_SCRIPT_OPEN_H

#include <lauxlib.h>
#include <lua.h>

/*
 * The value types' parts of tr_values_open(): each makes what it keeps from the beginning. The library table is at the
 * top of the stack.
 */
void tr_open_held(lua_State *L); /* before all that have finalizers; needs no library table */
void tr_open_null(lua_State *L);
void tr_open_marks(lua_State *L);
void tr_open_handles(lua_State *L);
void tr_open_transfers(lua_State *L);
void tr_open_classes(lua_State *L);

/* Their functions in the library, by name; see library.c. */
extern const luaL_Reg tr_bytes_functions[];
extern const luaL_Reg tr_class_functions[];
extern const luaL_Reg tr_handle_functions[];
extern const luaL_Reg tr_mark_functions[];
extern const luaL_Reg tr_time_functions[];
extern const luaL_Reg tr_transfer_functions[];

#endif
