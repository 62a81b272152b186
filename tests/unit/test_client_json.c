/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to MessagePack and back: exactly what was there, and a clear answer where that cannot be. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "client/json.h"
#include "client/troupe.h"
#include "tests/unit/suite.h"

/* What a value packed by `format` is as JSON. */
#define ck_assert_json(expected, ...)                                              \
        do {                                                                       \
                struct troupe_value value_;                                        \
                char *text_;                                                       \
                size_t length_;                                                    \
                ck_assert_int_eq(troupe_pack(&value_, __VA_ARGS__), 0);            \
                ck_assert_int_eq(troupe_value_json(&value_, &text_, &length_), 0); \
                ck_assert_str_eq(text_, expected);                                 \
                ck_assert_uint_eq(length_, strlen(expected));                      \
                free(text_);                                                       \
                troupe_value_free(&value_);                                        \
        } while (0)

static int read_result(const char *text) {
        struct troupe_value value;
        int r = troupe_pack(&value, "j", text);

        if (!r)
                troupe_value_free(&value);
        return r;
}

START_TEST(what_comes_back_is_what_went_in) {
        static const char *const same[] = {
                "null",
                "true",
                "false",
                "0",
                "-1",
                "9223372036854775807",
                "-9223372036854775808",
                "0.1",
                "-0.0",
                "1e+20",
                "3.0",
                "1.7976931348623157e+308",
                "5e-324",
                "\"\"",
                "\"a\\\"b\\\\c\\n\\t\\u0001\"",
                "\"\\u0000\"",
                "\"gr\u00fc\u00df\"",
                "[]",
                "{}",
                "[1,[2,{\"b\":1,\"a\":[null]}],\"x\"]",
                "{\"$bin\":\"AP8=\"}",
                "{\"$bin\":\"\"}",
                "{\"$float\":\"nan\"}",
                "{\"$float\":\"inf\"}",
                "{\"$float\":\"-inf\"}",
                "{\"$handle\":\"actor:00112233445566778899aabbccddeeff\"}",
                "{\"$handle\":\"pool:80112233445566778899aabbccddeeff\"}",
                "{\"$bin\":\"AA==\",\"b\":1}",
                "{\"$\":1}",
        };

        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
                ck_assert_json(same[i], "j", same[i]);
        ck_assert_json("[1,2]", "j", " [ 1 ,\n2 ] ");
        ck_assert_json("\"/\"", "j", "\"\\/\"");
}
END_TEST

START_TEST(what_is_no_json_is_refused) {
        static const char *const bad[] = {
                "",
                " ",
                "{",
                "[1,]",
                "{\"a\":}",
                "\"a",
                "nul",
                "01",
                "+1",
                "1 2",
                "'a'",
                "\"\xff\"",
                "{\"a\":1,\"a\":2}",
                "{a:1}",
                "{\"$bin\":\"A\"}",
                "{\"$bin\":\"A*==\"}",
                "{\"$bin\":1}",
                "{\"$float\":\"NaN\"}",
                "{\"$float\":1.5}",
                "{\"$handle\":\"actor:12\"}",
                "{\"$handle\":\"actor:80112233445566778899aabbccddeeff\"}",
                "{\"$handle\":null}",
                "[{\"$bin\":\"A\"}]",
        };
        static const char *const beyond[] = {
                "9223372036854775808", "-9223372036854775809", "[1,18446744073709551616]", "1e400", "{\"a\":-1e999}",
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                ck_assert_msg(read_result(bad[i]) == -EINVAL, "%s: %d", bad[i], read_result(bad[i]));
        for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
                ck_assert_msg(read_result(beyond[i]) == -ERANGE, "%s: %d", beyond[i], read_result(beyond[i]));
}
END_TEST

START_TEST(nesting_is_left_to_the_daemon_within_reason) {
        char text[6001];

        memset(text, '[', 1000);
        memset(text + 1000, ']', 1000);
        text[2000] = '\0';
        ck_assert_int_eq(read_result(text), 0);
        memset(text, '[', 3000);
        memset(text + 3000, ']', 3000);
        text[6000] = '\0';
        ck_assert_int_eq(read_result(text), -EINVAL);
}
END_TEST

START_TEST(what_json_has_no_form_for) {
        static const uint8_t message[] = { 0x92, 0xc4, 16, 0,  1,  2,  3,  4,    5,   6,   7,  8,
                                           9,    10,   11, 12, 13, 14, 15, 0xa3, 'a', 'd', 'd' };
        static const char instance[] = "\xc7\x09\x03\x92\xa3m:P\x81\xa1x\x2a";
        static const char int_keys[] = "\x84\x01\xa1"
                                       "a\xc3\x02\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\x03\xa1\xff\x04";
        uint8_t packed[3 + sizeof(message)] = { 0xc7, sizeof(message), 2 };

        memcpy(packed + 3, message, sizeof(message));
        ck_assert_json("[{\"$handle\":\"actor:000102030405060708090a0b0c0d0e0f\"},\"add\"]", "m", packed,
                       sizeof(packed));
        ck_assert_json("[{\"x\":42}]", "[m]", instance, (size_t)12);
        ck_assert_json("{\"1\":\"a\",\"true\":2,\"1.5\":3,\"$bin:/w==\":4}", "m", int_keys, sizeof(int_keys) - 1);
        ck_assert_json("\"1970-01-01T00:00:01.5Z\"", "t", (int64_t)1, (uint32_t)500000000);
        ck_assert_json("{\"$bin\":\"/w==\"}", "S", "\xff", (size_t)1);
        ck_assert_json("18446744073709551615", "m", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", (size_t)9);
}
END_TEST

START_TEST(bytes_that_are_no_value_are_no_text) {
        static const struct troupe_value bad[] = {
                { NULL, 0 },
                { "", 0 },
                { "\xc1", 1 },
                { "\x92\x01", 2 },
                { "\x01\x02", 2 },
                { "\xd4\x05\x00", 3 },
                { "\xd4\x01\x00", 3 },
                { "\x81\x90\x01", 3 },
                { "\xdd\xff\xff\xff\xff", 5 },
                { "\xd4\x03\xc0", 3 },
                { "\x81\xcb\x7f\xf8\0\0\0\0\0\0\x01", 11 },
        };
        uint8_t deep[1000];
        char *text;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                ck_assert_int_eq(troupe_value_json(&bad[i], &text, NULL), -EBADMSG);
        memset(deep, 0x91, sizeof(deep));
        ck_assert_int_eq(troupe_value_json(&(struct troupe_value){ deep, sizeof(deep) }, &text, NULL), -EBADMSG);
}
END_TEST

START_TEST(floats_are_the_shortest_that_read_back) {
        static const struct {
                double value;
                const char *text;
        } cases[] = {
                { 0.1, "0.1" },
                { 100, "100.0" },
                { 1.0 / 3, "0.3333333333333333" },
                { 1e15, "1e+15" },
                { 123456789012345680, "1.2345678901234568e+17" },
                { -2.5, "-2.5" },
                { 0.30000000000000004, "0.30000000000000004" },
        };
        char text[TR_JSON_FLOAT_MAX];

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                ck_assert_uint_eq(tr_json_float(cases[i].value, text), strlen(cases[i].text));
                ck_assert_str_eq(text, cases[i].text);
        }
        srand48(1);
        for (int i = 0; i < 20000; i++) {
                uint64_t bits = (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
                double value;

                memcpy(&value, &bits, sizeof(value));
                if (!isfinite(value))
                        continue;
                tr_json_float(value, text);
                ck_assert(strtod(text, NULL) == value);
                ck_assert_ptr_nonnull(strpbrk(text, ".e"));
        }
}
END_TEST

START_TEST(the_programs_locale_changes_nothing) {
        char text[TR_JSON_FLOAT_MAX];

        if (!setlocale(LC_ALL, "de_DE.UTF-8"))
                return; /* not every machine has one */
        ck_assert_uint_eq(tr_json_float(2.5, text), 3);
        ck_assert_str_eq(text, "2.5");
        ck_assert_json("0.25", "j", "0.25");
}
END_TEST

suite_main("client_json", what_comes_back_is_what_went_in, what_is_no_json_is_refused,
           nesting_is_left_to_the_daemon_within_reason, what_json_has_no_form_for, bytes_that_are_no_value_are_no_text,
           floats_are_the_shortest_that_read_back, the_programs_locale_changes_nothing);
