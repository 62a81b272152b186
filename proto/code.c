/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes as a table. It is made from TR_CODES, so that a code, its
 * text, its `ran` and its exit code cannot come apart, and so that a new code
 * is one line in one file.
 */
#include "proto/code.h"

#include <assert.h>
#include <string.h>

struct code {
        const char *text;
        enum tr_ran ran;
        bool callers;
        int exit;
};

static const struct code codes[TR_CODES_COUNT] = {
#define CODE_ROW(name, text, ran, caller, exit) [TR_CODE_##name] = { text, TR_RAN_##ran, caller, exit },
        TR_CODES(CODE_ROW)
#undef CODE_ROW
};

static const char *const ran_texts[] = {
        [TR_RAN_NO] = "no",
        [TR_RAN_MAYBE] = "maybe",
        [TR_RAN_YES] = "yes",
};
#define RANS (sizeof(ran_texts) / sizeof(ran_texts[0]))

static const struct code *code_row(enum tr_code code) {
        assert(code < TR_CODES_COUNT);
        return &codes[code];
}

static bool text_is(const char *text, const char *data, size_t len) {
        return strlen(text) == len && memcmp(text, data, len) == 0;
}

const char *tr_code_text(enum tr_code code) {
        return code_row(code)->text;
}

enum tr_ran tr_code_ran(enum tr_code code) {
        return code_row(code)->ran;
}

bool tr_code_is_callers(enum tr_code code) {
        return code_row(code)->callers;
}

int tr_code_exit(enum tr_code code) {
        return code_row(code)->exit;
}

bool tr_code_parse(const char *text, size_t len, enum tr_code *ret_code) {
        for (size_t i = 0; i < TR_CODES_COUNT; i++)
                if (text_is(codes[i].text, text, len)) {
                        *ret_code = (enum tr_code)i;
                        return true;
                }
        return false;
}

const char *tr_ran_text(enum tr_ran ran) {
        assert(ran < RANS);
        return ran_texts[ran];
}

bool tr_ran_parse(const char *text, size_t len, enum tr_ran *ret_ran) {
        for (size_t i = 0; i < RANS; i++)
                if (text_is(ran_texts[i], text, len)) {
                        *ret_ran = (enum tr_ran)i;
                        return true;
                }
        return false;
}
