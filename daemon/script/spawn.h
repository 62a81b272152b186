/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SPAWN_H
#define TR_SCRIPT_SPAWN_H

#include <lauxlib.h>
#include <lua.h>

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_spawn_functions[];

struct tr_spawn_options;

/* Spawns the actor at `first` with what follows it, to the top of the stack: its arguments, and perhaps its options. What
 * is in `options` stands unless those say otherwise. Pushes the promise of its start where that is wanted, and the handle; answers how many, as a lua_CFunction does; raises for `function`. */
int tr_spawn(lua_State *L, int first, const char *function, struct tr_spawn_options *options);
/* name_of(value): "module:Name" of a declaration, a text that names an actor as it is, or nothing. A lua_CFunction. */
int tr_spawn_name_of(lua_State *L);

#endif
