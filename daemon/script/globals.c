/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Unknown globals.
 *
 * Reading one that nobody set is a fault that names it: what `main` sets is not there in an actor, whose VM is
 * another one, and nil would say so somewhere else and much later.
 */

#include <string.h>

#include "daemon/script/stdlib.h"
#include "daemon/script/vm.h"

/* Names that other Luas have: libraries look for them to find out where they are. */
static bool is_of_another_lua(const char *name) {
        static const char *const names[] = { "unpack", "loadstring", "setfenv", "getfenv",
                                             "module", "jit",        "bit",     "bit32" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

/* __index of the table of globals. */
static int unknown_global(lua_State *L) {
        const char *name;

        if (lua_type(L, 2) == LUA_TSTRING && is_of_another_lua(lua_tostring(L, 2)))
                return 0;
        name = luaL_tolstring(L, 2, NULL);
        if (tr_vm_of(L)->actor->program)
                return luaL_error(L, "the global `%s` was never set", name);
        return luaL_error(L,
                          "the global `%s` was never set: values set in main exist in the program alone and belong in "
                          "a module or in "
                          "the actor's fields",
                          name);
}

void tr_globals_open(lua_State *L) {
        lua_pushglobaltable(L);
        lua_createtable(L, 0, 2);
        lua_pushcfunction(L, unknown_global);
        lua_setfield(L, -2, "__index");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
}
