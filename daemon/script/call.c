/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a message to a call: which function it names, and its arguments, put together on the coroutine that runs it.
 *
 * Arguments are decoded under a margin, an eighth of the ceiling: what does not fit is refused and the actor lives
 * on, so that nobody can kill an actor by the size of what he sends. All of it is one protected call per message,
 * apart from the handler's own run, so that an error of the decoding is never taken for one of the handler.
 */

#include "daemon/script/call.h"

#include "daemon/core/cargo.h"
#include "daemon/core/replica.h"
#include "daemon/script/codec.h"
#include "daemon/script/declare.h"
#include "daemon/script/kill.h"
#include "daemon/script/operations.h"
#include "daemon/script/task.h"

/* The part of the ceiling that must stay free when a message has been decoded. */
#define MARGIN_DIVISOR 8
/* Arguments of one call: far below what Lua's stack takes. */
#define ARGS_MAX 100000

static void push_arguments(lua_State *L, const struct tr_task *task) {
        const struct tr_message *message = task->message;

        if (message->args_count > ARGS_MAX)
                tr_script_raise(L, TR_CODE_TOO_LARGE, "a message with more than %d arguments", ARGS_MAX);
        luaL_checkstack(L, (int)message->args_count + LUA_MINSTACK, "too many arguments");
        tr_codec_decode(L, tr_message_args(message), message->args_bytes, message->args_count, message->internal,
                        task->cargo);
}

/* Pushes the handler that a message names and whether it is asynchronous; nil where there is none. */
static bool push_handler(lua_State *L, const struct tr_message *message) {
        lua_pushlstring(L, tr_message_handler(message), message->handler_len);
        tr_vm_push(L, TR_PIN_ON);
        lua_pushvalue(L, -2);
        lua_rawget(L, -2);
        if (lua_toboolean(L, -1)) {
                lua_replace(L, -3);
                lua_pop(L, 1);
                return false;
        }
        lua_pop(L, 2);
        tr_vm_push(L, TR_PIN_ASYNC);
        lua_insert(L, -2);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        return true;
}

static int build_handler(lua_State *L) {
        struct tr_task *task = lua_touserdata(L, 1);

        lua_settop(L, 0);
        task->may_await = push_handler(L, task->message);
        if (!lua_isfunction(L, 1))
                return 0;
        tr_vm_push(L, TR_PIN_SELF);
        push_arguments(L, task);
        return lua_gettop(L);
}

static int build_init(lua_State *L) {
        const struct tr_task *task = lua_touserdata(L, 1);

        lua_settop(L, 0);
        tr_declare_push_constructor(L, task->message->args_count);
        push_arguments(L, task);
        return lua_gettop(L);
}

static int build_main(lua_State *L) {
        char *const *arguments = tr_vm_of(L)->script->program_args;

        lua_settop(L, 0);
        tr_vm_push(L, TR_PIN_MAIN);
        for (; arguments && *arguments; arguments++) {
                luaL_checkstack(L, LUA_MINSTACK, "too many arguments");
                lua_pushstring(L, *arguments);
        }
        return lua_gettop(L);
}

/* Nothing where the actor has no close. */
static int build_close(lua_State *L) {
        const struct tr_task *task = lua_touserdata(L, 1);

        lua_settop(L, 0);
        tr_vm_push(L, TR_PIN_OWN);
        if (lua_istable(L, 1)) {
                lua_pushliteral(L, "close");
                lua_rawget(L, 1);
        }
        if (!lua_isfunction(L, -1))
                return 0;
        lua_remove(L, 1);
        tr_vm_push(L, TR_PIN_SELF);
        push_arguments(L, task);
        return lua_gettop(L);
}

/* Why there is nothing to run. A manifest may have got an operation after this module was loaded. */
static struct tr_failure *missing(const struct tr_actor *actor, const struct tr_message *message) {
        if (message->behalf)
                return tr_failure_new(TR_CODE_NOT_FOUND, "the module `%s` has no operation `%s`", actor->replica->manifest->module,
                                      tr_message_handler(message));
        if (actor->replica)
                return tr_failure_new(TR_CODE_NO_SUCH_HANDLER, "a replica of %s has no handlers: it is called by its component",
                                      actor->replica->manifest->name);
        return tr_failure_new(TR_CODE_NO_SUCH_HANDLER, "%s has no handler `%s`", tr_target_actor(&actor->target),
                              tr_message_handler(message));
}

/* Nothing to run. */
static void skip(struct tr_vm *vm, struct tr_task *task) {
        struct tr_message *message = task->message;

        if (message->kind != TR_MESSAGE_HANDLER) {
                tr_task_lived(vm, task);
                return;
        }
        tr_task_free(vm, task);
        tr_actor_refuse(vm->actor, message, missing(vm->actor, message));
}

/* It cannot be called: that is the end of a constructor, and of nothing else. */
static void decline(struct tr_vm *vm, struct tr_message *message, struct tr_failure *take_failure) {
        if (message->kind == TR_MESSAGE_INIT)
                tr_actor_fault(vm->actor, message, take_failure);
        else
                tr_actor_refuse(vm->actor, message, take_failure);
}

/* The arguments could not be had: the error is on top of the main state. */
static void decline_arguments(struct tr_vm *vm, struct tr_message *message, bool too_large) {
        struct tr_failure *failure = NULL;

        if (!tr_actor_is_killed(vm->actor))
                failure = too_large ? tr_failure_new(TR_CODE_TOO_LARGE, "the message does not fit in the actor's heap")
                                    : tr_script_failure_of(vm->L, -1);
        lua_pop(vm->L, 1);
        if (failure)
                decline(vm, message, failure);
}

static lua_CFunction builder_of(const struct tr_actor *actor, const struct tr_message *message) {
        switch (message->kind) {
        case TR_MESSAGE_INIT:
                if (actor->replica)
                        return tr_operations_build_init;
                return actor->program ? build_main : build_init;
        case TR_MESSAGE_CLOSE:
                return actor->replica ? tr_operations_build_dispose : build_close;
        default:
                return actor->replica ? tr_operations_build_call : build_handler;
        }
}

void tr_call(struct tr_vm *vm, struct tr_message *message) {
        bool too_large = false;
        struct tr_task *task;
        int status, count;

        task = tr_task_new(vm, message, true);
        if (!task) {
                decline(vm, message, tr_failure_new(TR_CODE_NO_MEMORY, "out of memory"));
                return;
        }
        task->cargo = tr_message_take_cargo(message);
        vm->alloc.margin_bytes = vm->alloc.max_bytes / MARGIN_DIVISOR;
        status = tr_task_build(vm, task, builder_of(vm->actor, message), &count);
        vm->alloc.margin_bytes = 0;
        /* where the arguments were not taken it goes the way of the message, back to who sent it */
        if (status == LUA_OK && count > 0)
                tr_cargo_free(task->cargo);
        else
                tr_message_put_cargo(message, task->cargo);
        task->cargo = NULL;
        if (vm->alloc.exceeded) {
                too_large = true;
                vm->alloc.exceeded = false;
        }
        if (status != LUA_OK) {
                tr_task_free(vm, task);
                decline_arguments(vm, message, too_large || status == LUA_ERRMEM);
        } else if (count == 0) {
                skip(vm, task);
        } else {
                tr_task_run(vm, task, count);
        }
}
