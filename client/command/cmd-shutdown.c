/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shutdown: the daemon stops every actor orderly, and ends.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_request_async(invocation->troupe, "shutdown", tr_link_on_reply, &reply, &reply.pending,
                                         NULL);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_shutdown = {
        .name = "shutdown",
        .usage = "",
        .summary = "stop the daemon, orderly",
        .run = run,
};
