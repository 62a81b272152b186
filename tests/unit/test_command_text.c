/* SPDX-License-Identifier: Apache-2.0 */
/* Figures and foreign text, before they are printed. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "client/command/latency.h"
#include "client/command/printable.h"
#include "client/command/table.h"
#include "tests/unit/suite.h"

static void becomes(const char *text, const char *kept, const char *expected) {
        char copy[128];

        snprintf(copy, sizeof(copy), "%s", text);
        tr_printable(copy, kept);
        ck_assert_str_eq(copy, expected);
}

START_TEST(foreign_text_cannot_move_the_cursor) {
        becomes("", "", "");
        becomes("plain, größer, 漢字, 😀", "", "plain, größer, 漢字, 😀");
        becomes("\033[2J\a\x7f\r\n\t.", "", "?[2J?????.");
        becomes("\033a\nb\tc\r", "\n\t", "?a\nb\tc?");
        becomes("\xc2\x9b"
                "31m \xc2\x80\xc2\x9f \xc2\xa0",
                "", "?31m ?? \xc2\xa0");
        becomes("\u200e\u202a\u202e\u2066\u2069\u2028\u061c.", "", "???????.");
        /* no UTF-8 */
        becomes("a\xff\xc0\x80z\xe2\x82", "", "a???z??");
        becomes("\xed\xa0\x80", "", "???");
        becomes("\xf0\x9f\x98", "\n", "???");
}
END_TEST

START_TEST(bytes_in_four_characters) {
        static const struct {
                int64_t bytes;
                const char *text;
        } sizes[] = { { 0, "0" },
                      { 1023, "1023" },
                      { 1024, "1.0K" },
                      { 1536, "1.5K" },
                      { 10240, "10K" },
                      { 3 << 20, "3.0M" },
                      { 64 << 20, "64M" },
                      { 1LL << 30, "1.0G" },
                      { 5LL << 40, "5.0T" },
                      { 9LL << 50, "9216T" } };
        char text[32];

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                tr_bytes_text(sizes[i].bytes, text);
                ck_assert_str_eq(text, sizes[i].text);
        }
}
END_TEST

/* 1 to `count`, the largest first. */
static void fill(struct tr_latencies *latencies, uint64_t count) {
        for (uint64_t ns = count; ns; ns--)
                ck_assert_int_eq(tr_latencies_add(latencies, ns), 0);
        tr_latencies_sort(latencies);
}

START_TEST(quantiles_are_exact) {
        struct tr_latencies latencies = { 0 };

        tr_latencies_sort(&latencies);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 500), 0);
        fill(&latencies, 1);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 0), 1);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 500), 1);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 1000), 1);
        tr_latencies_deinit(&latencies);
        fill(&latencies, 10000);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 500), 5000);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 900), 9000);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 990), 9900);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 999), 9990);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 1000), 10000);
        tr_latencies_deinit(&latencies);
        /* of three the median is the second, and nothing is between */
        fill(&latencies, 3);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 500), 2);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 667), 3);
        ck_assert_uint_eq(tr_latencies_quantile(&latencies, 999), 3);
        tr_latencies_deinit(&latencies);
}
END_TEST

START_TEST(bars_have_everything_once) {
        struct tr_latency_bar bars[TR_LATENCY_BARS_MAX];
        struct tr_latencies latencies = { 0 };
        size_t count, total = 0;

        ck_assert_uint_eq(tr_latencies_bars(&latencies, bars), 0);
        ck_assert_int_eq(tr_latencies_add(&latencies, 70000), 0);
        ck_assert_int_eq(tr_latencies_add(&latencies, 29999), 0);
        ck_assert_int_eq(tr_latencies_add(&latencies, 20000), 0);
        tr_latencies_sort(&latencies);
        count = tr_latencies_bars(&latencies, bars);
        ck_assert_uint_eq(count, 4);
        ck_assert_uint_eq(bars[0].from_ns, 20000);
        ck_assert_uint_eq(bars[0].to_ns, 30000);
        ck_assert_uint_eq(bars[0].count, 2);
        ck_assert_uint_eq(bars[1].count, 0);
        ck_assert_uint_eq(bars[3].from_ns, 70000);
        ck_assert_uint_eq(bars[3].count, 1);
        /* from nothing at all to longer than any bar */
        ck_assert_int_eq(tr_latencies_add(&latencies, 0), 0);
        ck_assert_int_eq(tr_latencies_add(&latencies, UINT64_MAX), 0);
        tr_latencies_sort(&latencies);
        count = tr_latencies_bars(&latencies, bars);
        ck_assert_uint_eq(count, TR_LATENCY_BARS_MAX);
        for (size_t i = 0; i < count; i++) {
                total += bars[i].count;
                ck_assert(bars[i].from_ns < bars[i].to_ns && (!i || bars[i].from_ns == bars[i - 1].to_ns));
        }
        ck_assert_uint_eq(total, latencies.count);
        tr_latencies_deinit(&latencies);
}
END_TEST

suite_main("command_text", foreign_text_cannot_move_the_cursor, bytes_in_four_characters, quantiles_are_exact,
           bars_have_everything_once);
