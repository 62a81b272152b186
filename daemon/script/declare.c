/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Declarations of actors.
 *
 * A declaration is a table with two tables in it, `on` and `async`; what is written there is only looked at when the
 * module's top level has run. It is known by the module that declares it and its name, which is how another VM finds
 * the same one: it loads the module again. So a declaration must happen each time the top level runs, and is refused
 * anywhere else.
 */

#include "daemon/script/declare.h"

#include <string.h>

#include "daemon/script/module.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

/* By its name, and not by its metatable, which one that was forgotten has too. */
bool tr_declared_is(lua_State *L, int index) {
        bool is;

        if (!lua_istable(L, index))
                return false;
        tr_declare_push_name(L, index);
        is = !lua_isnil(L, -1);
        lua_pop(L, 1);
        return is;
}

void tr_declare_push_name(lua_State *L, int index) {
        index = lua_absindex(L, index);
        tr_vm_push(L, TR_PIN_DECLARED);
        lua_pushvalue(L, index);
        lua_rawget(L, -2);
        lua_remove(L, -2);
}

static int push_field(lua_State *L, int declaration, const char *name) {
        declaration = lua_absindex(L, declaration);
        lua_pushstring(L, name);
        return lua_rawget(L, declaration);
}

/* Whether the function that calls is a file's own body. */
static bool is_at_top_level(lua_State *L) {
        lua_Debug caller;

        return tr_module_loading(L) && lua_getstack(L, 1, &caller) && lua_getinfo(L, "S", &caller) &&
               *caller.what == 'm';
}

static int library_actor(lua_State *L) {
        const char *module = tr_module_loading(L), *name;
        size_t len;

        name = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
        if (!name || !tr_name_is_valid(name, len))
                tr_value_misuse(L, "actor", 1, "a name");
        if (!is_at_top_level(L))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "actor: `%s` is not declared at the top level of a file", name);
        lua_settop(L, 1);

        tr_vm_push(L, TR_PIN_DECLARED);
        lua_pushfstring(L, "%s:%s", module, name);
        lua_pushvalue(L, 3);
        if (lua_rawget(L, 2) != LUA_TNIL)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "actor: `%s` is declared twice in the module `%s`", name,
                                module);
        lua_pop(L, 1);

        lua_createtable(L, 0, 4);
        lua_newtable(L);
        lua_setfield(L, 4, "on");
        lua_newtable(L);
        lua_setfield(L, 4, "async");
        tr_vm_push(L, TR_PIN_ACTOR);
        lua_setmetatable(L, 4);

        lua_pushvalue(L, 4);
        lua_pushvalue(L, 3);
        lua_rawset(L, 2);
        lua_pushvalue(L, 3);
        lua_pushvalue(L, 4);
        lua_rawset(L, 2);
        return 1;
}

/* whether it holds together */

/* `on` or `async`, pushed: a table of functions by name. */
static void check_handlers(lua_State *L, int declaration, const char *actor, const char *which) {
        if (push_field(L, declaration, which) != LUA_TTABLE)
                tr_script_raise(L, TR_CODE_LOAD, "%s: `%s` is not a table of handlers", actor, which);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
                if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
                        tr_script_raise(L, TR_CODE_LOAD, "%s: `%s` has something in it that is no handler: %s", actor,
                                        which, luaL_tolstring(L, -2, NULL));
                lua_pop(L, 1);
        }
}

static void check_fields(lua_State *L, int declaration, const char *actor) {
        if (push_field(L, declaration, "fields") == LUA_TNIL) {
                lua_pop(L, 1);
                return;
        }
        if (push_field(L, declaration, "init") != LUA_TNIL)
                tr_script_raise(L, TR_CODE_LOAD, "%s: has both `init` and `fields`", actor);
        lua_pop(L, 1);
        if (!lua_istable(L, -1))
                tr_script_raise(L, TR_CODE_LOAD, "%s: `fields` is not a list of names", actor);
        for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, -1); i++) {
                if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
                        tr_script_raise(L, TR_CODE_LOAD, "%s: `fields` is not a list of names", actor);
                lua_pop(L, 1);
        }
        if (push_field(L, declaration, "defaults") != LUA_TNIL && !lua_istable(L, -1))
                tr_script_raise(L, TR_CODE_LOAD, "%s: `defaults` is not a table", actor);
        lua_pop(L, 2);
}

static void check_method(lua_State *L, int declaration, const char *actor, const char *method) {
        if (push_field(L, declaration, method) != LUA_TNIL && !lua_isfunction(L, -1))
                tr_script_raise(L, TR_CODE_LOAD, "%s: `%s` is not a function", actor, method);
        lua_pop(L, 1);
}

static void check_declaration(lua_State *L, int declaration, const char *actor) {
        int top = lua_gettop(L);

        check_handlers(L, declaration, actor, "on");
        check_handlers(L, declaration, actor, "async");
        lua_pushnil(L);
        while (lua_next(L, top + 2)) {
                lua_pushvalue(L, -2);
                if (lua_rawget(L, top + 1) != LUA_TNIL)
                        tr_script_raise(L, TR_CODE_LOAD, "%s: the handler `%s` is declared under both `on` and `async`",
                                        actor, lua_tostring(L, -3));
                lua_pop(L, 2);
        }
        lua_settop(L, top);
        check_method(L, declaration, actor, "init");
        check_method(L, declaration, actor, "close");
        check_fields(L, declaration, actor);
}

/* The part of a full name behind its module, NULL where it is of another module. */
static const char *name_in(const char *full, const char *module) {
        size_t len = strlen(module);

        return strncmp(full, module, len) == 0 && full[len] == ':' ? full + len + 1 : NULL;
}

/* Moves from one of a module's declarations to the next: pushes its name and the declaration in place of the key on
 * top, or pops that and answers NULL. `declared` is the index of the table of them. */
static const char *next_of(lua_State *L, int declared, const char *module) {
        const char *name;

        while (lua_next(L, declared)) {
                name = lua_type(L, -2) == LUA_TSTRING ? name_in(lua_tostring(L, -2), module) : NULL;
                if (name)
                        return name;
                lua_pop(L, 1);
        }
        return NULL;
}

void tr_declare_check(lua_State *L, const char *module) {
        const char *name;
        int declared;

        luaL_checkstack(L, 12, NULL);
        tr_vm_push(L, TR_PIN_DECLARED);
        declared = lua_gettop(L);
        lua_pushnil(L);
        while ((name = next_of(L, declared, module))) {
                check_declaration(L, declared + 2, name);
                lua_settop(L, declared + 1);
        }
        lua_settop(L, declared - 1);
}

bool tr_declare_knows(lua_State *L, const char *module) {
        int declared;
        bool knows;

        luaL_checkstack(L, 6, NULL);
        tr_vm_push(L, TR_PIN_DECLARED);
        declared = lua_gettop(L);
        lua_pushnil(L);
        knows = next_of(L, declared, module);
        lua_settop(L, declared - 1);
        return knows;
}

void tr_declare_forget(lua_State *L, const char *module) {
        int declared;

        luaL_checkstack(L, 6, NULL);
        tr_vm_push(L, TR_PIN_DECLARED);
        declared = lua_gettop(L);
        lua_pushnil(L);
        while (next_of(L, declared, module)) {
                lua_pushnil(L);
                lua_rawset(L, declared);
                lua_pushvalue(L, -1);
                lua_pushnil(L);
                lua_rawset(L, declared);
        }
        lua_pop(L, 1);
}

/* the VM's own */

/* Pushes the declaration of that name, or the only one; raises where there is none. */
static void push_declaration(lua_State *L, const char *module, const char *name) {
        int declared, count = 0;

        tr_vm_push(L, TR_PIN_DECLARED);
        declared = lua_gettop(L);
        if (name) {
                lua_pushfstring(L, "%s:%s", module, name);
                if (lua_rawget(L, declared) == LUA_TNIL)
                        tr_script_raise(L, TR_CODE_NOT_FOUND, "the module `%s` declares no actor `%s`", module, name);
                lua_remove(L, declared);
                return;
        }
        lua_pushnil(L);
        lua_pushnil(L);
        while (next_of(L, declared, module)) {
                count++;
                lua_copy(L, -1, declared + 1);
                lua_pop(L, 1);
        }
        if (count == 0)
                tr_script_raise(L, TR_CODE_NOT_FOUND, "the module `%s` declares no actor", module);
        if (count > 1)
                tr_script_raise(L, TR_CODE_NOT_FOUND, "the module `%s` declares %d actors: say which, as in `%s:Name`",
                                module, count, module);
        lua_remove(L, declared);
}

void tr_declare_adopt(lua_State *L, const char *module, const char *name) {
        luaL_checkstack(L, 10, NULL);
        push_declaration(L, module, name);
        push_field(L, -1, "on");
        tr_vm_pin(L, TR_PIN_ON);
        push_field(L, -1, "async");
        tr_vm_pin(L, TR_PIN_ASYNC);
        tr_vm_pin(L, TR_PIN_OWN);
}

static int declaration_tostring(lua_State *L) {
        if (!tr_declared_is(L, 1)) {
                lua_pushliteral(L, "actor of a module that failed to load");
                return 1;
        }
        lua_pushliteral(L, "actor ");
        tr_declare_push_name(L, 1);
        lua_concat(L, 2);
        return 1;
}

const luaL_Reg tr_declare_functions[] = {
        { "actor", library_actor },
        { NULL, NULL },
};

void tr_declare_open(lua_State *L) {
        lua_newtable(L);
        tr_vm_pin(L, TR_PIN_DECLARED);
        lua_createtable(L, 0, 3);
        lua_pushliteral(L, "actor");
        lua_setfield(L, -2, "__name");
        lua_pushcfunction(L, declaration_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        tr_vm_pin(L, TR_PIN_ACTOR);
}
