/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_ASK_LINES_H
#define TR_COMMAND_ASK_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/command/message.h"

/* What the daemon lets wait on one connection, unless it is configured. */
#define TR_ASK_LINES_PARALLEL_MAX 65536

/* Asks the invocation's TARGET and HANDLER once for each line of standard input, over its open connection, so many at
 * a time, and prints the answers in the order of the lines. The exit code. */
int tr_ask_lines(struct tr_invocation *invocation, enum tr_message_form form, uint64_t parallel, bool raw);

#endif
