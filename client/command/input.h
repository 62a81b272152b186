/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_INPUT_H
#define TR_COMMAND_INPUT_H

struct tr_invocation;

/*
 * The INPUT of an operation: one ARG (argument.h), or the members of an object, `name=TEXT` and `name:=JSON`, as many as there are.
 * A string that looks like a member is written `-s 'a=b'`.
 */

/* Reads all the words into the invocation's arguments: one value, or none. 0, or the exit code, and a message was printed. */
int tr_input_read(struct tr_invocation *invocation, char **words, char **end);

#endif
