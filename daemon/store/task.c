/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks. What state one is in is in the file; which of those that wait are in the daemon's hands already (loaded) is in a table of this
 * connection's own, which is gone when the process is: then they wait again.
 *
 * A value that is no JSON (a task's input must come as it was sent) is a blob of MessagePack.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/contract/document.h"
#include "daemon/store/database.h"
#include "daemon/store/jobs.h"
#include "daemon/store/tally.h"

/* From how late on one is that was due while the daemon was not there, or stood still. */
#define LATE_MS 1000

/* Values, as they are kept */

/* What is bound: text where the value is JSON, else what it is. */
struct kept {
        struct tr_writer text;
        const void *data;
        size_t bytes;
        bool is_text;
};

/* 0 or -ENOMEM; the text is to be freed in any case. */
static int keep(const void *value, size_t bytes, struct kept *ret_kept) {
        TR_AUTO_FREE char *path = NULL;
        const char *reason;
        *ret_kept = (struct kept){ 0 };
        int r = tr_document_write(value, bytes, &ret_kept->text, &path, &reason);
        if (r < 0)
                return r;
        ret_kept->is_text = r == 0;
        ret_kept->data = r == 0 ? ret_kept->text.data : value;
        ret_kept->bytes = r == 0 ? ret_kept->text.len : bytes;
        return 0;
}

/* Appends a value of the present row. 0 (nil where somebody has made it something else) or -ENOMEM. */
static int read_kept(sqlite3_stmt *statement, int at, struct tr_writer *writer) {
        size_t len, begin = writer->len;
        bool is_text = sqlite3_column_type(statement, at) == SQLITE_TEXT;
        const char *data = tr_column(statement, at, &len);
        int r = 0;
        if (is_text)
                r = tr_document_read(data, len, writer);
        else if (len > 0)
                tr_write_raw(writer, data, len);
        if (r == TR_DOCUMENT_BAD || (!is_text && len == 0)) {
                writer->len = begin;
                tr_write_nil(writer);
                r = 0;
        }
        return r;
}

/* Accepting */

static int bind_task(sqlite3_stmt *insert, const struct tr_store_job *job, const struct kept *input) {
        const struct tr_store_task *task = &job->task;
        tr_bind_text(insert, 3, task->operation);
        tr_bind_bytes(insert, 4, input->data, input->bytes, input->is_text);
        tr_bind_text(insert, 5, task->key);
        tr_bind_text(insert, 6, task->entity);
        sqlite3_bind_int64(insert, 7, task->due_ms);
        if (task->expires_ms != TR_STORE_NEVER)
                sqlite3_bind_int64(insert, 8, task->expires_ms);
        sqlite3_bind_int(insert, 9, task->delayed);
        sqlite3_bind_int64(insert, 10, tr_clock_wall_ms());
        tr_bind_text(insert, 11, task->trace);
        sqlite3_bind_int64(insert, 12, task->depth);
        sqlite3_bind_int64(insert, 13, task->uid);
        sqlite3_bind_int64(insert, 14, task->gid);
        return sqlite3_bind_int64(insert, 15, task->pid);
}

/* One of the same key that waits: its id becomes the job's. */
static int find_key(struct tr_database *database, struct tr_store_job *job) {
        size_t len;
        int r = 0;
        sqlite3_stmt *find = tr_statement(database, TR_STATEMENT_TASK_KEY, job->task.component, job->task.operation, &r);
        if (!find)
                return r;
        tr_bind_text(find, 3, job->task.key);
        r = tr_statement_row(database, find);
        if (r == 0) {
                const char *id = tr_column(find, 0, &len);
                snprintf(job->new_id, sizeof(job->new_id), "%.*s", (int)len, id ? id : "");
                job->found = true;
                tr_statement_end(find);
        }
        return r < 0 ? r : 0;
}

static int insert_task(struct tr_database *database, struct tr_store_job *job) {
        struct kept input;
        int r = keep(job->task.input, job->task.input_bytes, &input);
        if (r == 0)
                r = tr_store_new_id(job->new_id);
        if (r == 0) {
                sqlite3_stmt *insert = tr_statement(database, TR_STATEMENT_TASK_INSERT, job->new_id, job->task.component, &r);
                if (insert) {
                        bind_task(insert, job, &input);
                        r = tr_statement_run(database, insert);
                        sqlite3_clear_bindings(insert);
                }
        }
        if (r == 0)
                r = tr_tally_note(database->tally, job->task.component, strlen(job->task.component), TR_TALLY_WAITING, 1);
        tr_writer_deinit(&input.text);
        return r;
}

int tr_job_task_add(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer writer = TR_WRITER_INIT;
        int r = 0;
        job->found = false;
        if (job->task.key)
                r = find_key(database, job);
        if (r == 0 && !job->found)
                r = insert_task(database, job);
        if (r < 0)
                return r;
        tr_write_text(&writer, job->new_id);
        return tr_job_answer(job, &writer);
}

/* Loading */

/* What a row of a load is beside the task that it becomes. */
struct loading {
        struct tr_store_job *job;
        int64_t seqs[TR_STORE_LOAD_MAX];
};

enum {
        AT_SEQ, AT_ID, AT_OPERATION, AT_INPUT, AT_KEY, AT_ENTITY, AT_DUE, AT_EXPIRES, AT_DELAYED, AT_RUNS, AT_CREATED, AT_TRACE, AT_DEPTH,
        AT_UID, AT_GID, AT_PID,
};

#define NOWHERE SIZE_MAX

/* Appends a text with a NUL; answers where it is. */
static size_t add_text(struct tr_writer *memory, sqlite3_stmt *row, int at) {
        size_t len, begin = memory->len;
        if (sqlite3_column_type(row, at) == SQLITE_NULL)
                return NOWHERE;
        const char *text = tr_column(row, at, &len);
        if (len > 0)
                tr_write_raw(memory, text, len);
        tr_write_raw(memory, "", 1);
        return begin;
}

static const char *text_at(const struct tr_store_task *task, size_t at) {
        return at == NOWHERE ? NULL : (const char *)task->memory + at;
}

/* All that it points to is in one piece of memory. */
static int read_task(sqlite3_stmt *row, const struct tr_store_job *job, struct tr_store_task *ret_task) {
        struct tr_writer memory = TR_WRITER_INIT;
        struct tr_store_task task = { .component = job->component };
        size_t len;
        const char *id = tr_column(row, AT_ID, &len);
        snprintf(task.id, sizeof(task.id), "%.*s", (int)len, id ? id : "");
        size_t operation = add_text(&memory, row, AT_OPERATION), key = add_text(&memory, row, AT_KEY),
               entity = add_text(&memory, row, AT_ENTITY), trace = add_text(&memory, row, AT_TRACE), input = memory.len;
        int r = read_kept(row, AT_INPUT, &memory);
        if (r == 0 && tr_writer_error(&memory))
                r = tr_error_origin(-ENOMEM);
        if (r < 0) {
                tr_writer_deinit(&memory);
                return r;
        }
        task.input_bytes = memory.len - input;
        task.memory = tr_writer_steal(&memory, &len);
        task.input = (const uint8_t *)task.memory + input;
        task.operation = text_at(&task, operation);
        task.key = text_at(&task, key);
        task.entity = text_at(&task, entity);
        task.trace = text_at(&task, trace);
        task.due_ms = sqlite3_column_int64(row, AT_DUE);
        task.expires_ms = sqlite3_column_type(row, AT_EXPIRES) == SQLITE_NULL ? TR_STORE_NEVER : sqlite3_column_int64(row, AT_EXPIRES);
        task.delayed = sqlite3_column_int(row, AT_DELAYED) != 0;
        task.runs = (uint32_t)sqlite3_column_int64(row, AT_RUNS);
        task.created_ms = sqlite3_column_int64(row, AT_CREATED);
        task.depth = (uint32_t)sqlite3_column_int64(row, AT_DEPTH);
        task.uid = (uint32_t)sqlite3_column_int64(row, AT_UID);
        task.gid = (uint32_t)sqlite3_column_int64(row, AT_GID);
        task.pid = (int32_t)sqlite3_column_int64(row, AT_PID);
        task.expired = task.expires_ms <= job->now_ms;
        *ret_task = task;
        return 0;
}

/* Adds those that are due between two times, `count` at most. */
static int read_due(struct tr_database *database, struct loading *loading, bool delayed, int64_t from_ms, int64_t to_ms, uint32_t count) {
        struct tr_store_job *job = loading->job;
        int r = 0;
        sqlite3_stmt *load = tr_statement(database, TR_STATEMENT_TASK_LOAD, job->component, NULL, &r);
        if (!load)
                return r;
        sqlite3_bind_int(load, 2, delayed);
        sqlite3_bind_int64(load, 3, from_ms);
        sqlite3_bind_int64(load, 4, to_ms);
        sqlite3_bind_int64(load, 5, count);
        while ((r = tr_statement_row(database, load)) == 0) {
                loading->seqs[job->tasks_count] = sqlite3_column_int64(load, AT_SEQ);
                r = read_task(load, job, &job->tasks[job->tasks_count]);
                if (r < 0) {
                        tr_statement_end(load);
                        return r;
                }
                job->tasks_count++;
        }
        return r < 0 ? r : 0;
}

/* Runs a statement that has one number. */
static int run_with(struct tr_database *database, enum tr_statement which, int64_t number) {
        int r = 0;
        sqlite3_stmt *statement = tr_statement(database, which, NULL, NULL, &r);
        if (!statement)
                return r;
        sqlite3_bind_int64(statement, 1, number);
        return tr_statement_run(database, statement);
}

static int mark(struct tr_database *database, const struct loading *loading) {
        const struct tr_store_job *job = loading->job;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < job->tasks_count; i++) {
                r = run_with(database, job->tasks[i].expired ? TR_STATEMENT_TASK_DELETE : TR_STATEMENT_LOADED_INSERT, loading->seqs[i]);
                if (r == 0 && job->tasks[i].expired)
                        r = tr_tally_note(database->tally, job->component, strlen(job->component), TR_TALLY_WAITING, -1);
        }
        return r;
}

/* When the next one of a sort is due that is not loaded. */
static int read_next(struct tr_database *database, struct tr_store_job *job, bool delayed) {
        int r = 0;
        sqlite3_stmt *next = tr_statement(database, TR_STATEMENT_TASK_NEXT, job->component, NULL, &r);
        if (!next)
                return r;
        sqlite3_bind_int(next, 2, delayed);
        r = tr_statement_row(database, next);
        if (r == 0) {
                int64_t due_ms = sqlite3_column_int64(next, 0);
                if (due_ms < job->next_ms)
                        job->next_ms = due_ms;
                tr_statement_end(next);
        }
        return r < 0 ? r : 0;
}

static int compare_due(const void *one, const void *other) {
        const struct tr_store_task *a = one, *b = other;
        return (a->due_ms > b->due_ms) - (a->due_ms < b->due_ms);
}

static uint32_t least(uint32_t one, uint32_t other) {
        return one < other ? one : other;
}

/* Nobody has any in hand: those that are said to run do not. */
static int begin_afresh(struct tr_database *database, const struct tr_store_job *job) {
        size_t len = strlen(job->component);
        int r = tr_statement_do(database, TR_STATEMENT_TASK_FRESH, job->component, NULL);
        if (r < 0)
                return r;
        int64_t ran = sqlite3_changes(database->sqlite);
        if (ran > 0)
                r = tr_tally_note(database->tally, job->component, len, TR_TALLY_RUNNING, -ran);
        if (r == 0 && ran > 0)
                r = tr_tally_note(database->tally, job->component, len, TR_TALLY_WAITING, ran);
        return r == 0 ? tr_statement_do(database, TR_STATEMENT_LOADED_FRESH, job->component, NULL) : r;
}

int tr_job_task_load(struct tr_database *database, struct tr_store_job *job) {
        struct loading loading = { .job = job };
        uint32_t limit = least(job->limit, TR_STORE_LOAD_MAX);
        job->next_ms = TR_STORE_NEVER;
        job->tasks = calloc(limit + 1, sizeof(*job->tasks));
        if (!job->tasks)
                return tr_error_origin(-ENOMEM);
        int r = job->fresh ? begin_afresh(database, job) : 0;
        if (r == 0)
                r = read_due(database, &loading, true, INT64_MIN, job->now_ms - LATE_MS, least(limit, job->late_limit));
        if (r == 0)
                r = read_due(database, &loading, false, INT64_MIN, job->now_ms, limit - job->tasks_count);
        if (r == 0)
                r = read_due(database, &loading, true, job->now_ms - LATE_MS + 1, job->now_ms, limit - job->tasks_count);
        if (r == 0)
                r = mark(database, &loading);
        if (r == 0)
                r = read_next(database, job, false);
        if (r == 0)
                r = read_next(database, job, true);
        if (r == 0)
                qsort(job->tasks, job->tasks_count, sizeof(*job->tasks), compare_due);
        return r;
}

/* What becomes of one */

struct found_task {
        int64_t seq;
        enum tr_tally_state state;
};

/* 0; TR_STATEMENT_OVER: there is none; or a negative errno. What is known of it becomes the job's. */
static int find_task(struct tr_database *database, struct tr_store_job *job, struct found_task *ret_task) {
        size_t len;
        int r = 0;
        sqlite3_stmt *find = tr_statement(database, TR_STATEMENT_TASK_FIND, job->id, NULL, &r);
        if (!find)
                return r;
        r = tr_statement_row(database, find);
        if (r != 0)
                return r;
        ret_task->seq = sqlite3_column_int64(find, 0);
        const char *text = tr_column(find, 1, &len);
        free(job->task_component);
        job->task_component = strndup(text ? text : "", len);
        text = tr_column(find, 2, &len);
        ret_task->state = tr_tally_state_of(text ? text : "", len);
        text = tr_column(find, 3, &len);
        free(job->task_operation);
        job->task_operation = strndup(text ? text : "", len);
        job->task_uid = (uint32_t)sqlite3_column_int64(find, 4);
        tr_statement_end(find);
        return job->task_component && job->task_operation ? 0 : tr_error_origin(-ENOMEM);
}

/* From one state to another; TR_TALLY_STATES: it is gone. */
static int note_move(struct tr_database *database, const struct tr_store_job *job, enum tr_tally_state from, enum tr_tally_state to) {
        size_t len = strlen(job->task_component);
        int r = 0;
        if (from < TR_TALLY_STATES)
                r = tr_tally_note(database->tally, job->task_component, len, from, -1);
        if (r == 0 && to < TR_TALLY_STATES)
                r = tr_tally_note(database->tally, job->task_component, len, to, 1);
        return r;
}

/* `number` is what the statement has beside the task and the time; of one that has a cause, too, that is behind it. */
static int run_update(struct tr_database *database, const struct tr_store_job *job, enum tr_statement which, int64_t seq, int64_t number,
                      const struct kept *cause) {
        int r = 0;
        sqlite3_stmt *update = tr_statement(database, which, NULL, NULL, &r);
        if (!update)
                return r;
        sqlite3_bind_int64(update, 1, seq);
        sqlite3_bind_int64(update, 2, tr_clock_wall_ms());
        sqlite3_bind_int64(update, 3, number);
        if (cause && job->document)
                tr_bind_bytes(update, 4, cause->data, cause->bytes, cause->is_text);
        if (which == TR_STATEMENT_TASK_AGAIN)
                sqlite3_bind_int64(update, 5, job->due_ms);
        r = tr_statement_run(database, update);
        sqlite3_clear_bindings(update);
        return r;
}

/* Moves one that was found. */
static int move(struct tr_database *database, const struct tr_store_job *job, const struct found_task *task, const struct kept *cause) {
        switch (job->kind) {
        case TR_STORE_TASK_BEGIN:
                return run_update(database, job, TR_STATEMENT_TASK_BEGIN, task->seq, job->task.runs, NULL);
        case TR_STORE_TASK_AGAIN:
                return run_update(database, job, TR_STATEMENT_TASK_AGAIN, task->seq, job->task.runs, cause);
        case TR_STORE_TASK_PARK:
                return run_update(database, job, TR_STATEMENT_TASK_PARK, task->seq, job->task.runs, cause);
        case TR_STORE_TASK_RETRY:
                return task->state == TR_TALLY_RUNNING ?
                               0 :
                               run_update(database, job, TR_STATEMENT_TASK_RETRY, task->seq, job->now_ms, NULL);
        default: /* END, DROP */
                return run_with(database, TR_STATEMENT_TASK_DELETE, task->seq);
        }
}

static enum tr_tally_state state_after(enum tr_store_kind kind, enum tr_tally_state before) {
        switch (kind) {
        case TR_STORE_TASK_BEGIN:
                return TR_TALLY_RUNNING;
        case TR_STORE_TASK_AGAIN:
                return TR_TALLY_WAITING;
        case TR_STORE_TASK_PARK:
                return TR_TALLY_PARKED;
        case TR_STORE_TASK_RETRY:
                return before == TR_TALLY_RUNNING ? before : TR_TALLY_WAITING;
        default:
                return TR_TALLY_STATES;
        }
}

int tr_job_task_move(struct tr_database *database, struct tr_store_job *job) {
        bool is_asked = job->kind == TR_STORE_TASK_RETRY || job->kind == TR_STORE_TASK_DROP;
        struct found_task task = { 0 };
        struct kept cause = { 0 };
        int r = find_task(database, job, &task);
        if (r == TR_STATEMENT_OVER) {
                if (is_asked)
                        job->failure = tr_failure_new(TR_CODE_NOT_FOUND, "there is no task %s", job->id);
                return 0;
        }
        if (r == 0 && job->document)
                r = keep(job->document, job->document_bytes, &cause);
        if (r == 0)
                r = move(database, job, &task, &cause);
        tr_writer_deinit(&cause.text);
        if (r == 0)
                r = note_move(database, job, task.state, state_after(job->kind, task.state));
        /* it is in nobody's hands any more; one that is asked for again while it is stays there */
        if (r == 0 && job->kind != TR_STORE_TASK_BEGIN && job->kind != TR_STORE_TASK_RETRY)
                r = run_with(database, TR_STATEMENT_LOADED_DELETE, task.seq);
        job->found = task.state != TR_TALLY_RUNNING;
        if (r == 0 && is_asked) {
                struct tr_writer nil = TR_WRITER_INIT;
                tr_write_nil(&nil);
                r = tr_job_answer(job, &nil);
        }
        return r;
}

/* Listing */

static void write_text(struct tr_writer *writer, const char *key, sqlite3_stmt *row, int at, uint32_t *pairs) {
        size_t len;
        if (sqlite3_column_type(row, at) == SQLITE_NULL)
                return;
        const char *text = tr_column(row, at, &len);
        tr_write_text(writer, key);
        tr_write_string(writer, text ? text : "", len);
        (*pairs)++;
}

static void write_number(struct tr_writer *writer, const char *key, sqlite3_stmt *row, int at, uint32_t *pairs) {
        if (sqlite3_column_type(row, at) == SQLITE_NULL)
                return;
        tr_write_text(writer, key);
        tr_write_int(writer, sqlite3_column_int64(row, at));
        (*pairs)++;
}

static int write_kept(struct tr_writer *writer, const char *key, sqlite3_stmt *row, int at, uint32_t *pairs) {
        if (sqlite3_column_type(row, at) == SQLITE_NULL)
                return 0;
        tr_write_text(writer, key);
        (*pairs)++;
        return read_kept(row, at, writer);
}

/* A task as a map; the columns are TASK_LIST's. */
static int write_task(sqlite3_stmt *row, struct tr_writer *tasks) {
        struct tr_writer pairs = TR_WRITER_INIT;
        uint32_t count = 0;
        write_text(&pairs, "id", row, 0, &count);
        write_text(&pairs, "component", row, 1, &count);
        write_text(&pairs, "operation", row, 2, &count);
        write_text(&pairs, "state", row, 3, &count);
        int r = write_kept(&pairs, "input", row, 4, &count);
        write_text(&pairs, "key", row, 5, &count);
        write_text(&pairs, "entity", row, 6, &count);
        write_number(&pairs, "due", row, 7, &count);
        write_number(&pairs, "expires", row, 8, &count);
        tr_write_text(&pairs, "delayed");
        tr_write_bool(&pairs, sqlite3_column_int(row, 9) != 0);
        count++;
        write_number(&pairs, "runs", row, 10, &count);
        write_number(&pairs, "created", row, 11, &count);
        write_number(&pairs, "updated", row, 12, &count);
        if (r == 0)
                r = write_kept(&pairs, "cause", row, 13, &count);
        write_text(&pairs, "trace", row, 14, &count);
        write_number(&pairs, "depth", row, 15, &count);
        tr_write_text(&pairs, "caller");
        tr_write_map(&pairs, 3);
        tr_write_text(&pairs, "uid");
        tr_write_int(&pairs, sqlite3_column_int64(row, 16));
        tr_write_text(&pairs, "gid");
        tr_write_int(&pairs, sqlite3_column_int64(row, 17));
        tr_write_text(&pairs, "pid");
        tr_write_int(&pairs, sqlite3_column_int64(row, 18));
        tr_write_map(tasks, count + 1);
        tr_write_raw(tasks, pairs.data, pairs.len);
        if (r == 0 && (tr_writer_error(&pairs) || tr_writer_error(tasks)))
                r = tr_error_origin(-ENOMEM);
        tr_writer_deinit(&pairs);
        return r;
}

static int read_tasks(struct tr_database *database, struct tr_store_job *job, struct tr_writer *tasks, uint32_t *ret_count) {
        int r = 0;
        sqlite3_stmt *list = tr_statement(database, TR_STATEMENT_TASK_LIST, job->component, job->state, &r);
        if (!list)
                return r;
        while ((r = tr_statement_row(database, list)) == 0) {
                r = write_task(list, tasks);
                if (r < 0 || tasks->len > TR_STORE_ANSWER_MAX) {
                        tr_statement_end(list);
                        break;
                }
                (*ret_count)++;
        }
        if (r == 0)
                job->failure = tr_failure_new(TR_CODE_TOO_LARGE, "the tasks are more than %u bytes: name a component or a state",
                                              TR_STORE_ANSWER_MAX);
        return r < 0 ? r : 0;
}

int tr_job_task_list(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer tasks = TR_WRITER_INIT;
        uint32_t count = 0;
        int r = read_tasks(database, job, &tasks, &count);
        if (r == 0 && !job->failure)
                r = tr_job_answer_array(job, &tasks, count);
        tr_writer_deinit(&tasks);
        return r;
}

int tr_tally_load(struct tr_database *database) {
        size_t len;
        int r = 0;
        sqlite3_stmt *count = tr_statement(database, TR_STATEMENT_TASK_COUNT, NULL, NULL, &r);
        if (!count)
                return r;
        while ((r = tr_statement_row(database, count)) == 0) {
                const char *text = tr_column(count, 1, &len);
                enum tr_tally_state state = tr_tally_state_of(text ? text : "", len);
                text = tr_column(count, 0, &len);
                if (state < TR_TALLY_STATES && tr_tally_note(database->tally, text ? text : "", len, state, sqlite3_column_int64(count, 2)) < 0) {
                        tr_statement_end(count);
                        return tr_error_origin(-ENOMEM);
                }
        }
        if (r == TR_STATEMENT_OVER)
                tr_tally_commit(database->tally);
        return r < 0 ? r : 0;
}
