/* SPDX-License-Identifier: Apache-2.0 */
/* The frame scanner, with every vector cut at every place. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "proto/code.h"
#include "tests/unit/scan.h"
#include "tests/unit/suite.h"
#include "tests/unit/vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* [0, 9, "ping", []]: what comes behind, and must be found. */
static const uint8_t ping[] = { 0x94, 0x00, 0x09, 0xa4, 'p', 'i', 'n', 'g', 0x90 };

static const char *const reason_names[] = {
        [TR_REFUSAL_NONE] = "none",
        [TR_REFUSAL_TOO_LARGE] = "size",
        [TR_REFUSAL_TOO_DEEP] = "depth",
        [TR_REFUSAL_BIG_INTEGER] = "integer",
        [TR_REFUSAL_EXT_TYPE] = "ext-type",
        [TR_REFUSAL_EXT_PAYLOAD] = "ext-payload",
        [TR_REFUSAL_NIL_KEY] = "nil-key",
        [TR_REFUSAL_KEY] = "key",
};

/* Scans the stream in one piece, and checks that every way to cut it says the same. */
static void scan_every_way(struct scan_log *log, const uint8_t *data, size_t bytes, size_t frame_max) {
        static struct scan_log other;

        scan_stream(log, data, bytes, frame_max, bytes, bytes);
        for (size_t cut = 1; cut < bytes; cut++) {
                scan_stream(&other, data, bytes, frame_max, cut, bytes);
                ck_assert_msg(scan_logs_equal(log, &other), "cut after byte %zu", cut);
        }
        for (size_t step = 1; step < 8; step++) {
                scan_stream(&other, data, bytes, frame_max, step, step);
                ck_assert_msg(scan_logs_equal(log, &other), "pieces of %zu", step);
        }
}

static uint8_t *with_ping(const uint8_t *data, size_t bytes) {
        uint8_t *both = malloc(bytes + sizeof(ping));

        ck_assert_ptr_nonnull(both);
        memcpy(both, data, bytes);
        memcpy(both + bytes, ping, sizeof(ping));
        return both;
}

static void is_ping(const struct scan_event *event, size_t begin) {
        ck_assert_int_eq(event->what, TR_SCAN_FRAME);
        ck_assert_uint_eq(event->begin, begin);
        ck_assert_uint_eq(event->end, begin + sizeof(ping));
        ck_assert_int_eq(event->type, TR_FRAME_REQUEST);
        ck_assert_uint_eq(event->id, 9);
        ck_assert_uint_eq(event->parts[0], begin + 3);
        ck_assert_uint_eq(event->parts[1], begin + 8);
}

/* Appends the bytes of a part in the shortest encoding; answers where it ends. */
static size_t recode(struct tr_writer *writer, const uint8_t *data, size_t bytes) {
        struct tr_reader reader = tr_reader(data, bytes);

        ck_assert_int_eq(vectors_recode(writer, &reader), 0);
        return (size_t)(reader.at - data);
}

static void is_frame(json_t *frame, const uint8_t *data, size_t bytes) {
        struct tr_writer found = TR_WRITER_INIT, wanted = TR_WRITER_INIT;
        uint8_t *both = with_ping(data, bytes);
        bool is_notification = json_array_size(frame) == 3;
        static struct scan_log log;
        const struct scan_event *event = &log.events[0];

        scan_every_way(&log, both, bytes + sizeof(ping), TR_FRAME_DEFAULT);
        ck_assert_uint_eq(log.count, 2);
        ck_assert_uint_eq(log.rest, 0);
        ck_assert_int_eq(event->what, TR_SCAN_FRAME);
        ck_assert_uint_eq(event->begin, 0);
        ck_assert_uint_eq(event->end, bytes);
        ck_assert_int_eq(event->type, json_integer_value(json_array_get(frame, 0)));
        if (!is_notification)
                ck_assert_uint_eq(event->id, json_integer_value(json_array_get(frame, 1)));
        is_ping(&log.events[1], bytes);

        /* The parts are where they are said to be, and each is the value that the vector has. */
        ck_assert_uint_eq(recode(&found, data + event->parts[0], bytes - event->parts[0]),
                          event->parts[1] - event->parts[0]);
        ck_assert_uint_eq(recode(&found, data + event->parts[1], bytes - event->parts[1]), bytes - event->parts[1]);
        vectors_encode(&wanted, json_array_get(frame, is_notification ? 1 : 2));
        vectors_encode(&wanted, json_array_get(frame, is_notification ? 2 : 3));
        ck_assert_uint_eq(found.len, wanted.len);
        ck_assert_mem_eq(found.data, wanted.data, wanted.len);
        tr_writer_deinit(&found);
        tr_writer_deinit(&wanted);
        free(both);
}

static void is_frame_in_hex(json_t *frame, json_t *hex) {
        size_t bytes;
        uint8_t *data = vectors_bytes(hex, &bytes);

        is_frame(frame, data, bytes);
        free(data);
}

START_TEST(every_frame_however_it_is_cut) {
        json_t *cases = vectors_load("frames.json"), *one, *also;
        size_t i, j;

        json_array_foreach(cases, i, one) {
                json_t *frame = vectors_get(one, "frame");

                is_frame_in_hex(frame, vectors_get(one, "hex"));
                json_array_foreach(json_object_get(one, "also"), j, also)
                        is_frame_in_hex(frame, also);
        }
        json_decref(cases);
}
END_TEST

START_TEST(every_error_however_it_is_cut) {
        static const char *const forms[] = { "pair", "map", "text" };
        json_t *cases = vectors_load("errors.json"), *one;
        size_t i;

        json_array_foreach(cases, i, one)
                for (size_t form = 0; form < COUNT(forms); form++) {
                        json_t *response = vectors_get(one, forms[form]);

                        is_frame_in_hex(vectors_get(response, "frame"), vectors_get(response, "hex"));
                }
        json_decref(cases);
}
END_TEST

START_TEST(every_request_that_is_refused_is_a_frame_however_it_is_cut) {
        json_t *cases = vectors_load("requests.json"), *one;
        enum tr_code code;
        size_t i;

        json_array_foreach(cases, i, one) {
                is_frame_in_hex(vectors_get(one, "frame"), vectors_get(one, "hex"));
                ck_assert(tr_code_parse(vectors_text(one, "code"), strlen(vectors_text(one, "code")), &code));
        }
        json_decref(cases);
}
END_TEST

static void is_bad(json_t *one, const struct scan_log *log) {
        json_t *id = json_object_get(one, "id");
        const struct scan_event *event = &log->events[0];

        ck_assert_uint_eq(log->count, 1);
        ck_assert_int_eq(event->what, TR_SCAN_BAD);
        ck_assert_int_eq(event->has_id, id != NULL);
        ck_assert_uint_eq(event->id, json_integer_value(id));
}

static void is_refused(json_t *one, const struct scan_log *log, const uint8_t *data, size_t bytes) {
        json_t *id = json_object_get(one, "id"), *path = json_object_get(one, "path");
        const struct scan_event *event = &log->events[0];
        bool ends = !json_is_false(json_object_get(one, "ends"));

        ck_assert_int_eq(event->what, TR_SCAN_REFUSED);
        ck_assert_str_eq(reason_names[event->reason], vectors_text(one, "reason"));
        ck_assert_int_eq(event->has_id, id != NULL);
        ck_assert_int_eq(event->type == TR_FRAME_NOTIFICATION, id == NULL);
        ck_assert_uint_eq(event->id, json_integer_value(id));
        ck_assert_int_eq(event->ext_type, json_integer_value(json_object_get(one, "ext_type")));
        if (path) {
                char text[512];

                ck_assert_uint_gt(event->parts[1], 0);
                tr_frame_path(data + event->parts[1], bytes - event->parts[1], event->offset - event->parts[1], text,
                              sizeof(text));
                ck_assert_str_eq(text, json_string_value(path));
        }
        if (!ends) {
                ck_assert_uint_eq(log->count, 1);
                ck_assert(log->skipping);
                return;
        }
        ck_assert_uint_eq(log->count, 3);
        ck_assert_int_eq(log->events[1].what, TR_SCAN_SKIPPED);
        ck_assert_uint_eq(log->events[1].end, bytes);
        is_ping(&log->events[2], bytes);
}

START_TEST(every_invalid_frame_however_it_is_cut) {
        json_t *cases = vectors_load("invalid.json"), *one;
        static struct scan_log log;
        size_t i;

        json_array_foreach(cases, i, one) {
                json_int_t frame_max = json_integer_value(json_object_get(one, "frame_max"));
                bool is_bad_frame = strcmp(vectors_text(one, "verdict"), "bad-frame") == 0;
                size_t bytes;
                uint8_t *data = vectors_bytes(vectors_get(one, "hex"), &bytes), *both = with_ping(data, bytes);

                fprintf(stderr, "%s\n", vectors_text(one, "name"));
                scan_every_way(&log, both, bytes + sizeof(ping), frame_max ? (size_t)frame_max : TR_FRAME_DEFAULT);
                if (is_bad_frame) {
                        is_bad(one, &log);
                        /* It is certain without anything behind it. */
                        scan_every_way(&log, data, bytes, TR_FRAME_DEFAULT);
                        is_bad(one, &log);
                } else {
                        is_refused(one, &log, data, bytes);
                }
                free(both);
                free(data);
        }
        json_decref(cases);
}
END_TEST

START_TEST(a_frame_of_exactly_the_limit_is_accepted) {
        json_t *cases = vectors_load("frames.json"), *one;
        static struct scan_log log;
        size_t i, tried = 0;

        json_array_foreach(cases, i, one) {
                size_t bytes;
                uint8_t *data = vectors_bytes(vectors_get(one, "hex"), &bytes), *both = with_ping(data, bytes);

                if (bytes > TR_FRAME_MAX_LOW) {
                        scan_every_way(&log, both, bytes + sizeof(ping), bytes);
                        ck_assert_uint_eq(log.count, 2);
                        ck_assert_int_eq(log.events[0].what, TR_SCAN_FRAME);
                        is_ping(&log.events[1], bytes);

                        scan_every_way(&log, both, bytes + sizeof(ping), bytes - 1);
                        ck_assert_uint_eq(log.count, 3);
                        ck_assert_int_eq(log.events[0].what, TR_SCAN_REFUSED);
                        ck_assert_int_eq(log.events[0].reason, TR_REFUSAL_TOO_LARGE);
                        ck_assert_int_eq(log.events[1].what, TR_SCAN_SKIPPED);
                        is_ping(&log.events[2], bytes);
                        tried++;
                }
                free(both);
                free(data);
        }
        ck_assert_uint_gt(tried, 20);
        json_decref(cases);
}
END_TEST

START_TEST(a_frame_of_4_gib_is_passed_over_without_being_kept) {
        /* [0, 1, "send", <bin of 2^32-1>] */
        static const uint8_t head[] = { 0x94, 0x00, 0x01, 0xa4, 's', 'e', 'n', 'd', 0xc6, 0xff, 0xff, 0xff, 0xff };
        static uint8_t buffer[(1 << 20) + sizeof(ping)];
        const size_t piece = 1 << 20;
        static struct tr_scanner scanner;
        struct tr_refusal refusal;
        struct tr_frame frame;
        uint64_t left = UINT32_MAX;

        tr_scanner_init(&scanner, TR_FRAME_DEFAULT);
        ck_assert_int_eq(tr_scan(&scanner, head, sizeof(head), &frame, &refusal), TR_SCAN_REFUSED);
        ck_assert_int_eq(refusal.reason, TR_REFUSAL_TOO_LARGE);
        ck_assert_uint_eq(refusal.id, 1);
        ck_assert_uint_eq(frame.method.bytes, 5);
        ck_assert_int_eq(tr_scan(&scanner, head, sizeof(head), &frame, &refusal), TR_SCAN_MORE);
        ck_assert_uint_eq(tr_scanner_consumed(&scanner, sizeof(head)), sizeof(head));

        for (; left > piece; left -= piece) {
                ck_assert_int_eq(tr_scan(&scanner, buffer, piece, &frame, &refusal), TR_SCAN_MORE);
                ck_assert_uint_eq(tr_scanner_consumed(&scanner, piece), piece);
        }
        memcpy(buffer + left, ping, sizeof(ping));
        ck_assert_int_eq(tr_scan(&scanner, buffer, left + sizeof(ping), &frame, &refusal), TR_SCAN_SKIPPED);
        ck_assert_uint_eq(frame.bytes, left);
        ck_assert_int_eq(tr_scan(&scanner, buffer + left, sizeof(ping), &frame, &refusal), TR_SCAN_FRAME);
        ck_assert_uint_eq(frame.id, 9);
}
END_TEST

START_TEST(a_promise_of_more_than_can_be_counted_is_never_kept) {
        static const uint8_t head[] = { 0x93, 0x02, 0xa1, 'm', 0xdf, 0xff, 0xff, 0xff, 0xff };
        static const uint8_t map[] = { 0xdf, 0xff, 0xff, 0xff, 0xff };
        static struct tr_scanner scanner;
        struct tr_refusal refusal;
        struct tr_frame frame;

        tr_scanner_init(&scanner, TR_FRAME_DEFAULT);
        ck_assert_int_eq(tr_scan(&scanner, head, sizeof(head), &frame, &refusal), TR_SCAN_REFUSED);
        ck_assert_int_eq(tr_scan(&scanner, head, sizeof(head), &frame, &refusal), TR_SCAN_MORE);
        /* Where 2^31 such maps would bring it. */
        scanner.skip_values = UINT64_MAX - 100;
        for (int i = 0; i < 100; i++)
                ck_assert_int_eq(tr_scan(&scanner, map, sizeof(map), &frame, &refusal), TR_SCAN_MORE);
        ck_assert_uint_ge(scanner.skip_values, UINT64_MAX - 100);
}
END_TEST

START_TEST(what_is_no_messagepack_is_found_while_passing_over_too) {
        /* [0, 1, "send", [{nil: 0}, 0xc1]]: the request has been answered, and is not answered again. */
        static const uint8_t data[] = { 0x94, 0x00, 0x01, 0xa4, 's', 'e', 'n', 'd', 0x92, 0x81, 0xc0, 0x00, 0xc1 };
        static struct scan_log log;

        scan_every_way(&log, data, sizeof(data), TR_FRAME_DEFAULT);
        ck_assert_uint_eq(log.count, 2);
        ck_assert_int_eq(log.events[0].what, TR_SCAN_REFUSED);
        ck_assert(log.events[0].has_id);
        ck_assert_int_eq(log.events[1].what, TR_SCAN_BAD);
        ck_assert(!log.events[1].has_id);
}
END_TEST

START_TEST(a_result_is_level_1) {
        static struct scan_log log;
        uint8_t data[4 + 129 + 1] = { 0x94, 0x01, 0x07, 0xc0 };

        for (size_t levels = 1; levels <= 129; levels++) {
                memset(data + 4, 0x91, levels);
                data[4 + levels] = 0x00;
                scan_stream(&log, data, 4 + levels + 1, TR_FRAME_DEFAULT, sizeof(data), 1);
                ck_assert_int_eq(log.events[0].what, levels <= 128 ? TR_SCAN_FRAME : TR_SCAN_REFUSED);
        }
}
END_TEST

START_TEST(containers_in_params_count_from_the_arguments_on) {
        static struct scan_log log;
        /* [2, "m", [[ and so on: two arrays around level 1. */
        uint8_t data[4 + 2 + 129 + 1] = { 0x93, 0x02, 0xa1, 'm' };

        for (size_t levels = 1; levels <= 129; levels++) {
                memset(data + 4, 0x91, 2 + levels);
                data[4 + 2 + levels] = 0x00;
                scan_stream(&log, data, 4 + 2 + levels + 1, TR_FRAME_DEFAULT, sizeof(data), 1);
                ck_assert_int_eq(log.events[0].what, levels <= 128 ? TR_SCAN_FRAME : TR_SCAN_REFUSED);
        }
}
END_TEST

START_TEST(fewer_levels_may_be_allowed) {
        /* [2, "m", [[ [[]] ]]]: two levels */
        static const uint8_t data[] = { 0x93, 0x02, 0xa1, 'm', 0x91, 0x91, 0x91, 0x90 };
        static struct tr_scanner scanner;

        for (uint32_t levels = 0; levels <= TR_NESTING_MAX + 1; levels++) {
                struct tr_refusal refusal;
                struct tr_frame frame;
                enum tr_scan r;

                tr_scanner_init(&scanner, TR_FRAME_DEFAULT);
                tr_scanner_set_nesting(&scanner, levels);
                ck_assert_uint_le(scanner.nesting_max, TR_NESTING_MAX);
                r = tr_scan(&scanner, data, sizeof(data), &frame, &refusal);
                ck_assert_int_eq(r, levels >= 2 ? TR_SCAN_FRAME : TR_SCAN_REFUSED);
                if (r == TR_SCAN_REFUSED) {
                        ck_assert_int_eq(refusal.reason, TR_REFUSAL_TOO_DEEP);
                        ck_assert_uint_eq(refusal.offset, 6 + levels);
                }
        }
}
END_TEST

START_TEST(all_frames_in_one_stream_in_pieces_of_any_size) {
        json_t *cases = vectors_load("frames.json"), *one;
        struct tr_writer stream = TR_WRITER_INIT;
        static struct scan_log whole, pieces;
        size_t i;

        json_array_foreach(cases, i, one) {
                size_t bytes;
                uint8_t *data = vectors_bytes(vectors_get(one, "hex"), &bytes);

                tr_write_raw(&stream, data, bytes);
                free(data);
        }
        scan_stream(&whole, stream.data, stream.len, TR_FRAME_DEFAULT, stream.len, 1);
        ck_assert_uint_eq(whole.count, json_array_size(cases));
        ck_assert_uint_eq(whole.rest, 0);
        for (size_t step = 1; step < 200; step++) {
                scan_stream(&pieces, stream.data, stream.len, TR_FRAME_DEFAULT, step, step);
                ck_assert_msg(scan_logs_equal(&whole, &pieces), "pieces of %zu", step);
        }
        tr_writer_deinit(&stream);
        json_decref(cases);
}
END_TEST

START_TEST(nothing_is_said_of_nothing) {
        static struct tr_scanner scanner;
        struct tr_refusal refusal;
        struct tr_frame frame;

        tr_scanner_init(&scanner, 0);
        ck_assert_uint_eq(scanner.frame_max, TR_FRAME_MAX_LOW);
        ck_assert_int_eq(tr_scan(&scanner, ping, 0, &frame, &refusal), TR_SCAN_MORE);
        ck_assert_uint_eq(tr_scanner_consumed(&scanner, 0), 0);
        tr_scanner_init(&scanner, SIZE_MAX);
        ck_assert_uint_eq(scanner.frame_max, TR_FRAME_MAX_HIGH);
}
END_TEST

suite_main("frame", every_frame_however_it_is_cut, every_error_however_it_is_cut,
           every_request_that_is_refused_is_a_frame_however_it_is_cut, every_invalid_frame_however_it_is_cut,
           a_frame_of_exactly_the_limit_is_accepted, a_frame_of_4_gib_is_passed_over_without_being_kept,
           a_promise_of_more_than_can_be_counted_is_never_kept, what_is_no_messagepack_is_found_while_passing_over_too,
           a_result_is_level_1, containers_in_params_count_from_the_arguments_on,
           fewer_levels_may_be_allowed, all_frames_in_one_stream_in_pieces_of_any_size, nothing_is_said_of_nothing);
