/* SPDX-License-Identifier: Apache-2.0 */
/* Reading single values: every first byte, every cut, and what is expected as text or integer. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "proto/value.h"
#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads the value that the hexadecimal digits are; its data lives until the next call. */
static struct tr_token read_hex(const char *hex) {
        static uint8_t *data;
        struct tr_reader reader;
        struct tr_token token;
        size_t bytes;

        free(data);
        data = vectors_hex(hex, &bytes);
        reader = tr_reader(data, bytes);
        ck_assert_int_eq(tr_read(&reader, &token), 0);
        return token;
}

START_TEST(each_first_byte_is_of_one_type) {
        static const struct {
                uint8_t first, last;
                enum tr_type type;
        } ranges[] = {
                { 0x00, 0x7f, TR_INT },   { 0x80, 0x8f, TR_MAP },  { 0x90, 0x9f, TR_ARRAY }, { 0xa0, 0xbf, TR_STR },
                { 0xc0, 0xc0, TR_NIL },   { 0xc2, 0xc3, TR_BOOL }, { 0xc4, 0xc6, TR_BIN },   { 0xc7, 0xc9, TR_EXT },
                { 0xca, 0xcb, TR_FLOAT }, { 0xcc, 0xd3, TR_INT },  { 0xd4, 0xd8, TR_EXT },   { 0xd9, 0xdb, TR_STR },
                { 0xdc, 0xdd, TR_ARRAY }, { 0xde, 0xdf, TR_MAP },  { 0xe0, 0xff, TR_INT },
        };
        int next = 0;

        for (size_t i = 0; i < COUNT(ranges); i++)
                for (int first = ranges[i].first; first <= ranges[i].last; first++) {
                        /* As long as the longest that a first byte alone can ask for. */
                        uint8_t data[40] = { (uint8_t)first };
                        struct tr_reader reader = tr_reader(data, sizeof(data));
                        struct tr_token token;

                        if (first == 0xc1)
                                continue;
                        ck_assert_int_eq(tr_read(&reader, &token), 0);
                        ck_assert_int_eq(token.type, ranges[i].type);
                        next += first;
                }
        /* All were there. */
        ck_assert_int_eq(next, 255 * 256 / 2 - 0xc1);
}
END_TEST

START_TEST(what_messagepack_never_uses_is_invalid) {
        struct tr_token token = { .type = TR_BOOL };
        struct tr_reader reader = tr_reader("\xc1", 1);

        ck_assert_int_eq(tr_read(&reader, &token), TR_READ_INVALID);
        ck_assert_int_eq(tr_read_skip(&reader), TR_READ_INVALID);
        ck_assert_uint_eq((size_t)(reader.end - reader.at), 1);
        ck_assert_int_eq(token.type, TR_BOOL);

        reader = tr_reader("\x92\x01\xc1", 3);
        ck_assert_int_eq(tr_read_skip(&reader), TR_READ_INVALID);
        ck_assert_uint_eq((size_t)(reader.end - reader.at), 3);
}
END_TEST

START_TEST(a_value_that_is_cut_off_stays_unread) {
        json_t *cases = vectors_load("values.json"), *one;
        size_t i;

        json_array_foreach(cases, i, one) {
                size_t bytes;
                uint8_t *data = vectors_bytes(vectors_get(one, "hex"), &bytes);
                struct tr_reader reader = tr_reader(data, bytes);

                ck_assert_int_eq(tr_read_skip(&reader), 0);
                ck_assert_ptr_eq(reader.at, reader.end);
                for (size_t cut = 0; cut < bytes; cut++) {
                        size_t len;
                        uint8_t *part;
                        struct tr_writer copy = TR_WRITER_INIT;

                        tr_write_raw(&copy, data, cut);
                        part = tr_writer_steal(&copy, &len);
                        reader = tr_reader(part, len);
                        ck_assert_int_eq(tr_read_skip(&reader), TR_READ_TRUNCATED);
                        ck_assert_ptr_eq(reader.at, part);
                        free(part);
                }
                free(data);
        }
        json_decref(cases);
}
END_TEST

START_TEST(a_huge_promise_is_truncated_at_once) {
        static const char *const heads[] = {
                "ddffffffff", "dfffffffff", "dd10000000", "c6ffffffff", "dbffffffff", "c9ffffffff01",
                "dfffffffff dfffffffff dfffffffff",
        };

        for (size_t i = 0; i < COUNT(heads); i++) {
                size_t bytes;
                uint8_t *data = vectors_hex(heads[i], &bytes);
                struct tr_reader reader = tr_reader(data, bytes);

                ck_assert_int_eq(tr_read_skip(&reader), TR_READ_TRUNCATED);
                ck_assert_ptr_eq(reader.at, data);
                free(data);
        }
}
END_TEST

START_TEST(skipping_takes_no_stack) {
        static uint8_t data[1 << 20];
        struct tr_reader reader = tr_reader(data, sizeof(data));

        memset(data, 0x91, sizeof(data) - 1);
        data[sizeof(data) - 1] = 0xc0;
        ck_assert_int_eq(tr_read_skip(&reader), 0);
        ck_assert_ptr_eq(reader.at, reader.end);
}
END_TEST

START_TEST(a_text_is_str_or_bin) {
        struct tr_token str = read_hex("a3616263");

        ck_assert(tr_token_is_text(&str));
        ck_assert(tr_token_equals(&str, "abc"));
        ck_assert(!tr_token_equals(&str, "ab"));
        ck_assert(!tr_token_equals(&str, "abcd"));
        str = read_hex("c403616263");
        ck_assert(tr_token_equals(&str, "abc"));
        str = read_hex("a3616200");
        ck_assert(!tr_token_equals(&str, "ab"));
        str = read_hex("a0");
        ck_assert(tr_token_equals(&str, ""));
        str = read_hex("c7030161 6263");
        ck_assert(!tr_token_is_text(&str));
        ck_assert(!tr_token_equals(&str, "abc"));
}
END_TEST

START_TEST(an_integral_float_is_taken_for_an_integer) {
        static const struct {
                const char *hex;
                bool is_integer;
                int64_t integer;
        } cases[] = {
                { "05", true, 5 },
                { "d38000000000000000", true, INT64_MIN },
                { "cf7fffffffffffffff", true, INT64_MAX },
                { "cf8000000000000000", false, 0 },
                { "cb4014000000000000", true, 5 },
                { "ca40a00000", true, 5 },
                { "cb8000000000000000", true, 0 },
                { "cbc3e0000000000000", true, INT64_MIN },
                { "cb43dfffffffffffff", true, INT64_C(9223372036854774784) },
                { "cb43e0000000000000", false, 0 },
                { "cbc3e0000000000001", false, 0 },
                { "cb4016000000000000", false, 0 },
                { "cb7ff0000000000000", false, 0 },
                { "cb7ff8000000000000", false, 0 },
                { "a135", false, 0 },
                { "c3", false, 0 },
                { "c0", false, 0 },
        };

        for (size_t i = 0; i < COUNT(cases); i++) {
                struct tr_token token = read_hex(cases[i].hex);
                int64_t integer = 77;

                ck_assert_msg(tr_token_integer(&token, &integer) == cases[i].is_integer, "%s", cases[i].hex);
                ck_assert_int_eq(integer, cases[i].is_integer ? cases[i].integer : 77);
        }
}
END_TEST

START_TEST(an_instance_is_read_as_far_as_its_fields) {
        struct tr_token ext = read_hex("c70c03 92a36d3a4382a16101a16202"), key;
        struct tr_reader fields;
        const char *name;
        size_t name_len;
        uint32_t pairs;

        ck_assert(tr_instance_decode(ext.data, ext.len, &name, &name_len, &fields, &pairs));
        ck_assert_uint_eq(name_len, 3);
        ck_assert_mem_eq(name, "m:C", 3);
        ck_assert_uint_eq(pairs, 2);
        ck_assert_int_eq(tr_read(&fields, &key), 0);
        ck_assert(tr_token_equals(&key, "a"));

        ext = read_hex("c70603 92a36d3a4390");
        ck_assert(tr_instance_decode(ext.data, ext.len, &name, &name_len, &fields, &pairs));
        ck_assert_uint_eq(pairs, 0);
        ck_assert_ptr_eq(fields.at, fields.end);
        ext = read_hex("c70703 92a36d3a439101");
        ck_assert(!tr_instance_decode(ext.data, ext.len, &name, &name_len, &fields, &pairs));
        ck_assert(!tr_instance_decode(ext.data, 0, &name, &name_len, &fields, &pairs));
}
END_TEST

suite_main("reader", each_first_byte_is_of_one_type, what_messagepack_never_uses_is_invalid,
           a_value_that_is_cut_off_stays_unread, a_huge_promise_is_truncated_at_once, skipping_takes_no_stack,
           a_text_is_str_or_bin, an_integral_float_is_taken_for_an_integer, an_instance_is_read_as_far_as_its_fields);
