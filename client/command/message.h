/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_MESSAGE_H
#define TR_COMMAND_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

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

/* Which of them the options say. 0, or the exit code, and a message was printed. */
int tr_message_form(const struct tr_invocation *invocation, bool lines, bool json_lines,
                    enum tr_message_form *ret_form);
/* The ARGs as one array, for troupe_value_free(). The same answers. */
int tr_message_args(const struct tr_invocation *invocation, struct troupe_value *ret_args);
/* A line as one array. 0, -EINVAL where it is no JSON array, -ERANGE, -ENOMEM. */
int tr_message_line(enum tr_message_form form, const char *line, size_t len, struct troupe_value *ret_args);
/* What to say of a line that answered so. */
const char *tr_message_line_problem(int r);

#endif
