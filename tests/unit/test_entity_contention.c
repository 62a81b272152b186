/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many calls that change the same entities, from several threads, with the store as the daemon has it (in memory): no change is lost and
 * none is made twice; and, while calls are taken back, deadlines pass and replicas die, each ends once.
 */
#define SUITE_TIMEOUT_S 300
#include <jansson.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/context.h"
#include "daemon/core/invocation.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/stock.h"
#include "daemon/store/sqlite_store.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

#define CALLERS 2
#define INCREMENTS 400
#define CHAOS_CALLS 3000
#define CHAOS_ENTITIES 5
#define DEATHS 40

/* A replica whose thread answers what it has, in no order. */
struct server {
        struct tr_target target;
        struct tr_replica *replica;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct tr_list queue; /* of messages, each a reference */
        bool closed;
        uint32_t random; /* its thread's */
};

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_component *component;
static struct tr_sqlite_store *store;
static _Atomic int callers_left;

static uint32_t next_random(uint32_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        return *state;
}

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct server *server = (struct server *)target;
        pthread_mutex_lock(&server->lock);
        bool closed = server->closed;
        if (!closed)
                tr_list_splice(&server->queue, messages);
        pthread_cond_signal(&server->changed);
        pthread_mutex_unlock(&server->lock);
        return closed ? TR_POST_CLOSED : TR_POST_OK;
}

static void server_free(struct tr_target *target) {
        struct server *server = (struct server *)target;
        pthread_mutex_destroy(&server->lock);
        pthread_cond_destroy(&server->changed);
        tr_target_deinit(target);
        free(server);
}

static const struct tr_target_ops server_ops = { .kind = TR_TARGET_CONNECTION, .post = server_post, .free = server_free };

/* The field n of an entity; 0 where it has none, or is not there. */
static int64_t number_in(const uint8_t *entity, size_t bytes) {
        struct tr_reader reader = tr_reader(entity, bytes);
        struct tr_token head, key, value;
        ck_assert_int_eq(tr_read(&reader, &head), 0);
        for (uint32_t i = 0; head.type == TR_MAP && i < head.count; i++) {
                ck_assert_int_eq(tr_read(&reader, &key), 0);
                ck_assert_int_eq(tr_read(&reader, &value), 0);
                if (tr_token_equals(&key, "n"))
                        return value.integer;
        }
        return 0;
}

/* One more than there is. */
static void increment(struct tr_message *message) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct tr_call_context context;
        tr_delivery_context(message, &context);
        ck_assert_ptr_nonnull(context.entity);
        int64_t n = number_in(context.entity, context.entity_bytes) + 1;
        tr_write_array(&writer, 2);
        tr_write_int(&writer, n);
        tr_write_map(&writer, 1);
        tr_write_text(&writer, "n");
        tr_write_int(&writer, n);
        tr_message_resolve(message, writer.data, writer.len, false);
        tr_writer_deinit(&writer);
}

static void *serve_all(void *data) {
        struct server *server = data;
        for (;;) {
                pthread_mutex_lock(&server->lock);
                while (tr_list_is_empty(&server->queue) && !server->closed)
                        pthread_cond_wait(&server->changed, &server->lock);
                struct tr_list *any = next_random(&server->random) % 2 ? server->queue.next : server->queue.prev;
                bool over = server->closed;
                if (!over)
                        tr_list_unlink(any);
                pthread_mutex_unlock(&server->lock);
                if (over)
                        break;
                struct tr_message *message = tr_container_of(any, struct tr_message, link);
                if (tr_message_begin(message))
                        increment(message);
                tr_message_unref(message);
        }
        tr_stock_hand_in();
        return NULL;
}

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static const struct tr_replica_ops replica_ops = { .retired = tr_replica_died, .stop = on_stop, .kill = tr_replica_died };

static struct server *serve(uint32_t seed) {
        const struct tr_replica_options options = { .ops = &replica_ops, .concurrency = 8, .kind = "connection" };
        struct server *server = calloc(1, sizeof(*server));
        ck_assert_ptr_nonnull(server);
        ck_assert_int_eq(tr_target_init(&server->target, &server_ops, fake.system, 0, "server", ""), 0);
        pthread_mutex_init(&server->lock, NULL);
        pthread_cond_init(&server->changed, NULL);
        tr_list_init(&server->queue);
        server->random = seed;
        ck_assert_ptr_null(tr_replica_join(component, &options, &server->target, &server->replica));
        ck_assert_int_eq(pthread_create(&server->thread, NULL, serve_all, server), 0);
        tr_replica_hold(server->replica);
        return server;
}

/* It dies with what it has not begun, which goes to others. */
static void die(struct server *server) {
        struct tr_list left = TR_LIST_INIT(left);
        struct tr_message *message;
        pthread_mutex_lock(&server->lock);
        server->closed = true;
        tr_list_splice(&left, &server->queue);
        pthread_cond_signal(&server->changed);
        pthread_mutex_unlock(&server->lock);
        tr_replica_died(server->replica);
        struct tr_failure *failure = tr_failure_new(TR_CODE_STOPPED, "it is gone");
        tr_list_for_each(message, &left, link) {
                tr_list_unlink(&message->link);
                tr_message_reject(message, failure, TR_RAN_MAYBE);
                tr_message_unref(message);
        }
        tr_failure_unref(failure);
        pthread_join(server->thread, NULL);
        tr_replica_unref(server->replica);
        tr_target_unref(&server->target);
}

static void setup(void) {
        static const char text[] = "{\"name\": \"counters\", \"queue\": 512, \"deliveries\": 1000, \"operations\":"
                                   " {\"up\": {\"type\": \"transition\"}, \"also\": {\"type\": \"transition\"}}}";
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest;
        char *why = NULL;
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
        fake_system_init(&fake, 64);
        fake_asker_init(&asker);
        ck_assert_int_eq(tr_sqlite_store_new(NULL, &store, &why), 0);
        fake.system->store = tr_sqlite_store_interface(store);
        ck_assert_ptr_null(tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component));
        tr_manifest_unref(manifest);
}

static bool has_ended(void *userdata) {
        return tr_target_has_ended(&component->target);
}

static void teardown(void) {
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        fake_system_run_until(&fake, has_ended, NULL);
        tr_sqlite_store_close(store);
        tr_component_unref(component);
        fake_system_deinit(&fake);
        fake_asker_deinit(&asker);
        tr_sqlite_store_free(store);
}

/* What the store has */

struct one_job {
        struct tr_store_job job;
        sem_t done;
};

static void on_read(struct tr_store_job *job) {
        sem_post(&tr_container_of(job, struct one_job, job)->done);
}

static struct tr_store_job do_job(struct tr_store_job job) {
        struct one_job read = { .job = job };
        read.job.done = on_read;
        read.job.component = "counters";
        sem_init(&read.done, 0, 0);
        tr_store_submit(fake.system->store, &read.job);
        while (sem_wait(&read.done) < 0)
                ;
        sem_destroy(&read.done);
        ck_assert_ptr_null(read.job.failure);
        return read.job;
}

static int64_t stored(const char *id) {
        struct tr_store_job job = do_job((struct tr_store_job){ .kind = TR_STORE_GET, .id = id });
        int64_t n = number_in(job.value, job.value_bytes);
        tr_store_job_deinit(&job);
        return n;
}

static void put(const char *id) {
        static const uint8_t empty[] = { 0x80 };
        struct tr_store_job job = do_job((struct tr_store_job){
                .kind = TR_STORE_WRITE, .id = id, .expect = 0, .document = empty, .document_bytes = sizeof(empty),
        });
        tr_store_job_deinit(&job);
}

/* Calls */

static const char *const ids[CHAOS_ENTITIES] = { "a", "b", "c", "d", "e" };

/* Answers it, which is kept; NULL where it was refused. */
static struct tr_message *call(uint64_t number, const char *operation, const char *id, uint64_t timeout_ns) {
        const struct tr_call_options options = { .id = id, .id_len = strlen(id), .timeout_ns = timeout_ns };
        struct tr_message *message = fake_message(&asker, number, operation, 1);
        message->form = TR_FORM_TYPED;
        tr_message_ref(message);
        struct tr_failure *failure = tr_component_call(component, message, &options);
        if (!failure)
                return message;
        ck_assert_int_eq(failure->code, TR_CODE_MAILBOX_FULL);
        tr_message_reject(message, failure, TR_RAN_NO);
        tr_failure_unref(failure);
        tr_message_unref(message);
        tr_message_unref(message);
        return NULL;
}

static void start(void *(*run)(void *), pthread_t threads[CALLERS]) {
        for (uint32_t i = 0; i < CALLERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
}

static void *increment_one(void *data) {
        uint64_t number = (uintptr_t)data;
        for (uint64_t i = 0; i < INCREMENTS / CALLERS; i++)
                tr_message_unref(call(number * INCREMENTS + i, i % 2 ? "up" : "also", "a", 0));
        tr_stock_hand_in();
        return NULL;
}

START_TEST(no_increment_is_lost) {
        pthread_t threads[CALLERS];
        bool seen[INCREMENTS + 1] = { 0 };
        put("a");
        struct server *left = serve(2463534242u), *right = serve(88172645u);
        start(increment_one, threads);
        fake_system_run_until_outcomes(&fake, &asker, INCREMENTS);
        for (uint32_t i = 0; i < CALLERS; i++)
                pthread_join(threads[i], NULL);
        for (size_t i = 0; i < INCREMENTS; i++) {
                ck_assert_msg(asker.outcomes[i].resolved, "%s", tr_code_text(asker.outcomes[i].code));
                struct tr_reader reader = tr_reader(asker.outcomes[i].value, asker.outcomes[i].bytes);
                struct tr_token number;
                ck_assert_int_eq(tr_read(&reader, &number), 0);
                ck_assert_int_ge(number.integer, 1);
                ck_assert_int_le(number.integer, INCREMENTS);
                ck_assert(!seen[number.integer]); /* each has made one of its own */
                seen[number.integer] = true;
        }
        ck_assert_int_eq(stored("a"), INCREMENTS);
        die(left);
        die(right);
}
END_TEST

/* Which entity a call is about is in its number. */
static void *cause_chaos(void *data) {
        uint64_t number = (uintptr_t)data;
        uint32_t random = 2463534242u + (uint32_t)number;
        for (uint64_t i = 0; i < CHAOS_CALLS; i++) {
                uint32_t dice = next_random(&random);
                uint64_t id = number * CHAOS_CALLS + i;
                struct tr_message *message =
                        call(id, dice % 2 ? "up" : "also", ids[id % CHAOS_ENTITIES], dice % 5 == 0 ? TR_NS_PER_MS : 0);
                bool begun;
                if (message && dice % 7 == 0 && tr_message_settle(message, &begun)) {
                        struct tr_failure *failure = tr_failure_new(TR_CODE_CANCELLED, "by the test");
                        tr_invocation_given_up(message);
                        message->asker->ops->reject(message->asker, message, failure, TR_RAN_MAYBE, false);
                        tr_failure_unref(failure);
                }
                tr_message_unref(message);
        }
        tr_stock_hand_in();
        atomic_fetch_sub(&callers_left, 1);
        return NULL;
}

START_TEST(each_call_ends_once_and_counts_once) {
        pthread_t threads[CALLERS];
        uint32_t resolved[CHAOS_ENTITIES] = { 0 }, perhaps[CHAOS_ENTITIES] = { 0 };
        bool *seen = calloc(CALLERS * CHAOS_CALLS, sizeof(*seen));
        ck_assert_ptr_nonnull(seen);
        for (int i = 0; i < CHAOS_ENTITIES; i++)
                put(ids[i]);
        struct server *servers[] = { serve(1), serve(2), serve(3) };
        atomic_store(&callers_left, CALLERS);
        start(cause_chaos, threads);
        for (uint32_t i = 0; i < DEATHS || atomic_load(&callers_left) > 0; i++) {
                size_t one = i % 3;
                fake_system_run_until_outcomes(&fake, &asker, i < DEATHS ? CALLERS * CHAOS_CALLS / DEATHS / 2 * i : 0);
                die(servers[one]);
                servers[one] = serve(i + 4);
        }
        for (uint32_t i = 0; i < CALLERS; i++)
                pthread_join(threads[i], NULL);
        fake_system_run_until_outcomes(&fake, &asker, CALLERS * CHAOS_CALLS);
        for (size_t i = 0; i < CALLERS * CHAOS_CALLS; i++) {
                const struct fake_outcome *outcome = &asker.outcomes[i];
                ck_assert_uint_lt(outcome->id, CALLERS * CHAOS_CALLS);
                ck_assert(!seen[outcome->id]);
                seen[outcome->id] = true;
                resolved[outcome->id % CHAOS_ENTITIES] += outcome->resolved;
                perhaps[outcome->id % CHAOS_ENTITIES] += !outcome->resolved && outcome->ran != TR_RAN_NO;
                ck_assert(outcome->resolved || outcome->code != TR_CODE_CONFLICT);
        }
        for (size_t i = 0; i < 3; i++)
                die(servers[i]);
        for (int i = 0; i < CHAOS_ENTITIES; i++) {
                int64_t n = stored(ids[i]);
                ck_assert_int_gt(resolved[i], 0);
                ck_assert_int_ge(n, resolved[i]);
                ck_assert_int_le(n, (int64_t)resolved[i] + perhaps[i]);
        }
        free(seen);
}
END_TEST

suite_main_with("entity_contention", setup, teardown, no_increment_is_lost, each_call_ends_once_and_counts_once);
