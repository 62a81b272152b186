/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes as notifications. Nil is written under the lock under which the request becomes pending, so it comes before
 * the outcome, whoever writes that.
 */
#include "config.h"

#include "daemon/io/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"
#include "proto/frame.h"

/* The ids of requests are below. */
#define REPLY_IDS (UINT64_C(1) << 32)
/* Bytes of a frame beside the chosen method and the result: its head and type, that of [error, result], nil. */
#define REPLY_HEAD_BYTES 4

static struct tr_connection *connection_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_connection, reply_asker);
}

static struct tr_response_form form_of(const struct tr_message *message) {
        return (struct tr_response_form){ .errors = message->errors, .values = message->form };
}

static void reply_begin(const struct tr_message *message, struct tr_writer *writer) {
        tr_write_array(writer, 3);
        tr_write_int(writer, TR_FRAME_NOTIFICATION);
        tr_chosen_write(message->ask.data, writer);
        tr_write_array(writer, 2);
}

static void reply_write_failure(const struct tr_message *message, struct tr_writer *writer,
                                const struct tr_failure *failure, enum tr_ran ran) {
        struct tr_response_form form = form_of(message);
        reply_begin(message, writer);
        tr_response_write_error(writer, &form, failure, ran);
        tr_write_nil(writer);
}

/* Ends the writing of one, as it is with answers. */
static void reply_end_locked(struct tr_connection *connection, const struct tr_message *message, size_t begin)
        TR_REQUIRES(connection->lock) {
        struct tr_output *output = &connection->output;
        int r = tr_output_end(output, begin);
        if (r == -ENOMEM) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                reply_write_failure(message, &output->writer, failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
                r = tr_output_end(output, begin);
        }
        tr_connection_written_locked(connection, r);
}

static void write_too_large(struct tr_connection *connection, const struct tr_message *message)
        TR_REQUIRES(connection->lock) {
        struct tr_failure *failure = tr_failure_new(
                TR_CODE_TOO_LARGE, "the answer is larger than limits.frame allows (%zu bytes)", connection->frame_max);
        reply_write_failure(message, &connection->output.writer, failure, TR_RAN_YES);
        tr_failure_unref(failure);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        struct tr_connection *connection = connection_of(asker);
        const struct tr_chosen *chosen = message->ask.data;

        tr_lock_acquire(&connection->lock);
        if (tr_pending_remove(&connection->pending, message)) {
                struct tr_writer *writer = &connection->output.writer;
                size_t begin = tr_output_begin(&connection->output);
                if (REPLY_HEAD_BYTES + chosen->head.len + bytes > connection->frame_max) {
                        write_too_large(connection, message);
                } else {
                        reply_begin(message, writer);
                        tr_write_nil(writer);
                        tr_write_raw(writer, value, bytes);
                }
                reply_end_locked(connection, message, begin);
                tr_connection_deliver_locked(connection, more);
        }
        tr_lock_release(&connection->lock);
}

void tr_reply_reject_locked(struct tr_connection *connection, struct tr_message *message, struct tr_failure *failure,
                            enum tr_ran ran) {
        size_t begin = tr_output_begin(&connection->output);
        reply_write_failure(message, &connection->output.writer, failure, ran);
        reply_end_locked(connection, message, begin);
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        struct tr_connection *connection = connection_of(asker);
        tr_lock_acquire(&connection->lock);
        if (tr_pending_remove(&connection->pending, message)) {
                tr_reply_reject_locked(connection, message, failure, ran);
                tr_connection_deliver_locked(connection, more);
        }
        tr_lock_release(&connection->lock);
}

static void on_flush(struct tr_asker *asker) {
        struct tr_connection *connection = connection_of(asker);
        connection->asker.ops->flush(&connection->asker);
}

static void on_forget(struct tr_asker *asker, struct tr_message *message) {
        struct tr_chosen *chosen = message->ask.data;
        if (!chosen)
                return;
        /* relaxed: a bound, that nothing else depends on */
        atomic_fetch_sub_explicit(&connection_of(asker)->reply_bytes, chosen->head.len,
                                  memory_order_relaxed);
        tr_chosen_deinit(chosen);
        free(chosen);
}

static void on_ref(struct tr_asker *asker) {
        tr_connection_ref(connection_of(asker));
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        tr_connection_unref_many(connection_of(asker), count);
}

const struct tr_asker_ops tr_reply_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .flush = on_flush,
        .forget = on_forget,
        .ref = on_ref,
        .unref = on_unref,
};

/* Has the message keep what was chosen: NULL, or why not. */
static struct tr_failure *reply_attach(struct tr_connection *connection, struct tr_message *message,
                                       const struct tr_chosen_options *options) {
        struct tr_chosen *chosen = malloc(sizeof(*chosen));
        if (!chosen)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
        struct tr_failure *failure = tr_chosen_init(chosen, options, "");
        if (failure) {
                free(chosen);
                return failure;
        }
        message->ask.data = chosen;
        uint64_t bytes = atomic_fetch_add_explicit(&connection->reply_bytes, chosen->head.len, memory_order_relaxed);
        if (bytes + chosen->head.len > connection->output.max_bytes)
                return tr_failure_new(TR_CODE_BUSY, "the methods and params of replies to come are %" PRIu64
                                      " bytes, and limits.output allows no more", bytes);
        return NULL;
}

struct tr_failure *tr_reply_sign(struct tr_connection *connection, struct tr_message *message,
                                 const struct tr_chosen_options *options, uint64_t timeout_ns) {
        struct tr_failure *failure = tr_connection_sign(connection, message, 0, timeout_ns);
        message->asker = &connection->reply_asker;
        message->lone = false;
        message->ask.id = REPLY_IDS + connection->replies_total++;
        return failure ? failure : reply_attach(connection, message, options);
}

struct tr_failure *tr_reply_expect(struct tr_request *request, struct tr_message *message,
                                   const struct tr_chosen_options *options, uint64_t timeout_ns) {
        struct tr_connection *connection = request->connection;
        message->caller_uid = connection->peer.uid;
        struct tr_failure *failure = tr_reply_sign(connection, message, options, timeout_ns);
        if (failure)
                return failure;
        tr_lock_acquire(&connection->lock);
        failure = tr_connection_expect_locked(connection, message);
        if (!failure && request->wants_answer)
                tr_connection_acknowledge_locked(connection, request->id);
        tr_lock_release(&connection->lock);
        request->deferred = !failure;
        return failure;
}
