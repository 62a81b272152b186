/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_CONTEXT_H
#define TR_CORE_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/trace.h"
#include "proto/value.h"

struct tr_message;

/* What a replica is told of a call beside its input. The texts are borrowed, for as long as the delivery is there. */
struct tr_call_context {
        const char *component;
        const char *instance; /* the replica's */
        const char *id;       /* of the entity that it is for; NULL: none */
        const char *task;     /* the id of the task that this is a run of; NULL: of none */
        /* The entity, a map or nil, or the array of them; one value, as typed as it is plain. NULL: the operation gets none. */
        const uint8_t *entity;
        size_t entity_bytes;
        uint64_t timeout_ms;  /* what is left of its time, at least 1; 0: it has no deadline */
        char trace[TR_TRACEPARENT_LEN + 1];
        uint32_t attempt;
        uint32_t uid, gid; /* of the caller */
        int32_t pid;
};

/* Of a delivery's message, for whoever has it in hand. */
void tr_delivery_context(const struct tr_message *own, struct tr_call_context *ret_context);

/* As it goes to a connection: one map, which is the same in the typed form and in the plain one. */
void tr_call_context_write(const struct tr_call_context *context, struct tr_writer *writer);
/* That of a delivery is not longer than this. */
size_t tr_delivery_context_bytes_max(const struct tr_message *own);

#endif
