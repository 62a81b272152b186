/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `supervise` and the supervisor are written in Lua (lua/supervise.lua, lua/supervisor.lua); this is what they stand on.
 *
 * The supervisor is an actor of a module that is in no file. It differs from others in two things. What it starts is in
 * a session inside of its own, so that nobody but it stops what it supervises, and what it leaves behind when it is
 * killed is stopped. And the published names of its children are its own, so that they are nobody else's between an end
 * and the start after it.
 */

#include "daemon/script/supervise.h"

#include <lauxlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/registry.h"
#include "daemon/script/codec.h"
#include "daemon/script/combine.h"
#include "daemon/script/library.h"
#include "daemon/script/lua_parts.h"
#include "daemon/script/module.h"
#include "daemon/script/promise.h"
#include "daemon/script/spawn.h"
#include "daemon/script/spawn_options.h"
#include "daemon/script/timers.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

#define MODULE "troupe.supervisor"

/* what `supervise` stands on */

/* misuse(where, value, wanted) */
static int misuse(lua_State *L) {
        tr_value_misuse(L, lua_tostring(L, 1), 2, lua_tostring(L, 3));
}

/* refuse(format, ...) */
static int refuse(lua_State *L) {
        tr_vm_push(L, TR_PIN_FORMAT);
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, 1);
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s", lua_tostring(L, -1));
}

/* check_options(where, options) */
static int check_options(lua_State *L) {
        struct tr_spawn_options options = { 0 };

        tr_spawn_options_read(L, 2, lua_tostring(L, 1), &options);
        return 0;
}

/* All arguments, encoded as they would be sent. */
static int encode_arguments(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, 1, lua_gettop(L), TR_FORM_INTERNAL, NULL, &vm->scratch);
        tr_vm_trim_scratch(vm);
        return 0;
}

/* check_arguments(where, ...) */
static int check_arguments(lua_State *L) {
        lua_pushcfunction(L, encode_arguments);
        lua_insert(L, 2);
        if (lua_pcall(L, lua_gettop(L) - 2, 0, 0) == LUA_OK)
                return 0;
        if (tr_script_is_failure(L, 2)) {
                lua_getfield(L, 2, "message");
                lua_pushfstring(L, "%s: %s", lua_tostring(L, 1), lua_tostring(L, -1));
                lua_setfield(L, 2, "message");
                lua_settop(L, 2);
        }
        return lua_error(L);
}

/* check_ms(where, value) */
static int check_ms(lua_State *L) {
        lua_pushinteger(L, (lua_Integer)(tr_timers_check_ns(L, 2, lua_tostring(L, 1)) / TR_NS_PER_MS));
        return 1;
}

static int check_level(lua_State *L) {
        tr_module_refuse_at_top_level(L, "supervise");
        return 0;
}

/* start(names, actor, ...) */
static int start(lua_State *L) {
        size_t count = lua_rawlen(L, 1);
        struct tr_spawn_options options = { 0 };
        const char **names;

        names = lua_newuserdatauv(L, (count + 1) * sizeof(*names), 0);
        for (size_t i = 0; i < count; i++) {
                lua_rawgeti(L, 1, (lua_Integer)i + 1);
                names[i] = lua_tostring(L, -1); /* held by the table, which stays where it is */
                lua_pop(L, 1);
        }
        names[count] = NULL;
        lua_insert(L, 2);
        options.actor.keep = names;
        return tr_spawn(L, 3, "supervise", &options);
}

/* A chunk's functions, in the order in which it takes them. Answers how many. */
static int push_all(lua_State *L, const lua_CFunction *functions, size_t count) {
        luaL_checkstack(L, LUA_MINSTACK, NULL);
        for (size_t i = 0; i < count; i++)
                lua_pushcfunction(L, functions[i]);
        return (int)count;
}

/* Pushes the table of `supervise`, and `check`. */
static void load(lua_State *L) {
        static const lua_CFunction functions[] = { tr_spawn_name_of, misuse,   refuse,      check_options,
                                                   check_arguments,  check_ms, check_level, start };

        tr_library_push_part(L, &tr_lua_supervise, "=troupe");
        lua_call(L, push_all(L, functions, sizeof(functions) / sizeof(*functions)), 2);
}

void tr_supervise_load(lua_State *L) {
        load(L);
        lua_pop(L, 1);
}

/* what the supervisor stands on */

/* rejected(code, message) */
static int rejected(lua_State *L) {
        enum tr_code code = TR_CODE_FAULT;
        const char *text;
        size_t len;

        text = luaL_checklstring(L, 1, &len);
        tr_code_parse(text, len, &code);
        tr_promise_new(L, false, 0);
        tr_script_push_error(L, code, "%s", luaL_checkstring(L, 2));
        tr_promise_settle(L, -2, true);
        return 1;
}

static struct tr_target *own_target(lua_State *L) {
        return &tr_vm_of(L)->actor->target;
}

/* spawn(A, ...): the promise of its start, and the handle */
static int spawn(lua_State *L) {
        struct tr_spawn_options options = {
                .actor.keeper = &own_target(L)->keeper,
                .tells_start = true,
                .supervised = true,
        };

        return tr_spawn(L, 1, "spawn", &options);
}

/* keep(name) */
static int keep(lua_State *L) {
        struct tr_target *own = own_target(L);
        const char *name;
        size_t len;

        name = luaL_checklstring(L, 1, &len);
        switch (tr_registry_keep(&own->system->registry, name, len, &own->keeper)) {
        case 0:
                return 0;
        case TR_REGISTRY_TAKEN:
                tr_script_raise(L, TR_CODE_TAKEN, "supervise: the name %s is published already", name);
        default:
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
}

/* release(name) */
static int release(lua_State *L) {
        struct tr_target *own = own_target(L);
        const char *name;
        size_t len;

        name = luaL_checklstring(L, 1, &len);
        tr_registry_release_name(&own->system->registry, name, len, &own->keeper);
        return 0;
}

/* restarted(handle) */
static int restarted(lua_State *L) {
        struct tr_target *target;

        if (tr_to_handle(L, 1, &target) && target)
                tr_system_tell(target->system, &(struct tr_news){ .event = TR_EVENT_RESTARTED, .target = target });
        return 0;
}

/* now() */
static int now(lua_State *L) {
        lua_pushinteger(L, (lua_Integer)(tr_clock_ns() / TR_NS_PER_MS));
        return 1;
}

/* The supervisor's top level, as that of a module. */
static int run(lua_State *L) {
        static const lua_CFunction functions[] = {
                tr_combine_when, tr_combine_state, rejected, spawn, keep, release, restarted, now
        };
        int count;

        lua_settop(L, 0);
        tr_library_push_part(L, &tr_lua_supervisor, "=" MODULE);
        load(L);
        lua_remove(L, 2);
        count = 1 + push_all(L, functions, sizeof(functions) / sizeof(*functions)) + 1;
        lua_pushinteger(L, (lua_Integer)(tr_vm_of(L)->script->grace_ns / TR_NS_PER_MS));
        lua_call(L, count, 0);
        return 0;
}

bool tr_supervise_declare(lua_State *L, const char *module) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_loading loading = { .module = MODULE, .file = MODULE, .outer = vm->loading };
        int status;

        if (strcmp(module, MODULE) != 0)
                return false;
        lua_pushcfunction(L, run);
        vm->loading = &loading;
        status = lua_pcall(L, 0, 0, 0);
        vm->loading = loading.outer;
        if (status != LUA_OK)
                lua_error(L);
        return true;
}
