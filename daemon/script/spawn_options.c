/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The options of `spawn`: which there are, of what type, and where their values go, as a table.
 */

#include "daemon/script/spawn_options.h"

#include <stddef.h>

#include "daemon/core/system.h"
#include "daemon/script/option.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/limits.h"

static const struct tr_script_option known[] = {
        { "heap", TR_SCRIPT_OPTION_SIZE, offsetof(struct tr_spawn_options, actor.heap_bytes) },
        { "mailbox", TR_SCRIPT_OPTION_COUNT, offsetof(struct tr_spawn_options, actor.mailbox) },
        { "mailbox_bytes", TR_SCRIPT_OPTION_SIZE, offsetof(struct tr_spawn_options, actor.mailbox_bytes) },
        { "async", TR_SCRIPT_OPTION_COUNT, offsetof(struct tr_spawn_options, actor.async) },
        { "name", TR_SCRIPT_OPTION_LABEL, offsetof(struct tr_spawn_options, actor.label) },
        { "detach", TR_SCRIPT_OPTION_BOOL, offsetof(struct tr_spawn_options, detach) },
        { "publish", TR_SCRIPT_OPTION_NAME, offsetof(struct tr_spawn_options, actor.publish) },
};

void tr_spawn_options_read(lua_State *L, int index, const char *function, struct tr_spawn_options *options) {
        TR_SCRIPT_OPTIONS_READ(L, index, function, known, options);
        tr_spawn_options_check_heap(L, function, options->actor.heap_bytes);
}

void tr_spawn_options_check_heap(lua_State *L, const char *function, uint64_t heap_bytes) {
        const struct tr_system *system = tr_vm_of(L)->actor->target.system;

        if (heap_bytes && (heap_bytes < TR_HEAP_MIN || heap_bytes > system->limits.heap_max_bytes))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: the option `heap` is from %u to %llu bytes", function,
                                TR_HEAP_MIN, (unsigned long long)system->limits.heap_max_bytes);
}

bool tr_spawn_options_is_marked(lua_State *L, int index) {
        bool is;

        if (!lua_istable(L, index) || !lua_getmetatable(L, index))
                return false;
        tr_vm_push(L, TR_PIN_OPTIONS);
        is = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        return is;
}

/* Pushes the metatable, which the first use makes. */
static void push_metatable(lua_State *L) {
        tr_vm_push(L, TR_PIN_OPTIONS);
        if (lua_istable(L, -1))
                return;
        lua_pop(L, 1);
        lua_createtable(L, 0, 2);
        lua_pushliteral(L, "options");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_OPTIONS);
}

/* options(t): a copy of the table that says what it is. */
static int library_options(lua_State *L) {
        if (!lua_istable(L, 1))
                tr_value_misuse(L, "options", 1, "a table");
        lua_settop(L, 1);
        lua_newtable(L);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, 2);
        }
        push_metatable(L);
        lua_setmetatable(L, 2);
        return 1;
}

const luaL_Reg tr_spawn_options_functions[] = {
        { "options", library_options },
        { NULL, NULL },
};
