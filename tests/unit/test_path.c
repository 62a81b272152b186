/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a value in words. (Where refused values are is in invalid.json, which test_frame.c reads.) */
#include "config.h"

#include <string.h>

#include "proto/frame.h"
#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

/* The place of the first true in the params. */
static void place_is(const char *params, const char *wanted) {
        json_t *json = json_loads(params, JSON_DECODE_ANY, NULL);
        struct tr_writer writer = TR_WRITER_INIT;
        const uint8_t *at;
        char path[256];

        ck_assert_ptr_nonnull(json);
        vectors_encode(&writer, json);
        at = memchr(writer.data, 0xc3, writer.len);
        ck_assert_ptr_nonnull(at);
        tr_frame_path(writer.data, writer.len, (size_t)(at - writer.data), path, sizeof(path));
        ck_assert_str_eq(path, wanted);
        tr_writer_deinit(&writer);
        json_decref(json);
}

START_TEST(an_array_among_the_params_is_args) {
        place_is("true", "params");
        place_is("[true]", "params[1]");
        place_is("[0, 0, [0, true]]", "args[2]");
        place_is("[[], [[], [[0, 0, true]]]]", "args[2][1][3]");
        place_is("[0, 0, [], {\"timeout\": true}]", "params[4].timeout");
        place_is("[0, [{\"a\": {\"b\": 0, \"items\": [0, true]}}]]", "args[1].a.items[2]");
}
END_TEST

START_TEST(what_came_before_is_left_again) {
        place_is("[0, [[1, [2, [3]]], {\"a\": {\"b\": [[]]}}, \"s\", {\"c\": true}]]", "args[4].c");
        place_is("[0, [{\"a\": [], \"b\": {}, \"c\": [[[true]]]}]]", "args[1].c[1][1][1]");
}
END_TEST

START_TEST(keys_of_every_kind) {
        place_is("[[{\"$map\": [[1, 0], [-2, true]]}]]", "args[1][-2]");
        place_is("[[{\"$map\": [[0.5, true]]}]]", "args[1][0.5]");
        place_is("[[{\"$map\": [[false, [true]]]}]]", "args[1][false][1]");
        place_is("[[{\"$map\": [[{\"$bin\": \"a2V5\"}, true]]}]]", "args[1].key");
        place_is("[[{\"\\u0001\\u007fk\\u00e4\": true}]]", "args[1].??k??");
        place_is("[[{\"a key that is longer than anybody would want to read\": true}]]",
                 "args[1].a key that is longer than anybody would ...");
}
END_TEST

START_TEST(a_key_itself_has_the_place_of_its_map) {
        place_is("[[0, {\"$map\": [[1, 2], [true, 0]]}]]", "args[2]");
        place_is("{\"$map\": [[true, 0]]}", "params");
}
END_TEST

START_TEST(instances_are_entered) {
        place_is("[[{\"$instance\": [\"m:C\", {\"x\": 0, \"y\": [0, true]}]}]]", "args[1].y[2]");
        place_is("[[{\"$instance\": [\"m:C\", {\"x\": 0}]}, true]]", "args[2]");
}
END_TEST

START_TEST(a_long_place_is_cut_and_a_broken_one_harmless) {
        /* [[[true]]], whose outer array promises one more */
        static const uint8_t params[] = { 0x92, 0x91, 0x91, 0xc3 };
        char path[12];

        for (size_t size = 1; size <= sizeof(path); size++) {
                memset(path, 'x', sizeof(path));
                tr_frame_path(params, sizeof(params), 3, path, size);
                ck_assert_uint_le(strlen(path), size - 1);
                ck_assert_mem_eq(path, "args[1][1]", strlen(path));
        }
        ck_assert_str_eq(path, "args[1][1]");
        tr_frame_path(params, 2, 2, path, sizeof(path));
        ck_assert_str_eq(path, "args[1]");
        tr_frame_path((const uint8_t *)"\x91\xc1", 2, 2, path, sizeof(path));
        ck_assert_str_eq(path, "params[1]");
}
END_TEST

suite_main("path", an_array_among_the_params_is_args, what_came_before_is_left_again, keys_of_every_kind,
           a_key_itself_has_the_place_of_its_map, instances_are_entered, a_long_place_is_cut_and_a_broken_one_harmless);
