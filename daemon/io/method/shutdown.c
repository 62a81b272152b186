/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shutdown: the daemon drains and ends, as on SIGTERM.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

struct tr_failure *tr_method_shutdown(struct tr_request *request) {
        struct tr_server *server = request->connection->server;
        server->shutdown(server->userdata);
        return NULL;
}
