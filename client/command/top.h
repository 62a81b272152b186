/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_TOP_H
#define TR_COMMAND_TOP_H

#include <stdint.h>

struct tr_invocation;

/* Shows the actors on the terminal, anew each `every_ms`, until somebody has seen enough. The exit code. */
int tr_top(struct tr_invocation *invocation, uint64_t every_ms);

#endif
