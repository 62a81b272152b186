/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posting to a client, and how a callee begins and ends. Any thread.
 */
#include "config.h"

#include "daemon/io/callee.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/context.h"
#include "daemon/core/system.h"
#include "daemon/io/no_plain.h"
#include "daemon/io/server_internal.h"

/* Slots that each ask looks at for others that were given up, and that one does which finds no room. */
#define SWEEP_SOME 2
#define SWEEP_MANY 512
/* Bytes of a frame beside the chosen method, the handler's name and the arguments: its head and theirs. */
#define CALL_HEAD_BYTES 17

int tr_callee_init(struct tr_callee *callee, const struct tr_target_ops *ops, struct tr_connection *connection, const char *label) {
        struct tr_server *server = connection->server;
        int r = tr_target_init(&callee->target, ops, server->system, connection->peer.uid, label, "");
        if (r < 0)
                return tr_error_fold(r);
        tr_lock_acquire(&connection->lock);
        connection->outgoing.asks_max = server->limits.requests;
        tr_lock_release(&connection->lock);
        callee->connection = tr_connection_ref(connection);
        return 0;
}

void tr_callee_deinit(struct tr_callee *callee) {
        tr_connection_unref(callee->connection);
        tr_chosen_deinit(&callee->chosen);
        tr_target_deinit(&callee->target);
}

struct tr_connection *tr_callee_connection(struct tr_callee *callee) {
        tr_lock_acquire(&callee->target.lock);
        struct tr_connection *connection = callee->connection ? tr_connection_ref(callee->connection) : NULL;
        tr_lock_release(&callee->target.lock);
        return connection;
}

/* A delivery's, behind its input. */
static void write_context(const struct tr_message *message, struct tr_writer *writer) {
        struct tr_call_context context;
        tr_delivery_context(message, &context);
        tr_writer_reserve(writer, tr_delivery_context_bytes_max(message)); /* at once; a failure is remembered */
        tr_call_context_write(&context, writer);
}

int tr_callee_write_locked(struct tr_callee *callee, struct tr_connection *connection, struct tr_message *message, uint32_t id,
                           const struct tr_span *args) {
        struct tr_output *output = &connection->output;
        struct tr_writer *writer = &output->writer;
        size_t begin = tr_output_begin(output);

        tr_write_array(writer, message->asker ? 4 : 3);
        tr_write_int(writer, message->asker ? TR_FRAME_REQUEST : TR_FRAME_NOTIFICATION);
        if (message->asker)
                tr_write_uint(writer, id);
        tr_chosen_write(&callee->chosen, writer);
        tr_write_array(writer, 1 + message->args_count + (message->behalf != NULL));
        tr_write_string(writer, tr_message_handler(message), message->handler_len);
        tr_write_raw(writer, args->data, args->bytes);
        if (message->behalf)
                write_context(message, writer);
        if (tr_writer_error(writer)) {
                writer->error = 0;
                writer->len = begin;
                return tr_error_origin(-ENOMEM);
        }
        if (!tr_message_begin(message)) {
                writer->len = begin;
                return 1;
        }
        output->called_to = output->sent_total + tr_output_waiting(output);
        return 0;
}

/* One message while it is posted. */
struct posting {
        struct tr_message *message;
        struct tr_writer plain; /* its arguments in that form; empty where they go out as they are */
        struct tr_span args;    /* as they go out */
        struct tr_list *done;   /* messages to be dropped when the lock is released */
};

static enum tr_post callee_check_locked(struct tr_callee *callee, struct tr_connection *connection,
                                        const struct posting *posting) TR_REQUIRES(connection->lock) {
        const struct tr_message *message = posting->message;
        struct tr_outgoing *outgoing = &connection->outgoing;
        struct tr_output *output = &connection->output;
        bool ask = message->asker;
        if (connection->fd < 0 || output->broken || (ask && outgoing->deaf))
                return TR_POST_CLOSED;

        uint64_t frame_bytes = CALL_HEAD_BYTES + callee->chosen.head.len + message->handler_len +
                               posting->args.bytes + (message->behalf ? tr_delivery_context_bytes_max(message) : 0);
        if (frame_bytes > connection->frame_max || frame_bytes + TR_CALL_BYTES > output->max_bytes)
                return TR_POST_TOO_LARGE;
        if (ask)
                tr_calls_sweep(&outgoing->calls, SWEEP_SOME, posting->done);
        if (tr_outgoing_has_room(outgoing, output, ask, frame_bytes + TR_CALL_BYTES))
                return TR_POST_OK;
        tr_calls_sweep(&outgoing->calls, SWEEP_MANY, posting->done);
        if (tr_outgoing_has_room(outgoing, output, ask, frame_bytes + TR_CALL_BYTES))
                return TR_POST_OK;
        callee->congested |= ask;
        if (ask) /* relaxed: see tr_serving_relieve() */
                atomic_store_explicit(&outgoing->congested, true, memory_order_relaxed);
        return TR_POST_FULL;
}

/* Writes it, or has it wait. */
static int callee_put_locked(struct tr_callee *callee, struct tr_connection *connection, struct posting *posting,
                             uint32_t id) TR_REQUIRES(connection->lock) {
        if (tr_outgoing_waits(&connection->outgoing, &connection->output))
                return tr_outgoing_queue(&connection->outgoing, callee, posting->message, id, &posting->plain);
        int r = tr_callee_write_locked(callee, connection, posting->message, id, &posting->args);
        if (r == 0 && tr_output_waiting(&connection->output) >= TR_CALLEE_FEED_BYTES)
                tr_connection_deliver_locked(connection, false);
        return r;
}

/* Takes the message's reference in the list where the answer is TR_POST_OK. */
static enum tr_post callee_post_locked(struct tr_callee *callee, struct tr_connection *connection,
                                       struct posting *posting) TR_REQUIRES(connection->lock) {
        struct tr_message *message = posting->message;
        struct tr_outgoing *outgoing = &connection->outgoing;
        enum tr_post post = callee_check_locked(callee, connection, posting);
        uint32_t id = 0;
        if (post != TR_POST_OK)
                return post;
        bool waits = tr_outgoing_waits(outgoing, &connection->output);
        if (message->asker && tr_calls_add(&outgoing->calls, message, callee, waits, &id) < 0)
                return TR_POST_NO_MEMORY;

        int r = callee_put_locked(callee, connection, posting, id);
        if (r && message->asker)
                tr_calls_take(&outgoing->calls, id);
        if (r < 0)
                return TR_POST_NO_MEMORY;
        tr_list_unlink(&message->link);
        if (r || !message->asker)
                tr_list_append(posting->done, &message->link);
        return TR_POST_OK;
}

/* 0, -ENOMEM, or TR_PLAIN_SAME_KEY with the place of that key. */
static int write_plain_args(const struct tr_message *message, struct tr_writer *writer, size_t *ret_offset) {
        struct tr_reader reader = tr_reader(tr_message_args(message), message->args_bytes);
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < message->args_count; i++)
                r = tr_write_plain(writer, &reader);
        *ret_offset = (size_t)(reader.at - (const uint8_t *)tr_message_args(message));
        return r == 0 || r == TR_PLAIN_SAME_KEY ? r : -ENOMEM;
}

/* What a plain client cannot be given. It is seen here only, so an ask is rejected and a send dropped. Takes the reference that
 * the list has. */
static void callee_drop_unsendable(struct tr_callee *callee, struct tr_message *message, size_t offset) {
        struct tr_failure *failure =
                tr_no_plain_args(tr_message_args(message), message->args_bytes, message->args_count, offset);
        tr_list_unlink(&message->link);
        tr_target_abandon(&callee->target, message, failure, TR_RAN_NO);
        tr_failure_unref(failure);
        tr_message_unref(message);
}

static enum tr_post callee_post_one(struct tr_callee *callee, struct tr_connection *connection,
                                    struct tr_message *message) {
        struct tr_list done = TR_LIST_INIT(done);
        struct posting posting = {
                .message = message,
                .plain = TR_WRITER_INIT,
                .args = { tr_message_args(message), message->args_bytes },
                .done = &done,
        };
        /* relaxed: one message more or less in the form before */
        bool plain = atomic_load_explicit(&connection->call_form, memory_order_relaxed) == TR_FORM_PLAIN;
        size_t offset;
        int written = plain ? write_plain_args(message, &posting.plain, &offset) : 0;
        if (written) {
                tr_writer_deinit(&posting.plain);
                if (written < 0)
                        return TR_POST_NO_MEMORY;
                callee_drop_unsendable(callee, message, offset);
                return TR_POST_OK;
        }
        if (plain)
                posting.args = (struct tr_span){ posting.plain.data, posting.plain.len };

        tr_lock_acquire(&connection->lock);
        enum tr_post post = callee_post_locked(callee, connection, &posting);
        tr_lock_release(&connection->lock);
        tr_callee_drop(&done);
        tr_writer_deinit(&posting.plain);
        return post;
}

enum tr_post tr_callee_post(struct tr_target *target, struct tr_list *messages) {
        struct tr_callee *callee = tr_callee_of(target);
        struct tr_connection *connection = tr_callee_connection(callee);
        enum tr_post post = connection ? TR_POST_OK : TR_POST_CLOSED;

        while (post == TR_POST_OK && !tr_list_is_empty(messages))
                post = callee_post_one(callee, connection, tr_list_first(messages, struct tr_message, link));
        if (!connection)
                return post;
        tr_lock_acquire(&connection->lock);
        if (connection->fd >= 0)
                tr_connection_deliver_locked(connection, false);
        tr_lock_release(&connection->lock);
        tr_connection_unref(connection);
        return post;
}

struct tr_connection *tr_callee_leave(struct tr_callee *callee, struct tr_list *ret_asks, struct tr_list *ret_waiting) {
        tr_lock_acquire(&callee->target.lock);
        struct tr_connection *connection = tr_steal(callee->connection);
        tr_lock_release(&callee->target.lock);
        if (!connection)
                return NULL;
        tr_lock_acquire(&connection->lock);
        tr_outgoing_take(&connection->outgoing, callee, ret_asks, ret_waiting);
        tr_lock_release(&connection->lock);
        return connection;
}

void tr_callee_drop(struct tr_list *messages) {
        struct tr_message *message;
        tr_list_for_each(message, messages, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
}

/* Asks that wait are among the asks too. */
void tr_callee_drop_waiting(struct tr_callee *callee, struct tr_list *waiting) {
        struct tr_failure *failure = tr_post_failure(TR_POST_CLOSED);
        struct tr_outgoing_message *next;
        tr_list_for_each(next, waiting, link) {
                const struct tr_refused refused = tr_refused_message(&callee->target, next->message, failure);
                if (!next->message->asker)
                        tr_system_tell_refused(callee->target.system, &refused);
                tr_message_unref(next->message);
                free(next->plain);
                free(next);
        }
        tr_failure_unref(failure);
}

void tr_callee_reject_all(struct tr_list *asks) {
        struct tr_failure *failure =
                tr_failure_new(TR_CODE_STOPPED, "the connection ended before it answered this");
        struct tr_message *message;
        tr_list_for_each(message, asks, link) {
                tr_list_unlink(&message->link);
                tr_message_reject(message, failure, TR_RAN_MAYBE);
                tr_message_unref(message);
        }
        tr_failure_unref(failure);
}
