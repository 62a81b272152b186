/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks without memory: each allocation from a component's declaration to its end fails in turn. Whatever fails, a task that was accepted
 * is run to its end, or is in the store when the component has ended; and nothing is left (which AddressSanitizer's leak check sees). The
 * store is a table that allocates nothing but what it answers.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/component.h"
#include "daemon/core/replica.h"
#include "daemon/core/session.h"
#include "daemon/core/stock.h"
#include "daemon/core/system.h"
#include "daemon/core/task.h"
#include "tests/unit/failing.h"
#include "tests/unit/fake_behaviour.h"
#include "tests/unit/suite.h"

#define ROWS 8
#define INPUT_MAX 64
#define TASKS 3

/* Not ck_assert(), which allocates. */
static void must(bool holds) {
        if (!holds)
                abort();
}

static int64_t elapsed_ms;

static uint64_t monotonic_ns(void) {
        return (uint64_t)(1000000 + elapsed_ms) * TR_NS_PER_MS;
}

static int64_t wall_ms(void) {
        return INT64_C(1800000000000) + elapsed_ms;
}

/* The store */

static struct row {
        enum { FREE, WAITING, RUNNING, PARKED } state;
        bool loaded;
        char id[TR_STORE_ID_LEN + 1];
        char operation[16];
        uint8_t input[INPUT_MAX];
        size_t input_bytes;
        int64_t due_ms;
        uint32_t runs;
} rows[ROWS];
static unsigned int ids;
static struct tr_list jobs;

static struct row *find(const char *id) {
        for (int i = 0; i < ROWS; i++)
                if (rows[i].state != FREE && strcmp(rows[i].id, id) == 0)
                        return &rows[i];
        return NULL;
}

static void add(struct tr_store_job *job) {
        struct row *row = rows;
        while (row->state != FREE)
                row++;
        must(row < rows + ROWS && job->task.input_bytes <= INPUT_MAX);
        *row = (struct row){ .state = WAITING, .input_bytes = job->task.input_bytes, .due_ms = job->task.due_ms };
        snprintf(row->id, sizeof(row->id), "%032x", ++ids);
        snprintf(row->operation, sizeof(row->operation), "%s", job->task.operation);
        memcpy(row->input, job->task.input, job->task.input_bytes);
        memcpy(job->new_id, row->id, sizeof(row->id));
        job->value = malloc(1);
        if (job->value) {
                job->value[0] = 0xc0;
                job->value_bytes = 1;
        } else {
                row->state = FREE;
                job->failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
}

static void load(struct tr_store_job *job) {
        job->next_ms = TR_STORE_NEVER;
        job->tasks = calloc(ROWS, sizeof(*job->tasks));
        if (!job->tasks) {
                job->failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
                return;
        }
        for (struct row *row = rows; row < rows + ROWS; row++) {
                if (row->state != WAITING || (row->loaded && !job->fresh))
                        continue;
                row->loaded = row->due_ms <= job->now_ms;
                if (!row->loaded) {
                        job->next_ms = row->due_ms < job->next_ms ? row->due_ms : job->next_ms;
                        continue;
                }
                struct tr_store_task *task = &job->tasks[job->tasks_count++];
                *task = (struct tr_store_task){ .component = job->component, .operation = row->operation, .input = row->input,
                                                .input_bytes = row->input_bytes, .depth = 1, .due_ms = row->due_ms,
                                                .expires_ms = row->due_ms + 1000000, .delayed = true, .runs = row->runs };
                memcpy(task->id, row->id, sizeof(row->id));
        }
}

static void do_job(struct tr_store_job *job) {
        struct row *row = job->id ? find(job->id) : NULL;
        switch (job->kind) {
        case TR_STORE_TASK_ADD:
                add(job);
                return;
        case TR_STORE_TASK_LOAD:
                load(job);
                return;
        case TR_STORE_TASK_BEGIN:
                if (!row || !row->loaded)
                        abort();
                row->state = RUNNING;
                row->runs = job->task.runs;
                return;
        case TR_STORE_TASK_AGAIN:
        case TR_STORE_TASK_PARK:
                if (!row || !row->loaded)
                        abort();
                row->state = job->kind == TR_STORE_TASK_PARK ? PARKED : WAITING;
                row->loaded = false;
                row->due_ms = job->due_ms;
                row->runs = job->task.runs;
                return;
        case TR_STORE_TASK_END:
                if (!row || !row->loaded)
                        abort();
                row->state = FREE;
                return;
        default: /* names */
                return;
        }
}

static void submit(struct tr_store *store, struct tr_store_job *job) {
        tr_list_append(&jobs, &job->link);
}

static const struct tr_store_ops store_ops = { .submit = submit };
static struct tr_store store = { &store_ops };

/* A replica, that answers at once, but its first task with a fault. */

struct server {
        struct tr_target target;
        struct tr_replica *replica;
        struct tr_message *posted[ROWS * 4];
        size_t count, answered;
        bool closed;
};

static struct fake_system fake;
static struct fake_asker asker;
static struct tr_manifest *manifest;

static enum tr_post server_post(struct tr_target *target, struct tr_list *messages) {
        struct server *server = (struct server *)target;
        struct tr_message *message;
        if (server->closed)
                return TR_POST_CLOSED;
        while ((message = tr_list_first(messages, struct tr_message, link))) {
                tr_list_unlink(&message->link);
                must(server->count < ROWS * 4);
                server->posted[server->count++] = message;
        }
        return TR_POST_OK;
}

static void server_free(struct tr_target *target) {
        tr_target_deinit(target);
        free(target);
}

static const struct tr_target_ops server_ops = { .kind = TR_TARGET_CONNECTION, .post = server_post, .free = server_free };

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

static const struct tr_replica_ops replica_ops = { .retired = tr_replica_died, .stop = on_stop, .kill = tr_replica_died };

static struct server *server_new(void) {
        struct server *server = calloc(1, sizeof(*server));
        must(server && tr_target_init(&server->target, &server_ops, fake.system, 0, "server", "") == 0);
        return server;
}

static void server_drop(struct server *server) {
        for (size_t i = 0; i < server->count; i++)
                tr_message_unref(server->posted[i]);
        tr_replica_unref(server->replica);
        tr_target_unref(&server->target);
}

static void serve(struct tr_component *component, struct server *server, const char *instance) {
        const struct tr_replica_options options = {
                .ops = &replica_ops, .userdata = server, .instance = instance, .concurrency = 2, .kind = "connection",
        };
        struct tr_failure *failure = tr_replica_join(component, &options, &server->target, &server->replica);
        if (!failure)
                tr_replica_hold(server->replica);
        tr_failure_unref(failure);
}

static void answer(struct server *server, bool fault) {
        static const uint8_t one[] = { 1 };
        struct tr_message *message = server->posted[server->answered++];
        if (!tr_message_begin(message))
                return;
        if (!fault) {
                tr_message_resolve(message, one, sizeof(one), false);
                return;
        }
        struct tr_failure *failure = tr_failure_new(TR_CODE_FAULT, "it raised");
        tr_message_reject(message, failure, TR_RAN_YES);
        tr_failure_unref(failure);
}

/* What the store has to do, and the timers. */
static void settle(void) {
        struct tr_store_job *job;
        tr_system_run_due(fake.system, tr_clock_ns());
        while ((job = tr_list_first(&jobs, struct tr_store_job, link))) {
                tr_list_unlink(&job->link);
                do_job(job);
                job->done(job);
        }
}

static void accept(struct tr_component *component, struct tr_message *message, uint64_t delay_ms) {
        const struct tr_task_options options = { .key = "k", .key_len = 1, .delay_ms = delay_ms, .expires_ms = delay_ms ? 1000000 : 0 };
        struct tr_failure *failure = tr_task_accept(component, &options, message);
        if (!failure)
                return;
        must(failure->code == TR_CODE_NO_MEMORY);
        tr_message_reject(message, failure, TR_RAN_NO); /* so that each has an outcome */
        tr_failure_unref(failure);
        tr_message_unref(message);
}

/* What tasks go through; the messages and the replicas' targets are made before. Answers whether it was declared. */
static bool live(struct tr_message *messages[TASKS], struct server *left, struct server *right) {
        struct tr_component *component;
        struct tr_failure *failure = tr_component_declare(fake.system, fake.system->daemon_session, manifest, 0, 0, &component);
        if (failure) {
                must(failure->code == TR_CODE_NO_MEMORY);
                tr_failure_unref(failure);
                for (int i = 0; i < TASKS; i++)
                        tr_message_unref(messages[i]);
                return false;
        }
        settle();
        serve(component, left, "left");
        accept(component, messages[0], 0);
        accept(component, messages[1], 1500);
        settle();
        for (int round = 0; round < 12; round++) {
                bool fault = round == 0;
                while (left->answered < left->count)
                        answer(left, fault);
                while (right->answered < right->count)
                        answer(right, false);
                settle();
                if (round == 4) { /* it dies, with a task that has begun where there is one */
                        accept(component, messages[2], 0);
                        settle();
                        left->closed = true;
                        if (left->replica)
                                tr_replica_died(left->replica);
                        failure = tr_failure_new(TR_CODE_DISCONNECTED, "it is gone");
                        for (; left->answered < left->count; left->answered++) {
                                (void)!tr_message_begin(left->posted[left->answered]);
                                tr_message_reject(left->posted[left->answered], failure, TR_RAN_MAYBE);
                        }
                        tr_failure_unref(failure);
                        settle();
                        serve(component, right, "right");
                }
                elapsed_ms += 1300;
                settle();
        }
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        settle();
        must(tr_target_has_ended(&component->target));
        must(component->tasks.waiting == 0 && component->tasks.held_count == 0);
        tr_component_unref(component);
        return true;
}

static void read_manifest(void) {
        static const char text[] = "{\"name\": \"work\", \"lost\": \"reopen\", \"operations\": {\"go\": {\"timeout\": 100000}, \"typed\": {\"output\":"
                                   " {\"type\": \"integer\"}}, \"reopen\": {}}}";
        struct tr_manifest_problem problem = { 0 };
        json_t *json = json_loads(text, 0, NULL);
        ck_assert_int_eq(tr_manifest_read(json, "/", &problem, &manifest), 0);
        json_decref(json);
}

START_TEST(each_allocation_of_a_task_s_life_fails) {
        static const char *const operations[TASKS] = { "go", "typed", "go" };
        tr_stock_disable();
        tr_clock_set_source(monotonic_ns);
        tr_clock_set_wall_source(wall_ms);
        read_manifest();
        long n = 0;
        do {
                struct tr_message *messages[TASKS];
                unsigned int accepted = 0;
                fake_system_init(&fake, 8);
                tr_list_init(&jobs);
                memset(rows, 0, sizeof(rows));
                fake.system->store = &store;
                fake_asker_init(&asker);
                struct server *left = server_new(), *right = server_new();
                for (uint64_t i = 0; i < TASKS; i++)
                        messages[i] = fake_message(&asker, i, operations[i], 1);
                failing_arm(++n);
                bool declared = live(messages, left, right);
                failing_arm(0);
                ck_assert_uint_eq(asker.count, declared ? TASKS : 0);
                for (size_t i = 0; i < asker.count; i++)
                        accepted += asker.outcomes[i].resolved;
                ck_assert_uint_ge(accepted, declared ? TASKS - 1 : 0);
                if (!right->replica && left->closed && declared) /* nobody is there to run what is left */
                        ck_assert(failing_hit());
                else
                        for (int i = 0; i < ROWS; i++)
                                ck_assert_msg(rows[i].state == FREE, "allocation %ld: task %d (%s) is in state %d after %u runs", n, i,
                                              rows[i].operation, rows[i].state, rows[i].runs);
                server_drop(left);
                server_drop(right);
                fake_system_deinit(&fake);
                fake_asker_deinit(&asker);
        } while (failing_hit());
        ck_assert_int_gt(n, 40);
        tr_manifest_unref(manifest);
}
END_TEST

suite_main("task_memory", each_allocation_of_a_task_s_life_fails);
