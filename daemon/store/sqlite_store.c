/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread. It takes all that waits and does it in the order in which it came, as far as that can be seen: reads that stand before any
 * write at once; then all writes, in one transaction; when that is on disk their submitters are told; then the reads that stood behind a
 * write. What comes meanwhile is the next round's.
 *
 * Where SQLite fails, the transaction is rolled back and each of its jobs is done in one of its own: what cannot be done fails alone.
 *
 * A backup is copied between the rounds, some pages at a time, one backup after another.
 */
#include "daemon/store/sqlite_store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/lock.h"
#include "daemon/base/thread.h"
#include "daemon/store/backup.h"
#include "daemon/store/database.h"
#include "daemon/store/jobs.h"
#include "daemon/store/tally.h"

/* Of a backup, between two rounds: a millisecond or so. */
#define BACKUP_PAGES 256

struct tr_sqlite_store {
        struct tr_store store;
        struct tr_tally tally;

        struct tr_lock lock; /* nothing else is acquired under it */
        pthread_cond_t wake;
        struct tr_list queue TR_GUARDED_BY(lock); /* struct tr_store_job */
        bool closed TR_GUARDED_BY(lock);          /* takes no more */

        /* The thread's, once it is there. */
        struct tr_database database;
        struct tr_list backups; /* that wait; the first is under way where backing_up */
        struct tr_backup backup;
        bool backing_up;

        pthread_t thread;
        bool joined;
};

static struct tr_sqlite_store *store_of(struct tr_store *store) {
        return tr_container_of(store, struct tr_sqlite_store, store);
}

/* Submitting */

static void store_submit(struct tr_store *interface, struct tr_store_job *job) {
        struct tr_sqlite_store *store = store_of(interface);
        job->failure = NULL;
        job->value = NULL;
        job->task_component = NULL;
        job->task_operation = NULL;
        job->tasks = NULL;
        job->tasks_count = 0;
        tr_lock_acquire(&store->lock);
        bool closed = store->closed;
        if (!closed) {
                bool was_empty = tr_list_is_empty(&store->queue);
                tr_list_append(&store->queue, &job->link);
                if (was_empty)
                        pthread_cond_signal(&store->wake);
        }
        tr_lock_release(&store->lock);
        if (closed) {
                job->failure = tr_failure_new(TR_CODE_SHUTTING_DOWN, "the store is closed: the daemon is shutting down");
                job->done(job);
        }
}

static void store_visit_counts(struct tr_store *interface, void (*visit)(void *userdata, const struct tr_store_counts *counts),
                               void *userdata) {
        tr_tally_visit(&store_of(interface)->tally, visit, userdata);
}

static const struct tr_store_ops store_ops = {
        .submit = store_submit,
        .visit_counts = store_visit_counts,
};

/* Doing */

/* What could not be done: nothing of it has happened. */
static void fail(struct tr_sqlite_store *store, struct tr_store_job *job, int r) {
        tr_store_job_deinit(job);
        job->failure = tr_database_failure(&store->database, r);
}

static void finish_all(struct tr_list *jobs) {
        struct tr_store_job *job;
        while ((job = tr_list_first(jobs, struct tr_store_job, link))) {
                tr_list_unlink(&job->link);
                job->done(job);
        }
}

/* Some failures have rolled it back already. Where it cannot be, nothing can be written, and each that is tried says so. */
static void roll_back(struct tr_sqlite_store *store) {
        tr_tally_forget(&store->tally);
        if (!sqlite3_get_autocommit(store->database.sqlite))
                sqlite3_exec(store->database.sqlite, "ROLLBACK", NULL, NULL, NULL);
}

/* All jobs of a list in one transaction: 0, or a negative errno, and nothing has happened. */
static int commit_all(struct tr_sqlite_store *store, struct tr_list *jobs) {
        struct tr_store_job *job;
        int r = tr_statement_do(&store->database, TR_STATEMENT_BEGIN, NULL, NULL);
        tr_list_for_each(job, jobs, link) {
                if (r < 0)
                        break;
                r = tr_job_do(&store->database, job);
        }
        if (r == 0)
                r = tr_statement_do(&store->database, TR_STATEMENT_COMMIT, NULL, NULL);
        if (r == 0)
                tr_tally_commit(&store->tally);
        else
                roll_back(store);
        return r;
}

static void write_each(struct tr_sqlite_store *store, struct tr_list *jobs) {
        struct tr_store_job *job;
        while ((job = tr_list_first(jobs, struct tr_store_job, link))) {
                struct tr_list alone;
                tr_list_init(&alone);
                tr_list_unlink(&job->link);
                tr_list_append(&alone, &job->link);
                tr_store_job_deinit(job);
                int r = commit_all(store, &alone);
                if (r < 0)
                        fail(store, job, r);
                finish_all(&alone);
        }
}

static void write_all(struct tr_sqlite_store *store, struct tr_list *jobs) {
        struct tr_store_job *job;
        if (tr_list_is_empty(jobs))
                return;
        bool is_one = jobs->next == jobs->prev;
        int r = commit_all(store, jobs);
        if (r < 0 && is_one)
                tr_list_for_each(job, jobs, link)
                        fail(store, job, r);
        if (r == 0 || is_one)
                finish_all(jobs);
        else
                write_each(store, jobs);
}

static void read_all(struct tr_sqlite_store *store, struct tr_list *jobs) {
        struct tr_store_job *job;
        while ((job = tr_list_first(jobs, struct tr_store_job, link))) {
                tr_list_unlink(&job->link);
                if (job->kind == TR_STORE_BACKUP) {
                        tr_list_append(&store->backups, &job->link);
                        continue;
                }
                int r = tr_job_do(&store->database, job);
                if (r < 0)
                        fail(store, job, r);
                job->done(job);
        }
}

/* Takes those off a queue that go before all others: reads, up to the first write; all writes; the reads behind. */
static void take(struct tr_list *queue, struct tr_list *before, struct tr_list *writes, struct tr_list *behind) {
        struct tr_store_job *job;
        tr_list_for_each(job, queue, link) {
                bool writes_it = tr_job_writes(job);
                tr_list_unlink(&job->link);
                tr_list_append(writes_it ? writes : tr_list_is_empty(writes) ? before : behind, &job->link);
        }
}

static void do_round(struct tr_sqlite_store *store, struct tr_list *queue) {
        struct tr_list before, writes, behind;
        tr_list_init(&before);
        tr_list_init(&writes);
        tr_list_init(&behind);
        take(queue, &before, &writes, &behind);
        read_all(store, &before);
        write_all(store, &writes);
        read_all(store, &behind);
}

/* Backups */

static void backup_over(struct tr_sqlite_store *store, struct tr_store_job *job, struct tr_failure *failure) {
        struct tr_writer nil = TR_WRITER_INIT;
        store->backing_up = false;
        tr_list_unlink(&job->link);
        job->failure = failure;
        if (!failure) {
                tr_write_nil(&nil);
                if (tr_job_answer(job, &nil) < 0)
                        job->failure = tr_database_failure(&store->database, -ENOMEM);
        }
        job->done(job);
}

/* Goes on with the first one. */
static void back_up(struct tr_sqlite_store *store) {
        struct tr_store_job *job = tr_container_of(store->backups.next, struct tr_store_job, link);
        struct tr_failure *failure = NULL;
        bool whole = false;
        if (!store->backing_up) {
                failure = tr_backup_begin(&store->backup, &store->database, job->path);
                store->backing_up = !failure;
        }
        if (!failure)
                failure = tr_backup_step(&store->backup, BACKUP_PAGES, &whole);
        if (!failure && whole)
                failure = tr_backup_end(&store->backup);
        if (failure || whole)
                backup_over(store, job, failure);
}

/* The daemon ends. */
static void give_backups_up(struct tr_sqlite_store *store) {
        struct tr_store_job *job;
        if (store->backing_up)
                tr_backup_abandon(&store->backup);
        tr_list_for_each(job, &store->backups, link)
                backup_over(store, job, tr_failure_new(TR_CODE_SHUTTING_DOWN, "the daemon is shutting down"));
}

/* The thread */

/* Waits for something to do, and takes it. False: there will be no more. */
static bool next_round(struct tr_sqlite_store *store, struct tr_list *ret_queue) {
        bool has_backup = !tr_list_is_empty(&store->backups);
        tr_lock_acquire(&store->lock);
        while (tr_list_is_empty(&store->queue) && !store->closed && !has_backup)
                pthread_cond_wait(&store->wake, &store->lock.mutex);
        bool closed = store->closed;
        tr_list_splice(ret_queue, &store->queue);
        tr_lock_release(&store->lock);
        return !closed || !tr_list_is_empty(ret_queue);
}

static void *store_main(void *userdata) {
        struct tr_sqlite_store *store = userdata;
        struct tr_list queue;
        tr_thread_enter(TR_THREAD_STORE, "store");
        tr_list_init(&queue);
        while (next_round(store, &queue)) {
                do_round(store, &queue);
                if (!tr_list_is_empty(&store->backups))
                        back_up(store);
        }
        give_backups_up(store);
        return NULL;
}

/* Its life */

static int start_thread(struct tr_sqlite_store *store) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int error = pthread_create(&store->thread, NULL, store_main, store);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return error ? tr_error_origin(-error) : 0;
}

int tr_sqlite_store_new(const char *path, struct tr_sqlite_store **ret_store, char **ret_why) {
        const struct tr_database_options options = { .path = path, .steps = tr_schema_steps };
        struct tr_sqlite_store *store = calloc(1, sizeof(*store));
        *ret_why = NULL;
        if (!store)
                return tr_error_origin(-ENOMEM);
        store->store.ops = &store_ops;
        tr_tally_init(&store->tally);
        tr_lock_init(&store->lock);
        pthread_cond_init(&store->wake, NULL);
        tr_list_init(&store->queue);
        tr_list_init(&store->backups);
        store->joined = true;
        int r = tr_database_open(&store->database, &options, ret_why);
        if (r == 0) {
                store->database.tally = &store->tally;
                r = tr_tally_load(&store->database);
                if (r < 0 && r != -ENOMEM) {
                        *ret_why = tr_steal(store->database.why);
                        r = TR_STORE_OPEN_UNUSABLE;
                }
        }
        if (r == 0)
                r = start_thread(store);
        if (r != 0) {
                tr_sqlite_store_free(store);
                return r;
        }
        store->joined = false;
        *ret_store = store;
        return 0;
}

struct tr_store *tr_sqlite_store_interface(struct tr_sqlite_store *store) {
        return &store->store;
}

void tr_sqlite_store_close(struct tr_sqlite_store *store) {
        if (!store || store->joined)
                return;
        tr_lock_acquire(&store->lock);
        store->closed = true;
        pthread_cond_signal(&store->wake);
        tr_lock_release(&store->lock);
        pthread_join(store->thread, NULL);
        store->joined = true;
        tr_database_close(&store->database);
}

void tr_sqlite_store_free(struct tr_sqlite_store *store) {
        if (!store)
                return;
        tr_sqlite_store_close(store);
        tr_database_close(&store->database);
        tr_tally_deinit(&store->tally);
        pthread_cond_destroy(&store->wake);
        tr_lock_deinit(&store->lock);
        free(store);
}
