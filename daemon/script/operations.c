/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The module of a component.
 *
 * It answers a table: `operations`, functions by name, and the functions of its life, `init`, `ready` and `dispose`. All of it is
 * looked at once, when it has been loaded, against the manifest that the replica was started for; what is wrong with it is a start
 * that has failed. An operation is then found by its name at each call.
 *
 * A call is a message with one argument, the input, as a peer would write it: no code is loaded for what is in it. The context is asked
 * for, and the entity comes with that. What a transition or an assignment was given is committed as it stands when the operation has come
 * to its end, so the task keeps hold of it until then.
 */

#include "daemon/script/operations.h"

#include <string.h>

#include "daemon/core/context.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/script/codec.h"
#include "daemon/script/context.h"
#include "daemon/script/describe.h"
#include "daemon/script/module.h"
#include "daemon/script/task.h"

static const struct tr_manifest *manifest_of(lua_State *L) {
        return tr_vm_of(L)->actor->replica->manifest;
}

/* what the module answers */

static void push_raw(lua_State *L, int table, const char *key) {
        table = lua_absindex(L, table);
        lua_pushstring(L, key);
        lua_rawget(L, table);
}

static bool is_known(const char *key) {
        static const char *const known[] = { "operations", "init", "ready", "dispose" };

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(key, known[i]) == 0)
                        return true;
        return false;
}

static void check_keys(lua_State *L, int module, const char *name) {
        for (lua_pushnil(L); lua_next(L, module); lua_pop(L, 1)) {
                if (lua_type(L, -2) == LUA_TSTRING && is_known(lua_tostring(L, -2)))
                        continue;
                tr_script_raise(L, TR_CODE_LOAD,
                                "the module `%s` is no component's: it answers a table with `%s`, where only operations, init, ready "
                                "and dispose may be",
                                name, luaL_tolstring(L, -2, NULL));
        }
}

static void check_function(lua_State *L, int module, const char *name, const char *key) {
        push_raw(L, module, key);
        if (!lua_isnil(L, -1) && !lua_isfunction(L, -1))
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` is no component's: its `%s` is a %s and no function", name, key,
                                luaL_typename(L, -1));
        lua_pop(L, 1);
}

/* The table on top: functions by name, all that the manifest has among them. */
static void check_operations(lua_State *L, const char *name) {
        const struct tr_manifest *manifest = manifest_of(L);

        if (!lua_istable(L, -1))
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` is no component's: its `operations` is a %s and no table", name,
                                luaL_typename(L, -1));
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
                if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
                        tr_script_raise(L, TR_CODE_LOAD, "the module `%s`: its operations have something among them that is none: %s",
                                        name, luaL_tolstring(L, -2, NULL));
        for (uint32_t i = 0; i < manifest->operations_count; i++) {
                push_raw(L, -1, manifest->operations[i].name);
                if (lua_isnil(L, -1))
                        tr_script_raise(L, TR_CODE_LOAD, "the module `%s` has no operation `%s`, which the manifest of %s has", name,
                                        manifest->operations[i].name, manifest->name);
                lua_pop(L, 1);
        }
}

void tr_operations_load(lua_State *L) {
        const char *name = manifest_of(L)->module;
        int module;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        tr_module_require(L, name, strlen(name));
        module = lua_gettop(L);
        if (!lua_istable(L, module))
                tr_script_raise(L, TR_CODE_LOAD, "the module `%s` is no component's: it answers no table {operations = ...}", name);
        check_keys(L, module, name);
        check_function(L, module, name, "init");
        check_function(L, module, name, "ready");
        check_function(L, module, name, "dispose");
        push_raw(L, module, "operations");
        check_operations(L, name);
        tr_vm_pin(L, TR_PIN_OPERATIONS);
        tr_vm_pin(L, TR_PIN_OWN);
        tr_context_open(L);
        tr_describe_publish(L, name);
}

/* its life */

static int build_of_life(lua_State *L, const char *key) {
        lua_settop(L, 0);
        tr_vm_push(L, TR_PIN_OWN);
        push_raw(L, 1, key);
        lua_remove(L, 1);
        if (!lua_isfunction(L, 1))
                return 0;
        tr_context_push(L);
        return 2;
}

int tr_operations_build_init(lua_State *L) {
        return build_of_life(L, "init");
}

int tr_operations_build_dispose(lua_State *L) {
        return build_of_life(L, "dispose");
}

static int build_ready(lua_State *L) {
        return build_of_life(L, "ready");
}

void tr_operations_ready(struct tr_vm *vm) {
        struct tr_task *task = tr_task_new(vm, NULL, true);
        int count;

        if (!task) {
                tr_actor_fault(vm->actor, NULL, tr_failure_new(TR_CODE_NO_MEMORY, "out of memory"));
                return;
        }
        task->name = "ready";
        if (tr_task_build(vm, task, build_ready, &count) != LUA_OK) {
                tr_task_free(vm, task);
                tr_vm_fault(vm);
        } else if (count == 0) {
                tr_task_free(vm, task);
        } else {
                tr_task_run(vm, task, count);
        }
}

/* calls */

/* Pushes what changes are filled into: a table that has the id. */
static void push_changes(lua_State *L, const struct tr_call_context *context) {
        lua_createtable(L, 0, 4);
        if (context->id) {
                lua_pushstring(L, context->id);
                lua_setfield(L, -2, "id");
        }
}

/* Pushes the entity, nil where there is none, or the list of them. */
static void push_entity(lua_State *L, const struct tr_operation *operation, const struct tr_call_context *context) {
        if (context->entity)
                tr_codec_decode(L, context->entity, context->entity_bytes, 1, false, NULL);
        else if (operation->entries)
                lua_newtable(L);
        else
                lua_pushnil(L);
}

/* Pushes what stands between the input and the context, where anything does. */
static void push_between(lua_State *L, struct tr_task *task, const struct tr_operation *operation,
                         const struct tr_call_context *context) {
        switch (operation->type) {
        case TR_OPERATION_OBSERVATION:
                push_entity(L, operation, context);
                break;
        case TR_OPERATION_TRANSITION:
                push_entity(L, operation, context);
                tr_task_change(L, task);
                break;
        case TR_OPERATION_ASSIGNMENT:
                push_changes(L, context);
                tr_task_change(L, task);
                break;
        default:
                break;
        }
}

int tr_operations_build_call(lua_State *L) {
        struct tr_task *task = lua_touserdata(L, 1);
        const struct tr_message *message = task->message;
        const struct tr_operation *operation = tr_delivery_operation(message);
        struct tr_call_context context;

        lua_settop(L, 0);
        tr_vm_push(L, TR_PIN_OPERATIONS);
        lua_pushlstring(L, tr_message_handler(message), message->handler_len);
        lua_rawget(L, 1);
        lua_remove(L, 1);
        if (!operation || !lua_isfunction(L, 1))
                return 0;
        tr_delivery_context(message, &context);
        tr_codec_decode(L, tr_message_args(message), message->args_bytes, message->args_count, false, NULL);
        push_between(L, task, operation, &context);
        tr_context_push_call(L, tr_message_handler(message), &context);
        return lua_gettop(L);
}
