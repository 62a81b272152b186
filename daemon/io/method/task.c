/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task component, operation, input, {...}?: the task's id, once it is on disk. `instance` is read only so that it is refused as the contract
 * has it.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/task.h"
#include "daemon/core/trace.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"

struct task_options {
        struct tr_text instance;
        struct tr_text id;
        struct tr_text key;
        struct tr_text trace;
        uint64_t delay_ns;
        int64_t at_ms;
        uint64_t expires_ns;
};

static const struct tr_option options[] = {
        { "delay", TR_OPTION_TIME, offsetof(struct task_options, delay_ns) },
        { "at", TR_OPTION_MOMENT, offsetof(struct task_options, at_ms) },
        { "expires", TR_OPTION_TIME, offsetof(struct task_options, expires_ns) },
        { "key", TR_OPTION_ID, offsetof(struct task_options, key) },
        { "id", TR_OPTION_ID, offsetof(struct task_options, id) },
        { "trace", TR_OPTION_TEXT, offsetof(struct task_options, trace) },
        { "instance", TR_OPTION_NAME, offsetof(struct task_options, instance) },
};

static struct tr_failure *read_options(struct tr_request *request, struct task_options *chosen) {
        struct tr_failure *failure = TR_OPTIONS_READ(request, 3, options, chosen);
        if (!failure && chosen->trace.data && !tr_traceparent_is_valid(chosen->trace.data, chosen->trace.len))
                failure = tr_failure_new(TR_CODE_BAD_REQUEST, "task: the option trace has to be a traceparent (W3C Trace Context)");
        return failure;
}

struct asking {
        struct tr_component *component;
        const struct task_options *chosen;
};

static struct tr_failure *ask(const struct tr_request *request, const void *userdata, struct tr_message *take_message) {
        const struct asking *asking = userdata;
        const struct task_options *chosen = asking->chosen;
        const struct tr_peer *peer = &request->connection->peer;
        const struct tr_task_options task = {
                .instance = chosen->instance.data,
                .instance_len = chosen->instance.len,
                .id = chosen->id.data,
                .id_len = chosen->id.len,
                .key = chosen->key.data,
                .key_len = chosen->key.len,
                .trace = chosen->trace.data,
                .trace_len = chosen->trace.len,
                .delay_ms = chosen->delay_ns / TR_NS_PER_MS,
                .at_ms = chosen->at_ms,
                .expires_ms = chosen->expires_ns / TR_NS_PER_MS,
                .uid = peer->uid,
                .gid = peer->gid,
                .pid = peer->pid,
        };
        return tr_task_accept(asking->component, &task, take_message);
}

struct tr_failure *tr_method_task(struct tr_request *request) {
        struct task_options chosen = { 0 };
        struct asking asking = { .chosen = &chosen };
        struct tr_message *message;
        struct tr_failure *failure = read_options(request, &chosen);
        if (!failure)
                failure = tr_request_component(request, 0, &asking.component);
        if (failure)
                return failure;
        failure = tr_request_call(request, &message);
        if (!failure)
                failure = tr_request_hand_on(request, message, ask, &asking);
        tr_component_unref(asking.component);
        return failure;
}
