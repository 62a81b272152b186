/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send target, handler, args: nil once the message is in the mailbox.
 */
#include "config.h"

#include "daemon/io/method.h"

#include "daemon/io/post.h"

struct tr_failure *tr_method_send(struct tr_request *request) {
        return tr_post_send(request);
}
