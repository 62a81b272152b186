/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_BOX_H
#define TR_SCRIPT_BOX_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Userdata that say what they are: the first word is the address of their type's tag, which is also the key under which
 * the registry has the type's metatable. No other userdata can begin with that address, so recognizing one takes
 * neither a metatable nor a string.
 *
 * A structure of such a type has `const void *tag` as its first member.
 */

struct tr_box {
        const void *tag;
};

/* The tag of the userdata at an index, or NULL where it is something else. Light userdata have no length. */
static inline const void *tr_box_tag(lua_State *L, int index) {
        return lua_rawlen(L, index) >= sizeof(struct tr_box) && lua_type(L, index) == LUA_TUSERDATA
                       ? ((struct tr_box *)lua_touserdata(L, index))->tag
                       : NULL;
}

static inline void *tr_box_to(lua_State *L, int index, const void *tag) {
        return tr_box_tag(L, index) == tag ? lua_touserdata(L, index) : NULL;
}

/* Pushes a new one; beyond the tag it is not initialized, and its metatable is not set: its __gc must not see it before
 * tr_box_seal(). */
static inline void *tr_box_push(lua_State *L, const void *tag, size_t size, int values) {
        struct tr_box *box = lua_newuserdatauv(L, size, values);

        box->tag = tag;
        return box;
}

/* Makes the metatable of a type, hidden from Lua code, and leaves it on the stack. */
static inline void tr_box_metatable(lua_State *L, const void *tag, const char *name, const luaL_Reg *functions) {
        lua_newtable(L);
        luaL_setfuncs(L, functions, 0);
        lua_pushstring(L, name);
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, tag);
}

/* Gives the one at the top of the stack the metatable of its type. The first of them has it made: `make` does so with
 * tr_box_metatable(), and leaves it on the stack. An idle actor has none of most types. */
static inline void tr_box_seal(lua_State *L, const void *tag, void (*make)(lua_State *L)) {
        if (lua_rawgetp(L, LUA_REGISTRYINDEX, tag) == LUA_TNIL) {
                lua_pop(L, 1);
                luaL_checkstack(L, LUA_MINSTACK, NULL);
                make(L);
        }
        lua_setmetatable(L, -2);
}

/* Pushes a new table that does not keep its values alive. */
static inline void tr_box_weak_values(lua_State *L) {
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "v");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
}

#endif
