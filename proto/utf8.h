/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_UTF8_H
#define TR_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 by Unicode's table 3-7: no surrogates, nothing overlong,
 * nothing above U+10FFFF. Pure ASCII is decided eight bytes at a time. */
bool tr_utf8_is_valid(const void *data, size_t len);

/* Bytes of the character that text begins with, of which there is at least one; 0 where none does. */
size_t tr_utf8_character(const char *text, size_t len);
/* Whether a character of so many bytes is what a terminal may obey: C0, DEL, and C1 as UTF-8 has it (c2 80 to c2 9f). */
bool tr_utf8_is_control(const char *character, size_t bytes);

#endif
