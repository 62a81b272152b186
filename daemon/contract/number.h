/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_NUMBER_H
#define TR_CONTRACT_NUMBER_H

#include <stdbool.h>

#include "proto/value.h"

/* Numbers as JSON has them: what they are, not how they are written. All of these take TR_INT, TR_UINT and TR_FLOAT; a
 * float is finite. */

/* Whether a token is a number: NaN and the infinities are none. */
bool tr_number_is(const struct tr_token *token);
/* Whether it has no fraction. */
bool tr_number_is_integer(const struct tr_token *number);
/* Below 0, 0, above 0: exactly, also of a large integer and a float. */
int tr_number_compare(const struct tr_token *a, const struct tr_token *b);
/* Whether number / divisor has no fraction, of both as they are written in decimal: 0.0075 is a multiple of 0.0001. The
 * divisor is above 0. */
bool tr_number_is_multiple(const struct tr_token *number, const struct tr_token *divisor);
/* Writes it so that equal numbers are the same bytes. */
void tr_number_write(struct tr_writer *writer, const struct tr_token *number);
/* As text; answers the length. */
#define TR_NUMBER_TEXT_MAX TR_FLOAT_TEXT_MAX
size_t tr_number_format(const struct tr_token *number, char text[static TR_NUMBER_TEXT_MAX]);

#endif
