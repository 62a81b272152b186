/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/printable.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "proto/utf8.h"

/* Whether a character breaks the line (U+2028, U+2029) or turns the direction (U+061C, U+200E and U+200F, U+202A to
 * U+202E, U+2066 to U+2069). */
static bool turns(const char *character, size_t bytes) {
        unsigned char last = character[bytes - 1];

        if (bytes == 2)
                return !memcmp(character, "\xd8\x9c", 2);
        if (bytes != 3)
                return false;
        if (!memcmp(character, "\xe2\x80", 2))
                return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
        return !memcmp(character, "\xe2\x81", 2) && last >= 0xa6 && last <= 0xa9;
}

void tr_printable(char *text, const char *kept) {
        size_t left = strlen(text);
        char *out = text;

        for (const char *at = text; left;) {
                size_t bytes = tr_utf8_character(at, left);
                bool is_good = bytes && ((!tr_utf8_is_control(at, bytes) && !turns(at, bytes)) || strchr(kept, *at));

                if (!bytes)
                        bytes = 1;
                if (is_good) {
                        memmove(out, at, bytes);
                        out += bytes;
                } else {
                        *out++ = '?';
                }
                at += bytes;
                left -= bytes;
        }
        *out = 0;
}
