/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8, strictly. Every string that goes to a peer is looked at here once, and
 * nearly all of them are ASCII, which goes by eight bytes at a time.
 */
#include "proto/utf8.h"

#include <stdint.h>
#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool is_continuation(uint8_t byte) {
        return (byte & 0xc0) == 0x80;
}

/*
 * The length of the well-formed sequence at p, 0 where there is none. Only the
 * second byte's range depends on the first: it is what rules out overlong forms
 * (e0, f0), surrogates (ed) and what lies above U+10FFFF (f4).
 */
static size_t sequence_len(const uint8_t *p, size_t left) {
        uint8_t low = 0x80, high = 0xbf;
        size_t len;

        if (p[0] < 0x80)
                return 1;
        if (p[0] < 0xc2 || p[0] > 0xf4)
                return 0;

        len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
        if (left < len)
                return 0;
        switch (p[0]) {
        case 0xe0:
                low = 0xa0;
                break;
        case 0xed:
                high = 0x9f;
                break;
        case 0xf0:
                low = 0x90;
                break;
        case 0xf4:
                high = 0x8f;
                break;
        }
        if (p[1] < low || p[1] > high)
                return 0;
        for (size_t i = 2; i < len; i++)
                if (!is_continuation(p[i]))
                        return 0;
        return len;
}

bool tr_utf8_is_valid(const void *data, size_t len) {
        const uint8_t *p = data;

        while (len > 0) {
                uint64_t eight;
                size_t n;

                if (len >= sizeof(eight)) {
                        memcpy(&eight, p, sizeof(eight));
                        if (!(eight & HIGH_BITS)) {
                                p += sizeof(eight);
                                len -= sizeof(eight);
                                continue;
                        }
                }
                n = sequence_len(p, len);
                if (n == 0)
                        return false;
                p += n;
                len -= n;
        }
        return true;
}

size_t tr_utf8_character(const char *text, size_t len) {
        return sequence_len((const uint8_t *)text, len);
}

bool tr_utf8_is_control(const char *character, size_t bytes) {
        uint8_t first = (uint8_t)character[0];

        return first < 0x20 || first == 0x7f || (bytes == 2 && first == 0xc2 && (uint8_t)character[1] < 0xa0);
}
