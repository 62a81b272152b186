/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ping: whether a daemon answers.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/show.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_request_async(invocation->troupe, "ping", tr_link_on_reply, &reply, &reply.pending, NULL);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                status = tr_show_text(invocation, "pong");
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_ping = {
        .name = "ping",
        .usage = "",
        .summary = "see whether the daemon answers",
        .run = run,
};
