/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Constructors: an actor's own `init`, the one that is generated from `fields` and `defaults`, or none.
 *
 * All of them refuse surplus arguments, each as a fault of the constructor: what is pushed then is a function that
 * raises it.
 */

#include "daemon/script/declare.h"
#include "daemon/script/vm.h"

static int push_own_field(lua_State *L, const char *name) {
        tr_vm_push(L, TR_PIN_OWN);
        lua_pushstring(L, name);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        return lua_type(L, -1);
}

bool tr_declare_count_parameters(lua_State *L, int index, int *ret_count) {
        lua_Debug init;

        index = lua_absindex(L, index);
        lua_pushliteral(L, "init");
        if (lua_rawget(L, index) == LUA_TFUNCTION) {
                lua_getinfo(L, ">u", &init);
                *ret_count = init.nparams > 0 ? init.nparams - 1 : 0; /* without self */
                return !init.isvararg;
        }
        lua_pop(L, 1);
        lua_pushliteral(L, "fields");
        *ret_count = lua_rawget(L, index) == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
        lua_pop(L, 1);
        return true;
}

static int raise_text(lua_State *L) {
        lua_settop(L, 1);
        return lua_error(L);
}

/* generated(self, ...): every field from its argument, or its default. */
static int generated(lua_State *L) {
        lua_Integer count;
        int self = 1, given = lua_gettop(L), fields, defaults;

        luaL_checkstack(L, 8, NULL);
        push_own_field(L, "fields");
        fields = lua_gettop(L);
        push_own_field(L, "defaults");
        defaults = lua_gettop(L);
        count = (lua_Integer)lua_rawlen(L, fields);
        for (lua_Integer i = 1; i <= count; i++) {
                lua_rawgeti(L, fields, i);
                lua_pushvalue(L, -1);
                if (i < given && !lua_isnil(L, (int)i + 1)) {
                        lua_pushvalue(L, (int)i + 1);
                } else if (lua_istable(L, defaults)) {
                        lua_pushvalue(L, -1);
                        if (lua_rawget(L, defaults) == LUA_TFUNCTION)
                                lua_call(L, 0, 1);
                } else {
                        lua_pushnil(L);
                }
                if (lua_isnil(L, -1)) {
                        lua_pushfstring(L, "the field `%s` has neither an argument nor a default", lua_tostring(L, -3));
                        return lua_error(L);
                }
                lua_rawset(L, self);
                lua_pop(L, 1);
        }
        return 0;
}

static int no_constructor(lua_State *L) {
        return 0;
}

/* The actor's state: its methods are found in the declaration. */
static void push_self(lua_State *L) {
        lua_newtable(L);
        lua_createtable(L, 0, 2);
        tr_vm_push(L, TR_PIN_OWN);
        tr_declare_push_name(L, -1);
        lua_setfield(L, -3, "__name");
        lua_setfield(L, -2, "__index");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_SELF);
}

void tr_declare_push_constructor(lua_State *L, uint32_t arguments) {
        int count;

        luaL_checkstack(L, 8, NULL);
        tr_vm_push(L, TR_PIN_OWN);
        if (tr_declare_count_parameters(L, -1, &count) && arguments > (uint32_t)count) {
                lua_pushcfunction(L, raise_text);
                tr_declare_push_name(L, -2);
                lua_pushfstring(L, "%s takes %d argument%s, not %d", lua_tostring(L, -1), count, count == 1 ? "" : "s",
                                (int)arguments);
                lua_replace(L, -2);
                lua_remove(L, -3);
                return;
        }
        lua_pop(L, 1);
        if (push_own_field(L, "init") != LUA_TFUNCTION) {
                lua_pop(L, 1);
                lua_pushcfunction(L, push_own_field(L, "fields") == LUA_TTABLE ? generated : no_constructor);
                lua_remove(L, -2);
        }
        push_self(L);
}
