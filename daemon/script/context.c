/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Contexts.
 *
 * What comes with a call (who calls, which attempt, the trace) is a table of its own; what is the replica's is in one table that all
 * contexts fall back on. `context.call` and its kind are called without the context, and have to know of which call it is:
 * they are made where they are first looked up, which most calls never do.
 */

#include "daemon/script/context.h"

#include <lauxlib.h>
#include <string.h>

#include "daemon/core/context.h"
#include "daemon/core/replica.h"
#include "daemon/script/box.h"
#include "daemon/script/codec.h"
#include "daemon/script/durable.h"
#include "daemon/script/entities.h"
#include "daemon/script/invoke.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* errors */

/* What error(name, data) answers. Its values are the two. */
struct answered_error {
        const void *tag;
};

static const char error_tag;

enum {
        ERROR_NAME = 1,
        ERROR_DATA,
        ERROR_VALUES = 2,
};

bool tr_context_is_error(lua_State *L, int index) {
        return tr_box_tag(L, index) == &error_tag;
}

const char *tr_context_push_error_data(lua_State *L, int index, size_t *ret_len) {
        const char *name;

        index = lua_absindex(L, index);
        lua_getiuservalue(L, index, ERROR_NAME);
        name = lua_tolstring(L, -1, ret_len);
        lua_pop(L, 1);
        lua_getiuservalue(L, index, ERROR_DATA);
        return name;
}

static int error_tostring(lua_State *L) {
        lua_getiuservalue(L, 1, ERROR_NAME);
        return 1;
}

static void make_error_metatable(lua_State *L) {
        static const luaL_Reg metamethods[] = { { "__tostring", error_tostring }, { NULL, NULL } };

        tr_box_metatable(L, &error_tag, "error answer", metamethods);
}

/* error(name, data?) */
static int context_error(lua_State *L) {
        if (lua_type(L, 1) != LUA_TSTRING || lua_rawlen(L, 1) == 0)
                tr_value_misuse(L, "error", 1, "the name of an error");
        lua_settop(L, 2);
        tr_box_push(L, &error_tag, sizeof(struct answered_error), ERROR_VALUES);
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, ERROR_NAME);
        lua_pushvalue(L, 2);
        lua_setiuservalue(L, -2, ERROR_DATA);
        tr_box_seal(L, &error_tag, make_error_metatable);
        return 1;
}

static int no_error(lua_State *L) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "error: this is no operation, and has nobody to answer with it");
}

/* what all have */

static void push_args(lua_State *L, const struct tr_replica *replica) {
        const struct tr_manifest_replica *as = replica->started_as;

        if (as && as->args)
                tr_codec_decode(L, as->args, as->args_bytes, 1, false, NULL);
        else
                lua_pushnil(L);
}

/* What is called without the context, and has to know of which call it is: the upvalue is the trace. */
static lua_CFunction in_chain(const char *name) {
        if (strcmp(name, "call") == 0)
                return tr_invoke_in_chain;
        if (strcmp(name, "task") == 0)
                return tr_durable_task_in_chain;
        return strcmp(name, "delay") == 0 ? tr_durable_delay_in_chain : NULL;
}

/* __index of contexts; the upvalue is what all have. */
static int context_index(lua_State *L) {
        lua_CFunction function;

        lua_settop(L, 2);
        lua_pushvalue(L, 2);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL || lua_type(L, 2) != LUA_TSTRING)
                return 1;
        function = in_chain(lua_tostring(L, 2));
        if (!function)
                return 1;
        lua_pushliteral(L, "trace");
        lua_rawget(L, 1);
        lua_pushcclosure(L, function, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 1);
        return 1;
}

void tr_context_open(lua_State *L) {
        const struct tr_replica *replica = tr_vm_of(L)->actor->replica;
        int common;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        lua_createtable(L, 0, 10);
        common = lua_gettop(L);
        lua_pushstring(L, replica->manifest->name);
        lua_setfield(L, common, "component");
        lua_pushstring(L, replica->instance);
        lua_setfield(L, common, "instance");
        lua_pushinteger(L, replica->index);
        lua_setfield(L, common, "index");
        push_args(L, replica);
        lua_setfield(L, common, "args");
        lua_newtable(L);
        lua_setfield(L, common, "state");
        tr_entities_push(L);
        lua_setfield(L, common, "entities");
        lua_pushcfunction(L, context_error);
        lua_setfield(L, common, "error");
        tr_vm_push(L, TR_PIN_LIBRARY);
        lua_getfield(L, -1, "log");
        lua_setfield(L, common, "log");
        lua_pop(L, 1);

        lua_createtable(L, 0, 2);
        lua_insert(L, common);
        lua_pushcclosure(L, context_index, 1);
        lua_setfield(L, common, "__index");
        lua_pushboolean(L, false);
        lua_setfield(L, common, "__metatable");
        tr_vm_pin(L, TR_PIN_CONTEXT);
}

void tr_context_push(lua_State *L) {
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, no_error);
        lua_setfield(L, -2, "error");
        tr_vm_push(L, TR_PIN_CONTEXT);
        lua_setmetatable(L, -2);
}

/* Pushes who calls. */
static void push_caller(lua_State *L, const struct tr_call_context *context) {
        lua_createtable(L, 0, 3);
        lua_pushinteger(L, context->uid);
        lua_setfield(L, -2, "uid");
        lua_pushinteger(L, context->gid);
        lua_setfield(L, -2, "gid");
        lua_pushinteger(L, context->pid);
        lua_setfield(L, -2, "pid");
}

void tr_context_push_call(lua_State *L, const char *operation, const struct tr_call_context *context) {
        lua_createtable(L, 0, 4 + (context->timeout_ms > 0) + (context->id != NULL) + (context->task != NULL));
        lua_pushstring(L, operation);
        lua_setfield(L, -2, "operation");
        lua_pushlstring(L, context->trace, TR_TRACEPARENT_LEN);
        lua_setfield(L, -2, "trace");
        lua_pushinteger(L, context->attempt);
        lua_setfield(L, -2, "attempt");
        push_caller(L, context);
        lua_setfield(L, -2, "caller");
        if (context->id) {
                lua_pushstring(L, context->id);
                lua_setfield(L, -2, "id");
        }
        if (context->task) {
                lua_pushstring(L, context->task);
                lua_setfield(L, -2, "task_id");
        }
        if (context->timeout_ms > 0) {
                lua_pushinteger(L, (lua_Integer)context->timeout_ms);
                lua_setfield(L, -2, "timeout");
        }
        tr_vm_push(L, TR_PIN_CONTEXT);
        lua_setmetatable(L, -2);
}
