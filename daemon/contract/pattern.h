/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_PATTERN_H
#define TR_CONTRACT_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

/*
 * A regular expression as JSON Schema has them: ECMA-262's, with the flag u, matched anywhere in a text. PCRE2 matches
 * it. What PCRE2 has beyond ECMA-262 is refused, so that a pattern means the same to everybody who reads the schema.
 *
 * A pattern is immutable, and any thread may match it. What matching takes besides (struct tr_matcher) belongs to one
 * check.
 */
struct tr_pattern;

enum {
        TR_PATTERN_WRONG = 1, /* compiling: *ret_reason says why */
        TR_PATTERN_NO = 1,    /* matching: it does not */
        TR_PATTERN_STOPPED,   /* matching: more work, or memory, than there may be */
};

#define TR_PATTERN_REASON_MAX 256

/* 0, TR_PATTERN_WRONG or -ENOMEM. The reason follows on the pattern's place: "is no pattern: ...". */
TR_MUST_CHECK int tr_pattern_new(const char *text, size_t len, struct tr_pattern **ret_pattern,
                                 char ret_reason[static TR_PATTERN_REASON_MAX]);
/* NULL is fine. Answers NULL. */
struct tr_pattern *tr_pattern_free(struct tr_pattern *pattern);
/* As it was written, NUL-terminated; it may have NULs in it. */
const char *tr_pattern_text(const struct tr_pattern *pattern, size_t *ret_len);
/* The bytes that it takes compiled. */
size_t tr_pattern_bytes(const struct tr_pattern *pattern);

/* What matching needs, made when it is first needed: begins as zeros. */
struct tr_matcher {
        struct pcre2_real_match_context_8 *context;
        struct pcre2_real_match_data_8 *data;
};

void tr_matcher_deinit(struct tr_matcher *matcher);

/* Whether the pattern matches a text of valid UTF-8: 0, TR_PATTERN_NO, TR_PATTERN_STOPPED or -ENOMEM. Takes the steps
 * that it needs off *steps, and stops where there are no more. */
TR_MUST_CHECK int tr_pattern_match(const struct tr_pattern *pattern, struct tr_matcher *matcher, const uint8_t *text,
                                   size_t len, uint64_t *steps);

#endif
