/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking the values of a frame, with the containers that are open in an array of
 * fixed size, and judging each: is it one that may cross?
 *
 * A value is judged when its head is there, and it is passed when it is whole; so the
 * place that is kept between two calls is always the beginning of a value, and a
 * string that comes in a thousand pieces costs a look at its head for each.
 *
 * Extension types 2 and 3 hold MessagePack themselves. Their payload is walked when it
 * is whole, by recursion; each instance (3) opens a level, so that the bound
 * on nesting bounds the recursion too.
 */
#include "proto/walk.h"

#include "proto/head.h"
#include "proto/value.h"

/* Whether the bytes up to `end` are there. */
static inline enum tr_walk reach(const struct tr_extent *extent, uint64_t end) {
        if (end <= extent->end)
                return TR_WALK_WHOLE;
        return end > extent->end_max ? TR_WALK_BEYOND : TR_WALK_SHORT;
}

static enum tr_walk refuse(struct tr_scanner *scanner, enum tr_refusal_reason reason, size_t offset, int ext_type) {
        scanner->refusal.reason = reason;
        scanner->refusal.offset = offset;
        scanner->refusal.ext_type = ext_type;
        return TR_WALK_REFUSED;
}

static bool is_nan(struct tr_head head, const uint8_t *payload) {
        uint64_t exponent = head.fixed == 4 ? tr_be32(payload) & 0x7fffffff : tr_be64(payload) & INT64_MAX;

        return exponent > (head.fixed == 4 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000));
}

/* The fields of an instance, whose payload is there. They are values like all others. */
static enum tr_walk walk_instance(struct tr_scanner *scanner, const uint8_t *data, size_t offset, size_t payload_at,
                                  uint32_t bytes) {
        struct tr_reader fields;
        const char *name;
        size_t name_len;
        uint32_t pairs, level = scanner->level + 1;
        enum tr_walk r;

        if (level == scanner->levels_max)
                return refuse(scanner, TR_REFUSAL_TOO_DEEP, offset, 0);
        if (!tr_instance_decode(data + payload_at, bytes, &name, &name_len, &fields, &pairs) ||
            pairs > (size_t)(fields.end - fields.at) / 2)
                return refuse(scanner, TR_REFUSAL_EXT_PAYLOAD, offset, TR_EXT_INSTANCE);

        scanner->at = (size_t)(fields.at - data);
        scanner->level = level;
        scanner->levels[level] = (struct tr_scan_level){ 2 * pairs, true };
        r = tr_walk(scanner, (struct tr_extent){ data, payload_at + bytes, payload_at + bytes }, level);
        if (r == TR_WALK_REFUSED || (r == TR_WALK_WHOLE && scanner->at == payload_at + bytes))
                return r;
        return refuse(scanner, TR_REFUSAL_EXT_PAYLOAD, offset, TR_EXT_INSTANCE);
}

/* Judges the extension value at `at`, whose head is there. */
static enum tr_walk judge_ext(struct tr_scanner *scanner, const struct tr_extent *extent, size_t at,
                              struct tr_head head, uint32_t bytes) {
        size_t payload_at = at + head.bytes;
        const uint8_t *payload = extent->data + payload_at;
        int type = (int8_t)payload[-1];
        struct tr_handle handle;
        struct tr_time time;
        const char *handler;
        size_t handler_len;
        enum tr_walk r;
        bool ok;

        if (type != TR_EXT_HANDLE && type != TR_EXT_MESSAGE && type != TR_EXT_INSTANCE && type != TR_EXT_TIMESTAMP)
                return refuse(scanner, TR_REFUSAL_EXT_TYPE, at, type);
        r = reach(extent, (uint64_t)payload_at + bytes);
        if (r != TR_WALK_WHOLE)
                return r;

        switch (type) {
        case TR_EXT_HANDLE:
                ok = bytes == TR_HANDLE_BYTES;
                break;
        case TR_EXT_MESSAGE:
                ok = tr_message_decode(payload, bytes, &handle, &handler, &handler_len);
                break;
        case TR_EXT_TIMESTAMP:
                ok = tr_time_decode(payload, bytes, &time);
                break;
        default:
                return walk_instance(scanner, extent->data, at, payload_at, bytes);
        }
        return ok ? TR_WALK_WHOLE : refuse(scanner, TR_REFUSAL_EXT_PAYLOAD, at, type);
}

/* Judges the container whose head is at `at`. */
static enum tr_walk judge_container(struct tr_scanner *scanner, const struct tr_extent *extent, size_t at,
                                    struct tr_head head, uint32_t length) {
        if (scanner->level + 1 == scanner->levels_max)
                return refuse(scanner, TR_REFUSAL_TOO_DEEP, at, 0);
        /* Every value has a byte at least. */
        if (tr_head_values(head, length) > extent->end_max - at - head.bytes)
                return TR_WALK_BEYOND;
        return TR_WALK_WHOLE;
}

/* Judges the value at `at`, whose head is there. TR_WALK_WHOLE: it may be passed or, a container, entered. */
static enum tr_walk judge(struct tr_scanner *scanner, const struct tr_extent *extent, size_t at, struct tr_head head,
                          uint32_t length, bool is_key) {
        const uint8_t *payload = extent->data + at + head.bytes;
        enum tr_walk r;

        if (head.kind == TR_KIND_NEVER)
                return TR_WALK_BAD;
        if (is_key && head.kind == TR_KIND_NIL)
                return refuse(scanner, TR_REFUSAL_NIL_KEY, at, 0);
        if (is_key && (tr_head_is_container(head) || head.kind == TR_KIND_EXT))
                return refuse(scanner, TR_REFUSAL_KEY, at, 0);
        if (tr_head_is_container(head))
                return judge_container(scanner, extent, at, head, length);
        if (head.kind == TR_KIND_EXT)
                return judge_ext(scanner, extent, at, head, length);

        r = reach(extent, (uint64_t)at + head.bytes + length);
        if (r != TR_WALK_WHOLE)
                return r;
        if (is_key && head.kind == TR_KIND_FLOAT && is_nan(head, payload))
                return refuse(scanner, TR_REFUSAL_KEY, at, 0);
        if (head.kind == TR_KIND_UINT64 && payload[0] & 0x80)
                return refuse(scanner, TR_REFUSAL_BIG_INTEGER, at, 0);
        return TR_WALK_WHOLE;
}

static inline enum tr_walk look(const struct tr_extent *extent, size_t at, struct tr_head *ret_head,
                                uint32_t *ret_length) {
        enum tr_walk r = reach(extent, (uint64_t)at + 1);

        if (r != TR_WALK_WHOLE)
                return r;
        *ret_head = tr_heads[extent->data[at]];
        r = reach(extent, (uint64_t)at + ret_head->bytes);
        if (r != TR_WALK_WHOLE)
                return r;
        *ret_length = tr_head_length(*ret_head, extent->data + at);
        return TR_WALK_WHOLE;
}

enum tr_walk tr_walk(struct tr_scanner *scanner, struct tr_extent extent, uint32_t base) {
        struct tr_scan_level *level = &scanner->levels[scanner->level];
        const struct tr_scan_level *bottom = &scanner->levels[base];
        size_t at = scanner->at;
        enum tr_walk r = TR_WALK_WHOLE;

        for (;;) {
                struct tr_head head;
                uint32_t length;

                while (level->left == 0 && level > bottom)
                        level--;
                if (level->left == 0)
                        break;

                r = look(&extent, at, &head, &length);
                if (r != TR_WALK_WHOLE)
                        break;
                if (head.kind <= TR_KIND_PLAIN) {
                        r = reach(&extent, (uint64_t)at + head.bytes + length);
                } else {
                        scanner->level = (uint32_t)(level - scanner->levels);
                        r = judge(scanner, &extent, at, head, length, level->is_map && level->left % 2 == 0);
                }
                if (r != TR_WALK_WHOLE)
                        break;

                at += head.bytes;
                level->left--;
                if (tr_head_is_container(head))
                        *++level = (struct tr_scan_level){ (uint32_t)tr_head_values(head, length),
                                                           head.kind == TR_KIND_MAP };
                else
                        at += length;
        }
        scanner->at = at;
        scanner->level = (uint32_t)(level - scanner->levels);
        return r;
}
