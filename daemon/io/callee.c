/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling clients.
 *
 * An ask is in `calls` from its post until it is answered, and, while it waits, in `waiting` too; each holds a
 * reference of its own. A send is in `waiting` only. Messages are dropped when the connection's lock is released, since
 * one may hold the last reference of another connection.
 *
 * Lock order: the target's, which is held only to get at the connection, and then the connection's; never both.
 */
#include "config.h"

#include "daemon/io/callee.h"

#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/registry.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

/* What follows at once when the socket has room again. */
#define FEED_BYTES ((size_t)64 << 10)
/* And how often, before the loop sees to others. */
#define FEED_ROUNDS 4
/* Slots that each ask looks at for others that were given up, and that one does which finds no room. */
#define SWEEP_SOME 2
#define SWEEP_MANY 512
/* Bytes of a frame beside the chosen method, the handler's name and the arguments: its head and theirs. */
#define CALL_HEAD_BYTES 17

/* A message that waits for room in the socket. */
struct tr_outgoing {
        struct tr_list link;
        struct tr_message *message; /* strong */
        uint32_t id;                /* of an ask */
        uint8_t *plain;             /* its arguments in the plain form; NULL: they go out as they are */
        size_t plain_bytes;
};

static const struct tr_target_ops callee_ops;

static struct tr_callee *callee_of(struct tr_target *target) {
        return tr_container_of(target, struct tr_callee, target);
}

void tr_callee_drop(struct tr_list *messages) {
        struct tr_message *message;
        tr_list_for_each(message, messages, link) {
                tr_list_unlink(&message->link);
                tr_message_unref(message);
        }
}

/* Posting: any thread. */

/* A new reference, or NULL where the connection has ended. */
static struct tr_connection *callee_connection(struct tr_callee *callee) {
        tr_lock_acquire(&callee->target.lock);
        struct tr_connection *connection = callee->connection ? tr_connection_ref(callee->connection) : NULL;
        tr_lock_release(&callee->target.lock);
        return connection;
}

/* Appends the frame of a message to the output, where it begins. 0, -ENOMEM, or 1: it was settled before. */
static int callee_write_locked(struct tr_callee *callee, struct tr_connection *connection, struct tr_message *message,
                               uint32_t id, const struct tr_span *args)
        TR_REQUIRES(connection->lock) {
        struct tr_output *output = &connection->output;
        struct tr_writer *writer = &output->writer;
        size_t begin = tr_output_begin(output);

        tr_write_array(writer, message->asker ? 4 : 3);
        tr_write_int(writer, message->asker ? TR_FRAME_REQUEST : TR_FRAME_NOTIFICATION);
        if (message->asker)
                tr_write_uint(writer, id);
        tr_chosen_write(&callee->chosen, writer);
        tr_write_array(writer, 1 + message->args_count);
        tr_write_string(writer, tr_message_handler(message), message->handler_len);
        tr_write_raw(writer, args->data, args->bytes);
        if (tr_writer_error(writer)) {
                writer->error = 0;
                writer->len = begin;
                return tr_error_origin(-ENOMEM);
        }
        if (!tr_message_begin(message)) {
                writer->len = begin;
                return 1;
        }
        return 0;
}

/* Whether there is room for so many bytes more, and for an ask where it is one. */
static bool callee_has_room_locked(struct tr_callee *callee, struct tr_connection *connection, bool ask,
                                   uint64_t bytes) TR_REQUIRES(connection->lock) {
        const struct tr_output *output = &connection->output;
        uint64_t held = tr_output_waiting(output) + callee->waiting_bytes + callee->calls.bytes;
        return held + bytes <= output->max_bytes && (!ask || callee->calls.count < callee->asks_max);
}

/* Puts a message where it waits for room in the socket. Takes a reference to it. */
static int callee_queue_locked(struct tr_callee *callee, struct tr_message *message, uint32_t id,
                               struct tr_writer *plain) {
        struct tr_outgoing *outgoing = malloc(sizeof(*outgoing));
        if (!outgoing)
                return tr_error_origin(-ENOMEM);
        *outgoing = (struct tr_outgoing){ .message = tr_message_ref(message), .id = id };
        if (plain->data)
                outgoing->plain = tr_writer_steal(plain, &outgoing->plain_bytes);
        tr_list_append(&callee->waiting, &outgoing->link);
        callee->waiting_count++;
        callee->waiting_bytes += tr_call_bytes(message) + outgoing->plain_bytes;
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
        struct tr_output *output = &connection->output;
        bool ask = message->asker;
        if (connection->fd < 0 || output->broken || (ask && callee->deaf))
                return TR_POST_CLOSED;

        uint64_t frame_bytes = CALL_HEAD_BYTES + callee->chosen.head.len + message->handler_len +
                               posting->args.bytes;
        if (frame_bytes > connection->frame_max || frame_bytes + TR_CALL_BYTES > output->max_bytes)
                return TR_POST_TOO_LARGE;
        if (ask)
                tr_calls_sweep(&callee->calls, SWEEP_SOME, posting->done);
        if (callee_has_room_locked(callee, connection, ask, frame_bytes + TR_CALL_BYTES))
                return TR_POST_OK;
        tr_calls_sweep(&callee->calls, SWEEP_MANY, posting->done);
        return callee_has_room_locked(callee, connection, ask, frame_bytes + TR_CALL_BYTES) ? TR_POST_OK : TR_POST_FULL;
}

/* Writes it, or has it wait. */
static int callee_put_locked(struct tr_callee *callee, struct tr_connection *connection, struct posting *posting,
                             uint32_t id) TR_REQUIRES(connection->lock) {
        if (connection->output.blocked)
                return callee_queue_locked(callee, posting->message, id, &posting->plain);
        int r = callee_write_locked(callee, connection, posting->message, id, &posting->args);
        if (r == 0 && tr_output_waiting(&connection->output) >= FEED_BYTES)
                tr_connection_deliver_locked(connection, false);
        return r;
}

/* Takes the message's reference in the list where the answer is TR_POST_OK. */
static enum tr_post callee_post_locked(struct tr_callee *callee, struct tr_connection *connection,
                                       struct posting *posting) TR_REQUIRES(connection->lock) {
        struct tr_message *message = posting->message;
        enum tr_post post = callee_check_locked(callee, connection, posting);
        uint32_t id = 0;
        if (post != TR_POST_OK)
                return post;
        if (message->asker && tr_calls_add(&callee->calls, message, connection->output.blocked, &id) < 0)
                return TR_POST_NO_MEMORY;

        int r = callee_put_locked(callee, connection, posting, id);
        if (r && message->asker)
                tr_calls_take(&callee->calls, id);
        if (r < 0)
                return TR_POST_NO_MEMORY;
        tr_list_unlink(&message->link);
        if (r || !message->asker)
                tr_list_append(posting->done, &message->link);
        return TR_POST_OK;
}

static bool write_plain_args(const struct tr_message *message, struct tr_writer *writer) {
        struct tr_reader reader = tr_reader(tr_message_args(message), message->args_bytes);
        for (uint32_t i = 0; i < message->args_count; i++)
                if (tr_write_plain(writer, &reader) != 0)
                        return false;
        return true;
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
        bool plain = atomic_load_explicit(&callee->form, memory_order_relaxed) == TR_FORM_PLAIN;
        if (plain && !write_plain_args(message, &posting.plain)) {
                tr_writer_deinit(&posting.plain);
                return TR_POST_NO_MEMORY;
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

static enum tr_post callee_post(struct tr_target *target, struct tr_list *messages) {
        struct tr_callee *callee = callee_of(target);
        struct tr_connection *connection = callee_connection(callee);
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

/* Feeding: the loop thread, when the socket has room again. */

/* Takes the first one that waits; its message's reference is the caller's. */
static struct tr_message *callee_next_locked(struct tr_callee *callee, struct tr_outgoing *ret_outgoing) {
        struct tr_outgoing *outgoing = tr_list_first(&callee->waiting, struct tr_outgoing, link);
        if (!outgoing)
                return NULL;
        tr_list_unlink(&outgoing->link);
        callee->waiting_count--;
        callee->waiting_bytes -= tr_call_bytes(outgoing->message) + outgoing->plain_bytes;
        *ret_outgoing = *outgoing;
        free(outgoing);
        return ret_outgoing->message;
}

/* Drops what waiting held. An ask that went out is in `calls` still, which has a reference of its own; of any other,
 * one reference is put in the list and is the last. */
static void callee_let_go_locked(struct tr_callee *callee, const struct tr_outgoing *outgoing, bool went_out,
                                 struct tr_list *done) {
        struct tr_message *message = outgoing->message;
        free(outgoing->plain);
        if (message->asker && went_out) {
                tr_calls_set_sent(&callee->calls, outgoing->id);
                tr_message_unref(message);
                return;
        }
        if (message->asker)
                tr_message_unref(tr_calls_take(&callee->calls, outgoing->id));
        tr_list_append(done, &message->link);
}

/* Writes what waits, as much as is to be sent at once. */
static void callee_fill_locked(struct tr_callee *callee, struct tr_connection *connection, struct tr_list *done)
        TR_REQUIRES(connection->lock) {
        struct tr_outgoing outgoing;
        while (!connection->doom && tr_output_waiting(&connection->output) < FEED_BYTES &&
               callee_next_locked(callee, &outgoing)) {
                struct tr_message *message = outgoing.message;
                struct tr_span args = outgoing.plain ?
                                              (struct tr_span){ outgoing.plain, outgoing.plain_bytes } :
                                              (struct tr_span){ tr_message_args(message), message->args_bytes };
                int r = callee_write_locked(callee, connection, message, outgoing.id, &args);
                if (r < 0) /* it was taken, so it may not be lost in silence */
                        connection->doom = "out of memory for what is sent to it";
                callee_let_go_locked(callee, &outgoing, r == 0, done);
        }
}

void tr_callee_feed_locked(struct tr_connection *connection, struct tr_list *ret_done) {
        struct tr_callee *callee = connection->callee;
        struct tr_output *output = &connection->output;
        if (!callee)
                return;
        for (unsigned int i = 0; i < FEED_ROUNDS && callee->waiting_count && !output->blocked && !output->broken; i++) {
                callee_fill_locked(callee, connection, ret_done);
                tr_output_send(output, connection->fd);
        }
        if (callee->waiting_count && !output->blocked && !output->broken) {
                output->blocked = true; /* nobody else writes before what waits is written */
                event_active(&connection->write_event, EV_WRITE, 0);
        }
}

bool tr_callee_has_waiting_locked(struct tr_connection *connection) {
        return connection->callee && connection->callee->waiting_count;
}

/* Answers: the loop thread. */

/* The message that the id was given to, and the caller's from now on; NULL where nobody waits for that answer. */
static struct tr_message *callee_take(struct tr_connection *connection, uint32_t id) {
        struct tr_callee *callee = connection->callee;
        if (!callee)
                return NULL;
        tr_lock_acquire(&connection->lock);
        struct tr_message *message = tr_calls_take_sent(&callee->calls, id);
        tr_lock_release(&connection->lock);
        return message;
}

/* The text of an error, whatever its form: it is one, or the first text of an array, or a map's `message`. */
static bool error_text(const struct tr_span *error, struct tr_token *ret_text) {
        struct tr_reader reader = tr_reader(error->data, error->bytes);
        struct tr_token head, key;
        if (tr_read(&reader, &head) != 0)
                return false;
        *ret_text = head;
        for (uint32_t i = 0; head.type == TR_ARRAY && i < head.count; i++) {
                struct tr_reader at = reader;
                if (tr_read(&at, ret_text) != 0 || tr_read_skip(&reader) != 0 || tr_token_is_text(ret_text))
                        break;
        }
        for (uint32_t i = 0; head.type == TR_MAP && i < head.count; i++) {
                struct tr_reader at;
                if (tr_read(&reader, &key) != 0)
                        break;
                at = reader;
                if (tr_read(&at, ret_text) != 0 || tr_read_skip(&reader) != 0 || tr_token_equals(&key, "message"))
                        break;
        }
        return tr_token_is_text(ret_text);
}

static struct tr_failure *error_failure(const struct tr_callee *callee, const struct tr_message *message,
                                        const struct tr_span *error) {
        static const char kind[] = "error";
        struct tr_token text;
        struct tr_failure *failure;
        if (error_text(error, &text))
                failure = tr_failure_new(TR_CODE_FAULT, "%.*s", (int)text.len, (const char *)text.data);
        else
                failure = tr_failure_new(TR_CODE_FAULT, "the client answered an error that has no text");
        tr_failure_add_text(failure, "kind", kind, sizeof(kind) - 1);
        tr_failure_add_text(failure, "actor", callee->target.label, strlen(callee->target.label));
        tr_failure_add_text(failure, "handler", tr_message_handler(message), message->handler_len);
        return failure;
}

/* Whether that settled it. */
static bool answer_with(struct tr_connection *connection, struct tr_message *message, const struct tr_span *result) {
        if (message->form != TR_FORM_PLAIN)
                return tr_message_resolve(message, result->data, result->bytes, false);
        struct tr_writer plain = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(result->data, result->bytes);
        bool settled;
        if (tr_write_plain(&plain, &reader) == 0) {
                settled = tr_message_resolve(message, plain.data, plain.len, false);
        } else {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                settled = tr_message_reject(message, failure, TR_RAN_YES);
                tr_failure_unref(failure);
        }
        tr_writer_deinit(&plain);
        return settled;
}

static bool is_nil(const struct tr_span *value) {
        struct tr_reader reader = tr_reader(value->data, value->bytes);
        struct tr_token token;
        return tr_read(&reader, &token) == 0 && token.type == TR_NIL;
}

void tr_callee_answered(struct tr_connection *connection, const struct tr_frame *frame) {
        struct tr_server *server = connection->server;
        struct tr_message *message = callee_take(connection, frame->id);
        bool settled = false;
        if (message) {
                tr_batch_flush(&server->batch); /* what the client sent before comes before */
                if (is_nil(&frame->error)) {
                        settled = answer_with(connection, message, &frame->result);
                } else {
                        struct tr_failure *failure = error_failure(connection->callee, message, &frame->error);
                        settled = tr_message_reject(message, failure, TR_RAN_YES);
                        tr_failure_unref(failure);
                }
        }
        server->ignored_total += !settled;
        tr_message_unref(message);
}

void tr_callee_answer_refused(struct tr_connection *connection, uint32_t id, struct tr_failure *failure) {
        struct tr_message *message = callee_take(connection, id);
        bool settled = message && tr_message_reject(message, failure, TR_RAN_YES);
        connection->server->ignored_total += !settled;
        tr_message_unref(message);
}

/* The beginning and the end: the loop thread. */

static int callee_new(struct tr_connection *connection) {
        struct tr_server *server = connection->server;
        struct tr_callee *callee = calloc(1, sizeof(*callee));
        int r = callee ? tr_target_init(&callee->target, &callee_ops, server->system, connection->peer.uid, "client", "")
                       : tr_error_origin(-ENOMEM);
        if (r < 0) {
                free(callee);
                return tr_error_fold(r);
        }
        callee->asks_max = server->limits.requests;
        callee->deaf = connection->ended;
        atomic_init(&callee->form, (uint8_t)connection->form.values);
        tr_list_init(&callee->waiting);
        r = tr_registry_add(&server->system->registry, &callee->target);
        if (r < 0) {
                tr_target_unref(&callee->target);
                return tr_error_fold(r);
        }
        callee->connection = tr_connection_ref(connection);
        connection->callee = callee;
        return 0;
}

struct tr_failure *tr_callee_listen(struct tr_connection *connection, const struct tr_chosen_options *options) {
        struct tr_chosen chosen;
        struct tr_failure *failure = tr_chosen_init(&chosen, options, "message");
        if (failure)
                return failure;
        if (!connection->callee && callee_new(connection) < 0) {
                tr_chosen_deinit(&chosen);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a handle");
        }
        tr_lock_acquire(&connection->lock);
        struct tr_chosen before = connection->callee->chosen;
        connection->callee->chosen = chosen;
        tr_lock_release(&connection->lock);
        tr_chosen_deinit(&before);
        return NULL;
}

void tr_callee_set_form(struct tr_connection *connection) {
        if (connection->callee)
                atomic_store_explicit(&connection->callee->form, (uint8_t)connection->form.values, memory_order_relaxed);
}

static void reject_all(struct tr_list *asks) {
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

void tr_callee_deafen(struct tr_connection *connection) {
        struct tr_callee *callee = connection->callee;
        struct tr_list asks = TR_LIST_INIT(asks);
        if (!callee)
                return;
        tr_lock_acquire(&connection->lock);
        callee->deaf = true;
        tr_calls_take_all(&callee->calls, &asks);
        tr_lock_release(&connection->lock);
        reject_all(&asks);
}

/* What waits never goes out: asks are in the calls too, and sends are counted. */
static void callee_drop_waiting(struct tr_callee *callee, struct tr_connection *connection, struct tr_list *waiting) {
        struct tr_failure *failure = tr_post_failure(TR_POST_CLOSED);
        struct tr_outgoing *outgoing;
        tr_list_for_each(outgoing, waiting, link) {
                const struct tr_refused refused = tr_refused_message(&callee->target, outgoing->message, failure);
                if (!outgoing->message->asker)
                        tr_system_tell_refused(connection->server->system, &refused);
                tr_message_unref(outgoing->message);
                free(outgoing->plain);
                free(outgoing);
        }
        tr_failure_unref(failure);
}

void tr_callee_end(struct tr_connection *connection) {
        struct tr_callee *callee = connection->callee;
        struct tr_list asks = TR_LIST_INIT(asks), waiting = TR_LIST_INIT(waiting);
        if (!callee)
                return;
        tr_lock_acquire(&callee->target.lock);
        struct tr_connection *reference = callee->connection;
        callee->connection = NULL;
        tr_lock_release(&callee->target.lock);
        atomic_store(&callee->target.gone, true);
        /* Before anybody hears of the end: its names are free. */
        tr_registry_withdraw(&callee->target.system->registry, &callee->target);

        tr_lock_acquire(&connection->lock);
        connection->callee = NULL;
        tr_calls_take_all(&callee->calls, &asks);
        tr_list_splice(&waiting, &callee->waiting);
        callee->waiting_count = 0;
        callee->waiting_bytes = 0;
        struct tr_chosen chosen = callee->chosen;
        callee->chosen = (struct tr_chosen){ 0 };
        tr_lock_release(&connection->lock);

        callee_drop_waiting(callee, connection, &waiting);
        reject_all(&asks);
        tr_target_end(&callee->target, NULL);
        tr_chosen_deinit(&chosen);
        tr_target_unref(&callee->target);
        tr_connection_unref(reference);
}

/* The other operations of a target. */

/* Nobody can stop a connection; the methods say so. */
static void callee_stop(struct tr_target *target, enum tr_stop_reason reason, uint64_t within_ns) {
}

static void callee_kill(struct tr_target *target) {
}

static uint32_t callee_info(struct tr_target *target, struct tr_writer *writer) {
        struct tr_callee *callee = callee_of(target);
        struct tr_connection *connection = callee_connection(callee);
        uint32_t waiting = 0;
        uint64_t bytes = 0;
        if (connection) {
                tr_lock_acquire(&connection->lock);
                waiting = callee->waiting_count;
                bytes = callee->waiting_bytes;
                tr_lock_release(&connection->lock);
        }
        tr_write_text(writer, "state");
        tr_write_text(writer, connection ? "running" : "stopping");
        tr_write_text(writer, "mailbox");
        tr_write_uint(writer, waiting);
        tr_write_text(writer, "mailbox_bytes");
        tr_write_uint(writer, bytes);
        tr_connection_unref(connection);
        return 3;
}

static void callee_free(struct tr_target *target) {
        struct tr_callee *callee = callee_of(target);
        tr_chosen_deinit(&callee->chosen);
        tr_target_deinit(target);
        free(callee);
}

static const struct tr_target_ops callee_ops = {
        .kind = TR_TARGET_CONNECTION,
        .post = callee_post,
        .stop = callee_stop,
        .kill = callee_kill,
        .info = callee_info,
        .free = callee_free,
};
