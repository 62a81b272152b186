/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish NAME TARGET.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        const char *const *operands = invocation->words.operands;
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_publish_async(invocation->troupe, operands[0], operands[1], tr_link_on_reply, &reply,
                                         &reply.pending);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_publish = {
        .name = "publish",
        .usage = "NAME TARGET",
        .summary = "make an actor reachable by a name",
        .syntax = { .operands = { "NAME", "TARGET" }, .operands_min = 2 },
        .run = run,
};
