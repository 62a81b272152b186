/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: the actors, live, on a terminal.
 */
#include "config.h"

#include <unistd.h>

#include "client/command/command.h"
#include "client/command/report.h"
#include "client/command/top.h"

#define EVERY_MS 1000
#define EVERY_MAX_MS (24 * 3600 * 1000)

struct top_options {
        uint64_t every_ms;
};

static const struct tr_option options[] = {
        { "--every", TR_OPTION_TIME, offsetof(struct top_options, every_ms) },
        { 0 },
};

static int run(struct tr_invocation *invocation, const void *chosen) {
        const struct top_options *top = chosen;

        if (invocation->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return tr_report_usage(invocation, "it wants a terminal; for programs there is `troupe ls -j`");
        if (top->every_ms > EVERY_MAX_MS)
                return tr_report_usage(invocation, "--every is at most a day");
#ifdef HAVE_NCURSES
        return tr_top(invocation, top->every_ms ? top->every_ms : EVERY_MS);
#else
        return tr_report_usage(invocation,
                               "this troupe was built without ncurses, which it takes; there is `troupe ls`");
#endif
}

const struct tr_command tr_cmd_top = {
        .name = "top",
        .usage = "[--every T]",
        .summary = "watch the actors on a terminal",
        .details = "  --every T     how often it looks (1s)\n"
                   "\n"
                   "The keys are on the screen; the arrows, PgUp, PgDn, Home and End move it. q ends it.\n",
        .syntax = { options, sizeof(struct top_options) },
        .run = run,
};
