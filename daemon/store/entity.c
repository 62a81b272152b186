/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entities. A write reads what is there first, in the same transaction, so that what is checked and compared is what is changed. A
 * document that would be as it was is not written: its version counts changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/contract/document.h"
#include "daemon/contract/schema.h"
#include "daemon/store/database.h"
#include "daemon/store/jobs.h"

/* Fields that are ours. */
static const char *const own_fields[] = { "id", "version", "created", "updated", NULL };

void tr_entity_write(const struct tr_entity_row *row, const void *fields, size_t bytes, struct tr_writer *writer) {
        struct tr_reader reader = tr_reader(fields, bytes);
        struct tr_token head;
        bool is_map = tr_read(&reader, &head) == 0 && head.type == TR_MAP;
        tr_write_map(writer, 4 + (is_map ? head.count : 0));
        tr_write_text(writer, "id");
        tr_write_string(writer, row->id, row->id_len);
        tr_write_text(writer, "version");
        tr_write_uint(writer, row->version);
        tr_write_text(writer, "created");
        tr_write_int(writer, row->created_ms);
        tr_write_text(writer, "updated");
        tr_write_int(writer, row->updated_ms);
        if (is_map)
                tr_write_raw(writer, reader.at, (size_t)(reader.end - reader.at));
}

/* What is in a body, as MessagePack. As tr_entity_write_row(). */
static int read_body(struct tr_store_job *job, const struct tr_entity_row *row, struct tr_writer *fields) {
        int r = tr_document_read(row->body, row->body_len, fields);
        if (r == 0) {
                struct tr_reader reader = tr_reader(fields->data, fields->len);
                struct tr_token head;
                r = tr_read(&reader, &head) == 0 && head.type == TR_MAP ? 0 : TR_DOCUMENT_BAD;
        }
        if (r == TR_DOCUMENT_BAD) {
                job->failure = tr_failure_new(TR_CODE_STORE, "what the store has of the entity %.*s of %s is no JSON object",
                                              (int)row->id_len, row->id, job->component);
                return 0;
        }
        return r;
}

int tr_entity_write_row(struct tr_store_job *job, const struct tr_entity_row *row, struct tr_writer *writer) {
        struct tr_writer fields = TR_WRITER_INIT;
        int r = read_body(job, row, &fields);
        if (r == 0 && !job->failure)
                tr_entity_write(row, fields.data, fields.len, writer);
        tr_writer_deinit(&fields);
        return r;
}

/* The row, in a statement that is to be ended where the answer is 0; TR_STATEMENT_OVER: there is none. */
static int find(struct tr_database *database, const struct tr_store_job *job, const char *id, sqlite3_stmt **ret_statement,
                struct tr_entity_row *ret_row) {
        int r = 0;
        sqlite3_stmt *get = tr_statement(database, TR_STATEMENT_ENTITY_GET, job->component, id, &r);
        if (!get)
                return r;
        r = tr_statement_row(database, get);
        if (r != 0)
                return r;
        *ret_row = (struct tr_entity_row){
                .id = id,
                .id_len = strlen(id),
                .version = (uint64_t)sqlite3_column_int64(get, 0),
                .created_ms = sqlite3_column_int64(get, 1),
                .updated_ms = sqlite3_column_int64(get, 2),
        };
        ret_row->body = tr_column(get, 3, &ret_row->body_len);
        *ret_statement = get;
        return 0;
}

int tr_job_get(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_entity_row row;
        sqlite3_stmt *get;
        int r = find(database, job, job->id, &get, &row);
        if (r < 0)
                return r;
        job->version = 0;
        if (r == TR_STATEMENT_OVER) {
                tr_write_nil(&writer);
        } else {
                r = tr_entity_write_row(job, &row, &writer);
                tr_statement_end(get);
                if (r < 0 || job->failure) {
                        tr_writer_deinit(&writer);
                        return r;
                }
                job->version = row.version;
        }
        return tr_job_answer(job, &writer);
}

/* Writing */

static struct tr_failure *conflict(const struct tr_store_job *job, const char *id, uint64_t version) {
        if (version == 0)
                return tr_failure_new(TR_CODE_CONFLICT, "the entity %s of %s is not there any more", id, job->component);
        if (job->expect == 0)
                return tr_failure_new(TR_CODE_CONFLICT, "the entity %s of %s is there already", id, job->component);
        return tr_failure_new(TR_CODE_CONFLICT, "the entity %s of %s is of version %llu, and not %llu any more", id, job->component,
                              (unsigned long long)version, (unsigned long long)job->expect);
}

static struct tr_failure *no_json(const struct tr_store_job *job, const char *path, const char *reason) {
        struct tr_failure *failure =
                tr_failure_new(TR_CODE_NOT_SENDABLE, "an entity of %s: %s %s", job->component, *path ? path : "the document", reason);
        tr_failure_add_text(failure, "path", path, strlen(path));
        return failure;
}

/* Holds what is to be stored against the schema. As a job. */
static int check(struct tr_store_job *job, struct tr_writer *fields) {
        struct tr_schema_violation violation = { 0 };
        int r = job->schema ? tr_schema_check(job->schema, fields->data, fields->len, &violation) : 0;
        if (r == TR_SCHEMA_VIOLATED) {
                const char *path = violation.path ? violation.path : "", *reason = violation.reason ? violation.reason : "is against the schema";
                job->failure = tr_failure_new(TR_CODE_CONTRACT, "%s: entity%s%s %s", job->component, *path ? " at " : "", path, reason);
                tr_failure_add_text(job->failure, "subject", "entity", strlen("entity"));
                tr_failure_add_text(job->failure, "path", path, strlen(path));
                tr_failure_add_text(job->failure, "reason", reason, strlen(reason));
                r = 0;
        }
        tr_schema_violation_deinit(&violation);
        return r;
}

/* What is to be there: its fields, and the text that they are stored as. As a job. */
static int compose(struct tr_store_job *job, const struct tr_entity_row *row, struct tr_writer *fields, struct tr_writer *text) {
        struct tr_document_layers layers = {
                .over = job->document,
                .over_bytes = job->document_bytes,
                .removes = job->merge,
                .without = own_fields,
        };
        struct tr_writer base = TR_WRITER_INIT;
        TR_AUTO_FREE char *path = NULL;
        const char *reason;
        int r = 0;
        if (row && job->merge) {
                r = read_body(job, row, &base);
                layers.base = base.data;
                layers.base_bytes = base.len;
        }
        if (r == 0 && !job->failure)
                r = tr_document_lay(&layers, fields, &path, &reason);
        if (r == 0 && !job->failure)
                r = check(job, fields);
        if (r == 0 && !job->failure)
                r = tr_document_write(fields->data, fields->len, text, &path, &reason);
        if (r == TR_DOCUMENT_NO_JSON) {
                job->failure = no_json(job, path, reason);
                r = 0;
        }
        tr_writer_deinit(&base);
        return r;
}

static int put(struct tr_database *database, const struct tr_store_job *job, const struct tr_entity_row *row, const struct tr_writer *text,
               bool is_new) {
        int r = 0;
        sqlite3_stmt *write = tr_statement(database, is_new ? TR_STATEMENT_ENTITY_INSERT : TR_STATEMENT_ENTITY_UPDATE, job->component, row->id, &r);
        if (!write)
                return r;
        sqlite3_bind_int64(write, 3, row->updated_ms);
        tr_bind_bytes(write, 4, text->data, text->len, true);
        return tr_statement_run(database, write);
}

/* Composes and writes it. `row` is what is there (version 0: nothing), and then what is there now; its body is borrowed from a statement
 * that is open. */
static int write_over(struct tr_database *database, struct tr_store_job *job, struct tr_entity_row *row, struct tr_writer *fields) {
        struct tr_writer text = TR_WRITER_INIT;
        bool is_new = row->version == 0;
        int r = compose(job, is_new ? NULL : row, fields, &text);
        bool same = !is_new && row->body_len == text.len && memcmp(row->body, text.data, text.len) == 0;
        if (r == 0 && !job->failure && !same) {
                row->updated_ms = tr_clock_wall_ms();
                if (is_new)
                        row->created_ms = row->updated_ms;
                row->version++;
                r = put(database, job, row, &text, is_new);
        }
        tr_writer_deinit(&text);
        return r;
}

int tr_job_write(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer fields = TR_WRITER_INIT, value = TR_WRITER_INIT;
        struct tr_entity_row row = { 0 };
        sqlite3_stmt *get = NULL;
        int r = 0;
        if (job->id)
                snprintf(job->new_id, sizeof(job->new_id), "%s", job->id);
        else
                r = tr_store_new_id(job->new_id);
        if (r == 0 && job->id)
                r = find(database, job, job->new_id, &get, &row);
        if (r < 0)
                return r;
        row.id = job->new_id;
        row.id_len = strlen(job->new_id);
        r = 0;
        if (job->expect != TR_STORE_ANY && job->expect != row.version)
                job->failure = conflict(job, row.id, row.version);
        else
                r = write_over(database, job, &row, &fields);
        if (get)
                tr_statement_end(get);
        if (r == 0 && !job->failure) {
                job->version = row.version;
                if (job->wants_value) {
                        tr_entity_write(&row, fields.data, fields.len, &value);
                        r = tr_job_answer(job, &value);
                }
        }
        tr_writer_deinit(&fields);
        return r;
}

int tr_job_delete(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_entity_row row = { 0 };
        sqlite3_stmt *get = NULL;
        int r = find(database, job, job->id, &get, &row);
        if (r < 0)
                return r;
        if (r == 0)
                tr_statement_end(get);
        job->found = r == 0;
        r = 0;
        if (job->expect != TR_STORE_ANY && job->expect != row.version) {
                job->failure = conflict(job, job->id, row.version);
                return 0;
        }
        if (job->found)
                r = tr_statement_do(database, TR_STATEMENT_ENTITY_DELETE, job->component, job->id);
        if (r < 0)
                return r;
        tr_write_bool(&writer, job->found);
        return tr_job_answer(job, &writer);
}
