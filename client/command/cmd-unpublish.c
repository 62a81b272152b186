/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpublish NAME.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_unpublish_async(invocation->troupe, invocation->words.operands[0], tr_link_on_reply, &reply,
                                           &reply.pending);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_unpublish = {
        .name = "unpublish",
        .usage = "NAME",
        .summary = "take a published name back",
        .syntax = { .operands = { "NAME" }, .operands_min = 1 },
        .run = run,
};
