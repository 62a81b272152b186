/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_HEAD_H
#define TR_PROTO_HEAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What the first byte of a MessagePack value says. Every value is a head of
 * `bytes` bytes, in which a length may stand, and then either that many bytes
 * (scalars, strings, extensions) or that many values (containers). Scanner and
 * reader both go by this one table. Internal to proto/.
 */
enum tr_kind {
        /* Nothing about these is ever refused, be it as a map's key or anywhere else. */
        TR_KIND_BOOL,
        TR_KIND_INT, /* every integer but the unsigned one of 64 bits */
        TR_KIND_STR,
        TR_KIND_BIN,
        TR_KIND_PLAIN = TR_KIND_BIN,

        TR_KIND_NIL,
        TR_KIND_FLOAT,
        TR_KIND_UINT64,
        TR_KIND_EXT,
        TR_KIND_ARRAY,
        TR_KIND_MAP,
        TR_KIND_NEVER, /* 0xc1 */
};

struct tr_head {
        uint8_t kind;  /* enum tr_kind */
        uint8_t bytes; /* of the head: the first byte, the length where it has one, an extension's type */
        uint8_t width; /* bytes of the length behind the first byte: 0, 1, 2 or 4 */
        uint8_t fixed; /* width 0: the length that the first byte stands for */
};

extern const struct tr_head tr_heads[256];

static inline uint16_t tr_be16(const uint8_t *p) {
        return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t tr_be32(const uint8_t *p) {
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t tr_be64(const uint8_t *p) {
        return (uint64_t)tr_be32(p) << 32 | tr_be32(p + 4);
}

static inline void tr_put_be32(uint8_t *p, uint32_t value) {
        p[0] = (uint8_t)(value >> 24);
        p[1] = (uint8_t)(value >> 16);
        p[2] = (uint8_t)(value >> 8);
        p[3] = (uint8_t)value;
}

static inline void tr_put_be64(uint8_t *p, uint64_t value) {
        tr_put_be32(p, (uint32_t)(value >> 32));
        tr_put_be32(p + 4, (uint32_t)value);
}

/* The bytes, elements or pairs behind the head at p, of which all bytes are there. */
static inline uint32_t tr_head_length(struct tr_head head, const uint8_t *p) {
        switch (head.width) {
        case 0:
                return head.fixed;
        case 1:
                return p[1];
        case 2:
                return tr_be16(p + 1);
        default:
                return tr_be32(p + 1);
        }
}

static inline bool tr_head_is_container(struct tr_head head) {
        return head.kind == TR_KIND_ARRAY || head.kind == TR_KIND_MAP;
}

/* The values that a container's head promises: a map's keys count. */
static inline uint64_t tr_head_values(struct tr_head head, uint32_t length) {
        return head.kind == TR_KIND_MAP ? 2 * (uint64_t)length : length;
}

#endif
