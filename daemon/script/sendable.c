/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Error objects made fit to be sent.
 *
 * Whoever asks wants to see what was raised, also where part of it cannot cross: a copy is made in which every
 * function, coroutine, foreign userdata, cycle and too deep table is a text that says what was there. Nothing of the
 * object's own runs: all access is raw.
 */

#include "daemon/script/sendable.h"

#include <lauxlib.h>

#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* Levels of an error object that are kept, and values in all: it explains a failure, it is not a document. */
#define LEVELS_MAX 16
#define VALUES_MAX 1000

struct replacing {
        int notes; /* index of the array of paths that were replaced */
        int open;  /* index of the set of tables around the present one */
        int notes_count;
        int values;
};

static bool is_sendable(lua_State *L, int index) {
        switch (lua_type(L, index)) {
        case LUA_TNIL:
        case LUA_TBOOLEAN:
        case LUA_TNUMBER:
        case LUA_TSTRING:
                return true;
        case LUA_TLIGHTUSERDATA:
                return tr_is_null(L, index);
        case LUA_TUSERDATA:
                return tr_to_handle(L, index, NULL) || tr_to_message(L, index, NULL, NULL, NULL) ||
                       tr_to_bytes(L, index) || tr_to_time(L, index);
        default:
                return false;
        }
}

static bool is_sendable_key(lua_State *L, int index) {
        lua_Number number;

        switch (lua_type(L, index)) {
        case LUA_TBOOLEAN:
        case LUA_TSTRING:
                return true;
        case LUA_TNUMBER:
                number = lua_tonumber(L, index);
                return number == number;
        default:
                return false;
        }
}

static bool is_open(lua_State *L, const struct replacing *replacing) {
        bool open;

        lua_pushvalue(L, -1);
        lua_rawget(L, replacing->open);
        open = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return open;
}

static void set_open(lua_State *L, const struct replacing *replacing, int index, bool open) {
        lua_pushvalue(L, index);
        if (open)
                lua_pushboolean(L, true);
        else
                lua_pushnil(L);
        lua_rawset(L, replacing->open);
}

/* Pushes how the field under a key is called. */
static void push_path(lua_State *L, int path, int key) {
        key = lua_absindex(L, key);
        if (lua_type(L, key) == LUA_TNUMBER || lua_type(L, key) == LUA_TBOOLEAN) {
                luaL_tolstring(L, key, NULL);
                lua_pushfstring(L, "%s[%s]", lua_tostring(L, path), lua_tostring(L, -1));
                lua_remove(L, -2);
        } else if (lua_type(L, key) != LUA_TSTRING) {
                lua_pushfstring(L, "%s[a %s]", lua_tostring(L, path), luaL_typename(L, key));
        } else if (lua_rawlen(L, path) > 0) {
                lua_pushfstring(L, "%s.%s", lua_tostring(L, path), lua_tostring(L, key));
        } else {
                lua_pushvalue(L, key);
        }
}

/* The value on top is replaced by the text that is on top of it. */
static void replace_with_text(lua_State *L, struct replacing *replacing, int path) {
        lua_replace(L, -2);
        if (lua_rawlen(L, path) > 0)
                lua_pushvalue(L, path);
        else
                lua_pushliteral(L, "value");
        lua_rawseti(L, replacing->notes, ++replacing->notes_count);
}

/* Replaces the value on top; `path` is the index of what it is called. */
static void replace(lua_State *L, struct replacing *replacing, int path, int level) {
        int source, copy;

        if (is_sendable(L, -1))
                return;
        luaL_checkstack(L, 8, NULL);
        if (!lua_istable(L, -1) || level > LEVELS_MAX || replacing->values > VALUES_MAX || is_open(L, replacing)) {
                lua_pushfstring(L, lua_istable(L, -1) ? "(a %s that is not sent)" : "(a %s)", luaL_typename(L, -1));
                replace_with_text(L, replacing, path);
                return;
        }

        source = lua_gettop(L);
        set_open(L, replacing, source, true);
        lua_newtable(L);
        copy = lua_gettop(L);
        lua_pushnil(L);
        while (lua_next(L, source)) {
                replacing->values++;
                push_path(L, path, -2);
                lua_insert(L, -2);
                if (is_sendable_key(L, -3)) {
                        replace(L, replacing, lua_gettop(L) - 1, level + 1);
                        lua_pushvalue(L, -3);
                        lua_insert(L, -2);
                        lua_rawset(L, copy);
                } else {
                        lua_pushliteral(L, "");
                        replace_with_text(L, replacing, lua_gettop(L) - 2);
                        lua_pop(L, 1);
                }
                lua_pop(L, 1);
        }
        set_open(L, replacing, source, false);
        lua_replace(L, source);
}

/* Pushes the note from the array of paths; nil where there is none: only metatables were left out. */
static void push_note(lua_State *L, const struct replacing *replacing) {
        luaL_Buffer note;

        if (replacing->notes_count == 0) {
                lua_pushnil(L);
                return;
        }
        luaL_buffinit(L, &note);
        luaL_addstring(&note, "not sent as they were: ");
        for (int i = 1; i <= replacing->notes_count; i++) {
                if (i > 1)
                        luaL_addstring(&note, ", ");
                lua_rawgeti(L, replacing->notes, i);
                luaL_addvalue(&note);
        }
        luaL_pushresult(&note);
}

void tr_sendable_replace(lua_State *L) {
        struct replacing replacing = { 0 };
        int value = lua_gettop(L);

        luaL_checkstack(L, 8, NULL);
        lua_newtable(L);
        replacing.notes = lua_gettop(L);
        lua_newtable(L);
        replacing.open = lua_gettop(L);
        lua_pushliteral(L, "");
        lua_pushvalue(L, value);
        replace(L, &replacing, lua_gettop(L) - 1, 1);
        lua_replace(L, value);
        push_note(L, &replacing);
        lua_replace(L, value + 1);
        lua_settop(L, value + 1);
}
