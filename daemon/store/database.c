/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, in an order that touches nothing before it may: folder, an empty file where there is none, the lock, whose it is and of which
 * version, a copy of one that is older, and only then what changes it.
 *
 * The lock is on a file of its own: closing any descriptor of the database in this process would give up the locks that SQLite has on it.
 */
#include "daemon/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/store/backup.h"

static const char *const statement_texts[] = {
#define TR_STATEMENT_TEXT(name, text) text,
        TR_STATEMENTS(TR_STATEMENT_TEXT)
#undef TR_STATEMENT_TEXT
};

/* Failures */

static void say(char **ret_why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(char **ret_why, const char *format, ...) {
        va_list args;
        char *why;
        va_start(args, format);
        int len = vasprintf(&why, format, args);
        va_end(args);
        free(*ret_why);
        *ret_why = len < 0 ? NULL : why;
}

int tr_database_failed(struct tr_database *database, int code) {
        bool full = (code & 0xff) == SQLITE_FULL;
        say(&database->why, "%s", full ? "there is no room on the disk" : database->sqlite ? sqlite3_errmsg(database->sqlite) : sqlite3_errstr(code));
        return tr_error_origin((code & 0xff) == SQLITE_NOMEM ? -ENOMEM : -EIO);
}

struct tr_failure *tr_database_failure(const struct tr_database *database, int r) {
        if (r == -ENOMEM)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory in the store");
        return tr_failure_new(TR_CODE_STORE, "the store failed: %s", database->why ? database->why : strerrordesc_np(-r));
}

/* Statements */

sqlite3_stmt *tr_statement(struct tr_database *database, enum tr_statement which, const char *one, const char *two, int *ret_error) {
        sqlite3_stmt **statement = &database->statements[which];
        if (!*statement) {
                int code = sqlite3_prepare_v3(database->sqlite, statement_texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
                if (code != SQLITE_OK) {
                        *ret_error = tr_database_failed(database, code);
                        return NULL;
                }
        }
        sqlite3_reset(*statement);
        sqlite3_clear_bindings(*statement);
        tr_bind_text(*statement, 1, one);
        tr_bind_text(*statement, 2, two);
        return *statement;
}

int tr_statement_run(struct tr_database *database, sqlite3_stmt *statement) {
        int code = sqlite3_step(statement);
        int r = code == SQLITE_DONE || code == SQLITE_ROW ? 0 : tr_database_failed(database, code);
        sqlite3_reset(statement);
        return r;
}

int tr_statement_do(struct tr_database *database, enum tr_statement which, const char *one, const char *two) {
        int r = 0;
        sqlite3_stmt *statement = tr_statement(database, which, one, two, &r);
        return statement ? tr_statement_run(database, statement) : r;
}

int tr_statement_row(struct tr_database *database, sqlite3_stmt *statement) {
        int code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                return 0;
        int r = code == SQLITE_DONE ? TR_STATEMENT_OVER : tr_database_failed(database, code);
        sqlite3_reset(statement);
        return r;
}

void tr_statement_end(sqlite3_stmt *statement) {
        sqlite3_reset(statement);
}

void tr_bind_text(sqlite3_stmt *statement, int at, const char *text) {
        if (text)
                sqlite3_bind_text64(statement, at, text, strlen(text), SQLITE_STATIC, SQLITE_UTF8);
}

void tr_bind_bytes(sqlite3_stmt *statement, int at, const void *data, size_t bytes, bool is_text) {
        if (is_text)
                sqlite3_bind_text64(statement, at, data, bytes, SQLITE_STATIC, SQLITE_UTF8);
        else
                sqlite3_bind_blob64(statement, at, data, bytes, SQLITE_STATIC);
}

const char *tr_column(sqlite3_stmt *statement, int at, size_t *ret_len) {
        const char *data = sqlite3_column_blob(statement, at);
        *ret_len = (size_t)sqlite3_column_bytes(statement, at);
        return data;
}

int tr_database_run(struct tr_database *database, const char *sql) {
        int code = sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL);
        return code == SQLITE_OK ? 0 : tr_database_failed(database, code);
}

/* The number that a text of one row and one column answers. */
static int read_number(struct tr_database *database, const char *sql, int64_t *ret_number) {
        sqlite3_stmt *statement;
        int code = sqlite3_prepare_v2(database->sqlite, sql, -1, &statement, NULL);
        if (code != SQLITE_OK)
                return tr_database_failed(database, code);
        code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret_number = sqlite3_column_int64(statement, 0);
        int r = code == SQLITE_ROW ? 0 : tr_database_failed(database, code);
        sqlite3_finalize(statement);
        return r;
}

/* Files */

/* Makes the folders that a path goes through, where they are missing. */
static int make_folders(const char *path) {
        TR_AUTO_FREE char *folder = strdup(path);
        if (!folder)
                return -ENOMEM;
        for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return 0;
}

int tr_database_sync_folder(const char *path) {
        TR_AUTO_FREE char *copy = strdup(path);
        if (!copy)
                return tr_error_origin(-ENOMEM);
        TR_AUTO_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The path without symbolic links, and a file there. 0 or a negative errno. */
static int find_file(const char *path, char **ret_path) {
        char *real = realpath(path, NULL);
        if (!real && errno == ENOENT) {
                int r = make_folders(path);
                if (r < 0)
                        return r;
                int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (fd < 0 && errno != EEXIST)
                        return -errno;
                if (fd >= 0)
                        close(fd);
                r = tr_database_sync_folder(path);
                if (r < 0)
                        return r;
                real = realpath(path, NULL);
        }
        if (!real)
                return -errno;
        *ret_path = real;
        return 0;
}

/* Whose lock it is, for people: 0 where it is not known. */
static long lock_holder(int fd) {
        char text[32];
        ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
        if (len <= 0)
                return 0;
        text[len] = '\0';
        return strtol(text, NULL, 10);
}

static int take_lock(struct tr_database *database, char **ret_why) {
        TR_AUTO_FREE char *path = NULL;
        if (asprintf(&path, "%s-lock", database->path) < 0) {
                path = NULL;
                return tr_error_origin(-ENOMEM);
        }
        database->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (database->lock_fd < 0) {
                say(ret_why, "%s cannot be opened: %s", path, strerrordesc_np(errno));
                return TR_DATABASE_UNUSABLE;
        }
        if (flock(database->lock_fd, LOCK_EX | LOCK_NB) < 0) {
                long holder = errno == EWOULDBLOCK ? lock_holder(database->lock_fd) : 0;
                bool locked = errno == EWOULDBLOCK;
                if (holder > 0)
                        say(ret_why, "%s is in use by another daemon, process %ld", database->path, holder);
                else if (locked)
                        say(ret_why, "%s is in use by another daemon", database->path);
                else
                        say(ret_why, "%s cannot be locked: %s", path, strerrordesc_np(errno));
                return locked ? TR_DATABASE_LOCKED : TR_DATABASE_UNUSABLE;
        }
        /* for people only: that it is held is what counts */
        if (ftruncate(database->lock_fd, 0) == 0)
                dprintf(database->lock_fd, "%ld\n", (long)getpid());
        return 0;
}

/* Versions */

static int steps_count(const char *const *steps) {
        int count = 0;
        while (steps[count])
                count++;
        return count;
}

/* Its version, if it is one of ours, and one that we know. 0 or as tr_database_open(). */
static int read_version(struct tr_database *database, int known, int *ret_version, char **ret_why) {
        const char *path = database->path ? database->path : "the store";
        int64_t application, version, things = 0;
        int r = read_number(database, "PRAGMA application_id", &application);
        if (r == 0)
                r = read_number(database, "PRAGMA user_version", &version);
        if (r == 0 && application == 0)
                r = read_number(database, "SELECT count(*) FROM sqlite_schema", &things);
        if (r < 0)
                return r;
        if (application == 0 && version == 0 && things == 0) {
                *ret_version = 0;
                return 0;
        }
        if (application != TR_DATABASE_APPLICATION) {
                say(ret_why, "%s is a database of something else", path);
                return TR_DATABASE_UNUSABLE;
        }
        if (version > known) {
                say(ret_why, "%s is of version %lld, and this daemon knows none later than %d", path, (long long)version, known);
                return TR_DATABASE_NEWER;
        }
        *ret_version = (int)version;
        return 0;
}

/* A copy of one that is to be changed. */
static int keep_copy(struct tr_database *database, int version, char **ret_why) {
        TR_AUTO_FREE char *path = NULL;
        if (asprintf(&path, "%s.%d.bak", database->path, version) < 0) {
                path = NULL;
                return tr_error_origin(-ENOMEM);
        }
        struct tr_failure *failure = tr_backup_whole(database, path);
        if (!failure)
                return 0;
        int r = failure->code == TR_CODE_NO_MEMORY ? -ENOMEM : TR_DATABASE_UNUSABLE;
        say(ret_why, "%s is of version %d and has to be copied first: %s", database->path, version, failure->message);
        tr_failure_unref(failure);
        return r;
}

static int migrate(struct tr_database *database, const char *const *steps, int version, int known) {
        char numbers[96];
        int r = tr_database_run(database, "BEGIN IMMEDIATE");
        for (int i = version; r == 0 && i < known; i++)
                r = tr_database_run(database, steps[i]);
        snprintf(numbers, sizeof(numbers), "PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT", known, TR_DATABASE_APPLICATION);
        if (r == 0)
                r = tr_database_run(database, numbers);
        if (r < 0 && !sqlite3_get_autocommit(database->sqlite)) {
                /* the reason stays that of the first */
                sqlite3_exec(database->sqlite, "ROLLBACK", NULL, NULL, NULL);
        }
        return tr_error_fold(r);
}

/* Opening */

static int set_journal(struct tr_database *database, char **ret_why) {
        sqlite3_stmt *statement;
        int code = sqlite3_prepare_v2(database->sqlite, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
        if (code != SQLITE_OK)
                return tr_database_failed(database, code);
        code = sqlite3_step(statement);
        int r = 0;
        if (code != SQLITE_ROW) {
                r = tr_database_failed(database, code);
        } else if (database->path && sqlite3_stricmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0) {
                say(ret_why, "%s is on a file system where SQLite has no write-ahead log", database->path);
                r = TR_DATABASE_UNUSABLE;
        }
        sqlite3_finalize(statement);
        return r;
}

/* What holds for this connection only. */
static int set_up(struct tr_database *database) {
        return tr_database_run(database, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
                                         "PRAGMA journal_size_limit = 67108864;"
                                         "CREATE TEMP TABLE loaded (seq INTEGER PRIMARY KEY)");
}

static int open_sqlite(struct tr_database *database) {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
        if (!database->path)
                flags |= SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
        int code = sqlite3_open_v2(database->path ? database->path : ":memory:", &database->sqlite, flags, NULL);
        if (code != SQLITE_OK)
                return tr_database_failed(database, code);
        sqlite3_busy_timeout(database->sqlite, TR_DATABASE_BUSY_MS);
        return 0;
}

static int open_checked(struct tr_database *database, const char *const *steps, char **ret_why) {
        int known = steps_count(steps), version = 0;
        int r = open_sqlite(database);
        if (r == 0)
                r = read_version(database, known, &version, ret_why);
        if (r == 0 && version > 0 && version < known && database->path)
                r = keep_copy(database, version, ret_why);
        if (r == 0)
                r = set_journal(database, ret_why);
        if (r == 0)
                r = set_up(database);
        if (r == 0 && version < known)
                r = migrate(database, steps, version, known);
        /* what ran when a daemon ended runs again */
        if (r == 0)
                r = tr_database_run(database, "UPDATE tasks SET state = 'waiting' WHERE state = 'running'");
        return r;
}

int tr_database_open(struct tr_database *database, const struct tr_database_options *options, char **ret_why) {
        *database = (struct tr_database){ .lock_fd = -1 };
        *ret_why = NULL;
        int r = tr_store_new_id(database->daemon);
        if (r == 0 && options->path) {
                r = find_file(options->path, &database->path);
                if (r < 0 && r != -ENOMEM) {
                        say(ret_why, "%s cannot be opened: %s", options->path, strerrordesc_np(-r));
                        r = TR_DATABASE_UNUSABLE;
                }
        }
        if (r == 0 && options->path)
                r = take_lock(database, ret_why);
        if (r == 0)
                r = open_checked(database, options->steps, ret_why);
        if (r < 0 && r != -ENOMEM && database->why) {
                say(ret_why, "%s cannot be opened: %s", options->path ? options->path : "the store", database->why);
                r = TR_DATABASE_UNUSABLE;
        }
        if (r != 0)
                tr_database_close(database);
        return r;
}

void tr_database_close(struct tr_database *database) {
        for (int i = 0; i < TR_STATEMENTS_COUNT; i++)
                sqlite3_finalize(database->statements[i]);
        sqlite3_close(database->sqlite);
        if (database->lock_fd >= 0)
                close(database->lock_fd); /* the last of all: from here on it may be another's */
        free(database->path);
        free(database->why);
        *database = (struct tr_database){ .lock_fd = -1 };
}
