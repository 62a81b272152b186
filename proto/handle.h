/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_HANDLE_H
#define TR_PROTO_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A handle names one actor or one pool. It is 128 random bits, of which the
 * top bit of the first byte says pool: knowing it is the permission to use it.
 * Plain data, copied freely, safe on every thread.
 */

#define TR_HANDLE_BYTES 16
/* "actor:" and 32 hexadecimal digits; "pool:" makes one byte less. No NUL. */
#define TR_HANDLE_TEXT_MAX 38
/* The digits that logs, events and traces may show. */
#define TR_HANDLE_SHORT 8

struct tr_handle {
        uint8_t bytes[TR_HANDLE_BYTES];
};

static inline bool tr_handle_is_pool(const struct tr_handle *handle) {
        return handle->bytes[0] & 0x80;
}

bool tr_handle_equal(const struct tr_handle *a, const struct tr_handle *b);

/* Writes the text form and a NUL into text; answers its length without it. */
size_t tr_handle_format(const struct tr_handle *handle, char text[static TR_HANDLE_TEXT_MAX + 1]);

/* Writes the first eight digits and a NUL. */
void tr_handle_format_short(const struct tr_handle *handle, char text[static TR_HANDLE_SHORT + 1]);

/* Reads a text form, exactly. False, with *ret_handle untouched, where it is none
 * (also where the prefix and the bit that says actor or pool disagree). */
bool tr_handle_parse(const char *text, size_t len, struct tr_handle *ret_handle);

/* Whether a text looks like a handle's. One that does and does not parse, since prefix and bit disagree, names nothing
 * that ever was. */
bool tr_handle_has_form(const char *text, size_t len);

#endif
