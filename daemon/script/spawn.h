/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SPAWN_H
#define TR_SCRIPT_SPAWN_H

#include <lua.h>

/* Opens `spawn`. Once per VM, protected. */
void tr_spawn_open(lua_State *L);

#endif
