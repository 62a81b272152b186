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
#include "daemon/script/request.h"
#include "daemon/script/transfer.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

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
        const char *instance, *id, *trace, *sort, *after;
        uint64_t timeout_ns;
        uint32_t limit;
        bool has_where;
};

static const struct tr_script_option known[] = {
        { "instance", TR_SCRIPT_OPTION_NAME, offsetof(struct call, instance) },
        { "id", TR_SCRIPT_OPTION_TEXT, offsetof(struct call, id) },
        { "timeout", TR_SCRIPT_OPTION_TIME, offsetof(struct call, timeout_ns) },
        { "trace", TR_SCRIPT_OPTION_LABEL, offsetof(struct call, trace) },
        { "where", TR_SCRIPT_OPTION_TABLE, offsetof(struct call, has_where) },
        { "sort", TR_SCRIPT_OPTION_TEXT, offsetof(struct call, sort) },
        { "limit", TR_SCRIPT_OPTION_COUNT, offsetof(struct call, limit) },
        { "after", TR_SCRIPT_OPTION_TEXT, offsetof(struct call, after) },
};

static void check_arguments(lua_State *L, struct call *call) {
        call->component = tr_script_request_check_name(L, COMPONENT, "call", "the name of a component", &call->component_len);
        call->operation = tr_script_request_check_name(L, OPERATION, "call", "the name of an operation", &call->operation_len);
        if (lua_isnoneornil(L, OPTIONS))
                return;
        if (!lua_istable(L, OPTIONS))
                tr_value_misuse(L, "call", OPTIONS, "a table of options");
        TR_SCRIPT_OPTIONS_READ(L, OPTIONS, "call", known, call);
        if (call->trace && !tr_traceparent_is_valid(call->trace, strlen(call->trace)))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "call: the option `trace` wants a traceparent");
}

/* Who calls is whom the actor belongs to, and the process that it is in. */
static struct tr_call_options options_of(const struct tr_vm *vm, const struct call *call, const uint8_t *where, size_t where_bytes) {
        const struct tr_target *own = &vm->actor->target;

        return (struct tr_call_options){
                .instance = call->instance,
                .instance_len = call->instance ? strlen(call->instance) : 0,
                .id = call->id,
                .id_len = call->id ? strlen(call->id) : 0,
                .trace = call->trace,
                .trace_len = call->trace ? strlen(call->trace) : 0,
                .timeout_ns = call->timeout_ns,
                .where = where_bytes > 0 ? where : NULL,
                .where_bytes = where_bytes,
                .sort = call->sort,
                .sort_len = call->sort ? strlen(call->sort) : 0,
                .limit = call->limit,
                .after = call->after,
                .after_len = call->after ? strlen(call->after) : 0,
                .uid = own->owner_uid,
                .gid = getgid(),
                .pid = own->owner_pid ? own->owner_pid : getpid(),
        };
}

/* Hands the message over. NULL, or why not, and the message is still the caller's. */
static struct tr_failure *hand_over(const struct tr_vm *vm, const struct call *call, const struct tr_call_options *options,
                                    struct tr_message *message) {
        struct tr_component *component =
                tr_component_find(vm->actor->target.system, call->component, call->component_len);
        struct tr_failure *failure;

        failure = component ? tr_component_call(component, message, options)
                            : tr_failure_new(TR_CODE_NOT_FOUND, "there is no component %s", call->component);
        tr_component_unref(component);
        return failure;
}

/* Answers a promise. `trace` is what the call is part of where its options name none. */
static int invoke(lua_State *L, const char *trace) {
        struct tr_vm *vm = tr_vm_of(L);
        struct call call = { 0 };
        struct tr_call_options options;
        struct tr_message *message;
        struct tr_failure *failure;
        size_t input_bytes, where_bytes = 0;

        tr_module_refuse_at_top_level(L, "call");
        lua_settop(L, OPTIONS);
        check_arguments(L, &call);
        if (!call.trace)
                call.trace = trace;
        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, INPUT, 1, TR_FORM_TYPED, "the input", &vm->scratch);
        input_bytes = vm->scratch.len;
        if (call.has_where)
                where_bytes = tr_script_request_encode_where(L, OPTIONS);
        message = tr_script_request_new(L, call.operation, call.operation_len, input_bytes);
        options = options_of(vm, &call, vm->scratch.data + input_bytes, where_bytes);
        failure = hand_over(vm, &call, &options, message);
        if (!failure)
                tr_transfer_empty(L);
        tr_script_request_made(message, failure);
        tr_vm_trim_scratch(vm);
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

        name = tr_script_request_check_name(L, 1, "instances", "the name of a component", &len);
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
