/* SPDX-License-Identifier: Apache-2.0 */
/* Entities in the store, and the thread that does its jobs. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/contract/schema.h"
#include "tests/unit/schema_fixture.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

/* Documents */

START_TEST(a_document_comes_back_as_it_went) {
        int64_t before_ms = tr_clock_wall_ms();
        struct tr_store_job job = store_must(store_write("a", "{'title':'x','n':1,'f':1.0,'list':[],'map':{},'no':nil}", TR_STORE_ANY));
        static const char *const expected = "{'id':'a','version':1,'f':1.000000,'list':[],'map':{},'n':1,'no':nil,'title':'x'}";
        ck_assert_uint_eq(job.version, 1);
        ck_assert_str_eq(job.new_id, "a");
        ck_assert_str_eq(store_read("a"), expected);
        ck_assert_int_ge(store_number("SELECT created FROM entities"), before_ms);
        ck_assert_int_eq(store_number("SELECT created = updated FROM entities"), 1);
        ck_assert_str_eq(store_read("b"), "nil");
        store_close();
        store_open();
        ck_assert_str_eq(store_read("a"), expected);
}
END_TEST

START_TEST(an_id_is_made_where_none_is_given) {
        struct tr_store_job one = store_must(store_write(NULL, "{}", 0)), other = store_must(store_write(NULL, "{}", TR_STORE_ANY));
        ck_assert_uint_eq(strlen(one.new_id), TR_STORE_ID_LEN);
        ck_assert_str_ne(one.new_id, other.new_id);
        ck_assert_str_ne(store_read(one.new_id), "nil");
}
END_TEST

START_TEST(a_version_counts_changes) {
        store_must(store_write("a", "{'x':1,'y':2}", TR_STORE_ANY));
        ck_assert_uint_eq(store_must(store_write("a", "{'y':2,'x':1}", TR_STORE_ANY)).version, 1);
        ck_assert_uint_eq(store_must(store_write("a", "{'x':1.0,'y':2}", TR_STORE_ANY)).version, 2);
        ck_assert_uint_eq(store_must(store_write("a", "{'y':2}", 2)).version, 3);
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':3,'y':2}");
}
END_TEST

START_TEST(a_version_that_is_expected_has_to_be_there) {
        ck_assert_str_eq(store_refused(store_write("a", "{}", 3), "conflict"), "the entity a of c is not there any more");
        store_must(store_write("a", "{}", 0));
        ck_assert_str_eq(store_refused(store_write("a", "{'x':1}", 0), "conflict"), "the entity a of c is there already");
        store_must(store_write("a", "{'x':1}", 1));
        ck_assert_str_eq(store_refused(store_write("a", "{'x':2}", 1), "conflict"), "the entity a of c is of version 2, and not 1 any more");
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'x':1}");
}
END_TEST

static struct tr_store_job merged(const char *id, const char *changes) {
        struct tr_store_job job = store_write(id, changes, TR_STORE_ANY);
        job.merge = true;
        return job;
}

START_TEST(changes_are_merged) {
        store_must(merged("a", "{'x':1,'gone':nil}"));
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1,'x':1}");
        struct tr_store_job job = store_must(merged("a", "{'x':nil,'y':{'z':1}}"));
        ck_assert_str_eq(store_shown(&job), "{'id':'a','version':2,'y':{'z':1}}");
        ck_assert_uint_eq(store_must(merged("a", "{}")).version, 2);
        ck_assert_uint_eq(store_must(merged("b", "{}")).version, 1);
}
END_TEST

START_TEST(fields_of_the_store_s_own_are_not_written) {
        store_must(store_write("a", "{'id':'z','version':7,'created':1,'updated':2,'x':1}", TR_STORE_ANY));
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':1,'x':1}");
        ck_assert_int_eq(store_number("SELECT body = '{\"x\":1}' FROM entities"), 1);
}
END_TEST

START_TEST(what_is_no_json_is_refused) {
        ck_assert_str_eq(store_refused(store_write("a", "{'x':[#00]}", TR_STORE_ANY), "not-sendable"),
                         "an entity of c: /x/0 is bytes, which JSON does not have");
        ck_assert_str_eq(store_refused(store_write("a", "[1]", TR_STORE_ANY), "not-sendable"), "an entity of c: the document is no map");
        ck_assert_str_eq(store_read("a"), "nil");
}
END_TEST

START_TEST(the_schema_is_of_what_is_there_then) {
        struct tr_schema *schema = schema_of("{'type':'object','required':['title'],'additionalProperties':false,"
                                             "'properties':{'title':{'type':'string'},'tags':{'type':'object'}}}");
        struct tr_store_job job = merged("a", "{'title':'x','tags':[],'id':'a'}");
        job.schema = schema;
        job = store_must(job);
        ck_assert_str_eq(store_shown(&job), "{'id':'a','version':1,'title':'x','tags':{}}");
        /* it is held against the whole, not against what is laid over it */
        job = merged("a", "{'tags':nil}");
        job.schema = schema;
        store_must(job);
        job = merged("a", "{'title':nil}");
        job.schema = schema;
        ck_assert_str_eq(store_refused(job, "contract"), "c: entity lacks the member \"title\"");
        job = store_write("a", "{'title':1}", TR_STORE_ANY);
        job.schema = schema;
        job = store_do(job);
        const char *text;
        size_t len;
        ck_assert(tr_failure_find_text(job.failure, "subject", &text, &len) && len == 6 && memcmp(text, "entity", 6) == 0);
        ck_assert(tr_failure_find_text(job.failure, "path", &text, &len) && len == 6 && memcmp(text, "/title", 6) == 0);
        tr_store_job_deinit(&job);
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'title':'x'}");
        tr_schema_unref(schema);
}
END_TEST

START_TEST(a_document_goes) {
        struct tr_store_job delete = { .kind = TR_STORE_DELETE, .component = "c", .id = "a", .expect = TR_STORE_ANY };
        struct tr_store_job job = store_must(delete);
        ck_assert_str_eq(store_shown(&job), "false");
        store_must(store_write("a", "{}", TR_STORE_ANY));
        delete.expect = 2;
        store_refused(delete, "conflict");
        delete.expect = 1;
        job = store_must(delete);
        ck_assert_str_eq(store_shown(&job), "true");
        ck_assert_str_eq(store_read("a"), "nil");
        delete.component = "other";
        delete.expect = TR_STORE_ANY;
        job = store_must(delete);
        ck_assert_str_eq(store_shown(&job), "false");
}
END_TEST

START_TEST(what_somebody_broke_is_told) {
        store_must(store_write("a", "{}", TR_STORE_ANY));
        store_sql("UPDATE entities SET body = '[1]'");
        struct tr_store_job get = { .kind = TR_STORE_GET, .component = "c", .id = "a" };
        ck_assert_str_eq(store_refused(get, "store"), "what the store has of the entity a of c is no JSON object");
        store_sql("UPDATE entities SET body = 'x'");
        store_refused(get, "store");
        store_refused(merged("a", "{'x':1}"), "store");
        store_must(store_write("a", "{'x':1}", TR_STORE_ANY));
        ck_assert_str_eq(store_read("a"), "{'id':'a','version':2,'x':1}");
}
END_TEST

START_TEST(ids_are_of_text_that_can_be_shown) {
        char text[TR_STORE_TEXT_MAX + 1];
        memset(text, 'x', sizeof(text));
        ck_assert(tr_store_text_is_valid(text, TR_STORE_TEXT_MAX));
        ck_assert(!tr_store_text_is_valid(text, TR_STORE_TEXT_MAX + 1));
        ck_assert(tr_store_text_is_valid("caf\xc3\xa9 / 7", 9));
        ck_assert(!tr_store_text_is_valid("", 0));
        ck_assert(!tr_store_text_is_valid("a\nb", 3));
        ck_assert(!tr_store_text_is_valid("a\0b", 3));
        ck_assert(!tr_store_text_is_valid("\xc2\x85", 2));
        ck_assert(!tr_store_text_is_valid("\xff", 1));
}
END_TEST

/* Lists */

static const char *listed(const char *where, const char *sort, const char *after, uint64_t limit) {
        struct tr_store_job job = { .kind = TR_STORE_LIST, .component = "c", .list = { .sort = sort, .after = after, .limit = limit } };
        if (where) {
                struct tr_writer value = store_value(where);
                job.list.where = value.data;
                job.list.where_bytes = value.len;
        }
        job = store_must(job);
        return store_shown(&job);
}

static const char *list_refused(const char *where, const char *sort, const char *after, const char *code) {
        struct tr_store_job job = { .kind = TR_STORE_LIST, .component = "c", .list = { .sort = sort, .after = after } };
        if (where) {
                struct tr_writer value = store_value(where);
                job.list.where = value.data;
                job.list.where_bytes = value.len;
        }
        return store_refused(job, code);
}

#define A "{'id':'a','version':1,'n':2,'on':true}"
#define B "{'id':'b','version':1,'n':10,'title':'x'}"
#define C "{'id':'c','version':1,'n':'10'}"
#define D "{'id':'d','version':1,'deep':{'n':2},'title':'x'}"

static void write_some(void) {
        store_must(store_write("b", "{'n':10,'title':'x'}", 0));
        store_must(store_write("d", "{'title':'x','deep':{'n':2}}", 0));
        store_must(store_write("a", "{'n':2,'on':true}", 0));
        store_must(store_write("c", "{'n':'10'}", 0));
        struct tr_store_job other = store_write("a", "{'n':2}", 0);
        other.component = "other";
        store_must(other);
}

START_TEST(a_list_is_of_one_component_and_ordered) {
        ck_assert_str_eq(listed(NULL, NULL, NULL, 0), "[]");
        write_some();
        ck_assert_str_eq(listed(NULL, NULL, NULL, 0), "[" A "," B "," C "," D "]");
        ck_assert_str_eq(listed(NULL, NULL, NULL, 2), "[" A "," B "]");
        ck_assert_str_eq(listed(NULL, NULL, "b", 0), "[" C "," D "]");
        ck_assert_str_eq(listed(NULL, NULL, "bb", 1), "[" C "]");
        ck_assert_str_eq(listed(NULL, "id", "c", 0), "[" D "]");
}
END_TEST

START_TEST(fields_are_compared) {
        write_some();
        ck_assert_str_eq(listed("{'n':10}", NULL, NULL, 0), "[" B "]");
        ck_assert_str_eq(listed("{'n':10.0}", NULL, NULL, 0), "[" B "]");
        ck_assert_str_eq(listed("{'n':'10'}", NULL, NULL, 0), "[" C "]");
        ck_assert_str_eq(listed("{'n':nil}", NULL, NULL, 0), "[" D "]");
        ck_assert_str_eq(listed("{'on':true}", NULL, NULL, 0), "[" A "]");
        ck_assert_str_eq(listed("{'on':1}", NULL, NULL, 0), "[]");
        ck_assert_str_eq(listed("{'on':false}", NULL, NULL, 0), "[]");
        ck_assert_str_eq(listed("{'title':'x','n':10}", NULL, NULL, 0), "[" B "]");
        ck_assert_str_eq(listed("{'title':'x'}", NULL, "b", 0), "[" D "]");
        ck_assert_str_eq(listed("{'id':'c'}", NULL, NULL, 0), "[" C "]");
        ck_assert_str_eq(listed("{'version':2}", NULL, NULL, 0), "[]");
        ck_assert_str_eq(listed("{'deep':'{\"n\":2}'}", NULL, NULL, 0), "[]");
        ck_assert_str_eq(listed("{'n) OR (1':1}", NULL, NULL, 0), "[]");
        ck_assert_str_eq(listed("{}", NULL, NULL, 1), "[" A "]");
}
END_TEST

START_TEST(a_field_sorts) {
        write_some();
        ck_assert_str_eq(listed(NULL, "n", NULL, 0), "[" D "," A "," B "," C "]");
        ck_assert_str_eq(listed(NULL, "n", "d", 0), "[" A "," B "," C "]");
        ck_assert_str_eq(listed(NULL, "n", "a", 1), "[" B "]");
        ck_assert_str_eq(listed(NULL, "n", "c", 0), "[]");
        /* ties go by the id */
        ck_assert_str_eq(listed(NULL, "title", NULL, 0), "[" A "," C "," B "," D "]");
        ck_assert_str_eq(listed(NULL, "title", "a", 0), "[" C "," B "," D "]");
        ck_assert_str_eq(listed(NULL, "title", "b", 0), "[" D "]");
        ck_assert_str_eq(listed(NULL, "version", "b", 0), "[" C "," D "]");
}
END_TEST

START_TEST(a_list_that_cannot_be_is_refused) {
        write_some();
        ck_assert_str_eq(list_refused("{'n':[1]}", NULL, NULL, "bad-request"), "a list of c: where n can be compared with text, numbers, booleans and nil");
        ck_assert_str_eq(list_refused("[1]", NULL, NULL, "bad-request"), "a list of c: where has to be a map of at most 32 fields");
        list_refused("{1:1}", NULL, NULL, "bad-request");
        ck_assert_str_eq(list_refused(NULL, "a\"b", NULL, "bad-request"),
                         "a list of c: sort a\"b has a quote, a backslash or a control character in its name");
        ck_assert_str_eq(list_refused(NULL, "n", "zz", "not-found"), "a list of c: there is no entity zz to come after");
        store_sql("UPDATE entities SET body = 'x' WHERE id = 'b'");
        list_refused(NULL, "n", NULL, "store");
        list_refused(NULL, NULL, NULL, "store");
        ck_assert_str_eq(listed(NULL, NULL, "b", 0), "[" C "," D "]");
}
END_TEST

START_TEST(a_list_has_a_bound) {
        enum { EACH = 9u << 20 };
        struct tr_writer value = TR_WRITER_INIT;
        char *text = malloc(EACH);
        ck_assert_ptr_nonnull(text);
        memset(text, 'x', EACH);
        tr_write_map(&value, 1);
        tr_write_text(&value, "text");
        tr_write_str(&value, text, EACH);
        for (int i = 0; i < 8; i++) {
                struct tr_store_job job = { .kind = TR_STORE_WRITE, .component = "c", .document = value.data, .document_bytes = value.len };
                job = store_do(job);
                ck_assert_ptr_null(job.failure);
                tr_store_job_deinit(&job);
        }
        struct tr_store_job list = { .kind = TR_STORE_LIST, .component = "c" };
        store_refused(list, "too-large");
        list.list.limit = 7;
        list = store_do(list);
        ck_assert_ptr_null(list.failure);
        tr_store_job_deinit(&list);
        tr_writer_deinit(&value);
        free(text);
}
END_TEST

/* The thread */

/* A job whose `done` holds the thread up until it is let go. */
struct gate {
        struct tr_store_job job;
        sem_t reached, open;
};

static void on_gate(struct tr_store_job *job) {
        struct gate *gate = job->userdata;
        tr_store_job_deinit(job);
        sem_post(&gate->reached);
        sem_wait(&gate->open);
}

static void gate_close(struct gate *gate) {
        *gate = (struct gate){ .job = { .kind = TR_STORE_GET, .component = "c", .id = "a", .done = on_gate } };
        gate->job.userdata = gate;
        sem_init(&gate->reached, 0, 0);
        sem_init(&gate->open, 0, 0);
        tr_store_submit(tr_sqlite_store_interface(store), &gate->job);
        sem_wait(&gate->reached);
}

/* How often something was committed: frames of the log that end a transaction. */
static unsigned commits(void) {
        char path[128];
        unsigned char head[32], frame[24 + 65536];
        unsigned count = 0;
        snprintf(path, sizeof(path), "%s-wal", store_path);
        FILE *wal = fopen(path, "rb");
        ck_assert_ptr_nonnull(wal);
        ck_assert_uint_eq(fread(head, sizeof(head), 1, wal), 1);
        size_t page = (size_t)head[8] << 24 | (size_t)head[9] << 16 | (size_t)head[10] << 8 | head[11];
        while (fread(frame, 24 + page, 1, wal) == 1)
                count += frame[4] || frame[5] || frame[6] || frame[7];
        fclose(wal);
        return count;
}

struct gathered {
        struct tr_store_job job;
        char id[16];
        sem_t *done;
};

static void on_gathered(struct tr_store_job *job) {
        struct gathered *gathered = job->userdata;
        sem_post(gathered->done);
}

enum { MANY = 100, CONFLICT = 9 };

/* Writes "0", "1", ..., all of them new but that one. */
static void submit_many(struct gathered *all, sem_t *done) {
        struct tr_writer value = store_value("{'x':1}");
        for (int i = 0; i < MANY; i++) {
                struct gathered *one = &all[i];
                snprintf(one->id, sizeof(one->id), "%d", i);
                one->done = done;
                one->job = (struct tr_store_job){ .kind = TR_STORE_WRITE, .component = "c", .id = one->id, .document = value.data,
                                                  .document_bytes = value.len, .expect = i == CONFLICT ? 5 : 0, .done = on_gathered,
                                                  .userdata = one };
                tr_store_submit(tr_sqlite_store_interface(store), &one->job);
        }
}

START_TEST(what_waits_is_committed_together) {
        static struct gathered all[MANY];
        struct gate gate;
        sem_t done;
        sem_init(&done, 0, 0);
        store_must(store_write("first", "{}", 0));
        unsigned before = commits();
        gate_close(&gate);
        submit_many(all, &done);
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities"), 1);
        sem_post(&gate.open);
        for (int i = 0; i < MANY; i++)
                sem_wait(&done);
        ck_assert_uint_eq(commits(), before + 1);
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities"), MANY);
        for (int i = 0; i < MANY; i++)
                tr_store_job_deinit(&all[i].job);
}
END_TEST

/* Reads and writes in a row, each told when it is done: a number for each, in the order in which they were. */
static int64_t seen_versions[8];
static unsigned seen_count;

static void on_seen(struct tr_store_job *job) {
        sem_t *last = job->userdata;
        seen_versions[seen_count++] = (int64_t)job->version;
        tr_store_job_deinit(job);
        if (last)
                sem_post(last);
}

START_TEST(a_read_sees_what_was_submitted_before_it) {
        struct tr_writer one = store_value("{'x':1}"), two = store_value("{'x':2}");
        struct tr_store_job read = { .kind = TR_STORE_GET, .component = "c", .id = "a", .done = on_seen };
        struct tr_store_job write = { .kind = TR_STORE_WRITE, .component = "c", .id = "a", .document = one.data, .document_bytes = one.len,
                                      .expect = TR_STORE_ANY, .done = on_seen };
        struct tr_store_job jobs[4] = { read, write, write, read };
        struct gate gate;
        sem_t done;
        sem_init(&done, 0, 0);
        jobs[2].document = two.data;
        jobs[2].document_bytes = two.len;
        jobs[3].userdata = &done;
        seen_count = 0;
        gate_close(&gate);
        for (int i = 0; i < 4; i++)
                tr_store_submit(tr_sqlite_store_interface(store), &jobs[i]);
        sem_post(&gate.open);
        sem_wait(&done);
        ck_assert_uint_eq(seen_count, 4);
        for (int i = 0; i < 4; i++) {
                static const int64_t expected[] = { 0, 1, 2, 2 };
                ck_assert_int_eq(seen_versions[i], expected[i]);
        }
}
END_TEST

START_TEST(what_cannot_be_done_fails_alone) {
        static struct gathered all[MANY];
        struct gate gate;
        sem_t done;
        sem_init(&done, 0, 0);
        store_sql("CREATE TRIGGER no BEFORE INSERT ON entities WHEN new.id IN ('7', '70') BEGIN SELECT raise(ROLLBACK, 'not this one'); END");
        gate_close(&gate);
        submit_many(all, &done);
        sem_post(&gate.open);
        for (int i = 0; i < MANY; i++)
                sem_wait(&done);
        for (int i = 0; i < MANY; i++) {
                const struct tr_failure *failure = all[i].job.failure;
                if (i == 7 || i == 70) {
                        ck_assert_ptr_nonnull(failure);
                        ck_assert_int_eq(failure->code, TR_CODE_STORE);
                        ck_assert_str_eq(failure->message, "the store failed: not this one");
                } else if (i == CONFLICT) {
                        ck_assert_ptr_nonnull(failure);
                        ck_assert_int_eq(failure->code, TR_CODE_CONFLICT);
                } else {
                        ck_assert_ptr_null(failure);
                        ck_assert_uint_eq(all[i].job.version, 1);
                }
                tr_store_job_deinit(&all[i].job);
        }
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities"), MANY - 3);
}
END_TEST

START_TEST(what_was_submitted_is_done_before_the_end) {
        static struct gathered all[MANY];
        struct gate gate;
        sem_t done;
        int ended;
        sem_init(&done, 0, 0);
        gate_close(&gate);
        submit_many(all, &done);
        sem_post(&gate.open);
        tr_sqlite_store_close(store);
        sem_getvalue(&done, &ended);
        ck_assert_int_eq(ended, MANY);
        for (int i = 0; i < MANY; i++) {
                ck_assert(i == CONFLICT || !all[i].job.failure);
                tr_store_job_deinit(&all[i].job);
        }
        ck_assert_int_eq(store_number("SELECT count(*) FROM entities"), MANY - 1);
        store_refused(store_write("a", "{}", TR_STORE_ANY), "shutting-down");
        tr_sqlite_store_close(store);
}
END_TEST

/* Many threads write one document, each where it knows its version: no change is lost. */
enum { WRITERS = 4, ROUNDS = 50 };

static void *increment(void *userdata) {
        for (int i = 0; i < ROUNDS;) {
                struct tr_store_job get = store_do((struct tr_store_job){ .kind = TR_STORE_GET, .component = "c", .id = "n" });
                struct tr_writer value = TR_WRITER_INIT;
                tr_write_map(&value, 1);
                tr_write_text(&value, "n");
                tr_write_uint(&value, get.version + 1);
                struct tr_store_job put = store_do((struct tr_store_job){ .kind = TR_STORE_WRITE, .component = "c", .id = "n", .document = value.data,
                                                                          .document_bytes = value.len, .expect = get.version });
                i += put.failure == NULL;
                tr_store_job_deinit(&get);
                tr_store_job_deinit(&put);
                tr_writer_deinit(&value);
        }
        return userdata;
}

START_TEST(no_change_is_lost) {
        pthread_t threads[WRITERS];
        for (int i = 0; i < WRITERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, increment, NULL), 0);
        for (int i = 0; i < WRITERS; i++)
                pthread_join(threads[i], NULL);
        ck_assert_str_eq(store_read("n"), "{'id':'n','version':200,'n':200}");
}
END_TEST

suite_main_with("store", store_setup, store_teardown, a_document_comes_back_as_it_went, an_id_is_made_where_none_is_given, a_version_counts_changes,
                a_version_that_is_expected_has_to_be_there, changes_are_merged, fields_of_the_store_s_own_are_not_written,
                what_is_no_json_is_refused, the_schema_is_of_what_is_there_then, a_document_goes, what_somebody_broke_is_told,
                ids_are_of_text_that_can_be_shown, a_list_is_of_one_component_and_ordered, fields_are_compared, a_field_sorts,
                a_list_that_cannot_be_is_refused, a_list_has_a_bound, what_waits_is_committed_together,
                a_read_sees_what_was_submitted_before_it, what_cannot_be_done_fails_alone, what_was_submitted_is_done_before_the_end,
                no_change_is_lost);
