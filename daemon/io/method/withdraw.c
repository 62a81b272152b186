/* SPDX-License-Identifier: Apache-2.0 */
/*
 * withdraw component: the connection gives its name up at once; nil when the calls that it holds are answered.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/core/message.h"
#include "daemon/core/target.h"
#include "daemon/io/connection.h"
#include "daemon/io/serving.h"

struct tr_failure *tr_method_withdraw(struct tr_request *request) {
        struct tr_connection *connection = request->connection;
        const char *component;
        size_t len;
        struct tr_target *target;
        struct tr_failure *failure = tr_request_name(request, 0, &component, &len);
        if (failure)
                return failure;
        struct tr_message *message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        if (!message)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the request");
        failure = tr_request_expect(request, message, connection->timeout_ns);
        if (!failure)
                failure = tr_serving_withdraw(connection, component, len, &target);
        if (failure) {
                if (request->deferred)
                        tr_connection_forget(connection, message);
                request->deferred = false;
                tr_message_unref(message);
                return failure;
        }
        tr_target_watch(target, message);
        tr_target_unref(target);
        return NULL;
}
