/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload: the daemon reads its configuration again and applies what has changed, as on SIGHUP; nil, or why it did not.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/connection.h"
#include "daemon/io/server_internal.h"

struct tr_failure *tr_method_reload(struct tr_request *request) {
        struct tr_server *server = request->connection->server;

        return server->reload(server->userdata);
}
