/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `require`.
 *
 * A module is looked for in the program's own directory and in the daemon's `path`, nowhere else: no environment
 * variable and no working directory has a say. Its source is read whenever a VM loads it, so that what is started
 * again runs what is on disk now.
 *
 * The top level runs under a protected call of its own: what it declared is forgotten where it fails, and the error
 * names the module and keeps the traceback. It cannot yield, so the list of what is loading is a stack.
 */

#include "daemon/script/module.h"

#include <errno.h>
#include <lualib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/script/declare.h"
#include "daemon/script/kill.h"
#include "daemon/script/native.h"
#include "daemon/script/source.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

const char *tr_module_loading(lua_State *L) {
        const struct tr_loading *loading = tr_vm_of(L)->loading;

        return loading ? loading->module : NULL;
}

void tr_module_refuse_at_top_level(lua_State *L, const char *function) {
        const struct tr_loading *loading = tr_vm_of(L)->loading;

        if (loading)
                tr_script_raise(L, TR_CODE_BAD_REQUEST,
                                "%s: not at the top level of a file (%s): every VM that loads it would do it again, "
                                "without end",
                                function, loading->file);
}

/* finding */

/* Adds a path to the list of what was tried, a text at an index. */
static void add_tried(lua_State *L, int tried, const char *path, int error) {
        const char *before = lua_tostring(L, tried);

        lua_pushfstring(L, "%s%s%s", before, *before ? ", " : "", path);
        if (error != ENOENT && error != ENOTDIR)
                lua_pushfstring(L, " (%s)", strerrordesc_np(error));
        else
                lua_pushliteral(L, "");
        lua_concat(L, 2);
        lua_replace(L, tried);
}

/* Opens the candidate whose path is on top of the stack. False where it is not there, and then the path is popped and
 * added to what was tried. Raises where it may not be loaded. */
static bool open_candidate(lua_State *L, const char *name, size_t root_len, int tried, int *ret_fd) {
        const char *path = lua_tostring(L, -1);
        size_t unsafe_len = 0;
        int error = 0;

        switch (tr_source_open(path, root_len, ret_fd, &error, &unsafe_len)) {
        case TR_SOURCE_OPEN:
                return true;
        case TR_SOURCE_MISSING:
                add_tried(L, tried, path, error);
                lua_pop(L, 1);
                return false;
        default:
                tr_script_raise(
                        L, TR_CODE_LOAD,
                        "the module `%s` is not loaded: others than root and the daemon's own user may write %.*s",
                        name, (int)unsafe_len, path);
        }
}

/* Raises what the compiler said, the text on top, with who wanted the module. */
_Noreturn static void raise_not_compiled(lua_State *L, const char *name) {
        tr_script_push_error(L, TR_CODE_LOAD, "the module `%s` failed to load: %s", name, lua_tostring(L, -1));
        luaL_traceback(L, L, NULL, 0);
        lua_setfield(L, -2, "traceback");
        lua_error(L);
        __builtin_unreachable();
}

/* Looks at the candidate whose path is on top of the stack: replaces that by its compiled chunk and its path, or pops
 * it. Raises where it is there and cannot be loaded. */
static bool try_candidate(lua_State *L, const char *name, size_t root_len, int tried) {
        const char *path = lua_tostring(L, -1);
        struct tr_vm *vm = tr_vm_of(L);
        char hash[TR_SOURCE_HASH_SIZE];
        int fd, error = 0, status;

        lua_pushfstring(L, "@%s", path);
        lua_insert(L, -2);
        if (!open_candidate(L, name, root_len, tried, &fd)) {
                lua_pop(L, 1);
                return false;
        }
        status = tr_source_load(L, fd, lua_tostring(L, -2), &error, hash);
        close(fd);
        if (error)
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` failed to load: %s: %s", name, path,
                                strerrordesc_np(error));
        if (status != LUA_OK)
                raise_not_compiled(L, name);
        if (!vm->loading)
                memcpy(vm->source_hash, hash, sizeof(hash));
        lua_replace(L, -3);
        return true;
}

/* The same for a module written in C. */
static bool try_native(lua_State *L, const char *name, size_t root_len, int tried) {
        int fd;

        if (!open_candidate(L, name, root_len, tried, &fd))
                return false;
        close(fd);
        tr_native_push(L, name, lua_tostring(L, -1));
        lua_insert(L, -2);
        return true;
}

/* Pushes the path of a candidate. */
static void push_candidate(lua_State *L, const char *name, const char *directory, const char *ending) {
        luaL_gsub(L, name, ".", "/");
        lua_pushfstring(L, "%s/%s%s", directory, lua_tostring(L, -1), ending);
        lua_remove(L, -2);
}

static bool try_directory(lua_State *L, const char *name, const char *directory, int tried) {
        static const char *const endings[] = { ".lua", "/init.lua" };

        for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
                push_candidate(L, name, directory, endings[i]);
                if (try_candidate(L, name, strlen(directory), tried))
                        return true;
        }
        if (!tr_native_is_granted(L))
                return false;
        push_candidate(L, name, directory, ".so");
        return try_native(L, name, strlen(directory), tried);
}

static bool try_all(lua_State *L, const char *name, int tried) {
        const struct tr_script *script = tr_vm_of(L)->script;

        /* the program itself, whatever its file is called */
        if (script->program_module && strcmp(name, script->program_module) == 0) {
                lua_pushstring(L, script->program_file);
                if (try_candidate(L, name, strlen(script->program_dir), tried))
                        return true;
        }
        if (script->program_dir && try_directory(L, name, script->program_dir, tried))
                return true;
        for (char *const *directory = script->path; directory && *directory; directory++)
                if (try_directory(L, name, *directory, tried))
                        return true;
        return false;
}

/* Raises where a directory has the module written in C. */
static void refuse_native(lua_State *L, const char *name, const char *directory) {
        push_candidate(L, name, directory, ".so");
        if (access(lua_tostring(L, -1), F_OK) == 0)
                tr_script_raise(L, TR_CODE_DENIED,
                                "the module `%s` is written in C (%s), which is not granted: it needs \"native\" in the "
                                "configuration's \"allow\"",
                                name, lua_tostring(L, -1));
        lua_pop(L, 1);
}

/* Of a module that is nowhere: whether it only is not granted. */
static void refuse_all_native(lua_State *L, const char *name) {
        const struct tr_script *script = tr_vm_of(L)->script;

        if (tr_native_is_granted(L))
                return;
        if (script->program_dir)
                refuse_native(L, name, script->program_dir);
        for (char *const *directory = script->path; directory && *directory; directory++)
                refuse_native(L, name, *directory);
}

/* Pushes the compiled chunk of a module and its file; raises where there is none. */
static void push_chunk(lua_State *L, const char *name) {
        int tried;

        lua_pushliteral(L, "");
        tried = lua_gettop(L);
        if (!try_all(L, name, tried)) {
                refuse_all_native(L, name);
                tr_script_raise(L, TR_CODE_NOT_FOUND, "there is no module `%s`; tried: %s", name,
                                lua_tostring(L, tried));
        }
        lua_remove(L, tried);
}

/* running */

/* The error and where it was raised, as a pair. */
static int on_error(lua_State *L) {
        if (tr_vm_is_doomed(tr_vm_of(L)))
                return 1;
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, 1);
        lua_rawseti(L, -2, 1);
        luaL_traceback(L, L, NULL, 1);
        lua_rawseti(L, -2, 2);
        return 1;
}

/* run(chunk, name, file): the top level, and what it declared is looked at. Answers the module's value. */
static int run(lua_State *L) {
        lua_pushvalue(L, 2);
        lua_insert(L, 1); /* name, chunk, name, file */
        lua_call(L, 2, 1);
        tr_declare_check(L, lua_tostring(L, 1));
        tr_vm_push(L, TR_PIN_LOADED);
        lua_pushvalue(L, 1);
        if (!lua_isnil(L, 2)) {
                lua_pushvalue(L, 2);
                lua_rawset(L, -3);
        } else if (lua_rawget(L, -2) == LUA_TNIL) {
                lua_pushvalue(L, 1);
                lua_pushboolean(L, true);
                lua_rawset(L, 3);
        }
        lua_settop(L, 3);
        lua_pushvalue(L, 1);
        lua_rawget(L, 3);
        return 1;
}

/* Raises the error pair on top as the module's. */
_Noreturn static void raise_failed(lua_State *L, const char *name) {
        int pair = lua_gettop(L);

        if (!lua_istable(L, pair))
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` failed to load: out of memory", name);
        lua_rawgeti(L, pair, 1);
        if (lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER || tr_script_is_failure(L, -1))
                luaL_tolstring(L, -1, NULL);
        else
                lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, -1));
        tr_script_push_error(L, TR_CODE_LOAD, "the module `%s` failed to load: %s", name, lua_tostring(L, -1));
        lua_rawgeti(L, pair, 2);
        lua_setfield(L, -2, "traceback");
        lua_error(L);
        __builtin_unreachable();
}

/* With the chunk and its file on top: replaces them by the module's value. */
static void run_chunk(lua_State *L, const char *name) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_loading loading = { .module = name, .file = lua_tostring(L, -1), .outer = vm->loading };
        int chunk = lua_gettop(L) - 1, status;

        lua_pushcfunction(L, on_error);
        lua_insert(L, chunk);
        lua_pushcfunction(L, run);
        lua_insert(L, chunk + 1);
        lua_pushstring(L, name);
        lua_insert(L, -2);
        lua_pushvalue(L, -1);
        lua_insert(L, chunk); /* keeps the file's name while it is loading */

        vm->loading = &loading;
        status = lua_pcall(L, 3, 1, chunk + 1);
        vm->loading = loading.outer;
        if (status != LUA_OK) {
                if (tr_vm_is_doomed(vm))
                        tr_vm_give_up(L);
                tr_declare_forget(L, name);
                tr_forget_classes(L, name);
                raise_failed(L, name);
        }
        lua_replace(L, chunk);
        lua_settop(L, chunk);
}

static void refuse_loop(lua_State *L, const char *name) {
        for (const struct tr_loading *loading = tr_vm_of(L)->loading; loading; loading = loading->outer)
                if (strcmp(loading->module, name) == 0)
                        tr_script_raise(L, TR_CODE_LOAD, "the module `%s` requires itself (%s)", name, loading->file);
}

/* A module that was taken out of `package.loaded` runs again, unless it has declared something: that would be there twice, and
 * where the second time fails both would be forgotten, the actor's own declaration among them. */
static void refuse_again(lua_State *L, const char *name) {
        if (tr_declare_knows(L, name) || tr_knows_classes(L, name))
                tr_script_raise(L, TR_CODE_LOAD,
                                "the module `%s` is loaded already, and what it declares is declared once", name);
}

void tr_module_require(lua_State *L, const char *name, size_t len) {
        struct tr_vm *vm = tr_vm_of(L);
        int name_index;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        lua_pushlstring(L, name, len);
        name = lua_tostring(L, -1);
        name_index = lua_gettop(L);
        tr_vm_push(L, TR_PIN_LOADED);
        lua_pushvalue(L, name_index);
        lua_rawget(L, -2);
        if (!lua_toboolean(L, -1)) {
                lua_pop(L, 2);
                if (tr_vm_is_doomed(vm))
                        tr_vm_give_up(L);
                if (!tr_name_is_valid(name, len))
                        tr_script_raise(L, TR_CODE_NOT_FOUND, "there is no module `%s`: that is no name of a module",
                                        name);
                refuse_loop(L, name);
                refuse_again(L, name);
                push_chunk(L, name);
                run_chunk(L, name);
        }
        lua_replace(L, name_index);
        lua_settop(L, name_index);
}

/* require(name) */
static int require(lua_State *L) {
        const char *name;
        size_t len;

        name = luaL_checklstring(L, 1, &len);
        lua_settop(L, 1);
        tr_module_require(L, name, len);
        return 1;
}

/* Pushes the search path as `package.path` has it: for people, nothing reads it. */
static void push_path(lua_State *L) {
        const struct tr_script *script = tr_vm_of(L)->script;
        luaL_Buffer path;

        luaL_buffinit(L, &path);
        if (script->program_dir) {
                lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;", script->program_dir, script->program_dir);
                luaL_addvalue(&path);
        }
        for (char *const *directory = script->path; directory && *directory; directory++) {
                lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;", *directory, *directory);
                luaL_addvalue(&path);
        }
        luaL_pushresult(&path);
}

void tr_module_open(lua_State *L) {
        lua_createtable(L, 0, 4);
        tr_vm_push(L, TR_PIN_LOADED);
        lua_setfield(L, -2, "loaded");
        push_path(L);
        lua_setfield(L, -2, "path");
        lua_pushliteral(L, "/\n;\n?\n!\n-\n");
        lua_setfield(L, -2, "config");
        tr_native_open(L);

        /* last, in place of what Lua's own package library may have put there */
        tr_vm_push(L, TR_PIN_LOADED);
        lua_pushvalue(L, -2);
        lua_setfield(L, -2, LUA_LOADLIBNAME);
        tr_vm_push(L, TR_PIN_LIBRARY);
        lua_setfield(L, -2, "troupe");
        lua_pop(L, 1);
        lua_setglobal(L, LUA_LOADLIBNAME);
        lua_pushcfunction(L, require);
        lua_setglobal(L, "require");
}
