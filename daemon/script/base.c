/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The basic functions, where ours differ.
 *
 * - Only text is compiled, and nothing is dumped: Lua does not check binary chunks, and a crafted one takes the
 *   process over.
 * - No metatable may have a `__gc`: finalizers run with hooks off and cannot be stopped. It is looked for raw,
 *   whatever its value, wherever Lua code can set a metatable; those of the library's own types are hidden.
 * - xpcall's handler is reached through a trampoline that gives up when the VM is doomed. It would be called for each
 *   error that the kill's hook raises in it, without end.
 * - print goes to the daemon's log, and to standard output in a program, a line at a time.
 */

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/script/kill.h"
#include "daemon/script/log.h"
#include "daemon/script/script.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* print */

static void add_arguments(lua_State *L, luaL_Buffer *line, int count) {
        for (int i = 1; i <= count; i++) {
                if (i > 1)
                        luaL_addchar(line, '\t');
                luaL_tolstring(L, i, NULL);
                luaL_addvalue(line);
        }
}

static int print(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        int count = lua_gettop(L);
        luaL_Buffer line;
        const char *text;
        size_t len;

        luaL_buffinit(L, &line);
        add_arguments(L, &line, count);
        if (vm->script->program_file)
                luaL_addchar(&line, '\n');
        luaL_pushresult(&line);
        text = lua_tolstring(L, -1, &len);
        if (vm->script->program_file) {
                /* one write, so that the lines of actors that print at once stay whole; nobody is told of an
                 * output that is gone */
                fwrite(text, 1, len, stdout);
                fflush(stdout);
        } else {
                tr_outside_log_line(L);
                tr_vm_log(vm, TR_LOG_INFO, text);
        }
        return 0;
}

/* load and its kind */

/* load(chunk, name, mode, env): the mode is always text. The upvalue is the function that was replaced, which has
 * none. */
static int load(lua_State *L) {
        bool has_environment = lua_gettop(L) >= 4;

        if (!lua_isnoneornil(L, 3) && !strchr(luaL_checkstring(L, 3), 't')) {
                lua_pushnil(L);
                lua_pushliteral(L, "only text chunks are loaded");
                return 2;
        }
        lua_settop(L, has_environment ? 4 : 3);
        lua_pushliteral(L, "t");
        lua_replace(L, 3);
        return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* loadfile(name, mode, env) */
static int load_file(lua_State *L) {
        const char *name = luaL_checkstring(L, 1);
        bool has_environment = lua_gettop(L) >= 3;

        lua_settop(L, 3);
        if (luaL_loadfilex(L, name, "t") != LUA_OK) {
                lua_pushnil(L);
                lua_insert(L, -2);
                return 2;
        }
        if (has_environment) {
                lua_pushvalue(L, 3);
                if (!lua_setupvalue(L, -2, 1))
                        lua_pop(L, 1);
        }
        return 1;
}

static int finish_do_file(lua_State *L, int status, lua_KContext context) {
        return lua_gettop(L) - 1;
}

static int do_file(lua_State *L) {
        const char *name = luaL_checkstring(L, 1);

        lua_settop(L, 1);
        if (luaL_loadfilex(L, name, "t") != LUA_OK)
                return lua_error(L);
        lua_callk(L, 0, LUA_MULTRET, 0, finish_do_file);
        return finish_do_file(L, LUA_OK, 0);
}

/* metatables */

static int set_metatable(lua_State *L) {
        luaL_checktype(L, 1, LUA_TTABLE);
        luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
        lua_settop(L, 2);
        if (tr_mark_of(L, 1) == TR_MARK_NONE && luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
                return luaL_error(L, "cannot change a protected metatable");
        lua_settop(L, 2);
        if (lua_istable(L, 2)) {
                lua_pushliteral(L, "__gc");
                if (lua_rawget(L, 2) != LUA_TNIL)
                        return luaL_error(L, "a metatable with `__gc` is refused: finalizers cannot be interrupted "
                                             "(`__close` works)");
                lua_pop(L, 1);
        }
        lua_setmetatable(L, 1);
        return 1;
}

static int get_metatable(lua_State *L) {
        luaL_checkany(L, 1);
        if (tr_mark_of(L, 1) != TR_MARK_NONE || !lua_getmetatable(L, 1)) {
                lua_pushnil(L);
                return 1;
        }
        luaL_getmetafield(L, 1, "__metatable");
        return 1;
}

/* xpcall */

static int call_message_handler(lua_State *L) {
        if (tr_vm_is_doomed(tr_vm_of(L)))
                return 1;
        lua_settop(L, 1);
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, 1, 1);
        return 1;
}

static int finish_xpcall(lua_State *L, int status, lua_KContext below) {
        if (status != LUA_OK && status != LUA_YIELD) {
                lua_pushboolean(L, false);
                lua_pushvalue(L, -2);
                return 2;
        }
        return lua_gettop(L) - (int)below;
}

/* xpcall(function, handler, ...) */
static int xpcall(lua_State *L) {
        int count = lua_gettop(L) - 2;

        luaL_checktype(L, 2, LUA_TFUNCTION);
        lua_pushvalue(L, 2);
        lua_pushcclosure(L, call_message_handler, 1);
        lua_replace(L, 2);
        lua_pushboolean(L, true);
        lua_pushvalue(L, 1);
        lua_rotate(L, 3, 2); /* function, handler, true, function, ... */
        return finish_xpcall(L, lua_pcallk(L, count, LUA_MULTRET, 2, 2, finish_xpcall), 2);
}

/* What is kept of the debug library. The first VM of the process looks them up; to make the others as well, only for
 * the collector, would cost each of them 2 KiB. */
static struct {
        const char *name;
        _Atomic(lua_CFunction) function; /* of Lua, without upvalues: the same in all VMs */
} debug_functions[] = { { .name = "traceback" }, { .name = "getinfo" } };

#define DEBUG_FUNCTIONS (sizeof(debug_functions) / sizeof(debug_functions[0]))

static void look_up_debug_functions(lua_State *L) {
        lua_pushcfunction(L, luaopen_debug);
        lua_call(L, 0, 1);
        for (size_t i = 0; i < DEBUG_FUNCTIONS; i++) {
                lua_getfield(L, -1, debug_functions[i].name);
                atomic_store(&debug_functions[i].function, lua_tocfunction(L, -1));
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
}

static int open_debug(lua_State *L) {
        if (!atomic_load(&debug_functions[DEBUG_FUNCTIONS - 1].function))
                look_up_debug_functions(L);
        lua_createtable(L, 0, DEBUG_FUNCTIONS);
        for (size_t i = 0; i < DEBUG_FUNCTIONS; i++) {
                lua_pushcfunction(L, atomic_load(&debug_functions[i].function));
                lua_setfield(L, -2, debug_functions[i].name);
        }
        return 1;
}

void tr_base_open(lua_State *L) {
        static const luaL_Reg functions[] = {
                { "dofile", do_file }, { "getmetatable", get_metatable }, { "loadfile", load_file },
                { "print", print },    { "setmetatable", set_metatable }, { "xpcall", xpcall },
                { NULL, NULL },
        };

        lua_pushglobaltable(L);
        luaL_setfuncs(L, functions, 0);
        lua_getfield(L, -1, "load");
        lua_pushcclosure(L, load, 1);
        lua_setfield(L, -2, "load");
        lua_pop(L, 1);

        lua_getglobal(L, LUA_STRLIBNAME);
        lua_pushnil(L);
        lua_setfield(L, -2, "dump");
        lua_pop(L, 1);
        luaL_requiref(L, LUA_DBLIBNAME, open_debug, true);
        lua_pop(L, 1);
}
