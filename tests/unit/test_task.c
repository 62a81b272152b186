/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: accepted by the store, run by replicas, and what becomes of them. Replicas keep what is posted until the test answers it; the
 * store is the real one, and is waited for; the clocks are the test's.
 */
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/context.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/task.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/notation.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

#define POSTED_MAX 1024
#define WALL_MS INT64_C(1800000000000)

/* The clocks, in milliseconds from the test's beginning. */
static _Atomic int64_t elapsed_ms;

static uint64_t monotonic_ns(void) {
        return (uint64_t)(1000000 + elapsed_ms) * TR_NS_PER_MS;
}

static int64_t wall_ms(void) {
        return WALL_MS + elapsed_ms;
}

/* Between core and the store: counts what is submitted, refuses what the test says. */
struct counting_store {
        struct tr_store store;
        _Atomic uint64_t submitted;
        _Atomic int refuses; /* enum tr_store_kind: that many of them; -1: none */
        _Atomic uint32_t refused;
};

static void counting_submit(struct tr_store *base, struct tr_store_job *job) {
        struct counting_store *counting = (struct counting_store *)base;
        counting->submitted++;
        if (counting->refuses == (int)job->kind) {
                counting->refused++;
                job->failure = tr_failure_new(TR_CODE_STORE, "the disk is full");
                job->done(job);
                return;
        }
        tr_store_submit(tr_sqlite_store_interface(store), job);
}

static void counting_visit(struct tr_store *base, void (*visit)(void *userdata, const struct tr_store_counts *counts), void *userdata) {
        tr_store_visit_counts(tr_sqlite_store_interface(store), visit, userdata);
}

static const struct tr_store_ops counting_ops = { .submit = counting_submit, .visit_counts = counting_visit };
static struct counting_store counting;

struct server {
        struct tr_target target;
        struct tr_replica *replica;
        enum tr_post answer; /* to posts */
        struct tr_message *posted[POSTED_MAX]; /* each a reference */
        size_t count;
        int cancelled;
};

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_component *component;

/* What was told, one line each: "started N", with the attempt. */
static char told[65536];
static size_t told_len;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_task(void *userdata, const struct tr_task_news *news) {
        pthread_mutex_lock(&told_lock);
        told_len += (size_t)snprintf(told + told_len, sizeof(told) - told_len, "%s%s %s %u%s%s", told_len ? "; " : "",
                                     tr_task_event_text(news->event), news->operation, news->attempt, news->cause ? " " : "",
                                     news->cause ? tr_code_text(news->cause->code) : "");
        pthread_mutex_unlock(&told_lock);
}

/* And forgets it. */
static const char *take_told(void) {
        static char copy[sizeof(told)];
        pthread_mutex_lock(&told_lock);
        memcpy(copy, told, told_len + 1);
        told_len = 0;
        told[0] = '\0';
        pthread_mutex_unlock(&told_lock);
        return copy;
}

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct server *server = (struct server *)target;
        struct tr_message *message;
        if (server->answer != TR_POST_OK)
                return server->answer;
        while ((message = tr_list_first(messages, struct tr_message, link))) {
                tr_list_unlink(&message->link);
                ck_assert_uint_lt(server->count, POSTED_MAX);
                server->posted[server->count++] = message;
        }
        return TR_POST_OK;
}

static void server_free(struct tr_target *target) {
        tr_target_deinit(target);
        free(target);
}

static const struct tr_target_ops server_ops = { .kind = TR_TARGET_CONNECTION, .post = server_post, .free = server_free };

static void on_retired(struct tr_replica *replica) {
        tr_replica_died(replica);
}

static void on_cancel(struct tr_replica *replica, struct tr_message *delivery) {
        ((struct server *)replica->userdata)->cancelled++;
}

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static const struct tr_replica_ops replica_ops = {
        .cancel = on_cancel, .retired = on_retired, .stop = on_stop, .kill = tr_replica_died,
};

static struct server *serve(const char *instance, uint32_t concurrency) {
        const struct tr_replica_options options = {
                .ops = &replica_ops, .instance = instance, .concurrency = concurrency, .kind = "connection",
        };
        struct server *server = calloc(1, sizeof(*server));
        ck_assert_ptr_nonnull(server);
        ck_assert_int_eq(tr_target_init(&server->target, &server_ops, fake.system, 0, "server", ""), 0);
        struct tr_replica_options with = options;
        with.userdata = server;
        ck_assert_ptr_null(tr_replica_join(component, &with, &server->target, &server->replica));
        tr_replica_hold(server->replica);
        return server;
}

static void server_drop(struct server *server) {
        for (size_t i = 0; i < server->count; i++)
                tr_message_unref(server->posted[i]);
        server->count = 0;
        tr_replica_unref(server->replica);
        tr_target_unref(&server->target);
}

/* Time, and waiting for the store */

/* All that was submitted is done, and what followed on that, and the timers that are due have fired. */
static void settle(void) {
        uint64_t before;
        do {
                tr_system_run_due(fake.system, tr_clock_ns());
                before = counting.submitted;
                struct tr_store_job barrier = store_do((struct tr_store_job){ .kind = TR_STORE_GET, .component = "none", .id = "none" });
                tr_store_job_deinit(&barrier);
        } while (before != counting.submitted);
}

static void pass(int64_t ms) {
        elapsed_ms += ms;
        settle();
}

/* Tasks */

static struct tr_failure *try_task(uint64_t number, const char *operation, int input, struct tr_task_options options) {
        struct tr_message *message = fake_message(&asker, number, operation, input);
        message->form = TR_FORM_TYPED;
        options.instance_len = options.instance ? strlen(options.instance) : 0;
        options.id_len = options.id ? strlen(options.id) : 0;
        options.key_len = options.key ? strlen(options.key) : 0;
        options.trace_len = options.trace ? strlen(options.trace) : 0;
        struct tr_failure *failure = tr_task_accept(component, &options, message);
        if (failure)
                tr_message_unref(message);
        return failure;
}

static void task_with(uint64_t number, const char *operation, struct tr_task_options options) {
        ck_assert_ptr_null(try_task(number, operation, (int)number, options));
        settle();
}

static void task(uint64_t number, const char *operation) {
        task_with(number, operation, (struct tr_task_options){ 0 });
}

static void call(uint64_t number, const char *operation) {
        struct tr_message *message = fake_message(&asker, number, operation, (int)number);
        message->form = TR_FORM_TYPED;
        ck_assert_ptr_null(tr_component_call(component, message, &(struct tr_call_options){ 0 }));
}

static void is_refused(struct tr_failure *failure, enum tr_code code) {
        ck_assert_ptr_nonnull(failure);
        ck_assert_str_eq(tr_code_text(failure->code), tr_code_text(code));
        tr_failure_unref(failure);
}

/* What a server has got: the operations' inputs, which number tasks and calls, from the n-th on. */
static const char *got(const struct server *server, size_t from) {
        static char text[8192];
        size_t len = 0;
        text[0] = '\0';
        for (size_t i = from; i < server->count; i++) {
                struct tr_reader reader = tr_reader(tr_message_args(server->posted[i]), server->posted[i]->args_bytes);
                char *value = notation_read(&reader);
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", i > from ? " " : "",
                                        server->posted[i]->behalf->invocation->task ? "t" : "c", value);
                free(value);
        }
        return text;
}

static struct tr_call_context context_of(const struct server *server, size_t n) {
        struct tr_call_context context;
        ck_assert_uint_gt(server->count, n);
        tr_delivery_context(server->posted[n], &context);
        return context;
}

static void begin(struct server *server, size_t n) {
        ck_assert_uint_gt(server->count, n);
        ck_assert(tr_message_begin(server->posted[n]));
}

static void answer(struct server *server, size_t n, const char *text) {
        struct tr_writer writer = TR_WRITER_INIT;
        notation_write(&writer, text);
        ck_assert_uint_gt(server->count, n);
        if (tr_message_state(server->posted[n]) == TR_MESSAGE_QUEUED)
                begin(server, n);
        ck_assert(tr_message_resolve(server->posted[n], writer.data, writer.len, false));
        tr_writer_deinit(&writer);
        settle();
}

static void fail_with(struct server *server, size_t n, struct tr_failure *take_failure, enum tr_ran ran) {
        ck_assert_uint_gt(server->count, n);
        if (ran != TR_RAN_NO && tr_message_state(server->posted[n]) == TR_MESSAGE_QUEUED)
                begin(server, n);
        ck_assert(tr_message_reject(server->posted[n], take_failure, ran));
        tr_failure_unref(take_failure);
        settle();
}

static void fault(struct server *server, size_t n) {
        fail_with(server, n, tr_failure_new(TR_CODE_FAULT, "it raised"), TR_RAN_YES);
}

/* It is gone: what it has begun may have run, the rest has not. */
static void die(struct server *server) {
        server->answer = TR_POST_CLOSED;
        tr_replica_died(server->replica);
        struct tr_failure *failure = tr_failure_new(TR_CODE_DISCONNECTED, "it is gone");
        for (size_t i = 0; i < server->count; i++)
                tr_message_reject(server->posted[i], failure, TR_RAN_MAYBE);
        tr_failure_unref(failure);
        settle();
}

/* In the file */

static const char *row(const char *columns) {
        static char sql[256];
        static char text[512];
        sqlite3 *database;
        sqlite3_stmt *statement;
        size_t len = 0;
        text[0] = '\0';
        snprintf(sql, sizeof(sql), "SELECT %s FROM tasks ORDER BY seq", columns);
        ck_assert_int_eq(sqlite3_open(store_path, &database), SQLITE_OK);
        ck_assert_int_eq(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
        while (sqlite3_step(statement) == SQLITE_ROW)
                for (int i = 0; i < sqlite3_column_count(statement); i++)
                        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
                                                sqlite3_column_text(statement, i) ? (const char *)sqlite3_column_text(statement, i) : "-");
        sqlite3_finalize(statement);
        sqlite3_close(database);
        return text;
}

/* The id that the n-th outcome is. */
static const char *id_of(size_t at) {
        static char id[TR_STORE_ID_LEN + 1];
        snprintf(id, sizeof(id), "%s", "");
        ck_assert_uint_gt(asker.count, at);
        ck_assert_msg(asker.outcomes[at].resolved, "%s", tr_code_text(asker.outcomes[at].code));
        return id;
}

/* The component */

static const char manifest_text[] =
        "{\"name\": \"work\", \"attempts\": 3, \"deliveries\": 2, \"operations\": {"
        " \"go\": {\"errors\": [\"NO\"]}, \"other\": {}, \"typed\": {\"input\": {\"type\": \"integer\", \"maximum\": 99},"
        " \"output\": {\"type\": \"integer\"}}, \"quick\": {\"timeout\": 50}, \"held\": {\"stateful\": true}}}";

static struct tr_manifest *read_manifest(const char *text) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(json);
        int r = tr_manifest_read(json, "/", &problem, &manifest);
        ck_assert_msg(r == 0, "%s: %s", problem.path ? problem.path : "", problem.reason ? problem.reason : "");
        json_decref(json);
        return manifest;
}

static void declare(const char *text) {
        struct tr_manifest *manifest = read_manifest(text);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
        settle();
}

static void replace(const char *text) {
        struct tr_manifest *manifest = read_manifest(text);
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
        settle();
}

static void stop(void) {
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        settle();
}

static void forget(void) {
        tr_component_unref(component);
        component = NULL;
}

static void system_begin(void) {
        fake_system_init(&fake, 8);
        fake.system->hooks.task = on_task;
        counting = (struct counting_store){ .store.ops = &counting_ops, .refuses = -1 };
        fake.system->store = &counting.store;
}

static void setup(void) {
        elapsed_ms = 0;
        told_len = 0;
        tr_clock_set_source(monotonic_ns);
        tr_clock_set_wall_source(wall_ms);
        store_setup();
        system_begin();
        fake_asker_init(&asker);
        declare(manifest_text);
}

/* The daemon's end: its session's, then the store's, then the system's. */
static void teardown(void) {
        if (component)
                stop();
        forget();
        settle();
        tr_sqlite_store_close(store);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
        store_teardown();
}

/* Accepting */

START_TEST(a_task_is_accepted_when_it_is_on_disk) {
        ck_assert_ptr_null(try_task(1, "go", 7, (struct tr_task_options){ .uid = 5, .gid = 6, .pid = 7 }));
        settle();
        ck_assert_uint_eq(asker.count, 1);
        id_of(0);
        ck_assert_str_eq(row("component, operation, state, input, due, expires, delayed, runs, depth, uid, gid, pid"),
                         "work go waiting 7 1800000000000 - 0 0 1 5 6 7");
        ck_assert_str_eq(take_told(), "accepted go 0");
}
END_TEST

START_TEST(what_the_store_refuses_was_not_accepted) {
        counting.refuses = TR_STORE_TASK_ADD;
        task(1, "go");
        ck_assert_uint_eq(asker.count, 1);
        ck_assert(!asker.outcomes[0].resolved);
        ck_assert_int_eq(asker.outcomes[0].code, TR_CODE_STORE);
        ck_assert_int_eq(asker.outcomes[0].ran, TR_RAN_NO);
        ck_assert_str_eq(row("id"), "");
        ck_assert_str_eq(take_told(), "");
}
END_TEST

START_TEST(what_is_no_task_is_refused_at_once) {
        is_refused(try_task(1, "gone", 1, (struct tr_task_options){ 0 }), TR_CODE_NOT_FOUND);
        is_refused(try_task(1, "typed", 100, (struct tr_task_options){ 0 }), TR_CODE_CONTRACT);
        is_refused(try_task(1, "held", 1, (struct tr_task_options){ 0 }), TR_CODE_CONTRACT);
        is_refused(try_task(1, "held", 1, (struct tr_task_options){ .instance = "left" }), TR_CODE_CONTRACT);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .instance = "left" }), TR_CODE_CONTRACT);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .delay_ms = 1, .at_ms = 1 }), TR_CODE_BAD_REQUEST);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .expires_ms = 1 }), TR_CODE_BAD_REQUEST);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .key = "" }), TR_CODE_BAD_REQUEST);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .key = "a\nb" }), TR_CODE_BAD_REQUEST);
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ .id = "\xff" }), TR_CODE_BAD_REQUEST);
        fake.system->store = NULL;
        is_refused(try_task(1, "go", 1, (struct tr_task_options){ 0 }), TR_CODE_STORE);
        fake.system->store = &counting.store;
        ck_assert_str_eq(row("id"), "");
}
END_TEST

START_TEST(one_that_was_taken_back_before_is_not_kept) {
        struct tr_message *message = fake_message(&asker, 1, "go", 1);
        ck_assert(tr_message_withdraw(message));
        ck_assert_ptr_null(tr_task_accept(component, &(struct tr_task_options){ 0 }, message));
        settle();
        ck_assert_str_eq(row("id"), "");
}
END_TEST

/* Running */

START_TEST(a_task_runs_and_is_gone) {
        struct server *server = serve("left", 1);
        task(1, "go");
        ck_assert_str_eq(got(server, 0), "t1");
        ck_assert_str_eq(row("state, runs"), "running 1");
        struct tr_call_context context = context_of(server, 0);
        ck_assert_uint_eq(context.attempt, 1);
        ck_assert_ptr_nonnull(context.task);
        ck_assert_str_eq(context.task, row("id"));
        struct tr_writer written = TR_WRITER_INIT;
        tr_call_context_write(&context, &written);
        ck_assert_uint_le(written.len, tr_delivery_context_bytes_max(server->posted[0]));
        struct tr_reader reader = tr_reader(written.data, written.len);
        char *shown = notation_read(&reader), *wanted;
        ck_assert_int_gt(asprintf(&wanted, "'task':'%s','attempt':1,", context.task), 0);
        ck_assert_msg(strstr(shown, wanted), "%s", shown);
        ck_assert_ptr_eq(reader.at, written.data + written.len);
        free(shown);
        free(wanted);
        tr_writer_deinit(&written);
        answer(server, 0, "nil");
        ck_assert_str_eq(row("id"), "");
        ck_assert_str_eq(take_told(), "accepted go 0; started go 1; finished go 1");
        server_drop(server);
}
END_TEST

START_TEST(an_exception_is_tried_again_after_a_pause_that_doubles) {
        struct server *server = serve("left", 1);
        task(1, "go");
        fault(server, 0);
        ck_assert_str_eq(row("state, runs"), "waiting 1");
        ck_assert_int_ge(store_number("SELECT due FROM tasks"), WALL_MS + 800);
        ck_assert_int_le(store_number("SELECT due FROM tasks"), WALL_MS + 1200);
        pass(799);
        ck_assert_str_eq(got(server, 1), "");
        pass(401);
        ck_assert_str_eq(got(server, 1), "t1");
        ck_assert_uint_eq(context_of(server, 1).attempt, 2);
        int64_t now_ms = wall_ms();
        fault(server, 1);
        ck_assert_int_ge(store_number("SELECT due FROM tasks"), now_ms + 1600);
        ck_assert_int_le(store_number("SELECT due FROM tasks"), now_ms + 2400);
        ck_assert_int_eq(store_number("SELECT json_extract(cause, '$.code') = 'fault' AND json_extract(cause, '$.message') = 'it raised' "
                                      "FROM tasks"), 1);
        pass(2400);
        ck_assert_uint_eq(context_of(server, 2).attempt, 3);
        take_told();
        fault(server, 2);
        ck_assert_str_eq(row("state, runs"), "parked 3");
        ck_assert_str_eq(take_told(), "parked go 3 fault");
        pass(100000);
        ck_assert_str_eq(got(server, 3), "");
        server_drop(server);
}
END_TEST

START_TEST(one_attempt_is_no_second_try) {
        replace("{\"name\": \"work\", \"attempts\": 1, \"operations\": {\"go\": {}}}");
        struct server *server = serve("left", 1);
        task(1, "go");
        fault(server, 0);
        ck_assert_str_eq(row("state, runs"), "parked 1");
        pass(1000000);
        ck_assert_uint_eq(server->count, 1);
        server_drop(server);
}
END_TEST

START_TEST(no_attempt_is_refused) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        json_t *json = json_loads("{\"name\": \"work\", \"attempts\": 0, \"operations\": {\"go\": {}}}", 0, NULL);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), TR_MANIFEST_WRONG);
        ck_assert_str_eq(problem.path, "/attempts");
        tr_manifest_problem_deinit(&problem);
        json_decref(json);
}
END_TEST

START_TEST(a_violation_of_the_contract_parks_at_once) {
        struct server *server = serve("left", 1);
        task(1, "typed");
        answer(server, 0, "'text'");
        ck_assert_str_eq(row("state, runs"), "parked 1");
        ck_assert_int_eq(store_number("SELECT json_extract(cause, '$.code') = 'contract' AND json_extract(cause, '$.subject') = 'output' "
                                      "FROM tasks"), 1);
        ck_assert_str_eq(take_told(), "accepted typed 0; started typed 1; parked typed 1 contract");
        server_drop(server);
}
END_TEST

START_TEST(an_error_that_is_declared_ends_it) {
        struct server *server = serve("left", 1);
        task(1, "go");
        fail_with(server, 0, tr_operation_error(tr_delivery_operation(server->posted[0]), "NO", 2, NULL, 0), TR_RAN_YES);
        ck_assert_str_eq(row("id"), "");
        ck_assert_str_eq(take_told(), "accepted go 0; started go 1; finished go 1 refused");
        /* one that is not is a violation */
        task(2, "go");
        fail_with(server, 1, tr_operation_error(tr_delivery_operation(server->posted[1]), "MAYBE", 5, NULL, 0), TR_RAN_YES);
        ck_assert_str_eq(row("state"), "parked");
        server_drop(server);
}
END_TEST

START_TEST(an_operation_s_timeout_is_that_of_each_run) {
        struct server *server = serve("left", 1);
        task(1, "quick");
        begin(server, 0);
        pass(49);
        ck_assert_str_eq(row("state"), "running");
        pass(1);
        ck_assert_str_eq(row("state, runs"), "waiting 1");
        ck_assert_int_eq(server->cancelled, 1);
        ck_assert_int_eq(store_number("SELECT json_extract(cause, '$.code') = 'timeout' FROM tasks"), 1);
        struct tr_writer late = TR_WRITER_INIT;
        notation_write(&late, "1");
        tr_message_resolve(server->posted[0], late.data, late.len, false);
        tr_writer_deinit(&late);
        pass(1200);
        ck_assert_uint_eq(context_of(server, 1).attempt, 2);
        pass(49);
        answer(server, 1, "1");
        ck_assert_str_eq(row("id"), "");
        server_drop(server);
}
END_TEST

/* The order */

START_TEST(every_fourth_pick_is_a_task) {
        for (uint64_t i = 1; i <= 4; i++)
                task(i, "go");
        for (uint64_t i = 11; i <= 20; i++)
                call(i, "other");
        struct server *server = serve("left", 1);
        for (size_t i = 0; i < 14; i++)
                answer(server, i, "nil");
        ck_assert_str_eq(got(server, 0), "c11 c12 c13 t1 c14 c15 c16 t2 c17 c18 c19 t3 c20 t4");
        server_drop(server);
}
END_TEST

START_TEST(addressed_calls_are_no_such_picks) {
        struct server *server = serve("left", 1);
        call(10, "other");
        task(1, "go");
        for (uint64_t i = 20; i < 26; i++) {
                struct tr_message *message = fake_message(&asker, i, "held", (int)i);
                message->form = TR_FORM_TYPED;
                ck_assert_ptr_null(tr_component_call(component, message, &(struct tr_call_options){ .instance = "left", .instance_len = 4 }));
        }
        for (uint64_t i = 11; i < 16; i++)
                call(i, "other");
        for (size_t i = 0; i < 13; i++)
                answer(server, i, "nil");
        ck_assert_str_eq(got(server, 0), "c10 c20 c21 c22 c23 c24 c25 c11 c12 c13 t1 c14 c15");
        server_drop(server);
}
END_TEST

START_TEST(tasks_do_not_count_in_the_queue) {
        replace("{\"name\": \"work\", \"queue\": 2, \"operations\": {\"go\": {}}}");
        for (uint64_t i = 1; i <= 5; i++)
                task(i, "go");
        call(11, "go");
        call(12, "go");
        struct tr_message *message = fake_message(&asker, 13, "go", 1);
        is_refused(tr_component_call(component, message, &(struct tr_call_options){ 0 }), TR_CODE_MAILBOX_FULL);
        tr_message_unref(message);
        struct server *server = serve("left", 8);
        ck_assert_uint_eq(server->count, 7);
        for (size_t i = 0; i < 7; i++)
                answer(server, i, "nil");
        server_drop(server);
}
END_TEST

START_TEST(many_tasks_are_loaded_a_part_at_a_time) {
        for (uint64_t i = 0; i < 600; i++)
                ck_assert_ptr_null(try_task(i, "go", (int)i, (struct tr_task_options){ 0 }));
        settle();
        ck_assert_uint_le(component->tasks.held_count, TR_TASKS_HELD_MAX);
        struct server *server = serve("left", 1);
        for (size_t i = 0; i < 600; i++) {
                answer(server, i, "nil");
                ck_assert_uint_le(component->tasks.held_count, TR_TASKS_HELD_MAX);
        }
        ck_assert_str_eq(row("id"), "");
        ck_assert_uint_eq(server->count, 600);
        server_drop(server);
}
END_TEST

/* Deaths, and ends */

START_TEST(a_replica_that_dies_under_a_task_leaves_it_to_another) {
        struct server *left = serve("left", 1), *right = serve("right", 1);
        task(1, "go");
        struct server *first = left->count ? left : right, *second = left->count ? right : left;
        begin(first, 0);
        die(first);
        ck_assert_str_eq(got(second, 0), "t1");
        ck_assert_uint_eq(context_of(second, 0).attempt, 2);
        ck_assert_str_eq(row("state, runs"), "running 2");
        /* as often as the manifest's deliveries say; then it is a run that failed */
        begin(second, 0);
        die(second);
        ck_assert_str_eq(row("state, runs"), "waiting 2");
        ck_assert_int_eq(store_number("SELECT json_extract(cause, '$.code') = 'undeliverable' FROM tasks"), 1);
        struct server *third = serve("third", 1);
        pass(3000);
        ck_assert_uint_eq(context_of(third, 0).attempt, 3);
        begin(third, 0);
        die(third);
        ck_assert_str_eq(row("state, runs"), "parked 3");
        server_drop(left);
        server_drop(right);
        server_drop(third);
}
END_TEST

START_TEST(one_that_had_not_begun_is_not_counted) {
        struct server *left = serve("left", 2);
        task(1, "go");
        task(2, "go");
        begin(left, 0);
        die(left);
        ck_assert_str_eq(row("state, runs"), "running 1 waiting 0");
        struct server *right = serve("right", 2);
        settle();
        ck_assert_str_eq(got(right, 0), "t1 t2");
        ck_assert_uint_eq(context_of(right, 0).attempt, 2);
        ck_assert_uint_eq(context_of(right, 1).attempt, 1);
        answer(right, 0, "nil");
        answer(right, 1, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
        server_drop(right);
}
END_TEST

START_TEST(one_attempt_is_not_delivered_again) {
        replace("{\"name\": \"work\", \"attempts\": 1, \"operations\": {\"go\": {}}}");
        struct server *left = serve("left", 1);
        task(1, "go");
        begin(left, 0);
        die(left);
        ck_assert_str_eq(row("state, runs"), "parked 1");
        server_drop(left);
}
END_TEST

START_TEST(a_replica_that_takes_no_more_leaves_it_in_the_store) {
        struct server *left = serve("left", 1);
        left->answer = TR_POST_FULL;
        task(1, "go");
        ck_assert_str_eq(row("state, runs"), "waiting 0");
        left->answer = TR_POST_OK;
        tr_replica_relieved(left->replica);
        pass(1200);
        ck_assert_str_eq(got(left, 0), "t1");
        ck_assert_uint_eq(context_of(left, 0).attempt, 1);
        answer(left, 0, "nil");
        server_drop(left);
}
END_TEST

START_TEST(a_component_that_stops_gives_its_tasks_back) {
        struct server *left = serve("left", 1);
        task(1, "go");
        task(2, "go");
        begin(left, 0);
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        settle();
        /* what runs runs to its end */
        answer(left, 0, "nil");
        ck_assert(tr_target_has_ended(&component->target));
        ck_assert_str_eq(row("state, runs"), "waiting 0");
        server_drop(left);
        forget();
        declare(manifest_text);
        left = serve("left", 1);
        ck_assert_str_eq(got(left, 0), "t2");
        answer(left, 0, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

START_TEST(a_component_that_is_killed_gives_them_back_too) {
        struct server *left = serve("left", 2);
        task(1, "go");
        task(2, "go");
        task(3, "go");
        begin(left, 0);
        component->target.ops->kill(&component->target);
        die(left);
        ck_assert(tr_target_has_ended(&component->target));
        ck_assert_str_eq(row("state, runs, cause"), "waiting 1 - waiting 0 - waiting 0 -");
        server_drop(left);
        forget();
        declare(manifest_text);
        left = serve("left", 3);
        ck_assert_uint_eq(left->count, 3);
        for (size_t i = 0; i < 3; i++)
                answer(left, i, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

START_TEST(one_that_is_accepted_while_its_component_ends_is_the_next_one_s) {
        struct tr_component *before = component;
        stop();
        declare(manifest_text);
        struct tr_component *after = component;
        component = before;
        task(1, "go"); /* by somebody who had found it */
        component = after;
        struct server *left = serve("left", 1);
        ck_assert_str_eq(got(left, 0), "t1");
        answer(left, 0, "nil");
        server_drop(left);
        tr_component_unref(before);
}
END_TEST

START_TEST(a_task_waits_for_its_component) {
        task(1, "go");
        stop();
        forget();
        ck_assert_str_eq(row("state"), "waiting");
        declare(manifest_text);
        struct server *left = serve("left", 1);
        ck_assert_str_eq(got(left, 0), "t1");
        answer(left, 0, "nil");
        server_drop(left);
}
END_TEST

START_TEST(what_ran_when_the_daemon_was_killed_runs_again) {
        struct server *left = serve("left", 1);
        task(1, "go");
        begin(left, 0);
        ck_assert_str_eq(row("state, runs"), "running 1");
        /* the file, as the next daemon finds it */
        store_sql("UPDATE tasks SET state = 'running'");
        counting.refuses = TR_STORE_TASK_AGAIN;
        component->target.ops->kill(&component->target);
        die(left);
        server_drop(left);
        forget();
        store_close();
        store_open();
        counting.refuses = -1;
        declare(manifest_text);
        left = serve("left", 1);
        ck_assert_str_eq(got(left, 0), "t1");
        ck_assert_uint_eq(context_of(left, 0).attempt, 2);
        answer(left, 0, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

/* Delayed */

START_TEST(a_delayed_task_waits_for_its_time) {
        struct server *left = serve("left", 4);
        task_with(1, "go", (struct tr_task_options){ .delay_ms = 5000 });
        task_with(2, "go", (struct tr_task_options){ .at_ms = WALL_MS + 3000 });
        task_with(3, "go", (struct tr_task_options){ .at_ms = WALL_MS - 3000 }); /* is now */
        ck_assert_str_eq(row("due, delayed"), "1800000005000 1 1800000003000 1 1800000000000 1");
        ck_assert_str_eq(got(left, 0), "t3");
        pass(2999);
        ck_assert_str_eq(got(left, 1), "");
        pass(1);
        ck_assert_str_eq(got(left, 1), "t2");
        pass(1999);
        ck_assert_str_eq(got(left, 2), "");
        pass(1);
        ck_assert_str_eq(got(left, 2), "t1");
        for (size_t i = 0; i < 3; i++)
                answer(left, i, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

START_TEST(a_delay_beyond_all_time_is_one) {
        task_with(1, "go", (struct tr_task_options){ .delay_ms = UINT64_MAX, .expires_ms = UINT64_MAX });
        ck_assert_str_eq(row("due, delayed"), "9223372036854775807 1");
        pass(100000);
        ck_assert_str_eq(row("state"), "waiting");
}
END_TEST

START_TEST(one_that_expires_is_dropped_and_counted) {
        /* nobody takes it: first in its line, then in the store */
        task_with(1, "go", (struct tr_task_options){ .delay_ms = 1000, .expires_ms = 500 });
        ck_assert_str_eq(row("due, expires"), "1800000001000 1800000001500");
        pass(1499);
        ck_assert_str_eq(row("state"), "waiting");
        pass(1);
        ck_assert_str_eq(row("id"), "");
        ck_assert_uint_eq(component->tasks.expired_total, 1);
        ck_assert_str_eq(take_told(), "accepted go 0; expired go 0");
        task_with(2, "go", (struct tr_task_options){ .delay_ms = 1000, .expires_ms = 500 });
        stop();
        forget();
        elapsed_ms += 5000;
        declare(manifest_text);
        ck_assert_str_eq(row("id"), "");
        ck_assert_uint_eq(component->tasks.expired_total, 1);
        ck_assert_str_eq(take_told(), "accepted go 0; expired go 0");
        struct server *left = serve("left", 1);
        ck_assert_uint_eq(left->count, 0);
        server_drop(left);
}
END_TEST

START_TEST(one_that_is_delivered_too_late_is_not_delivered) {
        task_with(1, "go", (struct tr_task_options){ .delay_ms = 1000, .expires_ms = 500 });
        pass(1000);
        elapsed_ms += 500; /* no timer has fired yet */
        struct server *left = serve("left", 1);
        settle();
        ck_assert_uint_eq(left->count, 0);
        ck_assert_str_eq(row("id"), "");
        ck_assert_uint_eq(component->tasks.expired_total, 1);
        task(2, "go");
        ck_assert_str_eq(got(left, 0), "t2"); /* its place was not taken */
        answer(left, 0, "nil");
        server_drop(left);
}
END_TEST

START_TEST(one_that_runs_does_not_expire) {
        struct server *left = serve("left", 1);
        task_with(1, "go", (struct tr_task_options){ .delay_ms = 1000, .expires_ms = 500 });
        pass(1000);
        begin(left, 0);
        pass(10000);
        ck_assert_str_eq(row("state"), "running");
        answer(left, 0, "nil");
        ck_assert_str_eq(take_told(), "accepted go 0; started go 1; finished go 1");
        server_drop(left);
}
END_TEST

START_TEST(after_a_pause_of_the_daemon_they_come_at_a_bounded_rate) {
        for (uint64_t i = 0; i < 250; i++)
                ck_assert_ptr_null(try_task(i, "go", (int)i, (struct tr_task_options){ .delay_ms = 1000 }));
        settle();
        struct server *left = serve("left", 1000);
        pass(60000);
        ck_assert_uint_eq(left->count, 100);
        for (size_t i = 0; i < 100; i++)
                answer(left, i, "nil");
        ck_assert_uint_eq(left->count, 100);
        /* what is no such one comes at once */
        task(500, "other");
        ck_assert_str_eq(got(left, 100), "t500");
        pass(999);
        ck_assert_uint_eq(left->count, 101);
        pass(1);
        ck_assert_uint_eq(left->count, 201);
        pass(1000);
        ck_assert_uint_eq(left->count, 251);
        for (size_t i = 100; i < left->count; i++)
                answer(left, i, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

/* Keys */

START_TEST(a_key_makes_two_one_while_the_first_waits) {
        struct server *left = serve("left", 1);
        task(1, "go");
        task_with(2, "go", (struct tr_task_options){ .key = "k" });
        task_with(3, "go", (struct tr_task_options){ .key = "k" });
        task_with(4, "other", (struct tr_task_options){ .key = "k" });
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 3);
        ck_assert_uint_eq(asker.outcomes[1].bytes, asker.outcomes[2].bytes);
        ck_assert_mem_eq(asker.outcomes[1].value, asker.outcomes[2].value, 16);
        ck_assert_str_eq(take_told(), "accepted go 0; started go 1; accepted go 0; accepted other 0");
        answer(left, 0, "nil");
        ck_assert_str_eq(got(left, 1), "t2");
        /* it runs: another of the key is another */
        task_with(5, "go", (struct tr_task_options){ .key = "k" });
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks WHERE key = 'k' AND operation = 'go'"), 2);
        for (size_t i = 1; i < 4; i++)
                answer(left, i, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

/* What people ask */

static void ask(uint64_t number, enum tr_store_kind kind, const char *id) {
        struct tr_message *message = fake_message(&asker, number, "ask", 0);
        message->form = TR_FORM_TYPED;
        struct tr_failure *failure = tr_tasks_ask(fake.system, &(struct tr_tasks_request){ .kind = kind, .id = id, .id_len = strlen(id) }, message);
        ck_assert_ptr_null(failure);
        settle();
}

static char *only_id(void) {
        return strdup(row("id"));
}

START_TEST(one_that_is_parked_is_retried) {
        struct server *left = serve("left", 1);
        task(1, "typed");
        answer(left, 0, "'text'");
        char *id = only_id();
        take_told();
        ask(2, TR_STORE_TASK_RETRY, id);
        ck_assert(asker.outcomes[1].resolved);
        ck_assert_str_eq(got(left, 1), "t1");
        ck_assert_uint_eq(context_of(left, 1).attempt, 1);
        /* of one that runs nothing comes */
        ask(3, TR_STORE_TASK_RETRY, id);
        ck_assert(asker.outcomes[2].resolved);
        answer(left, 1, "1");
        ck_assert_str_eq(row("id"), "");
        ck_assert_str_eq(take_told(), "retried typed 0; started typed 1; finished typed 1");
        ask(4, TR_STORE_TASK_RETRY, id);
        ck_assert_int_eq(asker.outcomes[3].code, TR_CODE_NOT_FOUND);
        free(id);
        server_drop(left);
}
END_TEST

START_TEST(one_that_waits_is_retried_now) {
        struct server *left = serve("left", 1);
        task_with(1, "go", (struct tr_task_options){ .delay_ms = 100000, .expires_ms = 1 });
        char *id = only_id();
        ask(2, TR_STORE_TASK_RETRY, id);
        ck_assert_str_eq(got(left, 0), "t1");
        answer(left, 0, "nil");
        free(id);
        server_drop(left);
}
END_TEST

START_TEST(one_that_is_dropped_goes) {
        task(1, "go");
        char *id = only_id();
        take_told();
        ck_assert_uint_eq(component->tasks.waiting, 1);
        ask(2, TR_STORE_TASK_DROP, id);
        ck_assert_uint_eq(component->tasks.waiting, 0);
        ck_assert_uint_eq(component->tasks.held_count, 0);
        ck_assert_str_eq(row("id"), "");
        ck_assert_str_eq(take_told(), "dropped go 0");
        free(id);
        /* one that runs runs on, and is not run again */
        struct server *left = serve("left", 1);
        task(3, "go");
        id = only_id();
        begin(left, 0);
        ask(4, TR_STORE_TASK_DROP, id);
        ck_assert_int_eq(left->cancelled, 0);
        fault(left, 0);
        ck_assert_str_eq(row("id"), "");
        pass(2000);
        ck_assert_uint_eq(left->count, 1);
        ask(5, TR_STORE_TASK_DROP, id);
        ck_assert_int_eq(asker.outcomes[asker.count - 1].code, TR_CODE_NOT_FOUND);
        free(id);
        server_drop(left);
}
END_TEST

START_TEST(what_cannot_be_asked_is_refused) {
        struct tr_message *message = fake_message(&asker, 1, "ask", 0);
        is_refused(tr_tasks_ask(fake.system, &(struct tr_tasks_request){ .kind = TR_STORE_TASK_LIST, .state = "gone", .state_len = 4 }, message),
                   TR_CODE_BAD_REQUEST);
        is_refused(tr_tasks_ask(fake.system, &(struct tr_tasks_request){ .kind = TR_STORE_TASK_DROP, .id = "x", .id_len = 1 }, message),
                   TR_CODE_NOT_FOUND);
        fake.system->store = NULL;
        is_refused(tr_tasks_ask(fake.system, &(struct tr_tasks_request){ .kind = TR_STORE_TASK_LIST }, message), TR_CODE_STORE);
        fake.system->store = &counting.store;
        ck_assert_ptr_null(tr_tasks_ask(fake.system, &(struct tr_tasks_request){ .kind = TR_STORE_TASK_LIST, .state = "parked", .state_len = 6 },
                                        message));
        settle();
        ck_assert(asker.outcomes[0].resolved);
        ck_assert_uint_eq(asker.outcomes[0].value[0], 0x90);
}
END_TEST

/* Manifests that change */

START_TEST(one_whose_operation_is_gone_is_parked) {
        task(1, "other");
        task_with(2, "other", (struct tr_task_options){ .delay_ms = 1000 });
        replace("{\"name\": \"work\", \"operations\": {\"go\": {}}}");
        ck_assert_str_eq(row("state, runs"), "parked 0 waiting 0");
        pass(1000);
        ck_assert_str_eq(row("state, runs"), "parked 0 parked 0");
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks WHERE json_extract(cause, '$.code') = 'not-found'"), 2);
}
END_TEST

START_TEST(one_whose_contract_has_changed_is_parked) {
        task_with(1, "typed", (struct tr_task_options){ .delay_ms = 1000 });
        task_with(2, "go", (struct tr_task_options){ .delay_ms = 1000 });
        replace("{\"name\": \"work\", \"operations\": {\"typed\": {\"input\": {\"type\": \"string\"}}, \"go\": {\"stateful\": true}}}");
        pass(1000);
        ck_assert_str_eq(row("state, runs"), "parked 0 parked 0");
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks WHERE json_extract(cause, '$.code') = 'contract'"), 2);
}
END_TEST

/* Chains */

START_TEST(a_task_is_deeper_in_its_chain_than_who_asked_for_it) {
        struct server *left = serve("left", 1);
        uint64_t number = 1;
        task(number, "go");
        for (;; number++) {
                size_t n = left->count - 1;
                char trace[TR_TRACEPARENT_LEN + 1];
                begin(left, n);
                memcpy(trace, context_of(left, n).trace, sizeof(trace));
                ck_assert_uint_eq(left->posted[n]->behalf->invocation->span.depth, number);
                struct tr_failure *failure = try_task(number + 1, "go", 1, (struct tr_task_options){ .trace = trace });
                answer(left, n, "nil");
                if (failure) {
                        is_refused(failure, TR_CODE_LOOP);
                        break;
                }
                ck_assert_mem_eq(context_of(left, n + 1).trace, trace, 35); /* the trace is the same */
        }
        ck_assert_uint_eq(number, TR_CHAIN_MAX);
        server_drop(left);
}
END_TEST

START_TEST(what_people_have_written_into_the_file_is_run_or_parked) {
        for (uint64_t i = 1; i <= 3; i++)
                task_with(i, "go", (struct tr_task_options){ .delay_ms = 1000, .id = "e" });
        store_sql("UPDATE tasks SET trace = 'short', depth = 77 WHERE input = '1'");
        store_sql("UPDATE tasks SET entity = char(10) WHERE input = '2'");
        store_sql("UPDATE tasks SET operation = '' WHERE input = '3'");
        struct server *left = serve("left", 3);
        pass(1000);
        ck_assert_str_eq(got(left, 0), "t1");
        answer(left, 0, "nil");
        ck_assert_str_eq(row("state, runs"), "parked 0 parked 0");
        server_drop(left);
}
END_TEST

/* A store that fails */

START_TEST(what_cannot_be_written_is_written_later) {
        struct server *left = serve("left", 2);
        task(1, "go");
        task(2, "go");
        counting.refuses = TR_STORE_TASK_END;
        answer(left, 0, "nil");
        counting.refuses = TR_STORE_TASK_AGAIN;
        fault(left, 1);
        ck_assert_str_eq(row("state"), "running running");
        take_told();
        pass(999);
        ck_assert_uint_eq(counting.refused, 2);
        pass(1); /* once more in vain, of the one */
        ck_assert_str_eq(row("state"), "running");
        ck_assert_uint_eq(counting.refused, 3);
        counting.refuses = -1;
        pass(1000);
        ck_assert_str_eq(take_told(), "finished go 1; failed go 1 fault; started go 2");
        answer(left, 2, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

START_TEST(what_cannot_be_loaded_is_loaded_later) {
        struct server *left = serve("left", 1);
        counting.refuses = TR_STORE_TASK_LOAD;
        task(1, "go");
        ck_assert_uint_eq(left->count, 0);
        counting.refuses = -1;
        pass(1000);
        ck_assert_str_eq(got(left, 0), "t1");
        counting.refuses = TR_STORE_TASK_BEGIN;
        task(2, "go");
        answer(left, 0, "nil");
        ck_assert_str_eq(row("state"), "waiting"); /* it runs all the same */
        answer(left, 1, "nil");
        ck_assert_str_eq(row("id"), "");
        server_drop(left);
}
END_TEST

/* What has kept it from being run and passes by itself is no run. */
START_TEST(what_passes_does_not_count) {
        struct server *left = serve("left", 1);
        task(1, "go");
        for (size_t i = 0; i < 5; i++) {
                fail_with(left, i, tr_failure_new(TR_CODE_NO_MEMORY, "out of memory"), TR_RAN_NO);
                ck_assert_str_eq(row("state, runs"), "waiting 0");
                pass(1200);
        }
        ck_assert_uint_eq(context_of(left, 5).attempt, 1);
        /* what does not pass does */
        for (size_t i = 5; i < 8; i++) {
                fail_with(left, i, tr_failure_new(TR_CODE_TOO_LARGE, "it does not fit"), TR_RAN_NO);
                pass(5000);
        }
        ck_assert_str_eq(row("state, runs"), "parked 3");
        server_drop(left);
}
END_TEST

/* Names that are lost */

static const char lost_text[] =
        "{\"name\": \"work\", \"lost\": \"reopen\", \"operations\": {\"reopen\": {}, \"held\": {\"stateful\": true}}}";

static int64_t names(const char *instance) {
        char sql[128];
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM names WHERE instance = '%s'", instance);
        return store_number(sql);
}

START_TEST(a_name_that_is_given_up_by_a_death_is_lost) {
        replace(lost_text);
        struct server *left = serve("left", 1), *right = serve("right", 1);
        settle();
        ck_assert_int_eq(names("left"), 1);
        die(left);
        ck_assert_int_eq(names("left"), 0);
        ck_assert_int_eq(names("right"), 1);
        ck_assert_str_eq(got(right, 0), "t{'instance':'left','reason':'it ended'}");
        struct tr_call_context context = context_of(right, 0);
        ck_assert_uint_eq(context.uid, geteuid());
        ck_assert_int_eq(context.pid, getpid());
        answer(right, 0, "nil");
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 0);
        server_drop(left);
        server_drop(right);
}
END_TEST

START_TEST(the_reason_is_how_it_ended) {
        replace(lost_text);
        struct server *left = serve("left", 2), *right = serve("right", 1);
        tr_replica_died_of(left->replica, NULL);
        left->answer = TR_POST_CLOSED;
        settle();
        answer(right, 0, "nil");
        struct server *third = serve("third", 1);
        struct tr_failure *failure = tr_failure_new(TR_CODE_KILLED, "it was killed");
        right->answer = TR_POST_CLOSED;
        tr_replica_died_of(right->replica, failure);
        tr_failure_unref(failure);
        settle();
        ck_assert_str_eq(got(third, 0), "t{'instance':'right','reason':'it was killed'}");
        answer(third, 0, "nil");
        server_drop(left);
        server_drop(right);
        server_drop(third);
}
END_TEST

START_TEST(one_that_retires_loses_nothing) {
        replace(lost_text);
        struct server *left = serve("left", 1), *right = serve("right", 1);
        settle();
        tr_replica_retire(left->replica);
        die(left);
        ck_assert_int_eq(names("left"), 0);
        /* nor one that held no name yet */
        struct server *third = calloc(1, sizeof(*third));
        ck_assert_int_eq(tr_target_init(&third->target, &server_ops, fake.system, 0, "server", ""), 0);
        ck_assert_ptr_null(tr_replica_join(component,
                                           &(struct tr_replica_options){ .ops = &replica_ops, .userdata = third, .instance = "third",
                                                                         .kind = "connection" },
                                           &third->target, &third->replica));
        tr_replica_died(third->replica);
        stop();
        ck_assert_int_eq(names("right"), 0);
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 0);
        server_drop(left);
        server_drop(right);
        server_drop(third);
}
END_TEST

START_TEST(names_are_known_of_since_somebody_wants_to_know) {
        struct server *left = serve("left", 1);
        settle();
        ck_assert_int_eq(names("left"), 0);
        replace(lost_text);
        ck_assert_int_eq(names("left"), 1);
        replace(manifest_text);
        die(left);
        ck_assert_int_eq(names("left"), 0);
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 0);
        server_drop(left);
}
END_TEST

START_TEST(the_daemon_s_own_death_is_one) {
        replace(lost_text);
        struct server *left = serve("left", 1), *right = serve("right", 1);
        settle();
        counting.refuses = TR_STORE_NAME_RELEASE; /* as of a daemon that was killed */
        stop();
        server_drop(left);
        server_drop(right);
        forget();
        store_close();
        store_open();
        counting.refuses = -1;
        ck_assert_int_eq(store_number("SELECT count(*) FROM names"), 2);
        declare(lost_text);
        ck_assert_int_eq(store_number("SELECT count(*) FROM names"), 0);
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 2);
        left = serve("left", 2);
        settle();
        ck_assert_str_eq(got(left, 0), "t{'instance':'left','reason':'the daemon ended'} t{'instance':'right','reason':'the daemon ended'}");
        ck_assert_int_eq(names("left"), 1);
        answer(left, 0, "nil");
        answer(left, 1, "nil");
        server_drop(left);
}
END_TEST

START_TEST(without_a_store_a_lost_name_is_logged) {
        fake.system->store = NULL;
        replace(lost_text);
        struct server *left = serve("left", 1);
        die(left);
        server_drop(left);
        fake.system->store = &counting.store;
        ck_assert_str_eq(row("id"), "");
}
END_TEST

suite_main_with("task", setup, teardown, a_task_is_accepted_when_it_is_on_disk, what_the_store_refuses_was_not_accepted,
                what_is_no_task_is_refused_at_once, one_that_was_taken_back_before_is_not_kept, a_task_runs_and_is_gone,
                an_exception_is_tried_again_after_a_pause_that_doubles, one_attempt_is_no_second_try, no_attempt_is_refused,
                a_violation_of_the_contract_parks_at_once, an_error_that_is_declared_ends_it, an_operation_s_timeout_is_that_of_each_run,
                every_fourth_pick_is_a_task, addressed_calls_are_no_such_picks, tasks_do_not_count_in_the_queue,
                many_tasks_are_loaded_a_part_at_a_time, a_replica_that_dies_under_a_task_leaves_it_to_another,
                one_that_had_not_begun_is_not_counted, one_attempt_is_not_delivered_again,
                a_replica_that_takes_no_more_leaves_it_in_the_store, a_component_that_stops_gives_its_tasks_back,
                a_component_that_is_killed_gives_them_back_too, one_that_is_accepted_while_its_component_ends_is_the_next_one_s, a_task_waits_for_its_component,
                what_ran_when_the_daemon_was_killed_runs_again,
                a_delayed_task_waits_for_its_time,
                a_delay_beyond_all_time_is_one,
                one_that_expires_is_dropped_and_counted,
                one_that_is_delivered_too_late_is_not_delivered,
                one_that_runs_does_not_expire,
                after_a_pause_of_the_daemon_they_come_at_a_bounded_rate,
                a_key_makes_two_one_while_the_first_waits,
                one_that_is_parked_is_retried,
                one_that_waits_is_retried_now,
                one_that_is_dropped_goes,
                what_cannot_be_asked_is_refused,
                one_whose_operation_is_gone_is_parked,
                one_whose_contract_has_changed_is_parked,
                a_task_is_deeper_in_its_chain_than_who_asked_for_it,
                what_people_have_written_into_the_file_is_run_or_parked,
                what_cannot_be_written_is_written_later,
                what_cannot_be_loaded_is_loaded_later,
                what_passes_does_not_count,
                a_name_that_is_given_up_by_a_death_is_lost,
                the_reason_is_how_it_ended,
                one_that_retires_loses_nothing,
                names_are_known_of_since_somebody_wants_to_know,
                the_daemon_s_own_death_is_one,
                without_a_store_a_lost_name_is_logged);
