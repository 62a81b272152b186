/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_MESSAGE_H
#define TR_CORE_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/core/failure.h"
#include "daemon/core/timer.h"

struct tr_asker;
struct tr_cargo;
struct tr_invocation;
struct tr_target;

/*
 * A message on its way to one target, and the request it may be the heart of.
 *
 * Its contents are immutable once it was posted; it is one allocation, and it is
 * reference-counted. What moves is its state, one atomic:
 *
 *      queued --begin--> begun --settle--> settled
 *         \------------ settle -----------/
 *
 * Entering the handler, cancelling, a deadline, and the death of the target
 * race for it, and exactly one wins each step. Whoever moves it to `settled` is
 * the one who answers the asker (once, holding no lock), and knows from the
 * state it left whether the message had begun.
 */
enum tr_message_state {
        TR_MESSAGE_QUEUED,
        TR_MESSAGE_BEGUN,
        TR_MESSAGE_SETTLED,
};

enum tr_message_kind {
        TR_MESSAGE_HANDLER, /* runs the handler it names */
        TR_MESSAGE_INIT,    /* the constructor; args are those given to spawn */
        TR_MESSAGE_CLOSE,   /* the end of an orderly stop; its one arg is the reason */
        TR_MESSAGE_DONE,    /* waits for a target's end; never in a mailbox */
};

/* How values are written for whoever is answered. */
enum tr_form {
        TR_FORM_INTERNAL, /* between VMs */
        TR_FORM_TYPED,    /* the protocol's, with its extension types */
        TR_FORM_PLAIN,    /* the protocol's, for stock clients */
};

struct tr_message {
        _Atomic uint32_t refs;
        _Atomic uint32_t state; /* enum tr_message_state */
        uint8_t kind;           /* enum tr_message_kind */
        uint8_t form;           /* enum tr_form: of the answer, chosen by the asker */
        bool internal;          /* args are in the internal form (a VM wrote them), else as a peer sent them */
        uint8_t errors;         /* the asker's own: the form in which it wants a failure */
        bool lone;              /* a hint of the asker's: it waits for this answer, and for nothing else */
        bool timed;             /* the worker's: how long it runs is measured, and it has not ended */
        uint16_t handler_len;
        uint32_t args_count;
        uint32_t args_bytes;
        uint32_t caller_uid;
        uint32_t call_id;     /* of one that went out to a client: the request that it was. Guarded by the connection's lock */
        uint64_t cargo_bytes; /* of what it was posted with */
        /* Of one that a pool routed when it was posted; 0 of any other. Once it has begun, when that was. */
        uint64_t since_ns;
        /* What the arguments carry; later, what the answer does. Who takes it out owns it. NULL: nothing. */
        _Atomic(struct tr_cargo *) cargo;

        /* The mailbox's: its queue, then its list of what is in hand. Guarded by the mailbox's lock. */
        struct tr_list link;
        /* The running actor's: behind this one of what it took and has not begun, or has finished. Its thread only. */
        struct tr_message *next_in_hand;
        /* tr_mailbox_reject_all()'s, and its caller's. */
        struct tr_message *next_rejected;

        /* Strong; NULL for a send: nobody is told. */
        struct tr_asker *asker;
        /* The asker's own: which of its requests this is, and where it keeps it. Guarded by the asker's lock. */
        struct {
                uint64_t id;
                struct tr_message *next;   /* in its table of pending requests */
                struct tr_message **pprev;
                struct tr_timer deadline;  /* in its heap of deadlines, where it has one */
                void *data;                /* of the asker's; freed by its ops->forget */
        } ask;
        /* What this request starts (spawn), strong or NULL: the answer is its handle, and a cancel kills it. */
        struct tr_target *spawned;
        /* Of a call of an operation: what is known of it, which is its own; NULL: it is none. Set before anybody else sees it. */
        struct tr_invocation *invocation;
        /* Of a delivery: the call that it is for, borrowed, and as old as this one at least. It begins only where that can
         * begin, or has. NULL: it is none. */
        struct tr_message *behalf;

        /* handler_len bytes of the handler's name, a NUL, then args_bytes of args_count values, one behind another. */
        char data[];
};

static inline const char *tr_message_handler(const struct tr_message *message) {
        return message->data;
}

static inline const uint8_t *tr_message_args(const struct tr_message *message) {
        return (const uint8_t *)message->data + message->handler_len + 1;
}

/* What it counts as in a mailbox's limit of bytes. */
static inline size_t tr_message_bytes(const struct tr_message *message) {
        return (size_t)message->args_bytes + message->handler_len + message->cargo_bytes;
}

/* A message with copies of the handler's name and the arguments; NULL where memory is short. */
struct tr_message *tr_message_new(enum tr_message_kind kind, const char *handler, size_t handler_len, const void *args,
                                  size_t args_bytes, uint32_t args_count);
struct tr_message *tr_message_ref(struct tr_message *message);
/* NULL is fine. */
void tr_message_unref(struct tr_message *message);
/* The same for all that are chained by next_in_hand; an asker of many of them gets its references back at once. */
void tr_message_unref_chain(struct tr_message *first);

/* Before it is posted: gives it cargo, which counts in its bytes. */
void tr_message_load(struct tr_message *message, struct tr_cargo *take_cargo);
/* Who is running it: what its arguments carried and could not be taken, or what its answer carries. NULL is fine. */
void tr_message_put_cargo(struct tr_message *message, struct tr_cargo *take_cargo);
/* Takes the cargo out; NULL where there is none. Whoever moved the message out of its queue does, or whom it is up to then. */
struct tr_cargo *tr_message_take_cargo(struct tr_message *message);

static inline enum tr_message_state tr_message_state(const struct tr_message *message) {
        /* acquire: who sees a state also sees what was written before it was entered */
        return (enum tr_message_state)atomic_load_explicit(&message->state, memory_order_acquire);
}

/* queued to begun. True for exactly one caller, who may then run it. A delivery begins only where the call that it is for has begun, or
 * does; where that was settled before, it is settled too, and nobody is told. */
bool tr_message_begin(struct tr_message *message);
/* queued to settled, nobody being told. True for exactly one caller. */
bool tr_message_withdraw(struct tr_message *message);
/* To settled. True for exactly one caller, who then answers; *ret_begun says whether it had begun. */
bool tr_message_settle(struct tr_message *message, bool *ret_begun);

/*
 * Who is told how a message ended. Implemented by connections, by actors (their
 * promises), and by tests. Each function may be called on any thread, by whoever
 * won tr_message_settle(), once per message, holding no lock.
 */
struct tr_asker_ops {
        /* The answer: one value in message->form. `more`: the same caller will answer more soon and then call flush. */
        void (*resolve)(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more);
        void (*reject)(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                       bool more);
        /* Sends on what was answered with `more`. NULL where there is nothing to do. */
        void (*flush)(struct tr_asker *asker);
        /* The message is being freed: frees ask.data. NULL where there is none. */
        void (*forget)(struct tr_asker *asker, struct tr_message *message);
        void (*ref)(struct tr_asker *asker);
        void (*unref)(struct tr_asker *asker, uint32_t count);
};

struct tr_asker {
        const struct tr_asker_ops *ops;
};

/* Settles the message as a failure if nobody has yet: where it had begun with ran_begun, else with "no".
 * A send is settled silently. Answers whether this call settled it. */
bool tr_message_reject(struct tr_message *message, struct tr_failure *failure, enum tr_ran ran_begun);
/* The same as an answer; value is in message->form. */
bool tr_message_resolve(struct tr_message *message, const void *value, size_t bytes, bool more);

#endif
