/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and times: digits, then one unit out of a table.
 */
#include "proto/quantity.h"

#include <string.h>

struct unit {
        const char *suffix;
        uint64_t factor;
};

static const struct unit size_units[] = {
        { "K", UINT64_C(1) << 10 },
        { "M", UINT64_C(1) << 20 },
        { "G", UINT64_C(1) << 30 },
};

static const struct unit duration_units[] = {
        { "ms", 1 },
        { "s", 1000 },
        { "m", 60 * 1000 },
        { "h", 60 * 60 * 1000 },
        { "d", 24 * 60 * 60 * 1000 },
};

static bool quantity_parse(const char *text, size_t len, const struct unit *units, size_t units_count, uint64_t *ret_value) {
        uint64_t value = 0;
        size_t digits = 0;
        for (; digits < len && text[digits] >= '0' && text[digits] <= '9'; digits++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(text[digits] - '0'), &value))
                        return false;
        if (digits == 0)
                return false;

        const char *suffix = text + digits;
        size_t suffix_len = len - digits;
        for (size_t i = 0; i < units_count; i++) {
                if (strlen(units[i].suffix) != suffix_len || memcmp(units[i].suffix, suffix, suffix_len) != 0)
                        continue;
                if (__builtin_mul_overflow(value, units[i].factor, &value))
                        return false;
                *ret_value = value;
                return true;
        }
        return false;
}

bool tr_size_parse(const char *text, size_t len, uint64_t *ret_bytes) {
        return quantity_parse(text, len, size_units, sizeof(size_units) / sizeof(size_units[0]), ret_bytes);
}

bool tr_duration_parse(const char *text, size_t len, uint64_t *ret_ms) {
        return quantity_parse(text, len, duration_units, sizeof(duration_units) / sizeof(duration_units[0]), ret_ms);
}
