/* SPDX-License-Identifier: Apache-2.0 */
/* Values as JSON text and back, and laying one map over another. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/document.h"
#include "tests/unit/failing.h"
#include "tests/unit/notation.h"
#include "tests/unit/suite.h"

/* The text, or "PATH REASON" of what is refused; the caller's to free. */
static char *written(const void *value, size_t bytes) {
        struct tr_writer text = TR_WRITER_INIT;
        const char *reason = NULL;
        char *path = NULL, *said;
        int r = tr_document_write(value, bytes, &text, &path, &reason);
        ck_assert_int_ge(r, 0);
        if (r == TR_DOCUMENT_NO_JSON)
                ck_assert_int_ge(asprintf(&said, "%s %s", path, reason), 0);
        else
                ck_assert_int_ge(asprintf(&said, "%.*s", (int)text.len, (const char *)text.data), 0);
        tr_writer_deinit(&text);
        free(path);
        return said;
}

static void check_written(const char *value, const char *expected) {
        struct tr_writer packed = TR_WRITER_INIT;
        notation_write(&packed, value);
        char *said = written(packed.data, packed.len);
        ck_assert_str_eq(said, expected);
        free(said);
        tr_writer_deinit(&packed);
}

static void check_read(const char *text, const char *expected) {
        struct tr_writer value = TR_WRITER_INIT;
        ck_assert_int_eq(tr_document_read(text, strlen(text), &value), 0);
        struct tr_reader reader = tr_reader(value.data, value.len);
        char *said = notation_read(&reader);
        ck_assert_str_eq(said, expected);
        ck_assert_ptr_eq(reader.at, reader.end);
        free(said);
        tr_writer_deinit(&value);
}

START_TEST(values_are_written_and_come_back) {
        static const char *const pairs[][2] = {
                { "nil", "null" },
                { "true", "true" },
                { "[0,-1,9223372036854775807,-9223372036854775808]", "[0,-1,9223372036854775807,-9223372036854775808]" },
                { "['','a b','\xc3\xa9']", "[\"\",\"a b\",\"\xc3\xa9\"]" },
                { "[[],{}]", "[[],{}]" },
                { "{'a':{'b':[1,{'c':nil}]}}", "{\"a\":{\"b\":[1,{\"c\":null}]}}" },
        };
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                check_written(pairs[i][0], pairs[i][1]);
                check_read(pairs[i][1], pairs[i][0]);
        }
        /* the notation has six decimals */
        check_written("[1,1.0,0.1,-0.0,1.5]", "[1,1.0,0.1,-0.0,1.5]");
        check_read("[1,1.0,0.1,-0.0,1.5]", "[1,1.000000,0.100000,-0.000000,1.500000]");
}
END_TEST

START_TEST(members_stand_in_order) {
        check_written("{'b':1,'a':{'z':1,'y':2,'x':3},'ab':2}", "{\"a\":{\"x\":3,\"y\":2,\"z\":1},\"ab\":2,\"b\":1}");
        check_written("{'b':1,'a':2}", "{\"a\":2,\"b\":1}");
        /* more than stand on the stack */
        check_written("{'q':0,'p':0,'o':0,'n':0,'m':0,'l':0,'k':0,'j':0,'i':0,'h':0,'g':0,'f':0,'e':0,'d':0,'c':0,'b':0,'a':0}",
                      "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"o\":0,"
                      "\"p\":0,\"q\":0}");
}
END_TEST

START_TEST(text_of_any_kind_comes_back) {
        struct tr_writer value = TR_WRITER_INIT, text = TR_WRITER_INIT, back = TR_WRITER_INIT;
        char buffer[1024];
        const char *reason;
        char *path = NULL;
        size_t len = 0;
        /* what is escaped at both ends, beside each other, and between what is not */
        for (int c = 0; c < 0x80; c++) {
                buffer[len++] = (char)c;
                if (c % 3 == 0)
                        buffer[len++] = 'x';
        }
        memcpy(buffer + len, "\xf0\x9f\x8e\xad\"\\\xc2\x80\x7f", 9);
        len += 9;
        tr_write_str(&value, buffer, len);
        ck_assert_int_eq(tr_document_write(value.data, value.len, &text, &path, &reason), 0);
        for (size_t i = 0; i < text.len; i++)
                ck_assert(text.data[i] >= 0x20 && text.data[i] != 0x7f);
        ck_assert_int_eq(tr_document_read((const char *)text.data, text.len, &back), 0);
        ck_assert_uint_eq(back.len, value.len);
        ck_assert_mem_eq(back.data, value.data, value.len);
        tr_writer_deinit(&value);
        tr_writer_deinit(&text);
        tr_writer_deinit(&back);
}
END_TEST

START_TEST(what_json_does_not_have_is_refused_with_its_place) {
        struct tr_writer packed = TR_WRITER_INIT;
        check_written("{'a':[1,#00ff]}", "/a/1 is bytes, which JSON does not have");
        check_written("{'when':!-1#00000001}", "/when is a timestamp, which JSON does not have");
        check_written("{'a':!1#00000000000000000000000000000000}", "/a is a handle, which JSON does not have, and which ends with the daemon");
        check_written("18446744073709551615", " is an integer above 2^63-1");
        check_written("{1:2}", " has a key that is no text");
        check_written("{'a':{'b':1,'c':2,'b':3}}", "/a/b is there twice");
        tr_write_float(&packed, 0.0 / 0.0);
        char *said = written(packed.data, packed.len);
        ck_assert_str_eq(said, " is no finite number, which JSON does not have");
        free(said);
        tr_writer_reset(&packed);
        tr_write_str(&packed, "\xff", 1);
        said = written(packed.data, packed.len);
        ck_assert_str_eq(said, " is text that is not UTF-8, which JSON does not have");
        free(said);
        tr_writer_reset(&packed);
        tr_write_map(&packed, 1);
        tr_write_str(&packed, "a\0b", 3);
        tr_write_nil(&packed);
        said = written(packed.data, packed.len);
        ck_assert_str_eq(said, "/a?b has a NUL in its key");
        free(said);
        tr_writer_reset(&packed);
        for (int i = 0; i < 129; i++)
                tr_write_array(&packed, 1);
        tr_write_nil(&packed);
        said = written(packed.data, packed.len);
        ck_assert_ptr_nonnull(strstr(said, " is nested too deep"));
        free(said);
        tr_writer_deinit(&packed);
}
END_TEST

START_TEST(text_that_is_none_of_ours_is_refused) {
        static const char *const texts[] = { "", "{", "{\"a\":1,\"a\":2}", "18446744073709551615", "1e999", "nul", "[1] [2]" };
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct tr_writer value = TR_WRITER_INIT;
                ck_assert_int_eq(tr_document_read(texts[i], strlen(texts[i]), &value), TR_DOCUMENT_BAD);
                tr_writer_deinit(&value);
        }
}
END_TEST

/* Laying */

static const char *const without[] = { "id", "version", NULL };

static int lay(const char *base, const char *over, bool removes, struct tr_writer *laid, char **path, const char **reason) {
        struct tr_writer base_value = TR_WRITER_INIT, over_value = TR_WRITER_INIT;
        struct tr_document_layers layers = { .removes = removes, .without = without };
        if (base) {
                notation_write(&base_value, base);
                layers.base = base_value.data;
                layers.base_bytes = base_value.len;
        }
        notation_write(&over_value, over);
        layers.over = over_value.data;
        layers.over_bytes = over_value.len;
        int r = tr_document_lay(&layers, laid, path, reason);
        tr_writer_deinit(&base_value);
        tr_writer_deinit(&over_value);
        return r;
}

static void check_laid(const char *base, const char *over, bool removes, const char *expected) {
        struct tr_writer laid = TR_WRITER_INIT;
        const char *reason;
        char *path = NULL;
        ck_assert_int_eq(lay(base, over, removes, &laid, &path, &reason), 0);
        struct tr_reader reader = tr_reader(laid.data, laid.len);
        char *said = notation_read(&reader);
        ck_assert_str_eq(said, expected);
        free(said);
        tr_writer_deinit(&laid);
}

START_TEST(fields_are_laid_over_others) {
        check_laid("{'a':1,'b':{'c':1}}", "{'b':{'d':2},'e':3}", true, "{'a':1,'b':{'d':2},'e':3}");
        check_laid("{'a':1,'b':2}", "{'a':nil,'x':nil}", true, "{'b':2}");
        check_laid("{'a':1,'b':2}", "{'a':nil}", false, "{'b':2,'a':nil}");
        check_laid(NULL, "{'a':nil,'b':1}", true, "{'b':1}");
        check_laid("{'id':'x','a':1}", "{'version':4,'id':'y'}", true, "{'a':1}");
        check_laid("{}", "{}", true, "{}");
}
END_TEST

START_TEST(what_is_no_map_is_not_laid) {
        struct tr_writer laid = TR_WRITER_INIT;
        const char *reason;
        char *path = NULL;
        ck_assert_int_eq(lay(NULL, "[1]", true, &laid, &path, &reason), TR_DOCUMENT_NO_JSON);
        ck_assert_str_eq(path, "");
        ck_assert_str_eq(reason, "is no map");
        free(path);
        ck_assert_int_eq(lay(NULL, "{1:2}", true, &laid, &path, &reason), TR_DOCUMENT_NO_JSON);
        ck_assert_str_eq(reason, "has a key that is no text");
        free(path);
        tr_writer_deinit(&laid);
}
END_TEST

/* Writes with each allocation failing in turn. A refusal does not need the text, and may come all the same. */
static void write_without_memory(const char *notation, int expected) {
        struct tr_writer value = TR_WRITER_INIT;
        long n = 0;
        notation_write(&value, notation);
        do {
                struct tr_writer text = TR_WRITER_INIT;
                const char *reason;
                char *path = NULL;
                failing_arm(++n);
                int r = tr_document_write(value.data, value.len, &text, &path, &reason);
                failing_arm(0);
                ck_assert(r == expected || (failing_hit() && r == -ENOMEM));
                ck_assert(r != 0 || !failing_hit());
                free(path);
                tr_writer_deinit(&text);
        } while (failing_hit());
        ck_assert_int_gt(n, 1);
        tr_writer_deinit(&value);
}

START_TEST(want_of_memory_is_told) {
        struct tr_writer value = TR_WRITER_INIT;
        long n = 0;
        write_without_memory("{'q':0,'p':0,'o':0,'n':0,'m':0,'l':0,'k':0,'j':0,'i':0,'h':0,'g':0,'f':0,'e':0,'d':0,'c':0,'b':0,'a':[{'b':1,'a':2}]}", 0);
        write_without_memory("{'a':#00}", TR_DOCUMENT_NO_JSON);
        notation_write(&value, "{'a':1,'b':2}");
        do {
                struct tr_writer laid = TR_WRITER_INIT;
                struct tr_document_layers layers = { value.data, value.len, value.data, value.len, true, without };
                const char *reason;
                char *path = NULL;
                failing_arm(++n);
                int r = tr_document_lay(&layers, &laid, &path, &reason);
                failing_arm(0);
                ck_assert_int_eq(r, failing_hit() ? -ENOMEM : 0);
                tr_writer_deinit(&laid);
        } while (failing_hit());
        ck_assert_int_gt(n, 2);
        tr_writer_deinit(&value);
}
END_TEST

suite_main("document", values_are_written_and_come_back, members_stand_in_order, text_of_any_kind_comes_back,
           what_json_does_not_have_is_refused_with_its_place, text_that_is_none_of_ours_is_refused, fields_are_laid_over_others,
           what_is_no_map_is_not_laid, want_of_memory_is_told);
