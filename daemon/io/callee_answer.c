/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients answer to what they were asked. The loop thread.
 */
#include "config.h"

#include "daemon/io/callee.h"

#include <string.h>

#include "daemon/io/no_plain.h"
#include "daemon/io/server_internal.h"
#include "daemon/io/serving.h"

/* The message that the id was given to, and whom it was posted to: both the caller's from now on. False where nobody waits for that
 * answer. */
static bool take(struct tr_connection *connection, uint32_t id, struct tr_message **ret_message, struct tr_callee **ret_callee) {
        tr_lock_acquire(&connection->lock);
        struct tr_message *message = tr_calls_take_sent(&connection->outgoing.calls, id, ret_callee);
        if (message)
                tr_target_ref(&(*ret_callee)->target);
        tr_lock_release(&connection->lock);
        *ret_message = message;
        return message;
}

/* The text of an error, whatever its form. */
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

struct tr_failure *tr_callee_fault(struct tr_callee *callee, const struct tr_message *message, const struct tr_span *error) {
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
static bool answer_with(struct tr_message *message, const struct tr_span *result) {
        if (message->form != TR_FORM_PLAIN)
                return tr_message_resolve(message, result->data, result->bytes, false);
        struct tr_writer plain = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(result->data, result->bytes);
        bool settled;
        int r = tr_write_plain(&plain, &reader);
        if (r == 0) {
                settled = tr_message_resolve(message, plain.data, plain.len, false);
        } else {
                struct tr_failure *failure =
                        r == TR_PLAIN_SAME_KEY ?
                                tr_no_plain_answer(result->data, result->bytes, (size_t)(reader.at - result->data)) :
                                tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                settled = tr_message_reject(message, failure, TR_RAN_YES);
                tr_failure_unref(failure);
        }
        tr_writer_deinit(&plain);
        return settled;
}

static bool reject_with(struct tr_callee *callee, struct tr_message *message, const struct tr_span *error) {
        struct tr_failure *failure = callee->failure(callee, message, error);
        bool settled = tr_message_reject(message, failure, TR_RAN_YES);
        tr_failure_unref(failure);
        return settled;
}

static bool is_nil(const struct tr_span *value) {
        struct tr_reader reader = tr_reader(value->data, value->bytes);
        struct tr_token token;
        return tr_read(&reader, &token) == 0 && token.type == TR_NIL;
}

void tr_callee_answered(struct tr_connection *connection, const struct tr_frame *frame) {
        struct tr_server *server = connection->server;
        struct tr_message *message;
        struct tr_callee *callee;
        bool settled = false;
        if (take(connection, frame->id, &message, &callee)) {
                tr_batch_flush(&server->batch); /* what the client sent before comes before */
                settled = is_nil(&frame->error) ? answer_with(message, &frame->result) :
                                                  reject_with(callee, message, &frame->error);
                tr_message_unref(message);
                tr_target_unref(&callee->target);
        }
        server->ignored_total += !settled;
        tr_serving_relieve(connection);
}

void tr_callee_answer_refused(struct tr_connection *connection, uint32_t id, struct tr_failure *failure) {
        struct tr_message *message;
        struct tr_callee *callee;
        bool settled = false;
        if (take(connection, id, &message, &callee)) {
                settled = tr_message_reject(message, failure, TR_RAN_YES);
                tr_message_unref(message);
                tr_target_unref(&callee->target);
        }
        connection->server->ignored_total += !settled;
        tr_serving_relieve(connection);
}

void tr_callee_deafen(struct tr_connection *connection) {
        struct tr_list asks = TR_LIST_INIT(asks);
        tr_lock_acquire(&connection->lock);
        connection->outgoing.deaf = true;
        tr_calls_take_all(&connection->outgoing.calls, NULL, &asks);
        tr_lock_release(&connection->lock);
        tr_callee_reject_all(&asks);
}
