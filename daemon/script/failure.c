/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Errors as Lua sees them: tables {code, message, ran, ...} whose tostring() is the message.
 *
 * The library raises them, and promises are rejected with them; in core the same thing is a struct tr_failure
 * (fault.c has the way there). Their metatable is hidden, and no field of one is trusted later: Lua code may write to
 * it.
 */

#include "daemon/script/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/script/codec.h"
#include "daemon/script/vm.h"

/* Bytes of a message that are written without allocating. */
#define MESSAGE_BUFFER 512

__attribute__((format(printf, 2, 0))) static void push_vformat(lua_State *L, const char *format, va_list arguments) {
        char buffer[MESSAGE_BUFFER];
        va_list again;
        char *large;
        int len;

        va_copy(again, arguments);
        len = vsnprintf(buffer, sizeof(buffer), format, arguments);
        if (len < (int)sizeof(buffer)) {
                lua_pushlstring(L, buffer, len < 0 ? 0 : (size_t)len);
        } else {
                /* Lua's memory: an error raised here takes it along */
                large = lua_newuserdatauv(L, (size_t)len + 1, 0);
                vsnprintf(large, (size_t)len + 1, format, again);
                lua_pushlstring(L, large, (size_t)len);
                lua_remove(L, -2);
        }
        va_end(again);
}

/* Makes the text on top of the stack an error table. */
static void wrap_error(lua_State *L, enum tr_code code, enum tr_ran ran) {
        lua_createtable(L, 0, 4);
        lua_insert(L, -2);
        lua_setfield(L, -2, "message");
        lua_pushstring(L, tr_code_text(code));
        lua_setfield(L, -2, "code");
        lua_pushstring(L, tr_ran_text(ran));
        lua_setfield(L, -2, "ran");
        if (code == TR_CODE_FAULT) {
                /* unless more is known, and set over it */
                lua_pushliteral(L, "error");
                lua_setfield(L, -2, "kind");
        }
        tr_vm_push(L, TR_PIN_ERROR);
        lua_setmetatable(L, -2);
}

void tr_script_push_error(lua_State *L, enum tr_code code, const char *format, ...) {
        va_list arguments;

        luaL_checkstack(L, 6, NULL);
        va_start(arguments, format);
        push_vformat(L, format, arguments);
        va_end(arguments);
        wrap_error(L, code, tr_code_ran(code));
}

void tr_script_raise_at(lua_State *L, enum tr_code code, const char *path, const char *format, ...) {
        va_list arguments;

        luaL_checkstack(L, 6, NULL);
        va_start(arguments, format);
        push_vformat(L, format, arguments);
        va_end(arguments);
        wrap_error(L, code, tr_code_ran(code));
        lua_pushstring(L, path);
        lua_setfield(L, -2, "path");
        lua_error(L);
        __builtin_unreachable();
}

void tr_script_raise(lua_State *L, enum tr_code code, const char *format, ...) {
        va_list arguments;

        luaL_checkstack(L, 6, NULL);
        va_start(arguments, format);
        push_vformat(L, format, arguments);
        va_end(arguments);
        wrap_error(L, code, tr_code_ran(code));
        lua_error(L);
        __builtin_unreachable();
}

bool tr_script_is_failure(lua_State *L, int index) {
        bool is;

        if (!lua_istable(L, index) || !lua_getmetatable(L, index))
                return false;
        tr_vm_push(L, TR_PIN_ERROR);
        is = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        return is;
}

void tr_script_set_failure(lua_State *L, int index) {
        index = lua_absindex(L, index);
        tr_vm_push(L, TR_PIN_ERROR);
        lua_setmetatable(L, index);
}

/* decode(span, is_own): its value. What another VM has raised may be an instance whose module is loaded for it. */
static int decode_extra(lua_State *L) {
        const struct tr_reader *span = lua_touserdata(L, 1);

        tr_codec_decode(L, span->at, (size_t)(span->end - span->at), 1, lua_toboolean(L, 2), NULL);
        return 1;
}

/* Adds the failure's own pairs to the table on top. One whose value cannot be had here (an instance of a class that
 * cannot be loaded) is left out: the rest of the failure is worth having. */
static void push_extras(lua_State *L, const struct tr_failure *failure) {
        struct tr_reader reader = tr_reader(failure->extra.data, failure->extra.len);
        struct tr_reader value;
        struct tr_token key;

        for (uint32_t i = 0; i < failure->extras; i++) {
                if (tr_read(&reader, &key) != 0)
                        return;
                value = reader;
                if (tr_read_skip(&reader) != 0)
                        return;
                value.end = reader.at;

                lua_pushlstring(L, (const char *)key.data, key.len);
                lua_pushcfunction(L, decode_extra);
                lua_pushlightuserdata(L, &value);
                /* only code in a VM raises values */
                lua_pushboolean(L, failure->code == TR_CODE_FAULT && key.len == 5 && memcmp(key.data, "value", 5) == 0);
                if (lua_pcall(L, 2, 1, 0) == LUA_OK)
                        lua_rawset(L, -3);
                else
                        lua_pop(L, 2);
        }
}

void tr_script_push_failure(lua_State *L, struct tr_failure *failure, enum tr_ran ran) {
        luaL_checkstack(L, 6, NULL);
        lua_pushstring(L, failure->message);
        wrap_error(L, failure->code, ran);
        push_extras(L, failure);
}

static int error_tostring(lua_State *L) {
        lua_pushliteral(L, "message");
        if (lua_istable(L, 1))
                lua_rawget(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING)
                lua_pushliteral(L, "(an error without a message)");
        return 1;
}

void tr_failure_open(lua_State *L) {
        lua_createtable(L, 0, 3);
        lua_pushcfunction(L, error_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushliteral(L, "error");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        tr_vm_pin(L, TR_PIN_ERROR);
}
