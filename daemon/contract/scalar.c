/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, strings, how many of something there are, and equality with what const and enum have. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/contract/check.h"
#include "daemon/contract/number.h"

/* What PCRE2 does before it tries anything. */
#define STEPS_PER_MATCH 8

int tr_check_count(struct tr_check *check, const struct tr_step *step, const struct tr_counted *what, uint64_t count,
                   uint64_t min, uint64_t max) {
        const char *noun = count == 1 ? what->one : what->many;

        if (count < min)
                return tr_check_fail(check, step, "%s %" PRIu64 " %s; at least %" PRIu64 " %s needed", what->verb,
                                     count, noun, min, min == 1 ? "is" : "are");
        if (count > max)
                return tr_check_fail(check, step, "%s %" PRIu64 " %s; at most %" PRIu64 " %s allowed", what->verb,
                                     count, noun, max, max == 1 ? "is" : "are");
        return TR_FITS;
}

/* Numbers */

static int fail_number(struct tr_check *check, const struct tr_value *value, const char *allowed,
                       const struct tr_token *bound) {
        char is[TR_NUMBER_TEXT_MAX], limit[TR_NUMBER_TEXT_MAX];

        if (check->quiet)
                return TR_FAILS;
        (void)tr_number_format(&value->token, is);
        (void)tr_number_format(bound, limit);
        return tr_check_fail(check, value->step, "is %s; only %s %s is allowed", is, allowed, limit);
}

int tr_check_number(struct tr_check *check, const struct tr_numbers *numbers, const struct tr_value *value) {
        const struct tr_token *number = &value->token;

        if (numbers->minimum.type != TR_NIL && tr_number_compare(number, &numbers->minimum) < 0)
                return fail_number(check, value, "at least", &numbers->minimum);
        if (numbers->maximum.type != TR_NIL && tr_number_compare(number, &numbers->maximum) > 0)
                return fail_number(check, value, "at most", &numbers->maximum);
        if (numbers->exclusive_minimum.type != TR_NIL && tr_number_compare(number, &numbers->exclusive_minimum) <= 0)
                return fail_number(check, value, "more than", &numbers->exclusive_minimum);
        if (numbers->exclusive_maximum.type != TR_NIL && tr_number_compare(number, &numbers->exclusive_maximum) >= 0)
                return fail_number(check, value, "less than", &numbers->exclusive_maximum);
        if (numbers->multiple_of.type != TR_NIL && !tr_number_is_multiple(number, &numbers->multiple_of))
                return fail_number(check, value, "a multiple of", &numbers->multiple_of);
        return TR_FITS;
}

/* Strings */

static uint64_t count_characters(const uint8_t *text, size_t len) {
        uint64_t count = 0;

        for (size_t i = 0; i < len; i++)
                count += (text[i] & 0xc0) != 0x80;
        return count;
}

int tr_check_match(struct tr_check *check, const struct tr_pattern *pattern, const uint8_t *text, size_t len,
                   const struct tr_step *step) {
        char shown[TR_SHOWN_MAX];
        const char *written;
        size_t written_len;
        int r;

        r = tr_check_pay(check, step, STEPS_PER_MATCH + len / TR_BYTES_PER_STEP);
        if (r)
                return r;
        r = tr_pattern_match(pattern, &check->matcher, text, len, &check->steps);
        if (r == TR_PATTERN_NO)
                return TR_FAILS;
        if (r != TR_PATTERN_STOPPED)
                return r;
        written = tr_pattern_text(pattern, &written_len);
        (void)tr_pointer_show(shown, sizeof(shown), written, written_len);
        return tr_check_stop(check, step,
                             "takes more work, or memory, than there may be to match it with the pattern %s", shown);
}

static int fail_pattern(struct tr_check *check, const struct tr_pattern *pattern, const struct tr_value *value) {
        char shown[TR_SHOWN_MAX];
        const char *written;
        size_t len;

        if (check->quiet)
                return TR_FAILS;
        written = tr_pattern_text(pattern, &len);
        (void)tr_pointer_show(shown, sizeof(shown), written, len);
        return tr_check_fail(check, value->step, "does not match the pattern %s", shown);
}

int tr_check_string(struct tr_check *check, const struct tr_strings *strings, const struct tr_value *value) {
        static const struct tr_counted characters = { "is", "character long", "characters long" };
        const struct tr_token *token = &value->token;
        int r = TR_FITS;

        if (strings->min > 0 || strings->max < UINT64_MAX) {
                r = tr_check_pay(check, value->step, token->len / TR_BYTES_PER_STEP);
                if (!r)
                        r = tr_check_count(check, value->step, &characters, count_characters(token->data, token->len),
                                           strings->min, strings->max);
        }
        if (!r && strings->pattern) {
                r = tr_check_match(check, strings->pattern, token->data, token->len, value->step);
                if (r == TR_FAILS)
                        return fail_pattern(check, strings->pattern, value);
        }
        return r;
}

/* Equality */

static int compare_slices(const void *a, const void *b) {
        return tr_slice_compare(a, b);
}

static int write_canonical(struct tr_check *check, const struct tr_value *value) {
        struct tr_reader reader = { value->at, check->data + check->bytes };
        int r = 0;

        tr_writer_reset(&check->writer);
        if (value->token.type == TR_STR)
                tr_write_str(&check->writer, (const char *)value->token.data, value->token.len);
        else
                r = tr_canonical_write(&check->writer, &reader, &check->steps);
        if (r == TR_CANONICAL_STOPPED)
                return tr_check_out_of_steps(check, value->step);
        return r ? r : tr_writer_error(&check->writer);
}

int tr_check_values(struct tr_check *check, const struct tr_values *values, const struct tr_value *value,
                    const char *reason) {
        struct tr_slice slice;
        int r = tr_check_pay(check, value->step,
                             value->token.type == TR_STR ? value->token.len / TR_BYTES_PER_STEP : 0);

        if (r)
                return r;
        if (!value->types)
                return tr_check_fail(check, value->step, "%s", reason);
        r = write_canonical(check, value);
        if (r)
                return r;
        slice = (struct tr_slice){ check->writer.data, check->writer.len, 0 };
        if (values->count > 0 && bsearch(&slice, values->list, values->count, sizeof(slice), compare_slices))
                return TR_FITS;
        return tr_check_fail(check, value->step, "%s", reason);
}
