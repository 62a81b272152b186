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

struct send_options {
        bool lines;
        bool json_lines;
};

static const struct tr_option options[] = {
        { "--lines", TR_OPTION_FLAG, offsetof(struct send_options, lines) },
        { "--json-lines", TR_OPTION_FLAG, offsetof(struct send_options, json_lines) },
        { 0 },
};

static int send_once(struct tr_invocation *invocation) {
        struct troupe_value args = { 0 };
        struct tr_reply reply = { 0 };
        int r, status;

        status = tr_message_args(invocation, &args);
        if (!status)
                status = tr_link_open(invocation);
        if (!status) {
                r = troupe_send_async(invocation->troupe, invocation->words.operands[0], invocation->words.operands[1],
                                      tr_link_on_reply, &reply, &reply.pending, "*v", &args);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        troupe_value_free(&args);
        return status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct send_options *send = chosen;
        enum tr_message_form form;
        int status = tr_message_form(invocation, send->lines, send->json_lines, &form);

        if (status)
                return status;
        if (form == TR_MESSAGE_ARGS)
                return send_once(invocation);
        status = tr_link_open(invocation);
        return status ? status : tr_send_lines(invocation, form);
}

const struct tr_command tr_cmd_send = {
        .name = "send",
        .usage = "TARGET HANDLER [ARG...] | TARGET HANDLER --lines | --json-lines",
        .summary = "send an actor a message; done once it is in the mailbox",
        .details = "  --lines       send each line of standard input, as a string, in order; the mailbox is never "
                   "overrun\n"
                   "  --json-lines  the same, where each line is a JSON array of the arguments\n",
        .syntax = { options, sizeof(struct send_options), { "TARGET", "HANDLER" }, 2, true },
        .run = run,
};
