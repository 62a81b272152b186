/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_INVOCATION_H
#define TR_CORE_INVOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/component.h"
#include "daemon/core/entity_use.h"
#include "daemon/core/trace.h"

struct tr_replica;
struct tr_task_held;

/*
 * A call of an operation, from whoever asks to how it ends.
 *
 * What the caller made is a message (its handler the operation's name, its one argument the input), which is never posted: it is
 * the caller's pending request, with its asker, and what races for it is as for every message. Beside it stands the invocation: what
 * is known of the call while it waits and while it runs. It is freed with the message.
 *
 * Each attempt is a message of its own, the delivery, which says on whose behalf it is (tr_message.behalf): it begins only
 * where the caller's can begin, or has. So a call that was taken back, or whose time has passed, while it was queued never runs.
 */

/* What comes with a call. All of it is borrowed, and copied where it is kept. */
struct tr_call_options {
        const char *instance; /* instance_len bytes; NULL: an ordinary call */
        size_t instance_len;
        const char *id;       /* of an entity; id_len bytes, NULL: none */
        size_t id_len;
        const char *trace;    /* a traceparent; NULL: a new trace */
        size_t trace_len;
        uint64_t timeout_ns;  /* 0: the operation's, or none */
        /* Which entities an operation of the scope `entries` gets; only of such a one. */
        const uint8_t *where; /* a map, typed: fields, and what they have to be; NULL: all */
        size_t where_bytes;
        const char *sort;     /* a field; sort_len bytes, NULL: the id */
        size_t sort_len;
        uint64_t limit;       /* 0: none */
        const char *after;    /* an id; after_len bytes, NULL: from the first on */
        size_t after_len;
        uint32_t uid, gid;    /* of the caller */
        int32_t pid;
};

struct tr_invocation {
        struct tr_message *message; /* that it stands beside; borrowed: it owns this */
        struct tr_component *component; /* strong */
        struct tr_manifest *manifest;   /* strong: that it was checked against */
        const struct tr_operation *operation; /* in it */
        uint32_t line;      /* the operation's number in the manifest in effect: guarded by the component's lock */
        uint64_t sequence;  /* the same */
        uint32_t deliveries; /* the same: that have begun */
        struct tr_delivery *delivery; /* the same: in hand; NULL: it waits, or it is over */
        bool queued;         /* the same: in a line, or in a replica's queue */
        struct tr_replica *answered_by; /* the same: of the delivery that is over, strong; NULL: there was none */
        uint64_t sent_ns;               /* the same: when it went out */
        bool addressed;
        char *instance;      /* of an addressed one, or NULL */
        char *id;            /* or NULL */
        struct tr_entity_use *entity; /* what it has to do with entities; NULL: nothing */
        struct tr_task_held *task;    /* that this is a run of, strong; NULL: it is a call */
        struct tr_span_id span;
        uint64_t came_ns;
        uint64_t deadline_ns; /* TR_NEVER: none. Of a task: of the run that began last; guarded by the component's lock */
        struct tr_timer timer; /* holds a reference to the message while it is set */
        uint32_t uid, gid;
        int32_t pid;
};

/* One attempt: what a replica has in hand. */
struct tr_delivery {
        struct tr_list link;        /* in replica->in_hand; guarded by the component's lock */
        struct tr_message *message; /* the caller's; strong */
        struct tr_message *own;     /* the delivery's message; borrowed: it owns this */
        struct tr_replica *replica; /* strong */
        uint64_t sent_ns;
        uint32_t attempt;           /* of the call: 1 for the first */
        uint32_t reliefs;           /* the replica's, when it was sent */
        struct tr_entity_handed entity;
        bool over;                  /* it was accounted for; guarded by the component's lock */
};

/*
 * Makes the message, which nobody has posted, a call. Any thread, no lock held. Its asker is answered like that of any
 * message; form and asker are to be set, deadlines are kept here and not by the asker. NULL, and the message's reference is taken;
 * or why not (not-found, bad-request, contract, store, addressee, mailbox-full, loop, no-memory), to be told with ran "no", and it is
 * still the caller's. The input is checked, and may be changed, in place.
 */
struct tr_failure *tr_component_call(struct tr_component *component, struct tr_message *take_message,
                                     const struct tr_call_options *options);

/* The asker has settled it otherwise: it took it back, or has gone. What is queued is dropped; a replica that runs it is told.
 * Any thread, no lock held. Nothing for a message that is no call. */
void tr_invocation_given_up(struct tr_message *message);

/* For tr_message's end. */
void tr_invocation_free(struct tr_invocation *invocation);

/* What a replica answered, as the protocol has it: an error that the operation declares (`refused`), one that it does not (`contract`,
 * its subject `error`). `data` is one value in the typed form, or NULL. For ops of targets that are replicas; a new reference. */
struct tr_failure *tr_operation_error(const struct tr_operation *operation, const char *error, size_t error_len, const void *data,
                                      size_t data_bytes);

/* The delivery's operation; NULL where the message is none. Borrowed for as long as the message is. */
const struct tr_operation *tr_delivery_operation(const struct tr_message *message);

/* Between the files of core that make up a component. No lock held. */

/* Answers the caller, unless somebody else has settled it: where it had begun with ran_begun, else with "no". */
void tr_invocation_reject(struct tr_message *message, struct tr_failure *failure, enum tr_ran ran_begun);
/* The same with the output: one value in the typed form, which is checked. */
void tr_invocation_resolve(struct tr_message *message, const void *value, size_t bytes);
/* That in two steps. The output, checked, in the form in which the caller gets it: NULL and what is written to ret_answer, an empty writer
 * (nothing: it goes as it is), or what is wrong with it; then the answer with that. */
struct tr_failure *tr_invocation_make_answer(const struct tr_message *message, const void *value, size_t bytes,
                                             struct tr_writer *ret_answer);
void tr_invocation_answer(struct tr_message *message, const void *value, size_t bytes);
/* `contract`: a subject, where in it (a JSON Pointer) and what is wrong there; `what` is whose. */
struct tr_failure *tr_contract_failure(const char *subject, const char *path, const char *reason, const char *what);
/* The failure of a call whose name nobody holds. A new reference. */
struct tr_failure *tr_addressee_failure(const struct tr_component *component, const char *instance, size_t len);
/* Into a list of calls, where its sequence has it. */
void tr_invocation_put(struct tr_list *calls, struct tr_invocation *invocation);
/* In a line, or in a replica's own queue (NULL: in its line), by its sequence, so that one that comes back is first. The queue gets a
 * reference. Nothing where it was settled meanwhile. */
void tr_invocation_enqueue_locked(struct tr_component *component, struct tr_invocation *invocation, struct tr_replica *replica)
        TR_REQUIRES(component->lock);
/* Out of its queue, on the way to a replica or because it is over. The queue's reference is the caller's. */
void tr_invocation_dequeue_locked(struct tr_component *component, struct tr_invocation *invocation) TR_REQUIRES(component->lock);
/* From now on its deadline is noticed. Where that cannot be it is rejected. */
void tr_invocation_set_deadline(struct tr_invocation *invocation);
/* Makes a message that nobody has seen a run of a task, at that depth in its chain. NULL, or why not (contract, no-memory). */
struct tr_failure *tr_invocation_make_task(struct tr_component *component, struct tr_manifest *manifest,
                                           const struct tr_operation *operation, struct tr_message *message,
                                           const struct tr_call_options *options, uint32_t depth, struct tr_task_held *held);
/* Of a call or a task: whether it may name an instance, or has to; whether its input, which may be changed, is what the operation takes. */
struct tr_failure *tr_operation_check_addressing(const struct tr_operation *operation, const struct tr_call_options *options);
struct tr_failure *tr_operation_check_input(const struct tr_operation *operation, struct tr_message *message);
/* Takes a delivery back that has not begun, or could not, and accounts for it. False where it has begun, or is over. */
bool tr_delivery_withdraw(struct tr_message *own);
/* A call that was picked: what it is to be delivered with is there, or could not be had. */
void tr_component_deliver(struct tr_message *take_call, struct tr_replica *take_replica, struct tr_target *target,
                          struct tr_failure *failure);
/* What it has changed came too late: it is first in its queue again. */
void tr_component_run_again(struct tr_message *call);
/* Something that a call has changed is being written, and the component does not end; or it is not any more. */
void tr_component_begin_write(struct tr_component *component);
void tr_component_end_write(struct tr_component *component);
/* It has changed its entity, or does not. */
void tr_component_end_turn(struct tr_invocation *invocation);
/* An answer that settled nothing; a call that goes to another replica. */
void tr_component_count_late(struct tr_component *component, const char *operation);
void tr_component_count_redelivered(struct tr_component *component, const char *operation);

#endif
