/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream {
        struct tr_scanner scanner;
        const uint8_t *data;
        size_t begin; /* of what the next call is given, */
        size_t end;   /* and where that ends */
        size_t frame; /* where the present frame began */
};

static uint8_t *copy_of(const struct stream *stream) {
        size_t bytes = stream->end - stream->begin;
        uint8_t *copy = malloc(bytes > 0 ? bytes : 1);

        if (!copy)
                abort();
        memcpy(copy, stream->data + stream->begin, bytes);
        /* 0xc1 is never right: whoever looks at it again ends as TR_SCAN_BAD. */
        memset(copy, 0xc1, stream->scanner.at);
        return copy;
}

static void note(struct scan_log *log, const struct stream *stream, enum tr_scan what, const struct tr_frame *frame,
                 const struct tr_refusal *refusal, const uint8_t *copy) {
        struct scan_event *event = &log->events[log->count++];

        *event = (struct scan_event){ .what = what, .begin = stream->frame };
        if (what == TR_SCAN_BAD || what == TR_SCAN_REFUSED) {
                event->type = refusal->type;
                event->has_id = refusal->has_id;
                event->id = refusal->id;
                event->reason = refusal->reason;
                event->ext_type = refusal->ext_type;
        } else {
                event->type = frame->type;
                event->id = frame->id;
                event->end = stream->begin + frame->bytes;
        }
        if (what == TR_SCAN_REFUSED)
                event->offset = stream->begin + refusal->offset;
        if (what == TR_SCAN_FRAME || what == TR_SCAN_REFUSED) {
                bool is_response = event->type == TR_FRAME_RESPONSE;
                const uint8_t *first = is_response ? frame->error.data : frame->method.data;
                const uint8_t *second = is_response ? frame->result.data : frame->params.data;

                event->parts[0] = first ? stream->begin + (size_t)(first - copy) : 0;
                event->parts[1] = second ? stream->begin + (size_t)(second - copy) : 0;
        }
}

/* Scans what was given so far; false where the stream has ended, or the log is full. */
static bool scan_given(struct scan_log *log, struct stream *stream) {
        while (log->count < SCAN_EVENTS_MAX) {
                uint8_t *copy = copy_of(stream);
                size_t bytes = stream->end - stream->begin;
                struct tr_refusal refusal;
                struct tr_frame frame;
                enum tr_scan r;

                r = tr_scan(&stream->scanner, copy, bytes, &frame, &refusal);
                if (r != TR_SCAN_MORE)
                        note(log, stream, r, &frame, &refusal, copy);
                free(copy);
                switch (r) {
                case TR_SCAN_MORE:
                        stream->begin += tr_scanner_consumed(&stream->scanner, bytes);
                        return true;
                case TR_SCAN_FRAME:
                case TR_SCAN_SKIPPED:
                        stream->begin += frame.bytes;
                        stream->frame = stream->begin;
                        break;
                case TR_SCAN_REFUSED:
                        break;
                case TR_SCAN_BAD:
                        return false;
                }
        }
        return false;
}

void scan_stream(struct scan_log *log, const uint8_t *data, size_t bytes, size_t frame_max, size_t first, size_t step) {
        struct stream stream = { .data = data };
        size_t piece = first;

        tr_scanner_init(&stream.scanner, frame_max);
        memset(log, 0, sizeof(*log));
        while (stream.end < bytes) {
                stream.end += piece < bytes - stream.end ? piece : bytes - stream.end;
                piece = step;
                if (!scan_given(log, &stream))
                        return;
        }
        log->rest = stream.end - stream.begin;
        log->skipping = tr_scanner_consumed(&stream.scanner, 1) > 0;
}

bool scan_logs_equal(const struct scan_log *a, const struct scan_log *b) {
        if (a->count != b->count || a->rest != b->rest || a->skipping != b->skipping)
                return false;
        for (size_t i = 0; i < a->count; i++) {
                const struct scan_event *x = &a->events[i], *y = &b->events[i];

                if (x->what != y->what || x->begin != y->begin || x->end != y->end || x->type != y->type ||
                    x->has_id != y->has_id || x->id != y->id || x->parts[0] != y->parts[0] ||
                    x->parts[1] != y->parts[1] || x->reason != y->reason || x->ext_type != y->ext_type ||
                    x->offset != y->offset)
                        return false;
        }
        return true;
}
