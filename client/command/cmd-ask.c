/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask TARGET HANDLER [ARG...]: prints what the handler answers; with --lines one answer for each line of standard
 * input.
 */
#include "client/command/ask-lines.h"
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct ask_options {
        struct tr_message_options message;
        bool raw;
        uint64_t parallel;
};

static const struct tr_option options[] = {
        TR_MESSAGE_OPTIONS,
        { "--raw", TR_OPTION_FLAG, offsetof(struct ask_options, raw) },
        { "-P", TR_OPTION_COUNT, offsetof(struct ask_options, parallel) },
        { 0 },
};

static int ask_once(struct tr_invocation *invocation, const struct troupe_value *args, bool raw) {
        struct tr_reply reply = { 0 };
        int r = troupe_ask_async(invocation->troupe, invocation->words.operands[0], invocation->words.operands[1], NULL,
                                 tr_link_on_reply, &reply, &reply.pending, "*v", args);
        int status = tr_link_wait(invocation, r, &reply);

        if (!status)
                status = tr_show_answer(invocation, &reply.value, raw ? TR_SHOW_RAW : TR_SHOW_JSON);
        tr_reply_deinit(&reply);
        return status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct ask_options *ask = chosen;
        struct troupe_value args = { 0 };
        enum tr_message_form form;
        int status;

        if (ask->parallel && !ask->message.lines && !ask->message.json_lines)
                return tr_report_usage(invocation, "-P goes with --lines or --json-lines");
        if (ask->parallel > TR_ASK_LINES_PARALLEL_MAX)
                return tr_report_usage(invocation, "-P is at most %d", TR_ASK_LINES_PARALLEL_MAX);
        status = tr_message_begin(invocation, &ask->message, &form, &args);
        if (!status)
                status = form == TR_MESSAGE_ARGS
                                 ? ask_once(invocation, &args, ask->raw)
                                 : tr_ask_lines(invocation, form, ask->parallel ? ask->parallel : 1, ask->raw);
        troupe_value_free(&args);
        return status;
}

const struct tr_command tr_cmd_ask = {
        .name = "ask",
        .usage = "[--raw] TARGET HANDLER [ARG...] | [--raw] [-P N] TARGET HANDLER --lines | --json-lines",
        .summary = "ask an actor, and print what it answers",
        .details = "  --lines       ask once for each line of standard input, which is the one argument, a string\n"
                   "  --json-lines  the same, where each line is a JSON array of the arguments\n"
                   "  -P N          so many asks in flight; the answers are printed in the order of the lines (1)\n"
                   "  --raw         strings and bytes as they are, instead of JSON\n",
        .syntax = { options, sizeof(struct ask_options), { "TARGET", "HANDLER" }, 2, true },
        .run = run,
};
