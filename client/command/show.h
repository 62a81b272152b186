/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_SHOW_H
#define TR_COMMAND_SHOW_H

#include <stdbool.h>

#include "client/troupe.h"

struct tr_invocation;

/*
 * What goes to standard output. All answer 0 or the exit code, and then a message was printed.
 */

enum tr_show {
        TR_SHOW_JSON = 0,           /* JSON; a string bare on a terminal, a handle always; with -j JSON in any case */
        TR_SHOW_RAW = 1 << 0,       /* strings and bytes as they are, without a newline */
        TR_SHOW_RAW_LINES = 1 << 1, /* with one */
};

/* What an actor answered. */
int tr_show_answer(const struct tr_invocation *invocation, const struct troupe_value *value, enum tr_show how);
/* A text that is printed bare: a handle, a version. With -j as a JSON string. */
int tr_show_text(const struct tr_invocation *invocation, const char *text);
/* Everything was written: whether it went out. */
int tr_show_end(const struct tr_invocation *invocation);

#endif
