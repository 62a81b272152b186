/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_JSON_H
#define TR_BASE_JSON_H

#include <stddef.h>

/* The longest that one character of text becomes in a JSON string. */
#define TR_JSON_STEP_MAX 16

/*
 * Writes a text as it stands between the quotes of a JSON string, and answers where that ends: what is no UTF-8 becomes U+FFFD, control characters are
 * escaped. Stops where less than TR_JSON_STEP_MAX bytes of room are left. Allocates nothing.
 */
char *tr_json_escape(char *at, const char *end, const char *text, size_t len);

#endif
