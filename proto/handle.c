/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles as text: a prefix that people can read, and 32 lower-case digits.
 *
 * There is one text for each handle: upper case, a missing digit, and a prefix
 * that says otherwise than the handle's own bit are no handles. So texts may be
 * compared instead of handles, and a text that parses prints as it was.
 */
#include "proto/handle.h"

#include <string.h>

#define DIGITS (2 * TR_HANDLE_BYTES)

static const char actor_prefix[] = "actor:";
static const char pool_prefix[] = "pool:";

static const char *prefix_of(const struct tr_handle *handle, size_t *ret_len) {
        if (tr_handle_is_pool(handle)) {
                *ret_len = sizeof(pool_prefix) - 1;
                return pool_prefix;
        }
        *ret_len = sizeof(actor_prefix) - 1;
        return actor_prefix;
}

static void format_digits(const uint8_t *bytes, size_t count, char *text) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < count; i++) {
                text[2 * i] = digits[bytes[i] >> 4];
                text[2 * i + 1] = digits[bytes[i] & 0xf];
        }
        text[2 * count] = '\0';
}

static int parse_digit(char digit) {
        if (digit >= '0' && digit <= '9')
                return digit - '0';
        if (digit >= 'a' && digit <= 'f')
                return digit - 'a' + 10;
        return -1;
}

bool tr_handle_equal(const struct tr_handle *a, const struct tr_handle *b) {
        return memcmp(a->bytes, b->bytes, TR_HANDLE_BYTES) == 0;
}

size_t tr_handle_format(const struct tr_handle *handle, char text[static TR_HANDLE_TEXT_MAX + 1]) {
        size_t prefix_len;
        const char *prefix = prefix_of(handle, &prefix_len);

        memcpy(text, prefix, prefix_len);
        format_digits(handle->bytes, TR_HANDLE_BYTES, text + prefix_len);
        return prefix_len + DIGITS;
}

void tr_handle_format_short(const struct tr_handle *handle, char text[static TR_HANDLE_SHORT + 1]) {
        format_digits(handle->bytes, TR_HANDLE_SHORT / 2, text);
}

/* Reads the 32 digits at the end. */
static bool parse_digits(const char *text, size_t len, struct tr_handle *ret_handle) {
        if (len < DIGITS)
                return false;
        for (size_t i = 0; i < TR_HANDLE_BYTES; i++) {
                int high = parse_digit(text[len - DIGITS + 2 * i]);
                int low = parse_digit(text[len - DIGITS + 2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                ret_handle->bytes[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

static bool begins_with(const char *text, size_t len, const char *prefix, size_t prefix_len) {
        return len == prefix_len + DIGITS && memcmp(text, prefix, prefix_len) == 0;
}

bool tr_handle_parse(const char *text, size_t len, struct tr_handle *ret_handle) {
        struct tr_handle handle;
        const char *prefix;
        size_t prefix_len;

        if (!parse_digits(text, len, &handle))
                return false;
        prefix = prefix_of(&handle, &prefix_len);
        if (!begins_with(text, len, prefix, prefix_len))
                return false;
        *ret_handle = handle;
        return true;
}

bool tr_handle_has_form(const char *text, size_t len) {
        struct tr_handle handle;

        return parse_digits(text, len, &handle) &&
               (begins_with(text, len, actor_prefix, sizeof(actor_prefix) - 1) ||
                begins_with(text, len, pool_prefix, sizeof(pool_prefix) - 1));
}
