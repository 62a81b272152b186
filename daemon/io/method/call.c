/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call component, operation, input, {...}?: the operation's output. Its deadline is the call's own, which the component keeps, since that
 * knows what a call has come to.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/base/clock.h"
#include "daemon/core/invocation.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/option.h"
#include "daemon/io/reply.h"

struct call_options {
        struct tr_text instance;
        struct tr_text id;
        uint64_t timeout_ns;
        struct tr_text trace;
        struct tr_chosen_options reply;
        struct tr_items where; /* which entities an operation of the scope `entries` gets */
        struct tr_text sort;
        uint32_t limit;
        struct tr_text after;
};

static const struct tr_option options[] = {
        { "instance", TR_OPTION_NAME, offsetof(struct call_options, instance) },
        { "id", TR_OPTION_ID, offsetof(struct call_options, id) },
        { "timeout", TR_OPTION_TIME, offsetof(struct call_options, timeout_ns) },
        { "trace", TR_OPTION_TEXT, offsetof(struct call_options, trace) },
        { "reply", TR_OPTION_CHOSEN, offsetof(struct call_options, reply) },
        { "where", TR_OPTION_MAP, offsetof(struct call_options, where) },
        { "sort", TR_OPTION_FIELD, offsetof(struct call_options, sort) },
        { "limit", TR_OPTION_COUNT, offsetof(struct call_options, limit) },
        { "after", TR_OPTION_ID, offsetof(struct call_options, after) },
};

static struct tr_failure *read_options(struct tr_request *request, struct call_options *chosen) {
        struct tr_failure *failure = TR_OPTIONS_READ(request, 3, options, chosen);
        if (!failure && chosen->trace.data && !tr_traceparent_is_valid(chosen->trace.data, chosen->trace.len))
                failure = tr_failure_new(TR_CODE_BAD_REQUEST, "call: the option trace has to be a traceparent (W3C Trace Context)");
        return failure;
}

static struct tr_failure *write_where(struct tr_writer *where, const struct tr_items *items) {
        tr_write_map(where, items->count);
        tr_write_raw(where, items->data, items->bytes);
        return tr_writer_error(where) ? tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the call") : NULL;
}

/* Makes it pending. Of a notification without a reply nobody hears. */
static struct tr_failure *expect(struct tr_request *request, struct tr_message *message, const struct tr_chosen_options *reply) {
        message->form = TR_FORM_TYPED;
        if (reply->method.data)
                return tr_reply_expect(request, message, reply, TR_NEVER);
        return tr_request_expect(request, message, TR_NEVER);
}

/* What the component says. Of a request that has a reply that is the outcome; else its answer. */
static struct tr_failure *refuse(struct tr_request *request, struct tr_message *message, bool reply, struct tr_failure *take_failure) {
        if (reply) {
                tr_message_reject(message, take_failure, TR_RAN_NO);
                tr_failure_unref(take_failure);
                return NULL;
        }
        tr_request_retract(request, message);
        return take_failure;
}

/* `where` is written with its head again, of which there may be none where it came as an empty array. */
static struct tr_failure *call(struct tr_request *request, struct tr_component *component, const struct call_options *chosen,
                               const struct tr_writer *where, struct tr_message *message) {
        const struct tr_peer *peer = &request->connection->peer;
        const struct tr_call_options call = {
                .instance = chosen->instance.data,
                .instance_len = chosen->instance.len,
                .id = chosen->id.data,
                .id_len = chosen->id.len,
                .trace = chosen->trace.data,
                .trace_len = chosen->trace.len,
                .timeout_ns = chosen->timeout_ns == TR_NEVER ? 0 : chosen->timeout_ns,
                .where = chosen->where.data ? where->data : NULL,
                .where_bytes = where->len,
                .sort = chosen->sort.data,
                .sort_len = chosen->sort.len,
                .limit = chosen->limit,
                .after = chosen->after.data,
                .after_len = chosen->after.len,
                .uid = peer->uid,
                .gid = peer->gid,
                .pid = peer->pid,
        };
        struct tr_failure *failure = expect(request, message, &chosen->reply);
        if (failure)
                return failure;
        failure = tr_component_call(component, tr_message_ref(message), &call);
        if (!failure)
                return NULL;
        failure = refuse(request, message, chosen->reply.method.data, failure);
        tr_message_unref(message); /* the one that was not taken */
        return failure;
}

struct tr_failure *tr_method_call(struct tr_request *request) {
        struct call_options chosen = { .timeout_ns = request->connection->timeout_ns };
        TR_CLEANUP(tr_component_unref_cleanup_) struct tr_component *component = NULL;
        struct tr_message *message = NULL;
        struct tr_writer where = TR_WRITER_INIT;
        struct tr_failure *failure = read_options(request, &chosen);
        if (!failure && chosen.where.data)
                failure = write_where(&where, &chosen.where);
        if (!failure)
                failure = tr_request_call(request, &message);
        if (!failure)
                failure = tr_request_component(request, 0, &component);
        if (!failure)
                failure = call(request, component, &chosen, &where, message);
        tr_message_unref(message);
        tr_writer_deinit(&where);
        return failure;
}
