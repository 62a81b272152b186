/* SPDX-License-Identifier: Apache-2.0 */
/* Values there and back: the vectors, and a test suite of MessagePack that nobody here wrote. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

static void is_value(const json_t *value, const uint8_t *data, size_t bytes, bool is_shortest) {
        struct tr_writer found = TR_WRITER_INIT, wanted = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(data, bytes);

        vectors_encode(&wanted, value);
        ck_assert_int_eq(tr_writer_error(&wanted), 0);
        ck_assert_int_eq(vectors_recode(&found, &reader), 0);
        ck_assert_ptr_eq(reader.at, reader.end);
        ck_assert_uint_eq(found.len, wanted.len);
        ck_assert_mem_eq(found.data, wanted.data, found.len);
        if (is_shortest) {
                ck_assert_uint_eq(bytes, wanted.len);
                ck_assert_mem_eq(data, wanted.data, bytes);
        }
        tr_writer_deinit(&found);
        tr_writer_deinit(&wanted);
}

START_TEST(every_encoding_of_every_value) {
        json_t *cases = vectors_load("values.json"), *one, *also;
        size_t i, j, bytes;
        uint8_t *data;

        json_array_foreach(cases, i, one) {
                fprintf(stderr, "%s\n", vectors_text(one, "name"));
                data = vectors_bytes(vectors_get(one, "hex"), &bytes);
                is_value(vectors_get(one, "value"), data, bytes, true);
                free(data);
                json_array_foreach(json_object_get(one, "also"), j, also) {
                        data = vectors_bytes(also, &bytes);
                        is_value(vectors_get(one, "value"), data, bytes, false);
                        free(data);
                }
        }
        json_decref(cases);
}
END_TEST

/* The suite's own case is one member of the name of a type, and "msgpack" with all encodings. */
static json_t *suite;

static json_t *suite_load(void) {
        const char *shared = getenv("TROUPE_SHARED");
        char path[4096];

        snprintf(path, sizeof(path), "%s%s/data/msgpack-test-suite/msgpack-test-suite.json",
                 shared ? shared : TR_SRCDIR, shared ? "" : "/../shared");
        return json_load_file(path, 0, NULL);
}

static double number_of(const struct tr_token *token) {
        return token->type == TR_INT    ? (double)token->integer
               : token->type == TR_UINT ? (double)token->unsigned_
                                        : token->number;
}

/* Numbers are one there, whether they are written as integers or floats. */
static void suite_number(const struct tr_token *token, json_t *one) {
        const char *big = json_string_value(json_object_get(one, "bignum"));
        json_t *number = json_object_get(one, "number");

        ck_assert(token->type == TR_INT || token->type == TR_UINT || token->type == TR_FLOAT);
        if (big && token->type == TR_UINT)
                ck_assert_uint_eq(token->unsigned_, strtoull(big, NULL, 10));
        else if (big && token->type == TR_INT)
                ck_assert_int_eq(token->integer, strtoll(big, NULL, 10));
        else if (token->type == TR_INT && json_is_integer(number))
                ck_assert_int_eq(token->integer, json_integer_value(number));
        else
                ck_assert(number_of(token) == json_number_value(number));
}

static void suite_bytes(const struct tr_token *token, enum tr_type type, const uint8_t *data, size_t bytes) {
        ck_assert_int_eq(token->type, type);
        ck_assert_uint_eq(token->len, bytes);
        ck_assert_mem_eq(token->data, data, bytes);
}

static void suite_hex(const struct tr_token *token, enum tr_type type, const char *digits) {
        size_t bytes;
        uint8_t *data = vectors_hex(digits, &bytes);

        suite_bytes(token, type, data, bytes);
        free(data);
}

static void suite_timestamp(const struct tr_token *token, json_t *pair) {
        struct tr_time time;

        ck_assert_int_eq(token->type, TR_EXT);
        ck_assert_int_eq(token->ext, TR_EXT_TIMESTAMP);
        ck_assert(tr_time_decode(token->data, token->len, &time));
        ck_assert_int_eq(time.sec, json_integer_value(json_array_get(pair, 0)));
        ck_assert_uint_eq(time.nsec, json_integer_value(json_array_get(pair, 1)));
}

static void suite_value(struct tr_reader *reader, json_t *value);

static void suite_container(struct tr_reader *reader, const struct tr_token *token, json_t *value) {
        const char *key;
        json_t *item;
        size_t i;

        ck_assert_int_eq(token->type, json_is_array(value) ? TR_ARRAY : TR_MAP);
        ck_assert_uint_eq(token->count, json_is_array(value) ? json_array_size(value) : json_object_size(value));
        if (json_is_array(value)) {
                json_array_foreach(value, i, item)
                        suite_value(reader, item);
                return;
        }
        json_object_foreach(value, key, item) {
                struct tr_token read_key;

                ck_assert_int_eq(tr_read(reader, &read_key), 0);
                ck_assert(tr_token_equals(&read_key, key));
                suite_value(reader, item);
        }
}

/* A value inside an array or map of the suite. */
static void suite_value(struct tr_reader *reader, json_t *value) {
        struct tr_token token;

        ck_assert_int_eq(tr_read(reader, &token), 0);
        if (json_is_string(value))
                suite_bytes(&token, TR_STR, (const uint8_t *)json_string_value(value), json_string_length(value));
        else if (json_is_integer(value))
                ck_assert_int_eq(token.integer, json_integer_value(value));
        else
                suite_container(reader, &token, value);
}

static void suite_case(struct tr_reader *reader, json_t *one) {
        json_t *value;
        struct tr_token token;

        ck_assert_int_eq(tr_read(reader, &token), 0);
        if (json_object_get(one, "nil")) {
                ck_assert_int_eq(token.type, TR_NIL);
        } else if ((value = json_object_get(one, "bool"))) {
                ck_assert_int_eq(token.type, TR_BOOL);
                ck_assert_int_eq(token.boolean, json_is_true(value));
        } else if ((value = json_object_get(one, "binary"))) {
                suite_hex(&token, TR_BIN, json_string_value(value));
        } else if ((value = json_object_get(one, "string"))) {
                suite_bytes(&token, TR_STR, (const uint8_t *)json_string_value(value), json_string_length(value));
        } else if ((value = json_object_get(one, "ext"))) {
                ck_assert_int_eq(token.ext, json_integer_value(json_array_get(value, 0)));
                suite_hex(&token, TR_EXT, json_string_value(json_array_get(value, 1)));
        } else if ((value = json_object_get(one, "timestamp"))) {
                suite_timestamp(&token, value);
        } else if ((value = json_object_get(one, "array")) || (value = json_object_get(one, "map"))) {
                suite_container(reader, &token, value);
        } else {
                suite_number(&token, one);
        }
}

START_TEST(every_encoding_of_the_messagepack_test_suite) {
        const char *group;
        json_t *cases, *one, *hex;
        size_t i, j, tried = 0;

        json_object_foreach(suite, group, cases)
                json_array_foreach(cases, i, one)
                        json_array_foreach(json_object_get(one, "msgpack"), j, hex) {
                                size_t bytes;
                                uint8_t *data = vectors_bytes(hex, &bytes);
                                struct tr_reader reader = tr_reader(data, bytes);

                                fprintf(stderr, "%s: %s\n", group, json_string_value(hex));
                                suite_case(&reader, one);
                                ck_assert_ptr_eq(reader.at, reader.end);
                                free(data);
                                tried++;
                        }
        ck_assert_uint_gt(tried, 100);
}
END_TEST

int main(void) {
        const TTest *const tests[] = { every_encoding_of_every_value, every_encoding_of_the_messagepack_test_suite };
        int status;

        suite = suite_load();
        status = suite_run("value", tests, suite ? 2 : 1);
        if (!suite) {
                puts("skipped: value: the MessagePack test suite is not in the shared data");
                puts("0 passed, 0 failed, 1 skipped");
        }
        json_decref(suite);
        return status;
}
