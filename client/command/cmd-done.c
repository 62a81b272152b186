/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done TARGET: waits until the actor has ended; how it failed is the error.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_done_async(invocation->troupe, invocation->words.operands[0], NULL, tr_link_on_reply, &reply,
                                      &reply.pending);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_done = {
        .name = "done",
        .usage = "TARGET",
        .summary = "wait until an actor has ended",
        .syntax = { .operands = { "TARGET" }, .operands_min = 1 },
        .run = run,
};
