/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null: what a nil inside a container is in Lua, whose tables cannot hold nil.
 *
 * It is a light userdata, so that it costs a table no more than a number, compares by ==, and is true in a condition.
 * All light userdata of a VM share one metatable, so its functions also see those of native modules and leave them
 * alone.
 */
#include "daemon/script/open.h"
#include "daemon/script/values.h"

static const char null;

void tr_push_null(lua_State *L) {
        lua_pushlightuserdata(L, (void *)&null);
}

bool tr_is_null(lua_State *L, int index) {
        return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &null;
}

static int null_tostring(lua_State *L) {
        if (tr_is_null(L, 1))
                lua_pushliteral(L, "null");
        else
                lua_pushfstring(L, "userdata: %p", lua_topointer(L, 1));
        return 1;
}

void tr_open_null(lua_State *L) {
        tr_push_null(L);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, null_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_setfield(L, -2, "null");
}
