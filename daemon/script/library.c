/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library's table.
 *
 * A function comes into it when it is looked up for the first time, and what is written in Lua is loaded then: most
 * actors need a few, and an idle actor is to cost little more than a bare VM.
 */

#include "daemon/script/library.h"

#include <string.h>

#include "daemon/script/combine.h"
#include "daemon/script/component.h"
#include "daemon/script/declare.h"
#include "daemon/script/durable.h"
#include "daemon/script/ends.h"
#include "daemon/script/invoke.h"
#include "daemon/script/load.h"
#include "daemon/script/log.h"
#include "daemon/script/lua_parts.h"
#include "daemon/script/names.h"
#include "daemon/script/open.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/pool.h"
#include "daemon/script/promise.h"
#include "daemon/script/send.h"
#include "daemon/script/source.h"
#include "daemon/script/spawn.h"
#include "daemon/script/spawn_options.h"
#include "daemon/script/supervise.h"
#include "daemon/script/timers.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* All that is written in C. */
static const luaL_Reg *const parts[] = {
        tr_bytes_functions,  tr_class_functions,         tr_component_functions, tr_declare_functions, tr_durable_functions,
        tr_ends_functions,   tr_handle_functions,        tr_invoke_functions,    tr_load_functions,    tr_log_functions,
        tr_mark_functions,   tr_names_functions,         tr_pool_functions,      tr_promise_functions, tr_send_functions,
        tr_spawn_functions,  tr_spawn_options_functions, tr_time_functions,      tr_timers_functions,  tr_transfer_functions,
};

static lua_CFunction find_in_c(const char *name) {
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                for (const luaL_Reg *function = parts[i]; function->name; function++)
                        if (strcmp(function->name, name) == 0)
                                return function->func;
        return NULL;
}

void tr_library_push_part(lua_State *L, const struct tr_lua_part *part, const char *chunk_name) {
        if (tr_source_load_text(L, part->text, part->len, chunk_name) != LUA_OK)
                lua_error(L);
}

/* What is written in Lua, and what pushes a table of it. */
static const struct {
        const char *name;
        void (*load)(lua_State *L);
} lua_written[] = {
        { "all", tr_combine_load },     { "any", tr_combine_load },     { "race", tr_combine_load },
        { "settled", tr_combine_load }, { "timeout", tr_combine_load }, { "supervise", tr_supervise_load },
};

/* Puts all of the part that a function is in into the table at an index; nothing where no part has it. */
static void add_lua_written(lua_State *L, const char *name, int library) {
        size_t at = 0;

        while (at < sizeof(lua_written) / sizeof(*lua_written) && strcmp(name, lua_written[at].name) != 0)
                at++;
        if (at == sizeof(lua_written) / sizeof(*lua_written))
                return;
        lua_written[at].load(L);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, library);
        }
        lua_pop(L, 1);
}

/* __index of the library: what is looked up for the first time is put into the table. */
static int find(lua_State *L) {
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
        lua_CFunction function = find_in_c(name);

        lua_settop(L, 2);
        tr_vm_push(L, TR_PIN_LIBRARY);
        if (function) {
                lua_pushvalue(L, 2);
                lua_pushcfunction(L, function);
                lua_rawset(L, 3);
        } else {
                add_lua_written(L, name, 3);
        }
        lua_pushvalue(L, 2);
        lua_rawget(L, 3);
        return 1;
}

void tr_library_open(lua_State *L) {
        lua_newtable(L);
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_LIBRARY);
        tr_values_open(L);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, find);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);

        tr_outstanding_open(L);
        tr_promise_open(L);
        tr_declare_open(L);
        tr_log_open(L);
}
