/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_STORE_FIXTURE_H
#define TR_TESTS_UNIT_STORE_FIXTURE_H

#include <sqlite3.h>

#include "daemon/core/store.h"
#include "daemon/store/sqlite_store.h"
#include "proto/value.h"

/* A store in a folder of its own, and jobs that are waited for. */
extern char store_folder[];
extern char store_path[]; /* in it; nothing is there before store_setup() */
extern struct tr_sqlite_store *store;

void store_setup(void);    /* makes the folder and opens the store */
void store_teardown(void); /* closes it and removes the folder */
void store_make_folder(void);
void store_open(void); /* it has to work */
void store_close(void);

/* Submits a copy of a job, and waits for it. The caller deinits what comes back. */
struct tr_store_job store_do(struct tr_store_job job);
/* The same, of which something is expected: it is not freed but lives until the test ends. */
struct tr_store_job store_must(struct tr_store_job job);               /* no failure */
const char *store_refused(struct tr_store_job job, const char *code); /* that failure: its message */

/* A value in notation.h's form that lives until the test ends. */
struct tr_writer store_value(const char *notation);
/* What a job answered in that form, a document or a list of them, without `created` and `updated`. Lives until the test ends. */
const char *store_shown(const struct tr_store_job *job);

/* A document in the component "c". */
struct tr_store_job store_write(const char *id, const char *document, uint64_t expect);
const char *store_read(const char *id);

/* Behind the store's back: runs SQL on the file. */
void store_sql(const char *sql);
/* One number that SQL answers. */
int64_t store_number(const char *sql);

#endif
