/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of unanswered requests.
 *
 * Ids are given out in a row, and a request lies in the slot that its id has modulo the capacity. Where that slot is
 * still held by an old request (a `done` may wait for days while millions of others pass), its id is skipped. The
 * table is never more than half full, so that a free slot is found within a few steps, and an answer is found with
 * one look: no chain, no probing.
 */
#include "client/pending.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 32u

void tr_pending_queue_append(struct tr_pending_queue *queue, struct troupe_pending *pending) {
        pending->prev = queue->last;
        pending->next = NULL;
        if (queue->last)
                queue->last->next = pending;
        else
                queue->first = pending;
        queue->last = pending;
}

void tr_pending_queue_remove(struct tr_pending_queue *queue, struct troupe_pending *pending) {
        if (pending->prev)
                pending->prev->next = pending->next;
        else
                queue->first = pending->next;
        if (pending->next)
                pending->next->prev = pending->prev;
        else
                queue->last = pending->prev;
        pending->prev = pending->next = NULL;
}

struct troupe_pending *tr_pending_queue_pop(struct tr_pending_queue *queue) {
        struct troupe_pending *pending = queue->first;

        if (pending)
                tr_pending_queue_remove(queue, pending);
        return pending;
}

void tr_pending_free(struct troupe_pending *pending) {
        if (!pending)
                return;
        troupe_value_free(&pending->answer);
        free(pending);
}

static struct troupe_pending **slot_of(struct tr_pending_table *table, uint32_t id) {
        return &table->slots[id & (table->capacity - 1)];
}

/* Two requests in different slots of a table are in different slots of one twice its size. */
static int grow(struct tr_pending_table *table) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : CAPACITY_MIN;
        struct troupe_pending **slots;

        if (capacity < table->capacity)
                return -ENOMEM;
        slots = calloc(capacity, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        free(table->slots);
        table->slots = slots;
        table->capacity = capacity;
        for (struct troupe_pending *pending = table->order.first; pending; pending = pending->next)
                *slot_of(table, pending->id) = pending;
        return 0;
}

int tr_pending_table_add(struct tr_pending_table *table, struct troupe_pending *pending) {
        if (table->count >= table->capacity / 2) {
                int r = grow(table);

                if (r)
                        return r;
        }
        while (*slot_of(table, table->next_id))
                table->next_id++;
        pending->id = table->next_id++;
        *slot_of(table, pending->id) = pending;
        tr_pending_queue_append(&table->order, pending);
        table->count++;
        return 0;
}

struct troupe_pending *tr_pending_table_take(struct tr_pending_table *table, uint32_t id) {
        struct troupe_pending *pending = table->capacity ? *slot_of(table, id) : NULL;

        if (!pending || pending->id != id)
                return NULL;
        *slot_of(table, id) = NULL;
        tr_pending_queue_remove(&table->order, pending);
        table->count--;
        return pending;
}

struct troupe_pending *tr_pending_table_pop(struct tr_pending_table *table) {
        return table->order.first ? tr_pending_table_take(table, table->order.first->id) : NULL;
}

void tr_pending_table_deinit(struct tr_pending_table *table) {
        free(table->slots);
        *table = (struct tr_pending_table){ 0 };
}
