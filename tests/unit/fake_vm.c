/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_vm.h"

#include <lualib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/script/codec.h"
#include "daemon/script/declare.h"
#include "daemon/script/module.h"
#include "daemon/script/promise.h"
#include "daemon/script/open.h"
#include "daemon/script/values.h"
#include "proto/limits.h"

static _Noreturn void die(const char *file, int line, const char *what) {
        fprintf(stderr, "%s:%d: %s\n", file, line, what);
        abort();
}

/* Not check's assertion: programs that are no suites use this too. */
#define must(condition) ((condition) ? (void)0 : die(__FILE__, __LINE__, #condition))

static struct fake_vm *fake_of(lua_State *L) {
        return (struct fake_vm *)tr_vm_of(L);
}

/* What the VM's own files have of this. */

static _Noreturn void __attribute__((format(printf, 4, 0)))
raise_error(lua_State *L, enum tr_code code, const char *path, const char *format, va_list arguments) {
        char message[1024];

        luaL_checkstack(L, 6, NULL);
        vsnprintf(message, sizeof(message), format, arguments);
        lua_newtable(L);
        lua_pushstring(L, message);
        lua_setfield(L, -2, "message");
        lua_pushstring(L, tr_code_text(code));
        lua_setfield(L, -2, "code");
        lua_pushstring(L, path);
        lua_setfield(L, -2, "path");
        luaL_setmetatable(L, "fake.error");
        lua_error(L);
        abort();
}

void tr_script_raise(lua_State *L, enum tr_code code, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        raise_error(L, code, NULL, format, arguments);
}

void tr_script_raise_at(lua_State *L, enum tr_code code, const char *path, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        raise_error(L, code, path, format, arguments);
}

bool tr_script_is_failure(lua_State *L, int index) {
        bool is = false;

        if (lua_getmetatable(L, index)) {
                luaL_getmetatable(L, "fake.error");
                is = lua_rawequal(L, -1, -2);
                lua_pop(L, 2);
        }
        return is;
}

void tr_script_set_failure(lua_State *L, int index) {
        lua_pushvalue(L, index);
        luaL_setmetatable(L, "fake.error");
        lua_pop(L, 1);
}

static int error_tostring(lua_State *L) {
        lua_getfield(L, 1, "message");
        return 1;
}

static bool has_field(lua_State *L, int index, const char *name) {
        bool has;

        if (!lua_istable(L, index))
                return false;
        lua_pushstring(L, name);
        lua_rawget(L, index < 0 ? index - 1 : index);
        has = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return has;
}

bool tr_promise_is(lua_State *L, int index) {
        return has_field(L, index, "is_promise");
}

bool tr_declared_is(lua_State *L, int index) {
        return has_field(L, index, "is_declaration");
}

const char *tr_module_loading(lua_State *L) {
        return fake_of(L)->loading;
}

/* Runs the function of that name in the global table `modules`. */
void tr_module_require(lua_State *L, const char *name, size_t len) {
        struct fake_vm *fake = fake_of(L);

        lua_getglobal(L, "modules");
        lua_pushlstring(L, name, len);
        if (!lua_istable(L, -2) || lua_gettable(L, -2) != LUA_TFUNCTION)
                tr_script_raise(L, TR_CODE_NOT_FOUND, "no module %.*s", (int)len, name);
        lua_pushlstring(L, name, len);
        fake->loading = lua_tostring(L, -1);
        lua_insert(L, -2);
        lua_call(L, 0, 1);
        fake->loading = NULL;
        lua_replace(L, -3);
        lua_pop(L, 1);
}

/* Targets that nobody is behind. */

struct fake_target {
        struct tr_target target;
        struct fake_vm *fake;
};

static void fake_target_free(struct tr_target *target) {
        struct fake_target *fake = (struct fake_target *)target;

        fake->fake->targets--;
        tr_target_deinit(target);
        free(fake);
}

static const struct tr_target_ops fake_target_ops = {
        .kind = TR_TARGET_ACTOR,
        .free = fake_target_free,
};

struct tr_target *fake_vm_target(struct fake_vm *fake, const char *label) {
        struct fake_target *target = calloc(1, sizeof(*target));

        must(target);
        target->fake = fake;
        must(tr_target_init(&target->target, &fake_target_ops, fake->system, 0, label, label) == 0);
        must(tr_registry_add(&fake->system->registry, &target->target) == 0);
        fake->targets++;
        return &target->target;
}

static int global_actor(lua_State *L) {
        struct tr_target *target = fake_vm_target(fake_of(L), luaL_checkstring(L, 1));

        tr_push_handle(L, target);
        tr_target_unref(target);
        return 1;
}

/* What chunks call. */

static const char *const forms[] = { "internal", "typed", "plain", NULL };

static int global_encode(lua_State *L) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        enum tr_form form = (enum tr_form)luaL_checkoption(L, 1, NULL, forms);
        int top = lua_gettop(L);

        tr_writer_reset(scratch);
        tr_codec_encode(L, 2, top - 1, form, NULL, scratch);
        if (lua_gettop(L) != top)
                return luaL_error(L, "encoding has left something on the stack");
        lua_pushlstring(L, (const char *)scratch->data, scratch->len);
        return 1;
}

static int global_decode(lua_State *L) {
        bool internal = luaL_checkoption(L, 1, NULL, forms) == TR_FORM_INTERNAL;
        uint32_t count = (uint32_t)luaL_optinteger(L, 3, 1);
        size_t len;
        const char *data = luaL_checklstring(L, 2, &len);
        /* a block of exactly that size, so that a sanitizer sees any look beyond it */
        uint8_t *exact = memcpy(lua_newuserdatauv(L, len, 0), data, len);
        int top = lua_gettop(L);

        tr_codec_decode(L, exact, len, count, internal, NULL);
        if (lua_gettop(L) != top + (int)count)
                return luaL_error(L, "decoding has not left %d values", (int)count);
        return (int)count;
}

static int global_loading(lua_State *L) {
        struct fake_vm *fake = (struct fake_vm *)tr_vm_of(L);

        lua_settop(L, 1);
        fake->loading = lua_tostring(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "fake.loading");
        return 0;
}

static int global_forget(lua_State *L) {
        tr_forget_classes(L, luaL_checkstring(L, 1));
        return 0;
}

static int open(lua_State *L) {
        static const luaL_Reg *const functions[] = {
                tr_bytes_functions, tr_class_functions, tr_handle_functions,
                tr_mark_functions,  tr_time_functions,  tr_transfer_functions,
        };

        luaL_openlibs(L);
        luaL_newmetatable(L, "fake.error");
        lua_pushcfunction(L, error_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pop(L, 1);
        lua_newtable(L);
        tr_values_open(L);
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                luaL_setfuncs(L, functions[i], 0);
        lua_setglobal(L, "troupe");
        lua_register(L, "actor", global_actor);
        lua_register(L, "encode", global_encode);
        lua_register(L, "decode", global_decode);
        lua_register(L, "loading", global_loading);
        lua_register(L, "forget", global_forget);
        if (luaL_loadfile(L, TR_SRCDIR "/tests/unit/prelude.lua"))
                return lua_error(L);
        lua_call(L, 0, 0);
        return 0;
}

void fake_vm_init(struct fake_vm *fake, uint64_t heap_max_bytes) {
        static const struct tr_system_limits limits = {
                .actors = 16,
                .actors_per_user = 16,
                .heap_bytes = 1 << 20,
                .heap_max_bytes = 1 << 30,
                .mailbox = 16,
                .mailbox_bytes = 64 << 20,
                .async = 16,
                .grace_ns = TR_NEVER,
        };
        static const struct tr_behaviour behaviour;
        static const struct tr_system_hooks hooks;
        static const struct tr_script script = { .nesting = TR_NESTING_MAX };
        lua_State *L;

        memset(fake, 0, sizeof(*fake));
        must(tr_system_new(&limits, &behaviour, NULL, &hooks, &fake->system) == 0);
        fake->actor.target.system = fake->system;
        atomic_init(&fake->actor.target.refs, 1);
        fake->vm.actor = &fake->actor;
        fake->vm.script = &script;
        tr_alloc_init(&fake->vm.alloc, heap_max_bytes, &fake->heap_bytes, &fake->total_bytes);
        L = fake->vm.L = lua_newstate(tr_alloc_lua, &fake->vm.alloc);
        must(L);
        *(struct tr_vm **)lua_getextraspace(L) = &fake->vm;
        lua_pushcfunction(L, open);
        if (lua_pcall(L, 0, 0, 0))
                die(__FILE__, __LINE__, luaL_tolstring(L, -1, NULL));
}

void fake_vm_deinit(struct fake_vm *fake) {
        lua_close(fake->vm.L);
        tr_writer_deinit(&fake->vm.scratch);
        must(fake->vm.alloc.used_bytes == 0);
        must(fake->targets == 0);
        must(tr_system_free(fake->system) == 0);
}

void fake_vm_run(struct fake_vm *fake, const char *chunk) {
        lua_State *L = fake->vm.L;

        must(lua_gettop(L) == 0);
        if (luaL_loadstring(L, chunk) || lua_pcall(L, 0, 0, 0))
                die(__FILE__, __LINE__, luaL_tolstring(L, -1, NULL));
}
