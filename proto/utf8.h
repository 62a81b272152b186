/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_UTF8_H
#define TR_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 by Unicode's table 3-7: no surrogates, nothing overlong,
 * nothing above U+10FFFF. Pure ASCII is decided eight bytes at a time. */
bool tr_utf8_is_valid(const void *data, size_t len);

#endif
