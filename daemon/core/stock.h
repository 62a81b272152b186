/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_STOCK_H
#define TR_CORE_STOCK_H

#include <stddef.h>

/*
 * Memory for messages and answers. Nearly every one is made on one thread and freed on another, which is what malloc()
 * is slowest at: the one thread's cache is always empty and the other's always full, and both go for the same arena.
 * Here a thread takes and gives them by the crate.
 *
 * Up to TR_STOCK_BLOCK_BYTES come from the stock; what is larger is malloc()'s. Any thread may free what another made.
 * A build with a sanitizer keeps no stock, so that each use after a free is seen.
 */
#define TR_STOCK_BLOCK_BYTES 240
/* Blocks in a full crate: what one lock of the stock gets. */
#define TR_STOCK_CRATE 64
/* Blocks in all that are kept for all threads together; what comes back beyond them is freed. */
#define TR_STOCK_MAX 4096

/* `bytes` of memory as malloc() gives it; NULL where it is short. */
void *tr_stock_alloc(size_t bytes);
/* Frees what tr_stock_alloc() gave for that many bytes. */
void tr_stock_free(void *block, size_t bytes);
/* What this thread has for itself goes to all: before it ends, and before it waits for long. */
void tr_stock_hand_in(void);
/* There is no stock in this process: every block is malloc()'s. For tests that make allocations fail; before the first one is made. */
void tr_stock_disable(void);

#endif
