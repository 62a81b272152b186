/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What reaches outside of the VM.
 *
 * Files, commands and modules written in C are granted by the configuration; what is not is a fault that says how to
 * grant it. What would change the whole process is never granted.
 */

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "daemon/script/log.h"
#include "daemon/script/script.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/vm.h"

static int raise_denied(lua_State *L) {
        const struct tr_denial *denial = lua_touserdata(L, lua_upvalueindex(1));

        tr_script_raise(L, TR_CODE_DENIED, "%s%s%s %s", denial->library ?: "", denial->library ? "." : "",
                        denial->function, denial->why);
}

void tr_stdlib_push_denied(lua_State *L, const struct tr_denial *denial) {
        lua_pushlightuserdata(L, (void *)denial);
        lua_pushcclosure(L, raise_denied, 1);
}

/* Puts functions that raise in place of those of a library. */
static void deny(lua_State *L, const struct tr_denial *denials, size_t count) {
        for (const struct tr_denial *denial = denials; denial < denials + count; denial++) {
                if (denial->library)
                        lua_getglobal(L, denial->library);
                else
                        lua_pushglobaltable(L);
                tr_stdlib_push_denied(L, denial);
                lua_setfield(L, -2, denial->function);
                lua_pop(L, 1);
        }
}

static void deny_files(lua_State *L) {
        static const char why[] = "is not granted: it needs \"files\" in the configuration's \"allow\"";
        static const struct tr_denial denials[] = {
                { NULL, "dofile", why }, { NULL, "loadfile", why }, { "io", "input", why },   { "io", "lines", why },
                { "io", "open", why },   { "io", "output", why },   { "io", "tmpfile", why }, { "os", "remove", why },
                { "os", "rename", why }, { "os", "tmpname", why },
        };

        deny(L, denials, sizeof(denials) / sizeof(denials[0]));
}

static void deny_commands(lua_State *L) {
        static const char why[] = "is not granted: it needs \"commands\" in the configuration's \"allow\"";
        static const struct tr_denial denials[] = { { "io", "popen", why }, { "os", "execute", why } };

        deny(L, denials, sizeof(denials) / sizeof(denials[0]));
}

static void deny_process(lua_State *L) {
        static const struct tr_denial denials[] = {
                { "os", "exit",
                  "would end the whole daemon: use troupe.stop(troupe.me()) in an actor, and return from main in a "
                  "program" },
                { "os", "setlocale",
                  "would change the whole process: there is one locale, \"C\"; use a module that formats by itself" },
        };

        deny(L, denials, sizeof(denials) / sizeof(denials[0]));
}

/* io.write in the daemon */

/* Upvalues: io.write as it was, io.stdout. */
enum {
        WRITE_ORIGINAL = 1,
        WRITE_STDOUT,
        WRITE_UPVALUES = 2,
};

/* Bytes of a line that is logged although it is not complete. */
#define PARTIAL_MAX 4096

static bool writes_to_stdout(lua_State *L) {
        bool to_stdout;

        /* where the io library keeps its default output */
        lua_getfield(L, LUA_REGISTRYINDEX, "_IO_output");
        to_stdout = lua_rawequal(L, -1, lua_upvalueindex(WRITE_STDOUT));
        lua_pop(L, 1);
        return to_stdout;
}

/* Logs the complete lines of a text, and keeps the rest. */
static void log_lines(lua_State *L, const char *text, size_t len) {
        struct tr_vm *vm = tr_vm_of(L);
        const char *end;

        while ((end = memchr(text, '\n', len)) || len > PARTIAL_MAX) {
                if (!end)
                        end = text + len;
                lua_pushlstring(L, text, (size_t)(end - text));
                tr_vm_log(vm, TR_LOG_INFO, lua_tostring(L, -1));
                lua_pop(L, 1);
                end += end < text + len;
                len -= (size_t)(end - text);
                text = end;
        }
        lua_pushlstring(L, text, len);
        tr_vm_pin(L, TR_PIN_LINE);
        vm->line_open = len > 0;
}

void tr_outside_log_line(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        if (!vm->line_open)
                return;
        vm->line_open = false;
        tr_vm_push(L, TR_PIN_LINE);
        tr_vm_log(vm, TR_LOG_INFO, lua_tostring(L, -1));
        lua_pop(L, 1);
}

static int log_line(lua_State *L) {
        tr_outside_log_line(L);
        return 0;
}

void tr_outside_end_line(struct tr_vm *vm) {
        if (vm->line_open && tr_vm_protect(vm, log_line, NULL) != LUA_OK)
                lua_pop(vm->L, 1);
}

static int write_to_log(lua_State *L) {
        int count = lua_gettop(L);
        luaL_Buffer buffer;
        const char *text;
        size_t len;

        if (!writes_to_stdout(L))
                return lua_tocfunction(L, lua_upvalueindex(WRITE_ORIGINAL))(L);
        luaL_buffinit(L, &buffer);
        if (tr_vm_of(L)->line_open) {
                tr_vm_push(L, TR_PIN_LINE);
                luaL_addvalue(&buffer);
        }
        for (int i = 1; i <= count; i++) {
                text = luaL_checklstring(L, i, &len);
                luaL_addlstring(&buffer, text, len);
        }
        luaL_pushresult(&buffer);
        text = lua_tolstring(L, -1, &len);
        log_lines(L, text, len);
        lua_pushvalue(L, lua_upvalueindex(WRITE_STDOUT));
        return 1;
}

static void redirect_write(lua_State *L) {
        lua_getglobal(L, LUA_IOLIBNAME);
        lua_getfield(L, -1, "write");
        lua_getfield(L, -2, "stdout");
        lua_pushcclosure(L, write_to_log, WRITE_UPVALUES);
        lua_setfield(L, -2, "write");
        lua_pop(L, 1);
}

void tr_outside_open(lua_State *L) {
        const struct tr_vm *vm = tr_vm_of(L);

        deny_process(L);
        if (tr_vm_allow(vm) & TR_ALLOW_COMMANDS)
                tr_command_open(L);
        else
                deny_commands(L);
        if (!vm->script->program_file)
                redirect_write(L);
        if (!(tr_vm_allow(vm) & TR_ALLOW_FILES))
                deny_files(L);

        /* a `__gc` that Lua code put there would run with hooks off */
        luaL_getmetatable(L, LUA_FILEHANDLE);
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_pop(L, 1);
}
