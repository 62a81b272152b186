/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_PRINTABLE_H
#define TR_COMMAND_PRINTABLE_H

/*
 * Text that others chose (names, handlers, messages), made fit for a terminal: what is no UTF-8, and every character
 * that moves the cursor, begins a terminal's command or turns the direction of writing, becomes a `?`. Those of `kept`
 * ("\n\t", or "") stay.
 */
void tr_printable(char *text, const char *kept);

#endif
