/* SPDX-License-Identifier: Apache-2.0 */
/* Components: where calls go, and how each of them ends. Replicas are targets that keep what is posted until the test answers it. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/context.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

#define POSTED_MAX 4096

/* A target that a test answers for. */
struct fake_server {
        struct tr_target target;
        struct tr_replica *replica;
        enum tr_post answer; /* to a post */
        bool relieved;       /* while it refuses one, there is room again */
        bool retires;        /* it is told to, while it is posted to */
        bool stops;          /* its component is, while it is posted to */
        struct tr_message *posted[POSTED_MAX]; /* each a reference */
        size_t count;
        int cancelled;
        int retired;
        int stopped;
        int killed;
};

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_component *component;
static struct fake_server *left, *right;

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct fake_server *server = (struct fake_server *)target;
        struct tr_message *message;
        while ((message = tr_list_first(messages, struct tr_message, link))) {
                if (server->relieved) {
                        server->relieved = false;
                        tr_replica_relieved(server->replica);
                        return TR_POST_FULL;
                }
                if (server->retires) {
                        server->retires = false;
                        tr_replica_retire(server->replica);
                }
                if (server->stops) {
                        server->stops = false;
                        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
                }
                if (server->answer != TR_POST_OK)
                        return server->answer;
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

static void on_cancel(struct tr_replica *replica, struct tr_message *delivery) {
        ((struct fake_server *)replica->userdata)->cancelled++;
}

static void on_retired(struct tr_replica *replica) {
        ((struct fake_server *)replica->userdata)->retired++;
        tr_replica_died(replica);
}

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        ((struct fake_server *)replica->userdata)->stopped++;
        tr_replica_retire(replica);
}

static void on_kill(struct tr_replica *replica) {
        ((struct fake_server *)replica->userdata)->killed++;
        tr_replica_died(replica);
}

static const struct tr_replica_ops replica_ops = {
        .cancel = on_cancel, .retired = on_retired, .stop = on_stop, .kill = on_kill,
};

static struct fake_server *server_new(void) {
        struct fake_server *server = calloc(1, sizeof(*server));
        ck_assert_ptr_nonnull(server);
        ck_assert_int_eq(tr_target_init(&server->target, &server_ops, fake.system, 0, "server", ""), 0);
        return server;
}

/* Drops the target's references to what it was sent, and the test's own to it. */
static void server_drop(struct fake_server *server) {
        for (size_t i = 0; i < server->count; i++)
                tr_message_unref(server->posted[i]);
        server->count = 0;
        tr_replica_unref(server->replica);
        server->replica = NULL;
        tr_target_unref(&server->target);
}

static struct tr_failure *join(struct fake_server *server, struct tr_replica_options options) {
        options.ops = &replica_ops;
        options.userdata = server;
        options.kind = "connection";
        return tr_replica_join(component, &options, &server->target, &server->replica);
}

static struct fake_server *serve(const char *instance, uint32_t concurrency) {
        struct fake_server *server = server_new();
        ck_assert_ptr_null(join(server, (struct tr_replica_options){ .instance = instance, .concurrency = concurrency }));
        tr_replica_hold(server->replica);
        return server;
}

/* What the caller's message may be answered with, in the form of the fake asker. */
static struct tr_message *message_new(uint64_t id, const char *operation, int input) {
        struct tr_message *message = fake_message(&asker, id, operation, input);
        message->form = TR_FORM_TYPED;
        return message;
}

static struct tr_failure *call_with(struct tr_message *message, const char *instance, uint64_t timeout_ns, const char *trace) {
        const struct tr_call_options options = {
                .instance = instance,
                .instance_len = instance ? strlen(instance) : 0,
                .trace = trace,
                .trace_len = trace ? strlen(trace) : 0,
                .timeout_ns = timeout_ns,
                .uid = 1000,
                .gid = 100,
                .pid = 4711,
        };
        struct tr_failure *failure = tr_component_call(component, message, &options);
        if (failure)
                tr_message_unref(message);
        return failure;
}

static void call(uint64_t id, const char *operation) {
        ck_assert_ptr_null(call_with(message_new(id, operation, 1), NULL, 0, NULL));
}

static void call_instance(uint64_t id, const char *operation, const char *instance, uint64_t timeout_ns) {
        ck_assert_ptr_null(call_with(message_new(id, operation, 1), instance, timeout_ns, NULL));
}

static void refused(struct tr_failure *failure, enum tr_code code) {
        ck_assert_ptr_nonnull(failure);
        ck_assert_str_eq(tr_code_text(failure->code), tr_code_text(code));
        tr_failure_unref(failure);
}

/* What a server does with the n-th message that it got */

static void begin(struct fake_server *server, size_t n) {
        ck_assert_uint_gt(server->count, n);
        ck_assert(tr_message_begin(server->posted[n]));
}

static void answer(struct fake_server *server, size_t n, int value) {
        uint8_t encoded = (uint8_t)value;
        ck_assert_uint_gt(server->count, n);
        if (tr_message_state(server->posted[n]) == TR_MESSAGE_QUEUED)
                begin(server, n);
        ck_assert(tr_message_resolve(server->posted[n], &encoded, 1, false));
}

static void fail_with(struct fake_server *server, size_t n, enum tr_code code, enum tr_ran ran, const char *kind) {
        struct tr_failure *failure = tr_failure_new(code, "it failed");
        if (kind)
                tr_failure_add_text(failure, "kind", kind, strlen(kind));
        ck_assert(tr_message_reject(server->posted[n], failure, ran));
        tr_failure_unref(failure);
}

/* It is gone: what it has is rejected by its target, and it says that it died. */
static void die(struct fake_server *server) {
        for (size_t i = 0; i < server->count; i++) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_STOPPED, "it is gone");
                tr_message_reject(server->posted[i], failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
        }
        server->answer = TR_POST_CLOSED;
        tr_replica_died(server->replica);
}

/* The outcome at a place: of which call, and what. */
static void is_answer(size_t at, uint64_t id, int value) {
        ck_assert_uint_gt(asker.count, at);
        ck_assert_uint_eq(asker.outcomes[at].id, id);
        ck_assert(asker.outcomes[at].resolved);
        ck_assert_uint_eq(asker.outcomes[at].bytes, 1);
        ck_assert_int_eq(asker.outcomes[at].value[0], value);
}

static void is_failure(size_t at, uint64_t id, enum tr_code code, enum tr_ran ran) {
        ck_assert_uint_gt(asker.count, at);
        ck_assert_uint_eq(asker.outcomes[at].id, id);
        ck_assert(!asker.outcomes[at].resolved);
        ck_assert_str_eq(tr_code_text(asker.outcomes[at].code), tr_code_text(code));
        ck_assert_int_eq(asker.outcomes[at].ran, ran);
}

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

#define OPERATIONS                                                                            \
        "\"operations\": {\"get\": {}, \"put\": {\"errors\": [\"NO\"]},"                       \
        " \"watch\": {\"stateful\": true}, \"typed\": {\"input\": {\"type\": \"integer\"},"   \
        " \"output\": {\"type\": \"integer\", \"maximum\": 9}}}"

static void declare(const char *text) {
        struct tr_manifest *manifest = manifest_read(text);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
}

static void setup(void) {
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        declare("{\"name\": \"media.streams\", \"queue\": 8, " OPERATIONS "}");
        left = right = NULL;
}

static void teardown(void) {
        struct tr_target *target = &component->target;
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        if (left)
                tr_replica_died(left->replica);
        if (right)
                tr_replica_died(right->replica);
        ck_assert(tr_target_has_ended(target));
        if (left)
                server_drop(left);
        if (right)
                server_drop(right);
        tr_component_unref(component);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
}

static uint32_t waiting(void) {
        tr_lock_acquire(&component->lock);
        uint32_t count = component->waiting;
        tr_lock_release(&component->lock);
        return count;
}

/* Ordinary calls */

START_TEST(waits_until_somebody_serves) {
        call(1, "get");
        ck_assert_uint_eq(waiting(), 1);
        left = serve("left", 1);
        ck_assert_uint_eq(waiting(), 0);
        answer(left, 0, 7);
        is_answer(0, 1, 7);
}
END_TEST

START_TEST(context_says_what_a_replica_has_to_know) {
        struct tr_writer written = TR_WRITER_INIT;
        struct tr_call_context context;
        struct tr_token token;
        left = serve("left", 1);
        call(1, "get");
        ck_assert_uint_eq(left->posted[0]->args_count, 1);
        tr_delivery_context(left->posted[0], &context);
        tr_call_context_write(&context, &written);
        ck_assert_uint_le(written.len, tr_delivery_context_bytes_max(left->posted[0]));
        struct tr_reader reader = tr_reader(written.data, written.len);
        ck_assert_int_eq(tr_read(&reader, &token), 0);
        ck_assert_int_eq(token.type, TR_MAP);
        static const char *const keys[] = { "component", "instance", "trace", "attempt", "caller" };
        ck_assert_uint_eq(token.count, 5);
        for (size_t i = 0; i < 5; i++) {
                ck_assert_int_eq(tr_read(&reader, &token), 0);
                ck_assert(tr_token_equals(&token, keys[i]));
                ck_assert_int_eq(tr_read_skip(&reader), 0);
        }
        ck_assert_ptr_eq(reader.at, written.data + written.len);
        tr_writer_deinit(&written);
        answer(left, 0, 1);
}
END_TEST

START_TEST(goes_to_who_has_least_in_hand) {
        left = serve("left", 4);
        right = serve("right", 4);
        for (uint64_t i = 0; i < 8; i++)
                call(i, "get");
        ck_assert_uint_eq(left->count, 4);
        ck_assert_uint_eq(right->count, 4);
        ck_assert_uint_eq(waiting(), 0);
        call(8, "get");
        ck_assert_uint_eq(waiting(), 1);
        answer(right, 2, 1);
        ck_assert_uint_eq(waiting(), 0);
        ck_assert_uint_eq(right->count, 5);
        for (size_t i = 0; i < 4; i++)
                answer(left, i, 1);
        /* ties rotate */
        call(9, "get");
        ck_assert_uint_eq(left->count, 5);
        die(left);
        die(right);
        for (uint64_t i = 0; i < 5; i++) /* they wait for a third, but for none that will come */
                ck_assert_uint_eq(asker.count, 5);
}
END_TEST

START_TEST(queue_has_a_bound) {
        for (uint64_t i = 0; i < 8; i++)
                call(i, "get");
        refused(call_with(message_new(8, "get", 1), NULL, 0, NULL), TR_CODE_MAILBOX_FULL);
}
END_TEST

START_TEST(refused_before_anything_is_sent) {
        left = serve("left", 1);
        refused(call_with(message_new(1, "none", 1), NULL, 0, NULL), TR_CODE_NOT_FOUND);
        refused(call_with(message_new(1, "watch", 1), NULL, 0, NULL), TR_CODE_CONTRACT);
        refused(call_with(message_new(1, "get", 1), "left", 0, NULL), TR_CODE_CONTRACT);
        struct tr_message *text = tr_message_new(TR_MESSAGE_HANDLER, "typed", 5, "\xa1x", 2, 1);
        refused(call_with(text, NULL, 0, NULL), TR_CODE_CONTRACT);
        ck_assert_uint_eq(left->count, 0);
}
END_TEST

START_TEST(output_is_checked) {
        left = serve("left", 2);
        call(1, "typed");
        call(2, "typed");
        answer(left, 0, 9);
        answer(left, 1, 10);
        is_answer(0, 1, 9);
        is_failure(1, 2, TR_CODE_CONTRACT, TR_RAN_YES);
}
END_TEST

START_TEST(output_that_has_no_plain_form) {
        static const uint8_t map[] = { 0x82, 0x01, 0xc0, 0xa1, '1', 0xc0 }; /* {1: nil, "1": nil} */
        left = serve("left", 1);
        struct tr_message *message = message_new(1, "get", 1);
        message->form = TR_FORM_PLAIN;
        ck_assert_ptr_null(call_with(message, NULL, 0, NULL));
        begin(left, 0);
        ck_assert(tr_message_resolve(left->posted[0], map, sizeof(map), false));
        is_failure(0, 1, TR_CODE_NOT_SENDABLE, TR_RAN_YES);
}
END_TEST

START_TEST(exception_is_the_answer) {
        left = serve("left", 1);
        call(1, "get");
        begin(left, 0);
        fail_with(left, 0, TR_CODE_FAULT, TR_RAN_YES, "error");
        is_failure(0, 1, TR_CODE_FAULT, TR_RAN_YES);
        call(2, "get");
        answer(left, 1, 3);
        is_answer(1, 2, 3);
}
END_TEST

static int attempt_of(const struct tr_message *own) {
        struct tr_call_context context;
        tr_delivery_context(own, &context);
        return (int)context.attempt;
}

START_TEST(another_answers_when_one_dies) {
        left = serve("left", 1);
        call(1, "get");
        call(2, "get");
        begin(left, 0);
        right = serve("right", 1);
        ck_assert_uint_eq(right->count, 1); /* the second */
        die(left);
        answer(right, 0, 2);
        ck_assert_int_eq(attempt_of(right->posted[1]), 2);
        answer(right, 1, 1);
        is_answer(0, 2, 2);
        is_answer(1, 1, 1);
}
END_TEST

START_TEST(one_that_was_interrupted_is_first) {
        left = serve("left", 1);
        for (uint64_t i = 1; i <= 3; i++)
                call(i, "get");
        begin(left, 0);
        die(left);
        right = serve("right", 1);
        for (size_t i = 0; i < 3; i++)
                answer(right, i, 1);
        for (size_t i = 0; i < 3; i++)
                is_answer(i, i + 1, 1);
}
END_TEST

START_TEST(not_begun_is_no_delivery) {
        left = serve("left", 1);
        call(1, "get");
        die(left);
        right = serve("right", 1);
        ck_assert_int_eq(attempt_of(right->posted[0]), 1);
        answer(right, 0, 1);
        is_answer(0, 1, 1);
}
END_TEST

START_TEST(three_deaths_are_undeliverable) {
        call(1, "get");
        for (int i = 1; i <= 3; i++) {
                struct fake_server *server = serve(NULL, 1);
                ck_assert_int_eq(attempt_of(server->posted[0]), i);
                begin(server, 0);
                if (i == 2) /* out of heap is a death, too */
                        fail_with(server, 0, TR_CODE_FAULT, TR_RAN_YES, "heap");
                die(server);
                server_drop(server);
        }
        is_failure(0, 1, TR_CODE_UNDELIVERABLE, TR_RAN_MAYBE);
}
END_TEST

START_TEST(second_answer_settles_nothing) {
        left = serve("left", 1);
        call(1, "get");
        begin(left, 0);
        answer(left, 0, 1);
        uint8_t late = 2;
        ck_assert(!tr_message_resolve(left->posted[0], &late, 1, false));
        ck_assert_uint_eq(asker.count, 1);
}
END_TEST

/* Deadlines and taking back */

static void take_back(struct tr_message *message) {
        bool begun;
        ck_assert(tr_message_settle(message, &begun));
        tr_invocation_given_up(message);
}

START_TEST(taken_back_while_queued_never_runs) {
        struct tr_message *message = tr_message_ref(message_new(1, "get", 1));
        ck_assert_ptr_null(call_with(message, NULL, 0, NULL));
        take_back(message);
        tr_message_unref(message);
        ck_assert_uint_eq(waiting(), 0);
        left = serve("left", 1);
        ck_assert_uint_eq(left->count, 0);
}
END_TEST

START_TEST(taken_back_before_it_began_leaves_room) {
        left = serve("left", 1);
        struct tr_message *message = tr_message_ref(message_new(1, "get", 1));
        ck_assert_ptr_null(call_with(message, NULL, 0, NULL));
        call(2, "get");
        ck_assert_uint_eq(left->count, 1);
        take_back(message);
        tr_message_unref(message);
        ck_assert(!tr_message_begin(left->posted[0]));
        ck_assert_uint_eq(left->count, 2);
        answer(left, 1, 2);
        is_answer(0, 2, 2);
        ck_assert_int_eq(left->cancelled, 0);
}
END_TEST

START_TEST(settled_by_its_asker_alone_does_not_begin) {
        left = serve("left", 1);
        struct tr_message *message = tr_message_ref(message_new(1, "get", 1));
        bool begun;
        ck_assert_ptr_null(call_with(message, NULL, 0, NULL));
        call(2, "get");
        ck_assert(tr_message_settle(message, &begun));
        ck_assert(!tr_message_begin(left->posted[0]));
        /* whoever drops it makes room */
        tr_message_unref(left->posted[0]);
        left->posted[0] = tr_message_ref(message);
        ck_assert_uint_eq(left->count, 2);
        answer(left, 1, 2);
        tr_invocation_given_up(message);
        tr_message_unref(message);
}
END_TEST

START_TEST(taken_back_while_running_is_told_and_its_answer_discarded) {
        left = serve("left", 1);
        struct tr_message *message = tr_message_ref(message_new(1, "get", 1));
        ck_assert_ptr_null(call_with(message, NULL, 0, NULL));
        begin(left, 0);
        take_back(message);
        tr_message_unref(message);
        ck_assert_int_eq(left->cancelled, 1);
        call(2, "get");
        ck_assert_uint_eq(left->count, 1); /* it runs on, and keeps its place */
        answer(left, 0, 1);
        ck_assert_uint_eq(asker.count, 0);
        answer(left, 1, 2);
        is_answer(0, 2, 2);
}
END_TEST

START_TEST(deadline_of_an_ordinary_call) {
        left = serve("left", 1);
        ck_assert_ptr_null(call_with(message_new(1, "get", 1), NULL, TR_NS_PER_MS, NULL));
        ck_assert_ptr_null(call_with(message_new(2, "get", 1), NULL, TR_NS_PER_MS, NULL));
        begin(left, 0);
        fake_system_run_until_outcomes(&fake, &asker, 2);
        is_failure(0, 1, TR_CODE_TIMEOUT, TR_RAN_MAYBE);
        is_failure(1, 2, TR_CODE_TIMEOUT, TR_RAN_NO);
        ck_assert_int_eq(left->cancelled, 1);
        answer(left, 0, 1);
        ck_assert_uint_eq(left->count, 1); /* the second never runs */
        ck_assert_uint_eq(asker.count, 2);
}
END_TEST

/* Addressed calls */

START_TEST(addressed_call_is_answered_by_who_holds_the_name) {
        left = serve("left", 1);
        right = serve("right", 1);
        call_instance(1, "watch", "right", 0);
        ck_assert_uint_eq(left->count, 0);
        answer(right, 0, 5);
        is_answer(0, 1, 5);
}
END_TEST

START_TEST(addressed_calls_come_before_the_component_s) {
        left = serve("left", 1);
        call(1, "get");
        call(2, "get");
        call_instance(3, "watch", "left", 0);
        answer(left, 0, 1);
        answer(left, 1, 1);
        answer(left, 2, 1);
        is_answer(0, 1, 1);
        is_answer(1, 3, 1);
        is_answer(2, 2, 1);
}
END_TEST

START_TEST(nobody_holds_the_name) {
        left = serve("left", 1);
        refused(call_with(message_new(1, "watch", 1), "never", 0, NULL), TR_CODE_ADDRESSEE);
        call_instance(2, "watch", "left", 0);
        call_instance(3, "watch", "left", 0);
        begin(left, 0);
        tr_replica_retire(left->replica);
        /* at once, while what it holds finishes; what was queued for it did not run */
        is_failure(0, 3, TR_CODE_ADDRESSEE, TR_RAN_NO);
        refused(call_with(message_new(4, "watch", 1), "left", 0, NULL), TR_CODE_ADDRESSEE);
        ck_assert_int_eq(left->retired, 0);
        answer(left, 0, 1);
        is_answer(1, 2, 1);
        ck_assert_int_eq(left->retired, 1);
}
END_TEST

START_TEST(death_under_addressed_calls) {
        left = serve("left", 1);
        call_instance(1, "watch", "left", 0);
        call_instance(2, "watch", "left", 0);
        begin(left, 0);
        die(left);
        ck_assert_uint_eq(asker.count, 2);
        size_t begun = asker.outcomes[0].id == 1 ? 0 : 1;
        is_failure(begun, 1, TR_CODE_ABANDONED, TR_RAN_MAYBE);
        is_failure(1 - begun, 2, TR_CODE_ADDRESSEE, TR_RAN_NO);
}
END_TEST

START_TEST(deadline_of_an_addressed_call) {
        left = serve("left", 1);
        call_instance(1, "watch", "left", TR_NS_PER_MS);
        call_instance(2, "watch", "left", TR_NS_PER_MS);
        begin(left, 0);
        fake_system_run_until_outcomes(&fake, &asker, 2);
        is_failure(0, 1, TR_CODE_ABANDONED, TR_RAN_MAYBE);
        is_failure(1, 2, TR_CODE_ABANDONED, TR_RAN_NO);
        answer(left, 0, 1);
        ck_assert_uint_eq(left->count, 1);
        ck_assert_uint_eq(asker.count, 2);
}
END_TEST

/* Names */

START_TEST(names_are_held_once) {
        left = serve("left", 1);
        struct fake_server *other = server_new();
        refused(join(other, (struct tr_replica_options){ .instance = "left" }), TR_CODE_TAKEN);
        tr_replica_died(left->replica);
        ck_assert_ptr_null(join(other, (struct tr_replica_options){ .instance = "left" }));
        /* not before it holds it, though nobody else can have it */
        refused(call_with(message_new(1, "watch", 1), "left", 0, NULL), TR_CODE_ADDRESSEE);
        tr_replica_hold(other->replica);
        /* a late clean-up of one holder does not touch the next */
        tr_replica_died(left->replica);
        call_instance(2, "watch", "left", 0);
        answer(other, 0, 1);
        is_answer(0, 2, 1);
        server_drop(left);
        left = other;
}
END_TEST

START_TEST(generated_names_differ) {
        left = serve(NULL, 1);
        right = serve(NULL, 1);
        ck_assert_str_ne(left->replica->instance, right->replica->instance);
        struct tr_writer writer = TR_WRITER_INIT;
        tr_component_write_instances(component, &writer);
        ck_assert_int_eq(writer.data[0], 0x92);
        tr_writer_deinit(&writer);
}
END_TEST

START_TEST(successor_takes_the_name_over) {
        left = serve("left", 1);
        call_instance(1, "watch", "left", 0);
        begin(left, 0);
        right = server_new();
        ck_assert_ptr_null(join(right, (struct tr_replica_options){ .instance = "left", .successor_of = left->replica }));
        tr_replica_hold(right->replica);
        call_instance(2, "watch", "left", 0);
        ck_assert_uint_eq(right->count, 1);
        answer(left, 0, 1);
        answer(right, 0, 2);
        ck_assert_int_eq(left->retired, 1);
        is_answer(0, 1, 1);
        is_answer(1, 2, 2);
}
END_TEST

START_TEST(what_waits_for_a_name_goes_to_its_successor) {
        left = serve("left", 1);
        call_instance(1, "watch", "left", 0);
        begin(left, 0);
        call_instance(2, "watch", "left", 0);
        ck_assert_uint_eq(left->count, 1);
        right = server_new();
        ck_assert_ptr_null(join(right, (struct tr_replica_options){ .instance = "left", .successor_of = left->replica }));
        tr_replica_hold(right->replica);
        ck_assert_uint_eq(right->count, 1);
        ck_assert_uint_eq(left->count, 1);
        answer(right, 0, 2);
        answer(left, 0, 1);
        is_answer(0, 2, 2);
        is_answer(1, 1, 1);
}
END_TEST

/* Who serves what */

START_TEST(some_serve_some_operations) {
        static const char *const some[] = { "watch", "put", NULL };
        static const char *const too_few[] = { "put", NULL };
        static const char *const unknown[] = { "watch", "none", NULL };
        left = server_new();
        refused(join(left, (struct tr_replica_options){ .operations = too_few }), TR_CODE_NOT_FOUND);
        refused(join(left, (struct tr_replica_options){ .operations = unknown }), TR_CODE_NOT_FOUND);
        ck_assert_ptr_null(join(left, (struct tr_replica_options){ .operations = some, .concurrency = 8 }));
        tr_replica_hold(left->replica);
        call(1, "get");
        call(2, "put");
        ck_assert_uint_eq(left->count, 1);
        ck_assert_str_eq(tr_message_handler(left->posted[0]), "put");
        answer(left, 0, 2);
        right = serve("right", 1);
        answer(right, 0, 1);
        is_answer(0, 2, 2);
        is_answer(1, 1, 1);
}
END_TEST

START_TEST(congestion_passes) {
        left = serve("left", 4);
        left->answer = TR_POST_FULL;
        call(1, "get");
        call(2, "get");
        ck_assert_uint_eq(waiting(), 2);
        left->answer = TR_POST_OK;
        tr_replica_relieved(left->replica);
        ck_assert_uint_eq(left->count, 2);
        answer(left, 0, 1);
        answer(left, 1, 2);
        is_answer(0, 1, 1);
        is_answer(1, 2, 2);
}
END_TEST

START_TEST(congestion_that_has_passed_is_none) {
        left = serve("left", 4);
        left->relieved = true;
        call(1, "get");
        ck_assert_uint_eq(left->count, 1);
        answer(left, 0, 1);
        is_answer(0, 1, 1);
}
END_TEST

START_TEST(too_large_for_a_replica) {
        left = serve("left", 4);
        left->answer = TR_POST_TOO_LARGE;
        call(1, "get");
        is_failure(0, 1, TR_CODE_TOO_LARGE, TR_RAN_NO);
        left->answer = TR_POST_OK;
        call(2, "get");
        answer(left, 0, 1);
}
END_TEST

START_TEST(told_to_retire_while_it_refuses) {
        static const struct {
                enum tr_post answer;
                enum tr_code code;
        } cases[] = { { TR_POST_TOO_LARGE, TR_CODE_TOO_LARGE }, { TR_POST_NO_MEMORY, TR_CODE_NO_MEMORY } };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                left = serve("left", 4);
                left->answer = cases[i].answer;
                left->retires = true;
                call(i, "get");
                is_failure(i, i, cases[i].code, TR_RAN_NO);
                ck_assert_int_eq(left->retired, 1);
                server_drop(left);
        }
        /* What it has no room for goes to the next, and it is done. */
        left = serve("left", 4);
        left->answer = TR_POST_FULL;
        left->retires = true;
        call(7, "get");
        ck_assert_int_eq(left->retired, 1);
        right = serve("right", 1);
        answer(right, 0, 7);
        is_answer(2, 7, 7);
}
END_TEST

START_TEST(stopped_while_the_last_call_is_refused) {
        left = serve("left", 4);
        left->answer = TR_POST_TOO_LARGE;
        left->stops = true;
        call(1, "get");
        is_failure(0, 1, TR_CODE_TOO_LARGE, TR_RAN_NO);
        ck_assert_int_eq(left->retired, 1);
        ck_assert(tr_target_has_ended(&component->target));
}
END_TEST

/* Errors, traces */

START_TEST(declared_errors) {
        left = serve("left", 2);
        call(1, "put");
        call(2, "put");
        begin(left, 0);
        begin(left, 1);
        struct tr_failure *declared = tr_operation_error(tr_delivery_operation(left->posted[0]), "NO", 2, NULL, 0);
        ck_assert(tr_message_reject(left->posted[0], declared, declared->ran));
        tr_failure_unref(declared);
        struct tr_failure *other = tr_operation_error(tr_delivery_operation(left->posted[1]), "OTHER", 5, NULL, 0);
        ck_assert(tr_message_reject(left->posted[1], other, other->ran));
        tr_failure_unref(other);
        is_failure(0, 1, TR_CODE_REFUSED, TR_RAN_YES);
        is_failure(1, 2, TR_CODE_CONTRACT, TR_RAN_YES);
}
END_TEST

START_TEST(chains_are_bounded) {
        char trace[TR_TRACEPARENT_LEN + 1] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        ck_assert(tr_traceparent_is_valid(trace, strlen(trace)));
        struct tr_message *messages[TR_CHAIN_MAX];
        left = serve("left", 64);
        for (uint64_t i = 0; i < TR_CHAIN_MAX; i++) {
                messages[i] = tr_message_ref(message_new(i, "get", 1));
                ck_assert_ptr_null(call_with(messages[i], NULL, 0, trace));
                ck_assert_uint_eq(messages[i]->invocation->span.depth, i + 1);
                tr_traceparent_write(&messages[i]->invocation->span, trace);
                ck_assert_int_eq(strncmp(trace, "00-0af7651916cd43dd8448eb211c80319c-", 36), 0);
        }
        refused(call_with(message_new(99, "get", 1), NULL, 0, trace), TR_CODE_LOOP);
        for (size_t i = 0; i < TR_CHAIN_MAX; i++) {
                answer(left, i, 1);
                tr_message_unref(messages[i]);
        }
}
END_TEST

/* Spans as text, one behind another: operation, instance, attempt, how it ended. */
static char spans[512];

static void on_span(void *userdata, const struct tr_span_news *span) {
        size_t len = strlen(spans);
        ck_assert_str_eq(span->component, "media.streams");
        ck_assert_uint_eq(span->uid, 1000);
        ck_assert_int_eq(span->pid, 4711);
        ck_assert_uint_gt(span->came_ns, 0);
        ck_assert_uint_le(span->came_ns + span->queued_ns + span->run_ns, tr_clock_ns());
        snprintf(spans + len, sizeof(spans) - len, "%s %s %u %s\n", span->operation, span->instance ? span->instance : "-", span->attempt,
                 span->failed ? tr_code_text(span->code) : "ok");
}

START_TEST(each_call_has_a_span) {
        spans[0] = '\0';
        fake.system->hooks.span = on_span;
        left = serve("left", 1);
        call(1, "get");
        ck_assert_str_eq(spans, "");
        answer(left, 0, 1);
        call(2, "get");
        begin(left, 1);
        fail_with(left, 1, TR_CODE_FAULT, TR_RAN_YES, "error");
        call_instance(3, "watch", "left", 0);
        call_instance(4, "watch", "left", 0);
        begin(left, 2);
        tr_replica_retire(left->replica);
        answer(left, 2, 1);
        refused(call_with(message_new(5, "watch", 1), "left", 0, NULL), TR_CODE_ADDRESSEE);
        refused(call_with(tr_message_new(TR_MESSAGE_HANDLER, "typed", 5, "\xa1x", 2, 1), NULL, 0, NULL), TR_CODE_CONTRACT);
        /* what is no call of an operation has none */
        refused(call_with(message_new(6, "none", 1), NULL, 0, NULL), TR_CODE_NOT_FOUND);
        ck_assert_str_eq(spans, "get left 1 ok\n"
                                "get left 1 fault\n"
                                "watch - 0 addressee\n"
                                "watch left 1 ok\n"
                                "watch - 0 addressee\n"
                                "typed - 0 contract\n");
        fake.system->hooks.span = NULL;
}
END_TEST

START_TEST(traceparents) {
        static const char *const valid[] = {
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
                "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        };
        static const char *const invalid[] = {
                "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
                "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
                "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
                "00-00000000000000000000000000000000-b7ad6b7169203331-00",
                "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-00",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
                "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-00",
        };
        for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
                ck_assert(tr_traceparent_is_valid(valid[i], strlen(valid[i])));
        for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
                ck_assert_msg(!tr_traceparent_is_valid(invalid[i], strlen(invalid[i])), "%s", invalid[i]);
}
END_TEST

/* The end, and another manifest */

START_TEST(an_orderly_stop_serves_what_waits) {
        left = serve("left", 1);
        call(1, "get");
        call(2, "get");
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        refused(call_with(message_new(3, "get", 1), NULL, 0, NULL), TR_CODE_NOT_RUNNING);
        ck_assert_int_eq(left->stopped, 0);
        answer(left, 0, 1);
        answer(left, 1, 2);
        is_answer(1, 2, 2);
        ck_assert_int_eq(left->stopped, 1);
        ck_assert(tr_target_has_ended(&component->target));
        ck_assert_ptr_null(tr_component_find(fake.system, "media.streams", strlen("media.streams")));
}
END_TEST

START_TEST(a_stop_with_nobody_there) {
        call(1, "get");
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        is_failure(0, 1, TR_CODE_STOPPED, TR_RAN_NO);
        ck_assert(tr_target_has_ended(&component->target));
}
END_TEST

START_TEST(a_kill_ends_all) {
        left = serve("left", 1);
        call(1, "get");
        call(2, "get");
        begin(left, 0);
        component->target.ops->kill(&component->target);
        is_failure(0, 2, TR_CODE_KILLED, TR_RAN_NO);
        ck_assert_int_eq(left->killed, 1);
        die(left);
        is_failure(1, 1, TR_CODE_STOPPED, TR_RAN_MAYBE);
}
END_TEST

START_TEST(a_kill_is_an_orderly_stop_for_nobody) {
        left = serve("left", 1);
        right = serve("right", 1);
        call(1, "get");
        call(2, "get");
        begin(left, 0);
        begin(right, 0);
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        ck_assert_int_eq(left->stopped + right->stopped, 2);
        component->target.ops->kill(&component->target);
        ck_assert_int_eq(left->killed, 1);
        ck_assert_int_eq(right->killed, 1);
        ck_assert_int_eq(left->stopped + right->stopped, 2);
        die(left);
        die(right);
}
END_TEST

static void retire(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static void *stop_component(void *userdata) {
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        return NULL;
}

START_TEST(very_many_end_one_after_another) {
        enum {
                COUNT = 3000,
                STACK_BYTES = 256 << 10
        };
        static const struct tr_replica_ops ops = { .retired = tr_replica_died, .stop = retire, .kill = tr_replica_died };
        const struct tr_replica_options options = { .ops = &ops, .kind = "connection" };
        struct fake_server *server = server_new();
        for (int i = 0; i < COUNT; i++) {
                struct tr_replica *replica;
                ck_assert_ptr_null(tr_replica_join(component, &options, &server->target, &replica));
                tr_replica_hold(replica);
                tr_replica_unref(replica);
        }
        tr_target_unref(&server->target);
        /* They do not all stand on one stack. */
        pthread_attr_t attributes;
        pthread_t thread;
        ck_assert_int_eq(pthread_attr_init(&attributes), 0);
        ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
        ck_assert_int_eq(pthread_create(&thread, &attributes, stop_component, NULL), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
        ck_assert(tr_target_has_ended(&component->target));
}
END_TEST

START_TEST(names_of_components_are_taken) {
        struct tr_manifest *manifest = manifest_read("{\"name\": \"media.streams\", " OPERATIONS "}");
        refused(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, NULL), TR_CODE_TAKEN);
        tr_manifest_unref(manifest);
}
END_TEST

START_TEST(another_manifest) {
        struct tr_manifest *manifest =
                manifest_read("{\"name\": \"media.streams\", \"operations\": {\"get\": {}, \"watch\": {\"stateful\": true}}}");
        call(1, "put");
        call(2, "get");
        ck_assert_ptr_null(tr_component_replace(component, manifest));
        tr_manifest_unref(manifest);
        is_failure(0, 1, TR_CODE_NOT_FOUND, TR_RAN_NO);
        refused(call_with(message_new(3, "put", 1), NULL, 0, NULL), TR_CODE_NOT_FOUND);
        left = serve("left", 1);
        answer(left, 0, 1);
        is_answer(1, 2, 1);
}
END_TEST

suite_main_with("component", setup, teardown, waits_until_somebody_serves, context_says_what_a_replica_has_to_know,
                goes_to_who_has_least_in_hand, queue_has_a_bound, refused_before_anything_is_sent, output_is_checked,
                output_that_has_no_plain_form,
                exception_is_the_answer, another_answers_when_one_dies, one_that_was_interrupted_is_first, not_begun_is_no_delivery,
                three_deaths_are_undeliverable, second_answer_settles_nothing, taken_back_while_queued_never_runs,
                taken_back_before_it_began_leaves_room, settled_by_its_asker_alone_does_not_begin,
                taken_back_while_running_is_told_and_its_answer_discarded, deadline_of_an_ordinary_call,
                addressed_call_is_answered_by_who_holds_the_name, addressed_calls_come_before_the_component_s, nobody_holds_the_name,
                death_under_addressed_calls, deadline_of_an_addressed_call, names_are_held_once, generated_names_differ,
                successor_takes_the_name_over, what_waits_for_a_name_goes_to_its_successor,
                some_serve_some_operations, congestion_passes, congestion_that_has_passed_is_none,
                too_large_for_a_replica, told_to_retire_while_it_refuses, stopped_while_the_last_call_is_refused, declared_errors,
                chains_are_bounded, each_call_has_a_span, traceparents, an_orderly_stop_serves_what_waits, a_stop_with_nobody_there, a_kill_ends_all,
                a_kill_is_an_orderly_stop_for_nobody, very_many_end_one_after_another,
                names_of_components_are_taken, another_manifest);
