/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting what a request asks for.
 */
#include "config.h"

#include "daemon/io/start.h"

#include <stdlib.h>

#include "daemon/core/session.h"
#include "daemon/core/system.h"
#include "daemon/io/connection.h"
#include "daemon/io/method.h"
#include "daemon/io/server_internal.h"

static struct tr_failure *no_memory(const struct tr_request *request) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "%s: out of memory", request->method->name);
}

static bool copy(const struct tr_text *text, char **ret_copy) {
        *ret_copy = tr_text_copy(text);
        return *ret_copy || !text->data;
}

struct tr_failure *tr_start_texts_copy(struct tr_start_texts *texts, const struct tr_text *actor, const struct tr_text *name,
                                       const struct tr_text *publish) {
        bool copied = copy(actor, &texts->actor) && copy(name, &texts->name) && copy(publish, &texts->publish);
        return copied ? NULL : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
}

void tr_start_texts_deinit(struct tr_start_texts *texts) {
        free(texts->actor);
        free(texts->name);
        free(texts->publish);
}

struct tr_failure *tr_start(struct tr_request *request, tr_start_fn *start, const void *options, bool detach, bool if_absent,
                            struct tr_message *message) {
        struct tr_connection *connection = request->connection;
        struct tr_system *system = connection->server->system;
        struct tr_session *session = detach ? system->daemon_session : tr_connection_session(connection);
        struct tr_target *target = NULL, *holder = NULL;
        if (!session || !message)
                return no_memory(request);
        struct tr_failure *failure = tr_request_expect(request, message, connection->timeout_ns);
        if (failure)
                return failure;

        failure = start(system, session, options, tr_message_ref(message), &target, &holder);
        if (failure && request->deferred) {
                tr_connection_forget(connection, message);
                request->deferred = false;
        }
        if (failure && if_absent && holder) {
                tr_failure_unref(failure);
                failure = NULL;
                tr_response_write_handle(request->result, connection->form.values, &holder->handle);
        }
        tr_target_unref(holder);
        tr_target_unref(target);
        return failure;
}
