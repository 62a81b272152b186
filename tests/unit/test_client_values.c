/* SPDX-License-Identifier: Apache-2.0 */
/* Packing by a format, and going through values. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "client/troupe.h"
#include "tests/unit/suite.h"

#define HANDLE "actor:00112233445566778899aabbccddeeff"

static void is_json(const struct troupe_value *value, const char *expected) {
        char *text;

        ck_assert_int_eq(troupe_value_json(value, &text, NULL), 0);
        ck_assert_str_eq(text, expected);
        free(text);
}

#define ck_assert_packs(expected, ...)                                  \
        do {                                                            \
                struct troupe_value value_;                             \
                ck_assert_int_eq(troupe_pack(&value_, __VA_ARGS__), 0); \
                is_json(&value_, expected);                             \
                troupe_value_free(&value_);                             \
                ck_assert_uint_eq(value_.size, 0);                      \
        } while (0)

#define ck_assert_packs_not(...)                                              \
        do {                                                                  \
                struct troupe_value value_ = { "as it was", 1 };              \
                ck_assert_int_eq(troupe_pack(&value_, __VA_ARGS__), -EINVAL); \
                ck_assert_str_eq(value_.data, "as it was");                   \
        } while (0)

START_TEST(every_letter_makes_its_value) {
        struct troupe_value three = { "\x93\x01\x02\x03", 4 };

        ck_assert_packs("[null,true,false]", "[nbb]", 2, 0);
        ck_assert_packs("[-7,9223372036854775807]", "[il]", -7, INT64_MAX);
        ck_assert_packs("[0.5,\"text\",null]", "[dss]", 0.5, "text", NULL);
        ck_assert_packs("[\"a\\u0000b\",{\"$bin\":\"AAE=\"},\"\"]", "[SyS]", "a\0b", (size_t)3, "\0\1", (size_t)2, NULL,
                        (size_t)0);
        ck_assert_packs("[{\"$handle\":\"" HANDLE "\"}]", "[h]", HANDLE);
        ck_assert_packs("[{\"a\":1},[true]]", "[jJ]", "{\"a\":1}", "[true] and more", (size_t)6);
        ck_assert_packs("[[1,2,3],[1,2,3]]", "[mv]", three.data, three.size, &three);
        ck_assert_packs("\"1970-01-01T00:00:00Z\"", "t", (int64_t)0, (uint32_t)0);
}
END_TEST

START_TEST(brackets_nest_and_stars_splice) {
        struct troupe_value three = { "\x93\x01\x02\x03", 4 };

        ck_assert_packs("{\"a\":[1,{}],\"b\":[]}", "{s: [i, {}], s: []}", "a", 1, "b");
        ck_assert_packs("[0,1,2,3,4]", "[i *v i]", 0, &three, 4);
        ck_assert_packs("[1,2,3,1,2,3,\"x\"]", "[*m*j*J]", three.data, three.size, "[1,2,3]", "[\"x\"]", (size_t)5);
        ck_assert_packs("{\"k\":1}", "{*j}", "[\"k\",1]");
        ck_assert_packs("[]", "[*j*j]", "[]", "[]");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused) {
        ck_assert_packs_not("");
        ck_assert_packs_not("ii", 1, 2);
        ck_assert_packs_not("[i", 1);
        ck_assert_packs_not("i]", 1);
        ck_assert_packs_not("[i}", 1);
        ck_assert_packs_not("{i}", 1);
        ck_assert_packs_not("x");
        ck_assert_packs_not("[*i]", 1);
        ck_assert_packs_not("[*]");
        ck_assert_packs_not("[*j]", "1");
        ck_assert_packs_not("h", "actor:0");
        ck_assert_packs_not("h", NULL);
        ck_assert_packs_not("j", NULL);
        ck_assert_packs_not("v", NULL);
        ck_assert_packs_not("m", "\x92\x01", (size_t)2);
        ck_assert_packs_not("m", "\x01\x01", (size_t)2);
        ck_assert_packs_not("m", "", (size_t)0);
        ck_assert_packs_not("S", NULL, (size_t)1);
}
END_TEST

START_TEST(brackets_nest_as_deep_as_values_may) {
        struct troupe_value value;
        char format[2 * 129 + 1] = "";

        memset(format, '[', 128);
        memset(format + 128, ']', 128);
        ck_assert_int_eq(troupe_pack(&value, format), 0);
        troupe_value_free(&value);
        memset(format, '[', 129);
        memset(format + 129, ']', 129);
        ck_assert_packs_not(format);
}
END_TEST

START_TEST(scalars_are_read_as_what_they_are) {
        struct troupe_value value;
        const char *text;
        uint32_t nanoseconds;
        int64_t number;
        size_t length;
        double real;
        int flag;

        ck_assert_int_eq(troupe_value_type(&(struct troupe_value){ "\xc0", 1 }), TROUPE_NIL);
        ck_assert_int_eq(troupe_value_type(&(struct troupe_value){ NULL, 0 }), -EBADMSG);
        ck_assert_int_eq(troupe_value_type(&(struct troupe_value){ "\xc1", 1 }), -EBADMSG);
        ck_assert_int_eq(troupe_value_type(&(struct troupe_value){ "\xd4\x07\x00", 3 }), -EBADMSG);

        ck_assert_int_eq(troupe_value_bool(&(struct troupe_value){ "\xc3", 1 }, &flag), 0);
        ck_assert_int_eq(flag, 1);
        ck_assert_int_eq(troupe_value_bool(&(struct troupe_value){ "\x01", 1 }, &flag), -EINVAL);
        ck_assert_int_eq(troupe_value_int(&(struct troupe_value){ "\xff", 1 }, &number), 0);
        ck_assert_int_eq(number, -1);
        ck_assert_int_eq(troupe_value_int(&(struct troupe_value){ "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9 }, &number),
                         -ERANGE);
        ck_assert_int_eq(troupe_value_int(&(struct troupe_value){ "\xa0", 1 }, &number), -EINVAL);
        ck_assert_int_eq(troupe_value_int(&(struct troupe_value){ "\xcd\x01", 2 }, &number), -EBADMSG);
        ck_assert_int_eq(troupe_value_float(&(struct troupe_value){ "\x05", 1 }, &real), 0);
        ck_assert_double_eq(real, 5);

        ck_assert_int_eq(troupe_pack(&value, "d", 3.0), 0);
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_FLOAT);
        ck_assert_int_eq(troupe_value_int(&value, &number), 0);
        ck_assert_int_eq(number, 3);
        troupe_value_free(&value);

        ck_assert_int_eq(troupe_pack(&value, "y", "\0x", (size_t)2), 0);
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_BYTES);
        ck_assert_int_eq(troupe_value_string(&value, &text, &length), 0);
        ck_assert_uint_eq(length, 2);
        ck_assert_mem_eq(text, "\0x", 2);
        troupe_value_free(&value);

        ck_assert_int_eq(troupe_pack(&value, "t", (int64_t)-1, (uint32_t)999999999), 0);
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_TIMESTAMP);
        ck_assert_int_eq(troupe_value_timestamp(&value, &number, &nanoseconds), 0);
        ck_assert_int_eq(number, -1);
        ck_assert_uint_eq(nanoseconds, 999999999);
        troupe_value_free(&value);
}
END_TEST

START_TEST(the_protocols_own_types) {
        static const char message[] =
                "\xc7\x14\x02\x92\xc4\x10\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\xa0";
        static const char instance[] = "\xc7\x09\x03\x92\xa3m:P\x81\xa1x\x2a";
        char handle[TROUPE_HANDLE_SIZE];
        struct troupe_value value, fields;
        const char *name;
        size_t length;

        ck_assert_int_eq(troupe_pack(&value, "h", HANDLE), 0);
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_HANDLE);
        ck_assert_int_eq(troupe_value_handle(&value, handle), 0);
        ck_assert_str_eq(handle, HANDLE);
        ck_assert_int_eq(troupe_value_string(&value, &name, &length), -EINVAL);
        troupe_value_free(&value);
        ck_assert_int_eq(troupe_pack(&value, "s", HANDLE), 0);
        ck_assert_int_eq(troupe_value_handle(&value, handle), 0);
        troupe_value_free(&value);

        value = (struct troupe_value){ message, sizeof(message) - 1 };
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_MESSAGE);
        ck_assert_int_eq(troupe_value_message(&value, handle, &name, &length), 0);
        ck_assert_str_eq(handle, HANDLE);
        ck_assert_uint_eq(length, 0);

        value = (struct troupe_value){ instance, sizeof(instance) - 1 };
        ck_assert_int_eq(troupe_value_type(&value), TROUPE_INSTANCE);
        ck_assert_int_eq(troupe_value_instance(&value, &name, &length, &fields), 0);
        ck_assert_uint_eq(length, 3);
        ck_assert_mem_eq(name, "m:P", 3);
        is_json(&fields, "{\"x\":42}");
}
END_TEST

START_TEST(containers_are_walked) {
        struct troupe_value value, key, element;
        struct troupe_walk walk;
        const char *text;
        int64_t number;
        size_t size;

        ck_assert_int_eq(troupe_pack(&value, "j", "{\"a\":[1,2,3],\"b\":{\"c\":7}}"), 0);
        ck_assert_int_eq(troupe_value_count(&value, &size), 0);
        ck_assert_uint_eq(size, 2);
        ck_assert_int_eq(troupe_walk_begin(&walk, &value), 0);
        ck_assert_int_eq(troupe_walk_next(&walk, &key, &element), 1);
        ck_assert_int_eq(troupe_value_string(&key, &text, &size), 0);
        ck_assert_mem_eq(text, "a", 1);
        is_json(&element, "[1,2,3]");
        ck_assert_int_eq(troupe_walk_next(&walk, NULL, &element), 1);
        ck_assert_int_eq(troupe_walk_next(&walk, &key, &element), 0);

        ck_assert_int_eq(troupe_value_get(&value, "a", &element), 0);
        ck_assert_int_eq(troupe_value_at(&element, 2, &key), 0);
        ck_assert_int_eq(troupe_value_int(&key, &number), 0);
        ck_assert_int_eq(number, 3);
        ck_assert_int_eq(troupe_value_at(&element, 3, &key), -ENOENT);
        ck_assert_int_eq(troupe_value_get(&element, "a", &key), -EINVAL);
        ck_assert_int_eq(troupe_value_at(&value, 0, &key), -EINVAL);
        ck_assert_int_eq(troupe_value_get(&value, "c", &element), -ENOENT);
        ck_assert_int_eq(troupe_value_count(&key, &size), -EINVAL);
        troupe_value_free(&value);
}
END_TEST

START_TEST(a_count_that_lies_ends_the_walk) {
        struct troupe_value value = { "\xdd\xff\xff\xff\xff\x01", 6 }, element;
        struct troupe_walk walk;

        ck_assert_int_eq(troupe_walk_begin(&walk, &value), 0);
        ck_assert_int_eq(troupe_walk_next(&walk, NULL, &element), 1);
        ck_assert_int_eq(troupe_walk_next(&walk, NULL, &element), -EBADMSG);
        ck_assert_int_eq(troupe_value_at(&value, 1, &element), -EBADMSG);
}
END_TEST

START_TEST(a_copy_is_its_own) {
        char bytes[] = "\x93\x01\x02\x03";
        struct troupe_value copy;

        ck_assert_int_eq(troupe_value_dup(&(struct troupe_value){ bytes, 4 }, &copy), 0);
        bytes[1] = 9;
        is_json(&copy, "[1,2,3]");
        troupe_value_free(&copy);
        troupe_value_free(&copy);
        troupe_value_free(NULL);
}
END_TEST

suite_main("client_values", every_letter_makes_its_value, brackets_nest_and_stars_splice,
           what_makes_no_sense_is_refused, brackets_nest_as_deep_as_values_may, scalars_are_read_as_what_they_are,
           the_protocols_own_types, containers_are_walked, a_count_that_lies_ends_the_walk, a_copy_is_its_own);
