/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SPAWN_H
#define TR_SCRIPT_SPAWN_H

#include <lauxlib.h>
#include <lua.h>

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_spawn_functions[];

#endif
