/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending requests: a hash table whose chains run through the messages themselves, so that taking one in and out
 * allocates nothing but now and then a larger table, and a heap for those with a deadline.
 */
#include "config.h"

#include "daemon/io/pending.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/random.h"

#define BITS_FIRST 5

/* relaxed: changed under the connection's lock only */
static uint32_t pending_count(const struct tr_pending *pending) {
        return atomic_load_explicit(&pending->count, memory_order_relaxed);
}

static void pending_set_count(struct tr_pending *pending, uint32_t count) {
        atomic_store_explicit(&pending->count, count, memory_order_relaxed);
}

int tr_pending_init(struct tr_pending *pending) {
        *pending = (struct tr_pending){ 0 };
        int r = tr_random_bytes(&pending->multiplier, sizeof(pending->multiplier));
        if (r)
                return tr_error_fold(r);
        pending->multiplier |= 1;
        return 0;
}

void tr_pending_deinit(struct tr_pending *pending) {
        free(pending->slots);
        pending->slots = NULL;
        pending->bits = 0;
        tr_timers_deinit(&pending->deadlines);
}

/* The upper bits of the product: all bits of the id have a part in them. */
static struct tr_message **pending_slot(const struct tr_pending *pending, uint64_t id) {
        return &pending->slots[(id * pending->multiplier) >> (64 - pending->bits)];
}

static void slot_link(struct tr_message **slot, struct tr_message *message) {
        message->ask.next = *slot;
        if (message->ask.next)
                message->ask.next->ask.pprev = &message->ask.next;
        message->ask.pprev = slot;
        *slot = message;
}

static int pending_grow(struct tr_pending *pending) {
        struct tr_pending larger = *pending;
        larger.bits = pending->bits ? pending->bits + 1 : BITS_FIRST;
        larger.slots = calloc((size_t)1 << larger.bits, sizeof(struct tr_message *));
        if (!larger.slots)
                return tr_error_origin(-ENOMEM);

        for (size_t i = 0; pending->bits && i < (size_t)1 << pending->bits; i++)
                for (struct tr_message *message = pending->slots[i], *next; message; message = next) {
                        next = message->ask.next;
                        slot_link(pending_slot(&larger, message->ask.id), message);
                }
        free(pending->slots);
        *pending = larger;
        return 0;
}

struct tr_message *tr_pending_find(struct tr_pending *pending, uint64_t id) {
        if (pending_count(pending) == 0)
                return NULL;
        struct tr_message *message = *pending_slot(pending, id);
        while (message && message->ask.id != id)
                message = message->ask.next;
        return message;
}

int tr_pending_add(struct tr_pending *pending, struct tr_message *message, uint64_t deadline_ns, uint32_t max) {
        if (tr_pending_find(pending, message->ask.id))
                return TR_PENDING_DUPLICATE;
        if (pending_count(pending) >= max)
                return TR_PENDING_FULL;
        if (pending->bits == 0 || pending_count(pending) >= UINT32_C(1) << pending->bits) {
                int r = pending_grow(pending);
                if (r)
                        return tr_error_fold(r);
        }
        if (deadline_ns != TR_NEVER) {
                int r = tr_timers_add(&pending->deadlines, &message->ask.deadline, deadline_ns);
                if (r)
                        return tr_error_fold(r);
        }
        slot_link(pending_slot(pending, message->ask.id), message);
        pending_set_count(pending, pending_count(pending) + 1);
        return 0;
}

bool tr_pending_remove(struct tr_pending *pending, struct tr_message *message) {
        if (!message->ask.pprev)
                return false;
        *message->ask.pprev = message->ask.next;
        if (message->ask.next)
                message->ask.next->ask.pprev = message->ask.pprev;
        message->ask.next = NULL;
        message->ask.pprev = NULL;
        pending_set_count(pending, pending_count(pending) - 1);
        tr_timers_remove(&pending->deadlines, &message->ask.deadline);
        return true;
}

struct tr_message *tr_pending_take_all(struct tr_pending *pending) {
        struct tr_message *all = NULL;
        for (size_t i = 0; pending_count(pending) && i < (size_t)1 << pending->bits; i++)
                for (struct tr_message *message; (message = pending->slots[i]);) {
                        tr_pending_remove(pending, message);
                        message->ask.next = all;
                        all = tr_message_ref(message);
                }
        return all;
}

struct tr_message *tr_pending_take_due(struct tr_pending *pending, uint64_t now_ns) {
        struct tr_timer *timer = tr_timers_take_due(&pending->deadlines, now_ns);
        return timer ? tr_container_of(timer, struct tr_message, ask.deadline) : NULL;
}
