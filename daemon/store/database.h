/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_STORE_DATABASE_H
#define TR_STORE_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/core/store.h"

/*
 * The file: opened, locked, and of this version; and the statements that are run on it. One thread at a time.
 *
 * Where SQLite cannot do something the answer is -EIO, or -ENOMEM, and `why` has its sentence: what was under way is to be rolled back. A
 * job that is refused for what is in it has its failure instead, and the answer is 0.
 */

/* In the file's header: a database of ours ("Trpe"). */
#define TR_DATABASE_APPLICATION 0x54727065
/* Milliseconds that are waited where a person holds the file. */
#define TR_DATABASE_BUSY_MS 5000

enum {
        TR_DATABASE_LOCKED = 1, /* by another daemon */
        TR_DATABASE_NEWER = 2,  /* of a later version than we know */
        TR_DATABASE_UNUSABLE = 3,
};

/* All statements, by name. */
#define TR_STATEMENTS(X)                                                                                                             \
        X(BEGIN, "BEGIN IMMEDIATE")                                                                                                  \
        X(COMMIT, "COMMIT")                                                                                                          \
        X(ENTITY_GET, "SELECT version, created, updated, body FROM entities WHERE component = ?1 AND id = ?2")                       \
        X(ENTITY_INSERT, "INSERT INTO entities (component, id, version, created, updated, body) VALUES (?1, ?2, 1, ?3, ?3, ?4)")     \
        X(ENTITY_UPDATE, "UPDATE entities SET version = version + 1, updated = ?3, body = ?4 WHERE component = ?1 AND id = ?2")      \
        X(ENTITY_DELETE, "DELETE FROM entities WHERE component = ?1 AND id = ?2")                                                    \
        X(TASK_KEY, "SELECT id FROM tasks WHERE component = ?1 AND operation = ?2 AND key = ?3 AND state = 'waiting' LIMIT 1")       \
        X(TASK_INSERT, "INSERT INTO tasks (id, component, operation, state, input, key, entity, due, expires, delayed, runs, "       \
                       "created, updated, trace, depth, uid, gid, pid) "                                                             \
                       "VALUES (?1, ?2, ?3, 'waiting', ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?10, ?11, ?12, ?13, ?14, ?15)")               \
        X(TASK_LOAD, "SELECT seq, id, operation, input, key, entity, due, expires, delayed, runs, created, trace, depth, uid, "      \
                     "gid, pid FROM tasks WHERE component = ?1 AND state = 'waiting' AND delayed = ?2 AND due BETWEEN ?3 AND ?4 "    \
                     "AND seq NOT IN (SELECT seq FROM temp.loaded) ORDER BY due, seq LIMIT ?5")                                      \
        X(TASK_NEXT, "SELECT due FROM tasks WHERE component = ?1 AND state = 'waiting' AND delayed = ?2 "                            \
                     "AND seq NOT IN (SELECT seq FROM temp.loaded) ORDER BY due, seq LIMIT 1")                                       \
        X(TASK_FIND, "SELECT seq, component, state, operation, uid FROM tasks WHERE id = ?1")                                         \
        X(TASK_BEGIN, "UPDATE tasks SET state = 'running', runs = ?3, updated = ?2 WHERE seq = ?1")                                  \
        X(TASK_AGAIN, "UPDATE tasks SET state = 'waiting', runs = ?3, cause = coalesce(?4, cause), due = ?5, updated = ?2 "          \
                      "WHERE seq = ?1")                                                                                              \
        X(TASK_PARK, "UPDATE tasks SET state = 'parked', runs = ?3, cause = coalesce(?4, cause), updated = ?2 WHERE seq = ?1")       \
        X(TASK_RETRY, "UPDATE tasks SET state = 'waiting', due = ?3, expires = NULL, delayed = 0, updated = ?2, "                    \
                      "runs = CASE state WHEN 'parked' THEN 0 ELSE runs END WHERE seq = ?1")                                         \
        X(TASK_FRESH, "UPDATE tasks SET state = 'waiting' WHERE component = ?1 AND state = 'running'")                               \
        X(TASK_DELETE, "DELETE FROM tasks WHERE seq = ?1")                                                                           \
        X(TASK_LIST, "SELECT id, component, operation, state, input, key, entity, due, expires, delayed, runs, created, updated, "   \
                     "cause, trace, depth, uid, gid, pid FROM tasks WHERE (?1 IS NULL OR component = ?1) "                           \
                     "AND (?2 IS NULL OR state = ?2) ORDER BY seq")                                                                  \
        X(TASK_COUNT, "SELECT component, state, count(*) FROM tasks GROUP BY component, state")                                      \
        X(LOADED_INSERT, "INSERT OR IGNORE INTO temp.loaded (seq) VALUES (?1)")                                                      \
        X(LOADED_DELETE, "DELETE FROM temp.loaded WHERE seq = ?1")                                                                   \
        X(LOADED_FRESH, "DELETE FROM temp.loaded WHERE seq IN (SELECT seq FROM tasks WHERE component = ?1)")                         \
        X(NAME_HOLD, "INSERT OR REPLACE INTO names (component, instance, daemon) VALUES (?1, ?2, ?3)")                               \
        X(NAME_RELEASE, "DELETE FROM names WHERE component = ?1 AND instance = ?2")                                                  \
        X(NAMES_LEFT, "SELECT instance FROM names WHERE component = ?1 AND daemon <> ?2 ORDER BY instance")                          \
        X(NAMES_FORGET, "DELETE FROM names WHERE component = ?1 AND daemon <> ?2")

enum tr_statement {
#define TR_STATEMENT_ENUM(name, text) TR_STATEMENT_##name,
        TR_STATEMENTS(TR_STATEMENT_ENUM)
#undef TR_STATEMENT_ENUM
        TR_STATEMENTS_COUNT,
};

/* From each version to the next: the first is from 0, which is an empty file, to 1. NULL-terminated. */
extern const char *const tr_schema_steps[];

struct tr_database_options {
        const char *path;         /* NULL: in memory */
        const char *const *steps; /* tr_schema_steps; NULL-terminated. Tests have others */
};

struct tr_tally;

struct tr_database {
        sqlite3 *sqlite;
        struct tr_tally *tally; /* borrowed: told of each task that comes, changes its state or goes */
        char *path;   /* as it is without symbolic links; NULL: in memory */
        int lock_fd;  /* -1: none */
        char *why;    /* a sentence; NULL: nothing has failed, or there was no memory for it */
        char daemon[TR_STORE_ID_LEN + 1]; /* what this one is called among those that have held names */
        sqlite3_stmt *statements[TR_STATEMENTS_COUNT];
};

/* 0; TR_DATABASE_* or a negative errno, with a sentence in *ret_why (the caller frees it; NULL where memory is short) and nothing to
 * close. */
TR_MUST_CHECK int tr_database_open(struct tr_database *database, const struct tr_database_options *options, char **ret_why);
/* An empty one is fine. */
void tr_database_close(struct tr_database *database);

/* What SQLite said, as one of ours, kept as `why`: never 0. */
int tr_database_failed(struct tr_database *database, int code);
/* The failure of a job that could not be done: no-memory for -ENOMEM, else `store`, with `why`. */
struct tr_failure *tr_database_failure(const struct tr_database *database, int r);

/* A statement, ready to be run or to be bound further: `one` is its ?1 and `two` its ?2 (NULL: it is NULL), which stay until it is run.
 * NULL: *ret_error says why. */
sqlite3_stmt *tr_statement(struct tr_database *database, enum tr_statement which, const char *one, const char *two, int *ret_error);
/* Runs one that answers no rows, and resets it. 0 or a negative errno. */
TR_MUST_CHECK int tr_statement_run(struct tr_database *database, sqlite3_stmt *statement);
/* Both. */
TR_MUST_CHECK int tr_statement_do(struct tr_database *database, enum tr_statement which, const char *one, const char *two);
/* The next row: 0, or TR_STATEMENT_OVER, or a negative errno; after both it is reset. */
enum {
        TR_STATEMENT_OVER = 1,
};
TR_MUST_CHECK int tr_statement_row(struct tr_database *database, sqlite3_stmt *statement);
/* Whoever does not read to the last row. */
void tr_statement_end(sqlite3_stmt *statement);
/* NULL is NULL. What they point to stays until the statement is reset. */
void tr_bind_text(sqlite3_stmt *statement, int at, const char *text);
void tr_bind_bytes(sqlite3_stmt *statement, int at, const void *data, size_t bytes, bool is_text);
/* A text, or bytes, of the present row; NULL where it is NULL or empty. Allocates nothing. */
const char *tr_column(sqlite3_stmt *statement, int at, size_t *ret_len);

/* Without preparing: for what is run once. */
TR_MUST_CHECK int tr_database_run(struct tr_database *database, const char *sql);

/* So that a file's name is on disk, too. 0 or a negative errno. */
TR_MUST_CHECK int tr_database_sync_folder(const char *path);

#endif
