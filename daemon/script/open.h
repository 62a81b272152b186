/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_OPEN_H
#define TR_SCRIPT_OPEN_H

#include <lauxlib.h>
#include <lua.h>

/*
 * The value types' parts of tr_values_open(): each makes its metatables and puts its functions into the library table
 * at the top of the stack.
 */
void tr_open_held(lua_State *L); /* before all that have finalizers; needs no library table */
void tr_open_null(lua_State *L);
void tr_open_marks(lua_State *L);
void tr_open_handles(lua_State *L);
void tr_open_messages(lua_State *L);
void tr_open_bytes(lua_State *L);
void tr_open_transfers(lua_State *L);
void tr_open_times(lua_State *L);
void tr_open_classes(lua_State *L);

#endif
