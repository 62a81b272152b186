/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_REPORT_H
#define TR_COMMAND_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/troupe.h"

struct tr_invocation;

/*
 * Errors, on standard error: `troupe: ask: mailbox-full: the mailbox is full`. All answer the exit code.
 */

/* The command line is wrong. */
__attribute__((format(printf, 2, 3))) int tr_report_usage(const struct tr_invocation *invocation, const char *format,
                                                          ...);
int tr_report_no_command(const struct tr_invocation *invocation, const char *name);
/* Something on this side that no code of the protocol's stands for. */
int tr_report_errno(const struct tr_invocation *invocation, int r);
/* The same of a file. */
int tr_report_file(const struct tr_invocation *invocation, const char *path, int r);
/* There is no connection to be had: `r` is why not, `paths` what was tried. */
int tr_report_no_daemon(const struct tr_invocation *invocation, const char *paths, int r);

/* What became of a request, kept until it is this one's turn to be reported. Zeroed: nothing. */
struct tr_problem {
        bool is_set;
        int exit;
        char *code;
        char *message;
        char *traceback; /* may be NULL */
};

/* Of the request that a callback is about, or of the last call: `result` is negative. Replaces what is in it. */
void tr_problem_set(struct tr_problem *problem, const struct troupe *troupe, int result);
/* What the command itself finds wrong. */
void tr_problem_say(struct tr_problem *problem, int exit, const char *code, const char *message);
/* Prints it, with the number of the line that it is about where that is not 0. */
int tr_problem_report(const struct tr_problem *problem, const struct tr_invocation *invocation, uint64_t line);
void tr_problem_deinit(struct tr_problem *problem);

#endif
