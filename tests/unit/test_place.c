/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a JSON document, and the lines where they stand. */
#include <stdlib.h>
#include <string.h>

#include "daemon/settings/place.h"
#include "tests/unit/suite.h"

static const char document[] = "\n"                                  /* 1 */
                               "{ \"a\": 1,\n"                       /* 2 */
                               "  \"b{\\\"\": \"}],\\\\\",\n"        /* 3 */
                               "  \"list\": [ 1, [2, {\"x\": 3}],\n" /* 4 */
                               "    {\"in\": true,\n"                /* 5 */
                               "     \"\\u0061bc\"\n"                /* 6 */
                               "        : {\n"                       /* 7 */
                               "     \"deep\": null }}\n"            /* 8 */
                               "    ,\n"                             /* 9 */
                               "    \"last\" ],\n"                   /* 10 */
                               "  \"end\": {}}\n";                   /* 11 */

static int line_of(const struct tr_place *place) {
        return tr_place_line(place, document, sizeof(document) - 1);
}

START_TEST(lines_are_those_of_keys_and_elements) {
        struct tr_place a = { .key = "a" }, b = { .key = "b{\"" }, list = { .key = "list" }, end = { .key = "end" };
        struct tr_place second = { .parent = &list, .index = 1 }, third = { .parent = &list, .index = 2 };
        struct tr_place fourth = { .parent = &list, .index = 3 }, x = { .parent = &second, .index = 1 };
        struct tr_place abc = { .parent = &third, .key = "abc" }, deep = { .parent = &abc, .key = "deep" };

        ck_assert_int_eq(line_of(NULL), 2);
        ck_assert_int_eq(line_of(&a), 2);
        ck_assert_int_eq(line_of(&b), 3);
        ck_assert_int_eq(line_of(&list), 4);
        ck_assert_int_eq(line_of(&second), 4);
        ck_assert_int_eq(line_of(&x), 4);
        ck_assert_int_eq(line_of(&third), 5);
        ck_assert_int_eq(line_of(&abc), 6);
        ck_assert_int_eq(line_of(&deep), 8);
        ck_assert_int_eq(line_of(&fourth), 10);
        ck_assert_int_eq(line_of(&end), 11);
}
END_TEST

START_TEST(a_missing_place_is_where_it_would_be) {
        struct tr_place list = { .key = "list" }, third = { .parent = &list, .index = 2 };
        struct tr_place missing = { .parent = &third, .key = "missing" },
                        below = { .parent = &missing, .key = "below" };
        struct tr_place top = { .key = "missing" }, wrong = { .parent = &list, .key = "member of a list" };
        struct tr_place beyond = { .parent = &list, .index = 4 };

        ck_assert_int_eq(line_of(&missing), 5);
        ck_assert_int_eq(line_of(&below), 5);
        ck_assert_int_eq(line_of(&top), 2);
        ck_assert_int_eq(line_of(&wrong), 4);
        ck_assert_int_eq(line_of(&beyond), 4);
}
END_TEST

static int line_below(const struct tr_place *place, const char *pointer) {
        json_t *json = json_loadb(document, sizeof(document) - 1, 0, NULL);
        int line;

        ck_assert_ptr_nonnull(json);
        line = tr_place_line_below(place, tr_place_find(place, json), pointer, document, sizeof(document) - 1);
        json_decref(json);
        return line;
}

START_TEST(pointers_lead_on_from_a_place) {
        const struct tr_place list = { .key = "list" };

        ck_assert_int_eq(line_below(NULL, ""), 2);
        ck_assert_int_eq(line_below(NULL, "/b{\""), 3);
        ck_assert_int_eq(line_below(NULL, "/list/2/abc/deep"), 8);
        ck_assert_int_eq(line_below(NULL, "/list/3"), 10);
        ck_assert_int_eq(line_below(&list, "/2/abc"), 6);
        ck_assert_int_eq(line_below(&list, ""), 4);
        /* as far as there is something */
        ck_assert_int_eq(line_below(&list, "/2/abc/none/x"), 6);
        ck_assert_int_eq(line_below(&list, "/7"), 4);
        ck_assert_int_eq(line_below(NULL, "/a/b"), 2);
        ck_assert_int_eq(line_below(NULL, "not a pointer"), 2);
}
END_TEST

START_TEST(escapes_of_pointers_are_read) {
        static const char text[] = "{\n\"a/b\": 1,\n\"c~1d\": 2,\n\"~0\": 3}";
        json_t *json = json_loads(text, 0, NULL);

        ck_assert_int_eq(tr_place_line_below(NULL, json, "/a~1b", text, sizeof(text) - 1), 2);
        ck_assert_int_eq(tr_place_line_below(NULL, json, "/c~01d", text, sizeof(text) - 1), 3);
        ck_assert_int_eq(tr_place_line_below(NULL, json, "/~00", text, sizeof(text) - 1), 4);
        json_decref(json);
}
END_TEST

START_TEST(no_cut_text_is_left) {
        struct tr_place list = { .key = "list" }, third = { .parent = &list, .index = 2 };
        struct tr_place abc = { .parent = &third, .key = "abc" }, deep = { .parent = &abc, .key = "deep" };

        for (size_t len = 0; len < sizeof(document); len++) {
                /* an allocation of its own, so that a sanitizer sees a step too far */
                char *text = malloc(len ? len : 1);

                memcpy(text, document, len);
                ck_assert_int_ge(tr_place_line(&deep, text, len), 1);
                free(text);
        }
}
END_TEST

START_TEST(text_is_how_people_write_it) {
        struct tr_place actors = { .key = "actors" }, second = { .parent = &actors, .index = 1 };
        struct tr_place restart = { .parent = &second, .key = "restart" }, element = { .index = 7 };
        char *text;

        text = tr_place_text(&restart);
        ck_assert_str_eq(text, "actors[1].restart");
        free(text);
        text = tr_place_text(&actors);
        ck_assert_str_eq(text, "actors");
        free(text);
        text = tr_place_text(&element);
        ck_assert_str_eq(text, "[7]");
        free(text);
        text = tr_place_text(NULL);
        ck_assert_str_eq(text, "");
        free(text);
}
END_TEST

START_TEST(values_are_found) {
        json_t *json = json_loads("{\"a\": [1, {\"b\": 5}]}", 0, NULL);
        struct tr_place a = { .key = "a" }, second = { .parent = &a, .index = 1 },
                        b = { .parent = &second, .key = "b" };
        struct tr_place none = { .parent = &b, .key = "c" };

        ck_assert_int_eq(json_integer_value(tr_place_find(&b, json)), 5);
        ck_assert_ptr_null(tr_place_find(&none, json));
        ck_assert_ptr_eq(tr_place_find(NULL, json), json);
        json_decref(json);
}
END_TEST

suite_main("place", lines_are_those_of_keys_and_elements, a_missing_place_is_where_it_would_be,
           pointers_lead_on_from_a_place, escapes_of_pointers_are_read, no_cut_text_is_left,
           text_is_how_people_write_it, values_are_found);
