/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: tables that are to cross as an array, or as a map, whatever is in them.
 *
 * The keys of a table say which of the two it is, but for an empty one and for a map whose keys happen to be 1..n.
 * Those are told apart by a metatable with nothing in it that Lua would look at. It costs a table nothing, and stays
 * where it is while the table changes; a side table of all marked ones would be work for every cycle of the collector.
 */
#include "daemon/script/open.h"
#include "daemon/script/values.h"

/* Where the registry has the metatables, and, in each of them, which mark it is. */
static const char array_key, map_key, mark_key;

enum tr_mark tr_mark_of(lua_State *L, int index) {
        enum tr_mark mark;

        if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index))
                return TR_MARK_NONE;
        lua_rawgetp(L, -1, &mark_key);
        mark = (enum tr_mark)lua_tointeger(L, -1);
        lua_pop(L, 2);
        return mark;
}

void tr_set_mark(lua_State *L, int index, enum tr_mark mark) {
        index = lua_absindex(L, index);
        if (mark == TR_MARK_NONE)
                lua_pushnil(L);
        else
                lua_rawgetp(L, LUA_REGISTRYINDEX, mark == TR_MARK_ARRAY ? &array_key : &map_key);
        lua_setmetatable(L, index);
}

/* Marks its first argument and answers it. */
static int mark_argument(lua_State *L, const char *function, enum tr_mark mark) {
        if (!lua_istable(L, 1))
                tr_value_misuse(L, function, 1, "a table");
        if (tr_mark_of(L, 1) == TR_MARK_NONE && lua_getmetatable(L, 1))
                tr_value_misuse(L, function, 1, "a table without a metatable");
        tr_set_mark(L, 1, mark);
        lua_settop(L, 1);
        return 1;
}

static int library_array(lua_State *L) {
        return mark_argument(L, "array", TR_MARK_ARRAY);
}

static int library_map(lua_State *L) {
        return mark_argument(L, "map", TR_MARK_MAP);
}

static void make_metatable(lua_State *L, const void *key, enum tr_mark mark) {
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, mark);
        lua_rawsetp(L, -2, &mark_key);
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void tr_open_marks(lua_State *L) {
        make_metatable(L, &array_key, TR_MARK_ARRAY);
        make_metatable(L, &map_key, TR_MARK_MAP);
}

const luaL_Reg tr_mark_functions[] = {
        { "array", library_array },
        { "map", library_map },
        { NULL, NULL },
};
