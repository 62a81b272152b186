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

suite_main("time", as_many_decimals_as_there_are, the_calendar_agrees_with_the_c_library,
           years_of_other_than_four_digits_have_a_sign, a_payload_of_any_other_shape_is_none);
