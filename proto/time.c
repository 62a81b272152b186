/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MessagePack timestamp, and points in time as RFC 3339 text.
 *
 * The calendar is the proleptic Gregorian one and is computed here: gmtime_r()
 * gives up where the year no longer fits an int, and a timestamp's 64 bits of
 * seconds reach far beyond that.
 */
#include <stdio.h>

#include "proto/head.h"
#include "proto/value.h"

#define NSEC_PER_SEC UINT32_C(1000000000)
#define NSEC_PER_MS UINT32_C(1000000)
#define SEC_PER_DAY INT64_C(86400)
/* The calendar repeats after 400 years. */
#define DAYS_PER_ERA INT64_C(146097)
/* From 0000-03-01, where the computation below begins its years, to 1970-01-01. */
#define DAYS_TO_1970 INT64_C(719468)

struct date {
        int64_t year;
        int month, day;
};

static int64_t floor_div(int64_t a, int64_t b) {
        return a / b - (a % b < 0);
}

static int64_t floor_rest(int64_t a, int64_t b) {
        return a % b + (a % b < 0 ? b : 0);
}

/*
 * Years begin in March, so that the leap day is the last of its year; then the
 * months' lengths repeat as 31, 30, 31, 30, 31, which is 153 days in five.
 */
static struct date date_of(int64_t days_since_1970) {
        int64_t days = days_since_1970 + DAYS_TO_1970;
        int64_t era = floor_div(days, DAYS_PER_ERA);
        int64_t day_of_era = floor_rest(days, DAYS_PER_ERA);
        int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
        int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        int64_t month_from_march = (5 * day_of_year + 2) / 153;
        struct date date;

        date.day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
        date.month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
        date.year = era * 400 + year_of_era + (date.month <= 2);
        return date;
}

static int64_t days_of(const struct date *date) {
        int64_t year = date->year - (date->month <= 2);
        int64_t year_of_era = floor_rest(year, 400);
        int64_t month_from_march = date->month > 2 ? date->month - 3 : date->month + 9;
        int64_t day_of_year = (153 * month_from_march + 2) / 5 + date->day - 1;
        int64_t day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;

        return floor_div(year, 400) * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

bool tr_time_decode(const uint8_t *payload, size_t len, struct tr_time *ret_time) {
        struct tr_time time;

        switch (len) {
        case 4:
                time = (struct tr_time){ tr_be32(payload), 0 };
                break;
        case 8: {
                uint64_t both = tr_be64(payload);

                time = (struct tr_time){ (int64_t)(both & UINT64_C(0x3ffffffff)), (uint32_t)(both >> 34) };
                break;
        }
        case 12:
                time = (struct tr_time){ (int64_t)tr_be64(payload + 4), tr_be32(payload) };
                break;
        default:
                return false;
        }
        if (time.nsec >= NSEC_PER_SEC)
                return false;
        *ret_time = time;
        return true;
}

size_t tr_time_format(const struct tr_time *time, char text[static TR_TIME_TEXT_MAX]) {
        int second = (int)floor_rest(time->sec, SEC_PER_DAY);
        struct date date = date_of(floor_div(time->sec, SEC_PER_DAY));
        const char *sign = date.year < 0 ? "-" : date.year > 9999 ? "+" : "";
        int len;

        len = snprintf(text, TR_TIME_TEXT_MAX, "%s%04lld-%02d-%02dT%02d:%02d:%02d", sign,
                       (long long)(date.year < 0 ? -date.year : date.year), date.month, date.day, second / 3600,
                       second / 60 % 60, second % 60);
        if (time->nsec > 0) {
                len += snprintf(text + len, TR_TIME_TEXT_MAX - (size_t)len, ".%09u", (unsigned)time->nsec);
                while (text[len - 1] == '0')
                        len--;
        }
        text[len++] = 'Z';
        text[len] = '\0';
        return (size_t)len;
}

/* Text that is being read: `at` moves on. */
struct scan {
        const char *at, *end;
};

/* Exactly so many digits; -1: there are others. */
static int scan_number(struct scan *scan, int digits) {
        int number = 0;

        if (scan->end - scan->at < digits)
                return -1;
        for (int i = 0; i < digits; i++, scan->at++) {
                if (*scan->at < '0' || *scan->at > '9')
                        return -1;
                number = 10 * number + (*scan->at - '0');
        }
        return number;
}

/* One character, a letter in either case. */
static bool scan_char(struct scan *scan, char wanted) {
        bool is_letter = wanted >= 'A' && wanted <= 'Z';

        if (scan->at == scan->end || (*scan->at != wanted && (!is_letter || *scan->at != wanted + ('a' - 'A'))))
                return false;
        scan->at++;
        return true;
}

static bool scan_date(struct scan *scan, int64_t *ret_days) {
        struct date date, same;

        date.year = scan_number(scan, 4);
        if (date.year < 0 || !scan_char(scan, '-'))
                return false;
        date.month = scan_number(scan, 2);
        if (date.month < 1 || date.month > 12 || !scan_char(scan, '-'))
                return false;
        date.day = scan_number(scan, 2);
        if (date.day < 1)
                return false;
        *ret_days = days_of(&date);
        same = date_of(*ret_days); /* a day that its month has not is one of the next */
        return same.month == date.month && same.day == date.day;
}

/* Hours and minutes: seconds, or -1. */
static int scan_minutes(struct scan *scan) {
        int hour = scan_number(scan, 2), minute;

        if (hour < 0 || hour > 23 || !scan_char(scan, ':'))
                return -1;
        minute = scan_number(scan, 2);
        return minute < 0 || minute > 59 ? -1 : 3600 * hour + 60 * minute;
}

static bool scan_time(struct scan *scan, int *ret_seconds, uint32_t *ret_nsec) {
        int minutes = scan_minutes(scan);
        int second = minutes >= 0 && scan_char(scan, ':') ? scan_number(scan, 2) : -1;
        uint32_t worth = NSEC_PER_SEC / 10;

        if (second < 0 || second > 60)
                return false;
        *ret_seconds = minutes + second;
        *ret_nsec = 0;
        if (!scan_char(scan, '.'))
                return true;
        if (scan->at == scan->end || *scan->at < '0' || *scan->at > '9')
                return false;
        for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++, worth /= 10)
                *ret_nsec += (uint32_t)(*scan->at - '0') * worth;
        return true;
}

static bool scan_offset(struct scan *scan, int *ret_seconds) {
        int sign;

        *ret_seconds = 0;
        if (scan_char(scan, 'Z'))
                return true;
        sign = scan_char(scan, '+') ? 1 : -1;
        if (sign < 0 && !scan_char(scan, '-'))
                return false;
        *ret_seconds = scan_minutes(scan);
        if (*ret_seconds < 0)
                return false;
        *ret_seconds *= sign;
        return true;
}

bool tr_time_parse(const char *text, size_t len, struct tr_time *ret_time) {
        struct scan scan = { text, text + len };
        int seconds, offset;
        uint32_t nsec;
        int64_t days;

        if (!scan_date(&scan, &days) || !scan_char(&scan, 'T') || !scan_time(&scan, &seconds, &nsec) ||
            !scan_offset(&scan, &offset) || scan.at != scan.end)
                return false;
        *ret_time = (struct tr_time){ days * SEC_PER_DAY + seconds - offset, nsec };
        return true;
}

int64_t tr_time_ms(const struct tr_time *time) {
        int64_t ms;

        if (__builtin_mul_overflow(time->sec, 1000, &ms))
                return time->sec < 0 ? INT64_MIN : INT64_MAX;
        return __builtin_add_overflow(ms, (int64_t)(time->nsec / NSEC_PER_MS), &ms) ? INT64_MAX : ms;
}
