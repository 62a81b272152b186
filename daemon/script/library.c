/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library's table.
 *
 * What is written in Lua is compiled when one of its functions is looked up for the first time: most actors need none
 * of it, and an idle actor is to cost little more than a bare VM.
 */

#include "daemon/script/library.h"

#include <string.h>

#include "daemon/script/combine.h"
#include "daemon/script/declare.h"
#include "daemon/script/ends.h"
#include "daemon/script/load.h"
#include "daemon/script/log.h"
#include "daemon/script/names.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/send.h"
#include "daemon/script/spawn.h"
#include "daemon/script/spawn_options.h"
#include "daemon/script/timers.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

void tr_library_add(lua_State *L, const luaL_Reg *functions) {
        tr_vm_push(L, TR_PIN_LIBRARY);
        luaL_setfuncs(L, functions, 0);
        lua_pop(L, 1);
}

/* __index of the library: functions that are written in Lua. */
static int find_lua_written(lua_State *L) {
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";

        lua_settop(L, 2);
        if (!tr_combine_load(L, name))
                return 0;
        tr_vm_push(L, TR_PIN_LIBRARY);
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
        return 1;
}

void tr_library_open(lua_State *L) {
        lua_newtable(L);
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_LIBRARY);
        tr_values_open(L);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, find_lua_written);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);

        tr_outstanding_open(L);
        tr_promise_open(L);
        tr_timers_open(L);
        tr_declare_open(L);
        tr_ends_open(L);
        tr_load_open(L);
        tr_log_open(L);
        tr_names_open(L);
        tr_spawn_options_open(L);
        tr_send_open(L);
        tr_spawn_open(L);
}
