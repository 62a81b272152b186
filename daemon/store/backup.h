/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_STORE_BACKUP_H
#define TR_STORE_BACKUP_H

#include <sqlite3.h>
#include <stdbool.h>

#include "daemon/core/failure.h"

struct tr_database;

/*
 * A copy of a database, made while it is used: what is committed between two steps is in it. It is written beside where it goes, under a
 * name of its own, and moved there when it is whole and on disk.
 */
struct tr_backup {
        struct tr_database *database; /* borrowed */
        char *path; /* where it goes */
        char *part; /* where it is written */
        sqlite3 *to;
        sqlite3_backup *copy;
};

/* NULL, or why not (bad-request, store, no-memory) with nothing to abandon. A file that is there is replaced at the end. */
struct tr_failure *tr_backup_begin(struct tr_backup *backup, struct tr_database *database, const char *path);
/* Copies some pages more (-1: all of them). NULL, and whether that was all; or why not, and it is abandoned. */
struct tr_failure *tr_backup_step(struct tr_backup *backup, int pages, bool *ret_whole);
/* It is whole: moves it to its place. NULL or why not; there is nothing to abandon any more. */
struct tr_failure *tr_backup_end(struct tr_backup *backup);
/* Takes away what there is of it. */
void tr_backup_abandon(struct tr_backup *backup);

/* All of it at once. */
struct tr_failure *tr_backup_whole(struct tr_database *database, const char *path);

#endif
