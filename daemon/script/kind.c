/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value is called in a sentence: "a function", "a promise", "a table with a metatable".
 *
 * Looks are raw and run no code of the program. Userdata of Lua's own and of ours say what they are by `__name`.
 */
#include <string.h>

#include "daemon/script/declare.h"
#include "daemon/script/kind.h"
#include "daemon/script/promise.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

static const char *kind_of_table(lua_State *L, int index) {
        bool is_weak;

        if (tr_declared_is(L, index))
                return "an actor declaration";
        if (tr_push_class_name(L, index)) {
                lua_pop(L, 1);
                return "a class";
        }
        if (tr_mark_of(L, index) != TR_MARK_NONE || tr_script_is_failure(L, index) || !lua_getmetatable(L, index))
                return "a table";
        lua_pushliteral(L, "__mode");
        is_weak = lua_rawget(L, -2) != LUA_TNIL;
        lua_pop(L, 2);
        return is_weak ? "a weak table" : "a table with a metatable";
}

static const char *kind_of_userdata(lua_State *L, int index) {
        static const struct {
                const char *name, *kind;
        } named[] = {
                { "FILE*", "a file" },        { "handle", "a handle" },       { "message", "a message" },
                { "bytes", "a byte buffer" }, { "timestamp", "a timestamp" }, { "transfer", "a transfer" },
        };
        const char *name, *kind = "a userdata";

        if (!lua_getmetatable(L, index))
                return kind;
        lua_pushliteral(L, "__name");
        lua_rawget(L, -2);
        name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
                if (strcmp(name, named[i].name) == 0)
                        kind = named[i].kind;
        lua_pop(L, 2);
        return kind;
}

const char *tr_value_kind(lua_State *L, int index) {
        if (tr_promise_is(L, index))
                return "a promise";
        switch (lua_type(L, index)) {
        case LUA_TNIL:
        case LUA_TNONE:
                return "nil";
        case LUA_TBOOLEAN:
                return "a boolean";
        case LUA_TNUMBER:
                return "a number";
        case LUA_TSTRING:
                return "a string";
        case LUA_TFUNCTION:
                return "a function";
        case LUA_TTHREAD:
                return "a coroutine";
        case LUA_TTABLE:
                return kind_of_table(L, index);
        case LUA_TLIGHTUSERDATA:
                return tr_is_null(L, index) ? "null" : "a userdata";
        default:
                return kind_of_userdata(L, index);
        }
}

/* How much of a string is repeated in a sentence about it. */
#define QUOTED_MAX 40

/* Pushes what stands for the value itself: a scalar as it would be written, anything else by its kind. */
static const char *push_description(lua_State *L, int index) {
        const char *text;
        size_t len;

        switch (lua_type(L, index)) {
        case LUA_TBOOLEAN:
                return lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
        case LUA_TNUMBER:
                lua_pushvalue(L, index);
                return lua_tostring(L, -1);
        case LUA_TSTRING:
                text = lua_tolstring(L, index, &len);
                if (len <= QUOTED_MAX)
                        return lua_pushfstring(L, "\"%s\"", text);
                lua_pushlstring(L, text, QUOTED_MAX);
                return lua_pushfstring(L, "\"%s...\"", lua_tostring(L, -1));
        default:
                return lua_pushstring(L, tr_value_kind(L, index));
        }
}

void tr_value_misuse(lua_State *L, const char *function, int index, const char *wanted) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: %s is not %s", function,
                        push_description(L, lua_absindex(L, index)), wanted);
}
