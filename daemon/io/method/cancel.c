/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel msgid: takes a request of this connection back. True where it was pending; it is answered `cancelled` then,
 * and never runs where it was still queued.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/connection.h"

struct tr_failure *tr_method_cancel(struct tr_request *request) {
        int64_t id;
        if (!tr_token_integer(&request->params[0].token, &id) || id < 0 || id > UINT32_MAX)
                return tr_request_bad_param(request, 0, "the id of a request");
        tr_write_bool(request->result, tr_connection_cancel(request->connection, (uint32_t)id));
        return NULL;
}
