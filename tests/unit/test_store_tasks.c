/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, and names that are held, in the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/notation.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

/* A moment that is nobody's. */
#define NOW INT64_C(1800000000000)

static struct tr_store_job task(const char *operation, const char *input, int64_t due_ms) {
        struct tr_writer value = store_value(input);
        return (struct tr_store_job){
                .kind = TR_STORE_TASK_ADD,
                .task = { .component = "c", .operation = operation, .input = value.data, .input_bytes = value.len, .due_ms = due_ms,
                          .expires_ms = TR_STORE_NEVER, .depth = 1, .uid = 1000, .gid = 100, .pid = 77 },
        };
}

static const char *added(struct tr_store_job job) {
        static char ids[64][TR_STORE_ID_LEN + 1];
        static unsigned count;
        char *id = ids[count++ % 64];
        job = store_must(job);
        ck_assert_uint_eq(strlen(job.new_id), TR_STORE_ID_LEN);
        memcpy(id, job.new_id, TR_STORE_ID_LEN + 1);
        return id;
}

static struct tr_store_job load(int64_t now_ms, uint32_t limit) {
        return store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = now_ms, .limit = limit, .late_limit = limit });
}

/* The operations of what was loaded, and ! before one that has expired. */
static const char *operations(const struct tr_store_job *job) {
        static char text[1024];
        size_t len = 0;
        text[0] = '\0';
        for (uint32_t i = 0; i < job->tasks_count; i++)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", i ? " " : "", job->tasks[i].expired ? "!" : "", job->tasks[i].operation);
        return text;
}

static const char *loaded(int64_t now_ms, uint32_t limit) {
        struct tr_store_job job = load(now_ms, limit);
        return operations(&job);
}

static struct tr_store_job move(enum tr_store_kind kind, const char *id) {
        return (struct tr_store_job){ .kind = kind, .id = id, .now_ms = NOW, .due_ms = NOW, .task.runs = 1 };
}

static struct tr_store_job with_cause(enum tr_store_kind kind, const char *id, const char *cause, int64_t due_ms) {
        struct tr_writer value = store_value(cause);
        return (struct tr_store_job){
                .kind = kind, .id = id, .document = value.data, .document_bytes = value.len, .due_ms = due_ms, .task.runs = 1,
        };
}

/* "waiting running parked" of the component. */
static void show_counts(void *userdata, const struct tr_store_counts *counts) {
        if (strcmp(counts->component, "c") == 0)
                snprintf(userdata, 64, "%d %d %d", (int)counts->waiting, (int)counts->running, (int)counts->parked);
}

static const char *counted(void) {
        static char text[64];
        snprintf(text, sizeof(text), "none");
        tr_store_visit_counts(tr_sqlite_store_interface(store), show_counts, text);
        return text;
}

START_TEST(a_task_is_kept_with_all_that_is_known_of_it) {
        struct tr_store_job add = task("go", "{'x':[1,2.5,'t']}", NOW);
        add.task.key = "k";
        add.task.entity = "e";
        add.task.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        add.task.expires_ms = NOW + 5000;
        add.task.delayed = true;
        add.task.depth = 7;
        const char *id = added(add);
        struct tr_store_job job = load(NOW + 10, 10);
        ck_assert_uint_eq(job.tasks_count, 1);
        const struct tr_store_task *one = &job.tasks[0];
        ck_assert_str_eq(one->id, id);
        ck_assert_str_eq(one->component, "c");
        ck_assert_str_eq(one->operation, "go");
        ck_assert_str_eq(one->key, "k");
        ck_assert_str_eq(one->entity, "e");
        ck_assert_str_eq(one->trace, add.task.trace);
        ck_assert_uint_eq(one->input_bytes, add.task.input_bytes);
        ck_assert_mem_eq(one->input, add.task.input, one->input_bytes);
        ck_assert_int_eq(one->due_ms, NOW);
        ck_assert_int_eq(one->expires_ms, NOW + 5000);
        ck_assert(one->delayed && !one->expired);
        ck_assert_uint_eq(one->depth, 7);
        ck_assert_uint_eq(one->uid, 1000);
        ck_assert_uint_eq(one->gid, 100);
        ck_assert_int_eq(one->pid, 77);
        ck_assert_uint_eq(one->runs, 0);
        ck_assert_int_eq(store_number("SELECT typeof(input) = 'text' FROM tasks"), 1);
}
END_TEST

START_TEST(an_input_that_is_no_json_comes_as_it_went) {
        struct tr_store_job add = task("go", "{'bytes':#00ff,'at':!-1#00000001}", NOW);
        added(add);
        struct tr_store_job job = load(NOW, 10);
        ck_assert_uint_eq(job.tasks[0].input_bytes, add.task.input_bytes);
        ck_assert_mem_eq(job.tasks[0].input, add.task.input, add.task.input_bytes);
        ck_assert_ptr_null(job.tasks[0].key);
        ck_assert_ptr_null(job.tasks[0].trace);
        ck_assert_int_eq(job.tasks[0].expires_ms, TR_STORE_NEVER);
        ck_assert_int_eq(store_number("SELECT typeof(input) = 'blob' FROM tasks"), 1);
}
END_TEST

START_TEST(what_is_due_is_loaded_once_the_oldest_first) {
        added(task("b", "1", NOW - 5));
        added(task("c", "1", NOW));
        added(task("a", "1", NOW - 10));
        added(task("later", "1", NOW + 500));
        struct tr_store_job other = task("other", "1", NOW);
        other.task.component = "d";
        added(other);
        ck_assert_str_eq(loaded(NOW, 2), "a b");
        struct tr_store_job job = load(NOW, 10);
        ck_assert_str_eq(operations(&job), "c");
        ck_assert_int_eq(job.next_ms, NOW + 500);
        ck_assert_str_eq(loaded(NOW, 10), "");
        job = load(NOW + 500, 10);
        ck_assert_str_eq(operations(&job), "later");
        ck_assert_int_eq(job.next_ms, TR_STORE_NEVER);
        /* those that are due and do not fit are what comes next */
        added(task("x", "1", NOW));
        added(task("y", "1", NOW + 1));
        job = load(NOW + 1, 1);
        ck_assert_str_eq(operations(&job), "x");
        ck_assert_int_eq(job.next_ms, NOW + 1);
        ck_assert_str_eq(counted(), "6 0 0");
}
END_TEST

START_TEST(what_is_late_comes_in_a_bounded_number) {
        for (int i = 0; i < 5; i++) {
                struct tr_store_job add = task("late", "1", NOW - 60000 + i);
                add.task.delayed = true;
                added(add);
        }
        struct tr_store_job add = task("now", "1", NOW);
        add.task.delayed = true;
        added(add);
        added(task("plain", "1", NOW - 70000));
        struct tr_store_job job = store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = NOW, .limit = 10, .late_limit = 2 });
        ck_assert_str_eq(operations(&job), "plain late late now");
        ck_assert_int_eq(job.next_ms, NOW - 60000 + 2);
        job = store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = NOW, .limit = 10 });
        ck_assert_str_eq(operations(&job), "");
        ck_assert_str_eq(loaded(NOW, 10), "late late late");
}
END_TEST

START_TEST(what_has_expired_is_told_and_gone) {
        struct tr_store_job add = task("old", "1", NOW - 100);
        add.task.expires_ms = NOW;
        added(add);
        add.task.operation = "good";
        add.task.expires_ms = NOW + 1;
        added(add);
        ck_assert_str_eq(loaded(NOW, 10), "!old good");
        ck_assert_str_eq(counted(), "1 0 0");
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 1);
}
END_TEST

START_TEST(a_task_runs_and_waits_and_is_parked_and_goes) {
        const char *id = added(task("go", "1", NOW));
        ck_assert_str_eq(counted(), "1 0 0");
        loaded(NOW, 10);
        store_must(move(TR_STORE_TASK_BEGIN, id));
        ck_assert_str_eq(counted(), "0 1 0");
        store_must(with_cause(TR_STORE_TASK_AGAIN, id, "{'code':'fault'}", NOW + 1000));
        ck_assert_str_eq(counted(), "1 0 0");
        struct tr_store_job job = load(NOW + 999, 10);
        ck_assert_uint_eq(job.tasks_count, 0);
        ck_assert_int_eq(job.next_ms, NOW + 1000);
        job = load(NOW + 1000, 10);
        ck_assert_uint_eq(job.tasks_count, 1);
        ck_assert_uint_eq(job.tasks[0].runs, 1);
        store_must(move(TR_STORE_TASK_BEGIN, id));
        store_must(with_cause(TR_STORE_TASK_PARK, id, "{'code':'contract','bytes':#00}", 0));
        ck_assert_str_eq(counted(), "0 0 1");
        ck_assert_str_eq(loaded(NOW + 99999, 10), "");
        job = store_must(move(TR_STORE_TASK_RETRY, id));
        ck_assert_str_eq(job.task_component, "c");
        ck_assert_str_eq(job.task_operation, "go");
        ck_assert_uint_eq(job.task_uid, 1000);
        ck_assert(job.found);
        ck_assert_str_eq(counted(), "1 0 0");
        job = load(NOW, 10);
        ck_assert_uint_eq(job.tasks_count, 1);
        ck_assert_uint_eq(job.tasks[0].runs, 0);
        store_must(move(TR_STORE_TASK_BEGIN, id));
        job = store_must(move(TR_STORE_TASK_RETRY, id));
        ck_assert(!job.found);
        ck_assert_str_eq(counted(), "0 1 0");
        store_must(move(TR_STORE_TASK_END, id));
        ck_assert_str_eq(counted(), "0 0 0");
        ck_assert_int_eq(store_number("SELECT count(*) FROM tasks"), 0);
        /* what is gone is no failure where nobody asked for it by its id */
        store_must(move(TR_STORE_TASK_BEGIN, id));
        store_must(move(TR_STORE_TASK_END, id));
        store_must(move(TR_STORE_TASK_AGAIN, id));
        store_must(move(TR_STORE_TASK_PARK, id));
        ck_assert_str_eq(store_refused(move(TR_STORE_TASK_DROP, "x"), "not-found"), "there is no task x");
        store_refused(move(TR_STORE_TASK_RETRY, id), "not-found");
        ck_assert_str_eq(counted(), "0 0 0");
}
END_TEST

START_TEST(one_that_waits_for_its_time_is_due_when_it_is_asked_for) {
        struct tr_store_job add = task("go", "1", NOW + 100000);
        add.task.delayed = true;
        const char *id = added(add);
        ck_assert_str_eq(loaded(NOW, 10), "");
        store_must(move(TR_STORE_TASK_RETRY, id));
        ck_assert_str_eq(loaded(NOW, 10), "go");
        struct tr_store_job job = store_must(move(TR_STORE_TASK_DROP, id));
        ck_assert_str_eq(job.task_component, "c");
        ck_assert_str_eq(store_shown(&job), "nil");
        ck_assert_str_eq(counted(), "0 0 0");
}
END_TEST

START_TEST(a_key_makes_the_same_task_of_two_while_it_waits) {
        struct tr_store_job add = task("go", "1", NOW);
        add.task.key = "k";
        const char *first = added(add);
        struct tr_store_job job = store_must(add);
        ck_assert(job.found);
        ck_assert_str_eq(job.new_id, first);
        /* of another operation, or of another component, it is another key */
        add.task.operation = "other";
        ck_assert_str_ne(added(add), first);
        add.task.operation = "go";
        add.task.component = "d";
        ck_assert_str_ne(added(add), first);
        add.task.component = "c";
        /* loaded is still waiting */
        loaded(NOW, 10);
        ck_assert_str_eq(added(add), first);
        store_must(move(TR_STORE_TASK_BEGIN, first));
        const char *second = added(add);
        ck_assert_str_ne(second, first);
        store_must(move(TR_STORE_TASK_AGAIN, first));
        job = store_must(add);
        ck_assert(job.found);
        store_must(move(TR_STORE_TASK_END, first));
        store_must(move(TR_STORE_TASK_PARK, second));
        job = store_must(add);
        ck_assert(!job.found);
}
END_TEST

START_TEST(a_delivery_that_never_began_does_not_count) {
        const char *id = added(task("go", "1", NOW));
        loaded(NOW, 10);
        store_must(move(TR_STORE_TASK_BEGIN, id));
        struct tr_store_job again = move(TR_STORE_TASK_AGAIN, id);
        again.task.runs = 0;
        store_must(again);
        struct tr_store_job job = load(NOW, 10);
        ck_assert_uint_eq(job.tasks[0].runs, 0);
}
END_TEST

START_TEST(what_nobody_has_in_hand_is_loaded_again) {
        const char *ran = added(task("ran", "1", NOW));
        added(task("waited", "1", NOW));
        struct tr_store_job other = task("other", "1", NOW);
        other.task.component = "d";
        added(other);
        other = (struct tr_store_job){ .kind = TR_STORE_TASK_LOAD, .component = "d", .now_ms = NOW, .limit = 10 };
        ck_assert_uint_eq(store_must(other).tasks_count, 1);
        ck_assert_str_eq(loaded(NOW, 10), "ran waited");
        store_must(move(TR_STORE_TASK_BEGIN, ran));
        ck_assert_str_eq(loaded(NOW, 10), "");
        ck_assert_str_eq(counted(), "1 1 0");
        struct tr_store_job fresh = { .kind = TR_STORE_TASK_LOAD, .component = "c", .now_ms = NOW, .limit = 10, .fresh = true };
        struct tr_store_job job = store_must(fresh);
        ck_assert_str_eq(operations(&job), "ran waited");
        ck_assert_uint_eq(job.tasks[0].runs, 1);
        ck_assert_str_eq(counted(), "2 0 0");
        ck_assert_uint_eq(store_must(other).tasks_count, 0); /* those of others stay where they are */
}
END_TEST

START_TEST(what_ran_when_the_daemon_ended_waits_again) {
        const char *one = added(task("one", "1", NOW)), *two = added(task("two", "1", NOW)), *three = added(task("three", "1", NOW));
        loaded(NOW, 10);
        store_must(move(TR_STORE_TASK_BEGIN, one));
        store_must(with_cause(TR_STORE_TASK_PARK, three, "{}", 0));
        store_close();
        store_open();
        ck_assert_str_eq(counted(), "2 0 1");
        struct tr_store_job job = load(NOW, 10);
        ck_assert_str_eq(operations(&job), "one two");
        ck_assert_uint_eq(job.tasks[0].runs, 1);
        ck_assert_uint_eq(job.tasks[1].runs, 0);
        ck_assert_str_eq(job.tasks[1].id, two);
}
END_TEST

static const char *listed(const char *component, const char *state) {
        static char text[4096];
        struct tr_store_job job = store_must((struct tr_store_job){ .kind = TR_STORE_TASK_LIST, .component = component, .state = state });
        struct tr_reader reader = tr_reader(job.value, job.value_bytes);
        char *shown = notation_read(&reader);
        snprintf(text, sizeof(text), "%s", shown);
        free(shown);
        return text;
}

START_TEST(tasks_are_listed) {
        char expected[1024];
        ck_assert_str_eq(listed(NULL, NULL), "[]");
        struct tr_store_job add = task("go", "{'bytes':#00}", NOW);
        add.task.key = "k";
        add.task.expires_ms = NOW + 5;
        add.task.delayed = true;
        const char *id = added(add);
        add = task("go", "{'x':1}", NOW);
        add.task.component = "d";
        const char *other = added(add);
        store_must(with_cause(TR_STORE_TASK_PARK, other, "{'code':'fault','message':'no'}", 0));
        store_sql("UPDATE tasks SET created = 5, updated = 6");
        snprintf(expected, sizeof(expected),
                 "[{'id':'%s','component':'c','operation':'go','state':'waiting','input':{'bytes':#00},'key':'k','due':1800000000000,"
                 "'expires':1800000000005,'delayed':true,'runs':0,'created':5,'updated':6,'depth':1,'caller':{'uid':1000,'gid':100,'pid':77}}]",
                 id);
        ck_assert_str_eq(listed("c", NULL), expected);
        ck_assert_str_eq(listed(NULL, "waiting"), expected);
        ck_assert_str_eq(listed("c", "parked"), "[]");
        snprintf(expected, sizeof(expected),
                 "[{'id':'%s','component':'d','operation':'go','state':'parked','input':{'x':1},'due':1800000000000,'delayed':false,'runs':1,"
                 "'created':5,'updated':6,'cause':{'code':'fault','message':'no'},'depth':1,'caller':{'uid':1000,'gid':100,'pid':77}}]",
                 other);
        ck_assert_str_eq(listed(NULL, "parked"), expected);
}
END_TEST

/* Names */

static struct tr_store_job name(enum tr_store_kind kind, const char *instance) {
        return (struct tr_store_job){ .kind = kind, .component = "c", .id = instance };
}

static const char *left(void) {
        struct tr_store_job job = store_must(name(TR_STORE_NAMES_LEFT, NULL));
        return store_shown(&job);
}

START_TEST(names_that_a_daemon_left_are_told) {
        store_must(name(TR_STORE_NAME_HOLD, "one"));
        store_must(name(TR_STORE_NAME_HOLD, "two"));
        store_must(name(TR_STORE_NAME_HOLD, "three"));
        store_must(name(TR_STORE_NAME_RELEASE, "two"));
        ck_assert_str_eq(left(), "[]");
        store_close();
        store_open();
        store_must(name(TR_STORE_NAME_HOLD, "one"));
        ck_assert_str_eq(left(), "['three']");
        store_must(name(TR_STORE_NAMES_FORGET, NULL));
        ck_assert_str_eq(left(), "[]");
        store_close();
        store_open();
        ck_assert_str_eq(left(), "['one']");
}
END_TEST

suite_main_with("store_tasks", store_setup, store_teardown, a_task_is_kept_with_all_that_is_known_of_it, an_input_that_is_no_json_comes_as_it_went,
                what_is_due_is_loaded_once_the_oldest_first, what_is_late_comes_in_a_bounded_number, what_has_expired_is_told_and_gone,
                a_task_runs_and_waits_and_is_parked_and_goes, one_that_waits_for_its_time_is_due_when_it_is_asked_for,
                a_key_makes_the_same_task_of_two_while_it_waits, what_ran_when_the_daemon_ended_waits_again, a_delivery_that_never_began_does_not_count,
                what_nobody_has_in_hand_is_loaded_again, tasks_are_listed,
                names_that_a_daemon_left_are_told);
