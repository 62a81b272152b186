/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_SEND_LINES_H
#define TR_COMMAND_SEND_LINES_H

#include "client/command/message.h"

/* Sends each line of standard input to the invocation's TARGET and HANDLER over its open connection. The exit code. */
int tr_send_lines(struct tr_invocation *invocation, enum tr_message_form form);

#endif
