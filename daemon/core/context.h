/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_CONTEXT_H
#define TR_CORE_CONTEXT_H

#include <stdint.h>

#include "daemon/core/trace.h"
#include "proto/value.h"

struct tr_invocation;
struct tr_message;
struct tr_replica;

/* What a replica is told of a call beside its input. The texts are borrowed, for as long as the delivery is there. */
struct tr_call_context {
        const char *component;
        const char *instance; /* the replica's */
        const char *id;       /* of the entity that it is for; NULL: none */
        uint64_t timeout_ms;  /* what is left of its time, at least 1; 0: it has no deadline */
        char trace[TR_TRACEPARENT_LEN + 1];
        uint32_t attempt;
        uint32_t uid, gid; /* of the caller */
        int32_t pid;
};

/* Of one attempt. Any thread. */
void tr_call_context_of(const struct tr_invocation *invocation, const struct tr_replica *replica, uint32_t attempt,
                        struct tr_call_context *ret_context);
/* The same of a delivery's message, whoever has it in hand. */
void tr_delivery_context(const struct tr_message *own, struct tr_call_context *ret_context);

/* As it goes to a connection: one map. */
void tr_call_context_write(const struct tr_call_context *context, struct tr_writer *writer);

#endif
