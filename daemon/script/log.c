/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `log`: an actor's lines in the daemon's log.
 */

#include "daemon/script/log.h"

#include <lualib.h>

#include "daemon/script/kill.h"
#include "daemon/script/values.h"

void tr_vm_log(struct tr_vm *vm, enum tr_log_level level, const char *line) {
        char handle[TR_HANDLE_SHORT + 1];
        struct tr_log_context context;

        if (!tr_log_enabled(level))
                return;
        context = tr_target_log_context(&vm->actor->target, handle);
        tr_log_with(level, &context, "%s", line);
}

/* string.format has raised the error on top: mostly about what it was given, and that is the library's to say. */
static int refuse_format(lua_State *L, int status) {
        if (tr_vm_is_doomed(tr_vm_of(L)))
                return tr_vm_give_up(L);
        if (status == LUA_ERRRUN && lua_type(L, -1) == LUA_TSTRING)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "log: %s", lua_tostring(L, -1));
        return lua_error(L);
}

/* log(level, format, ...) */
static int library_log(lua_State *L) {
        enum tr_log_level level;
        const char *text;
        size_t len;
        int status;

        text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
        if (!text || !tr_log_level_parse(text, len, &level))
                tr_value_misuse(L, "log", 1, "a level (error, warning, info, debug)");
        if (lua_gettop(L) == 2) {
                /* one text is taken as it is: a % in it is nobody's format */
                luaL_tolstring(L, 2, NULL);
        } else {
                tr_vm_push(L, TR_PIN_FORMAT);
                lua_insert(L, 2);
                status = lua_pcall(L, lua_gettop(L) - 2, 1, 0);
                if (status != LUA_OK)
                        return refuse_format(L, status);
        }
        tr_vm_log(tr_vm_of(L), level, lua_tostring(L, -1));
        return 0;
}

const luaL_Reg tr_log_functions[] = {
        { "log", library_log },
        { NULL, NULL },
};

void tr_log_open(lua_State *L) {
        lua_getglobal(L, LUA_STRLIBNAME);
        lua_getfield(L, -1, "format");
        tr_vm_pin(L, TR_PIN_FORMAT);
        lua_pop(L, 1);
}
