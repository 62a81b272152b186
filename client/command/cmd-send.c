/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send TARGET HANDLER [ARG...]: done once the message is in the mailbox; with --lines one message for each line of
 * standard input.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/send-lines.h"
#include "client/troupe.h"

static const struct tr_option options[] = { TR_MESSAGE_OPTIONS, { 0 } };

static int send_once(struct tr_invocation *invocation, const struct troupe_value *args) {
        struct tr_reply reply = { 0 };
        int r = troupe_send_async(invocation->troupe, invocation->words.operands[0], invocation->words.operands[1],
                                  tr_link_on_reply, &reply, &reply.pending, "*v", args);
        int status = tr_link_wait(invocation, r, &reply);

        tr_reply_deinit(&reply);
        return status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        struct troupe_value args = { 0 };
        enum tr_message_form form;
        int status = tr_message_begin(invocation, chosen, &form, &args);

        if (!status)
                status = form == TR_MESSAGE_ARGS ? send_once(invocation, &args) : tr_send_lines(invocation, form);
        troupe_value_free(&args);
        return status;
}

const struct tr_command tr_cmd_send = {
        .name = "send",
        .usage = "TARGET HANDLER [ARG...] | TARGET HANDLER --lines | --json-lines",
        .summary = "send an actor a message; done once it is in the mailbox",
        .details = "  --lines       send each line of standard input, as a string, in order; the mailbox is never "
                   "overrun\n"
                   "  --json-lines  the same, where each line is a JSON array of the arguments\n",
        .syntax = { options, sizeof(struct tr_message_options), { "TARGET", "HANDLER" }, 2, true },
        .run = run,
};
