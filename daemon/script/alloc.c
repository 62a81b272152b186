/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The allocator behind a VM, with its ceiling.
 *
 * What is counted is what was asked for, growth only: a block that shrinks always succeeds, since Lua takes it for
 * granted. `used_bytes` is 0 again after lua_close(), which tests hold it to.
 *
 * Lua tries again after a full collection when it is refused. Nothing is allocated between the two tries, so the same
 * size refused twice in a row is a request that failed. One that Lua does not repeat (inside a collection) leaves its
 * size open until the next success, which is at worst one refusal counted early, at the ceiling.
 */

#include "daemon/script/alloc.h"

#include <stdlib.h>

/* What may be used beyond the ceiling once the VM is on its way out: the text of a fault, its traceback, closing
 * files. */
#define TR_ALLOC_RESERVE_BYTES (256u << 10)
/* How far the system's figure may be behind: an atomic that all actors write is not for every allocation. */
#define TR_ALLOC_REPORT_BYTES (64u << 10)

void tr_alloc_init(struct tr_alloc *alloc, uint64_t max_bytes, _Atomic uint64_t *shared, _Atomic uint64_t *total) {
        *alloc = (struct tr_alloc){ .max_bytes = max_bytes, .shared = shared, .total = total };
}

void tr_alloc_report(struct tr_alloc *alloc) {
        /* relaxed: figures for people and for admission, nothing is ordered by them; two's complement makes a loss
         * an addition */
        __atomic_fetch_add((uint64_t *)alloc->total, alloc->used_bytes - alloc->reported_bytes, __ATOMIC_RELAXED);
        alloc->reported_bytes = alloc->used_bytes;
}

static void count(struct tr_alloc *alloc, uint64_t used_bytes) {
        alloc->used_bytes = used_bytes;
        /* relaxed: this thread is the only writer */
        __atomic_store_n((uint64_t *)alloc->shared, used_bytes, __ATOMIC_RELAXED);
        if (used_bytes + TR_ALLOC_REPORT_BYTES < alloc->reported_bytes ||
            used_bytes > alloc->reported_bytes + TR_ALLOC_REPORT_BYTES)
                tr_alloc_report(alloc);
}

static bool has_room(const struct tr_alloc *alloc, uint64_t more_bytes) {
        uint64_t limit =
                alloc->closing ? alloc->max_bytes + TR_ALLOC_RESERVE_BYTES : alloc->max_bytes - alloc->margin_bytes;

        return alloc->used_bytes <= limit && more_bytes <= limit - alloc->used_bytes;
}

static void refuse(struct tr_alloc *alloc, uint64_t bytes) {
        /* what is larger than the whole heap fits after no collection */
        if (alloc->refused_bytes != bytes && bytes <= alloc->max_bytes) {
                alloc->refused_bytes = bytes;
                return;
        }
        alloc->refused_bytes = 0;
        if (alloc->exceeded)
                return;
        alloc->exceeded = true;
        if (alloc->on_exceeded && alloc->margin_bytes == 0)
                alloc->on_exceeded(alloc);
}

void *tr_alloc_lua(void *ud, void *block, size_t old_bytes, size_t new_bytes) {
        struct tr_alloc *alloc = ud;
        void *fresh;

        /* for a new block Lua says what kind of object it is instead of a size */
        if (!block)
                old_bytes = 0;

        if (new_bytes == 0) {
                free(block);
                count(alloc, alloc->used_bytes - old_bytes);
                return NULL;
        }
        if (new_bytes <= old_bytes) {
                fresh = realloc(block, new_bytes);
                count(alloc, alloc->used_bytes - old_bytes + new_bytes);
                return fresh ?: block;
        }

        fresh = has_room(alloc, new_bytes - old_bytes) ? realloc(block, new_bytes) : NULL;
        if (!fresh) {
                refuse(alloc, new_bytes);
                return NULL;
        }
        alloc->refused_bytes = 0;
        count(alloc, alloc->used_bytes + (new_bytes - old_bytes));
        return fresh;
}

bool tr_alloc_charge(struct tr_alloc *alloc, size_t bytes) {
        if (!has_room(alloc, bytes)) {
                refuse(alloc, bytes);
                return false;
        }
        alloc->refused_bytes = 0;
        count(alloc, alloc->used_bytes + bytes);
        return true;
}

void tr_alloc_charge_anyway(struct tr_alloc *alloc, size_t bytes) {
        count(alloc, alloc->used_bytes + bytes);
}

void tr_alloc_discharge(struct tr_alloc *alloc, size_t bytes) {
        count(alloc, alloc->used_bytes - bytes);
}
