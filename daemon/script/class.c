/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes: tables that are the metatables of their instances, and are known in every VM by where they are declared,
 * `module:Name`.
 *
 * Two tables in the registry hold what is known of them, by table and by name. Nothing of it is in the class itself:
 * what copies or wraps a class would take it along. A class is declared at the top level of a file, because its name
 * has to mean the same in a VM that loads the module later.
 *
 * `__gc` is looked for, raw, whenever an instance is made: a class gets its fields after it was declared.
 */
#include <string.h>

#include "daemon/script/module.h"
#include "daemon/script/open.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

/* The registry's keys: names by class, classes by name. */
static const char names_key, classes_key;

bool tr_push_class_name(lua_State *L, int index) {
        index = lua_absindex(L, index);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
        lua_pushvalue(L, index);
        if (lua_rawget(L, -2) != LUA_TSTRING) {
                lua_pop(L, 2);
                return false;
        }
        lua_replace(L, -2);
        return true;
}

bool tr_push_class(lua_State *L, const char *name, size_t len) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &classes_key);
        lua_pushlstring(L, name, len);
        if (lua_rawget(L, -2) == LUA_TNIL) {
                lua_pop(L, 2);
                return false;
        }
        lua_replace(L, -2);
        return true;
}

bool tr_set_class(lua_State *L, int index) {
        index = lua_absindex(L, index);
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, -2) != LUA_TNIL) {
                lua_pop(L, 2);
                return false;
        }
        lua_pop(L, 1);
        lua_setmetatable(L, index);
        return true;
}

static bool is_of(const char *name, const char *module) {
        size_t len = strlen(module);

        return strncmp(name, module, len) == 0 && name[len] == ':';
}

bool tr_knows_classes(lua_State *L, const char *module) {
        int top = lua_gettop(L);
        bool knows = false;

        lua_rawgetp(L, LUA_REGISTRYINDEX, &classes_key);
        for (lua_pushnil(L); !knows && lua_next(L, top + 1); lua_pop(L, 1))
                knows = is_of(lua_tostring(L, -2), module);
        lua_settop(L, top);
        return knows;
}

void tr_forget_classes(lua_State *L, const char *module) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &classes_key);
        for (lua_pushnil(L); lua_next(L, -2);) {
                if (!is_of(lua_tostring(L, -2), module)) {
                        lua_pop(L, 1);
                        continue;
                }
                /* both fields exist: clearing them allocates nothing and does not disturb the traversal */
                lua_pushnil(L);
                lua_rawset(L, -5);
                lua_pushvalue(L, -1);
                lua_pushnil(L);
                lua_rawset(L, -4);
        }
        lua_pop(L, 2);
}

/* Pushes what the class at an index is called in a sentence. */
static const char *push_called(lua_State *L, int index) {
        if (!tr_push_class_name(L, index))
                lua_pushliteral(L, "a class of a module that failed to load");
        return lua_tostring(L, -1);
}

/* Refuses more arguments than the `init` at the top of the stack has parameters for. */
static void check_surplus(lua_State *L, int count) {
        lua_Debug init;

        if (!lua_isfunction(L, -1))
                return;
        lua_pushvalue(L, -1);
        lua_getinfo(L, ">u", &init);
        /* the first parameter is self */
        if (!init.isvararg && count >= init.nparams && count > 0)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: init takes %d arguments, and was given %d",
                                push_called(L, lua_upvalueindex(1)), init.nparams > 0 ? init.nparams - 1 : 0, count);
}

static int class_made(lua_State *L, int status, lua_KContext context) {
        (void)status;
        (void)context;
        lua_settop(L, 1);
        return 1;
}

/* Point.new(...); the class is the first upvalue. `init` may await. */
static int class_new(lua_State *L) {
        int count = lua_gettop(L);

        luaL_checkstack(L, 6, NULL);
        lua_newtable(L);
        lua_pushvalue(L, lua_upvalueindex(1));
        if (!tr_set_class(L, -2))
                tr_script_raise(L, TR_CODE_BAD_REQUEST,
                                "%s: a class may not have a __gc metamethod: finalizers cannot be interrupted",
                                push_called(L, lua_upvalueindex(1)));
        lua_insert(L, 1);
        if (lua_getfield(L, lua_upvalueindex(1), "init") == LUA_TNIL) {
                if (count > 0)
                        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: without init, new takes no arguments",
                                        push_called(L, lua_upvalueindex(1)));
                return class_made(L, LUA_OK, 0);
        }
        check_surplus(L, count);
        lua_insert(L, 2);
        lua_pushvalue(L, 1);
        lua_insert(L, 3);
        lua_callk(L, count + 1, 0, 0, class_made);
        return class_made(L, LUA_OK, 0);
}

/* Makes the table at the top of the stack known under the name at `name_index`. */
static void declare(lua_State *L, int name_index) {
        int class = lua_gettop(L);

        lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
        lua_pushvalue(L, class);
        lua_pushvalue(L, name_index);
        lua_rawset(L, -3);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &classes_key);
        lua_pushvalue(L, name_index);
        lua_pushvalue(L, class);
        lua_rawset(L, -3);
        lua_settop(L, class);
}

/* class "Name" */
static int library_class(lua_State *L) {
        const char *name, *module = tr_module_loading(L);
        size_t len;

        name = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
        if (!name || !tr_name_is_valid(name, len))
                tr_value_misuse(L, "class", 1, "the name of a class");
        if (!module)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "class: %s is not declared at the top level of a file", name);
        lua_settop(L, 1);
        lua_pushfstring(L, "%s:%s", module, name);
        if (tr_push_class(L, lua_tostring(L, 2), lua_rawlen(L, 2)))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "class: %s is declared already", lua_tostring(L, 2));

        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
        lua_pushvalue(L, 1);
        lua_setfield(L, -2, "__name");
        lua_pushvalue(L, -1);
        lua_pushcclosure(L, class_new, 1);
        lua_setfield(L, -2, "new");
        declare(L, 2);
        return 1;
}

/* is(v, C) */
static int library_is(lua_State *L) {
        if (!tr_push_class_name(L, 2))
                tr_value_misuse(L, "is", 2, "a class");
        lua_pushboolean(L, lua_getmetatable(L, 1) && lua_rawequal(L, -1, 2));
        return 1;
}

void tr_open_classes(lua_State *L) {
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &classes_key);
}

const luaL_Reg tr_class_functions[] = {
        { "class", library_class },
        { "is", library_is },
        { NULL, NULL },
};
