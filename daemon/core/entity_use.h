/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_ENTITY_USE_H
#define TR_CORE_ENTITY_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/entity_turn.h"
#include "daemon/core/store.h"
#include "proto/value.h"

struct tr_call_options;
struct tr_component;
struct tr_delivery;
struct tr_failure;
struct tr_invocation;
struct tr_message;
struct tr_operation;
struct tr_replica;
struct tr_target;

/*
 * What a call has to do with entities: which it reads before it is delivered, and what is written when it was answered. It stands beside
 * the invocation, of an observation that names one or gets a list, of each transition and each assignment; other calls have none.
 *
 *      picked --read--> delivered --answered--> written --> the caller is answered
 *         ^                                        |
 *         \-------------- conflict ----------------/
 *
 * What is read is read for each delivery, behind all that was written before: it is what is there then. There is one job at a
 * time, and as long as it is the store's it has a reference to the call. A call that somebody settles meanwhile goes
 * on: what a replica has done is written, and only its answer is late.
 */

/* Runs of one call whose changes came too late, before that is its answer. */
#define TR_ENTITY_RUNS_MAX 16

struct tr_entity_use {
        struct tr_invocation *invocation; /* borrowed: it owns this */
        struct tr_entity_turn turn;       /* guarded by the component's lock */
        bool is_new;        /* its id was made for it, and nobody has it */
        uint32_t conflicts; /* runs that have come too late */
        struct tr_store_job job;
        /* Of a list: what is asked for. */
        char *sort, *after;
        uint8_t *where;
        /* While it is read: whom it is delivered to, strong. */
        struct tr_replica *replica;
        struct tr_target *target;
        uint8_t fresh[6 + TR_STORE_ID_LEN]; /* is_new: what a transition gets */
        /* While it is written. */
        struct tr_writer output;  /* what the caller is answered, as he gets it */
        struct tr_writer changes;
};

/* What a delivery has of it. */
struct tr_entity_handed {
        const uint8_t *data; /* the entity, nil, or the array; NULL: it gets none */
        size_t bytes;
        uint8_t *memory;     /* that it is in; freed with the delivery */
        uint64_t version;    /* of the entity; 0: there is none */
};

/* Whether what a call asks of entities can be had: NULL, or why not (bad-request, store). */
struct tr_failure *tr_entity_use_check(const struct tr_component *component, const struct tr_operation *operation,
                                       const struct tr_call_options *options);
/* Stands beside an invocation whose operation and id are known, where it is to; an id is made where one is needed. NULL or why not
 * (no-memory, internal), with nothing made. */
struct tr_failure *tr_entity_use_make(struct tr_invocation *invocation, const struct tr_call_options *options);
/* NULL is fine. */
void tr_entity_use_free(struct tr_entity_use *use);

/* Between the files of core that make up a component. No lock held. */

/* The call was picked: reads what it is to be delivered with. True where that is under way: it goes on in tr_component_deliver(), and
 * all three are taken; false where nothing is to be read, and nothing is taken. */
bool tr_entity_use_read(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_target *take_target);
/* What was read becomes the delivery's. */
void tr_entity_use_hand(struct tr_invocation *invocation, struct tr_entity_handed *ret_handed);
/* A delivery was answered: the caller is, now or when what has changed is written. */
void tr_entity_use_answered(struct tr_delivery *delivery, const void *value, size_t bytes);

#endif
