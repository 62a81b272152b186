/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: ids, their text, and the table of spans that are running.
 *
 * The text is W3C's (Trace Context, level 1, section 3.2): "00-" trace "-" span "-" flags, in lower-case hexadecimal, where neither id
 * is all zeros and the version is not "ff". A later version may go on behind another dash.
 *
 * Ids have to be unlike all others, not hard to guess: they come from xoshiro256** (Blackman and Vigna, 2018), seeded by the
 * kernel. A call needs one or three numbers, and one system call for each would cost as much as the rest of this.
 */
#include "daemon/core/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/random.h"

#define ROOM_MIN 64

int tr_spans_init(struct tr_spans *spans) {
        *spans = (struct tr_spans){ 0 };
        tr_lock_init(&spans->lock);
        int r = tr_random_bytes(spans->random, sizeof(spans->random));
        if (r < 0)
                return tr_error_fold(r);
        spans->random[0] |= 1; /* never all zeros */
        spans->buckets = calloc(ROOM_MIN, sizeof(struct tr_span_id *));
        if (!spans->buckets)
                return tr_error_origin(-ENOMEM);
        spans->room = ROOM_MIN;
        return 0;
}

void tr_spans_deinit(struct tr_spans *spans) {
        free(spans->buckets);
        tr_lock_deinit(&spans->lock);
}

/* Ids */

static uint64_t rotate_left(uint64_t x, int bits) {
        return x << bits | x >> (64 - bits);
}

static uint64_t spans_random_locked(struct tr_spans *spans) TR_REQUIRES(spans->lock) {
        uint64_t *s = spans->random;
        uint64_t result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate_left(s[3], 45);
        return result;
}

static void spans_fill_locked(struct tr_spans *spans, uint8_t *id, size_t bytes) TR_REQUIRES(spans->lock) {
        for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
                uint64_t number = spans_random_locked(spans);
                number |= !number;
                memcpy(id + at, &number, sizeof(number));
        }
}

/* Text */

static int digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `bytes` bytes from twice as many digits: whether they are digits, and not all zeros. */
static bool parse_hex(const char *text, uint8_t *ret_id, size_t bytes) {
        uint8_t any = 0;
        for (size_t i = 0; i < bytes; i++) {
                int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
                if (high < 0 || low < 0)
                        return false;
                ret_id[i] = (uint8_t)(high << 4 | low);
                any |= ret_id[i];
        }
        return any;
}

static void format_hex(const uint8_t *id, size_t bytes, char *ret_text) {
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < bytes; i++) {
                ret_text[2 * i] = digits[id[i] >> 4];
                ret_text[2 * i + 1] = digits[id[i] & 15];
        }
}

/* Where the parts of the text are. */
enum {
        TRACE_AT = 3,
        SPAN_AT = TRACE_AT + 32 + 1,
        FLAGS_AT = SPAN_AT + 16 + 1,
};

bool tr_traceparent_is_valid(const char *text, size_t len) {
        uint8_t id[16];
        if (len < TR_TRACEPARENT_LEN || text[2] != '-' || text[SPAN_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
                return false;
        if (digit(text[0]) < 0 || digit(text[1]) < 0 || (text[0] == 'f' && text[1] == 'f'))
                return false;
        if (digit(text[FLAGS_AT]) < 0 || digit(text[FLAGS_AT + 1]) < 0)
                return false;
        bool is_first_version = text[0] == '0' && text[1] == '0';
        if (len > TR_TRACEPARENT_LEN && (is_first_version || text[TR_TRACEPARENT_LEN] != '-'))
                return false;
        return parse_hex(text + TRACE_AT, id, 16) && parse_hex(text + SPAN_AT, id, 8);
}

void tr_traceparent_write(const struct tr_span_id *span, char ret_text[static TR_TRACEPARENT_LEN + 1]) {
        memcpy(ret_text, "00-", TRACE_AT);
        format_hex(span->trace, sizeof(span->trace), ret_text + TRACE_AT);
        ret_text[SPAN_AT - 1] = '-';
        format_hex(span->span, sizeof(span->span), ret_text + SPAN_AT);
        ret_text[FLAGS_AT - 1] = '-';
        format_hex(&span->flags, 1, ret_text + FLAGS_AT);
        ret_text[TR_TRACEPARENT_LEN] = '\0';
}

/* The table */

static uint32_t bucket_of(const uint8_t span[8], uint32_t room) {
        uint64_t number;
        memcpy(&number, span, sizeof(number));
        /* what others chose may be alike in its low bits */
        return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);
}

/* Without memory for a larger table the chains get longer. */
static void spans_grow_locked(struct tr_spans *spans) TR_REQUIRES(spans->lock) {
        uint32_t room = spans->room * 2;
        struct tr_span_id **buckets = room > spans->room ? calloc(room, sizeof(struct tr_span_id *)) : NULL;
        if (!buckets)
                return;
        for (uint32_t i = 0; i < spans->room; i++)
                for (struct tr_span_id *span = spans->buckets[i], *next; span; span = next) {
                        struct tr_span_id **bucket = &buckets[bucket_of(span->span, room)];
                        next = span->next_running;
                        span->next_running = *bucket;
                        *bucket = span;
                }
        free(spans->buckets);
        spans->buckets = buckets;
        spans->room = room;
}

/* How deep the span is that has this id and trace and is running; 0: none is. */
static uint32_t spans_depth_locked(const struct tr_spans *spans, const uint8_t id[8], const uint8_t trace[16])
        TR_REQUIRES(spans->lock) {
        const struct tr_span_id *span = spans->buckets[bucket_of(id, spans->room)];
        while (span && (memcmp(span->span, id, 8) != 0 || memcmp(span->trace, trace, 16) != 0))
                span = span->next_running;
        return span ? span->depth : 0;
}

/* `depth` 0: it is found out. */
static int spans_begin(struct tr_spans *spans, const char *traceparent, uint32_t depth, struct tr_span_id *ret_span) {
        struct tr_span_id span = { .flags = 1 };
        if (traceparent) {
                (void)parse_hex(traceparent + TRACE_AT, span.trace, sizeof(span.trace));
                (void)parse_hex(traceparent + SPAN_AT, span.parent, sizeof(span.parent));
                (void)parse_hex(traceparent + FLAGS_AT, &span.flags, 1);
        }
        tr_lock_acquire(&spans->lock);
        if (!traceparent)
                spans_fill_locked(spans, span.trace, sizeof(span.trace));
        spans_fill_locked(spans, span.span, sizeof(span.span));
        span.depth = depth ? depth : 1 + (traceparent ? spans_depth_locked(spans, span.parent, span.trace) : 0);
        bool loop = span.depth > TR_CHAIN_MAX;
        if (!loop) {
                if (spans->count >= spans->room)
                        spans_grow_locked(spans);
                struct tr_span_id **bucket = &spans->buckets[bucket_of(span.span, spans->room)];
                span.next_running = *bucket;
                *ret_span = span;
                *bucket = ret_span;
                spans->count++;
        }
        tr_lock_release(&spans->lock);
        return loop ? TR_SPAN_LOOP : 0;
}

int tr_spans_begin(struct tr_spans *spans, const char *traceparent, struct tr_span_id *ret_span) {
        return spans_begin(spans, traceparent, 0, ret_span);
}

void tr_spans_resume(struct tr_spans *spans, const char *traceparent, uint32_t depth, struct tr_span_id *ret_span) {
        /* what a person has put into the file is no reason to lose a task */
        (void)!spans_begin(spans, traceparent, depth < 1 ? 1 : depth > TR_CHAIN_MAX ? TR_CHAIN_MAX : depth, ret_span);
}

void tr_spans_end(struct tr_spans *spans, struct tr_span_id *span) {
        tr_lock_acquire(&spans->lock);
        struct tr_span_id **at = &spans->buckets[bucket_of(span->span, spans->room)];
        while (*at && *at != span)
                at = &(*at)->next_running;
        if (*at) {
                *at = span->next_running;
                spans->count--;
        }
        tr_lock_release(&spans->lock);
}
