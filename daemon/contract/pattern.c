/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matching within bounds. PCRE2's own limit on matching begins anew at every place in the text where a match is
 * tried, so work is counted by callouts, of which one stands before each item of the pattern: each that is tried is a
 * step, and so are 16 characters that lie between two. PCRE2 backtracks on the heap, and that has a limit too.
 */
#include "daemon/contract/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/ecma.h"
#include "daemon/contract/schema.h"

/* KiB for backtracking. */
#define HEAP_MAX_KIB 4096
/* Parentheses inside each other: compiling them is recursion. */
#define PARENTHESES_MAX 50
/* Characters passed that count as one step, and bytes of a text that are looked at before its first. */
#define CHARACTERS_PER_STEP 16

struct tr_pattern {
        pcre2_code *code;
        size_t len;
        char text[];
};

static void *get_memory(size_t bytes, void *data) {
        return malloc(bytes);
}

static void put_memory(void *memory, void *data) {
        free(memory);
}

static int wrong(char reason[static TR_PATTERN_REASON_MAX], const char *problem) {
        snprintf(reason, TR_PATTERN_REASON_MAX, "is no pattern: %s", problem);
        return TR_PATTERN_WRONG;
}

static int compile_with(pcre2_compile_context *context, const struct tr_writer *translated, pcre2_code **ret_code,
                        char ret_reason[static TR_PATTERN_REASON_MAX]) {
        char problem[TR_PATTERN_REASON_MAX - sizeof("is no pattern: ")];
        PCRE2_SIZE offset;
        int error;

        pcre2_set_parens_nest_limit(context, PARENTHESES_MAX);
        *ret_code = pcre2_compile(translated->data ? translated->data : (const uint8_t *)"", translated->len,
                                  PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
                                          PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT,
                                  &error, &offset, context);
        if (*ret_code)
                return 0;
        if (error == PCRE2_ERROR_HEAP_FAILED)
                return -ENOMEM;
        if (pcre2_get_error_message(error, (PCRE2_UCHAR *)problem, sizeof(problem)) < 0)
                snprintf(problem, sizeof(problem), "error %d", error);
        return wrong(ret_reason, problem);
}

static int compile_translated(const struct tr_writer *translated, pcre2_code **ret_code,
                              char ret_reason[static TR_PATTERN_REASON_MAX]) {
        pcre2_general_context *memory = pcre2_general_context_create(get_memory, put_memory, NULL);
        pcre2_compile_context *context = memory ? pcre2_compile_context_create(memory) : NULL;
        int r = context ? compile_with(context, translated, ret_code, ret_reason) : -ENOMEM;

        pcre2_compile_context_free(context);
        pcre2_general_context_free(memory);
        return r;
}

static int compile(const char *text, size_t len, pcre2_code **ret_code, char ret_reason[static TR_PATTERN_REASON_MAX]) {
        struct tr_writer translated = TR_WRITER_INIT;
        const char *problem = tr_ecma_translate(&translated, text, len);
        int r = tr_writer_error(&translated);

        if (!r)
                r = problem ? wrong(ret_reason, problem) : compile_translated(&translated, ret_code, ret_reason);
        tr_writer_deinit(&translated);
        return r;
}

int tr_pattern_new(const char *text, size_t len, struct tr_pattern **ret_pattern,
                   char ret_reason[static TR_PATTERN_REASON_MAX]) {
        struct tr_pattern *pattern;
        int r;

        if (len > TR_SCHEMA_PATTERN_MAX) {
                snprintf(ret_reason, TR_PATTERN_REASON_MAX, "is a pattern of %zu bytes; at most %d are allowed", len,
                         TR_SCHEMA_PATTERN_MAX);
                return TR_PATTERN_WRONG;
        }
        pattern = calloc(1, sizeof(*pattern) + len + 1);
        if (!pattern)
                return tr_error_origin(-ENOMEM);
        memcpy(pattern->text, text, len);
        pattern->len = len;
        r = compile(text, len, &pattern->code, ret_reason);
        if (r) {
                tr_pattern_free(pattern);
                return r > 0 ? r : tr_error_fold(r);
        }
        *ret_pattern = pattern;
        return 0;
}

struct tr_pattern *tr_pattern_free(struct tr_pattern *pattern) {
        if (pattern)
                pcre2_code_free(pattern->code);
        free(pattern);
        return NULL;
}

const char *tr_pattern_text(const struct tr_pattern *pattern, size_t *ret_len) {
        *ret_len = pattern->len;
        return pattern->text;
}

size_t tr_pattern_bytes(const struct tr_pattern *pattern) {
        size_t bytes = 0;

        (void)pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &bytes);
        return bytes;
}

static int prepare(struct tr_matcher *matcher) {
        pcre2_general_context *memory;

        if (matcher->data)
                return 0;
        memory = pcre2_general_context_create(get_memory, put_memory, NULL);
        if (!memory)
                return -ENOMEM;
        if (!matcher->context)
                matcher->context = pcre2_match_context_create(memory);
        /* Only whether it matches is asked, so that there is room for nothing but the whole. */
        if (matcher->context)
                matcher->data = pcre2_match_data_create(1, memory);
        pcre2_general_context_free(memory);
        if (!matcher->data)
                return -ENOMEM;
        pcre2_set_heap_limit(matcher->context, HEAP_MAX_KIB);
        return 0;
}

void tr_matcher_deinit(struct tr_matcher *matcher) {
        pcre2_match_data_free(matcher->data);
        pcre2_match_context_free(matcher->context);
        *matcher = (struct tr_matcher){ 0 };
}

struct count {
        uint64_t *steps;
        size_t position;
};

/* Before each item of the pattern that is tried. */
static int count_item(pcre2_callout_block *block, void *data) {
        struct count *count = data;
        size_t position = block->current_position;
        size_t passed = position > count->position ? position - count->position : count->position - position;
        uint64_t steps = 1 + passed / CHARACTERS_PER_STEP;

        count->position = position;
        if (steps > *count->steps) {
                *count->steps = 0;
                return PCRE2_ERROR_CALLOUT;
        }
        *count->steps -= steps;
        return 0;
}

int tr_pattern_match(const struct tr_pattern *pattern, struct tr_matcher *matcher, const uint8_t *text, size_t len,
                     uint64_t *steps) {
        struct count count = { steps, 0 };
        int r;

        r = prepare(matcher);
        if (r)
                return tr_error_origin(r);
        pcre2_set_callout(matcher->context, count_item, &count);
        r = pcre2_match(pattern->code, text, len, 0, PCRE2_NO_UTF_CHECK, matcher->data, matcher->context);
        switch (r) {
        case PCRE2_ERROR_NOMATCH:
                return TR_PATTERN_NO;
        case PCRE2_ERROR_NOMEMORY:
                return tr_error_origin(-ENOMEM);
        default:
                return r >= 0 ? 0 : TR_PATTERN_STOPPED;
        }
}
