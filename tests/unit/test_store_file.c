/* SPDX-License-Identifier: Apache-2.0 */
/* The file: who may have it, of which version it is, what becomes of an older one, copies of it, and a disk that is full. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/database.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

static char text_buffer[512];

/* A path in the folder. */
static const char *in_folder(const char *name) {
        static char paths[8][160];
        static unsigned count;
        char *path = paths[count++ % 8];
        snprintf(path, sizeof(paths[0]), "%s/%s", store_folder, name);
        return path;
}

/* Opening what cannot be opened: what is said. */
static const char *refused_open(const char *path, int expected) {
        struct tr_sqlite_store *other = NULL;
        char *why = NULL;
        int r = tr_sqlite_store_new(path, &other, &why);
        ck_assert_int_eq(r, expected);
        ck_assert_ptr_null(other);
        ck_assert_ptr_nonnull(why);
        snprintf(text_buffer, sizeof(text_buffer), "%s", why);
        free(why);
        return text_buffer;
}

/* Who has it */

START_TEST(it_is_one_daemon_s_at_a_time) {
        char expected[256];
        snprintf(expected, sizeof(expected), "%s is in use by another daemon, process %ld", store_path, (long)getpid());
        ck_assert_str_eq(refused_open(store_path, TR_STORE_OPEN_LOCKED), expected);
        /* under another name, too */
        ck_assert_int_eq(symlink(store_path, in_folder("link.db")), 0);
        refused_open(in_folder("link.db"), TR_STORE_OPEN_LOCKED);
        /* and whoever was refused has taken nothing away */
        store_must(store_write("a", "{}", 0));
        refused_open(store_path, TR_STORE_OPEN_LOCKED);
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities"), 1);
        store_close();
        store_open();
        ck_assert_str_ne(store_read("a"), "nil");
}
END_TEST

START_TEST(it_is_made_with_its_folders_for_us_alone) {
        struct tr_sqlite_store *other;
        struct stat stat_of;
        char *why;
        ck_assert_int_eq(tr_sqlite_store_new(in_folder("one/two/s.db"), &other, &why), 0);
        ck_assert_int_eq(stat(in_folder("one/two/s.db"), &stat_of), 0);
        ck_assert_uint_eq(stat_of.st_mode & 07777, 0600);
        ck_assert_int_eq(stat(in_folder("one/two"), &stat_of), 0);
        ck_assert_uint_eq(stat_of.st_mode & 07777, 0700);
        ck_assert_int_eq(stat(in_folder("one/two/s.db-wal"), &stat_of), 0);
        ck_assert_uint_eq(stat_of.st_mode & 07777, 0600);
        tr_sqlite_store_free(other);
        ck_assert_int_eq(unlink(in_folder("one/two/s.db")), 0);
        ck_assert_int_eq(unlink(in_folder("one/two/s.db-lock")), 0);
        ck_assert_int_eq(rmdir(in_folder("one/two")), 0);
        ck_assert_int_eq(rmdir(in_folder("one")), 0);
}
END_TEST

START_TEST(a_person_reads_it_while_it_is_used) {
        store_must(store_write("a", "{'title':'x'}", 0));
        ck_assert_int_eq(store_number("SELECT body = '{\"title\":\"x\"}' FROM entities WHERE component = 'c' AND id = 'a'"), 1);
        store_sql("UPDATE entities SET body = '{\"title\":\"y\"}', version = version + 1");
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'title':'y'}");
}
END_TEST

START_TEST(in_memory_it_has_no_file) {
        struct tr_sqlite_store *before = store;
        char *why;
        ck_assert_int_eq(tr_sqlite_store_new(NULL, &store, &why), 0);
        store_must(store_write("a", "{}", 0));
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1}");
        store_close();
        ck_assert_int_eq(tr_sqlite_store_new(NULL, &store, &why), 0);
        ck_assert_str_eq(store_read("a"), "nil");
        store_close();
        store = before;
}
END_TEST

/* What it is */

START_TEST(what_is_no_store_is_left_alone) {
        char expected[256];
        store_close();
        store_sql("PRAGMA user_version = 99");
        snprintf(expected, sizeof(expected), "%s is of version 99, and this daemon knows none later than 1", store_path);
        ck_assert_str_eq(refused_open(store_path, TR_STORE_OPEN_NEWER), expected);
        ck_assert_int_eq(store_number("PRAGMA user_version"), 99);
        store_sql("PRAGMA user_version = 1; PRAGMA application_id = 5");
        snprintf(expected, sizeof(expected), "%s is a database of something else", store_path);
        ck_assert_str_eq(refused_open(store_path, TR_STORE_OPEN_UNUSABLE), expected);
        ck_assert_int_eq(unlink(store_path), 0);
        store_path[strlen(store_path) - 1] = 'c'; /* another name */
        FILE *file = fopen(store_path, "w");
        ck_assert_ptr_nonnull(file);
        for (int i = 0; i < 1000; i++)
                fputs("this is no database\n", file);
        fclose(file);
        snprintf(expected, sizeof(expected), "%s cannot be opened: file is not a database", store_path);
        ck_assert_str_eq(refused_open(store_path, TR_STORE_OPEN_UNUSABLE), expected);
        snprintf(expected, sizeof(expected), "%s/x.db cannot be opened: Not a directory", store_path);
        char inside[128];
        snprintf(inside, sizeof(inside), "%s/x.db", store_path);
        ck_assert_str_eq(refused_open(inside, TR_STORE_OPEN_UNUSABLE), expected);
        ck_assert_int_eq(unlink(store_path), 0);
        store_open();
}
END_TEST

START_TEST(a_database_with_tables_but_no_mark_is_of_something_else) {
        store_close();
        ck_assert_int_eq(unlink(store_path), 0);
        sqlite3 *sqlite;
        ck_assert_int_eq(sqlite3_open(store_path, &sqlite), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(sqlite, "CREATE TABLE mine (x)", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(sqlite);
        refused_open(store_path, TR_STORE_OPEN_UNUSABLE);
        ck_assert_int_eq(store_number("SELECT count(*) FROM sqlite_schema"), 1);
}
END_TEST

/* A store that is one version further than ours. */
static const char *const *further(const char *step) {
        static const char *steps[8];
        size_t count = 0;
        while (tr_schema_steps[count]) {
                steps[count] = tr_schema_steps[count];
                count++;
        }
        steps[count] = step;
        steps[count + 1] = NULL;
        return steps;
}

START_TEST(an_older_one_is_migrated_after_a_copy) {
        struct tr_database database;
        struct tr_database_options options = { .path = store_path, .steps = further("ALTER TABLE entities ADD COLUMN more TEXT") };
        char *why;
        store_must(store_write("a", "{'x':1}", 0));
        store_close();
        ck_assert_int_eq(tr_database_open(&database, &options, &why), 0);
        tr_database_close(&database);
        ck_assert_int_eq(store_number("PRAGMA user_version"), 2);
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities WHERE more IS NULL AND id = 'a'"), 1);
        refused_open(store_path, TR_STORE_OPEN_NEWER);
        /* the copy is as it was, and one file */
        snprintf(text_buffer, sizeof(text_buffer), "%s.1.bak", store_path);
        ck_assert_int_eq(rename(text_buffer, store_path), 0);
        store_open();
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1,'x':1}");
}
END_TEST

START_TEST(one_that_cannot_be_migrated_is_as_it_was) {
        struct tr_database database;
        struct tr_database_options options = { .path = store_path, .steps = further("ALTER TABLE entities ADD COLUMN more TEXT; CREATE TABLE tasks (x)") };
        char *why = NULL;
        store_must(store_write("a", "{'x':1}", 0));
        store_close();
        ck_assert_int_eq(tr_database_open(&database, &options, &why), TR_DATABASE_UNUSABLE);
        ck_assert_ptr_nonnull(strstr(why, "table tasks already exists"));
        free(why);
        ck_assert_int_eq(store_number("PRAGMA user_version"), 1);
        store_open();
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1,'x':1}");
}
END_TEST

/* Copies */

static struct tr_store_job backup(const char *path) {
        return (struct tr_store_job){ .kind = TR_STORE_BACKUP, .path = path };
}

/* What is in the folder beyond the store's own: nothing of a copy that was not made is left. */
static void check_no_parts(void) {
        char command[160];
        snprintf(command, sizeof(command), "test -z \"$(ls %s | grep -vx 'troupe.db\\(-wal\\|-shm\\|-lock\\)\\?\\|copy.db')\"", store_folder);
        ck_assert_int_eq(system(command), 0);
}

START_TEST(a_copy_is_whole_and_one_file) {
        struct stat stat_of;
        store_must(store_write("a", "{'x':1}", 0));
        store_must(backup(in_folder("copy.db")));
        store_must(store_write("a", "{'x':2}", 1));
        store_must(backup(in_folder("copy.db"))); /* in the place of the one before */
        check_no_parts();
        ck_assert_int_eq(stat(in_folder("copy.db"), &stat_of), 0);
        ck_assert_uint_eq(stat_of.st_mode & 07777, 0600);
        store_close();
        ck_assert_int_eq(rename(in_folder("copy.db"), store_path), 0);
        store_open();
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'x':2}");
}
END_TEST

START_TEST(a_copy_that_cannot_be_is_refused) {
        char expected[300];
        ck_assert_str_eq(store_refused(backup("copy.db"), "bad-request"), "backup: the path has to be absolute, and is copy.db");
        snprintf(expected, sizeof(expected), "backup: %s is the store itself", store_path);
        ck_assert_str_eq(store_refused(backup(store_path), "bad-request"), expected);
        store_refused(backup(in_folder("troupe.db-wal")), "bad-request");
        ck_assert_int_eq(symlink(store_path, in_folder("copy.db")), 0);
        store_refused(backup(in_folder("copy.db")), "bad-request");
        ck_assert_int_eq(unlink(in_folder("copy.db")), 0);
        snprintf(expected, sizeof(expected), "backup: %s is there, and no file", store_folder);
        ck_assert_str_eq(store_refused(backup(store_folder), "bad-request"), expected);
        snprintf(expected, sizeof(expected), "%s cannot be written: No such file or directory", in_folder("no/copy.db"));
        ck_assert_str_eq(store_refused(backup(in_folder("no/copy.db")), "store"), expected);
        check_no_parts();
}
END_TEST

/* Documents that are written one behind another while a copy is made. */
struct chain {
        struct tr_store_job job;
        char id[16];
        unsigned written;
        bool stop; /* the store's thread only */
        sem_t over;
};

static void write_next(struct tr_store_job *job) {
        struct chain *chain = job->userdata;
        bool failed = job->failure;
        tr_store_job_deinit(job);
        chain->written++;
        if (failed || chain->stop) {
                sem_post(&chain->over);
                return;
        }
        snprintf(chain->id, sizeof(chain->id), "%08u", chain->written);
        tr_store_submit(tr_sqlite_store_interface(store), job);
}

static void on_copied(struct tr_store_job *job) {
        struct chain *chain = job->userdata;
        chain->stop = true;
}

START_TEST(it_is_written_while_a_copy_is_made) {
        enum { BEFORE = 40 };
        struct tr_writer value = TR_WRITER_INIT;
        static char text[100000];
        struct chain chain = { 0 };
        memset(text, 'x', sizeof(text));
        tr_write_map(&value, 1);
        tr_write_text(&value, "text");
        tr_write_str(&value, text, sizeof(text));
        sem_init(&chain.over, 0, 0);
        /* many times what is copied between two rounds */
        for (int i = 0; i < BEFORE; i++) {
                struct tr_store_job job = store_do((struct tr_store_job){ .kind = TR_STORE_WRITE, .component = "c", .document = value.data, .document_bytes = value.len });
                ck_assert_ptr_null(job.failure);
                tr_store_job_deinit(&job);
        }
        struct tr_store_job copy = backup(in_folder("copy.db"));
        copy.done = on_copied;
        copy.userdata = &chain;
        chain.job = store_write(chain.id, "{'x':1}", TR_STORE_ANY);
        chain.job.done = write_next;
        chain.job.userdata = &chain;
        snprintf(chain.id, sizeof(chain.id), "first");
        tr_store_submit(tr_sqlite_store_interface(store), &copy);
        tr_store_submit(tr_sqlite_store_interface(store), &chain.job);
        sem_wait(&chain.over);
        ck_assert_ptr_null(copy.failure);
        tr_store_job_deinit(&copy);
        /* writes were done before the copy was whole; all of them but perhaps the last are in it */
        ck_assert_uint_gt(chain.written, 1);
        store_close();
        ck_assert_int_eq(rename(in_folder("copy.db"), store_path), 0);
        ck_assert_int_ge(store_number("SELECT count(*) FROM entities"), BEFORE + (int)chain.written - 1);
        ck_assert_int_eq(store_number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        store_open();
        tr_writer_deinit(&value);
}
END_TEST

static void on_refused_copy(struct tr_store_job *job) {
        sem_post(job->userdata);
}

START_TEST(a_copy_under_way_at_the_end_is_given_up) {
        struct tr_store_job one = backup(in_folder("copy.db")), other = one;
        struct tr_writer value = TR_WRITER_INIT;
        char *text = calloc(1, 8u << 20);
        sem_t over;
        int count;
        ck_assert_ptr_nonnull(text);
        tr_write_map(&value, 1);
        tr_write_text(&value, "text");
        tr_write_str(&value, text, 8u << 20);
        free(text);
        struct tr_store_job job = store_do((struct tr_store_job){ .kind = TR_STORE_WRITE, .component = "c", .document = value.data, .document_bytes = value.len });
        ck_assert_ptr_null(job.failure);
        tr_store_job_deinit(&job);
        tr_writer_deinit(&value);
        sem_init(&over, 0, 0);
        one.done = other.done = on_refused_copy;
        one.userdata = other.userdata = &over;
        tr_store_submit(tr_sqlite_store_interface(store), &one);
        tr_store_submit(tr_sqlite_store_interface(store), &other);
        tr_sqlite_store_close(store);
        sem_getvalue(&over, &count);
        ck_assert_int_eq(count, 2);
        ck_assert_ptr_nonnull(other.failure);
        ck_assert_int_eq(other.failure->code, TR_CODE_SHUTTING_DOWN);
        tr_store_job_deinit(&one);
        tr_store_job_deinit(&other);
        check_no_parts();
}
END_TEST

/* A full disk */

static void set_file_limit(rlim_t bytes) {
        const struct rlimit limit = { bytes, RLIM_INFINITY };
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_disk_that_takes_no_more_is_told_and_nothing_is_lost) {
        static char text[300000];
        struct stat wal;
        struct tr_writer value = TR_WRITER_INIT;
        signal(SIGXFSZ, SIG_IGN);
        memset(text, 'x', sizeof(text));
        tr_write_map(&value, 1);
        tr_write_text(&value, "text");
        tr_write_str(&value, text, sizeof(text));
        store_must(store_write("a", "{'x':1}", 0));
        ck_assert_int_eq(stat(in_folder("troupe.db-wal"), &wal), 0);
        set_file_limit((rlim_t)wal.st_size + 8192);
        struct tr_store_job big = { .kind = TR_STORE_WRITE, .component = "c", .id = "big", .document = value.data, .document_bytes = value.len };
        store_refused(big, "store");
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1,'x':1}");
        ck_assert_str_eq(store_read("big"), "nil");
        set_file_limit(8192);
        store_refused(backup(in_folder("copy.db")), "store");
        check_no_parts();
        set_file_limit(RLIM_INFINITY);
        store_must(big);
        store_must(store_write("a", "{'x':2}", 1));
        store_close();
        store_open();
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'x':2}");
        ck_assert_int_eq(store_number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        tr_writer_deinit(&value);
}
END_TEST

suite_main_with("store_file", store_setup, store_teardown, it_is_one_daemon_s_at_a_time, it_is_made_with_its_folders_for_us_alone,
                a_person_reads_it_while_it_is_used, in_memory_it_has_no_file, what_is_no_store_is_left_alone,
                a_database_with_tables_but_no_mark_is_of_something_else, an_older_one_is_migrated_after_a_copy,
                one_that_cannot_be_migrated_is_as_it_was, a_copy_is_whole_and_one_file, a_copy_that_cannot_be_is_refused,
                it_is_written_while_a_copy_is_made, a_copy_under_way_at_the_end_is_given_up,
                a_disk_that_takes_no_more_is_told_and_nothing_is_lost);
