/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks for use again, after the magazines of Bonwick and Adams, "Magazines and Vmem" (2001), section 3: each thread has
 * two crates and goes to the stock, where the crates of all are piled up, only when both are empty or both are full. With
 * two, a thread that frees one and makes one by turns at the edge of a crate does not go there each time.
 *
 * A crate is a chain of free blocks; its first one says how many they are, and which crate is below it on the pile. So
 * a crate changes hands without a look at its other blocks, and a crate that is not full may be handed in.
 */
#include "config.h"

#include "daemon/core/stock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/base/lock.h"

struct block {
        struct block *next;
        struct block *below; /* of the first in a crate on the pile */
        uint32_t count;      /* of the first in a crate on the pile: blocks in it */
};

struct crate {
        struct block *first;
        uint32_t count;
};

_Static_assert(sizeof(struct block) <= TR_STOCK_BLOCK_BYTES, "a free block holds its own links");

static struct {
        struct tr_lock lock; /* nothing is acquired under it */
        struct block *pile TR_GUARDED_BY(lock);
        uint32_t count TR_GUARDED_BY(lock); /* blocks in the crates of the pile */
} stock = { .lock = TR_LOCK_INIT };

/* This thread's: `open` is what it takes from and puts into; `spare` is empty or full. */
static _Thread_local struct {
        struct crate open, spare;
} own;

#ifdef TR_SANITIZED
static bool disabled = true;
#else
static bool disabled;
#endif

void tr_stock_disable(void) {
        disabled = true;
}

static bool is_kept(size_t bytes) {
        return bytes <= TR_STOCK_BLOCK_BYTES && !disabled;
}

static struct crate stock_take(void) {
        struct crate crate = { 0 };
        tr_lock_acquire(&stock.lock);
        if (stock.pile) {
                crate = (struct crate){ .first = stock.pile, .count = stock.pile->count };
                stock.pile = stock.pile->below;
                stock.count -= crate.count;
        }
        tr_lock_release(&stock.lock);
        return crate;
}

static void stock_give(struct crate crate) {
        if (!crate.count)
                return;
        struct block *surplus = crate.first;
        tr_lock_acquire(&stock.lock);
        if (stock.count + crate.count <= TR_STOCK_MAX) {
                crate.first->count = crate.count;
                crate.first->below = stock.pile;
                stock.pile = crate.first;
                stock.count += crate.count;
                surplus = NULL;
        }
        tr_lock_release(&stock.lock);
        while (surplus) {
                struct block *next = surplus->next;
                free(surplus);
                surplus = next;
        }
}

void *tr_stock_alloc(size_t bytes) {
        if (!is_kept(bytes))
                return malloc(bytes);
        if (!own.open.count) {
                own.open = own.spare.count ? own.spare : stock_take();
                own.spare = (struct crate){ 0 };
        }
        struct block *block = own.open.first;
        if (!block)
                return malloc(TR_STOCK_BLOCK_BYTES);
        own.open.first = block->next;
        own.open.count--;
        return block;
}

void tr_stock_free(void *memory, size_t bytes) {
        if (!memory || !is_kept(bytes)) {
                free(memory);
                return;
        }
        if (own.open.count == TR_STOCK_CRATE) {
                stock_give(own.spare);
                own.spare = own.open;
                own.open = (struct crate){ 0 };
        }
        struct block *block = memory;
        block->next = own.open.first;
        own.open.first = block;
        own.open.count++;
}

void tr_stock_hand_in(void) {
        stock_give(own.open);
        stock_give(own.spare);
        own.open = own.spare = (struct crate){ 0 };
}
