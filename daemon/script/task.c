/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tasks: how the actor's code is run, and what becomes of what it comes to.
 *
 * A task keeps its coroutine when it is done and waits among the idle ones for the next message, so that a handler
 * costs neither a coroutine nor anything else to be collected. The last used is used first: an actor without
 * asynchronous handlers always works on the same one.
 *
 * A coroutine that was stopped (kill.c) is never used again, since the actor dies of it; of what a handler raised it does so too. What an
 * operation of a component raised is its call's answer: its coroutine is reset, and used again.
 */

#include "daemon/script/task.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/invocation.h"
#include "daemon/script/codec.h"
#include "daemon/script/context.h"
#include "daemon/script/coroutine.h"
#include "daemon/script/entities.h"
#include "daemon/script/kill.h"
#include "daemon/script/operations.h"
#include "daemon/script/promise.h"
#include "daemon/script/timers.h"

/* How many tasks wait for the next message; what a burst of asynchronous handlers made beyond that is given back. */
#define IDLE_MAX 16

static const uint8_t encoded_nil = 0xc0;

const char *tr_task_handler(const struct tr_vm *vm, const struct tr_task *task) {
        if (!task->message)
                return task->name;
        switch (task->message->kind) {
        case TR_MESSAGE_INIT:
                return "init";
        case TR_MESSAGE_CLOSE:
                return vm->actor->replica ? "dispose" : "close";
        default:
                return tr_message_handler(task->message);
        }
}

/* Whether it runs an operation of a component. */
static bool is_call(const struct tr_vm *vm, const struct tr_task *task) {
        return vm->actor->replica && task->message && task->message->kind == TR_MESSAGE_HANDLER;
}

/* coming and going */

static int new_coroutine(lua_State *L) {
        struct tr_task *task = lua_touserdata(L, 1);
        lua_State *co = lua_newthread(L);

        task->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
        task->co = co;
        return 0;
}

static int drop_coroutine(lua_State *L) {
        const struct tr_task *task = lua_touserdata(L, 1);

        luaL_unref(L, LUA_REGISTRYINDEX, task->anchor);
        return 0;
}

struct tr_task *tr_task_new(struct tr_vm *vm, struct tr_message *message, bool may_await) {
        struct tr_task *task = tr_list_first(&vm->idle, struct tr_task, link);

        if (task) {
                tr_list_unlink(&task->link);
                vm->idle_count--;
        } else {
                task = calloc(1, sizeof(*task));
                if (!task)
                        return NULL;
                tr_list_init(&task->link);
                tr_list_init(&task->wait_link);
                if (tr_vm_protect(vm, new_coroutine, task) != LUA_OK) {
                        lua_pop(vm->L, 1);
                        free(task);
                        return NULL;
                }
        }
        task->message = message;
        task->name = NULL;
        task->may_await = may_await;
        task->changes = false;
        task->cargo = NULL;
        task->recurring = NULL;
        tr_list_append(&vm->tasks, &task->link);
        return task;
}

void tr_task_change(lua_State *L, struct tr_task *task) {
        task->changes = true;
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, task);
}

/* As it is: taking a key's value away allocates nothing, and nothing can be raised. */
static void forget_change(struct tr_vm *vm, struct tr_task *task) {
        if (!task->changes)
                return;
        task->changes = false;
        lua_pushnil(vm->L);
        lua_rawsetp(vm->L, LUA_REGISTRYINDEX, task);
}

void tr_task_free(struct tr_vm *vm, struct tr_task *task) {
        tr_list_unlink(&task->link);
        tr_list_unlink(&task->wait_link);
        forget_change(vm, task);
        lua_settop(task->co, 0);
        if (vm->idle_count < IDLE_MAX) {
                tr_list_prepend(&vm->idle, &task->link);
                vm->idle_count++;
                return;
        }
        if (tr_vm_protect(vm, drop_coroutine, task) != LUA_OK)
                lua_pop(vm->L, 1);
        free(task);
}

static void free_list(struct tr_list *tasks) {
        struct tr_task *task;

        tr_list_for_each(task, tasks, link) {
                tr_list_unlink(&task->link);
                free(task);
        }
}

void tr_tasks_free(struct tr_vm *vm) {
        free_list(&vm->tasks);
        free_list(&vm->idle);
}

/* how a task ends */

void tr_vm_fault(struct tr_vm *vm) {
        if (tr_actor_is_killed(vm->actor)) {
                lua_pop(vm->L, 1);
                return;
        }
        tr_actor_fault(vm->actor, NULL, tr_script_fault_of(vm, vm->L, NULL, false));
}

/* Runs what the failed coroutine still has to close; the fault has been described before. */
static void close_failed(struct tr_vm *vm, lua_State *co) {
        vm->running = co;
        lua_resetthread(co);
        vm->running = vm->L;
}

/* What a wrapped coroutine failed with is told. As it is: nothing is allocated and nothing can be raised. */
static void forget_wrapped(lua_State *L) {
        lua_pushboolean(L, false);
        tr_vm_pin(L, TR_PIN_WRAP_FAILED);
        lua_pushboolean(L, false);
        tr_vm_pin(L, TR_PIN_WRAP_TRACE);
}

static bool is_of_heap(const struct tr_failure *failure) {
        static const char heap[] = "heap";
        const char *kind;
        size_t len;

        return tr_failure_find_text(failure, "kind", &kind, &len) && len == strlen(heap) && memcmp(kind, heap, len) == 0;
}

/* The code raised what is on top of its coroutine, or was stopped at the ceiling. */
static void fault(struct tr_vm *vm, struct tr_task *task, bool stopped) {
        struct tr_failure *failure = tr_script_fault_of(vm, task->co, tr_task_handler(vm, task), stopped);

        if (!vm->alloc.exceeded)
                close_failed(vm, task->co);
        if (!is_call(vm, task) || is_of_heap(failure) || tr_vm_is_doomed(vm)) {
                tr_actor_fault(vm->actor, task->message, failure);
                return;
        }
        vm->alloc.closing = false;
        forget_wrapped(vm->L);
        tr_actor_reject(vm->actor, task->message, failure);
        tr_task_free(vm, task);
}

/* Encodes the value at 1 as the answer to the message at 2. What is to be handed over leaves with it; a peer, who gets a copy, has to
 * be there still. */
static int encode_answer(lua_State *L) {
        struct tr_message *message = lua_touserdata(L, 2);
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_cargo *cargo;

        tr_codec_encode(L, 1, 1, (enum tr_form)message->form, "the answer", &vm->scratch);
        if (message->form == TR_FORM_INTERNAL) {
                if (!tr_transfer_pack(vm, &cargo))
                        tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory for the answer");
                tr_message_put_cargo(message, cargo);
        } else if (tr_message_state(message) != TR_MESSAGE_SETTLED) {
                tr_transfer_empty(L);
        }
        return 0;
}

/* The same for the task at 2, with what it was given to change: [output, changes]. */
static int encode_change(lua_State *L) {
        struct tr_task *task = lua_touserdata(L, 2);
        struct tr_vm *vm = tr_vm_of(L);

        tr_write_array(&vm->scratch, 2);
        tr_codec_encode(L, 1, 1, TR_FORM_TYPED, "the answer", &vm->scratch);
        if (lua_rawgetp(L, LUA_REGISTRYINDEX, task) == LUA_TNIL)
                tr_write_nil(&vm->scratch);
        else
                tr_entities_encode(L, -1, "the entity", &vm->scratch);
        if (tr_message_state(task->message) != TR_MESSAGE_SETTLED)
                tr_transfer_empty(L);
        return 0;
}

/* Encodes the value on top of the task's coroutine, which is popped, protected, with a light argument. As write_answer(). */
static int encode(struct tr_vm *vm, lua_State *co, lua_CFunction encoder, void *argument) {
        int status;

        lua_pushcfunction(co, encoder);
        lua_insert(co, -2);
        lua_pushlightuserdata(co, argument);
        vm->running = co;
        status = lua_pcall(co, 2, 0, 0);
        vm->running = vm->L;
        return status;
}

/* Writes the value on top of the task's coroutine into the scratch. Lua's status; the error is left on the coroutine.
 * What needs no protection goes without. */
static int write_answer(struct tr_vm *vm, struct tr_task *task) {
        lua_State *co = task->co;

        tr_writer_reset(&vm->scratch);
        if (task->changes)
                return encode(vm, co, encode_change, task);
        switch (lua_type(co, -1)) {
        case LUA_TNIL:
                tr_write_nil(&vm->scratch);
                return LUA_OK;
        case LUA_TBOOLEAN:
                tr_write_bool(&vm->scratch, lua_toboolean(co, -1));
                return LUA_OK;
        case LUA_TNUMBER:
                if (lua_isinteger(co, -1))
                        tr_write_int(&vm->scratch, lua_tointeger(co, -1));
                else
                        tr_write_float(&vm->scratch, lua_tonumber(co, -1));
                return LUA_OK;
        default:
                return encode(vm, co, encode_answer, task->message);
        }
}

/* The failure, on top of the task's coroutine, of an answer that cannot be sent: the handler ran, and the actor lives on. */
static void reject_value(struct tr_vm *vm, struct tr_task *task) {
        struct tr_failure *failure;

        if (tr_vm_is_doomed(vm)) {
                fault(vm, task, false);
                return;
        }
        lua_xmove(task->co, vm->L, 1);
        failure = tr_script_failure_of(vm->L, -1);
        lua_pop(vm->L, 1);
        tr_failure_set_ran(failure, TR_RAN_YES);
        tr_actor_reject(vm->actor, task->message, failure);
        tr_task_free(vm, task);
}

/* Encodes what the error at 1 says. */
static int encode_error_data(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        size_t len;

        tr_context_push_error_data(L, 1, &len);
        if (!lua_isnil(L, -1))
                tr_codec_encode(L, -1, 1, TR_FORM_TYPED, "the error's data", &vm->scratch);
        return 0;
}

/* Ends the call with the error that is on top of the task's coroutine. */
static void answer_with_error(struct tr_vm *vm, struct tr_task *task) {
        struct tr_writer *data = &vm->scratch;
        lua_State *co = task->co;
        struct tr_failure *failure;
        const char *name;
        size_t len;
        int status;

        tr_writer_reset(data);
        lua_pushcfunction(co, encode_error_data);
        lua_pushvalue(co, -2);
        vm->running = co;
        status = lua_pcall(co, 1, 0, 0);
        vm->running = vm->L;
        if (status != LUA_OK) {
                reject_value(vm, task);
                return;
        }
        name = tr_context_push_error_data(co, -1, &len);
        failure = tr_operation_error(tr_delivery_operation(task->message), name, len, data->len > 0 ? data->data : NULL, data->len);
        tr_failure_set_ran(failure, TR_RAN_YES);
        tr_actor_reject(vm->actor, task->message, failure);
        tr_vm_trim_scratch(vm);
        tr_task_free(vm, task);
}

/* Answers with the value on top of the task's coroutine. */
static void answer(struct tr_vm *vm, struct tr_task *task) {
        struct tr_message *message = task->message;
        struct tr_failure *failure;

        if (is_call(vm, task) && tr_context_is_error(task->co, -1)) {
                answer_with_error(vm, task);
                return;
        }
        if (!message->asker) {
                tr_actor_resolve(vm->actor, message, &encoded_nil, sizeof(encoded_nil));
                tr_task_free(vm, task);
                return;
        }
        if (write_answer(vm, task) != LUA_OK) {
                reject_value(vm, task);
                return;
        }
        if (tr_writer_error(&vm->scratch) != 0) {
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                tr_failure_set_ran(failure, TR_RAN_YES);
                tr_actor_reject(vm->actor, message, failure);
        } else {
                tr_actor_resolve(vm->actor, message, vm->scratch.data, vm->scratch.len);
        }
        tr_vm_trim_scratch(vm);
        tr_task_free(vm, task);
}

/* Answers with what the promise on top of the task's coroutine has settled to. */
static void answer_with_promise(struct tr_vm *vm, struct tr_task *task) {
        struct tr_promise *promise = tr_promise_to(task->co, -1);
        struct tr_failure *failure;

        lua_getiuservalue(task->co, -1, TR_PROMISE_VALUE);
        if (promise->state == TR_PROMISE_FULFILLED) {
                answer(vm, task);
                return;
        }
        if (is_call(vm, task)) {
                /* as if the operation had awaited it */
                fault(vm, task, false);
                return;
        }
        lua_xmove(task->co, vm->L, 1);
        failure = tr_script_failure_of(vm->L, -1);
        lua_pop(vm->L, 1);
        tr_actor_reject(vm->actor, task->message, failure);
        tr_task_free(vm, task);
}

void tr_task_lived(struct tr_vm *vm, struct tr_task *task) {
        bool is_init = task->message->kind == TR_MESSAGE_INIT;

        tr_actor_resolve(vm->actor, task->message, &encoded_nil, sizeof(encoded_nil));
        tr_task_free(vm, task);
        if (is_init && vm->actor->replica)
                tr_operations_ready(vm);
}

/* The code came to its end, with `count` values on its coroutine. The first is the answer to whoever asked. */
static void finish(struct tr_vm *vm, struct tr_task *task, int count) {
        lua_State *co = task->co;
        struct tr_recurring *recurring = task->recurring;
        struct tr_promise *promise;

        if (!task->message) {
                tr_task_free(vm, task);
                if (recurring)
                        tr_timers_ticked(vm, recurring);
                return;
        }
        if (task->message->kind != TR_MESSAGE_HANDLER) {
                tr_task_lived(vm, task);
                return;
        }
        if (count == 0)
                lua_pushnil(co);
        else
                lua_settop(co, lua_gettop(co) - count + 1);

        promise = task->message->asker && lua_type(co, -1) == LUA_TUSERDATA ? tr_promise_to(co, -1) : NULL;
        if (!promise) {
                answer(vm, task);
                return;
        }
        task->state = TR_TASK_ANSWERING;
        if (promise->state == TR_PROMISE_PENDING) {
                tr_promise_wait(promise, task);
        } else {
                tr_promise_want(co, promise);
                tr_list_append(&vm->ready, &task->wait_link);
        }
}

/* running */

int tr_task_build(struct tr_vm *vm, struct tr_task *task, lua_CFunction build, int *ret_count) {
        lua_State *co = task->co;
        int status;

        lua_pushcfunction(co, build);
        lua_pushlightuserdata(co, task);
        vm->running = co;
        status = lua_pcall(co, 1, LUA_MULTRET, 0);
        vm->running = vm->L;
        if (status == LUA_OK) {
                *ret_count = lua_gettop(co);
                return LUA_OK;
        }
        lua_xmove(co, vm->L, 1);
        return status;
}

void tr_task_run(struct tr_vm *vm, struct tr_task *task, int count) {
        int status;

        task->state = TR_TASK_RUNNING;
        vm->current = task;
        vm->running = task->co;
        /* a function and its arguments at first, nothing later */
        status = lua_resume(task->co, vm->L, count > 0 ? count - 1 : 0, &count);
        vm->running = vm->L;
        vm->current = NULL;

        /* also where it came to its end: the signal may have cut a system call short, and what came of that is no
         * answer */
        if (tr_actor_is_killed(vm->actor))
                return;
        if (status == LUA_OK && !vm->alloc.exceeded) {
                finish(vm, task, count);
        } else if (status == LUA_YIELD && vm->suspending && !vm->alloc.exceeded) {
                vm->suspending = false;
                task->state = TR_TASK_AWAITING;
                tr_coroutine_set_awaiting(task->co, true);
        } else {
                fault(vm, task, status == LUA_OK || status == LUA_YIELD);
        }
}

static void go_on(struct tr_vm *vm, struct tr_task *task) {
        if (task->state == TR_TASK_ANSWERING) {
                answer_with_promise(vm, task);
                return;
        }
        tr_coroutine_set_awaiting(task->co, false);
        tr_task_run(vm, task, 0);
}

void tr_tasks_run_ready(struct tr_vm *vm) {
        struct tr_task *task;

        while (!vm->actor->failure && !tr_vm_is_doomed(vm)) {
                if (tr_promise_run_callbacks(vm) != LUA_OK) {
                        tr_vm_fault(vm);
                        return;
                }
                task = tr_list_first(&vm->ready, struct tr_task, wait_link);
                if (!task)
                        return;
                tr_list_unlink(&task->wait_link);
                go_on(vm, task);
        }
}
