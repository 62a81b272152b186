/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store_fixture.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/contract/document.h"
#include "proto/code.h"
#include "tests/unit/notation.h"

char store_folder[64];
char store_path[80];
struct tr_sqlite_store *store;

/* What lives until the test ends. */
static void *kept[4096];
static size_t kept_count;

static void *keep(void *memory) {
        ck_assert_uint_lt(kept_count, sizeof(kept) / sizeof(kept[0]));
        kept[kept_count++] = memory;
        return memory;
}

static struct tr_store_job kept_jobs[4096];
static size_t kept_jobs_count;

void store_make_folder(void) {
        snprintf(store_folder, sizeof(store_folder), "/tmp/troupe-store-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(store_folder));
        snprintf(store_path, sizeof(store_path), "%s/troupe.db", store_folder);
}

void store_open(void) {
        char *why;
        int r = tr_sqlite_store_new(store_path, &store, &why);
        ck_assert_msg(r == 0, "%d: %s", r, why ? why : "");
}

void store_close(void) {
        tr_sqlite_store_free(store);
        store = NULL;
}

void store_setup(void) {
        store_make_folder();
        store_open();
}

static void remove_folder(void) {
        DIR *folder = opendir(store_folder);
        struct dirent *entry;
        ck_assert_ptr_nonnull(folder);
        while ((entry = readdir(folder)))
                unlinkat(dirfd(folder), entry->d_name, 0);
        closedir(folder);
        ck_assert_int_eq(rmdir(store_folder), 0);
}

void store_teardown(void) {
        store_close();
        remove_folder();
        for (size_t i = 0; i < kept_count; i++)
                free(kept[i]);
        for (size_t i = 0; i < kept_jobs_count; i++)
                tr_store_job_deinit(&kept_jobs[i]);
        kept_count = kept_jobs_count = 0;
}

/* Jobs */

static void on_done(struct tr_store_job *job) {
        sem_post(job->userdata);
}

struct tr_store_job store_do(struct tr_store_job job) {
        sem_t done;
        sem_init(&done, 0, 0);
        job.done = on_done;
        job.userdata = &done;
        tr_store_submit(tr_sqlite_store_interface(store), &job);
        while (sem_wait(&done) < 0)
                ;
        sem_destroy(&done);
        return job;
}

static struct tr_store_job keep_job(struct tr_store_job job) {
        ck_assert_uint_lt(kept_jobs_count, sizeof(kept_jobs) / sizeof(kept_jobs[0]));
        kept_jobs[kept_jobs_count++] = job;
        return job;
}

struct tr_store_job store_must(struct tr_store_job job) {
        job = keep_job(store_do(job));
        ck_assert_msg(!job.failure, "%s: %s", job.failure ? tr_code_text(job.failure->code) : "", job.failure ? job.failure->message : "");
        return job;
}

const char *store_refused(struct tr_store_job job, const char *code) {
        job = keep_job(store_do(job));
        ck_assert_msg(job.failure, "it was done");
        ck_assert_msg(strcmp(tr_code_text(job.failure->code), code) == 0, "%s: %s", tr_code_text(job.failure->code), job.failure->message);
        return job.failure->message;
}

/* Values */

struct tr_writer store_value(const char *notation) {
        struct tr_writer value = TR_WRITER_INIT;
        notation_write(&value, notation);
        keep(value.data);
        return value;
}

static void show_document(const uint8_t *at, size_t bytes, struct tr_writer *shown) {
        static const char *const without[] = { "created", "updated", NULL };
        const struct tr_document_layers layers = { .over = at, .over_bytes = bytes, .without = without };
        const char *reason;
        char *path;
        ck_assert_int_eq(tr_document_lay(&layers, shown, &path, &reason), 0);
}

const char *store_shown(const struct tr_store_job *job) {
        struct tr_writer shown = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(job->value, job->value_bytes);
        struct tr_token head;
        ck_assert_ptr_nonnull(job->value);
        ck_assert_int_eq(tr_read(&reader, &head), 0);
        if (head.type == TR_MAP) {
                show_document(job->value, job->value_bytes, &shown);
        } else if (head.type == TR_ARRAY) {
                tr_write_array(&shown, head.count);
                for (uint32_t i = 0; i < head.count; i++) {
                        const uint8_t *at = reader.at;
                        ck_assert_int_eq(tr_read_skip(&reader), 0);
                        if (*at >= 0x80 && (*at < 0x90 || *at >= 0xde))
                                show_document(at, (size_t)(reader.at - at), &shown);
                        else
                                tr_write_raw(&shown, at, (size_t)(reader.at - at));
                }
        } else {
                tr_write_raw(&shown, job->value, job->value_bytes);
        }
        reader = tr_reader(shown.data, shown.len);
        char *text = keep(notation_read(&reader));
        ck_assert_ptr_eq(reader.at, reader.end);
        tr_writer_deinit(&shown);
        return text;
}

struct tr_store_job store_write(const char *id, const char *document, uint64_t expect) {
        struct tr_writer value = store_value(document);
        return (struct tr_store_job){
                .kind = TR_STORE_WRITE,
                .component = "c",
                .id = id,
                .document = value.data,
                .document_bytes = value.len,
                .expect = expect,
                .wants_value = true,
        };
}

const char *store_read(const char *id) {
        struct tr_store_job job = store_must((struct tr_store_job){ .kind = TR_STORE_GET, .component = "c", .id = id });
        return store_shown(&job);
}

/* Behind its back */

static sqlite3 *open_behind(void) {
        sqlite3 *sqlite;
        ck_assert_int_eq(sqlite3_open_v2(store_path, &sqlite, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
        sqlite3_busy_timeout(sqlite, 60000);
        return sqlite;
}

void store_sql(const char *sql) {
        sqlite3 *sqlite = open_behind();
        char *error = NULL;
        int code = sqlite3_exec(sqlite, sql, NULL, NULL, &error);
        ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, error ? error : "");
        sqlite3_close(sqlite);
}

int64_t store_number(const char *sql) {
        sqlite3 *sqlite = open_behind();
        sqlite3_stmt *statement;
        ck_assert_int_eq(sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
        int64_t number = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        sqlite3_close(sqlite);
        return number;
}
