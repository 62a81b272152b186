/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections as replicas. The replica and its callee hold each other, until serving_end(), which anybody may come to: the loop, where the
 * connection ends; whoever has the component stop; whoever settles the last call of one that retires. The first does it. The serving
 * lives as long as its replica: who is late has a reference to that.
 */
#include "config.h"

#include "daemon/io/serving.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/invocation.h"
#include "daemon/io/confined.h"
#include "daemon/io/server_internal.h"

/* Of a notification `cancel` at most. */
#define CANCEL_BYTES 16

struct serving {
        struct tr_callee callee; /* its label is the component's name */
        bool is_told;            /* of calls that nobody waits for any more: it chose no method */

        /* Guarded by the connection's lock. */
        struct tr_list link;        /* in connection->servings, which has a reference */
        struct tr_replica *replica; /* strong, while it is listed */
        bool over;
        bool relieving; /* it is to be told that there is room */
};

static const struct tr_target_ops serving_ops;

static struct serving *serving_of(struct tr_replica *replica) {
        return replica->userdata;
}

/* Its end */

/* True for the first, who gets the references that the list had; NULL where it was not in it yet. */
static bool serving_delist(struct serving *serving, struct tr_target **ret_target, struct tr_replica **ret_replica) {
        struct tr_connection *connection = tr_callee_connection(&serving->callee);
        if (!connection)
                return false;
        tr_lock_acquire(&connection->lock);
        bool first = !serving->over;
        if (first) {
                serving->over = true;
                *ret_target = tr_list_is_empty(&serving->link) ? NULL : &serving->callee.target;
                *ret_replica = tr_steal(serving->replica);
                tr_list_unlink(&serving->link);
        }
        tr_lock_release(&connection->lock);
        tr_connection_unref(connection);
        return first;
}

/* The replica holds the serving, and is the caller's. */
static void serving_end(struct serving *serving, struct tr_replica *replica) {
        struct tr_list asks = TR_LIST_INIT(asks), waiting = TR_LIST_INIT(waiting);
        struct tr_target *target;
        struct tr_replica *listed;
        if (!serving_delist(serving, &target, &listed))
                return;
        struct tr_connection *connection = tr_callee_leave(&serving->callee, &asks, &waiting);
        /* Before what it had is rejected: that goes to others. */
        tr_replica_died(replica);
        tr_callee_drop_waiting(&serving->callee, &waiting);
        tr_callee_reject_all(&asks);
        tr_target_end(&serving->callee.target, NULL);
        tr_target_unref(target);
        tr_replica_unref(listed);
        tr_connection_unref(connection);
}

/* What its component tells it: any thread. */

static void write_cancel(struct tr_writer *writer, uint32_t id) {
        tr_write_array(writer, 3);
        tr_write_int(writer, TR_FRAME_NOTIFICATION);
        tr_write_text(writer, "cancel");
        tr_write_array(writer, 1);
        tr_write_uint(writer, id);
}

/* A hint: a client that leaves too much unread goes without. */
static void on_cancel(struct tr_replica *replica, struct tr_message *delivery) {
        struct serving *serving = serving_of(replica);
        struct tr_connection *connection = serving->is_told ? tr_callee_connection(&serving->callee) : NULL;
        if (!connection)
                return;
        tr_lock_acquire(&connection->lock);
        struct tr_output *output = &connection->output;
        if (connection->fd >= 0 && tr_calls_has_sent(&connection->outgoing.calls, delivery) &&
            tr_output_waiting(output) + CANCEL_BYTES <= output->max_bytes) {
                size_t begin = tr_output_begin(output);
                write_cancel(&output->writer, delivery->call_id);
                if (tr_output_end(output, begin) == 0)
                        tr_connection_deliver_locked(connection, false);
        }
        tr_lock_release(&connection->lock);
        tr_connection_unref(connection);
}

static void on_retired(struct tr_replica *replica) {
        serving_end(serving_of(replica), replica);
}

static void on_stop(struct tr_replica *replica, enum tr_stop_reason reason) {
        tr_replica_retire(replica);
}

/* At once: it is killed, or nobody waits for what it has. Its client goes on with that, and its answers are ignored. */
static void on_over(struct tr_replica *replica) {
        serving_end(serving_of(replica), replica);
}

static void on_release(struct tr_replica *replica) {
        tr_target_unref(&serving_of(replica)->callee.target);
}

static const struct tr_replica_ops replica_ops = {
        .cancel = on_cancel,
        .retired = on_retired,
        .stop = on_stop,
        .forsaken = on_over,
        .kill = on_over,
        .release = on_release,
};

/* What the client answers: loop thread. */

/* An error that the operation declares: NAME, or [NAME, data?]. */
static bool is_declared(const struct tr_operation *operation, const struct tr_span *error, struct tr_token *ret_name,
                        struct tr_span *ret_data) {
        struct tr_reader reader = tr_reader(error->data, error->bytes);
        struct tr_token data;
        *ret_data = (struct tr_span){ 0 };
        if (tr_read(&reader, ret_name) != 0)
                return false;
        if (ret_name->type == TR_ARRAY) {
                uint32_t count = ret_name->count;
                if (count < 1 || count > 2 || tr_read(&reader, ret_name) != 0)
                        return false;
                struct tr_reader at = reader;
                if (count == 2 && tr_read(&at, &data) == 0 && data.type != TR_NIL)
                        *ret_data = (struct tr_span){ reader.at, (size_t)(reader.end - reader.at) };
        }
        return tr_token_is_text(ret_name) && tr_operation_declares(operation, (const char *)ret_name->data, ret_name->len);
}

static struct tr_failure *error_failure(struct tr_callee *callee, const struct tr_message *message, const struct tr_span *error) {
        const struct tr_operation *operation = tr_delivery_operation(message);
        struct tr_token name;
        struct tr_span data;
        if (operation && is_declared(operation, error, &name, &data))
                return tr_operation_error(operation, (const char *)name.data, name.len, data.data, data.bytes);
        return tr_callee_fault(callee, message, error);
}

/* Its beginning: loop thread. */

static struct tr_failure *no_memory(void) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a replica");
}

static struct tr_failure *serving_new(struct tr_connection *connection, struct tr_component *component,
                                      const struct tr_chosen_options *chosen, struct serving **ret_serving) {
        struct serving *serving = calloc(1, sizeof(*serving));
        if (!serving || tr_callee_init(&serving->callee, &serving_ops, connection, component->target.label) < 0) {
                free(serving);
                return no_memory();
        }
        tr_list_init(&serving->link);
        serving->callee.failure = error_failure;
        serving->is_told = !chosen->method.data;
        struct tr_failure *failure = tr_chosen_init(&serving->callee.chosen, chosen, "call");
        if (failure)
                tr_target_unref(&serving->callee.target);
        else
                *ret_serving = serving;
        return failure;
}

static struct tr_failure *serving_join(struct serving *serving, struct tr_component *component,
                                       const struct tr_serving_options *options, struct tr_replica **ret_replica) {
        const struct tr_connection *connection = serving->callee.connection;
        const struct tr_peer *peer = &connection->peer;
        struct tr_replica_options replica = {
                .ops = &replica_ops,
                .userdata = serving,
                .instance = options->instance,
                .concurrency = options->concurrency,
                .operations = options->operations,
                .uid = peer->uid,
                .pid = peer->pid,
                .kind = "connection",
        };
        struct tr_failure *failure = tr_confined_check_serve(connection, component->target.label, &replica);
        if (failure)
                return failure;
        tr_target_ref(&serving->callee.target); /* the replica's */
        failure = tr_replica_join(component, &replica, &serving->callee.target, ret_replica);
        if (failure)
                tr_target_unref(&serving->callee.target);
        return failure;
}

static struct serving *serving_find_locked(struct tr_connection *connection, const char *component, size_t len)
        TR_REQUIRES(connection->lock) {
        struct serving *serving;
        tr_list_for_each(serving, &connection->servings, link) {
                const char *label = serving->callee.target.label;
                if (strlen(label) == len && memcmp(label, component, len) == 0)
                        return serving;
        }
        return NULL;
}

static bool is_serving(struct tr_connection *connection, const char *component) {
        tr_lock_acquire(&connection->lock);
        bool found = serving_find_locked(connection, component, strlen(component));
        tr_lock_release(&connection->lock);
        return found;
}

/* Takes both references; of one that is over already, drops them. */
static void serving_enlist(struct tr_connection *connection, struct serving *take_serving, struct tr_replica *take_replica) {
        tr_lock_acquire(&connection->lock);
        connection->outgoing.held = true;
        bool over = take_serving->over;
        if (!over) {
                tr_list_append(&connection->servings, &take_serving->link);
                take_serving->replica = take_replica;
        }
        tr_lock_release(&connection->lock);
        if (over) {
                tr_replica_unref(take_replica);
                tr_target_unref(&take_serving->callee.target);
        }
}

struct tr_failure *tr_serving_begin(struct tr_connection *connection, struct tr_component *component,
                                    const struct tr_serving_options *options, char ret_instance[static TR_NAME_MAX + 1]) {
        struct serving *serving;
        struct tr_replica *replica;
        if (is_serving(connection, component->target.label))
                return tr_failure_new(TR_CODE_TAKEN, "this connection serves %s already", component->target.label);
        struct tr_failure *failure = serving_new(connection, component, &options->chosen, &serving);
        if (failure)
                return failure;
        failure = serving_join(serving, component, options, &replica);
        if (failure) {
                tr_target_unref(&serving->callee.target);
                return failure;
        }
        memcpy(ret_instance, replica->instance, sizeof(replica->instance));
        serving_enlist(connection, serving, tr_replica_ref(replica));
        tr_replica_hold(replica);
        tr_confined_tell_serves(connection, replica);
        tr_replica_unref(replica);
        return NULL;
}

void tr_serving_release(struct tr_connection *connection) {
        struct tr_list done = TR_LIST_INIT(done);
        tr_lock_acquire(&connection->lock);
        connection->outgoing.held = false;
        tr_callee_feed_locked(connection, &done);
        tr_lock_release(&connection->lock);
        tr_callee_drop(&done);
}

struct tr_failure *tr_serving_withdraw(struct tr_connection *connection, const char *component, size_t len, struct tr_target **ret_target) {
        tr_lock_acquire(&connection->lock);
        struct serving *serving = serving_find_locked(connection, component, len);
        struct tr_replica *replica = serving ? tr_replica_ref(serving->replica) : NULL;
        tr_lock_release(&connection->lock);
        if (!replica)
                return tr_failure_new(TR_CODE_NOT_FOUND, "this connection does not serve %.*s", (int)len, component);
        *ret_target = tr_target_ref(&serving_of(replica)->callee.target);
        struct tr_target *target = tr_replica_target(replica);
        if (target)
                tr_replica_retire(replica);
        else /* it is gone already, and its connection is not yet: a process that has ended */
                serving_end(serving_of(replica), replica);
        tr_target_unref(target);
        tr_replica_unref(replica);
        return NULL;
}

void tr_serving_end_all(struct tr_connection *connection) {
        for (;;) {
                tr_lock_acquire(&connection->lock);
                struct serving *serving = tr_list_first(&connection->servings, struct serving, link);
                struct tr_replica *replica = serving ? tr_replica_ref(serving->replica) : NULL;
                tr_lock_release(&connection->lock);
                if (!replica)
                        return;
                serving_end(serving_of(replica), replica);
                tr_replica_unref(replica);
        }
}

/* The next of those that are to be told; a reference, or NULL. */
static struct tr_replica *next_to_relieve(struct tr_connection *connection) {
        struct serving *serving;
        struct tr_replica *replica = NULL;
        tr_lock_acquire(&connection->lock);
        tr_list_for_each(serving, &connection->servings, link) {
                if (!serving->relieving)
                        continue;
                serving->relieving = false;
                replica = tr_replica_ref(serving->replica);
                break;
        }
        tr_lock_release(&connection->lock);
        return replica;
}

void tr_serving_relieve(struct tr_connection *connection) {
        struct tr_outgoing *outgoing = &connection->outgoing;
        struct serving *serving;
        struct tr_replica *replica;
        /* relaxed: who set it held the lock, under which room was made after */
        if (!atomic_load_explicit(&outgoing->congested, memory_order_relaxed))
                return;
        tr_lock_acquire(&connection->lock);
        if (tr_outgoing_has_room(outgoing, &connection->output, true, TR_CALL_BYTES)) {
                atomic_store_explicit(&outgoing->congested, false, memory_order_relaxed);
                tr_list_for_each(serving, &connection->servings, link) {
                        serving->relieving = serving->callee.congested;
                        serving->callee.congested = false;
                }
        }
        tr_lock_release(&connection->lock);
        /* One that is refused again is congested again, but not told a second time now. */
        while ((replica = next_to_relieve(connection))) {
                tr_replica_relieved(replica);
                tr_replica_unref(replica);
        }
}

/* As a target, which has no handle that anybody knows. */

static void on_target_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
}

static void on_target_kill(struct tr_target *target) {
}

static uint32_t on_target_info(struct tr_target *target, struct tr_writer *writer) {
        return 0;
}

static void on_target_free(struct tr_target *target) {
        struct serving *serving = tr_container_of(target, struct serving, callee.target);
        tr_callee_deinit(&serving->callee);
        free(serving);
}

static const struct tr_target_ops serving_ops = {
        .kind = TR_TARGET_CONNECTION,
        .post = tr_callee_post,
        .stop = on_target_stop,
        .kill = on_target_kill,
        .info = on_target_info,
        .free = on_target_free,
};
