/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answering: how what an actor returns gets into a connection's output, and from there into the socket, on the
 * actor's own thread.
 *
 * The loop thread takes over only where the socket is full (`blocked`), where nobody reads any more, or where the
 * last answer of a connection that has ended was sent: then it is told to attend. Whoever answers never waits.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>

#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/reply.h"
#include "daemon/io/server_internal.h"

/* Unread output above which a connection is not read from. It is read from again below half of it. */
#define CONGESTED_BYTES ((size_t)256 << 10)
/* What is to be sent later, with more, is sent all the same when it has become so much. */
#define LATER_BYTES ((size_t)64 << 10)
/* Unread output above which nothing is said to a connection that it has not asked for one by one. */
#define TOLD_BYTES CONGESTED_BYTES
/* Bytes of a response around its value: the array, the type, an id of 32 bits, nil. */
#define RESPONSE_HEAD_BYTES 8

void tr_connection_call_loop_locked(struct tr_connection *connection) {
        tr_connection_ref(connection);
        if (!tr_loop_post(connection->server->loop, &connection->work))
                tr_connection_unref(connection);
}

void tr_connection_written_locked(struct tr_connection *connection, int r) {
        if (r == -ENOBUFS)
                connection->doom = "more answers were left unread than limits.output allows";
        else if (r)
                connection->doom = "out of memory for its answers";
        if (connection->doom)
                tr_output_break(&connection->output);
}

/* Ends the writing of one response. Where there is no memory for it, there may be for a short one that says so; where
 * not even that can be said, the connection has to end: a request without an answer would be waited for without end. */
static void response_end_locked(struct tr_connection *connection, uint32_t id, const struct tr_response_form *form,
                                size_t begin) TR_REQUIRES(connection->lock) {
        struct tr_output *output = &connection->output;
        int r = tr_output_end(output, begin);
        if (r == -ENOMEM) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                tr_response_write_failure(&output->writer, id, form, failure, TR_RAN_MAYBE);
                tr_failure_unref(failure);
                r = tr_output_end(output, begin);
        }
        tr_connection_written_locked(connection, r);
}

void tr_connection_deliver_locked(struct tr_connection *connection, bool more) {
        struct tr_output *output = &connection->output;
        enum tr_output_state state = TR_OUTPUT_EMPTY;
        if (output->broken) {
                state = TR_OUTPUT_BROKEN;
        } else if (output->blocked) {
                return;
        } else if (more && tr_output_waiting(output) < LATER_BYTES) {
                if (!connection->unsent.listed)
                        tr_unsent_add(connection->server->unsent, &tr_connection_ref(connection)->unsent);
                return;
        } else if (tr_output_waiting(output) < LATER_BYTES && tr_gather_takes_locked(&connection->server->gather, connection)) {
                return;
        } else {
                state = tr_output_send(output, connection->fd);
        }
        if (state != TR_OUTPUT_EMPTY || (connection->ended && connection->pending.count == 0))
                tr_connection_call_loop_locked(connection);
}

static struct tr_response_form form_of(const struct tr_message *message) {
        return (struct tr_response_form){ .errors = message->errors, .values = message->form };
}

static struct tr_connection *connection_of(struct tr_asker *asker) {
        return tr_container_of(asker, struct tr_connection, asker);
}

static void write_too_large(struct tr_connection *connection, uint32_t id, const struct tr_response_form *form) {
        struct tr_failure *failure = tr_failure_new(
                TR_CODE_TOO_LARGE, "the answer is larger than limits.frame allows (%zu bytes)", connection->frame_max);
        tr_response_write_failure(&connection->output.writer, id, form, failure, TR_RAN_YES);
        tr_failure_unref(failure);
}

static void on_resolve(struct tr_asker *asker, struct tr_message *message, const void *value, size_t bytes, bool more) {
        struct tr_connection *connection = connection_of(asker);
        struct tr_response_form form = form_of(message);
        uint32_t id = (uint32_t)message->ask.id;

        tr_lock_acquire(&connection->lock);
        if (tr_pending_remove(&connection->pending, message)) {
                struct tr_writer *writer = &connection->output.writer;
                size_t begin = tr_output_begin(&connection->output);
                if (message->kind == TR_MESSAGE_INIT)
                        tr_response_write_handle_result(writer, id, form.values, &message->spawned->handle);
                else if (bytes <= connection->frame_max - RESPONSE_HEAD_BYTES)
                        tr_response_write_result(writer, id, value, bytes);
                else
                        write_too_large(connection, id, &form);
                response_end_locked(connection, id, &form, begin);
                tr_connection_deliver_locked(connection, more);
        }
        tr_lock_release(&connection->lock);
}

static void reject_locked(struct tr_connection *connection, struct tr_message *message, struct tr_failure *failure,
                          enum tr_ran ran) TR_REQUIRES(connection->lock) {
        struct tr_response_form form = form_of(message);
        uint32_t id = (uint32_t)message->ask.id;
        size_t begin = tr_output_begin(&connection->output);
        tr_response_write_failure(&connection->output.writer, id, &form, failure, ran);
        response_end_locked(connection, id, &form, begin);
}

static void on_reject(struct tr_asker *asker, struct tr_message *message, struct tr_failure *failure, enum tr_ran ran,
                      bool more) {
        struct tr_connection *connection = connection_of(asker);
        tr_lock_acquire(&connection->lock);
        if (tr_pending_remove(&connection->pending, message)) {
                reject_locked(connection, message, failure, ran);
                tr_connection_deliver_locked(connection, more);
        }
        tr_lock_release(&connection->lock);
}

static void on_flush(struct tr_asker *asker) {
        struct tr_connection *connection = connection_of(asker);
        tr_lock_acquire(&connection->lock);
        if (connection->fd >= 0)
                tr_connection_deliver_locked(connection, false);
        tr_lock_release(&connection->lock);
}

static void on_ref(struct tr_asker *asker) {
        tr_connection_ref(connection_of(asker));
}

static void on_unref(struct tr_asker *asker, uint32_t count) {
        tr_connection_unref_many(connection_of(asker), count);
}

const struct tr_asker_ops tr_connection_asker_ops = {
        .resolve = on_resolve,
        .reject = on_reject,
        .flush = on_flush,
        .ref = on_ref,
        .unref = on_unref,
};

/* The loop's own answers: written one by one, sent at the end of the round. */

static void answered_locked(struct tr_connection *connection, uint32_t id, size_t begin) TR_REQUIRES(connection->lock) {
        struct tr_output *output = &connection->output;
        response_end_locked(connection, id, &connection->form, begin);
        if (!output->blocked && tr_output_waiting(output) >= LATER_BYTES)
                tr_output_send(output, connection->fd);
        connection->answered = true;
}

static void answer_locked(struct tr_connection *connection, uint32_t id, const void *value, size_t bytes)
        TR_REQUIRES(connection->lock) {
        size_t begin = tr_output_begin(&connection->output);
        tr_response_write_result(&connection->output.writer, id, value, bytes);
        answered_locked(connection, id, begin);
}

void tr_connection_answer(struct tr_connection *connection, uint32_t id, const void *value, size_t bytes) {
        tr_lock_acquire(&connection->lock);
        answer_locked(connection, id, value, bytes);
        tr_lock_release(&connection->lock);
}

void tr_connection_acknowledge_locked(struct tr_connection *connection, uint32_t id) {
        static const uint8_t nil = 0xc0;
        answer_locked(connection, id, &nil, sizeof(nil));
}

void tr_connection_refuse_locked(struct tr_connection *connection, uint32_t id, const struct tr_failure *failure) {
        size_t begin = tr_output_begin(&connection->output);
        tr_response_write_failure(&connection->output.writer, id, &connection->form, failure, failure->ran);
        answered_locked(connection, id, begin);
}

void tr_connection_refuse(struct tr_connection *connection, uint32_t id, const struct tr_failure *failure) {
        tr_lock_acquire(&connection->lock);
        tr_connection_refuse_locked(connection, id, failure);
        tr_lock_release(&connection->lock);
}

void tr_connection_reject(struct tr_connection *connection, struct tr_message *message, struct tr_failure *failure,
                          enum tr_ran ran) {
        tr_lock_acquire(&connection->lock);
        if (tr_pending_remove(&connection->pending, message)) {
                if (message->asker == &connection->asker)
                        reject_locked(connection, message, failure, ran);
                else
                        tr_reply_reject_locked(connection, message, failure, ran);
        }
        tr_lock_release(&connection->lock);
        connection->answered = true;
}

static bool has_room_to_be_told_locked(const struct tr_connection *connection) TR_REQUIRES(connection->lock) {
        const struct tr_output *output = &connection->output;
        size_t half = output->max_bytes / 2;
        return !output->broken && tr_output_waiting(output) <= (half < TOLD_BYTES ? half : TOLD_BYTES);
}

/* Answers whether it was written. */
static bool tell_locked(struct tr_connection *connection, void (*write)(struct tr_writer *, const void *),
                        const void *userdata) TR_REQUIRES(connection->lock) {
        struct tr_output *output = &connection->output;
        size_t begin = tr_output_begin(output);
        write(&output->writer, userdata);
        if (!tr_writer_error(&output->writer) && output->writer.len - begin > connection->frame_max) {
                output->writer.len = begin;
                return false;
        }
        int r = tr_output_end(output, begin);
        if (r == -ENOBUFS)
                tr_connection_written_locked(connection, r);
        else if (r == 0 && !output->blocked && tr_output_waiting(output) >= LATER_BYTES)
                tr_output_send(output, connection->fd);
        connection->answered = true;
        return r == 0;
}

bool tr_connection_tell(struct tr_connection *connection, void (*write)(struct tr_writer *writer, const void *userdata),
                        const void *userdata) {
        tr_lock_acquire(&connection->lock);
        bool told = has_room_to_be_told_locked(connection) && tell_locked(connection, write, userdata);
        tr_lock_release(&connection->lock);
        return told;
}

void tr_connection_push(struct tr_connection *connection) {
        if (!connection->answered)
                return;
        connection->answered = false;
        tr_lock_acquire(&connection->lock);
        if (connection->fd >= 0 && !connection->output.blocked)
                tr_output_send(&connection->output, connection->fd);
        tr_lock_release(&connection->lock);
}

/*
 * What a client is asked is not its answers, and comes in pieces as large as a frame. One that answers each before it reads the next
 * has to be read from meanwhile: it would wait for that, and the daemon for it.
 */
static size_t unread_locked(const struct tr_output *output) {
        size_t waiting = tr_output_waiting(output);
        uint64_t since_call = output->sent_total + waiting - output->called_to;
        return waiting > output->max_bytes / 2 || waiting < since_call ? waiting : (size_t)since_call;
}

bool tr_connection_is_congested(struct tr_connection *connection) {
        tr_lock_acquire(&connection->lock);
        size_t waiting = connection->output.blocked ? unread_locked(&connection->output) : 0;
        tr_lock_release(&connection->lock);
        return waiting > (connection->paused ? CONGESTED_BYTES / 2 : CONGESTED_BYTES);
}

bool tr_connection_send_unsent(struct tr_unsent_entry *entry) {
        struct tr_connection *connection = tr_container_of(entry, struct tr_connection, unsent);
        tr_lock_acquire(&connection->lock);
        entry->listed = false;
        struct tr_output *output = &connection->output;
        bool found = connection->fd >= 0 && !output->blocked && tr_output_waiting(output);
        if (found)
                tr_connection_deliver_locked(connection, false);
        tr_lock_release(&connection->lock);
        tr_connection_unref(connection);
        return found;
}
