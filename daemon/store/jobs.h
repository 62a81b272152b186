/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_STORE_JOBS_H
#define TR_STORE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/store.h"
#include "proto/value.h"

struct tr_database;

/*
 * What each kind of job does. The store's thread only; a write in a transaction, which is committed or rolled back by who calls.
 *
 * 0: it is done, or refused for what is in it (job->failure) and has written nothing. A negative errno: the transaction is to be rolled
 * back; what the job answers is to be freed then, and it may be done again.
 */
TR_MUST_CHECK int tr_job_do(struct tr_database *database, struct tr_store_job *job);
/* Whether it changes anything; a backup does not. */
bool tr_job_writes(const struct tr_store_job *job);

/* entity.c */
TR_MUST_CHECK int tr_job_get(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_write(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_delete(struct tr_database *database, struct tr_store_job *job);
/* list.c */
TR_MUST_CHECK int tr_job_list(struct tr_database *database, struct tr_store_job *job);
/* task.c */
TR_MUST_CHECK int tr_job_task_add(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_task_load(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_task_move(struct tr_database *database, struct tr_store_job *job); /* the other kinds that write */
TR_MUST_CHECK int tr_job_task_list(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_tally_load(struct tr_database *database); /* counts what is there */
/* names.c */
TR_MUST_CHECK int tr_job_name_hold(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_name_release(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_names_left(struct tr_database *database, struct tr_store_job *job);
TR_MUST_CHECK int tr_job_names_forget(struct tr_database *database, struct tr_store_job *job);

/* Common to them. */

/* An entity as it stands in the file. */
struct tr_entity_row {
        const char *id;
        size_t id_len;
        uint64_t version;
        int64_t created_ms;
        int64_t updated_ms;
        const char *body;
        size_t body_len;
};

/* Appends the document of an entity, its fields as MessagePack; `fields` is a map. */
void tr_entity_write(const struct tr_entity_row *row, const void *fields, size_t bytes, struct tr_writer *writer);
/* The same from its body. 0, with job->failure where that is no JSON any more, or -ENOMEM. */
TR_MUST_CHECK int tr_entity_write_row(struct tr_store_job *job, const struct tr_entity_row *row, struct tr_writer *writer);

/* Makes what was written the job's value, and the writer empty. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_job_answer(struct tr_store_job *job, struct tr_writer *writer);
/* The same of an array, of the elements that were written. */
TR_MUST_CHECK int tr_job_answer_array(struct tr_store_job *job, struct tr_writer *elements, uint32_t count);

#endif
