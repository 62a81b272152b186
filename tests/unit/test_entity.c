/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entities of calls: what is read before one is delivered, what is written when it was answered, and what comes between. Replicas keep
 * what is posted until the test answers it; the store does its jobs when the test says so.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/context.h"
#include "daemon/core/entity.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/fake_store.h"
#include "tests/unit/notation.h"
#include "tests/unit/suite.h"

#define POSTED_MAX 64
#define MANY 30000
#define ALL_THAT_WAIT 65000

struct server {
        struct tr_target target;
        struct tr_replica *replica;
        bool closed; /* to posts */
        struct tr_message *posted[POSTED_MAX]; /* each a reference */
        size_t count;
        int retired;
};

static struct fake_system fake;
static struct fake_store store;
static struct fake_asker asker;
static struct tr_component *component;
static struct server *left, *right;

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct server *server = (struct server *)target;
        struct tr_message *message;
        if (server->closed)
                return TR_POST_CLOSED;
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
        ((struct server *)replica->userdata)->retired++;
        tr_replica_died(replica);
}

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static const struct tr_replica_ops replica_ops = { .retired = on_retired, .stop = on_stop, .kill = tr_replica_died };

static struct server *serve_as(struct tr_replica_options options) {
        struct server *server = calloc(1, sizeof(*server));
        ck_assert_ptr_nonnull(server);
        ck_assert_int_eq(tr_target_init(&server->target, &server_ops, fake.system, 0, "server", ""), 0);
        options.ops = &replica_ops;
        options.userdata = server;
        options.kind = "connection";
        ck_assert_ptr_null(tr_replica_join(component, &options, &server->target, &server->replica));
        tr_replica_hold(server->replica);
        return server;
}

static struct server *serve(const char *instance, uint32_t concurrency) {
        return serve_as((struct tr_replica_options){ .instance = instance, .concurrency = concurrency });
}

static void server_drop(struct server *server) {
        for (size_t i = 0; i < server->count; i++)
                tr_message_unref(server->posted[i]);
        tr_replica_unref(server->replica);
        tr_target_unref(&server->target);
}

/* It is gone: what it has is rejected by its target, and it says that it died. */
static void die(struct server *server) {
        server->closed = true;
        for (size_t i = 0; i < server->count; i++) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_STOPPED, "it is gone");
                tr_message_reject(server->posted[i], failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
        }
        tr_replica_died(server->replica);
}

/* Calling */

static struct tr_message *message_new(uint64_t id, const char *operation) {
        struct tr_message *message = fake_message(&asker, id, operation, 1);
        message->form = TR_FORM_TYPED;
        return message;
}

static struct tr_failure *try_call(struct tr_message *message, struct tr_call_options options) {
        options.id_len = options.id ? strlen(options.id) : 0;
        options.sort_len = options.sort ? strlen(options.sort) : 0;
        options.after_len = options.after ? strlen(options.after) : 0;
        options.instance_len = options.instance ? strlen(options.instance) : 0;
        options.trace_len = options.trace ? strlen(options.trace) : 0;
        struct tr_failure *failure = tr_component_call(component, message, &options);
        if (failure)
                tr_message_unref(message);
        return failure;
}

static void call(uint64_t number, const char *operation, const char *id) {
        ck_assert_ptr_null(try_call(message_new(number, operation), (struct tr_call_options){ .id = id }));
}

/* The same, and the message is kept to be taken back. */
static struct tr_message *call_kept(uint64_t number, const char *operation, const char *id) {
        struct tr_message *message = tr_message_ref(message_new(number, operation));
        ck_assert_ptr_null(try_call(message, (struct tr_call_options){ .id = id }));
        return message;
}

static void take_back(struct tr_message *message) {
        bool begun;
        ck_assert(tr_message_settle(message, &begun));
        tr_invocation_given_up(message);
        tr_message_unref(message);
}

static void is_refused(struct tr_failure *failure, enum tr_code code) {
        ck_assert_ptr_nonnull(failure);
        ck_assert_str_eq(tr_code_text(failure->code), tr_code_text(code));
        tr_failure_unref(failure);
}

/* What a server has got, and what it answers */

static struct tr_call_context context_of(const struct server *server, size_t n) {
        struct tr_call_context context;
        ck_assert_uint_gt(server->count, n);
        tr_delivery_context(server->posted[n], &context);
        return context;
}

static void gets(const struct server *server, size_t n, const char *expected) {
        struct tr_call_context context = context_of(server, n);
        if (!expected) {
                ck_assert_ptr_null(context.entity);
                return;
        }
        ck_assert_ptr_nonnull(context.entity);
        struct tr_reader reader = tr_reader(context.entity, context.entity_bytes);
        char *text = notation_read(&reader);
        ck_assert_str_eq(text, expected);
        ck_assert_ptr_eq(reader.at, reader.end);
        free(text);
}

static void answer(struct server *server, size_t n, const char *text) {
        struct tr_writer writer = TR_WRITER_INIT;
        notation_write(&writer, text);
        ck_assert_uint_gt(server->count, n);
        if (tr_message_state(server->posted[n]) == TR_MESSAGE_QUEUED)
                ck_assert(tr_message_begin(server->posted[n]));
        ck_assert(tr_message_resolve(server->posted[n], writer.data, writer.len, false));
        tr_writer_deinit(&writer);
}

static void run(void) {
        fake_store_run(&store);
}

/* Outcomes */

static void is_answer(size_t at, uint64_t id, const char *expected) {
        ck_assert_uint_gt(asker.count, at);
        ck_assert_uint_eq(asker.outcomes[at].id, id);
        ck_assert_msg(asker.outcomes[at].resolved, "%s", tr_code_text(asker.outcomes[at].code));
        struct tr_reader reader = tr_reader(asker.outcomes[at].value, asker.outcomes[at].bytes);
        char *text = notation_read(&reader);
        ck_assert_str_eq(text, expected);
        free(text);
}

static void is_failure(size_t at, uint64_t id, enum tr_code code, enum tr_ran ran) {
        ck_assert_uint_gt(asker.count, at);
        ck_assert_uint_eq(asker.outcomes[at].id, id);
        ck_assert(!asker.outcomes[at].resolved);
        ck_assert_str_eq(tr_code_text(asker.outcomes[at].code), tr_code_text(code));
        ck_assert_int_eq(asker.outcomes[at].ran, ran);
}

static void has(const char *id, const char *expected) {
        char *text = fake_store_fields(&store, id);
        if (expected) {
                ck_assert_ptr_nonnull(text);
                ck_assert_str_eq(text, expected);
        } else {
                ck_assert_ptr_null(text);
        }
        free(text);
}

static uint32_t in_hand(const struct server *server) {
        tr_lock_acquire(&component->lock);
        uint32_t count = server->replica->in_hand_count;
        tr_lock_release(&component->lock);
        return count;
}

static uint32_t waiting(void) {
        tr_lock_acquire(&component->lock);
        uint32_t count = component->waiting;
        tr_lock_release(&component->lock);
        return count;
}

/* Before and after */

static struct tr_manifest *manifest_read(const char *text) {
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(json);
        int r = tr_manifest_read(json, "/", &problem, &manifest);
        ck_assert_msg(r == 0, "%s %s", problem.path, problem.reason);
        json_decref(json);
        return manifest;
}

#define MANIFEST(more)                                                                                                       \
        "{\"name\": \"shelf\", \"deliveries\": 2, \"entity\": {\"properties\": {\"n\": {\"type\": \"integer\"}}}, \"operations\": {" \
        "\"look\": {\"type\": \"observation\"}, \"list\": {\"type\": \"observation\", \"scope\": \"entries\"},"                  \
        "\"change\": {\"type\": \"transition\", \"output\": {\"type\": \"integer\"}, \"errors\": [\"NO\"]},"                     \
        "\"make\": {\"type\": \"assignment\"}, \"act\": {},"                                                                   \
        "\"own\": {\"type\": \"transition\", \"stateful\": true}" more "}}"

static void setup(void) {
        struct tr_manifest *manifest = manifest_read(MANIFEST(""));
        fake_system_init(&fake, 64);
        fake_store_init(&store);
        fake.system->store = &store.store;
        fake_asker_init(&asker);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
        left = right = NULL;
}

static void teardown(void) {
        struct tr_target *target = &component->target;
        run();
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        if (left)
                die(left);
        if (right)
                die(right);
        run();
        ck_assert(tr_target_has_ended(target));
        if (left)
                server_drop(left);
        if (right)
                server_drop(right);
        tr_component_unref(component);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
        fake_store_deinit(&store);
}

/* Observations */

START_TEST(an_observation_gets_what_it_names) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        call(1, "look", "a");
        ck_assert_uint_eq(left->count, 0);
        ck_assert_uint_eq(in_hand(left), 1);
        run();
        gets(left, 0, "{'id':'a','version':1,'created':1,'updated':2,'n':1}");
        ck_assert_str_eq(context_of(left, 0).id, "a");
        answer(left, 0, "7");
        is_answer(0, 1, "7");
        call(2, "look", "b");
        run();
        gets(left, 1, "nil");
        answer(left, 1, "8");
        ck_assert_uint_eq(store.writes, 0);
}
END_TEST

START_TEST(one_that_names_none_gets_nil_and_asks_nobody) {
        left = serve("left", 8);
        call(1, "look", NULL);
        gets(left, 0, "nil");
        answer(left, 0, "7");
        is_answer(0, 1, "7");
        call(2, "act", "a");
        gets(left, 1, NULL);
        answer(left, 1, "[7,{'n':1}]");
        is_answer(1, 2, "[7,{'n':1}]");
        ck_assert_uint_eq(store.submitted, 0);
}
END_TEST

START_TEST(entries_are_listed_as_is_asked) {
        uint8_t where[] = { 0x81, 0xa1, 'n', 0x01 };
        left = serve("left", 8);
        fake_store_put(&store, "a", "{}");
        fake_store_put(&store, "b", "{}");
        ck_assert_ptr_null(try_call(message_new(1, "list"), (struct tr_call_options){
                .where = where, .where_bytes = sizeof(where), .sort = "n", .limit = 9, .after = "a",
        }));
        memset(where, 0xc1, sizeof(where)); /* it has its own */
        run();
        gets(left, 0, "[{'id':'a','version':1,'created':1,'updated':2},{'id':'b','version':1,'created':1,'updated':2}]");
        ck_assert_uint_eq(store.list.where_bytes, 4);
        ck_assert_uint_eq(store.list.where[0], 0x81);
        ck_assert_str_eq(store.list.sort, "n");
        ck_assert_str_eq(store.list.after, "a");
        ck_assert_uint_eq(store.list.limit, 9);
        answer(left, 0, "7");
        call(2, "list", NULL);
        run();
        ck_assert_ptr_null(store.list.where);
        ck_assert_ptr_null(store.list.sort);
        ck_assert_ptr_null(store.list.after);
        answer(left, 1, "7");
}
END_TEST

START_TEST(the_context_says_what_it_was_called_for) {
        struct tr_writer written = TR_WRITER_INIT;
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1,'text':'long enough to take more than what is left beside it, which is "
                                    "some, so that it has to be counted: that much and more, and then a little more still'}");
        call(1, "look", "a");
        run();
        struct tr_call_context context = context_of(left, 0);
        tr_call_context_write(&context, &written);
        ck_assert_uint_le(written.len, tr_delivery_context_bytes_max(left->posted[0]));
        struct tr_reader reader = tr_reader(written.data, written.len);
        struct tr_token head, key;
        ck_assert_int_eq(tr_read(&reader, &head), 0);
        ck_assert_uint_eq(head.count, 7);
        bool found = false;
        for (uint32_t i = 0; i < head.count; i++) {
                ck_assert_int_eq(tr_read(&reader, &key), 0);
                if (tr_token_equals(&key, "entity")) {
                        found = true;
                        ck_assert_mem_eq(reader.at, context.entity, context.entity_bytes);
                }
                ck_assert_int_eq(tr_read_skip(&reader), 0);
        }
        ck_assert(found);
        ck_assert_ptr_eq(reader.at, reader.end);
        tr_writer_deinit(&written);
        answer(left, 0, "7");
}
END_TEST

START_TEST(what_cannot_be_asked_for_is_refused) {
        char longest[TR_STORE_TEXT_MAX + 2];
        static const uint8_t where[] = { 0x80 };
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        is_refused(try_call(message_new(1, "look"), (struct tr_call_options){ .id = "" }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "look"), (struct tr_call_options){ .id = "a\n" }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "act"), (struct tr_call_options){ .id = "\xff" }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "change"), (struct tr_call_options){ .id = longest }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "list"), (struct tr_call_options){ .after = longest }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "look"), (struct tr_call_options){ .after = "a" }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "look"), (struct tr_call_options){ .limit = 1 }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "change"), (struct tr_call_options){ .sort = "n" }), TR_CODE_BAD_REQUEST);
        is_refused(try_call(message_new(1, "act"), (struct tr_call_options){ .where = where, .where_bytes = 1 }), TR_CODE_BAD_REQUEST);
        longest[TR_STORE_TEXT_MAX] = '\0';
        call(2, "look", longest);
        left = serve("left", 1);
        run();
        answer(left, 0, "7");
        is_answer(0, 2, "7");
}
END_TEST

START_TEST(without_a_store_what_needs_one_is_refused) {
        fake.system->store = NULL;
        fake.system->store_why = "it is somebody else's";
        struct tr_failure *failure = try_call(message_new(1, "change"), (struct tr_call_options){ 0 });
        ck_assert_ptr_nonnull(failure);
        ck_assert_ptr_nonnull(strstr(failure->message, "it is somebody else's"));
        is_refused(failure, TR_CODE_STORE);
        is_refused(try_call(message_new(1, "change"), (struct tr_call_options){ .id = "a" }), TR_CODE_STORE);
        is_refused(try_call(message_new(1, "make"), (struct tr_call_options){ 0 }), TR_CODE_STORE);
        is_refused(try_call(message_new(1, "look"), (struct tr_call_options){ .id = "a" }), TR_CODE_STORE);
        is_refused(try_call(message_new(1, "list"), (struct tr_call_options){ 0 }), TR_CODE_STORE);
        left = serve("left", 8);
        call(1, "look", NULL);
        call(2, "act", "a");
        answer(left, 0, "7");
        answer(left, 1, "8");
        is_answer(0, 1, "7");
        is_answer(1, 2, "8");
}
END_TEST

/* Transitions */

START_TEST(a_transition_changes_what_is_there) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1,'old':'x','kept':true}");
        call(1, "change", "a");
        run();
        gets(left, 0, "{'id':'a','version':1,'created':1,'updated':2,'n':1,'old':'x','kept':true}");
        answer(left, 0, "[7,{'n':2,'old':nil,'new':[],'version':9}]");
        ck_assert_uint_eq(asker.count, 0); /* not before it is on disk */
        ck_assert_uint_eq(in_hand(left), 0);
        run();
        is_answer(0, 1, "7");
        has("a", "{'kept':true,'n':2,'new':[]}");
        ck_assert_uint_eq(fake_store_version(&store, "a"), 2);
}
END_TEST

START_TEST(who_answers_whole_entities_replaces_it) {
        left = serve_as((struct tr_replica_options){ .instance = "left", .concurrency = 8, .whole_entities = true });
        fake_store_put(&store, "a", "{'n':1,'old':'x'}");
        call(1, "change", "a");
        run();
        answer(left, 0, "[7,{'id':'a','version':1,'created':1,'updated':2,'n':2,'none':nil}]");
        run();
        has("a", "{'n':2,'none':nil}");
        call(2, "change", "a");
        run();
        answer(left, 1, "[7,[]]"); /* as Lua writes a table without anything in it */
        run();
        has("a", "{}");
        call(3, "make", "a");
        answer(left, 2, "[7,{'n':5}]");
        run();
        call(4, "make", "a"); /* an assignment's are merged, whoever answers */
        answer(left, 3, "[7,{'m':6}]");
        run();
        has("a", "{'n':5,'m':6}");
}
END_TEST

START_TEST(one_that_changes_nothing_writes_nothing) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        static const char *const answers[] = { "[7,nil]", "[7,{}]", "[7,[]]" };
        for (size_t i = 0; i < 3; i++) {
                call(i, "change", "a");
                run();
                answer(left, i, answers[i]);
                is_answer(i, i, "7");
        }
        call(3, "make", "b");
        answer(left, 3, "[8,nil]");
        is_answer(3, 3, "8");
        run();
        ck_assert_uint_eq(store.writes, 0);
        has("b", NULL);
}
END_TEST

START_TEST(a_new_one_has_an_id_and_is_there_in_any_case) {
        char id[2][TR_STORE_ID_LEN + 1], expected[96];
        left = serve("left", 8);
        call(1, "change", NULL);
        call(2, "change", NULL);
        ck_assert_uint_eq(left->count, 2); /* there is nothing to be read */
        for (size_t i = 0; i < 2; i++) {
                ck_assert_uint_eq(strlen(context_of(left, i).id), TR_STORE_ID_LEN);
                memcpy(id[i], context_of(left, i).id, sizeof(id[i]));
                snprintf(expected, sizeof(expected), "{'id':'%s'}", id[i]);
                gets(left, i, expected);
        }
        ck_assert_str_ne(id[0], id[1]);
        answer(left, 0, "[7,{'n':1,'gone':nil}]");
        answer(left, 1, "[8,nil]");
        run();
        is_answer(0, 1, "7");
        is_answer(1, 2, "8");
        has(id[0], "{'n':1}");
        has(id[1], "{}");
        ck_assert_uint_eq(fake_store_version(&store, id[1]), 1);
}
END_TEST

START_TEST(an_assignment_reads_nothing) {
        char id[TR_STORE_ID_LEN + 1];
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1,'kept':true}");
        call(1, "make", "a");
        call(2, "make", NULL);
        call(3, "make", "b");
        ck_assert_uint_eq(store.submitted, 0);
        for (size_t i = 0; i < 3; i++)
                gets(left, i, NULL);
        ck_assert_str_eq(context_of(left, 0).id, "a");
        memcpy(id, context_of(left, 1).id, sizeof(id));
        answer(left, 0, "[7,{'n':2}]");
        answer(left, 1, "[8,[]]");
        answer(left, 2, "[9,{'n':3}]");
        run();
        is_answer(2, 3, "9");
        has("a", "{'kept':true,'n':2}");
        has(id, "{}");
        has("b", "{'n':3}");
}
END_TEST

START_TEST(an_entity_that_is_not_there_is_nil_and_cannot_be_changed) {
        left = serve("left", 8);
        call(1, "change", "a");
        run();
        gets(left, 0, "nil");
        answer(left, 0, "[7,nil]");
        is_answer(0, 1, "7");
        call(2, "change", "a");
        run();
        answer(left, 1, "[7,{'n':1}]");
        is_failure(1, 2, TR_CODE_CONTRACT, TR_RAN_YES);
        has("a", NULL);
}
END_TEST

START_TEST(what_is_no_answer_with_changes_is_against_the_contract) {
        static const char *const answers[] = { "7", "nil", "[]", "[7]", "[7,{'n':2},0]", "{'n':2}", "[7,7]", "[7,'n']", "[7,[1]]", "[7,false]" };
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
                call(i, "change", "a");
                run();
                answer(left, i, answers[i]);
                is_failure(i, i, TR_CODE_CONTRACT, TR_RAN_YES);
        }
        run();
        ck_assert_uint_eq(store.writes, 0);
        ck_assert_uint_eq(fake_store_version(&store, "a"), 1);
}
END_TEST

START_TEST(an_output_against_the_contract_changes_nothing) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        call(1, "change", "a");
        call(2, "change", NULL);
        run();
        answer(left, 0, "['text',{'n':2}]");
        answer(left, 1, "['text',{'n':2}]");
        run();
        is_failure(0, 2, TR_CODE_CONTRACT, TR_RAN_YES); /* for which nothing was to be read */
        is_failure(1, 1, TR_CODE_CONTRACT, TR_RAN_YES);
        ck_assert_uint_eq(store.writes, 0);
        ck_assert_uint_eq(store.count, 1);
}
END_TEST

START_TEST(an_entity_against_the_contract_is_not_stored) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        call(1, "change", "a");
        run();
        answer(left, 0, "[7,{'n':'text'}]");
        run();
        is_failure(0, 1, TR_CODE_CONTRACT, TR_RAN_YES);
        has("a", "{'n':1}");
}
END_TEST

START_TEST(one_that_fails_changes_nothing) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':1}");
        call(1, "change", "a");
        call(2, "change", "a");
        run();
        ck_assert(tr_message_begin(left->posted[0]));
        struct tr_failure *failure = tr_failure_new(TR_CODE_FAULT, "it raised");
        ck_assert(tr_message_reject(left->posted[0], failure, TR_RAN_YES));
        tr_failure_unref(failure);
        is_failure(0, 1, TR_CODE_FAULT, TR_RAN_YES);
        run(); /* the next one's turn has come */
        gets(left, 1, "{'id':'a','version':1,'created':1,'updated':2,'n':1}");
        answer(left, 1, "[7,nil]");
        is_answer(1, 2, "7");
}
END_TEST

START_TEST(an_answer_in_the_plain_form_is_made_before_anything_is_written) {
        left = serve("left", 8);
        struct tr_message *message = message_new(1, "make");
        message->form = TR_FORM_PLAIN;
        ck_assert_ptr_null(try_call(message, (struct tr_call_options){ .id = "a" }));
        answer(left, 0, "[{1:'x','1':'y'},{'n':1}]");
        is_failure(0, 1, TR_CODE_NOT_SENDABLE, TR_RAN_YES);
        message = message_new(2, "make");
        message->form = TR_FORM_PLAIN;
        ck_assert_ptr_null(try_call(message, (struct tr_call_options){ .id = "a" }));
        answer(left, 1, "[{1:2},{'n':1}]");
        run();
        is_answer(1, 2, "{'1':2}");
        ck_assert_uint_eq(store.writes, 1);
}
END_TEST

/* Conflicts */

START_TEST(a_conflict_is_run_again_with_what_is_there_then) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':1}");
        call(1, "change", "a");
        call(2, "act", NULL);
        call(3, "act", NULL);
        run();
        fake_store_put(&store, "a", "{'n':5}");
        answer(left, 0, "[7,{'n':2}]");
        ck_assert_uint_eq(left->count, 2); /* its slot is free while it is written */
        run();
        ck_assert_uint_eq(waiting(), 2);
        answer(left, 1, "0");
        run(); /* and it is first in the line */
        ck_assert_uint_eq(left->count, 3);
        gets(left, 2, "{'id':'a','version':2,'created':1,'updated':2,'n':5}");
        ck_assert_uint_eq(context_of(left, 2).attempt, 2);
        answer(left, 2, "[8,{'n':6}]");
        run();
        answer(left, 3, "0");
        is_answer(1, 1, "8");
        has("a", "{'n':6}");
}
END_TEST

START_TEST(it_is_run_so_often_and_no_more) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        for (size_t i = 0; i < TR_ENTITY_RUNS_MAX; i++) {
                run();
                ck_assert_uint_eq(asker.count, 0);
                ck_assert_uint_eq(context_of(left, i).attempt, i + 1);
                fake_store_put(&store, "a", "{'n':0}");
                answer(left, i, "[7,{'n':2}]");
        }
        run();
        is_failure(0, 1, TR_CODE_CONFLICT, TR_RAN_YES);
        ck_assert_uint_eq(left->count, TR_ENTITY_RUNS_MAX);
        has("a", "{'n':0}");
}
END_TEST

START_TEST(conflicts_are_no_deaths) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        for (size_t i = 0; i < 3; i++) {
                run();
                fake_store_put(&store, "a", "{'n':0}");
                answer(left, i, "[7,{'n':2}]");
        }
        run();
        ck_assert(tr_message_begin(left->posted[3]));
        right = serve("right", 1);
        die(left); /* the first of two */
        ck_assert_uint_eq(asker.count, 0);
        run();
        ck_assert_uint_eq(context_of(right, 0).attempt, 5);
        ck_assert(tr_message_begin(right->posted[0]));
        die(right);
        is_failure(0, 1, TR_CODE_UNDELIVERABLE, TR_RAN_MAYBE);
}
END_TEST

START_TEST(an_addressed_one_is_run_again_by_who_is_named) {
        left = serve("left", 1);
        right = serve("right", 8);
        fake_store_put(&store, "a", "{'n':0}");
        ck_assert_ptr_null(try_call(message_new(1, "own"), (struct tr_call_options){ .id = "a", .instance = "left" }));
        run();
        fake_store_put(&store, "a", "{'n':1}");
        answer(left, 0, "[7,{'n':2}]");
        run();
        gets(left, 1, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        fake_store_put(&store, "a", "{'n':1}");
        answer(left, 1, "[7,{'n':2}]");
        die(left);
        run();
        is_failure(0, 1, TR_CODE_ABANDONED, TR_RAN_MAYBE);
}
END_TEST

/* What happens meanwhile */

START_TEST(what_is_settled_while_it_is_read_is_not_delivered) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        struct tr_message *message = call_kept(1, "change", "a");
        call(2, "act", NULL);
        ck_assert_uint_eq(in_hand(left), 1);
        take_back(message);
        ck_assert_uint_eq(left->count, 0);
        run();
        ck_assert_uint_eq(left->count, 1); /* the other */
        ck_assert_str_eq(tr_message_handler(left->posted[0]), "act");
        answer(left, 0, "7");
        ck_assert_uint_eq(in_hand(left), 0);
}
END_TEST

START_TEST(what_is_settled_while_it_runs_is_written_all_the_same) {
        left = serve("left", 2);
        fake_store_put(&store, "a", "{'n':0}");
        struct tr_message *message = call_kept(1, "change", "a");
        run();
        ck_assert(tr_message_begin(left->posted[0]));
        take_back(message);
        answer(left, 0, "[7,{'n':2}]");
        run();
        has("a", "{'n':2}");
        ck_assert_uint_eq(asker.count, 0);
        /* one that has not begun never runs */
        message = call_kept(2, "change", "a");
        run();
        take_back(message);
        ck_assert(!tr_message_begin(left->posted[1]));
        ck_assert_uint_eq(in_hand(left), 0);
}
END_TEST

START_TEST(what_is_settled_while_it_is_written_is_late) {
        left = serve("left", 2);
        fake_store_put(&store, "a", "{'n':0}");
        struct tr_message *message = call_kept(1, "change", "a");
        run();
        answer(left, 0, "[7,{'n':2}]");
        take_back(message);
        run();
        has("a", "{'n':2}");
        ck_assert_uint_eq(asker.count, 0);
        /* and is not run again */
        message = call_kept(2, "change", "a");
        run();
        fake_store_put(&store, "a", "{'n':9}");
        answer(left, 1, "[7,{'n':3}]");
        take_back(message);
        run();
        has("a", "{'n':9}");
        ck_assert_uint_eq(left->count, 2);
        ck_assert_uint_eq(waiting(), 0);
}
END_TEST

START_TEST(one_that_dies_while_it_is_read_is_not_the_one_who_gets_it) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        die(left);
        right = serve("right", 1);
        run();
        ck_assert_uint_eq(left->count, 0);
        ck_assert_uint_eq(context_of(right, 0).attempt, 1);
        answer(right, 0, "[7,{'n':1}]");
        run();
        is_answer(0, 1, "7");
}
END_TEST

START_TEST(another_reads_anew_where_one_has_died) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        call(2, "change", "a");
        run();
        ck_assert(tr_message_begin(left->posted[0]));
        fake_store_put(&store, "a", "{'n':1}");
        right = serve("right", 8);
        ck_assert_uint_eq(right->count, 0); /* it is not the turn of the second */
        die(left);
        run();
        ck_assert_uint_eq(right->count, 1);
        gets(right, 0, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        ck_assert_uint_eq(context_of(right, 0).attempt, 2);
        answer(right, 0, "[7,{'n':2}]");
        run();
        answer(right, 1, "[8,{'n':3}]");
        run();
        is_answer(0, 1, "7");
        is_answer(1, 2, "8");
        has("a", "{'n':3}");
}
END_TEST

START_TEST(one_that_retires_finishes_what_is_being_read_for_it) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        tr_replica_retire(left->replica);
        ck_assert_int_eq(left->retired, 0);
        run();
        answer(left, 0, "[7,{'n':1}]");
        ck_assert_int_eq(left->retired, 1);
        run();
        is_answer(0, 1, "7");
}
END_TEST

START_TEST(a_component_stops_behind_what_is_written) {
        struct tr_target *target = &component->target;
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        fake_store_put(&store, "a", "{'n':1}");
        answer(left, 0, "[7,{'n':2}]");
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        ck_assert_int_eq(left->retired, 0); /* it may have to be run again, and is */
        run();
        answer(left, 1, "[8,{'n':2}]");
        ck_assert_int_eq(left->retired, 1);
        ck_assert(!tr_target_has_ended(target));
        run();
        is_answer(0, 1, "8");
        ck_assert(tr_target_has_ended(target));
}
END_TEST

START_TEST(it_ends_behind_what_is_written) {
        struct tr_target *target = &component->target;
        left = serve("left", 1);
        call(1, "change", NULL);
        answer(left, 0, "[7,nil]");
        die(left);
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        ck_assert(!tr_target_has_ended(target));
        run();
        is_answer(0, 1, "7");
        ck_assert(tr_target_has_ended(target));
}
END_TEST

START_TEST(one_that_is_killed_does_not_wait_for_it) {
        struct tr_target *target = &component->target;
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        answer(left, 0, "[7,{'n':2}]");
        target->ops->kill(target);
        ck_assert(tr_target_has_ended(target));
        run();
        is_answer(0, 1, "7");
        has("a", "{'n':2}");
}
END_TEST

START_TEST(what_is_read_for_a_component_that_was_killed_is_not_delivered) {
        struct tr_target *target = &component->target;
        left = serve("left", 1);
        call(1, "look", "a");
        target->ops->kill(target);
        left->closed = true;
        run();
        is_failure(0, 1, TR_CODE_STOPPED, TR_RAN_NO);
}
END_TEST

/* A store that fails */

START_TEST(what_cannot_be_read_does_not_run) {
        left = serve("left", 1);
        call(1, "look", "a");
        store.fails = TR_CODE_STORE;
        run();
        is_failure(0, 1, TR_CODE_STORE, TR_RAN_NO);
        ck_assert_uint_eq(left->count, 0);
        ck_assert_uint_eq(in_hand(left), 0);
        call(2, "act", NULL);
        answer(left, 0, "7");
        is_answer(1, 2, "7");
}
END_TEST

START_TEST(what_cannot_be_written_has_run) {
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        answer(left, 0, "[7,{'n':2}]");
        store.fails = TR_CODE_STORE;
        run();
        is_failure(0, 1, TR_CODE_STORE, TR_RAN_YES);
        has("a", "{'n':0}");
}
END_TEST

START_TEST(a_store_that_takes_no_more_refuses_all_that_wait) {
        for (uint64_t i = 0; i < ALL_THAT_WAIT; i++)
                call(i, i % 2 ? "look" : "change", "a");
        store.closed = true;
        left = serve("left", 1); /* one behind the other, and not one inside the other */
        ck_assert_uint_eq(asker.count, ALL_THAT_WAIT);
        for (size_t i = 0; i < ALL_THAT_WAIT; i++)
                ck_assert_int_eq(asker.outcomes[i].code, TR_CODE_SHUTTING_DOWN);
        ck_assert_uint_eq(in_hand(left), 0);
        call(ALL_THAT_WAIT, "make", NULL);
        answer(left, 0, "[7,nil]");
        is_failure(ALL_THAT_WAIT, ALL_THAT_WAIT, TR_CODE_SHUTTING_DOWN, TR_RAN_YES);
}
END_TEST

/* Turns */

START_TEST(one_at_a_time_changes_an_entity) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        fake_store_put(&store, "b", "{'n':0}");
        for (uint64_t i = 0; i < 3; i++)
                call(i, "change", "a");
        call(3, "change", "b");
        call(4, "look", "a");
        call(5, "make", "a");
        call(6, "change", NULL);
        run();
        ck_assert_uint_eq(left->count, 5);
        ck_assert_uint_eq(waiting(), 2);
        static const char *const order[] = { "make", "change", "change", "change", "look" };
        for (size_t i = 0; i < 5; i++)
                ck_assert_str_eq(tr_message_handler(left->posted[i]), order[i]);
        size_t first = 0;
        while (!context_of(left, first).id || strcmp(context_of(left, first).id, "a") != 0 ||
               strcmp(tr_message_handler(left->posted[first]), "change") != 0)
                first++;
        answer(left, first, "[7,{'n':1}]");
        run();
        gets(left, 5, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        ck_assert_uint_eq(left->count, 6);
        answer(left, 5, "[8,{'n':2}]");
        run();
        answer(left, 6, "[9,{'n':3}]");
        run();
        is_answer(0, 0, "7");
        is_answer(1, 1, "8");
        is_answer(2, 2, "9");
        has("a", "{'n':3}");
}
END_TEST

START_TEST(the_next_one_s_turn_comes_before_it_is_written) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        call(2, "change", "a");
        run();
        answer(left, 0, "[7,{'n':1}]");
        ck_assert_uint_eq(in_hand(left), 1); /* its entity is being read, behind what was written */
        run();
        is_answer(0, 1, "7");
        gets(left, 1, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        answer(left, 1, "[8,nil]");
}
END_TEST

/* The trace of a call that runs inside of what a server has in hand. */
static const char *chain_of(const struct server *server, size_t n, struct tr_call_context *context) {
        *context = context_of(server, n);
        return context->trace;
}

START_TEST(what_is_called_by_it_does_not_wait_for_it) {
        struct tr_call_context context;
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        const char *trace = chain_of(left, 0, &context);
        ck_assert_ptr_null(try_call(message_new(2, "change"), (struct tr_call_options){ .id = "a", .trace = trace }));
        run();
        ck_assert_uint_eq(left->count, 2);
        answer(left, 1, "[8,{'n':1}]");
        run();
        is_answer(0, 2, "8");
        answer(left, 0, "[7,{'n':2}]");
        run(); /* which has come too late by that */
        gets(left, 2, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        answer(left, 2, "[7,{'n':2}]");
        run();
        is_answer(1, 1, "7");
}
END_TEST

START_TEST(calls_of_one_trace_wait_for_each_other) {
        static const char trace[] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        for (uint64_t i = 0; i < 4; i++)
                ck_assert_ptr_null(try_call(message_new(i, "change"), (struct tr_call_options){ .id = "a", .trace = trace }));
        run();
        ck_assert_uint_eq(left->count, 1);
        for (size_t i = 0; i < 4; i++) {
                answer(left, i, "[7,{'n':1}]");
                run();
                is_answer(i, i, "7");
        }
}
END_TEST

START_TEST(two_that_wait_for_each_other_pass_after_a_while) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        call(2, "change", "a");
        call(3, "change", "a");
        run();
        uint64_t began_ns = tr_clock_ns();
        while (left->count < 2) { /* the timer is the system's */
                uint64_t next_ns = tr_system_run_due(fake.system, tr_clock_ns());
                ck_assert_uint_ne(next_ns, TR_NEVER);
                run();
        }
        ck_assert_uint_ge(tr_clock_ns() - began_ns, TR_ENTITY_TURN_NS / 2);
        ck_assert_uint_eq(left->count, 2); /* one of them */
        answer(left, 1, "[8,{'n':1}]");
        run();
        is_answer(0, 2, "8");
        answer(left, 0, "[7,nil]");
        run();
        answer(left, 2, "[9,nil]");
        is_answer(2, 3, "9");
}
END_TEST

START_TEST(one_that_is_taken_back_gives_its_turn_to_the_next) {
        struct tr_message *messages[4];
        left = serve("left", 1);
        fake_store_put(&store, "a", "{'n':0}");
        for (uint64_t i = 0; i < 4; i++)
                messages[i] = call_kept(i, "change", "a");
        right = serve("right", 1);
        run();
        call(9, "act", NULL); /* right is busy: whose turn it is next waits */
        ck_assert_uint_eq(right->count, 1);
        ck_assert(tr_message_begin(left->posted[0]));
        take_back(messages[2]); /* put aside */
        take_back(messages[0]); /* in hand: it runs on */
        ck_assert_uint_eq(waiting(), 2);
        answer(left, 0, "[7,{'n':1}]");
        take_back(messages[1]); /* picked by left, and being read */
        run();
        ck_assert_uint_eq(left->count, 2);
        gets(left, 1, "{'id':'a','version':2,'created':1,'updated':2,'n':1}");
        answer(left, 1, "[8,nil]");
        is_answer(0, 3, "8");
        tr_message_unref(messages[3]);
        answer(right, 0, "7");
}
END_TEST

START_TEST(one_that_nobody_waits_for_holds_nobody_up) {
        left = serve("left", 2);
        fake_store_put(&store, "a", "{'n':0}");
        struct tr_message *message = call_kept(1, "change", "a");
        run();
        ck_assert(tr_message_begin(left->posted[0]));
        call(2, "change", "a");
        ck_assert_uint_eq(waiting(), 1);
        take_back(message); /* whoever runs it may never answer */
        run();
        answer(left, 1, "[8,{'n':2}]");
        run();
        is_answer(0, 2, "8");
        answer(left, 0, "[7,{'n':1}]"); /* and where he does, it is too late */
        run();
        has("a", "{'n':2}");
        ck_assert_uint_eq(asker.count, 1);
        ck_assert_uint_eq(left->count, 2);
}
END_TEST

START_TEST(the_next_one_may_be_taken_back_before_anybody_has_room) {
        right = serve("right", 1);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        left = serve("left", 1); /* which has room, and nobody whose turn it is */
        struct tr_message *message = call_kept(2, "change", "a");
        call(3, "change", "a");
        call(4, "act", NULL);
        ck_assert_uint_eq(left->count, 1);
        tr_replica_retire(right->replica);
        answer(right, 0, "[7,nil]");
        ck_assert_uint_eq(waiting(), 2);
        take_back(message); /* it was next */
        ck_assert_uint_eq(waiting(), 1);
        answer(left, 0, "0");
        run();
        ck_assert_uint_eq(left->count, 2);
        answer(left, 1, "[8,nil]");
        is_answer(2, 3, "8");
}
END_TEST

START_TEST(those_that_were_put_aside_are_there_for_another_manifest) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        for (uint64_t i = 0; i < 3; i++)
                call(i, "change", "a");
        run();
        struct tr_manifest *manifest = manifest_read(MANIFEST(", \"more\": {}"));
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
        ck_assert_uint_eq(waiting(), 2);
        for (size_t i = 0; i < 3; i++) {
                answer(left, i, "[7,{'n':1}]");
                run();
                is_answer(i, i, "7");
        }
        call(3, "change", "a");
        call(4, "change", "a");
        run();
        manifest = manifest_read("{\"name\": \"shelf\", \"operations\": {\"act\": {}}}");
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
        is_failure(3, 4, TR_CODE_NOT_FOUND, TR_RAN_NO);
        answer(left, 3, "[8,{'n':4}]");
        run();
        is_answer(4, 3, "8");
        ck_assert_uint_eq(waiting(), 0);
}
END_TEST

START_TEST(those_that_were_put_aside_end_with_the_component) {
        struct tr_target *target = &component->target;
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        for (uint64_t i = 0; i < 3; i++)
                call(i, "change", "a");
        run();
        target->ops->kill(target);
        is_failure(0, 1, TR_CODE_KILLED, TR_RAN_NO);
        is_failure(1, 2, TR_CODE_KILLED, TR_RAN_NO);
        die(left);
        is_failure(2, 0, TR_CODE_STOPPED, TR_RAN_NO);
}
END_TEST

START_TEST(those_that_were_put_aside_end_with_whom_they_are_for) {
        left = serve("left", 8);
        right = serve("right", 8);
        fake_store_put(&store, "a", "{'n':0}");
        call(1, "change", "a");
        run();
        for (uint64_t i = 2; i < 4; i++)
                ck_assert_ptr_null(try_call(message_new(i, "own"), (struct tr_call_options){ .id = "a", .instance = "left" }));
        call(4, "change", "a");
        ck_assert_uint_eq(waiting(), 3);
        struct server *first = left->count ? left : right;
        tr_replica_retire(left->replica);
        is_failure(0, 2, TR_CODE_ADDRESSEE, TR_RAN_NO);
        is_failure(1, 3, TR_CODE_ADDRESSEE, TR_RAN_NO);
        ck_assert_uint_eq(waiting(), 1);
        answer(first, 0, "[7,nil]");
        run();
        answer(right, right->count - 1, "[8,nil]");
        is_answer(2, 1, "7");
        is_answer(3, 4, "8");
}
END_TEST

START_TEST(many_that_wait_for_one_entity_are_not_looked_at_again_and_again) {
        left = serve("left", 8);
        fake_store_put(&store, "a", "{'n':0}");
        uint64_t began_ns = tr_clock_ns();
        for (uint64_t i = 0; i < MANY; i++)
                call(i, "change", "a");
        run();
        ck_assert_uint_eq(left->count, 1);
        for (uint64_t i = 0; i < MANY; i++) { /* each finds room, and nobody whose turn it is */
                call(MANY + i, "act", NULL);
                answer(left, 1, "7");
                tr_message_unref(left->posted[--left->count]);
        }
        /* each of them looked at each time would be some minutes */
        ck_assert_uint_lt(tr_clock_ns() - began_ns, 60 * TR_NS_PER_S);
        ck_assert_uint_eq(waiting(), MANY - 1);
        component->target.ops->kill(&component->target);
        die(left);
}
END_TEST

/* What operations ask themselves */

static struct tr_failure *ask(uint64_t number, struct tr_entity_request request) {
        struct tr_message *message = message_new(number, "");
        request.id_len = request.id ? strlen(request.id) : 0;
        request.sort_len = request.sort ? strlen(request.sort) : 0;
        request.after_len = request.after ? strlen(request.after) : 0;
        struct tr_failure *failure = tr_entity_ask(component, &request, message);
        if (failure)
                tr_message_unref(message);
        return failure;
}

/* A map of one field in memory that is changed behind it. */
static struct tr_failure *put(uint64_t number, const char *id, uint8_t n, uint64_t expect) {
        uint8_t document[] = { 0x81, 0xa1, 'n', n };
        struct tr_failure *failure = ask(number, (struct tr_entity_request){
                .kind = TR_STORE_WRITE, .id = id, .document = document, .document_bytes = sizeof(document), .expect = expect,
        });
        memset(document, 0xc1, sizeof(document));
        return failure;
}

START_TEST(an_operation_asks_for_entities) {
        ck_assert_ptr_null(put(1, "a", 1, TR_STORE_ANY));
        run();
        has("a", "{'n':1}");
        ck_assert(asker.outcomes[0].resolved);
        ck_assert_uint_eq(asker.outcomes[0].value[0], 0x85); /* the document, with what is the store's */
        ck_assert_ptr_null(put(2, NULL, 2, TR_STORE_ANY));
        ck_assert_ptr_null(put(3, "a", 3, 7));
        ck_assert_ptr_null(put(4, "a", 0xc0, TR_STORE_ANY)); /* nil is no integer */
        ck_assert_ptr_null(ask(5, (struct tr_entity_request){ .kind = TR_STORE_GET, .id = "b" }));
        ck_assert_ptr_null(ask(6, (struct tr_entity_request){ .kind = TR_STORE_GET, .id = "a" }));
        ck_assert_ptr_null(ask(7, (struct tr_entity_request){ .kind = TR_STORE_LIST, .sort = "n", .after = "a", .limit = 4 }));
        ck_assert_ptr_null(ask(8, (struct tr_entity_request){ .kind = TR_STORE_DELETE, .id = "a", .expect = 1 }));
        ck_assert_ptr_null(ask(9, (struct tr_entity_request){ .kind = TR_STORE_DELETE, .id = "a", .expect = TR_STORE_ANY }));
        run();
        ck_assert_uint_eq(store.count, 1);
        ck_assert(asker.outcomes[1].resolved);
        is_failure(2, 3, TR_CODE_CONFLICT, TR_RAN_YES);
        is_failure(3, 4, TR_CODE_CONTRACT, TR_RAN_NO);
        is_answer(4, 5, "nil");
        ck_assert_uint_eq(asker.outcomes[5].value[0], 0x85);
        ck_assert_uint_eq(asker.outcomes[6].value[0], 0x92);
        is_answer(7, 8, "true");
        is_answer(8, 9, "false");
}
END_TEST

START_TEST(what_it_cannot_ask_is_refused) {
        is_refused(ask(1, (struct tr_entity_request){ .kind = TR_STORE_GET, .id = "" }), TR_CODE_BAD_REQUEST);
        is_refused(ask(1, (struct tr_entity_request){ .kind = TR_STORE_GET }), TR_CODE_BAD_REQUEST);
        is_refused(ask(1, (struct tr_entity_request){ .kind = TR_STORE_DELETE }), TR_CODE_BAD_REQUEST);
        is_refused(ask(1, (struct tr_entity_request){ .kind = TR_STORE_LIST, .after = "\x01" }), TR_CODE_BAD_REQUEST);
        is_refused(put(1, "\x7f", 1, TR_STORE_ANY), TR_CODE_BAD_REQUEST);
        store.closed = true;
        ck_assert_ptr_null(put(2, "a", 1, TR_STORE_ANY));
        is_failure(0, 2, TR_CODE_SHUTTING_DOWN, TR_RAN_NO);
        fake.system->store = NULL;
        is_refused(put(1, "a", 1, TR_STORE_ANY), TR_CODE_STORE);
}
END_TEST

START_TEST(a_job_without_a_value_is_answered_with_nil) {
        const struct tr_store_job job = { .kind = TR_STORE_BACKUP, .path = "/somewhere" };
        ck_assert_ptr_null(tr_store_ask(fake.system, &job, NULL, message_new(1, "")));
        run();
        is_answer(0, 1, "nil");
        ck_assert_ptr_null(tr_store_ask(fake.system, &job, NULL, message_new(2, "")));
        store.fails = TR_CODE_STORE;
        run();
        is_failure(1, 2, TR_CODE_STORE, TR_RAN_NO);
        struct tr_message *message = tr_message_ref(message_new(3, ""));
        ck_assert_ptr_null(tr_store_ask(fake.system, &job, NULL, message));
        bool begun;
        ck_assert(tr_message_settle(message, &begun)); /* taken back: it is done, perhaps */
        ck_assert(begun);
        run();
        ck_assert_uint_eq(asker.count, 2);
        tr_message_unref(message);
}
END_TEST

suite_main_with("entity", setup, teardown, an_observation_gets_what_it_names, one_that_names_none_gets_nil_and_asks_nobody,
                entries_are_listed_as_is_asked, the_context_says_what_it_was_called_for, what_cannot_be_asked_for_is_refused,
                without_a_store_what_needs_one_is_refused, a_transition_changes_what_is_there,
                who_answers_whole_entities_replaces_it, one_that_changes_nothing_writes_nothing,
                a_new_one_has_an_id_and_is_there_in_any_case, an_assignment_reads_nothing,
                an_entity_that_is_not_there_is_nil_and_cannot_be_changed, what_is_no_answer_with_changes_is_against_the_contract,
                an_output_against_the_contract_changes_nothing, an_entity_against_the_contract_is_not_stored,
                one_that_fails_changes_nothing, an_answer_in_the_plain_form_is_made_before_anything_is_written,
                a_conflict_is_run_again_with_what_is_there_then, it_is_run_so_often_and_no_more, conflicts_are_no_deaths,
                an_addressed_one_is_run_again_by_who_is_named, what_is_settled_while_it_is_read_is_not_delivered,
                what_is_settled_while_it_runs_is_written_all_the_same, what_is_settled_while_it_is_written_is_late,
                one_that_dies_while_it_is_read_is_not_the_one_who_gets_it, another_reads_anew_where_one_has_died,
                one_that_retires_finishes_what_is_being_read_for_it, a_component_stops_behind_what_is_written,
                it_ends_behind_what_is_written, one_that_is_killed_does_not_wait_for_it, what_is_read_for_a_component_that_was_killed_is_not_delivered,
                what_cannot_be_read_does_not_run, what_cannot_be_written_has_run, a_store_that_takes_no_more_refuses_all_that_wait,
                one_at_a_time_changes_an_entity, the_next_one_s_turn_comes_before_it_is_written,
                what_is_called_by_it_does_not_wait_for_it, calls_of_one_trace_wait_for_each_other,
                two_that_wait_for_each_other_pass_after_a_while, one_that_is_taken_back_gives_its_turn_to_the_next,
                one_that_nobody_waits_for_holds_nobody_up, the_next_one_may_be_taken_back_before_anybody_has_room, those_that_were_put_aside_are_there_for_another_manifest,
                those_that_were_put_aside_end_with_the_component, those_that_were_put_aside_end_with_whom_they_are_for,
                many_that_wait_for_one_entity_are_not_looked_at_again_and_again, an_operation_asks_for_entities,
                what_it_cannot_ask_is_refused, a_job_without_a_value_is_answered_with_nil);
