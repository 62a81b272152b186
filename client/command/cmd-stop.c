/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop TARGET: asks an actor to stop, and does not wait for it (`done` does).
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/troupe.h"

struct stop_options {
        bool kill;
        uint64_t within_ms;
};

static const struct tr_option options[] = {
        { "--kill", TR_OPTION_FLAG, offsetof(struct stop_options, kill) },
        { "--within", TR_OPTION_TIME, offsetof(struct stop_options, within_ms) },
        { 0 },
};

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct stop_options *stop = chosen;
        const struct troupe_stop_options how = {
                .size = sizeof(how),
                .within_ms = stop->within_ms,
                .flags = stop->kill ? TROUPE_STOP_KILL : 0,
        };
        struct tr_reply reply = { 0 };
        int status = tr_link_open(invocation), r;

        if (!status) {
                r = troupe_stop_async(invocation->troupe, invocation->words.operands[0], &how, tr_link_on_reply, &reply,
                                      &reply.pending);
                status = tr_link_wait(invocation, r, &reply);
        }
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_stop = {
        .name = "stop",
        .usage = "[--kill] [--within T] TARGET",
        .summary = "ask an actor to stop, once it has served what is in its mailbox",
        .details = "  --kill        at once, whatever it is doing\n"
                   "  --within T    killed where it has not ended by then\n",
        .syntax = { options, sizeof(struct stop_options), { "TARGET" }, 1, false },
        .run = run,
};
