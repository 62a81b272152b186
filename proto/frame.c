/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame scanner: the head of a frame, and what is said about the whole.
 *
 * A frame is a head (the array, the type, the id), of at most 23 bytes and read in
 * one go, and two parts that may be any values: method and params, or error and
 * result. Those are walked value by value (walk.c) until the frame is whole, or until
 * something in it is refused: from there on it is only counted (skip.c).
 */
#include "proto/frame.h"

#include "proto/head.h"
#include "proto/value.h"
#include "proto/walk.h"

/* Reads an integer of 0 to 2^32-1 in any encoding, of which a float is none. */
static enum tr_walk head_integer(const uint8_t *data, size_t bytes, size_t *at, uint32_t *ret_value) {
        struct tr_reader reader = tr_reader(data + *at, bytes - *at);
        struct tr_token token;
        uint8_t kind;

        if (*at == bytes)
                return TR_WALK_SHORT;
        kind = tr_heads[data[*at]].kind;
        if (kind != TR_KIND_INT && kind != TR_KIND_UINT64)
                return TR_WALK_BAD;
        if (tr_read(&reader, &token))
                return TR_WALK_SHORT;
        if (token.type != TR_INT || token.integer < 0 || token.integer > UINT32_MAX)
                return TR_WALK_BAD;
        *ret_value = (uint32_t)token.integer;
        *at = (size_t)(reader.at - data);
        return TR_WALK_WHOLE;
}

/* Reads the head of a frame: all of it, or nothing. */
static enum tr_walk walk_head(struct tr_scanner *scanner, const uint8_t *data, size_t bytes) {
        struct tr_frame *frame = &scanner->frame;
        struct tr_head head;
        uint32_t count, type;
        size_t at;
        enum tr_walk r;

        if (bytes == 0)
                return TR_WALK_SHORT;
        head = tr_heads[data[0]];
        if (head.kind != TR_KIND_ARRAY)
                return TR_WALK_BAD;
        if (bytes < head.bytes)
                return TR_WALK_SHORT;
        count = tr_head_length(head, data);
        at = head.bytes;
        /* More elements than a frame has bytes are no frame whatever follows: nobody waits for an id in it. */
        if (count == 0 || count > scanner->frame_max)
                return TR_WALK_BAD;

        r = head_integer(data, bytes, &at, &type);
        if (r != TR_WALK_WHOLE)
                return r;
        if (type > TR_FRAME_NOTIFICATION)
                return TR_WALK_BAD;
        frame->type = (enum tr_frame_type)type;

        if (frame->type == TR_FRAME_NOTIFICATION) {
                if (count != 3)
                        return TR_WALK_BAD;
        } else {
                if (count < 2)
                        return TR_WALK_BAD;
                r = head_integer(data, bytes, &at, &frame->id);
                if (r != TR_WALK_WHOLE)
                        return r;
                scanner->refusal.has_id = true;
                /* Only now, so that a request of the wrong length gets its answer. */
                if (count != 4)
                        return TR_WALK_BAD;
        }
        scanner->at = at;
        return TR_WALK_WHOLE;
}

/* An argument is level 1 and within frame, params and args; a response's values are within the frame only. */
static void begin_parts(struct tr_scanner *scanner) {
        scanner->state = TR_SCAN_IN_PARTS;
        scanner->levels_max = scanner->nesting_max + (scanner->frame.type == TR_FRAME_RESPONSE ? 1 : TR_FRAME_WRAPPING);
        scanner->part = 0;
        scanner->part_at[0] = scanner->at;
        scanner->level = 0;
        scanner->levels[0] = (struct tr_scan_level){ 1, false };
}

static void begin_frame(struct tr_scanner *scanner) {
        scanner->at = 0;
        scanner->state = TR_SCAN_IN_HEAD;
        scanner->frame = (struct tr_frame){ 0 };
        scanner->refusal = (struct tr_refusal){ 0 };
}

static enum tr_walk walk_parts(struct tr_scanner *scanner, const uint8_t *data, size_t bytes) {
        size_t end_max = scanner->frame_max;
        struct tr_extent extent = { data, bytes < end_max ? bytes : end_max, end_max };
        enum tr_walk r;

        r = tr_walk(scanner, extent, 0);
        if (r != TR_WALK_WHOLE || scanner->part > 0)
                return r;
        scanner->part = 1;
        scanner->part_at[1] = scanner->at;
        scanner->levels[0].left = 1;
        return tr_walk(scanner, extent, 0);
}

/* What is known of the frame; `end` is where it ends, or, before that is known, the bytes given. */
static void describe(const struct tr_scanner *scanner, const uint8_t *data, size_t end, struct tr_frame *ret_frame) {
        bool is_response = scanner->frame.type == TR_FRAME_RESPONSE;
        struct tr_span first = { 0 }, second = { 0 };

        if (scanner->part > 0) {
                first = (struct tr_span){ data + scanner->part_at[0], scanner->part_at[1] - scanner->part_at[0] };
                second = (struct tr_span){ data + scanner->part_at[1], end - scanner->part_at[1] };
        }
        *ret_frame = (struct tr_frame){ .type = scanner->frame.type, .id = scanner->frame.id, .bytes = end };
        *(is_response ? &ret_frame->error : &ret_frame->method) = first;
        *(is_response ? &ret_frame->result : &ret_frame->params) = second;
}

static enum tr_scan bad(struct tr_scanner *scanner, struct tr_refusal *ret_refusal) {
        /* A refused request has been answered, and an answer is not answered. */
        bool owed = scanner->state != TR_SCAN_IN_SKIP && scanner->frame.type == TR_FRAME_REQUEST;

        *ret_refusal = (struct tr_refusal){ .type = scanner->frame.type };
        ret_refusal->has_id = owed && scanner->refusal.has_id;
        ret_refusal->id = ret_refusal->has_id ? scanner->frame.id : 0;
        return TR_SCAN_BAD;
}

static enum tr_scan refused(struct tr_scanner *scanner, const uint8_t *data, size_t bytes, struct tr_frame *ret_frame,
                            struct tr_refusal *ret_refusal) {
        scanner->refusal.type = scanner->frame.type;
        scanner->refusal.id = scanner->frame.id;
        scanner->state = TR_SCAN_IN_SKIP;
        tr_skip_begin(scanner, 1 - scanner->part);
        describe(scanner, data, bytes, ret_frame);
        *ret_refusal = scanner->refusal;
        return TR_SCAN_REFUSED;
}

static enum tr_scan scan_skip(struct tr_scanner *scanner, const uint8_t *data, size_t bytes, struct tr_frame *ret_frame,
                              struct tr_refusal *ret_refusal) {
        switch (tr_skip(scanner, data, bytes)) {
        case TR_WALK_WHOLE:
                *ret_frame =
                        (struct tr_frame){ .type = scanner->frame.type, .id = scanner->frame.id, .bytes = scanner->at };
                begin_frame(scanner);
                return TR_SCAN_SKIPPED;
        case TR_WALK_SHORT:
                scanner->at = 0;
                return TR_SCAN_MORE;
        default:
                return bad(scanner, ret_refusal);
        }
}

void tr_scanner_init(struct tr_scanner *scanner, size_t frame_max) {
        scanner->frame_max = frame_max < TR_FRAME_MAX_LOW    ? TR_FRAME_MAX_LOW
                             : frame_max > TR_FRAME_MAX_HIGH ? TR_FRAME_MAX_HIGH
                                                             : frame_max;
        scanner->nesting_max = TR_NESTING_MAX;
        begin_frame(scanner);
}

void tr_scanner_set_nesting(struct tr_scanner *scanner, uint32_t levels) {
        scanner->nesting_max = levels < TR_NESTING_MAX ? levels : TR_NESTING_MAX;
}

enum tr_scan tr_scan(struct tr_scanner *scanner, const uint8_t *data, size_t bytes, struct tr_frame *ret_frame,
                     struct tr_refusal *ret_refusal) {
        enum tr_walk r;

        if (scanner->state == TR_SCAN_IN_SKIP)
                return scan_skip(scanner, data, bytes, ret_frame, ret_refusal);
        if (scanner->state == TR_SCAN_IN_HEAD) {
                r = walk_head(scanner, data, bytes);
                if (r == TR_WALK_BAD)
                        return bad(scanner, ret_refusal);
                if (r == TR_WALK_SHORT)
                        return TR_SCAN_MORE;
                begin_parts(scanner);
        }

        r = walk_parts(scanner, data, bytes);
        switch (r) {
        case TR_WALK_WHOLE:
                describe(scanner, data, scanner->at, ret_frame);
                begin_frame(scanner);
                return TR_SCAN_FRAME;
        case TR_WALK_SHORT:
                return TR_SCAN_MORE;
        case TR_WALK_BEYOND:
                scanner->refusal.reason = TR_REFUSAL_TOO_LARGE;
                scanner->refusal.offset = scanner->at;
                return refused(scanner, data, bytes, ret_frame, ret_refusal);
        case TR_WALK_REFUSED:
                return refused(scanner, data, bytes, ret_frame, ret_refusal);
        case TR_WALK_BAD:
                break;
        }
        return bad(scanner, ret_refusal);
}

size_t tr_scanner_consumed(const struct tr_scanner *scanner, size_t bytes) {
        return scanner->state == TR_SCAN_IN_SKIP ? bytes : 0;
}
