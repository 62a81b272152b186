/* SPDX-License-Identifier: Apache-2.0 */
/* Writing values: the shortest encodings, and what is left of a failure. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/value.h"
#include "tests/unit/failing.h"
#include "tests/unit/suite.h"

static const struct tr_handle handle = { { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef } };

/* The bytes written must be these, and the writer is emptied for the next. */
static void written(struct tr_writer *writer, const void *bytes, size_t len) {
        ck_assert_int_eq(tr_writer_error(writer), 0);
        ck_assert_uint_eq(writer->len, len);
        ck_assert_mem_eq(writer->data, bytes, len);
        tr_writer_reset(writer);
        ck_assert_uint_eq(writer->len, 0);
}
#define WRITTEN(writer, literal) written((writer), (literal), sizeof(literal) - 1)

START_TEST(scalars_take_their_shortest_form) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_nil(&w);
        tr_write_bool(&w, true);
        tr_write_bool(&w, false);
        WRITTEN(&w, "\xc0\xc3\xc2");
        tr_write_int(&w, 127);
        tr_write_int(&w, -32);
        tr_write_int(&w, 128);
        tr_write_int(&w, -33);
        WRITTEN(&w, "\x7f\xe0\xcc\x80\xd0\xdf");
        tr_write_int(&w, 256);
        tr_write_int(&w, -129);
        tr_write_int(&w, 65536);
        WRITTEN(&w, "\xcd\x01\x00\xd1\xff\x7f\xce\x00\x01\x00\x00");
        tr_write_int(&w, INT64_MIN);
        tr_write_uint(&w, UINT64_MAX);
        WRITTEN(&w, "\xd3\x80\0\0\0\0\0\0\0\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(a_float_stays_a_float_of_64_bits) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_float(&w, 1.0);
        WRITTEN(&w, "\xcb\x3f\xf0\0\0\0\0\0\0");
        tr_write_float(&w, -0.0);
        WRITTEN(&w, "\xcb\x80\0\0\0\0\0\0\0");
        tr_write_float(&w, -INFINITY);
        WRITTEN(&w, "\xcb\xff\xf0\0\0\0\0\0\0");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(strings_and_bytes_have_heads_by_their_length) {
        static const char text[70000];
        struct tr_writer w = TR_WRITER_INIT;
        const struct {
                size_t len, head;
                bool is_str;
                const char *bytes;
        } cases[] = {
                { 0, 1, true, "\xa0" },
                { 31, 1, true, "\xbf" },
                { 32, 2, true, "\xd9\x20" },
                { 256, 3, true, "\xda\x01\x00" },
                { 65536, 5, true, "\xdb\x00\x01\x00\x00" },
                { 0, 2, false, "\xc4\x00" },
                { 255, 2, false, "\xc4\xff" },
                { 65535, 3, false, "\xc5\xff\xff" },
                { 65536, 5, false, "\xc6\x00\x01\x00\x00" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                if (cases[i].is_str)
                        tr_write_str(&w, text, cases[i].len);
                else
                        tr_write_bin(&w, text, cases[i].len);
                ck_assert_int_eq(tr_writer_error(&w), 0);
                ck_assert_uint_eq(w.len, cases[i].head + cases[i].len);
                ck_assert_mem_eq(w.data, cases[i].bytes, cases[i].head);
                tr_writer_reset(&w);
        }
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(a_string_that_is_no_utf8_goes_as_bytes) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_string(&w, "\xc3\xa4", 2);
        WRITTEN(&w, "\xa2\xc3\xa4");
        tr_write_string(&w, "\xe4", 1);
        WRITTEN(&w, "\xc4\x01\xe4");
        tr_write_text(&w, "");
        WRITTEN(&w, "\xa0");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(containers_and_raw_bytes) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_array(&w, 15);
        tr_write_array(&w, 16);
        tr_write_array(&w, UINT32_MAX);
        WRITTEN(&w, "\x9f\xdc\x00\x10\xdd\xff\xff\xff\xff");
        tr_write_map(&w, 1);
        tr_write_raw(&w, "\x01\xc0", 2);
        tr_write_raw(&w, NULL, 0);
        WRITTEN(&w, "\x81\x01\xc0");
        tr_write_ext(&w, 5, "abc", 3);
        WRITTEN(&w, "\xc7\x03\x05" "abc");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(handles_and_messages) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_handle(&w, &handle);
        WRITTEN(&w, "\xd8\x01\x01\x23\x45\x67\x89\xab\xcd\xef\0\0\0\0\0\0\0\0");
        tr_write_message(&w, &handle, "bump", 4);
        WRITTEN(&w, "\xc7\x18\x02\x92\xc4\x10\x01\x23\x45\x67\x89\xab\xcd\xef\0\0\0\0\0\0\0\0\xa4" "bump");
        tr_write_message(&w, &handle, "\xff", 1);
        WRITTEN(&w, "\xc7\x16\x02\x92\xc4\x10\x01\x23\x45\x67\x89\xab\xcd\xef\0\0\0\0\0\0\0\0\xc4\x01\xff");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(a_message_reads_back_whatever_the_length_of_its_handler) {
        static const size_t lens[] = { 0, 31, 32, 255, 256, 65535, 65536 };
        static char handler[65536];

        for (size_t i = 0; i < 2 * sizeof(lens) / sizeof(lens[0]); i++) {
                size_t len = lens[i / 2], handler_len;
                struct tr_writer w = TR_WRITER_INIT;
                struct tr_reader reader;
                struct tr_token token;
                struct tr_handle back;
                const char *handler_back;

                /* Once as str, once as bin. */
                memset(handler, i % 2 ? 0xff : 'h', sizeof(handler));
                tr_write_message(&w, &handle, handler, len);
                ck_assert_int_eq(tr_writer_error(&w), 0);
                reader = tr_reader(w.data, w.len);
                ck_assert_int_eq(tr_read(&reader, &token), 0);
                ck_assert_ptr_eq(reader.at, reader.end);
                ck_assert_int_eq(token.type, TR_EXT);
                ck_assert_int_eq(token.ext, TR_EXT_MESSAGE);
                ck_assert(tr_message_decode(token.data, token.len, &back, &handler_back, &handler_len));
                ck_assert(tr_handle_equal(&back, &handle));
                ck_assert_uint_eq(handler_len, len);
                ck_assert_mem_eq(handler_back, handler, len);
                tr_writer_deinit(&w);
        }
}
END_TEST

START_TEST(a_timestamp_takes_the_shortest_of_its_forms) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_time(&w, &(struct tr_time){ UINT32_MAX, 0 });
        WRITTEN(&w, "\xd6\xff\xff\xff\xff\xff");
        tr_write_time(&w, &(struct tr_time){ (INT64_C(1) << 34) - 1, 999999999 });
        WRITTEN(&w, "\xd7\xff\xee\x6b\x27\xff\xff\xff\xff\xff");
        tr_write_time(&w, &(struct tr_time){ -1, 1 });
        WRITTEN(&w, "\xc7\x0c\xff\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff");
        tr_writer_deinit(&w);
}
END_TEST

START_TEST(what_was_written_can_be_taken_away) {
        struct tr_writer w = TR_WRITER_INIT;
        uint8_t *data;
        size_t len;

        ck_assert_ptr_null(tr_writer_steal(&w, &len));
        ck_assert_uint_eq(len, 0);
        tr_write_text(&w, "mine");
        data = tr_writer_steal(&w, &len);
        ck_assert_uint_eq(len, 5);
        ck_assert_mem_eq(data, "\xa4mine", 5);
        ck_assert_ptr_null(w.data);
        tr_write_nil(&w);
        WRITTEN(&w, "\xc0");
        free(data);
        tr_writer_deinit(&w);
        tr_writer_deinit(&w);
        tr_writer_deinit(NULL);
}
END_TEST

static void write_much(struct tr_writer *writer) {
        tr_write_array(writer, 6);
        tr_write_message(writer, &handle, "bump", 4);
        tr_write_time(writer, &(struct tr_time){ 1, 1 });
        for (int i = 0; i < 100; i++)
                tr_write_float(writer, i);
}

START_TEST(a_failure_is_remembered_and_nothing_is_written_after_it) {
        long after = 0;

        do {
                struct tr_writer w = TR_WRITER_INIT;
                size_t len;

                failing_arm(++after);
                write_much(&w);
                failing_arm(0);
                ck_assert_int_eq(tr_writer_error(&w), failing_hit() ? -ENOMEM : 0);
                len = w.len;
                tr_write_nil(&w);
                ck_assert_uint_eq(w.len, failing_hit() ? len : len + 1);

                tr_writer_reset(&w);
                tr_write_nil(&w);
                WRITTEN(&w, "\xc0");
                tr_writer_deinit(&w);
        } while (failing_hit());
        /* It did grow several times. */
        ck_assert_int_gt(after, 3);
}
END_TEST

START_TEST(what_cannot_be_had_or_written_down_is_a_failure) {
        struct tr_writer w = TR_WRITER_INIT;

        tr_write_nil(&w);
        ck_assert_int_eq(tr_writer_reserve(&w, SIZE_MAX), -ENOMEM);
        ck_assert_int_eq(tr_writer_error(&w), -ENOMEM);
        tr_writer_reset(&w);
        tr_write_bin(&w, "", (size_t)UINT32_MAX + 1);
        ck_assert_int_eq(tr_writer_error(&w), -ENOMEM);
        ck_assert_uint_eq(w.len, 0);
        tr_writer_reset(&w);
        ck_assert_int_eq(tr_writer_reserve(&w, 1000), 0);
        ck_assert_uint_ge(w.cap, 1000);
        tr_writer_deinit(&w);
}
END_TEST

suite_main("writer", scalars_take_their_shortest_form, a_float_stays_a_float_of_64_bits,
           strings_and_bytes_have_heads_by_their_length, a_string_that_is_no_utf8_goes_as_bytes,
           containers_and_raw_bytes, handles_and_messages, a_message_reads_back_whatever_the_length_of_its_handler,
           a_timestamp_takes_the_shortest_of_its_forms, what_was_written_can_be_taken_away,
           a_failure_is_remembered_and_nothing_is_written_after_it, what_cannot_be_had_or_written_down_is_a_failure);
