/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame scanner on any bytes: it says the same however they are cut, what it
 * accepts can be read, and what it refuses has a place.
 */
#include "config.h"

#include <string.h>

#include "proto/value.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scan.h"

/* A whole part, which is one value: everybody behind the scanner must get through it. */
static void check_part(const uint8_t *data, size_t bytes) {
        struct tr_writer plain = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(data, bytes);

        FUZZ_CHECK(tr_read_skip(&reader) == 0);
        FUZZ_CHECK(reader.at == reader.end);

        reader = tr_reader(data, bytes);
        if (tr_write_plain(&plain, &reader) == 0)
                FUZZ_CHECK(reader.at == reader.end);
        else
                FUZZ_CHECK(tr_write_plain(&plain, &(struct tr_reader){ data, data + bytes }) == TR_PLAIN_SAME_KEY);
        tr_writer_deinit(&plain);
}

static void check_path(const uint8_t *data, size_t bytes, const struct scan_event *event) {
        char path[64];

        if (event->parts[1] == 0 || event->type == TR_FRAME_RESPONSE)
                return;
        memset(path, 'x', sizeof(path));
        tr_frame_path(data + event->parts[1], bytes - event->parts[1], event->offset - event->parts[1], path,
                      sizeof(path));
        FUZZ_CHECK(memchr(path, '\0', sizeof(path)));
        FUZZ_CHECK(path[0] == 'a' || path[0] == 'p');
}

static void check_event(const uint8_t *data, size_t bytes, size_t frame_max, const struct scan_event *event) {
        switch (event->what) {
        case TR_SCAN_FRAME:
                FUZZ_CHECK(event->end > event->parts[1] && event->parts[1] > event->parts[0]);
                FUZZ_CHECK(event->end - event->begin <= frame_max);
                check_part(data + event->parts[0], event->parts[1] - event->parts[0]);
                check_part(data + event->parts[1], event->end - event->parts[1]);
                break;
        case TR_SCAN_REFUSED:
                FUZZ_CHECK(event->reason != TR_REFUSAL_NONE);
                FUZZ_CHECK(event->offset >= event->begin && event->offset <= bytes);
                FUZZ_CHECK(event->has_id == (event->type != TR_FRAME_NOTIFICATION));
                check_path(data, bytes, event);
                break;
        default:
                break;
        }
}

/* Frames, one behind another; a refused one is passed over before anything else, and nothing comes after a bad one. */
static void check_order(const struct scan_log *log) {
        size_t begin = 0;

        for (size_t i = 0; i < log->count; i++) {
                const struct scan_event *event = &log->events[i];
                bool follows_refusal = i > 0 && log->events[i - 1].what == TR_SCAN_REFUSED;

                FUZZ_CHECK(event->begin == begin);
                FUZZ_CHECK(event->what != TR_SCAN_SKIPPED || follows_refusal);
                FUZZ_CHECK(!follows_refusal || event->what == TR_SCAN_SKIPPED || event->what == TR_SCAN_BAD);
                FUZZ_CHECK(event->what != TR_SCAN_BAD || i == log->count - 1);
                if (event->what == TR_SCAN_FRAME || event->what == TR_SCAN_SKIPPED) {
                        FUZZ_CHECK(event->end > begin);
                        begin = event->end;
                }
        }
}

static void check_stream(const uint8_t *data, size_t bytes, size_t frame_max) {
        static struct scan_log whole, pieces;
        size_t cut = bytes > 0 ? 1 + data[bytes / 2] % bytes : 1;

        scan_stream(&whole, data, bytes, frame_max, bytes, bytes);
        scan_stream(&pieces, data, bytes, frame_max, 1, 1);
        FUZZ_CHECK(scan_logs_equal(&whole, &pieces));
        scan_stream(&pieces, data, bytes, frame_max, cut, bytes);
        FUZZ_CHECK(scan_logs_equal(&whole, &pieces));

        check_order(&whole);
        for (size_t i = 0; i < whole.count; i++)
                check_event(data, bytes, frame_max, &whole.events[i]);
}

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        fuzz_seeds_from_vectors(add);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        check_stream(data, bytes, TR_FRAME_DEFAULT);
        check_stream(data, bytes, 48);
        return 0;
}
