/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info TARGET: everything that is known about one actor, a line for each.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/pairs.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                tr_link_be_plain(invocation);
                r = troupe_request_async(invocation->troupe, "info", tr_link_on_reply, &reply, &reply.pending, "s",
                                         invocation->words.operands[0]);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status && invocation->json)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_JSON);
        else if (!status && (r = tr_pairs_print(&reply.value)))
                status = tr_report_errno(invocation, r);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_info = {
        .name = "info",
        .usage = "TARGET",
        .summary = "print what is known about an actor",
        .syntax = { .operands = { "TARGET" }, .operands_min = 1 },
        .run = run,
};
