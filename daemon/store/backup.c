/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/store/database.h"

static struct tr_failure *no_memory(void) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a backup");
}

static struct tr_failure *cannot(const char *path, const char *why) {
        return tr_failure_new(TR_CODE_STORE, "%s cannot be written: %s", path, why);
}

static struct tr_failure *cannot_sqlite(const struct tr_backup *backup, int code) {
        bool known = backup->to && sqlite3_errcode(backup->to) != SQLITE_OK;
        if ((code & 0xff) == SQLITE_NOMEM)
                return no_memory();
        return cannot(backup->path, known ? sqlite3_errmsg(backup->to) : sqlite3_errstr(code));
}

/* Whether a path is the database's own file, or one of those beside it. */
static bool is_own_file(const struct tr_database *database, const char *path) {
        static const char *const suffixes[] = { "", "-wal", "-shm", "-lock" };
        struct stat there, own;
        if (!database->path || stat(path, &there) < 0)
                return false;
        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                TR_AUTO_FREE char *name = NULL;
                if (asprintf(&name, "%s%s", database->path, suffixes[i]) < 0) {
                        name = NULL;
                        return true; /* rather than to overwrite it */
                }
                if (stat(name, &own) == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino)
                        return true;
        }
        return false;
}

/* An empty file of its own beside where the copy goes, which only we read. */
static struct tr_failure *make_part(struct tr_backup *backup) {
        char id[TR_STORE_ID_LEN + 1];
        if (tr_store_new_id(id) < 0)
                return tr_failure_new(TR_CODE_INTERNAL, "there is no randomness");
        if (asprintf(&backup->part, "%s.%s", backup->path, id) < 0) {
                backup->part = NULL;
                return no_memory();
        }
        int fd = open(backup->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
                struct tr_failure *failure = cannot(backup->path, strerrordesc_np(errno));
                free(tr_steal(backup->part)); /* it is not ours to take away */
                return failure;
        }
        close(fd);
        return NULL;
}

struct tr_failure *tr_backup_begin(struct tr_backup *backup, struct tr_database *database, const char *path) {
        struct stat there;
        struct tr_failure *failure = NULL;
        *backup = (struct tr_backup){ .database = database };
        if (path[0] != '/')
                return tr_failure_new(TR_CODE_BAD_REQUEST, "backup: the path has to be absolute, and is %s", path);
        if (is_own_file(database, path))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "backup: %s is the store itself", path);
        if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "backup: %s is there, and no file", path);
        backup->path = strdup(path);
        failure = backup->path ? make_part(backup) : no_memory();
        if (!failure) {
                int code = sqlite3_open_v2(backup->part, &backup->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                                           NULL);
                if (code == SQLITE_OK) {
                        backup->copy = sqlite3_backup_init(backup->to, "main", database->sqlite, "main");
                        code = backup->copy ? SQLITE_OK : sqlite3_errcode(backup->to);
                }
                if (code != SQLITE_OK)
                        failure = cannot_sqlite(backup, code);
        }
        if (failure)
                tr_backup_abandon(backup);
        return failure;
}

struct tr_failure *tr_backup_step(struct tr_backup *backup, int pages, bool *ret_whole) {
        int code = sqlite3_backup_step(backup->copy, pages);
        *ret_whole = code == SQLITE_DONE;
        /* busy: a person has the file, and it is tried again */
        if (code == SQLITE_OK || code == SQLITE_DONE || (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED)
                return NULL;
        struct tr_failure *failure = cannot_sqlite(backup, code);
        tr_backup_abandon(backup);
        return failure;
}

struct tr_failure *tr_backup_end(struct tr_backup *backup) {
        struct tr_failure *failure = NULL;
        int code = sqlite3_backup_finish(tr_steal(backup->copy));
        /* it came as a database with a write-ahead log, and is to be one file */
        if (code == SQLITE_OK)
                code = sqlite3_exec(backup->to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
        if (code != SQLITE_OK)
                failure = cannot_sqlite(backup, code);
        sqlite3_close(tr_steal(backup->to));
        if (!failure && rename(backup->part, backup->path) < 0)
                failure = cannot(backup->path, strerrordesc_np(errno));
        if (!failure) {
                free(tr_steal(backup->part));
                int r = tr_database_sync_folder(backup->path);
                if (r < 0)
                        failure = cannot(backup->path, strerrordesc_np(-r));
        }
        tr_backup_abandon(backup);
        return failure;
}

void tr_backup_abandon(struct tr_backup *backup) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
        if (backup->copy)
                sqlite3_backup_finish(backup->copy);
        sqlite3_close(backup->to);
        for (size_t i = 0; backup->part && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                char *name;
                if (asprintf(&name, "%s%s", backup->part, suffixes[i]) < 0)
                        continue;
                unlink(name);
                free(name);
        }
        free(backup->part);
        free(backup->path);
        *backup = (struct tr_backup){ .database = backup->database };
}

struct tr_failure *tr_backup_whole(struct tr_database *database, const char *path) {
        struct tr_backup backup;
        bool whole = false;
        struct tr_failure *failure = tr_backup_begin(&backup, database, path);
        if (!failure)
                failure = tr_backup_step(&backup, -1, &whole);
        if (!failure && !whole) {
                failure = cannot(path, "somebody else has the store open");
                tr_backup_abandon(&backup);
        }
        return failure ? failure : tr_backup_end(&backup);
}
