/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call COMPONENT OPERATION [INPUT]: prints the output.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct call_options {
        const char *instance;
        const char *id;
        const char *trace;
        bool raw;
};

static const struct tr_option options[] = {
        { "--instance", TR_OPTION_TEXT, offsetof(struct call_options, instance) },
        { "--id", TR_OPTION_TEXT, offsetof(struct call_options, id) },
        { "--trace", TR_OPTION_TEXT, offsetof(struct call_options, trace) },
        { "--raw", TR_OPTION_FLAG, offsetof(struct call_options, raw) },
        { 0 },
};

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct call_options *call = chosen;
        const struct troupe_call_options how = {
                .size = sizeof(how), .instance = call->instance, .id = call->id, .trace = call->trace,
        };
        const struct troupe_value input = { .data = invocation->words.args.data, .size = invocation->words.args.len };
        struct tr_reply reply = { 0 };
        int status, r;

        status = tr_link_open(invocation);
        if (status)
                return status;
        r = troupe_call_async(invocation->troupe, invocation->words.operands[0], invocation->words.operands[1], &how,
                              tr_link_on_reply, &reply, &reply.pending, invocation->words.args_count ? "v" : "", &input);
        status = tr_link_wait(invocation, r, &reply);
        if (!status)
                status = tr_show_answer(invocation, &reply.value, call->raw ? TR_SHOW_RAW : TR_SHOW_JSON);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_call = {
        .name = "call",
        .usage = "[--instance I] [--id ID] [--trace T] [--raw] COMPONENT OPERATION [INPUT]",
        .summary = "call an operation of a component, and print its output",
        .details = "  INPUT         JSON, or a string; or name=TEXT and name:=JSON, which make up an object\n"
                   "  --instance I  the replica that it is addressed to\n"
                   "  --id ID       the entity's\n"
                   "  --trace T     a W3C traceparent, which the call becomes a part of\n"
                   "  --raw         strings and bytes as they are, instead of JSON\n",
        .syntax = { options, sizeof(struct call_options), { "COMPONENT", "OPERATION" }, 2, true, .takes_input = true },
        .run = run,
};
