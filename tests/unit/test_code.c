/* SPDX-License-Identifier: Apache-2.0 */
/* The error codes, against the protocol's table as errors.json has it. */
#include "config.h"

#include <string.h>

#include "proto/code.h"
#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

START_TEST(each_code_is_as_its_vectors_say) {
        json_t *cases = vectors_load("errors.json"), *one;
        bool seen[TR_CODES_COUNT] = { false };
        size_t i;

        json_array_foreach(cases, i, one) {
                const char *text = vectors_text(one, "code"), *ran_text = vectors_text(one, "ran");
                enum tr_code code;
                enum tr_ran ran;

                ck_assert_msg(tr_code_parse(text, strlen(text), &code), "%s", text);
                ck_assert_str_eq(tr_code_text(code), text);
                ck_assert_int_eq(tr_code_is_callers(code), json_integer_value(vectors_get(one, "kind")));
                ck_assert_int_eq(tr_code_exit(code), json_integer_value(vectors_get(one, "exit")));
                ck_assert(tr_ran_parse(ran_text, strlen(ran_text), &ran));
                ck_assert_str_eq(tr_ran_text(ran), ran_text);
                seen[code] = true;
        }
        for (size_t code = 0; code < TR_CODES_COUNT; code++)
                ck_assert_msg(seen[code], "%s has no vector", tr_code_text((enum tr_code)code));
        json_decref(cases);
}
END_TEST

START_TEST(ran_where_nobody_knows_better) {
        ck_assert_int_eq(tr_code_ran(TR_CODE_MAILBOX_FULL), TR_RAN_NO);
        ck_assert_int_eq(tr_code_ran(TR_CODE_CONTRACT), TR_RAN_NO);
        ck_assert_int_eq(tr_code_ran(TR_CODE_TIMEOUT), TR_RAN_MAYBE);
        ck_assert_int_eq(tr_code_ran(TR_CODE_INTERNAL), TR_RAN_MAYBE);
        ck_assert_int_eq(tr_code_ran(TR_CODE_FAULT), TR_RAN_YES);
}
END_TEST

START_TEST(what_is_no_code_is_untouched) {
        enum tr_code code = TR_CODE_LOOP;
        enum tr_ran ran = TR_RAN_MAYBE;

        ck_assert(!tr_code_parse("bad-fram", 8, &code));
        ck_assert(!tr_code_parse("bad-frames", 10, &code));
        ck_assert(!tr_code_parse("", 0, &code));
        ck_assert(!tr_code_parse("FAULT", 5, &code));
        ck_assert_int_eq(code, TR_CODE_LOOP);
        ck_assert(!tr_ran_parse("n", 1, &ran));
        ck_assert(!tr_ran_parse("yes\0", 4, &ran));
        ck_assert_int_eq(ran, TR_RAN_MAYBE);
}
END_TEST

suite_main("code", each_code_is_as_its_vectors_say, ran_where_nobody_knows_better, what_is_no_code_is_untouched);
