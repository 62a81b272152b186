/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_QUANTITY_H
#define TR_PROTO_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sizes and times as text, alike in Lua, JSON, commands and on the socket: whole
 * decimal numbers with a unit. (Bytes and milliseconds are numbers, and no text.)
 * Anything else, and what a uint64_t cannot hold, is refused: false, with the
 * output untouched.
 */

/* "64K", "16M", "1G": powers of 1024. */
bool tr_size_parse(const char *text, size_t len, uint64_t *ret_bytes);

/* "200ms", "30s", "5m", "12h", "7d". */
bool tr_duration_parse(const char *text, size_t len, uint64_t *ret_ms);

#endif
