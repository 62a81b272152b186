/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task COMPONENT OPERATION [INPUT]: leaves a call for later, and prints the task's id once it is on the daemon's disk.
 * Its subcommands, about tasks that are kept, are cmd-tasks.c's.
 */
#include "client/command/command.h"
#include "client/command/link.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct task_options {
        uint64_t delay_ms;
        uint64_t at_ms;
        uint64_t expires_ms;
        const char *key;
        const char *id;
        const char *trace;
};

static const struct tr_option options[] = {
        { "--delay", TR_OPTION_TIME, offsetof(struct task_options, delay_ms) },
        { "--at", TR_OPTION_DATE, offsetof(struct task_options, at_ms) },
        { "--expires", TR_OPTION_TIME, offsetof(struct task_options, expires_ms) },
        { "--key", TR_OPTION_TEXT, offsetof(struct task_options, key) },
        { "--id", TR_OPTION_TEXT, offsetof(struct task_options, id) },
        { "--trace", TR_OPTION_TEXT, offsetof(struct task_options, trace) },
        { 0 },
};

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct task_options *task = chosen;
        const struct troupe_task_options how = {
                .size = sizeof(how), .delay_ms = task->delay_ms, .at_ms = task->at_ms, .expires_ms = task->expires_ms,
                .key = task->key,    .id = task->id,             .trace = task->trace,
        };
        const struct troupe_value input = { .data = invocation->words.args.data, .size = invocation->words.args.len };
        struct tr_reply reply = { 0 };
        int status, r;

        status = tr_link_open(invocation);
        if (status)
                return status;
        r = troupe_task_async(invocation->troupe, invocation->words.operands[0], invocation->words.operands[1], &how,
                              tr_link_on_reply, &reply, &reply.pending, invocation->words.args_count ? "v" : "", &input);
        status = tr_link_wait(invocation, r, &reply);
        if (!status)
                status = tr_show_answer(invocation, &reply.value, TR_SHOW_RAW_LINES);
        tr_reply_deinit(&reply);
        return status;
}

const struct tr_command tr_cmd_task = {
        .name = "task",
        .usage = "[--delay T | --at TIME] [--expires T] [--key K] [--id ID] [--trace T] COMPONENT OPERATION [INPUT]",
        .summary = "leave a call of an operation for later, and print its id once it is on disk",
        .details = "  INPUT         JSON, or a string; or name=TEXT and name:=JSON, which make up an object\n"
                   "  --delay T     due after this time\n"
                   "  --at TIME     due then: 2030-01-31T18:30:00+01:00, or milliseconds since 1970\n"
                   "  --expires T   dropped where it has not begun so long after it was due\n"
                   "  --key K       the same task as one of this operation that waits with this key\n"
                   "  --id ID       the entity's\n"
                   "  --trace T     a W3C traceparent, which the call becomes a part of\n",
        .syntax = { options, sizeof(struct task_options), { "COMPONENT", "OPERATION" }, 2, true, .takes_input = true },
        .subcommands = tr_cmd_tasks,
        .run = run,
};
