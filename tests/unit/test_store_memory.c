/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation fails in its turn, ours and SQLite's: a job is done or refused for it, alone and as a whole, and the store goes on.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/failing.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

/* SQLite's */

static sqlite3_mem_methods real;
static atomic_long countdown;
static atomic_bool hit;

static bool fails(void) {
        if (atomic_load(&countdown) <= 0 || atomic_fetch_sub(&countdown, 1) != 1)
                return false;
        atomic_store(&hit, true);
        return true;
}

static void *failing_malloc(int bytes) {
        return fails() ? NULL : real.xMalloc(bytes);
}

static void *failing_realloc(void *block, int bytes) {
        return fails() ? NULL : real.xRealloc(block, bytes);
}

static void sqlite_arm(long after) {
        if (after)
                atomic_store(&hit, false);
        atomic_store(&countdown, after);
}

static void setup(void) {
        sqlite3_mem_methods methods;
        ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
        methods = real;
        methods.xMalloc = failing_malloc;
        methods.xRealloc = failing_realloc;
        ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
        /* what is kept aside would hide a failure */
        ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
        store_setup();
}

/* Whose allocations fail */
struct memory {
        void (*arm)(long after);
        bool (*was_hit)(void);
};

static bool sqlite_hit(void) {
        return atomic_load(&hit);
}

static const struct memory memories[] = { { failing_arm, failing_hit }, { sqlite_arm, sqlite_hit } };

/* Jobs */

/* Done, or refused for want of memory. */
static bool done(struct tr_store_job job) {
        job = store_do(job);
        if (job.failure)
                ck_assert_msg(job.failure->code == TR_CODE_NO_MEMORY, "%s: %s", tr_code_text(job.failure->code), job.failure->message);
        bool is_done = !job.failure;
        tr_store_job_deinit(&job);
        return is_done;
}

/* A job is done with the n-th allocation failing, for each n; `check` looks at what has come of it, and makes it as it was. */
static void fail_each(struct tr_store_job job, void (*check)(bool is_done)) {
        long failures = 0;
        for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
                long n = 0;
                do {
                        memories[i].arm(++n);
                        bool is_done = done(job);
                        memories[i].arm(0);
                        ck_assert(is_done || memories[i].was_hit());
                        check(is_done);
                } while (memories[i].was_hit());
                failures += n - 1;
        }
        ck_assert_int_gt(failures, 0);
}

static void check_written(bool is_done) {
        ck_assert_str_eq(store_read("a"), is_done ? "{'id':'a','version':2,'x':2,'y':1}" : "{'id':'a','version':1,'x':1,'y':1}");
        store_must((struct tr_store_job){ .kind = TR_STORE_DELETE, .component = "c", .id = "a", .expect = TR_STORE_ANY });
        store_must(store_write("a", "{'x':1,'y':1}", 0));
}

START_TEST(writing) {
        struct tr_store_job job = store_write("a", "{'x':2}", 1);
        job.merge = true;
        store_must(store_write("a", "{'x':1,'y':1}", 0));
        fail_each(job, check_written);
}
END_TEST

static void check_nothing(bool is_done) {
        (void)is_done;
}

START_TEST(reading) {
        struct tr_writer where = store_value("{'x':1,'title':'t'}");
        store_must(store_write("a", "{'x':1,'title':'t'}", 0));
        store_must(store_write("b", "{'x':1,'title':'t'}", 0));
        fail_each((struct tr_store_job){ .kind = TR_STORE_GET, .component = "c", .id = "a" }, check_nothing);
        fail_each((struct tr_store_job){ .kind = TR_STORE_LIST, .component = "c", .list = { .where = where.data, .where_bytes = where.len, .sort = "x", .after = "a" } },
                  check_nothing);
        fail_each((struct tr_store_job){ .kind = TR_STORE_TASK_LIST }, check_nothing);
        fail_each((struct tr_store_job){ .kind = TR_STORE_NAMES_LEFT, .component = "c" }, check_nothing);
}
END_TEST

static void check_gone(bool is_done) {
        ck_assert_str_eq(store_read("a"), is_done ? "nil" : "{'id':'a','version':1}");
        store_must(store_write("a", "{}", TR_STORE_ANY));
}

START_TEST(deleting) {
        store_must(store_write("a", "{}", 0));
        fail_each((struct tr_store_job){ .kind = TR_STORE_DELETE, .component = "c", .id = "a", .expect = TR_STORE_ANY }, check_gone);
}
END_TEST

/* Tasks */

static struct tr_writer input;

static struct tr_store_job new_task(void) {
        return (struct tr_store_job){
                .kind = TR_STORE_TASK_ADD,
                .task = { .component = "c", .operation = "go", .input = input.data, .input_bytes = input.len, .due_ms = 1, .expires_ms = TR_STORE_NEVER,
                          .key = "k", .entity = "e", .trace = "t" },
        };
}

static void count_all(void *userdata, const struct tr_store_counts *counts) {
        uint64_t *all = userdata;
        all[0] += counts->waiting;
        all[1] += counts->running;
        all[2] += counts->parked;
}

/* What is counted is what is there. */
static void check_counts(int64_t tasks) {
        uint64_t all[3] = { 0 };
        tr_store_visit_counts(tr_sqlite_store_interface(store), count_all, all);
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), tasks);
        ck_assert_uint_eq(all[0], (uint64_t)store_number("SELECT count(*) FROM tasks WHERE state = 'waiting'"));
        ck_assert_uint_eq(all[1], (uint64_t)store_number("SELECT count(*) FROM tasks WHERE state = 'running'"));
        ck_assert_uint_eq(all[2], (uint64_t)store_number("SELECT count(*) FROM tasks WHERE state = 'parked'"));
}

static void check_added(bool is_done) {
        check_counts(is_done);
        /* the next one is not the same by its key */
        store_sql("UPDATE tasks SET key = NULL");
        struct tr_store_job load = store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = 1, .limit = 10 });
        ck_assert_uint_eq(load.tasks_count, is_done);
        if (is_done)
                store_must((struct tr_store_job){ .kind = TR_STORE_TASK_END, .id = load.tasks[0].id });
        check_counts(0);
}

START_TEST(adding_tasks) {
        input = store_value("{'x':1,'bytes':#00}");
        fail_each(new_task(), check_added);
}
END_TEST

static void check_loaded(bool is_done) {
        struct tr_store_job load = store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = 1, .limit = 10 });
        /* it is in somebody's hands, or waits for them: never both, never neither. One has expired, and goes with it */
        ck_assert_uint_eq(load.tasks_count, is_done ? 0 : 2);
        store_close();
        store_open();
        check_counts(1);
        store_sql("INSERT INTO tasks (id, component, operation, state, input, due, expires, delayed, runs, created, updated, depth, uid, gid, pid) "
                  "VALUES ('old', 'c', 'old', 'waiting', '1', 0, 1, 0, 0, 0, 0, 1, 0, 0, 0)");
        store_close();
        store_open();
}

START_TEST(loading_tasks) {
        input = store_value("{'x':1,'bytes':#00}");
        store_must(new_task());
        store_sql("INSERT INTO tasks (id, component, operation, state, input, due, expires, delayed, runs, created, updated, depth, uid, gid, pid) "
                  "VALUES ('old', 'c', 'old', 'waiting', '1', 0, 1, 0, 0, 0, 0, 1, 0, 0, 0)");
        store_close();
        store_open();
        fail_each((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = 1, .limit = 10 }, check_loaded);
}
END_TEST

static struct tr_writer cause;

static void check_moved(bool is_done) {
        (void)is_done;
        check_counts(1);
        store_sql("UPDATE tasks SET state = 'waiting'");
        store_close();
        store_open();
}

static void check_ended(bool is_done) {
        check_counts(!is_done);
        if (is_done)
                store_must(new_task());
        store_sql("UPDATE tasks SET id = 'x'");
}

START_TEST(moving_tasks) {
        static const enum tr_store_kind kinds[] = { TR_STORE_TASK_BEGIN, TR_STORE_TASK_AGAIN, TR_STORE_TASK_PARK, TR_STORE_TASK_RETRY };
        input = store_value("{'x':1}");
        cause = store_value("{'code':'fault'}");
        store_must(new_task());
        store_sql("UPDATE tasks SET id = 'x'");
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                fail_each((struct tr_store_job){ .kind = kinds[i], .id = "x", .document = cause.data, .document_bytes = cause.len }, check_moved);
        fail_each((struct tr_store_job){ .kind = TR_STORE_TASK_END, .id = "x" }, check_ended);
        fail_each((struct tr_store_job){ .kind = TR_STORE_TASK_DROP, .id = "x" }, check_ended);
}
END_TEST

START_TEST(holding_names) {
        static const enum tr_store_kind kinds[] = { TR_STORE_NAME_HOLD, TR_STORE_NAME_RELEASE, TR_STORE_NAMES_FORGET };
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                fail_each((struct tr_store_job){ .kind = kinds[i], .component = "c", .id = "x" }, check_nothing);
}
END_TEST

static void check_copied(bool is_done) {
        char path[160], command[256];
        snprintf(path, sizeof(path), "%s/copy.db", store_folder);
        snprintf(command, sizeof(command), "test -z \"$(ls %s | grep -vx 'troupe.db\\(-wal\\|-shm\\|-lock\\)\\?\\|copy.db')\"", store_folder);
        ck_assert_int_eq(system(command), 0);
        ck_assert(!is_done || remove(path) == 0);
        remove(path);
}

START_TEST(copying) {
        char path[160];
        snprintf(path, sizeof(path), "%s/copy.db", store_folder);
        store_must(store_write("a", "{}", 0));
        fail_each((struct tr_store_job){ .kind = TR_STORE_BACKUP, .path = path }, check_copied);
}
END_TEST

START_TEST(opening) {
        store_must(store_write("a", "{}", 0));
        store_close();
        for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
                long n = 0;
                int r;
                do {
                        char *why = NULL;
                        memories[i].arm(++n);
                        r = tr_sqlite_store_new(store_path, &store, &why);
                        memories[i].arm(0);
                        ck_assert_msg(r == 0 || (memories[i].was_hit() && r == -ENOMEM), "%ld: %d: %s", n, r, why ? why : "");
                        free(why);
                        if (r == 0)
                                store_close();
                } while (memories[i].was_hit());
                ck_assert_int_gt(n, 1);
        }
        store_open();
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1}");
}
END_TEST

suite_main_with("store_memory", setup, store_teardown, writing, reading, deleting, adding_tasks, loading_tasks, moving_tasks, holding_names, copying,
                opening);
