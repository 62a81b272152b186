/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `call` and `instances`: components, called by their name.
 *
 * A call is a message that is asked and never posted (core/invocation.h). Its input is in the protocol's typed form, whoever answers,
 * and so is what is answered: a replica may be a process. What is to be handed over is copied.
 */

#include "daemon/script/invoke.h"

#include <string.h>
#include <unistd.h>

#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/system.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/option.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

/* Arguments of `call`. */
enum {
        COMPONENT = 1,
        OPERATION,
        INPUT,
        OPTIONS,
};

struct call {
        const char *component, *operation;
        size_t component_len, operation_len;
        const char *instance, *id, *trace;
        uint64_t timeout_ns;
};

static const struct tr_script_option known[] = {
        { "instance", TR_SCRIPT_OPTION_NAME, offsetof(struct call, instance) },
        { "id", TR_SCRIPT_OPTION_LABEL, offsetof(struct call, id) },
        { "timeout", TR_SCRIPT_OPTION_TIME, offsetof(struct call, timeout_ns) },
        { "trace", TR_SCRIPT_OPTION_LABEL, offsetof(struct call, trace) },
};

static const char *check_name(lua_State *L, int index, const char *function, const char *wanted, size_t *ret_len) {
        const char *name = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, ret_len) : NULL;

        if (!name || !tr_name_is_valid(name, *ret_len))
                tr_value_misuse(L, function, index, wanted);
        return name;
}

static void check_arguments(lua_State *L, struct call *call) {
        call->component = check_name(L, COMPONENT, "call", "the name of a component", &call->component_len);
        call->operation = check_name(L, OPERATION, "call", "the name of an operation", &call->operation_len);
        if (lua_isnoneornil(L, OPTIONS))
                return;
        if (!lua_istable(L, OPTIONS))
                tr_value_misuse(L, "call", OPTIONS, "a table of options");
        TR_SCRIPT_OPTIONS_READ(L, OPTIONS, "call", known, call);
        if (call->trace && !tr_traceparent_is_valid(call->trace, strlen(call->trace)))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "call: the option `trace` wants a traceparent");
}

/* The message, which nobody has posted: with the encoded input, and the promise as what is asked. NULL where memory is short. */
static struct tr_message *new_message(lua_State *L, const struct call *call, uint64_t id) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_message *message;

        message = tr_message_new(TR_MESSAGE_HANDLER, call->operation, call->operation_len, vm->scratch.data, vm->scratch.len, 1);
        tr_vm_trim_scratch(vm);
        if (!message)
                return NULL;
        message->caller_uid = vm->actor->target.owner_uid;
        tr_outstanding_ask(vm, id, message, NULL);
        message->form = TR_FORM_TYPED;
        return message;
}

/* Who calls is whom the actor belongs to, and the process that it is in. */
static struct tr_call_options options_of(const struct tr_vm *vm, const struct call *call) {
        const struct tr_target *own = &vm->actor->target;

        return (struct tr_call_options){
                .instance = call->instance,
                .instance_len = call->instance ? strlen(call->instance) : 0,
                .id = call->id,
                .id_len = call->id ? strlen(call->id) : 0,
                .trace = call->trace,
                .trace_len = call->trace ? strlen(call->trace) : 0,
                .timeout_ns = call->timeout_ns,
                .uid = own->owner_uid,
                .gid = getgid(),
                .pid = own->owner_pid ? own->owner_pid : getpid(),
        };
}

/* Hands the message over. NULL, or why not, and the message is still the caller's. */
static struct tr_failure *hand_over(const struct tr_vm *vm, const struct call *call, struct tr_message *message) {
        const struct tr_call_options options = options_of(vm, call);
        struct tr_component *component =
                tr_component_find(vm->actor->target.system, call->component, call->component_len);
        struct tr_failure *failure;

        failure = component ? tr_component_call(component, message, &options)
                            : tr_failure_new(TR_CODE_NOT_FOUND, "there is no component %s", call->component);
        tr_component_unref(component);
        return failure;
}

/* Answers a promise. `trace` is what the call is part of where its options name none. */
static int invoke(lua_State *L, const char *trace) {
        struct tr_vm *vm = tr_vm_of(L);
        struct call call = { 0 };
        struct tr_promise *promise;
        struct tr_message *message;
        struct tr_failure *failure;

        tr_module_refuse_at_top_level(L, "call");
        lua_settop(L, OPTIONS);
        check_arguments(L, &call);
        if (!call.trace)
                call.trace = trace;
        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, INPUT, 1, TR_FORM_TYPED, "the input", &vm->scratch);
        promise = tr_promise_new(L, true, 0);
        promise->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_ASK);
        message = new_message(L, &call, promise->pending_id);
        if (!message) {
                tr_outstanding_take(L, promise->pending_id);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        failure = hand_over(vm, &call, message);
        if (!failure) {
                tr_transfer_empty(L);
                return 1;
        }
        /* refused or not, the answer comes through the mailbox */
        tr_message_reject(message, failure, TR_RAN_NO);
        tr_failure_unref(failure);
        tr_message_unref(message);
        return 1;
}

/* call(component, operation, input, options) */
static int library_call(lua_State *L) {
        return invoke(L, NULL);
}

int tr_invoke_in_chain(lua_State *L) {
        return invoke(L, lua_tostring(L, lua_upvalueindex(1)));
}

/* instances(component) */
static int library_instances(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_component *component;
        const char *name;
        size_t len = 0;

        name = check_name(L, 1, "instances", "the name of a component", &len);
        component = tr_component_find(vm->actor->target.system, name, len);
        if (!component)
                tr_script_raise(L, TR_CODE_NOT_FOUND, "there is no component %s", name);
        tr_writer_reset(&vm->scratch);
        tr_component_write_instances(component, &vm->scratch);
        tr_component_unref(component);
        if (tr_writer_error(&vm->scratch) != 0)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        tr_codec_decode(L, vm->scratch.data, vm->scratch.len, 1, false, NULL);
        return 1;
}

const luaL_Reg tr_invoke_functions[] = {
        { "call", library_call },
        { "instances", library_instances },
        { NULL, NULL },
};
