/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_STORE_SQLITE_STORE_H
#define TR_STORE_SQLITE_STORE_H

#include "daemon/base/error.h"
#include "daemon/core/store.h"

/*
 * The store: a database and the one thread that uses it. It does the jobs of many callers in one transaction: those that come while the
 * disk is written are the next one's.
 */
struct tr_sqlite_store;

enum {
        TR_STORE_OPEN_LOCKED = 1, /* another daemon has it */
        TR_STORE_OPEN_NEWER = 2,
        TR_STORE_OPEN_UNUSABLE = 3,
};

/* NULL as path: in memory. 0; one of those, or a negative errno, with a sentence in *ret_why that the caller frees (NULL where memory
 * is short). It blocks, on the disk. */
TR_MUST_CHECK int tr_sqlite_store_new(const char *path, struct tr_sqlite_store **ret_store, char **ret_why);
/* As core knows it; borrowed. */
struct tr_store *tr_sqlite_store_interface(struct tr_sqlite_store *store);
/* Does what was submitted, and takes no more: a job that comes later is refused at once. Waits for that. NULL is fine. */
void tr_sqlite_store_close(struct tr_sqlite_store *store);
/* It was closed, and nobody submits any more. NULL is fine. */
void tr_sqlite_store_free(struct tr_sqlite_store *store);

#endif
