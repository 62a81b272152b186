/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: one allocation each, and one atomic that everybody races for.
 */
#include "daemon/core/message.h"

#include <string.h>

#include "daemon/core/cargo.h"
#include "daemon/core/invocation.h"
#include "daemon/core/stock.h"
#include "daemon/core/target.h"

static size_t message_size(size_t handler_len, size_t args_bytes) {
        return sizeof(struct tr_message) + handler_len + 1 + args_bytes;
}

struct tr_message *tr_message_new(enum tr_message_kind kind, const char *handler, size_t handler_len, const void *args,
                                  size_t args_bytes, uint32_t args_count) {
        if (handler_len > UINT16_MAX || args_bytes > UINT32_MAX)
                return NULL;
        struct tr_message *message = tr_stock_alloc(message_size(handler_len, args_bytes));
        if (!message)
                return NULL;
        /* The handler's name too, so that the size is not constant: what is, gcc clears by `rep stos`, which takes 10 ns
         * to get going. */
        memset(message, 0, sizeof(*message) + handler_len + 1);
        message->kind = (uint8_t)kind;
        message->form = TR_FORM_INTERNAL;
        message->handler_len = (uint16_t)handler_len;
        message->args_count = args_count;
        message->args_bytes = (uint32_t)args_bytes;
        atomic_init(&message->refs, 1);
        atomic_init(&message->state, TR_MESSAGE_QUEUED);
        atomic_init(&message->cargo, NULL);
        tr_list_init(&message->link);
        if (handler_len)
                memcpy(message->data, handler, handler_len);
        if (args_bytes)
                memcpy(message->data + handler_len + 1, args, args_bytes);
        return message;
}

struct tr_message *tr_message_ref(struct tr_message *message) {
        /* relaxed: who copies a reference has one */
        atomic_fetch_add_explicit(&message->refs, 1, memory_order_relaxed);
        return message;
}

/* Drops a reference. The last one's answers the asker, whose own reference is then the caller's to give back; NULL: none is. */
static struct tr_asker *message_release(struct tr_message *message) {
        /* acq_rel: the last one sees all that the others did with it */
        if (atomic_fetch_sub_explicit(&message->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        struct tr_asker *asker = message->asker;
        if (asker && asker->ops->forget)
                asker->ops->forget(asker, message);
        tr_target_unref(message->spawned);
        tr_invocation_free(message->invocation);
        tr_cargo_return(atomic_load_explicit(&message->cargo, memory_order_relaxed));
        tr_stock_free(message, message_size(message->handler_len, message->args_bytes));
        return asker;
}

void tr_message_unref(struct tr_message *message) {
        struct tr_asker *asker = message ? message_release(message) : NULL;
        if (asker)
                asker->ops->unref(asker, 1);
}

/* Each change of a count of references fetches its cache line from the CPU of whoever changed it last. */
void tr_message_unref_chain(struct tr_message *first) {
        struct tr_asker *asker = NULL;
        uint32_t count = 0;
        for (struct tr_message *message = first, *next; message; message = next) {
                next = message->next_in_hand;
                struct tr_asker *its = message_release(message);
                if (!its)
                        continue;
                if (asker && its != asker) {
                        asker->ops->unref(asker, count);
                        count = 0;
                }
                asker = its;
                count++;
        }
        if (asker)
                asker->ops->unref(asker, count);
}

void tr_message_load(struct tr_message *message, struct tr_cargo *take_cargo) {
        message->cargo_bytes = take_cargo->heap_bytes;
        tr_message_put_cargo(message, take_cargo);
}

void tr_message_put_cargo(struct tr_message *message, struct tr_cargo *take_cargo) {
        /* release: whoever takes it out sees what is in it */
        atomic_store_explicit(&message->cargo, take_cargo, memory_order_release);
}

struct tr_cargo *tr_message_take_cargo(struct tr_message *message) {
        /* a look first: next to no message has any, and an exchange costs more than all else that is done to this one */
        if (!atomic_load_explicit(&message->cargo, memory_order_relaxed))
                return NULL;
        return atomic_exchange_explicit(&message->cargo, NULL, memory_order_acquire);
}

/* Out of queued, to the state that is given. *ret_before is the one that it was in where that is another. */
static bool message_leave_queued(struct tr_message *message, uint32_t state, uint32_t *ret_before) {
        *ret_before = TR_MESSAGE_QUEUED;
        return atomic_compare_exchange_strong_explicit(&message->state, ret_before, state, memory_order_acq_rel,
                                                       memory_order_acquire);
}

bool tr_message_begin(struct tr_message *message) {
        uint32_t before;
        if (!message_leave_queued(message, TR_MESSAGE_BEGUN, &before))
                return false;
        if (!message->behalf || message_leave_queued(message->behalf, TR_MESSAGE_BEGUN, &before) || before == TR_MESSAGE_BEGUN)
                return true;
        atomic_store_explicit(&message->state, TR_MESSAGE_SETTLED, memory_order_release);
        return false;
}

bool tr_message_withdraw(struct tr_message *message) {
        uint32_t before;
        return message_leave_queued(message, TR_MESSAGE_SETTLED, &before);
}

bool tr_message_settle(struct tr_message *message, bool *ret_begun) {
        uint32_t before = atomic_exchange_explicit(&message->state, TR_MESSAGE_SETTLED, memory_order_acq_rel);
        if (before == TR_MESSAGE_SETTLED)
                return false;
        *ret_begun = before == TR_MESSAGE_BEGUN;
        return true;
}

bool tr_message_reject(struct tr_message *message, struct tr_failure *failure, enum tr_ran ran_begun) {
        bool begun;
        if (!tr_message_settle(message, &begun))
                return false;
        if (message->asker)
                message->asker->ops->reject(message->asker, message, failure, begun ? ran_begun : TR_RAN_NO, false);
        return true;
}

bool tr_message_resolve(struct tr_message *message, const void *value, size_t bytes, bool more) {
        bool begun;
        if (!tr_message_settle(message, &begun))
                return false;
        if (message->asker)
                message->asker->ops->resolve(message->asker, message, value, bytes, more);
        return true;
}
