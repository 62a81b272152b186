/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading single values in place. The reader trusts nothing: a length is
 * compared with the bytes that are there before anything is done with it, and a
 * value that is not whole leaves the reader where it was.
 */
#include <string.h>

#include "proto/head.h"
#include "proto/value.h"

/* Whether 64 bits hold it exactly: 2^63 itself does not fit, -2^63 does. */
#define INT64_END 9223372036854775808.0

static int64_t integer_at(const uint8_t *p) {
        switch (p[0]) {
        case 0xcc:
                return p[1];
        case 0xcd:
                return tr_be16(p + 1);
        case 0xce:
                return tr_be32(p + 1);
        case 0xd0:
                return (int8_t)p[1];
        case 0xd1:
                return (int16_t)tr_be16(p + 1);
        case 0xd2:
                return (int32_t)tr_be32(p + 1);
        case 0xd3:
                return (int64_t)tr_be64(p + 1);
        default:
                return (int8_t)p[0];
        }
}

static double float_at(const uint8_t *p) {
        if (p[0] == 0xca) {
                uint32_t bits = tr_be32(p + 1);
                float number;

                memcpy(&number, &bits, sizeof(number));
                return number;
        } else {
                uint64_t bits = tr_be64(p + 1);
                double number;

                memcpy(&number, &bits, sizeof(number));
                return number;
        }
}

/* Member by member: one put together elsewhere and copied whole is loaded behind the stores of its parts, which stalls. */
static inline void read_token(const uint8_t *p, struct tr_head head, uint32_t length, struct tr_token *ret_token) {
        const uint8_t *payload = p + head.bytes;

        ret_token->ext = 0;
        ret_token->integer = 0;
        ret_token->data = NULL;
        switch ((enum tr_kind)head.kind) {
        case TR_KIND_BOOL:
                ret_token->type = TR_BOOL;
                ret_token->boolean = p[0] == 0xc3;
                break;
        case TR_KIND_INT:
                ret_token->type = TR_INT;
                ret_token->integer = integer_at(p);
                break;
        case TR_KIND_UINT64:
                ret_token->unsigned_ = tr_be64(payload);
                ret_token->type = ret_token->unsigned_ > INT64_MAX ? TR_UINT : TR_INT;
                break;
        case TR_KIND_FLOAT:
                ret_token->type = TR_FLOAT;
                ret_token->number = float_at(p);
                break;
        case TR_KIND_STR:
        case TR_KIND_BIN:
                ret_token->type = head.kind == TR_KIND_STR ? TR_STR : TR_BIN;
                ret_token->len = length;
                ret_token->data = payload;
                break;
        case TR_KIND_EXT:
                ret_token->type = TR_EXT;
                ret_token->ext = (int8_t)payload[-1];
                ret_token->len = length;
                ret_token->data = payload;
                break;
        case TR_KIND_ARRAY:
        case TR_KIND_MAP:
                ret_token->type = head.kind == TR_KIND_ARRAY ? TR_ARRAY : TR_MAP;
                ret_token->count = length;
                break;
        case TR_KIND_NIL:
        case TR_KIND_NEVER:
                ret_token->type = TR_NIL;
                break;
        }
}

/* Looks at the head at the reader's place, and whether all that is the value's own is there. */
static inline int look(const struct tr_reader *reader, struct tr_head *ret_head, uint32_t *ret_length,
                       size_t *ret_bytes) {
        size_t left = (size_t)(reader->end - reader->at);
        struct tr_head head;
        uint32_t length;
        size_t bytes;

        if (left == 0)
                return TR_READ_TRUNCATED;
        head = tr_heads[reader->at[0]];
        if (head.kind == TR_KIND_NEVER)
                return TR_READ_INVALID;
        if (left < head.bytes)
                return TR_READ_TRUNCATED;

        length = tr_head_length(head, reader->at);
        bytes = head.bytes;
        if (!tr_head_is_container(head)) {
                if (left - bytes < length)
                        return TR_READ_TRUNCATED;
                bytes += length;
        }
        *ret_head = head;
        *ret_length = length;
        *ret_bytes = bytes;
        return 0;
}

int tr_read(struct tr_reader *reader, struct tr_token *ret_token) {
        struct tr_head head;
        uint32_t length;
        size_t bytes;
        int r;

        r = look(reader, &head, &length, &bytes);
        if (r)
                return r;
        read_token(reader->at, head, length, ret_token);
        reader->at += bytes;
        return 0;
}

int tr_read_skip(struct tr_reader *reader) {
        struct tr_reader ahead = *reader;

        for (uint64_t values = 1; values > 0; values--) {
                struct tr_head head;
                uint32_t length;
                size_t bytes;
                int r;

                r = look(&ahead, &head, &length, &bytes);
                if (r)
                        return r;
                ahead.at += bytes;
                if (tr_head_is_container(head))
                        values += tr_head_values(head, length);
                /* A value has a byte at least: this is also what keeps the count from running over. */
                if (values - 1 > (size_t)(ahead.end - ahead.at))
                        return TR_READ_TRUNCATED;
        }
        *reader = ahead;
        return 0;
}

bool tr_token_is_text(const struct tr_token *token) {
        return token->type == TR_STR || token->type == TR_BIN;
}

bool tr_token_equals(const struct tr_token *token, const char *text) {
        return tr_token_is_text(token) && strlen(text) == token->len && memcmp(token->data, text, token->len) == 0;
}

bool tr_token_integer(const struct tr_token *token, int64_t *ret_integer) {
        if (token->type == TR_INT) {
                *ret_integer = token->integer;
                return true;
        }
        /* Written so that NaN fails too. */
        if (token->type != TR_FLOAT || !(token->number >= -INT64_END && token->number < INT64_END) ||
            token->number != (double)(int64_t)token->number)
                return false;
        *ret_integer = (int64_t)token->number;
        return true;
}
