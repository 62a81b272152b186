/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NOTATION_H
#define TESTS_NOTATION_H

#include <stddef.h>

#include "proto/value.h"

/*
 * MessagePack as text that tests can be read in: [0,1,'ping',[]] and {'errors':'map'}; nil, true, false, integers,
 * floats with a point, strings in single quotes (without escapes), #0102 for bin, and !type#0102 for extensions. No
 * spaces.
 */

/* Appends what the text says, any number of values one behind another. A mistake in the text aborts the test. */
void notation_write(struct tr_writer *writer, const char *text);

/* One value as text, in memory that the caller frees. */
char *notation_read(struct tr_reader *reader);

#endif
