/* SPDX-License-Identifier: Apache-2.0 */
/* The plain form, and floats as text. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

START_TEST(every_value_in_the_plain_form) {
        json_t *cases = vectors_load("values.json"), *one;
        size_t i, bytes;

        json_array_foreach(cases, i, one) {
                json_t *plain = json_object_get(one, "plain");
                struct tr_writer found = TR_WRITER_INIT, wanted = TR_WRITER_INIT;
                uint8_t *data = vectors_bytes(vectors_get(one, "hex"), &bytes);
                struct tr_reader reader = tr_reader(data, bytes);

                fprintf(stderr, "%s\n", vectors_text(one, "name"));
                vectors_encode(&wanted, plain ? plain : vectors_get(one, "value"));
                ck_assert_int_eq(tr_write_plain(&found, &reader), 0);
                ck_assert_ptr_eq(reader.at, reader.end);
                ck_assert_uint_eq(found.len, wanted.len);
                ck_assert_mem_eq(found.data, wanted.data, found.len);
                free(data);
                tr_writer_deinit(&found);
                tr_writer_deinit(&wanted);
        }
        json_decref(cases);
}
END_TEST

START_TEST(one_value_and_no_more) {
        struct tr_writer w = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader("\x91\x01\x02\xc1", 4);

        ck_assert_int_eq(tr_write_plain(&w, &reader), 0);
        ck_assert_int_eq(tr_write_plain(&w, &reader), 0);
        ck_assert_uint_eq(w.len, 3);
        ck_assert_mem_eq(w.data, "\x91\x01\x02", 3);
        /* What cannot be read changes nothing. */
        ck_assert_int_eq(tr_write_plain(&w, &reader), TR_READ_INVALID);
        ck_assert_uint_eq((size_t)(reader.end - reader.at), 1);
        reader = tr_reader("\x93\x01\x02", 3);
        ck_assert_int_eq(tr_write_plain(&w, &reader), TR_READ_TRUNCATED);
        ck_assert_uint_eq((size_t)(reader.end - reader.at), 3);
        ck_assert_uint_eq(w.len, 3);
        tr_writer_deinit(&w);
}
END_TEST

static int plain_of(const char *hex) {
        struct tr_writer w = TR_WRITER_INIT;
        size_t bytes;
        uint8_t *data = vectors_hex(hex, &bytes);
        struct tr_reader reader = tr_reader(data, bytes);
        int r;

        r = tr_write_plain(&w, &reader);
        ck_assert_uint_eq(w.len == 0, r != 0);
        tr_writer_deinit(&w);
        free(data);
        return r;
}

START_TEST(what_the_scanner_lets_nobody_send_is_invalid) {
        static const char *const values[] = {
                "81c001", "819001", "818001", "81d7ff000000000000000001",
                "d40400", "d40100", "d402c0", "d403c0", "d4ff00",
                "c70703 92a36d3a4381a1", "c70703 92a36d3a4380c0", "c70303 92a141",
        };

        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
                ck_assert_msg(plain_of(values[i]) == TR_READ_INVALID, "%s", values[i]);
}
END_TEST

/* Refused because of a key that is there twice: whose value begins at that place. */
static void same_key_at(const char *json, size_t offset) {
        json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
        struct tr_writer typed = TR_WRITER_INIT, plain = TR_WRITER_INIT;
        struct tr_reader reader;

        ck_assert_ptr_nonnull(value);
        vectors_encode(&typed, value);
        reader = tr_reader(typed.data, typed.len);
        tr_write_nil(&plain);
        ck_assert_msg(tr_write_plain(&plain, &reader) == TR_PLAIN_SAME_KEY, "%s", json);
        ck_assert_uint_eq(plain.len, 1);
        ck_assert_msg(reader.at == typed.data + offset, "%s: %td", json, reader.at - typed.data);
        tr_writer_deinit(&typed);
        tr_writer_deinit(&plain);
        json_decref(value);
}

START_TEST(keys_that_are_the_same_as_text) {
        same_key_at("{\"$map\": [[1, 7], [\"1\", 8]]}", 5);
        same_key_at("{\"$map\": [[\"1\", 7], [2, 7], [1, 8]]}", 7);
        same_key_at("{\"$map\": [[1.0, 7], [1, 8]]}", 12);
        same_key_at("{\"$map\": [[true, 7], [\"true\", 8]]}", 8);
        same_key_at("{\"$map\": [[\"k\", 7], [{\"$bin\": \"aw==\"}, 8]]}", 7);
        same_key_at("[0, {\"a\": [{\"$map\": [[1, 7], [\"1\", true]]}]}]", 11);
        same_key_at("{\"$instance\": [\"m:C\", {\"$map\": [[1, 7], [\"1\", 8]]}]}", 13);
        same_key_at("[{\"$instance\": [\"m:C\", {\"x\": {\"$map\": [[1, 7], [\"1\", 8]]}}]}]", 17);
}
END_TEST

/* So many keys are compared in another way than a few. */
START_TEST(one_key_of_many_twice) {
        for (uint32_t count = 1; count < 40; count++)
                for (uint32_t twice = 0; twice < count; twice++) {
                        struct tr_writer typed = TR_WRITER_INIT, plain = TR_WRITER_INIT;
                        struct tr_reader reader;
                        char key[16];

                        snprintf(key, sizeof(key), "%u", twice);
                        tr_write_map(&typed, count + 1);
                        for (uint32_t i = 0; i < count; i++) {
                                tr_write_uint(&typed, i);
                                tr_write_array(&typed, 0);
                        }
                        tr_write_text(&typed, twice % 2 ? key : "another");
                        tr_write_nil(&typed);
                        reader = tr_reader(typed.data, typed.len);
                        ck_assert_int_eq(tr_write_plain(&plain, &reader), twice % 2 ? TR_PLAIN_SAME_KEY : 0);
                        tr_writer_deinit(&typed);
                        tr_writer_deinit(&plain);
                }
}
END_TEST

START_TEST(as_deep_as_the_scanner_lets_through) {
        static uint8_t data[TR_NESTING_MAX + TR_FRAME_WRAPPING + 2];
        const size_t levels = TR_NESTING_MAX + TR_FRAME_WRAPPING;
        struct tr_writer w = TR_WRITER_INIT;
        struct tr_reader reader;

        memset(data, 0x91, sizeof(data));
        data[levels] = 0xc0;
        reader = tr_reader(data, sizeof(data));
        ck_assert_int_eq(tr_write_plain(&w, &reader), 0);
        ck_assert_mem_eq(w.data, data, levels + 1);
        data[levels] = 0x91;
        data[levels + 1] = 0xc0;
        reader = tr_reader(data, sizeof(data));
        ck_assert_int_eq(tr_write_plain(&w, &reader), TR_READ_INVALID);
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(no_memory_at_any_point) {
        size_t bytes;
        /* [bytes of 300, {1: handle}, {0: 0, 1: 0, ...}] */
        struct tr_writer value = TR_WRITER_INIT;
        static const uint8_t zeros[300];
        uint8_t *data;
        long after = 0;

        tr_write_array(&value, 3);
        tr_write_bin(&value, zeros, sizeof(zeros));
        tr_write_map(&value, 1);
        tr_write_int(&value, 1);
        tr_write_handle(&value, &(struct tr_handle){ { 1 } });
        tr_write_map(&value, 40);
        for (int i = 0; i < 40; i++) {
                tr_write_int(&value, i);
                tr_write_int(&value, 0);
        }
        data = tr_writer_steal(&value, &bytes);
        do {
                struct tr_reader reader = tr_reader(data, bytes);
                struct tr_writer w = TR_WRITER_INIT;
                int r;

                failing_arm(++after);
                r = tr_write_plain(&w, &reader);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                tr_writer_deinit(&w);
        } while (failing_hit());
        ck_assert_int_gt(after, 1);
        free(data);
}
END_TEST

static void formats_as(double number, const char *wanted) {
        char text[TR_FLOAT_TEXT_MAX];

        ck_assert_uint_eq(tr_float_format(number, text), strlen(wanted));
        ck_assert_str_eq(text, wanted);
}

START_TEST(floats_in_the_fewest_digits) {
        formats_as(0.0, "0");
        formats_as(-0.0, "-0");
        formats_as(0.1, "0.1");
        formats_as(0.1 + 0.2, "0.30000000000000004");
        formats_as(100000.0, "100000");
        formats_as(-2.5, "-2.5");
        formats_as(1e300, "1e+300");
        formats_as(5e-324, "5e-324");
        formats_as(1.7976931348623157e308, "1.7976931348623157e+308");
        formats_as(-2.2250738585072014e-308, "-2.2250738585072014e-308");
        formats_as(INFINITY, "inf");
        formats_as(-INFINITY, "-inf");
        formats_as(NAN, "nan");
}
END_TEST

START_TEST(floats_read_back) {
        uint64_t bits = UINT64_C(0x9e3779b97f4a7c15);

        for (int i = 0; i < 100000; i++) {
                char text[TR_FLOAT_TEXT_MAX];
                double number;

                bits ^= bits << 13;
                bits ^= bits >> 7;
                bits ^= bits << 17;
                memcpy(&number, &bits, sizeof(number));
                if (isnan(number))
                        continue;
                if (tr_float_format(number, text) >= TR_FLOAT_TEXT_MAX || strtod(text, NULL) != number)
                        ck_abort_msg("%a became %s", number, text);
        }
}
END_TEST

START_TEST(a_point_in_every_locale) {
        static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8" };

        for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
                if (!setlocale(LC_ALL, locales[i]))
                        continue;
                formats_as(0.5, "0.5");
                formats_as(1.5e-7, "1.5e-07");
        }
        setlocale(LC_ALL, "C");
}
END_TEST

suite_main("plain", every_value_in_the_plain_form, one_value_and_no_more, what_the_scanner_lets_nobody_send_is_invalid,
           keys_that_are_the_same_as_text, one_key_of_many_twice,
           as_deep_as_the_scanner_lets_through, no_memory_at_any_point, floats_in_the_fewest_digits, floats_read_back,
           a_point_in_every_locale);
