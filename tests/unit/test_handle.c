/* SPDX-License-Identifier: Apache-2.0 */
/* Handles as text. */
#include "config.h"

#include <string.h>

#include "proto/handle.h"
#include "tests/unit/suite.h"

static bool parse(const char *text, struct tr_handle *ret_handle) {
        return tr_handle_parse(text, strlen(text), ret_handle);
}

START_TEST(a_text_that_parses_prints_as_it_was) {
        static const char *const texts[] = {
                "actor:00000000000000000000000000000000",
                "actor:0123456789abcdef0123456789abcdef",
                "actor:7fffffffffffffffffffffffffffffff",
                "pool:80000000000000000000000000000000",
                "pool:fedcba9876543210fedcba9876543210",
        };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                char text[TR_HANDLE_TEXT_MAX + 1];
                struct tr_handle handle;

                ck_assert_msg(parse(texts[i], &handle), "%s", texts[i]);
                ck_assert_int_eq(tr_handle_is_pool(&handle), texts[i][0] == 'p');
                ck_assert_uint_eq(tr_handle_format(&handle, text), strlen(texts[i]));
                ck_assert_str_eq(text, texts[i]);
        }
}
END_TEST

START_TEST(anything_else_is_none) {
        static const char *const texts[] = {
                "",
                "counter",
                "actor:",
                "0123456789abcdef0123456789abcdef",
                "actor:0123456789abcdef0123456789abcde",
                "actor:0123456789abcdef0123456789abcdef0",
                "actor:0123456789ABCDEF0123456789abcdef",
                "actor:0123456789abcdeg0123456789abcdef",
                "Actor:0123456789abcdef0123456789abcdef",
                "xactor:0123456789abcdef0123456789abcdef",
                " actor:0123456789abcdef0123456789abcdef",
                "actor:8123456789abcdef0123456789abcdef",
                "pool:0123456789abcdef0123456789abcdef",
        };
        struct tr_handle handle, before;

        memset(&before, 0x5a, sizeof(before));
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                handle = before;
                ck_assert_msg(!parse(texts[i], &handle), "%s", texts[i]);
                ck_assert(tr_handle_equal(&handle, &before));
        }
}
END_TEST

START_TEST(a_text_has_the_form_also_where_its_bit_says_otherwise) {
        static const char *const with[] = {
                "actor:0123456789abcdef0123456789abcdef",
                "actor:8123456789abcdef0123456789abcdef",
                "pool:0123456789abcdef0123456789abcdef",
        };
        static const char *const without[] = { "", "actor:", "actor:0123", "0123456789abcdef0123456789abcdef",
                                               "actor:0123456789ABCDEF0123456789abcdef" };

        for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
                ck_assert_msg(tr_handle_has_form(with[i], strlen(with[i])), "%s", with[i]);
        for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
                ck_assert_msg(!tr_handle_has_form(without[i], strlen(without[i])), "%s", without[i]);
}
END_TEST

START_TEST(eight_digits_are_shown) {
        char text[TR_HANDLE_SHORT + 1];
        struct tr_handle handle;

        ck_assert(parse("pool:fedcba9876543210fedcba9876543210", &handle));
        tr_handle_format_short(&handle, text);
        ck_assert_str_eq(text, "fedcba98");
}
END_TEST

START_TEST(handles_differ_in_every_bit) {
        struct tr_handle a = { { 0 } };

        for (int bit = 0; bit < 8 * TR_HANDLE_BYTES; bit++) {
                struct tr_handle b = a;

                ck_assert(tr_handle_equal(&a, &b));
                b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                ck_assert(!tr_handle_equal(&a, &b));
        }
}
END_TEST

suite_main("handle", a_text_that_parses_prints_as_it_was, anything_else_is_none,
           a_text_has_the_form_also_where_its_bit_says_otherwise, eight_digits_are_shown, handles_differ_in_every_bit);
