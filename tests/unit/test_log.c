/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of the log and its writer. Each test is a process of its own, with standard error in a file or a pipe. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log_line.h"
#include "tests/unit/suite.h"

static int file = -1;

static void to_file(void) {
        file = memfd_create("log", 0);
        ck_assert_int_ge(file, 0);
        ck_assert_int_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
        tr_log_set_format(TR_LOG_JSON);
}

/* All that was written so far, the caller's. */
static char *written(void) {
        off_t bytes = lseek(file, 0, SEEK_END);
        char *text = calloc((size_t)bytes + 1, 1);

        ck_assert_int_eq(pread(file, text, (size_t)bytes, 0), bytes);
        return text;
}

static size_t count(const char *text, const char *what) {
        size_t found = 0;

        for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
                found++;
        return found;
}

START_TEST(lines_go_out_at_once_without_a_writer) {
        char *text;

        to_file();
        tr_log(TR_LOG_INFO, "before %d", 1);
        text = written();
        ck_assert_uint_eq(count(text, "\"message\":\"before 1\"}\n"), 1);
        free(text);
        ck_assert_int_eq(tr_log_start(), 0);
        tr_log(TR_LOG_INFO, "during");
        tr_log_stop();
        tr_log(TR_LOG_INFO, "after");
        text = written();
        ck_assert_uint_eq(count(text, "\"message\":\"during\"}\n"), 1);
        ck_assert_uint_eq(count(text, "\"message\":\"after\"}\n"), 1);
        free(text);
}
END_TEST

START_TEST(it_can_be_started_again) {
        char *text;

        to_file();
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(tr_log_start(), 0);
                tr_log(TR_LOG_INFO, "round");
                tr_log_stop();
                tr_log_stop();
        }
        text = written();
        ck_assert_uint_eq(count(text, "\"round\""), 3);
        free(text);
}
END_TEST

START_TEST(the_level_decides) {
        char *text;

        to_file();
        tr_log(TR_LOG_DEBUG, "one");
        ck_assert(!tr_log_enabled(TR_LOG_DEBUG));
        tr_log_set_level(TR_LOG_ERROR);
        tr_log(TR_LOG_WARNING, "two");
        tr_log(TR_LOG_ERROR, "three");
        tr_log_set_level(TR_LOG_DEBUG);
        tr_log(TR_LOG_DEBUG, "four");
        text = written();
        ck_assert_uint_eq(count(text, "\n"), 2);
        ck_assert_uint_eq(count(text, "three"), 1);
        ck_assert_uint_eq(count(text, "four"), 1);
        free(text);
}
END_TEST

#define THREADS 4
#define LINES 500

static void *log_lines(void *userdata) {
        const char *name = userdata;

        for (int i = 0; i < LINES; i++)
                tr_log_with(TR_LOG_INFO, &(struct tr_log_context){ .actor = name, .has_peer = true, .peer_uid = 7 },
                            "line %d", i);
        return NULL;
}

START_TEST(each_threads_lines_stay_in_order) {
        static char names[THREADS][16];
        pthread_t threads[THREADS];
        int next[THREADS] = { 0 };
        char *text, *rest, *line;

        to_file();
        ck_assert_int_eq(tr_log_start(), 0);
        for (int i = 0; i < THREADS; i++) {
                snprintf(names[i], sizeof(names[i]), "t%d", i);
                ck_assert_int_eq(pthread_create(&threads[i], NULL, log_lines, names[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
                ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        tr_log_stop();
        ck_assert_uint_eq(tr_log_dropped(), 0);
        text = rest = written();
        while ((line = strsep(&rest, "\n")) && *line) {
                const char *actor = strstr(line, "\"actor\":\"t"), *message = strstr(line, "\"message\":\"line ");
                int thread, number;

                ck_assert_ptr_nonnull(actor);
                ck_assert_ptr_nonnull(message);
                ck_assert_ptr_nonnull(strstr(line, "\"peer_uid\":7,\"peer_pid\":0,"));
                thread = actor[strlen("\"actor\":\"t")] - '0';
                number = atoi(message + strlen("\"message\":\"line "));
                ck_assert_int_eq(number, next[thread]++);
        }
        for (int i = 0; i < THREADS; i++)
                ck_assert_int_eq(next[i], LINES);
        free(text);
}
END_TEST

START_TEST(a_long_line_is_cut) {
        static char text[2 * TR_LOG_LINE_MAX];
        char *all;

        to_file();
        memset(text, 'x', sizeof(text) - 1);
        ck_assert_int_eq(tr_log_start(), 0);
        tr_log(TR_LOG_INFO, "%s", text);
        tr_log(TR_LOG_INFO, "%.1500sy", text);
        tr_log_stop();
        all = written();
        ck_assert_uint_eq(count(all, "x"), TR_LOG_LINE_MAX + 1500);
        ck_assert_uint_eq(count(all, "xy\"}\n"), 1);
        free(all);
}
END_TEST

static int unread[2];

/* Standard error is a pipe that is full: a writer waits in it. */
static void to_full_pipe(void) {
        static const char filling[4096];

        ck_assert_int_eq(pipe(unread), 0);
        ck_assert_int_eq(fcntl(unread[1], F_SETFL, O_NONBLOCK), 0);
        while (write(unread[1], filling, sizeof(filling)) > 0)
                ;
        ck_assert_int_eq(fcntl(unread[1], F_SETFL, 0), 0);
        ck_assert_int_eq(dup2(unread[1], STDERR_FILENO), STDERR_FILENO);
        tr_log_set_format(TR_LOG_JSON);
}

static void *read_all(void *userdata) {
        FILE *stream = fdopen(unread[0], "r");
        char *line = NULL;
        size_t room = 0;
        uint64_t *reported = userdata;

        while (getline(&line, &room, stream) > 0) {
                const char *message = strstr(line, "\"message\":\"");
                unsigned long long dropped;

                if (message && sscanf(message, "\"message\":\"%llu lines of the log were dropped", &dropped) == 1)
                        *reported += dropped;
        }
        free(line);
        fclose(stream);
        return NULL;
}

START_TEST(a_full_queue_drops_and_counts) {
        uint64_t reported = 0;
        pthread_t reader;

        to_full_pipe();
        ck_assert_int_eq(tr_log_start(), 0);
        while (tr_log_dropped() < 10)
                tr_log(TR_LOG_INFO, "a line that nobody reads");
        ck_assert_int_eq(pthread_create(&reader, NULL, read_all, &reported), 0);
        tr_log_stop();
        close(unread[1]);
        close(STDERR_FILENO);
        ck_assert_int_eq(pthread_join(reader, NULL), 0);
        ck_assert_uint_eq(reported, 10);
}
END_TEST

START_TEST(a_reader_that_does_not_read_does_not_hold_the_stop_up) {
        to_full_pipe();
        ck_assert_int_eq(tr_log_start(), 0);
        tr_log(TR_LOG_INFO, "a line that nobody reads");
        tr_log_stop();
        /* and the next line is not waited for either */
        tr_log(TR_LOG_INFO, "nor this");
}
END_TEST

struct seen {
        int lines;
        enum tr_log_level level;
        char text[64];
        char actor[16];
};

static void see(void *userdata, const struct tr_log_line *line) {
        struct seen *seen = userdata;

        seen->lines++;
        seen->level = line->level;
        snprintf(seen->text, sizeof(seen->text), "%s", line->text);
        snprintf(seen->actor, sizeof(seen->actor), "%s", line->context.actor ? line->context.actor : "");
}

START_TEST(the_hook_sees_what_is_logged) {
        struct seen seen = { 0 };

        to_file();
        tr_log_set_hook(see, &seen);
        tr_log(TR_LOG_DEBUG, "hidden");
        ck_assert_int_eq(seen.lines, 0);
        tr_log_with(TR_LOG_ERROR, &(struct tr_log_context){ .actor = "counter" }, "seen %s", "text");
        ck_assert_int_eq(seen.lines, 1);
        ck_assert_int_eq(seen.level, TR_LOG_ERROR);
        ck_assert_str_eq(seen.text, "seen text");
        ck_assert_str_eq(seen.actor, "counter");
}
END_TEST

START_TEST(auto_is_json_where_nobody_watches) {
        char *text;

        to_file();
        unsetenv("JOURNAL_STREAM");
        tr_log_set_format(TR_LOG_AUTO);
        tr_log(TR_LOG_INFO, "one");
        /* somebody else's journal */
        setenv("JOURNAL_STREAM", "1:1", 1);
        tr_log(TR_LOG_INFO, "two");
        tr_log_set_format(TR_LOG_TEXT);
        tr_log(TR_LOG_INFO, "three");
        text = written();
        ck_assert_uint_eq(count(text, "\"message\":\"one\"}\n"), 1);
        ck_assert_uint_eq(count(text, "\"message\":\"two\"}\n"), 1);
        ck_assert_uint_eq(count(text, " info: three\n"), 1);
        free(text);
}
END_TEST

START_TEST(names_are_read_exactly) {
        enum tr_log_level level = TR_LOG_DEBUG;
        enum tr_log_format format = TR_LOG_TEXT;

        ck_assert(tr_log_level_parse("warning", 7, &level));
        ck_assert_int_eq(level, TR_LOG_WARNING);
        ck_assert_str_eq(tr_log_level_text(level), "warning");
        ck_assert(!tr_log_level_parse("warn", 4, &level));
        ck_assert(!tr_log_level_parse("", 0, &level));
        ck_assert_int_eq(level, TR_LOG_WARNING);
        ck_assert(tr_log_format_parse("journal", 7, &format));
        ck_assert_int_eq(format, TR_LOG_JOURNAL);
        ck_assert(!tr_log_format_parse("JSON", 4, &format));
        ck_assert_int_eq(format, TR_LOG_JOURNAL);
}
END_TEST

suite_main("log", lines_go_out_at_once_without_a_writer, it_can_be_started_again, the_level_decides,
           each_threads_lines_stay_in_order, a_long_line_is_cut, a_full_queue_drops_and_counts,
           a_reader_that_does_not_read_does_not_hold_the_stop_up, the_hook_sees_what_is_logged,
           auto_is_json_where_nobody_watches, names_are_read_exactly);
