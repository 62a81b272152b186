/* SPDX-License-Identifier: Apache-2.0 */
/* What is UTF-8, against an encoder and at every alignment of the eight-byte steps. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "proto/utf8.h"
#include "tests/unit/suite.h"

static size_t encode(uint32_t c, uint8_t *p) {
        if (c < 0x80) {
                p[0] = (uint8_t)c;
                return 1;
        }
        if (c < 0x800) {
                p[0] = (uint8_t)(0xc0 | c >> 6);
                p[1] = (uint8_t)(0x80 | (c & 0x3f));
                return 2;
        }
        if (c < 0x10000) {
                p[0] = (uint8_t)(0xe0 | c >> 12);
                p[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
                p[2] = (uint8_t)(0x80 | (c & 0x3f));
                return 3;
        }
        p[0] = (uint8_t)(0xf0 | c >> 18);
        p[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
        p[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        p[3] = (uint8_t)(0x80 | (c & 0x3f));
        return 4;
}

START_TEST(every_code_point_but_surrogates) {
        uint8_t bytes[4];

        for (uint32_t c = 0; c < 0x120000; c++) {
                bool is_scalar = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
                size_t len = encode(c, bytes);

                if (tr_utf8_is_valid(bytes, len) != is_scalar)
                        ck_abort_msg("U+%04X", (unsigned)c);
                for (size_t cut = 1; cut < len; cut++)
                        if (tr_utf8_is_valid(bytes, cut))
                                ck_abort_msg("U+%04X cut to %zu", (unsigned)c, cut);
        }
}
END_TEST

START_TEST(nothing_overlong) {
        static const char *const texts[] = { "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                                             "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf8\x88\x80\x80\x80",
                                             "\x80", "\xbf", "\xfe", "\xff", "\xc3(", "\xe2(\xa1", "\xe2\x82(" };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                ck_assert_msg(!tr_utf8_is_valid(texts[i], strlen(texts[i])), "case %zu", i);
}
END_TEST

START_TEST(a_bad_byte_is_found_wherever_it_is) {
        uint8_t text[40];

        for (size_t len = 0; len <= sizeof(text); len++) {
                memset(text, 'a', sizeof(text));
                ck_assert(tr_utf8_is_valid(text, len));
                for (size_t at = 0; at < len; at++) {
                        text[at] = 0xff;
                        ck_assert(!tr_utf8_is_valid(text, len));
                        text[at] = 'a';
                }
                for (size_t at = 0; at + 2 <= len; at++) {
                        memcpy(text + at, "\xc3\xa4", 2);
                        ck_assert(tr_utf8_is_valid(text, len));
                        memset(text, 'a', sizeof(text));
                }
        }
}
END_TEST

START_TEST(what_a_terminal_may_obey_is_a_control_character) {
        static const char *const controls[] = { "\x01", "\t", "\n", "\x1b", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f" };
        static const char *const others[] = { " ", "~", "\xc2\xa0", "\u00e9", "\u20ac", "\U0001f600" };

        for (size_t i = 0; i < sizeof(controls) / sizeof(*controls); i++) {
                ck_assert_uint_eq(tr_utf8_character(controls[i], strlen(controls[i])), strlen(controls[i]));
                ck_assert(tr_utf8_is_control(controls[i], strlen(controls[i])));
        }
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
                ck_assert_uint_eq(tr_utf8_character(others[i], strlen(others[i])), strlen(others[i]));
                ck_assert(!tr_utf8_is_control(others[i], strlen(others[i])));
        }
        ck_assert_uint_eq(tr_utf8_character("\xe2\x82", 2), 0);
        ck_assert_uint_eq(tr_utf8_character("\xff", 1), 0);
        ck_assert_uint_eq(tr_utf8_character("\xc3\xa9\xff", 3), 2);
}
END_TEST

suite_main("utf8", what_a_terminal_may_obey_is_a_control_character, every_code_point_but_surrogates, nothing_overlong, a_bad_byte_is_found_wherever_it_is);
