/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is who: an actor's own handle and name, and the names that are published.
 */

#include "daemon/script/names.h"

#include <string.h>

#include "daemon/core/registry.h"
#include "daemon/core/replica.h"
#include "daemon/script/declare.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

static struct tr_actor *check_inside(lua_State *L, const char *function) {
        struct tr_actor *actor = tr_vm_of(L)->actor;

        if (actor->program)
                tr_script_raise(L, TR_CODE_FAULT, "%s: only inside an actor", function);
        return actor;
}

static int library_me(lua_State *L) {
        tr_push_handle(L, &check_inside(L, "me")->target);
        return 1;
}

/* What a replica is: it is of no declared actor. */
static int push_replica(lua_State *L, const struct tr_replica *replica) {
        lua_createtable(L, 0, 4);
        lua_pushstring(L, replica->instance);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, replica->manifest->module);
        lua_setfield(L, -2, "module");
        lua_pushstring(L, replica->manifest->name);
        lua_setfield(L, -2, "component");
        lua_pushstring(L, replica->instance);
        lua_setfield(L, -2, "instance");
        return 1;
}

static int library_whoami(lua_State *L) {
        const struct tr_actor *actor = check_inside(L, "whoami");
        const char *name, *colon;

        tr_vm_push(L, TR_PIN_OWN);
        if (!lua_toboolean(L, -1))
                tr_script_raise(L, TR_CODE_FAULT, "whoami: the actor's module is not loaded yet");
        if (actor->replica)
                return push_replica(L, actor->replica);
        tr_declare_push_name(L, -1);
        name = lua_tostring(L, -1);
        colon = strchr(name, ':');
        lua_createtable(L, 0, 3);
        lua_pushstring(L, actor->target.label);
        lua_setfield(L, -2, "name");
        lua_pushlstring(L, name, (size_t)(colon - name));
        lua_setfield(L, -2, "module");
        lua_pushstring(L, colon + 1);
        lua_setfield(L, -2, "actor");
        if (actor->slot) {
                lua_pushstring(L, actor->slot->pool->target.label);
                lua_setfield(L, -2, "pool");
                lua_pushstring(L, actor->target.label);
                lua_setfield(L, -2, "worker");
        }
        return 1;
}

static const char *check_name(lua_State *L, const char *function, size_t *ret_len) {
        const char *name = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, ret_len) : NULL;

        if (!name || !tr_name_is_valid(name, *ret_len))
                tr_value_misuse(L, function, 1, "a name");
        return name;
}

static struct tr_registry *registry_of(lua_State *L) {
        return &tr_vm_of(L)->actor->target.system->registry;
}

/* A target found in the registry, on its way to a handle: pushing that may raise, and then the reference must not
 * be lost. */
static int push_found(lua_State *L) {
        tr_push_handle(L, lua_touserdata(L, 1));
        return 1;
}

static int library_find(lua_State *L) {
        struct tr_target *target;
        const char *name;
        size_t len = 0;
        int status;

        name = check_name(L, "find", &len);
        lua_pushcfunction(L, push_found);
        target = tr_registry_find_name(registry_of(L), name, len);
        if (!target) {
                lua_pushnil(L);
                return 1;
        }
        lua_pushlightuserdata(L, target);
        status = lua_pcall(L, 1, 1, 0);
        tr_target_unref(target);
        return status == LUA_OK ? 1 : lua_error(L);
}

static int library_publish(lua_State *L) {
        struct tr_target *target;
        const char *name;
        size_t len = 0;

        name = check_name(L, "publish", &len);
        tr_check_handle(L, 2, "publish", &target);
        if (!target)
                tr_script_raise(L, TR_CODE_NOT_RUNNING, "publish: the actor is not running");
        switch (tr_registry_publish(registry_of(L), name, len, target, NULL, NULL)) {
        case 0:
                return 0;
        case TR_REGISTRY_TAKEN:
                tr_script_raise(L, TR_CODE_TAKEN, "the name %s is published already", name);
        case TR_REGISTRY_ENDED:
                tr_script_raise(L, TR_CODE_NOT_RUNNING, "publish: the actor is not running");
        default:
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
}

static int library_unpublish(lua_State *L) {
        const char *name;
        size_t len = 0;

        name = check_name(L, "unpublish", &len);
        if (tr_registry_unpublish(registry_of(L), name, len) != 0)
                tr_script_raise(L, TR_CODE_NOT_FOUND, "nothing is published under the name %s", name);
        return 0;
}

const luaL_Reg tr_names_functions[] = {
        { "find", library_find },           { "me", library_me },         { "publish", library_publish },
        { "unpublish", library_unpublish }, { "whoami", library_whoami }, { NULL, NULL },
};
