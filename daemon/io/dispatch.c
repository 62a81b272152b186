/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a frame to a method, and from what the method says to an answer.
 */
#include "config.h"

#include "daemon/io/dispatch.h"

#include <string.h>

#include "daemon/core/system.h"
#include "daemon/io/callee.h"
#include "daemon/io/confined.h"
#include "daemon/io/connection.h"
#include "daemon/io/method.h"
#include "daemon/io/server_internal.h"
#include "proto/utf8.h"

/* A buffer for results above this is given back after use. */
#define SCRATCH_KEPT_BYTES ((size_t)1 << 20)
/* Room for the place of a value in params, also of one at the deepest level; a longer one is cut. */
#define PATH_MAX_BYTES 1024

/* The next value where it is text. */
static bool next_text(struct tr_reader *reader, const char **ret_text, size_t *ret_len) {
        struct tr_token token;
        if (tr_read(reader, &token) != 0 || !tr_token_is_text(&token))
                return false;
        *ret_text = (const char *)token.data;
        *ret_len = token.len;
        return true;
}

/* What a notification was to do, as far as it can be read. `frame` NULL: it is none. */
static void describe(const struct tr_frame *frame, struct tr_refused *refused) {
        struct tr_reader method = tr_reader(frame->method.data, frame->method.bytes);
        struct tr_reader params = tr_reader(frame->params.data, frame->params.bytes);
        struct tr_token head;
        if (!frame->method.data || !next_text(&method, &refused->method, &refused->method_len) || !frame->params.data)
                return;
        const struct tr_method *known = tr_method_find(refused->method, refused->method_len);
        if (!known || known->run != tr_method_send || tr_read(&params, &head) != 0 || head.type != TR_ARRAY ||
            head.count < 2)
                return;
        if (next_text(&params, &refused->to, &refused->to_len))
                (void)next_text(&params, &refused->handler, &refused->handler_len);
}

/* Tells whoever asked; of a notification, whoever watches what is refused. `frame` is what is known of it, or NULL. */
static void refuse(struct tr_connection *connection, bool wants_answer, uint32_t id, const struct tr_frame *frame,
                   struct tr_failure *take_failure) {
        struct tr_refused refused = {
                .code = take_failure->code,
                .why = take_failure->message,
                .sender_uid = connection->peer.uid,
                .sender_pid = connection->peer.pid,
        };
        if (wants_answer) {
                tr_connection_refuse(connection, id, take_failure);
        } else {
                if (frame)
                        describe(frame, &refused);
                tr_system_tell_refused(connection->server->system, &refused);
        }
        tr_failure_unref(take_failure);
}

static struct tr_failure *unknown_method(const struct tr_token *name) {
        int len = name->len < TR_NAME_MAX ? (int)name->len : TR_NAME_MAX;
        if (!tr_utf8_is_valid(name->data, (size_t)len))
                len = 0;
        return tr_failure_new(TR_CODE_UNKNOWN_METHOD, "there is no method %.*s", len, (const char *)name->data);
}

/* Finds the method and sees whether the peer may call it. */
static struct tr_failure *find_method(const struct tr_connection *connection, const struct tr_frame *frame,
                                      const struct tr_method **ret_method) {
        struct tr_reader reader = tr_reader(frame->method.data, frame->method.bytes);
        struct tr_token name;
        if (tr_read(&reader, &name) != 0 || !tr_token_is_text(&name))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "the method has to be a string");
        const struct tr_method *method = tr_method_find((const char *)name.data, name.len);
        if (!method)
                return unknown_method(&name);
        struct tr_failure *failure = tr_confined_check_method(connection, method);
        if (failure)
                return failure;
        if ((connection->roles & method->role) != method->role)
                return tr_failure_new(TR_CODE_DENIED, "%s needs the role %s", method->name, tr_role_text(method->role));
        *ret_method = method;
        return NULL;
}

static struct tr_failure *run(struct tr_request *request, const struct tr_frame *frame) {
        struct tr_connection *connection = request->connection;
        struct tr_failure *failure = find_method(connection, frame, &request->method);
        if (!failure)
                failure = tr_request_read_params(request, &frame->params);
        if (failure)
                return failure;
        if (!request->method->batched) {
                tr_batch_flush(&connection->server->batch);
                failure = request->wants_answer ? tr_connection_check_id(connection, request->id) : NULL;
                if (failure)
                        return failure;
        }
        return request->method->run(request);
}

void tr_request_answer(struct tr_request *request) {
        struct tr_writer *result = request->result;
        request->deferred = true;
        if (tr_writer_error(result)) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer");
                refuse(request->connection, true, request->id, NULL, failure);
                return;
        }
        if (result->len == 0)
                tr_write_nil(result);
        tr_connection_answer(request->connection, request->id, result->data, result->len);
}

static void scratch_reset(struct tr_writer *scratch) {
        if (scratch->cap > SCRATCH_KEPT_BYTES)
                tr_writer_deinit(scratch);
        tr_writer_reset(scratch);
}

/* One connection too many says so to its first request, and is closed. */
static void dispatch_over_limit(struct tr_connection *connection, const struct tr_frame *frame) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_LIMIT, "too many connections, in all or of this user");
        refuse(connection, frame->type == TR_FRAME_REQUEST, frame->id, frame, failure);
        connection->bad = true;
        tr_connection_set_ended(connection);
}

void tr_dispatch(struct tr_connection *connection, const struct tr_frame *frame) {
        struct tr_server *server = connection->server;
        if (connection->over_limit) {
                dispatch_over_limit(connection, frame);
                return;
        }
        if (frame->type == TR_FRAME_RESPONSE) {
                tr_callee_answered(connection, frame);
                return;
        }

        struct tr_request request; /* its params are not cleared: much memory, little of it used */
        request.connection = connection;
        request.method = NULL;
        request.wants_answer = frame->type == TR_FRAME_REQUEST;
        request.id = frame->id;
        request.count = 0;
        request.result = &server->scratch;
        request.deferred = false;
        struct tr_failure *failure = run(&request, frame);
        if (failure && !request.wants_answer && failure->code == TR_CODE_UNKNOWN_METHOD) {
                server->ignored_total++;
                tr_failure_unref(failure);
        } else if (failure) {
                refuse(connection, request.wants_answer, request.id, frame, failure);
        } else if (request.wants_answer && !request.deferred) {
                tr_request_answer(&request);
        }
        if (server->scratch.len || tr_writer_error(&server->scratch))
                scratch_reset(&server->scratch);
}

static struct tr_failure *refusal_failure(const struct tr_connection *connection, const struct tr_refusal *refusal,
                                          const char *path) {
        switch (refusal->reason) {
        case TR_REFUSAL_TOO_LARGE:
                return tr_failure_new(TR_CODE_TOO_LARGE, "the frame is larger than limits.frame allows (%zu bytes)",
                                      connection->input.scanner.frame_max);
        case TR_REFUSAL_TOO_DEEP:
                return tr_failure_new(TR_CODE_NOT_SENDABLE, "nested deeper than %u levels",
                                      connection->input.scanner.nesting_max);
        case TR_REFUSAL_BIG_INTEGER:
                return tr_failure_new(TR_CODE_NOT_SENDABLE,
                                      "a message may not carry an integer above 2^63-1: `%s` is one", path);
        case TR_REFUSAL_EXT_TYPE:
                return tr_failure_new(TR_CODE_NOT_SENDABLE, "extension type %d is not known here: `%s` is of that type",
                                      refusal->ext_type, path);
        case TR_REFUSAL_EXT_PAYLOAD:
                return tr_failure_new(TR_CODE_NOT_SENDABLE, "`%s` is of extension type %d, but its payload is not",
                                      path, refusal->ext_type);
        case TR_REFUSAL_NIL_KEY:
                return tr_failure_new(TR_CODE_NOT_SENDABLE, "a map may not have a nil key: `%s` has one", path);
        case TR_REFUSAL_KEY:
                return tr_failure_new(TR_CODE_NOT_SENDABLE,
                                      "a map's keys may be strings, integers, floats and booleans: `%s` has another",
                                      path);
        case TR_REFUSAL_NONE:
                break;
        }
        return tr_failure_new(TR_CODE_INTERNAL, "a frame was refused without a reason");
}

void tr_dispatch_refusal(struct tr_connection *connection, const uint8_t *data, const struct tr_frame *frame,
                         const struct tr_refusal *refusal) {
        char path[PATH_MAX_BYTES] = "";
        size_t params_at = frame->params.data ? (size_t)(frame->params.data - data) : 0;
        if (frame->params.data && refusal->offset >= params_at)
                tr_frame_path(frame->params.data, frame->params.bytes, refusal->offset - params_at, path, sizeof(path));
        struct tr_failure *failure = refusal_failure(connection, refusal, path);
        if (failure->code == TR_CODE_NOT_SENDABLE)
                tr_failure_add_text(failure, "path", path, strlen(path));
        if (refusal->type != TR_FRAME_RESPONSE) {
                refuse(connection, refusal->has_id, refusal->id, frame, failure);
                return;
        }
        tr_callee_answer_refused(connection, refusal->id, failure);
        tr_failure_unref(failure);
}

void tr_dispatch_bad(struct tr_connection *connection, const struct tr_refusal *refusal) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_BAD_FRAME, "this is not a frame of MessagePack-RPC");
        refuse(connection, refusal->has_id, refusal->id, NULL, failure);
}
