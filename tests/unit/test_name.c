/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts are names. */
#include "config.h"

#include <string.h>

#include "proto/limits.h"
#include "proto/name.h"
#include "tests/unit/suite.h"

static bool valid(const char *name) {
        return tr_name_is_valid(name, strlen(name));
}

START_TEST(parts_joined_by_dots) {
        static const char *const names[] = { "a",   "Z",  "_",   "0",     "counter", "dev.left",
                                             "a-b", "a-", "a--", "1.2.3", "_x.y-z" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                ck_assert_msg(valid(names[i]), "%s", names[i]);
}
END_TEST

START_TEST(all_else_is_no_name) {
        static const char *const names[] = { "",    ".",   "a.",  ".a",  "a..b",     "-a", "a.-b", "a/b", "/",   "../a",
                                             "a b", "a:b", "a\n", "a,b", "\xc3\xa4", "a*", "a@b",  "a[",  "a`b", "{" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                ck_assert_msg(!valid(names[i]), "%s", names[i]);
        ck_assert(!tr_name_is_valid("a\0b", 3));
        ck_assert(!tr_name_is_valid("a\0", 2));
        ck_assert(!tr_name_is_valid(NULL, 0));
}
END_TEST

START_TEST(a_name_has_128_bytes_at_most) {
        char name[TR_NAME_MAX + 1];

        memset(name, 'n', sizeof(name));
        ck_assert(tr_name_is_valid(name, TR_NAME_MAX));
        ck_assert(!tr_name_is_valid(name, TR_NAME_MAX + 1));
}
END_TEST

START_TEST(an_actor_is_a_module_with_or_without_a_name_in_it) {
        char longest[2 * TR_NAME_MAX + 2];
        size_t module_len = 99;

        ck_assert(tr_actor_name_is_valid("counter", 7, &module_len));
        ck_assert_uint_eq(module_len, 7);
        ck_assert(tr_actor_name_is_valid("lib.counter:Counter", 19, &module_len));
        ck_assert_uint_eq(module_len, 11);

        memset(longest, 'n', sizeof(longest));
        longest[TR_NAME_MAX] = ':';
        ck_assert(tr_actor_name_is_valid(longest, 2 * TR_NAME_MAX + 1, &module_len));
        ck_assert_uint_eq(module_len, TR_NAME_MAX);

        module_len = 99;
        ck_assert(!tr_actor_name_is_valid(longest, 2 * TR_NAME_MAX + 2, &module_len));
        ck_assert(!tr_actor_name_is_valid("", 0, &module_len));
        ck_assert(!tr_actor_name_is_valid(NULL, 0, &module_len));
        ck_assert(!tr_actor_name_is_valid(":Counter", 8, &module_len));
        ck_assert(!tr_actor_name_is_valid("counter:", 8, &module_len));
        ck_assert(!tr_actor_name_is_valid("a:b:c", 5, &module_len));
        ck_assert_uint_eq(module_len, 99);
}
END_TEST

suite_main("name", parts_joined_by_dots, all_else_is_no_name, a_name_has_128_bytes_at_most,
           an_actor_is_a_module_with_or_without_a_name_in_it);
