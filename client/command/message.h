/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_MESSAGE_H
#define TR_COMMAND_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/command/report.h"
#include "client/troupe.h"

struct tr_invocation;

/*
 * Where the arguments of a message come from: the ARGs, or a line of standard input.
 */
enum tr_message_form {
        TR_MESSAGE_ARGS,
        TR_MESSAGE_LINES,      /* each line is a string */
        TR_MESSAGE_JSON_LINES, /* each line is a JSON array of arguments */
};

/* Every command that sends messages has these options, at the beginning of its own. */
struct tr_message_options {
        bool lines;
        bool json_lines;
};
#define TR_MESSAGE_OPTIONS                                                                      \
        { "--lines", TR_OPTION_FLAG, offsetof(struct tr_message_options, lines) }, {            \
                "--json-lines", TR_OPTION_FLAG, offsetof(struct tr_message_options, json_lines) \
        }

/* The ARGs as one array, for troupe_value_free(). 0, or the exit code, and a message was printed. */
int tr_message_args(const struct tr_invocation *invocation, struct troupe_value *ret_args);
/* Which form the options say, with the ARGs where it is those; then opens the connection. The same answers. */
int tr_message_begin(struct tr_invocation *invocation, const struct tr_message_options *options,
                     enum tr_message_form *ret_form, struct troupe_value *ret_args);
/* Says what is wrong with a line of which the library said -EINVAL or -ERANGE. */
void tr_message_problem(struct tr_problem *problem, const char *line, size_t len);

#endif
