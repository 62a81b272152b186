/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn ACTOR [ARG...]: prints the handle. Detached, so that the actor outlives the command; or attached, and then
 * the command stays as long as the actor does, and takes it along when it goes.
 */
#include <errno.h>
#include <string.h>

#include "client/command/command.h"
#include "client/command/interrupt.h"
#include "client/command/link.h"
#include "client/command/message.h"
#include "client/command/report.h"
#include "client/command/show.h"
#include "client/troupe.h"

struct spawn_options {
        const char *name;
        const char *publish;
        bool if_absent;
        bool attach;
        uint64_t heap_bytes;
        uint64_t mailbox;
};

static const struct tr_option options[] = {
        { "--name", TR_OPTION_TEXT, offsetof(struct spawn_options, name) },
        { "--publish", TR_OPTION_TEXT, offsetof(struct spawn_options, publish) },
        { "--if-absent", TR_OPTION_FLAG, offsetof(struct spawn_options, if_absent) },
        { "--heap", TR_OPTION_SIZE, offsetof(struct spawn_options, heap_bytes) },
        { "--mailbox", TR_OPTION_COUNT, offsetof(struct spawn_options, mailbox) },
        { "--attach", TR_OPTION_FLAG, offsetof(struct spawn_options, attach) },
        { 0 },
};

/* The handle, for the caller; printed. */
static int start(struct tr_invocation *invocation, const struct spawn_options *spawn,
                 char ret_handle[TROUPE_HANDLE_SIZE]) {
        struct troupe_spawn_options chosen = {
                .size = sizeof(chosen),
                .name = spawn->name,
                .publish = spawn->publish,
                .heap_bytes = spawn->heap_bytes,
                .mailbox = spawn->mailbox,
                .flags = (spawn->attach ? 0 : TROUPE_SPAWN_DETACH) | (spawn->if_absent ? TROUPE_SPAWN_IF_ABSENT : 0),
        };
        struct troupe_value args = { 0 };
        struct tr_reply reply = { 0 };
        int r, status;

        status = tr_message_args(invocation, &args);
        if (!status) {
                r = troupe_spawn_async(invocation->troupe, invocation->words.operands[0], &chosen, tr_link_on_reply,
                                       &reply, &reply.pending, "*v", &args);
                status = tr_link_wait(invocation, r, &reply);
        }
        if (!status)
                status = troupe_value_handle(&reply.value, ret_handle) ? tr_report_errno(invocation, -EBADMSG)
                                                                       : tr_show_text(invocation, ret_handle);
        tr_reply_deinit(&reply);
        troupe_value_free(&args);
        return status ? status : tr_show_end(invocation);
}

/*
 * Until the actor has ended. An interrupt stops it, orderly, and waits on; a second one does not. Where it may be
 * another's, which held the name, an interrupt only ends the connection: that stops the actor if it is this command's.
 */
static int stay(struct tr_invocation *invocation, const char *handle, bool may_be_anothers) {
        struct tr_reply reply = { 0 };
        int status = 0, r;

        r = troupe_done_async(invocation->troupe, handle, NULL, tr_link_on_reply, &reply, &reply.pending);
        if (r) {
                tr_problem_set(&reply.problem, invocation->troupe, r);
                reply.is_done = true;
        }
        while (!reply.is_done) {
                if (tr_link_step(invocation, NULL, -1) != TR_STEP_INTERRUPTED)
                        continue;
                if (!may_be_anothers)
                        (void)troupe_stop_async(invocation->troupe, handle, NULL, NULL, NULL, NULL);
                else
                        tr_link_close(invocation); /* which is the reply, too */
        }
        if (reply.problem.is_set && !(may_be_anothers && tr_interrupt_happened()))
                status = tr_problem_report(&reply.problem, invocation, 0);
        tr_reply_deinit(&reply);
        return tr_interrupt_happened() ? tr_interrupt_exit() : status;
}

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct spawn_options *spawn = chosen;
        char handle[TROUPE_HANDLE_SIZE];
        int status;

        if (spawn->if_absent && !spawn->publish)
                return tr_report_usage(invocation, "--if-absent goes with --publish");
        status = tr_link_open(invocation);
        if (!status)
                status = start(invocation, spawn, handle);
        return status || !spawn->attach ? status : stay(invocation, handle, spawn->if_absent);
}

const struct tr_command tr_cmd_spawn = {
        .name = "spawn",
        .usage = "[--name N] [--publish N] [--if-absent] [--heap S] [--mailbox N] [--attach] ACTOR [ARG...]",
        .summary = "start an actor, and print its handle",
        .details = "  ACTOR         module:Name, or module where it declares exactly one actor\n"
                   "  --name N      a label for people\n"
                   "  --publish N   publish it under this name\n"
                   "  --if-absent   print the handle of whoever holds the name, if somebody does\n"
                   "  --heap S      bytes that its heap may grow to (64M)\n"
                   "  --mailbox N   messages that may wait for it (65536)\n"
                   "  --attach      stay until it stops, and stop it when interrupted\n",
        .syntax = { options, sizeof(struct spawn_options), { "ACTOR" }, 1, true },
        .run = run,
};
