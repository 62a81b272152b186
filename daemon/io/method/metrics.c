/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: what the daemon has counted, as OpenMetrics text.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

struct tr_failure *tr_method_metrics(struct tr_request *request) {
        struct tr_server *server = request->connection->server;
        struct tr_writer text = TR_WRITER_INIT;
        struct tr_failure *failure = NULL;
        server->write_metrics(server->userdata, &text);
        if (tr_writer_error(&text))
                failure = tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the metrics");
        else
                tr_write_str(request->result, (const char *)text.data, text.len);
        tr_writer_deinit(&text);
        return failure;
}
