/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replica is told of a call. A connection gets it as a map (docs/protocol.md); a Lua replica makes its own table of it, since it
 * would otherwise be written by the one thread only to be read by the other.
 */
#include "daemon/core/context.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/invocation.h"
#include "daemon/core/message.h"
#include "daemon/core/replica.h"

/* More than keys, numbers, the trace, and the heads of all take. */
#define BYTES_BESIDE_TEXTS 272

static const uint8_t nil[] = { 0xc0 };

static uint64_t left_ms(uint64_t deadline_ns) {
        uint64_t now_ns = tr_clock_ns();
        uint64_t left = deadline_ns > now_ns ? (deadline_ns - now_ns) / TR_NS_PER_MS : 0;
        return left > 0 ? left : 1;
}

void tr_delivery_context(const struct tr_message *own, struct tr_call_context *ret_context) {
        const struct tr_delivery *delivery = own->ask.data;
        const struct tr_invocation *invocation = own->behalf->invocation;
        *ret_context = (struct tr_call_context){
                .component = invocation->component->target.label,
                .instance = delivery->replica->instance,
                .id = invocation->id,
                .task = invocation->task ? invocation->task->id : NULL,
                .entity = delivery->entity.data,
                .entity_bytes = delivery->entity.bytes,
                .timeout_ms = invocation->deadline_ns == TR_NEVER ? 0 : left_ms(invocation->deadline_ns),
                .attempt = delivery->attempt,
                .uid = invocation->uid,
                .gid = invocation->gid,
                .pid = invocation->pid,
        };
        if (!ret_context->entity && invocation->operation->type == TR_OPERATION_OBSERVATION) {
                ret_context->entity = nil; /* it was called for none */
                ret_context->entity_bytes = sizeof(nil);
        }
        tr_traceparent_write(&invocation->span, ret_context->trace);
}

void tr_call_context_write(const struct tr_call_context *context, struct tr_writer *writer) {
        tr_write_map(writer, 5 + (context->timeout_ms > 0) + (context->id != NULL) + (context->entity != NULL) + (context->task != NULL));
        tr_write_text(writer, "component");
        tr_write_text(writer, context->component);
        tr_write_text(writer, "instance");
        tr_write_text(writer, context->instance);
        if (context->id) {
                tr_write_text(writer, "id");
                tr_write_string(writer, context->id, strlen(context->id));
        }
        if (context->entity) {
                tr_write_text(writer, "entity");
                tr_write_raw(writer, context->entity, context->entity_bytes);
        }
        if (context->timeout_ms > 0) {
                tr_write_text(writer, "timeout");
                tr_write_uint(writer, context->timeout_ms);
        }
        tr_write_text(writer, "trace");
        tr_write_str(writer, context->trace, TR_TRACEPARENT_LEN);
        if (context->task) {
                tr_write_text(writer, "task");
                tr_write_text(writer, context->task);
        }
        tr_write_text(writer, "attempt");
        tr_write_uint(writer, context->attempt);
        tr_write_text(writer, "caller");
        tr_write_map(writer, 3);
        tr_write_text(writer, "uid");
        tr_write_uint(writer, context->uid);
        tr_write_text(writer, "gid");
        tr_write_uint(writer, context->gid);
        tr_write_text(writer, "pid");
        tr_write_int(writer, context->pid);
}

size_t tr_delivery_context_bytes_max(const struct tr_message *own) {
        const struct tr_delivery *delivery = own->ask.data;
        const struct tr_invocation *invocation = own->behalf->invocation;
        return BYTES_BESIDE_TEXTS + strlen(invocation->component->target.label) + strlen(delivery->replica->instance) +
               (invocation->id ? strlen(invocation->id) : 0) + delivery->entity.bytes;
}
