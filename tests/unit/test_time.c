/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: their payloads, and as text against the C library's calendar. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/value.h"
#include "tests/unit/suite.h"

static void formats_as(int64_t sec, uint32_t nsec, const char *wanted) {
        char text[TR_TIME_TEXT_MAX];

        ck_assert_uint_eq(tr_time_format(&(struct tr_time){ sec, nsec }, text), strlen(wanted));
        ck_assert_str_eq(text, wanted);
}

START_TEST(as_many_decimals_as_there_are) {
        formats_as(0, 0, "1970-01-01T00:00:00Z");
        formats_as(0, 500000000, "1970-01-01T00:00:00.5Z");
        formats_as(0, 120000000, "1970-01-01T00:00:00.12Z");
        formats_as(0, 1, "1970-01-01T00:00:00.000000001Z");
        formats_as(-1, 999999999, "1969-12-31T23:59:59.999999999Z");
}
END_TEST

START_TEST(the_calendar_agrees_with_the_c_library) {
        char text[TR_TIME_TEXT_MAX], wanted[TR_TIME_TEXT_MAX];

        /* Every 11 days and some seconds, from year 1 to 9999. */
        for (time_t sec = -62135596800; sec < 253402300800; sec += 11 * 86400 + 3671) {
                struct tm tm;

                if (!gmtime_r(&sec, &tm))
                        ck_abort_msg("no date");
                snprintf(wanted, sizeof(wanted), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
                tr_time_format(&(struct tr_time){ sec, 0 }, text);
                if (strcmp(text, wanted) != 0)
                        ck_abort_msg("%s is not %s", text, wanted);
        }
}
END_TEST

START_TEST(years_of_other_than_four_digits_have_a_sign) {
        formats_as(-62167219200, 0, "0000-01-01T00:00:00Z");
        formats_as(-62167219201, 0, "-0001-12-31T23:59:59Z");
        formats_as(253402300799, 0, "9999-12-31T23:59:59Z");
        formats_as(253402300800, 0, "+10000-01-01T00:00:00Z");
        formats_as(INT64_MAX, 999999999, "+292277026596-12-04T15:30:07.999999999Z");
        formats_as(INT64_MIN, 0, "-292277022657-01-27T08:29:52Z");
}
END_TEST

START_TEST(a_payload_of_any_other_shape_is_none) {
        static const uint8_t payload[16] = { 0 };
        struct tr_time time = { 7, 7 };

        for (size_t len = 0; len <= sizeof(payload); len++)
                if (len != 4 && len != 8 && len != 12)
                        ck_assert(!tr_time_decode(payload, len, &time));
        /* 10^9 nanoseconds, in either form that has any */
        ck_assert(!tr_time_decode((const uint8_t *)"\xee\x6b\x28\x00\x00\x00\x00\x00", 8, &time));
        ck_assert(!tr_time_decode((const uint8_t *)"\x3b\x9a\xca\x00\0\0\0\0\0\0\0\0", 12, &time));
        ck_assert_int_eq(time.sec, 7);
        ck_assert_uint_eq(time.nsec, 7);
        ck_assert(tr_time_decode((const uint8_t *)"\x3b\x9a\xc9\xff\x80\0\0\0\0\0\0\0", 12, &time));
        ck_assert_int_eq(time.sec, INT64_MIN);
        ck_assert_uint_eq(time.nsec, 999999999);
}
END_TEST

static void reads_as(const char *text, int64_t sec, uint32_t nsec) {
        struct tr_time time = { 0 };

        ck_assert_msg(tr_time_parse(text, strlen(text), &time), "%s is no time", text);
        ck_assert_msg(time.sec == sec && time.nsec == nsec, "%s is %lld, %u", text, (long long)time.sec, (unsigned)time.nsec);
}

START_TEST(text_is_read) {
        reads_as("1970-01-01T00:00:00Z", 0, 0);
        reads_as("1970-01-01t00:00:00z", 0, 0);
        reads_as("2026-01-02T03:04:05.5Z", 1767323045, 500000000);
        reads_as("2026-01-02T03:04:05.5+05:30", 1767323045 - 19800, 500000000);
        reads_as("2026-01-02T03:04:05-00:01", 1767323045 + 60, 0);
        reads_as("2026-01-02T03:04:05.1234567899Z", 1767323045, 123456789);
        reads_as("2024-02-29T00:00:00Z", 1709164800, 0);
        reads_as("2000-02-29T23:59:60Z", 951868800, 0); /* a leap second */
        reads_as("0000-03-01T00:00:00Z", -62162035200, 0);
        reads_as("9999-12-31T23:59:59Z", 253402300799, 0);
}
END_TEST

START_TEST(what_is_written_is_read) {
        char text[TR_TIME_TEXT_MAX];
        struct tr_time time;

        for (int64_t sec = -62167219200; sec < 253402300800; sec += 11 * 86400 + 3671) {
                size_t len = tr_time_format(&(struct tr_time){ sec, 7000 }, text);

                if (!tr_time_parse(text, len, &time) || time.sec != sec || time.nsec != 7000)
                        ck_abort_msg("%s is read as %lld", text, (long long)time.sec);
        }
}
END_TEST

static const char *const no_times[] = {
        "", "2026", "2026-01-02", "2026-01-02T03:04Z", "2026-01-02T03:04:05", "2026-01-02T03:04:05z ", "2026-01-02 03:04:05Z",
        "2026-1-02T03:04:05Z", "26-01-02T03:04:05Z", "2026-13-02T03:04:05Z", "2026-00-02T03:04:05Z", "2026-01-32T03:04:05Z",
        "2026-01-00T03:04:05Z", "2026-02-29T03:04:05Z", "1900-02-29T03:04:05Z", "2026-04-31T03:04:05Z", "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05+5:30", "2026-01-02T03:04:05+05",
        "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+05:60", "-2026-01-02T03:04:05Z", "+12026-01-02T03:04:05Z", "now",
};

START_TEST(what_is_no_time_is_refused) {
        struct tr_time time = { 7, 7 };

        for (size_t i = 0; i < sizeof(no_times) / sizeof(no_times[0]); i++)
                ck_assert_msg(!tr_time_parse(no_times[i], strlen(no_times[i]), &time), "%s", no_times[i]);
        ck_assert(!tr_time_parse("2026-01-02T03:04:05Z", 19, &time)); /* its length is what counts */
        ck_assert_int_eq(time.sec, 7);
}
END_TEST

START_TEST(milliseconds) {
        ck_assert_int_eq(tr_time_ms(&(struct tr_time){ 5, 1999999 }), 5001);
        ck_assert_int_eq(tr_time_ms(&(struct tr_time){ -1, 999999999 }), -1);
        ck_assert_int_eq(tr_time_ms(&(struct tr_time){ INT64_MAX, 0 }), INT64_MAX);
        ck_assert_int_eq(tr_time_ms(&(struct tr_time){ INT64_MAX / 1000, 999999999 }), INT64_MAX);
        ck_assert_int_eq(tr_time_ms(&(struct tr_time){ INT64_MIN, 0 }), INT64_MIN);
}
END_TEST

suite_main("time", as_many_decimals_as_there_are, the_calendar_agrees_with_the_c_library,
           years_of_other_than_four_digits_have_a_sign, a_payload_of_any_other_shape_is_none, text_is_read, what_is_written_is_read,
           what_is_no_time_is_refused, milliseconds);
