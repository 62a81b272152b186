/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounds on what one call of a C function may work through.
 *
 * Code inside a C function cannot be interrupted, so a few functions of the standard library, given a huge range,
 * would keep an actor for days and could not be killed: string.rep of the empty string, table.move over 2^60 absent
 * elements, or anything that believes a __len. What cannot fit under the heap's ceiling cannot be a range that
 * somebody means.
 */

#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>

#include "daemon/script/stdlib.h"
#include "daemon/script/vm.h"

/* How many elements of at least `bytes` bytes could fit under the ceiling. */
static lua_Unsigned most(lua_State *L, size_t bytes) {
        return tr_vm_of(L)->alloc.max_bytes / bytes;
}

/* Bytes of one element of a Lua array. */
#define ELEMENT_BYTES 16

static void check_range(lua_State *L, const char *function, lua_Integer from, lua_Integer to) {
        if (to >= from && (lua_Unsigned)to - (lua_Unsigned)from >= most(L, ELEMENT_BYTES))
                luaL_error(L, "table.%s: the range is larger than the heap can hold", function);
}

/* Goes on as the function that was replaced, the upvalue, in the same frame: it has no upvalues of its own. */
static int go_on(lua_State *L) {
        return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int bounded_rep(lua_State *L) {
        size_t len, separator_len = 0;
        lua_Integer count;

        luaL_checklstring(L, 1, &len);
        count = luaL_checkinteger(L, 2);
        luaL_optlstring(L, 3, "", &separator_len);
        len += separator_len;
        /* the empty string as if it had one byte: repeating it takes time too */
        if (count <= 0 || (lua_Unsigned)count <= most(L, len > 0 ? len : 1))
                return go_on(L);
        if (len == 0)
                return luaL_error(L, "resulting string too large");
        /* refused as the allocation that it would be */
        tr_alloc_charge(&tr_vm_of(L)->alloc, SIZE_MAX);
        return luaL_error(L, "not enough memory");
}

static int bounded_concat(lua_State *L) {
        lua_Integer last;

        luaL_checkany(L, 1);
        last = lua_isnoneornil(L, 4) ? luaL_len(L, 1) : luaL_checkinteger(L, 4);
        check_range(L, "concat", luaL_optinteger(L, 3, 1), last);
        return go_on(L);
}

static int bounded_move(lua_State *L) {
        check_range(L, "move", luaL_checkinteger(L, 2), luaL_checkinteger(L, 3));
        return go_on(L);
}

/* The others go by the length. */
static int bounded_insert(lua_State *L) {
        luaL_checkany(L, 1);
        check_range(L, "insert", 1, luaL_len(L, 1));
        return go_on(L);
}

static int bounded_remove(lua_State *L) {
        luaL_checkany(L, 1);
        check_range(L, "remove", 1, luaL_len(L, 1));
        return go_on(L);
}

static int bounded_sort(lua_State *L) {
        luaL_checkany(L, 1);
        check_range(L, "sort", 1, luaL_len(L, 1));
        return go_on(L);
}

/* Puts the functions in place of those of a library, each with the one it replaces as its upvalue. */
static void replace(lua_State *L, const char *library, const luaL_Reg *functions) {
        lua_getglobal(L, library);
        for (; functions->name; functions++) {
                lua_getfield(L, -1, functions->name);
                lua_pushcclosure(L, functions->func, 1);
                lua_setfield(L, -2, functions->name);
        }
        lua_pop(L, 1);
}

void tr_bounds_open(lua_State *L) {
        static const luaL_Reg strings[] = {
                { "rep", bounded_rep },
                { NULL, NULL },
        };
        static const luaL_Reg tables[] = {
                { "concat", bounded_concat }, { "insert", bounded_insert }, { "move", bounded_move },
                { "remove", bounded_remove }, { "sort", bounded_sort },     { NULL, NULL },
        };

        replace(L, LUA_STRLIBNAME, strings);
        replace(L, LUA_TABLIBNAME, tables);
}
