/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of entities. The statement is put together from what is asked for: names and values are bound, never written into it. A field
 * is looked up in the body as JSON; the store's own four are columns.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/database.h"
#include "daemon/store/jobs.h"

/* Fields that a list can ask for at once. */
#define FIELDS_MAX 32

/* A text that is bound. */
struct bound {
        int at;
        char *path;              /* ours: of a field in a body; or NULL */
        struct tr_token token;   /* else a value to compare with */
        sqlite3_value *value;    /* else, if not NULL, what another statement has answered */
        const char *text;        /* else, if not NULL */
};

struct query {
        struct tr_writer sql;
        struct bound bound[2 * FIELDS_MAX + 8];
        int count; /* of those: the first is ?1 */
};

static void add(struct query *query, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct query *query, const char *format, ...) {
        char text[256];
        va_list args;
        va_start(args, format);
        int len = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        tr_write_raw(&query->sql, text, (size_t)len);
}

static struct bound *bind(struct query *query) {
        struct bound *bound = &query->bound[query->count++];
        *bound = (struct bound){ .at = query->count };
        return bound;
}

static void query_deinit(struct query *query) {
        for (int i = 0; i < query->count; i++) {
                free(query->bound[i].path);
                sqlite3_value_free(query->bound[i].value);
        }
        tr_writer_deinit(&query->sql);
}

/* Fields */

/* How a field is written in the statement. */
struct field {
        bool is_own;
        const char *column; /* is_own */
        int at;             /* else: its path's number */
};

static const char *own_column(const char *name, size_t len) {
        static const char *const columns[] = { "id", "version", "created", "updated" };
        for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
                if (strlen(columns[i]) == len && memcmp(columns[i], name, len) == 0)
                        return columns[i];
        return NULL;
}

/* A path cannot name what stands escaped in JSON. */
static bool can_be_named(const char *name, size_t len) {
        for (size_t i = 0; i < len; i++)
                if (name[i] == '"' || name[i] == '\\' || (unsigned char)name[i] < 0x20 || name[i] == 0x7f)
                        return false;
        return true;
}

static struct tr_failure *bad(const struct tr_store_job *job, const char *what, const char *name, size_t len, const char *reason) {
        return tr_failure_new(TR_CODE_BAD_REQUEST, "a list of %s: %s %.*s %s", job->component, what, (int)(len < 100 ? len : 100), name, reason);
}

/* 0, with job->failure where it cannot be, or -ENOMEM. */
static int find_field(struct query *query, struct tr_store_job *job, const char *what, const char *name, size_t len,
                      struct field *ret_field) {
        ret_field->column = own_column(name, len);
        ret_field->is_own = ret_field->column != NULL;
        if (ret_field->is_own)
                return 0;
        if (!can_be_named(name, len)) {
                job->failure = bad(job, what, name, len, "has a quote, a backslash or a control character in its name");
                return 0;
        }
        struct bound *bound = bind(query);
        if (asprintf(&bound->path, "$.\"%.*s\"", (int)len, name) < 0) {
                bound->path = NULL;
                return tr_error_origin(-ENOMEM);
        }
        ret_field->at = bound->at;
        return 0;
}

static void add_field(struct query *query, const struct field *field) {
        if (field->is_own)
                add(query, "%s", field->column);
        else
                add(query, "json_extract(body, ?%d)", field->at);
}

/* where */

/* That a field is of a type of JSON's. */
static void add_type(struct query *query, const struct field *field, const char *types) {
        add(query, " AND json_type(body, ?%d) IN (%s)", field->at, types);
}

static int add_equals(struct query *query, struct tr_store_job *job, const struct tr_token *name, const struct tr_token *value) {
        struct field field;
        int r = find_field(query, job, "where", (const char *)name->data, name->len, &field);
        if (r < 0 || job->failure)
                return r;
        if (value->type == TR_NIL) {
                if (field.is_own)
                        add(query, " AND 0");
                else
                        add(query, " AND coalesce(json_type(body, ?%d), 'null') = 'null'", field.at);
                return 0;
        }
        if (value->type == TR_BOOL) {
                if (field.is_own)
                        add(query, " AND 0");
                else
                        add_type(query, &field, value->boolean ? "'true'" : "'false'");
                return 0;
        }
        if (value->type != TR_INT && value->type != TR_FLOAT && !tr_token_is_text(value)) {
                job->failure = bad(job, "where", (const char *)name->data, name->len, "can be compared with text, numbers, booleans and nil");
                return 0;
        }
        if (!field.is_own)
                add_type(query, &field, tr_token_is_text(value) ? "'text'" : "'integer', 'real'");
        add(query, " AND ");
        add_field(query, &field);
        struct bound *bound = bind(query);
        bound->token = *value;
        add(query, " = ?%d", bound->at);
        return 0;
}

static int add_where(struct query *query, struct tr_store_job *job) {
        struct tr_reader reader = tr_reader(job->list.where, job->list.where_bytes);
        struct tr_token head, name, value;
        int r = 0;
        if (tr_read(&reader, &head) != 0 || head.type != TR_MAP || head.count > FIELDS_MAX) {
                job->failure = tr_failure_new(TR_CODE_BAD_REQUEST, "a list of %s: where has to be a map of at most %d fields", job->component,
                                              FIELDS_MAX);
                return 0;
        }
        for (uint32_t i = 0; r == 0 && !job->failure && i < head.count; i++) {
                if (tr_read(&reader, &name) != 0 || !tr_token_is_text(&name)) {
                        job->failure = tr_failure_new(TR_CODE_BAD_REQUEST, "a list of %s: where has a key that is no text", job->component);
                        return 0;
                }
                struct tr_reader one = reader;
                if (tr_read(&one, &value) != 0 || tr_read_skip(&reader) != 0)
                        return tr_error_origin(-EBADMSG);
                r = add_equals(query, job, &name, &value);
        }
        return r;
}

/* sort and after */

/* What the entity `after` has in the field that is sorted by. 0, with job->failure where it is not there; or a negative errno. */
static int read_after(struct tr_database *database, struct tr_store_job *job, const char *path, const char *column, sqlite3_value **ret_value) {
        char text[160];
        sqlite3_stmt *statement;
        snprintf(text, sizeof(text), "SELECT %s FROM entities WHERE component = ?1 AND id = ?2", column ? column : "json_extract(body, ?3)");
        int code = sqlite3_prepare_v2(database->sqlite, text, -1, &statement, NULL);
        if (code != SQLITE_OK)
                return tr_database_failed(database, code);
        tr_bind_text(statement, 1, job->component);
        tr_bind_text(statement, 2, job->list.after);
        if (!column)
                tr_bind_text(statement, 3, path);
        int r = 0;
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW) {
                *ret_value = sqlite3_value_dup(sqlite3_column_value(statement, 0));
                if (!*ret_value)
                        r = tr_error_origin(-ENOMEM);
        } else if (code == SQLITE_DONE) {
                job->failure = tr_failure_new(TR_CODE_NOT_FOUND, "a list of %s: there is no entity %s to come after", job->component, job->list.after);
        } else {
                r = tr_database_failed(database, code);
        }
        sqlite3_finalize(statement);
        return r;
}

static int add_after(struct tr_database *database, struct query *query, struct tr_store_job *job, const struct field *sort) {
        sqlite3_value *value = NULL;
        int r = 0;
        if (sort) {
                r = read_after(database, job, sort->is_own ? NULL : query->bound[sort->at - 1].path, sort->column, &value);
                if (r < 0 || job->failure)
                        return r;
        }
        struct bound *after = bind(query);
        after->text = job->list.after;
        if (!sort) {
                add(query, " AND id > ?%d", after->at);
        } else if (sqlite3_value_type(value) == SQLITE_NULL) {
                /* absent is first */
                sqlite3_value_free(value);
                add(query, " AND (");
                add_field(query, sort);
                add(query, " IS NOT NULL OR id > ?%d)", after->at);
        } else {
                struct bound *from = bind(query);
                from->value = value;
                add(query, " AND (");
                add_field(query, sort);
                add(query, " > ?%d OR (", from->at);
                add_field(query, sort);
                add(query, " = ?%d AND id > ?%d))", from->at, after->at);
        }
        return r;
}

/* The statement */

static int put_together(struct tr_database *database, struct query *query, struct tr_store_job *job) {
        struct field sort, *sorted = NULL;
        int r = 0;
        bind(query)->text = job->component;
        add(query, "SELECT id, version, created, updated, body FROM entities WHERE component = ?1");
        if (job->list.where)
                r = add_where(query, job);
        if (r == 0 && !job->failure && job->list.sort && strcmp(job->list.sort, "id") != 0) {
                r = find_field(query, job, "sort", job->list.sort, strlen(job->list.sort), &sort);
                sorted = &sort;
        }
        if (r == 0 && !job->failure && job->list.after)
                r = add_after(database, query, job, sorted);
        if (r < 0 || job->failure)
                return r;
        add(query, " ORDER BY ");
        if (sorted) {
                add_field(query, sorted);
                add(query, ", ");
        }
        add(query, "id");
        if (job->list.limit > 0)
                add(query, " LIMIT %llu", (unsigned long long)(job->list.limit < INT64_MAX ? job->list.limit : INT64_MAX));
        tr_write_raw(&query->sql, "", 1);
        return tr_writer_error(&query->sql) ? tr_error_origin(-ENOMEM) : 0;
}

static int bind_token(sqlite3_stmt *statement, const struct bound *bound) {
        switch (bound->token.type) {
        case TR_INT:
                return sqlite3_bind_int64(statement, bound->at, bound->token.integer);
        case TR_FLOAT:
                return sqlite3_bind_double(statement, bound->at, bound->token.number);
        default:
                return sqlite3_bind_text64(statement, bound->at, (const char *)bound->token.data, bound->token.len, SQLITE_STATIC, SQLITE_UTF8);
        }
}

static int bind_all(struct tr_database *database, const struct query *query, sqlite3_stmt *statement) {
        int code = SQLITE_OK;
        for (int i = 0; code == SQLITE_OK && i < query->count; i++) {
                const struct bound *bound = &query->bound[i];
                const char *text = bound->path ? bound->path : bound->text;
                if (bound->value)
                        code = sqlite3_bind_value(statement, bound->at, bound->value);
                else if (text)
                        code = sqlite3_bind_text64(statement, bound->at, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
                else
                        code = bind_token(statement, bound);
        }
        return code == SQLITE_OK ? 0 : tr_database_failed(database, code);
}

static int read_rows(struct tr_database *database, struct tr_store_job *job, sqlite3_stmt *statement, struct tr_writer *documents,
                     uint32_t *ret_count) {
        int code, r = 0;
        while (r == 0 && !job->failure && (code = sqlite3_step(statement)) != SQLITE_DONE) {
                struct tr_entity_row row;
                if (code != SQLITE_ROW)
                        return tr_database_failed(database, code);
                row.id = tr_column(statement, 0, &row.id_len);
                row.version = (uint64_t)sqlite3_column_int64(statement, 1);
                row.created_ms = sqlite3_column_int64(statement, 2);
                row.updated_ms = sqlite3_column_int64(statement, 3);
                row.body = tr_column(statement, 4, &row.body_len);
                r = tr_entity_write_row(job, &row, documents);
                if (r == 0 && !job->failure && documents->len > TR_STORE_ANSWER_MAX)
                        job->failure = tr_failure_new(TR_CODE_TOO_LARGE, "a list of %s: it is more than %u bytes; a limit is needed",
                                                      job->component, TR_STORE_ANSWER_MAX);
                (*ret_count)++;
        }
        return r;
}

static int run(struct tr_database *database, struct tr_store_job *job, const struct query *query) {
        struct tr_writer documents = TR_WRITER_INIT;
        sqlite3_stmt *statement;
        uint32_t count = 0;
        int code = sqlite3_prepare_v2(database->sqlite, (const char *)query->sql.data, -1, &statement, NULL);
        if (code != SQLITE_OK)
                return tr_database_failed(database, code);
        int r = bind_all(database, query, statement);
        if (r == 0)
                r = read_rows(database, job, statement, &documents, &count);
        sqlite3_finalize(statement);
        if (r == 0 && !job->failure)
                r = tr_job_answer_array(job, &documents, count);
        tr_writer_deinit(&documents);
        return r;
}

int tr_job_list(struct tr_database *database, struct tr_store_job *job) {
        struct query query = { .sql = TR_WRITER_INIT };
        int r = put_together(database, &query, job);
        if (r == 0 && !job->failure)
                r = run(database, job, &query);
        query_deinit(&query);
        return r;
}
