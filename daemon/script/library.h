/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LIBRARY_H
#define TR_SCRIPT_LIBRARY_H

#include <lua.h>

struct tr_lua_part;

/* What `require "troupe"` answers. Makes its table and puts everything into it. Once per VM, protected. */
void tr_library_open(lua_State *L);
/* Pushes a part that is written in Lua, compiled. Protected. */
void tr_library_push_part(lua_State *L, const struct tr_lua_part *part, const char *chunk_name);

#endif
