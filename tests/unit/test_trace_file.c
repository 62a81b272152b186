/* SPDX-License-Identifier: Apache-2.0 */
/* The file of spans: what its lines say, and that no line is lost without being counted, or written in part. */
#include "config.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/io/traces.h"
#include "daemon/watch/trace_file.h"
#include "daemon/watch/trace_line.h"
#include "tests/unit/suite.h"

/* Lines */

static struct tr_span_record sample(void) {
        struct tr_span_record record = {
                .trace = { 0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36 },
                .span = { 0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7 },
                .flags = 1,
                .component = "media.streams",
                .operation = "create",
                .instance = "left",
                .uid = 4294967294,
                .pid = 77,
                .attempt = 2,
                .began_ns = INT64_C(1796083870925900001),
                .queued_ns = 12000,
                .run_ns = 1204567,
        };
        return record;
}

/* What a line says of its one span; the line is whole, and one. */
static json_t *read_line(const char *line, size_t len, json_t **ret_document) {
        json_error_t error;
        json_t *document, *spans;

        ck_assert_uint_gt(len, 0);
        ck_assert_ptr_eq(memchr(line, '\n', len), line + len - 1);
        document = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(document, "%s: %.*s", error.text, (int)len, line);
        ck_assert_uint_eq(json_object_size(document), 1);
        spans = json_object_get(json_array_get(json_object_get(json_array_get(json_object_get(document, "resourceSpans"), 0), "scopeSpans"), 0), "spans");
        ck_assert_uint_eq(json_array_size(spans), 1);
        *ret_document = document;
        return json_array_get(spans, 0);
}

static const char *text_of(json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));
        return text ? text : "(none)";
}

/* An attribute's value, as text. */
static const char *attribute(json_t *object, const char *key, const char *type) {
        json_t *attribute;
        size_t i;

        json_array_foreach(json_object_get(object, "attributes"), i, attribute)
                if (strcmp(text_of(attribute, "key"), key) == 0)
                        return text_of(json_object_get(attribute, "value"), type);
        return "(none)";
}

START_TEST(a_line_says_what_a_span_is) {
        static char line[TR_TRACE_LINE_MAX];
        struct tr_span_record record = sample();
        json_t *document, *resource, *scope, *span;

        span = read_line(line, tr_trace_line(&record, line), &document);
        resource = json_object_get(json_array_get(json_object_get(document, "resourceSpans"), 0), "resource");
        ck_assert_str_eq(attribute(resource, "service.name", "stringValue"), "trouped");
        ck_assert_str_eq(attribute(resource, "service.version", "stringValue"), PACKAGE_VERSION);
        ck_assert_int_eq(atoi(attribute(resource, "process.pid", "intValue")), getpid());
        scope = json_object_get(json_array_get(json_object_get(json_array_get(json_object_get(document, "resourceSpans"), 0), "scopeSpans"), 0), "scope");
        ck_assert_str_eq(text_of(scope, "name"), "trouped");

        ck_assert_str_eq(text_of(span, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
        ck_assert_str_eq(text_of(span, "spanId"), "00f067aa0ba902b7");
        ck_assert_str_eq(text_of(span, "parentSpanId"), "(none)");
        ck_assert_int_eq(json_integer_value(json_object_get(span, "flags")), 1);
        ck_assert_str_eq(text_of(span, "name"), "media.streams/create");
        ck_assert_int_eq(json_integer_value(json_object_get(span, "kind")), 2);
        ck_assert_str_eq(text_of(span, "startTimeUnixNano"), "1796083870925900001");
        ck_assert_str_eq(text_of(span, "endTimeUnixNano"), "1796083870927116568");
        ck_assert_str_eq(attribute(span, "rpc.system", "stringValue"), "troupe");
        ck_assert_str_eq(attribute(span, "rpc.service", "stringValue"), "media.streams");
        ck_assert_str_eq(attribute(span, "rpc.method", "stringValue"), "create");
        ck_assert_str_eq(attribute(span, "troupe.instance", "stringValue"), "left");
        ck_assert_str_eq(attribute(span, "troupe.caller.uid", "intValue"), "4294967294");
        ck_assert_str_eq(attribute(span, "troupe.caller.pid", "intValue"), "77");
        ck_assert_str_eq(attribute(span, "troupe.queued_ns", "intValue"), "12000");
        ck_assert_str_eq(attribute(span, "troupe.run_ns", "intValue"), "1204567");
        ck_assert_str_eq(attribute(span, "troupe.attempt", "intValue"), "2");
        ck_assert_str_eq(attribute(span, "troupe.outcome", "stringValue"), "ok");
        ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(span, "status"), "code")), 1);
        ck_assert_uint_eq(json_object_size(json_object_get(span, "status")), 1);
        json_decref(document);

        memset(record.parent, 0xb7, sizeof(record.parent));
        record.instance[0] = '\0';
        record.pid = 0;
        record.failed = true;
        record.code = TR_CODE_FAULT;
        strcpy(record.message, "it \"broke\"\n\xff\x01\xc3\xa9");
        span = read_line(line, tr_trace_line(&record, line), &document);
        ck_assert_str_eq(text_of(span, "parentSpanId"), "b7b7b7b7b7b7b7b7");
        ck_assert_str_eq(attribute(span, "troupe.instance", "stringValue"), "(none)");
        ck_assert_str_eq(attribute(span, "troupe.caller.pid", "intValue"), "(none)");
        ck_assert_str_eq(attribute(span, "troupe.outcome", "stringValue"), "fault");
        ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(span, "status"), "code")), 2);
        ck_assert_str_eq(text_of(json_object_get(span, "status"), "message"), "it \"broke\"\n\xef\xbf\xbd\x01\xc3\xa9");
        json_decref(document);
}
END_TEST

START_TEST(the_longest_line_is_whole) {
        static char line[TR_TRACE_LINE_MAX];
        struct tr_span_record record = sample();
        json_t *document, *span;
        size_t len;

        memset(record.component, '\x01', TR_NAME_MAX);
        memset(record.operation, '\x02', TR_NAME_MAX);
        memset(record.instance, '\x03', TR_NAME_MAX);
        memset(record.parent, 0xff, sizeof(record.parent));
        memset(record.message, '\x7f', TR_SPAN_MESSAGE_MAX);
        record.failed = true;
        record.code = TR_CODE_UNDELIVERABLE;
        record.pid = INT32_MIN;
        record.attempt = UINT32_MAX;
        record.queued_ns = record.run_ns = INT64_MAX;
        record.began_ns = -1;
        len = tr_trace_line(&record, line);
        ck_assert_uint_lt(len, TR_TRACE_LINE_MAX - 512);
        span = read_line(line, len, &document);
        ck_assert_uint_eq(strlen(text_of(json_object_get(span, "status"), "message")), TR_SPAN_MESSAGE_MAX);
        ck_assert_uint_eq(strlen(attribute(span, "rpc.service", "stringValue")), TR_NAME_MAX);
        json_decref(document);
}
END_TEST

/* The file */

static char folder[64], path[96], other_path[96];
static struct tr_traces *traces;
static struct tr_trace_file *file;

static void begin(void) {
        snprintf(folder, sizeof(folder), "/tmp/test_trace_file.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/spans.jsonl", folder);
        snprintf(other_path, sizeof(other_path), "%s/other.jsonl", folder);
        ck_assert_int_eq(tr_traces_new(&traces), 0);
        ck_assert_int_eq(tr_trace_file_new(traces, &file), 0);
}

static void end(void) {
        tr_trace_file_free(file);
        tr_traces_free(traces);
        unlink(path);
        unlink(other_path);
        ck_assert_int_eq(rmdir(folder), 0);
}

static int open_file(const char *name) {
        int fd = -1;
        const char *why = tr_trace_file_open(name, &fd);
        ck_assert_ptr_null(why);
        return fd;
}

static void set(const char *name) {
        ck_assert_int_eq(tr_trace_file_set(file, name ? open_file(name) : -1), 0);
}

static void put(uint32_t number) {
        struct tr_span_id id = { .span = { 1 } };
        const struct tr_span_news news = { .span = &id, .component = "c", .operation = "o", .uid = number, .came_ns = tr_clock_ns() };
        struct tr_span_record record;
        tr_traces_put(traces, &news, &record);
        tr_trace_file_notice(file);
}

/* How many lines there are; each is whole, and their numbers, which are written to the array, go up. */
static size_t read_file(const char *name, long *ret_numbers, size_t max) {
        FILE *stream = fopen(name, "r");
        char *line = NULL;
        size_t room = 0, count = 0;
        ssize_t len;

        ck_assert_ptr_nonnull(stream);
        while ((len = getline(&line, &room, stream)) > 0) {
                json_t *document, *span = read_line(line, (size_t)len, &document);
                ck_assert_uint_lt(count, max);
                ret_numbers[count] = atol(attribute(span, "troupe.caller.uid", "intValue"));
                ck_assert(count == 0 || ret_numbers[count] > ret_numbers[count - 1]);
                count++;
                json_decref(document);
        }
        free(line);
        fclose(stream);
        return count;
}

START_TEST(all_that_ended_is_written_at_the_stop) {
        long numbers[16];

        begin();
        put(1); /* before anybody wanted to know */
        set(path);
        for (uint32_t i = 2; i < 6; i++)
                put(i);
        ck_assert(tr_trace_file_stop(file));
        ck_assert(tr_trace_file_stop(file));
        ck_assert_uint_eq(read_file(path, numbers, 16), 4);
        ck_assert_int_eq(numbers[0], 2);
        ck_assert_int_eq(numbers[3], 5);
        ck_assert_uint_eq(tr_trace_file_dropped(file), 0);
        tr_trace_file_free(file);

        /* It is appended to, and only its owner and group may read it. */
        ck_assert_int_eq(tr_trace_file_new(traces, &file), 0);
        set(path);
        put(6);
        ck_assert(tr_trace_file_stop(file));
        ck_assert_uint_eq(read_file(path, numbers, 16), 5);
        struct stat status;
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 0007, 0);
        end();
}
END_TEST

/* Waits for the thread. */
static void wait_for_lines(const char *name, size_t lines) {
        size_t count = 0;

        while (count < lines) {
                FILE *stream = fopen(name, "r");

                count = 0;
                for (int c; stream && (c = getc(stream)) != EOF;)
                        count += c == '\n';
                if (stream)
                        fclose(stream);
        }
}

START_TEST(it_is_written_while_it_goes_on) {
        begin();
        set(path);
        put(1);
        wait_for_lines(path, 1);
        put(2);
        put(3);
        wait_for_lines(path, 3);
        ck_assert(tr_trace_file_stop(file));
        end();
}
END_TEST

START_TEST(another_file_takes_over) {
        long numbers[16], later[16];
        size_t count, later_count;

        begin();
        set(path);
        put(1);
        wait_for_lines(path, 1);
        /* as whoever rotates logs does it */
        ck_assert_int_eq(rename(path, other_path), 0);
        set(path);
        for (uint32_t i = 2; i < 6; i++)
                put(i);
        set(path);
        ck_assert(tr_trace_file_stop(file));
        count = read_file(other_path, numbers, 16);
        later_count = read_file(path, later, 16);
        ck_assert_uint_eq(count + later_count, 5);
        ck_assert_uint_ge(count, 1);
        ck_assert_uint_ge(later_count, 1);
        ck_assert_int_eq(later[later_count - 1], 5);
        end();
}
END_TEST

START_TEST(none_takes_nothing) {
        long numbers[16];

        begin();
        set(NULL); /* there was none */
        set(path);
        put(1);
        wait_for_lines(path, 1);
        set(NULL);
        ck_assert_int_eq(rename(path, other_path), 0);
        put(2);
        set(path);
        put(3);
        ck_assert(tr_trace_file_stop(file));
        /* what had ended before there was a file again may still have found the one before */
        ck_assert_int_eq(numbers[read_file(path, numbers, 16) - 1], 3);
        ck_assert_uint_eq(tr_trace_file_dropped(file), 0);
        end();
}
END_TEST

START_TEST(what_is_too_much_is_counted) {
        enum { SPANS = 5 * TR_TRACES_KEPT };
        long *numbers = calloc(SPANS, sizeof(*numbers));
        size_t count;

        ck_assert_ptr_nonnull(numbers);
        begin();
        set(path);
        for (uint32_t i = 1; i <= SPANS; i++)
                put(i);
        ck_assert(tr_trace_file_stop(file));
        count = read_file(path, numbers, SPANS);
        ck_assert_uint_gt(count, 0);
        ck_assert_int_eq(numbers[count - 1], SPANS);
        ck_assert_uint_eq(count + tr_trace_file_dropped(file), SPANS);
        free(numbers);
        end();
}
END_TEST

START_TEST(a_full_disk_has_no_part_of_a_line) {
        struct rlimit limit;
        long numbers[64];
        size_t count;

        begin();
        tr_log_set_level(TR_LOG_ERROR);
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
        limit.rlim_cur = 10000;
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        set(path);
        for (uint32_t i = 1; i <= 40; i++)
                put(i);
        ck_assert(tr_trace_file_stop(file));
        count = read_file(path, numbers, 64);
        ck_assert_uint_gt(count, 5);
        ck_assert_uint_lt(count, 40);
        ck_assert_uint_eq(count + tr_trace_file_dropped(file), 40);
        end();
}
END_TEST

START_TEST(what_cannot_be_a_file_is_refused_with_why) {
        char fifo[96];
        int fd = -1;

        begin();
        snprintf(fifo, sizeof(fifo), "%s/none/spans.jsonl", folder);
        ck_assert_str_eq(tr_trace_file_open(fifo, &fd), "No such file or directory");
        ck_assert_str_eq(tr_trace_file_open(folder, &fd), "Is a directory");
        ck_assert_str_eq(tr_trace_file_open("/dev/null", &fd), "is no regular file");
        snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
        ck_assert_str_eq(tr_trace_file_open(fifo, &fd), "No such device or address");
        unlink(fifo);
        ck_assert_int_eq(fd, -1);
        end();
}
END_TEST

suite_main("trace_file", a_line_says_what_a_span_is, the_longest_line_is_whole, all_that_ended_is_written_at_the_stop,
           it_is_written_while_it_goes_on, another_file_takes_over, none_takes_nothing, what_is_too_much_is_counted,
           a_full_disk_has_no_part_of_a_line, what_cannot_be_a_file_is_refused_with_why);
