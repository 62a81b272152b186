/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping: "pong".
 */
#include "config.h"

#include "daemon/io/method.h"

struct tr_failure *tr_method_ping(struct tr_request *request) {
        tr_write_text(request->result, "pong");
        return NULL;
}
