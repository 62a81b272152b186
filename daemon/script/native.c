/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Modules written in C: a shared object in a directory of the search path, loaded by Lua's own package library, which
 * keeps it as long as the VM lives. They run with all that the daemon may do and can take it down; hence the grant.
 */

#include "daemon/script/native.h"

#include <lauxlib.h>
#include <lualib.h>

#include "daemon/script/script.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/vm.h"

bool tr_native_is_granted(lua_State *L) {
        return tr_vm_allow(tr_vm_of(L)) & TR_ALLOW_NATIVE;
}

void tr_native_push(lua_State *L, const char *name, const char *path) {
        tr_vm_push(L, TR_PIN_LOADLIB);
        lua_pushstring(L, path);
        luaL_gsub(L, name, ".", "_");
        lua_pushfstring(L, "luaopen_%s", lua_tostring(L, -1));
        lua_remove(L, -2);
        lua_call(L, 2, 2);
        if (!lua_isfunction(L, -2))
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` failed to load: %s", name, lua_tostring(L, -1));
        lua_pop(L, 1);
}

void tr_native_open(lua_State *L) {
        static const struct tr_denial denied = {
                LUA_LOADLIBNAME, "loadlib", "is not granted: it needs \"native\" in the configuration's \"allow\""
        };
        int package = lua_gettop(L);

        if (tr_native_is_granted(L)) {
                luaL_requiref(L, LUA_LOADLIBNAME, luaopen_package, false);
                lua_getfield(L, -1, "loadlib");
                lua_pushvalue(L, -1);
                tr_vm_pin(L, TR_PIN_LOADLIB);
        } else {
                tr_stdlib_push_denied(L, &denied);
        }
        lua_setfield(L, package, "loadlib");
        lua_settop(L, package);
}
