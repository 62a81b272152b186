/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LUA_PARTS_H
#define TR_SCRIPT_LUA_PARTS_H

#include <stddef.h>

/*
 * The parts of the library that are written in Lua, daemon/script/lua/NAME.lua. The build makes their texts into
 * strings.
 */
struct tr_lua_part {
        const char *text;
        size_t len;
};

extern const struct tr_lua_part tr_lua_promises, tr_lua_supervise, tr_lua_supervisor;

#endif
