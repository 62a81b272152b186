/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_NATIVE_H
#define TR_SCRIPT_NATIVE_H

#include <lua.h>
#include <stdbool.h>

/*
 * Modules written in C, where they are granted.
 */

/* Puts `package.loadlib` into the table on top: Lua's own, or one that says how it is granted. Once per VM,
 * protected. */
void tr_native_open(lua_State *L);

/* Whether modules written in C are looked for. */
bool tr_native_is_granted(lua_State *L);
/* Pushes the function that opens the module in the file at `path`. Raises `load` where there is none. Protected. */
void tr_native_push(lua_State *L, const char *name, const char *path);

#endif
