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

/* Indices of the generated constructor's frame. Behind them are the arguments, nil where there are fewer than fields. */
enum {
        SELF = 1,
        FIELDS,
        DEFAULTS,
};

/* Sets the field whose name and value are on top. */
static void set_field(lua_State *L) {
        if (lua_isnil(L, -1)) {
                lua_pushfstring(L, "the field `%s` has neither an argument nor a default", lua_tostring(L, -2));
                lua_error(L);
        }
        lua_rawset(L, SELF);
}

/* Pushes the default of the field whose name is on top; answers whether that is to be called. */
static bool push_default(lua_State *L) {
        if (!lua_istable(L, DEFAULTS)) {
                lua_pushnil(L);
                return false;
        }
        lua_pushvalue(L, -1);
        return lua_rawget(L, DEFAULTS) == LUA_TFUNCTION;
}

static int go_on_filling(lua_State *L, int status, lua_KContext at);

/* Every field from the `at`-th on, from its argument or its default, which may await. */
static int fill(lua_State *L, lua_KContext at) {
        lua_KContext count = (lua_KContext)lua_rawlen(L, FIELDS);

        for (; at <= count; at++) {
                lua_rawgeti(L, FIELDS, at);
                if (!lua_isnil(L, DEFAULTS + (int)at))
                        lua_pushvalue(L, DEFAULTS + (int)at);
                else if (push_default(L))
                        lua_callk(L, 0, 1, at, go_on_filling);
                set_field(L);
        }
        return 0;
}

static int go_on_filling(lua_State *L, int status, lua_KContext at) {
        set_field(L);
        return fill(L, at + 1);
}

/* generated(self, ...). Surplus arguments were refused before. */
static int generated(lua_State *L) {
        int count;

        luaL_checkstack(L, 8, NULL);
        push_own_field(L, "fields");
        lua_insert(L, FIELDS);
        push_own_field(L, "defaults");
        lua_insert(L, DEFAULTS);
        count = (int)lua_rawlen(L, FIELDS);
        luaL_checkstack(L, count + 8, "too many fields");
        lua_settop(L, DEFAULTS + count);
        return fill(L, 1);
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
