/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a line of the log. */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log_line.h"
#include "tests/unit/suite.h"

static char buffer[TR_LOG_RENDER_MIN];

static struct tr_log_line line_of(const char *text) {
        return (struct tr_log_line){
                .level = TR_LOG_WARNING,
                .when = { .tv_sec = 1767323045, .tv_nsec = 678901234 }, /* 2026-01-02T03:04:05.678901234Z */
                .text = text,
                .len = strlen(text),
        };
}

static const char *rendered(size_t (*render)(const struct tr_log_line *, char *, size_t),
                            const struct tr_log_line *line) {
        size_t len = render(line, buffer, sizeof(buffer) - 1);

        ck_assert_uint_lt(len, sizeof(buffer));
        buffer[len] = '\0';
        return buffer;
}

START_TEST(json_has_the_members_that_are_set) {
        struct tr_log_line line = line_of("it broke");

        ck_assert_str_eq(rendered(tr_log_render_json, &line),
                         "{\"time\":\"2026-01-02T03:04:05.678901Z\",\"level\":\"warning\",\"message\":\"it broke\"}\n");
        line.context = (struct tr_log_context){ .actor = "count\"er",
                                                .handle = "1a2b3c4d",
                                                .trace = "t1",
                                                .has_peer = true,
                                                .peer_uid = 4294967295u,
                                                .peer_pid = 7 };
        ck_assert_str_eq(rendered(tr_log_render_json, &line),
                         "{\"time\":\"2026-01-02T03:04:05.678901Z\",\"level\":\"warning\",\"actor\":\"count\\\"er\","
                         "\"handle\":\"1a2b3c4d\",\"trace\":\"t1\",\"peer_uid\":4294967295,\"peer_pid\":7,"
                         "\"message\":\"it broke\"}\n");
}
END_TEST

START_TEST(json_holds_any_bytes) {
        struct tr_log_line line = line_of("a\\b\"c\nd\te\x01\x7f \xc3\xa4 \xff\xc3");

        ck_assert_ptr_nonnull(strstr(rendered(tr_log_render_json, &line),
                                     "\"a\\\\b\\\"c\\nd\\u0009e\\u0001\\u007f \xc3\xa4 \xef\xbf\xbd\xef\xbf\xbd\"}\n"));
}
END_TEST

START_TEST(json_that_is_cut_is_still_json) {
        static char text[TR_LOG_RENDER_MIN];
        struct tr_log_line line = line_of("");
        size_t len;

        for (size_t shift = 0; shift < 8; shift++) {
                memset(text, 'x', sizeof(text));
                memset(text + shift, 1, sizeof(text) - shift);
                line.text = text;
                line.len = sizeof(text);
                len = tr_log_render_json(&line, buffer, sizeof(buffer));
                ck_assert_uint_le(len, sizeof(buffer));
                ck_assert_mem_eq(buffer + len - 9, "\\u0001\"}\n", 9);
        }
}
END_TEST

START_TEST(text_has_who_and_for_whom) {
        struct tr_log_line line = line_of("it broke\n");

        setenv("TZ", "UTC", 1);
        ck_assert_str_eq(rendered(tr_log_render_text, &line), "03:04:05.678 warning: it broke\n");
        line.context = (struct tr_log_context){ .actor = "counter",
                                                .handle = "1a2b3c4d",
                                                .trace = "t1",
                                                .has_peer = true,
                                                .peer_uid = 1000,
                                                .peer_pid = 77 };
        ck_assert_str_eq(rendered(tr_log_render_text, &line),
                         "03:04:05.678 warning: counter[1a2b3c4d]: it broke (uid 1000, pid 77) (trace t1)\n");
}
END_TEST

START_TEST(no_text_forges_a_line_or_reaches_the_terminal) {
        struct tr_log_line line = line_of("one\n00:00:00.000 error: two\x1b[2J\xc2\x9b\xff\r\xc3\xa4\t|");

        setenv("TZ", "UTC", 1);
        ck_assert_str_eq(
                rendered(tr_log_render_text, &line),
                "03:04:05.678 warning: one\n    00:00:00.000 error: two\\x1b[2J\\xc2\\x9b\\xff\\x0d\xc3\xa4\t|\n");
        line.context.actor = "a\nb";
        ck_assert_str_eq(rendered(tr_log_render_prefixed, &line),
                         "<4>a b: one\n<4>    00:00:00.000 error: two\\x1b[2J\\xc2\\x9b\\xff\\x0d\xc3\xa4\t|\n");
}
END_TEST

START_TEST(levels_have_syslogs_numbers) {
        ck_assert_int_eq(tr_log_priority(TR_LOG_ERROR), 3);
        ck_assert_int_eq(tr_log_priority(TR_LOG_WARNING), 4);
        ck_assert_int_eq(tr_log_priority(TR_LOG_INFO), 6);
        ck_assert_int_eq(tr_log_priority(TR_LOG_DEBUG), 7);
}
END_TEST

suite_main("log_line", json_has_the_members_that_are_set, json_holds_any_bytes, json_that_is_cut_is_still_json,
           text_has_who_and_for_whom, no_text_forges_a_line_or_reaches_the_terminal, levels_have_syslogs_numbers);
