/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a message: the arguments are copied once, as they came, and nothing of them is looked at. A run of
 * requests for one target looks it up once.
 */
#include "config.h"

#include "daemon/io/post.h"

#include "daemon/core/message.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/reply.h"
#include "daemon/io/server_internal.h"

/* The message, or NULL and why there is none. */
static struct tr_message *post_message(struct tr_request *request, struct tr_failure **ret_failure) {
        const char *handler;
        size_t handler_len;
        struct tr_span args;
        uint32_t args_count;
        struct tr_failure *failure = tr_request_text(request, 1, &handler, &handler_len);
        if (!failure && handler_len > UINT16_MAX)
                failure = tr_request_bad_param(request, 1, "a string of at most 65535 bytes");
        if (!failure)
                failure = tr_request_array(request, 2, &args, &args_count);
        struct tr_message *message = NULL;
        if (!failure) {
                message = tr_message_new(TR_MESSAGE_HANDLER, handler, handler_len, args.data, args.bytes, args_count);
                if (!message)
                        failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the message");
        }
        *ret_failure = failure;
        return message;
}

/* How a message is to be answered. */
struct answering {
        bool acknowledge; /* with nil, at once: a send when it is in the mailbox, an ask with a reply when it is pending */
        bool outcome;     /* with what the handler answers */
        uint64_t timeout_ns;
        const struct tr_chosen_options *reply; /* its outcome is a notification; NULL: a response */
};

static struct tr_failure *post_sign(struct tr_request *request, struct tr_message *message,
                                    const struct answering *answering) {
        struct tr_connection *connection = request->connection;
        if (!answering->outcome)
                return NULL;
        if (answering->reply)
                return tr_reply_sign(connection, message, answering->reply, answering->timeout_ns);
        return tr_connection_sign(connection, message, request->id, answering->timeout_ns);
}

/* Adds the message to the batch. */
static struct tr_failure *post_to(struct tr_request *request, struct tr_target *target,
                                  const struct answering *answering) {
        struct tr_connection *connection = request->connection;
        struct tr_failure *failure;
        struct tr_message *message = post_message(request, &failure);
        if (!message)
                return failure;
        message->caller_uid = connection->peer.uid;
        failure = post_sign(request, message, answering);
        if (failure) {
                tr_message_unref(message);
                return failure;
        }
        request->deferred = true;
        tr_batch_add(&connection->server->batch, connection, target, &request->params[0].span, message,
                     answering->acknowledge, request->id);
        return NULL;
}

static struct tr_failure *post(struct tr_request *request, const struct answering *answering) {
        struct tr_batch *batch = &request->connection->server->batch;
        struct tr_target *target = tr_batch_target(batch, request->connection, &request->params[0].span);
        if (target)
                return post_to(request, target, answering);

        struct tr_failure *failure = tr_request_target(request, 0, &target);
        if (!failure)
                failure = post_to(request, target, answering);
        tr_target_unref(target);
        return failure;
}

struct tr_failure *tr_post_ask(struct tr_request *request, uint64_t timeout_ns, const struct tr_chosen_options *reply) {
        const struct answering answering = {
                .acknowledge = reply->method.data && request->wants_answer,
                .outcome = reply->method.data || request->wants_answer,
                .timeout_ns = timeout_ns,
                .reply = reply->method.data ? reply : NULL,
        };
        return post(request, &answering);
}

struct tr_failure *tr_post_send(struct tr_request *request) {
        return post(request, &(const struct answering){ .acknowledge = request->wants_answer });
}
