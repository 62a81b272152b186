/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_ARGUMENT_H
#define TR_COMMAND_ARGUMENT_H

#include <stdbool.h>

#include "proto/value.h"

struct tr_invocation;

/*
 * An ARG, decided by its text alone: what begins with `{`, `[` or `"` must be JSON; true, false, null and JSON's
 * numbers are those; anything else is a string. `-s TEXT` is a string whatever it looks like; `--json FILE` and
 * `--bin FILE` are what is in a file (`-`: standard input).
 */

/* JSON's grammar for a number, exactly. */
bool tr_argument_is_number(const char *text);
/* -s, --json and --bin; NULL behind the last. An ARG that begins with one of these is the next word. */
extern const char *const tr_argument_marks[];
bool tr_argument_is_marked(const char *word);

/* Appends a text that has to be JSON. 0, or the exit code, and a message was printed. */
int tr_argument_append_json(struct tr_invocation *invocation, const char *text, struct tr_writer *out);
/* Appends the ARG that begins at *at, and moves *at past its words. 0, or the exit code, and a message was printed. */
int tr_argument_read(struct tr_invocation *invocation, char ***at, char **end, struct tr_writer *out);

#endif
