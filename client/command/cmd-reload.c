/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload: the daemon reads its configuration again; what is wrong with it is the answer.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_request_async(invocation->troupe, "reload", tr_link_on_reply, &reply, &reply.pending, NULL);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_reload = {
        .name = "reload",
        .usage = "",
        .summary = "have the daemon read its configuration again",
        .run = run,
};
