/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "proto/quantity.h"
#include "tests/unit/suite.h"

static const struct {
        const char *text;
        uint64_t value;
} sizes[] = {
        { "0K", 0 },
        { "0064K", 65536 },
        { "1K", 1024 },
        { "64M", 64 << 20 },
        { "16G", UINT64_C(16) << 30 },
        { "17179869183G", UINT64_C(17179869183) << 30 },
}, durations[] = {
        { "0s", 0 },
        { "250ms", 250 },
        { "30s", 30000 },
        { "5m", 300000 },
        { "2h", 7200000 },
        { "7d", 604800000 },
        { "18446744073709551615ms", UINT64_MAX },
        { "213503982334d", UINT64_C(213503982334) * 86400000 },
};

static const char *const no_sizes[] = {
        "",
        "0",
        "4096",
        "K",
        "1k",
        "1m",
        "1T",
        "1KB",
        "1KiB",
        "1 K",
        " 1",
        "1 ",
        "-1",
        "+1",
        "1.5M",
        "0x10",
        "1e3",
        "1K1",
        "1s",
        "17179869184G",
        "18446744073709551616",
        "99999999999999999999999K",
};

static const char *const no_durations[] = {
        "",
        "0",
        "1500",
        "s",
        "1S",
        "1M",
        "1min",
        "1us",
        "1 s",
        "-1s",
        "+1s",
        "0.5s",
        "1s1",
        "1h30m",
        "1w",
        "213503982335d",
        "18446744073709551616",
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

START_TEST(sizes_are_read) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
                uint64_t bytes = 42;

                ck_assert_msg(tr_size_parse(sizes[i].text, strlen(sizes[i].text), &bytes), "%s", sizes[i].text);
                ck_assert_uint_eq(bytes, sizes[i].value);
        }
}
END_TEST

START_TEST(what_is_no_size_is_refused) {
        for (size_t i = 0; i < COUNT(no_sizes); i++) {
                uint64_t bytes = 42;

                ck_assert_msg(!tr_size_parse(no_sizes[i], strlen(no_sizes[i]), &bytes), "%s", no_sizes[i]);
                ck_assert_uint_eq(bytes, 42);
        }
}
END_TEST

START_TEST(durations_are_read) {
        for (size_t i = 0; i < COUNT(durations); i++) {
                const char *text = durations[i].text;
                uint64_t ms = 42;

                ck_assert_msg(tr_duration_parse(text, strlen(text), &ms), "%s", text);
                ck_assert_uint_eq(ms, durations[i].value);
        }
}
END_TEST

START_TEST(what_is_no_duration_is_refused) {
        for (size_t i = 0; i < COUNT(no_durations); i++) {
                uint64_t ms = 42;

                ck_assert_msg(!tr_duration_parse(no_durations[i], strlen(no_durations[i]), &ms), "%s", no_durations[i]);
                ck_assert_uint_eq(ms, 42);
        }
}
END_TEST

START_TEST(only_len_bytes_are_looked_at) {
        uint64_t value;

        ck_assert(tr_size_parse("12KB", 3, &value));
        ck_assert_uint_eq(value, 12 << 10);
        ck_assert(!tr_size_parse("12K", 2, &value));
        ck_assert(tr_duration_parse("12ms", 3, &value));
        ck_assert_uint_eq(value, 12 * 60000);
        ck_assert(!tr_size_parse("1\0K", 3, &value));
}
END_TEST

suite_main("quantity", sizes_are_read, what_is_no_size_is_refused, durations_are_read, what_is_no_duration_is_refused,
           only_len_bytes_are_looked_at);
