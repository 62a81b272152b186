/* SPDX-License-Identifier: Apache-2.0 */
/* Why something failed: what is added to it, and what is read back. */
#include <string.h>

#include "daemon/core/failure.h"
#include "tests/unit/suite.h"

START_TEST(texts_are_found_again) {
        struct tr_failure *failure = tr_failure_new(TR_CODE_FAULT, "it %s", "broke");
        const char *text = NULL;
        size_t len = 0;

        ck_assert(!tr_failure_find_text(failure, "traceback", &text, &len));
        tr_failure_add_raw(failure, "value", "\x92\x01\xa9traceback", 12);
        tr_failure_add_text(failure, "traceback", "line 1\xff", 7);
        tr_failure_add_raw(failure, "line", "\x07", 1);
        tr_failure_add_text(failure, "handler", "total", 5);
        ck_assert_str_eq(failure->message, "it broke");
        ck_assert_uint_eq(failure->extras, 4);

        ck_assert(tr_failure_find_text(failure, "traceback", &text, &len));
        ck_assert_uint_eq(len, 7);
        ck_assert_mem_eq(text, "line 1\xff", 7);
        ck_assert(tr_failure_find_text(failure, "handler", &text, &len));
        ck_assert_uint_eq(len, 5);
        ck_assert_mem_eq(text, "total", 5);
        /* what is there and is no text, and what is not there */
        ck_assert(!tr_failure_find_text(failure, "line", &text, &len));
        ck_assert(!tr_failure_find_text(failure, "value", &text, &len));
        ck_assert(!tr_failure_find_text(failure, "total", &text, &len));
        tr_failure_unref(failure);
}
END_TEST

suite_main("failure", texts_are_found_again);
