/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `task` and `delay`: calls that are kept on disk, and outlive whoever makes them.
 *
 * Both answer a promise of the task's id, which is fulfilled when it is on disk.
 */

#include "daemon/script/durable.h"

#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/system.h"
#include "daemon/core/task.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/option.h"
#include "daemon/script/request.h"
#include "daemon/script/timers.h"
#include "daemon/script/transfer.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* Arguments of `task`; those of `delay` have the time in front of them. */
enum {
        COMPONENT = 1,
        OPERATION,
        INPUT,
        OPTIONS,
};

struct durable {
        const char *function;
        const char *component, *operation;
        size_t component_len, operation_len;
        const char *instance, *id, *key, *trace;
        uint64_t delay_ns, expires_ns;
        int64_t at_ms;
};

static const struct tr_script_option known[] = {
        { "instance", TR_SCRIPT_OPTION_NAME, offsetof(struct durable, instance) }, /* which core refuses, as it does elsewhere */
        { "id", TR_SCRIPT_OPTION_TEXT, offsetof(struct durable, id) },
        { "key", TR_SCRIPT_OPTION_TEXT, offsetof(struct durable, key) },
        { "trace", TR_SCRIPT_OPTION_LABEL, offsetof(struct durable, trace) },
        { "expires", TR_SCRIPT_OPTION_TIME, offsetof(struct durable, expires_ns) },
        /* When it is due, last: `delay` says so itself. */
        { "delay", TR_SCRIPT_OPTION_TIME, offsetof(struct durable, delay_ns) },
        { "at", TR_SCRIPT_OPTION_MOMENT, offsetof(struct durable, at_ms) },
};

#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))
#define KNOWN_OF_DUE 2

static void check_arguments(lua_State *L, struct durable *durable, size_t known_count) {
        const char *function = durable->function;

        durable->component = tr_script_request_check_name(L, COMPONENT, function, "the name of a component", &durable->component_len);
        durable->operation = tr_script_request_check_name(L, OPERATION, function, "the name of an operation", &durable->operation_len);
        if (lua_isnil(L, OPTIONS))
                return;
        if (!lua_istable(L, OPTIONS))
                tr_value_misuse(L, function, OPTIONS, "a table of options");
        tr_script_options_read(L, OPTIONS, function, known, known_count, durable);
        if (durable->trace && !tr_traceparent_is_valid(durable->trace, strlen(durable->trace)))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: the option `trace` wants a traceparent", function);
}

static size_t length(const char *text) {
        return text ? strlen(text) : 0;
}

/* Who asks is whom the actor belongs to, and the process that it is in. */
static struct tr_task_options options_of(const struct tr_vm *vm, const struct durable *durable) {
        const struct tr_target *own = &vm->actor->target;

        return (struct tr_task_options){
                .instance = durable->instance,
                .instance_len = length(durable->instance),
                .id = durable->id,
                .id_len = length(durable->id),
                .key = durable->key,
                .key_len = length(durable->key),
                .trace = durable->trace,
                .trace_len = length(durable->trace),
                .delay_ms = durable->delay_ns / TR_NS_PER_MS,
                .at_ms = durable->at_ms,
                .expires_ms = durable->expires_ns / TR_NS_PER_MS,
                .uid = own->owner_uid,
                .gid = getgid(),
                .pid = own->owner_pid ? own->owner_pid : getpid(),
        };
}

/* Hands the message over. NULL, or why not, and the message is still the caller's. */
static struct tr_failure *hand_over(const struct tr_vm *vm, const struct durable *durable, struct tr_message *message) {
        const struct tr_task_options options = options_of(vm, durable);
        struct tr_component *component =
                tr_component_find(vm->actor->target.system, durable->component, durable->component_len);
        struct tr_failure *failure;

        failure = component ? tr_task_accept(component, &options, message)
                            : tr_failure_new(TR_CODE_NOT_FOUND, "there is no component %s", durable->component);
        tr_component_unref(component);
        return failure;
}

/* Answers a promise. What the task is part of and when it is due stand in `durable`; the options may say otherwise. */
static int keep(lua_State *L, struct durable *durable, size_t known_count) {
        const char *trace = durable->trace;
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_message *message;
        struct tr_failure *failure;

        durable->trace = NULL;
        lua_settop(L, OPTIONS);
        check_arguments(L, durable, known_count);
        if (!durable->trace)
                durable->trace = trace;
        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, INPUT, 1, TR_FORM_TYPED, "the input", &vm->scratch);
        message = tr_script_request_new(L, durable->operation, durable->operation_len, vm->scratch.len);
        failure = hand_over(vm, durable, message);
        if (!failure)
                tr_transfer_empty(L);
        tr_script_request_made(message, failure);
        tr_vm_trim_scratch(vm);
        return 1;
}

static int keep_task(lua_State *L, const char *trace) {
        struct durable durable = { .function = "task", .trace = trace };

        tr_module_refuse_at_top_level(L, "task");
        return keep(L, &durable, KNOWN_COUNT);
}

static int keep_delayed(lua_State *L, const char *trace) {
        struct durable durable = { .function = "delay", .trace = trace };

        tr_module_refuse_at_top_level(L, "delay");
        durable.delay_ns = tr_timers_check_ns(L, 1, "delay");
        lua_remove(L, 1);
        return keep(L, &durable, KNOWN_COUNT - KNOWN_OF_DUE);
}

/* task(component, operation, input, options) */
static int library_task(lua_State *L) {
        return keep_task(L, NULL);
}

/* delay(ms, component, operation, input, options) */
static int library_delay(lua_State *L) {
        return keep_delayed(L, NULL);
}

int tr_durable_task_in_chain(lua_State *L) {
        return keep_task(L, lua_tostring(L, lua_upvalueindex(1)));
}

int tr_durable_delay_in_chain(lua_State *L) {
        return keep_delayed(L, lua_tostring(L, lua_upvalueindex(1)));
}

const luaL_Reg tr_durable_functions[] = {
        { "delay", library_delay },
        { "task", library_task },
        { NULL, NULL },
};
