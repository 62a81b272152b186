/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values so that equal ones are the same bytes. A map's pairs are written as they come and then put in order, so that
 * each level of nesting copies what is in it once; that, and the sorting, is paid for in steps before it is done.
 */
#include "daemon/contract/canonical.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/number.h"

#define BYTES_PER_STEP 64

static int write_value(struct tr_writer *writer, struct tr_reader *reader, uint64_t *steps);

static int pay(uint64_t *steps, uint64_t price) {
        if (price > *steps) {
                *steps = 0;
                return TR_CANONICAL_STOPPED;
        }
        *steps -= price;
        return 0;
}

void tr_key_read(struct tr_key *key, const struct tr_token *token) {
        key->data = key->buffer;
        switch (token->type) {
        case TR_STR:
        case TR_BIN:
                key->data = (const char *)token->data;
                key->len = token->len;
                return;
        case TR_BOOL:
                key->len = (size_t)snprintf(key->buffer, sizeof(key->buffer), "%s", token->boolean ? "true" : "false");
                return;
        case TR_INT:
        case TR_UINT:
        case TR_FLOAT:
                key->len = tr_number_format(token, key->buffer);
                return;
        default:
                /* The scanner lets no other keys through. */
                key->len = 0;
        }
}

int tr_slice_compare(const struct tr_slice *a, const struct tr_slice *b) {
        size_t len = a->len < b->len ? a->len : b->len;
        int order = len ? memcmp(a->data, b->data, len) : 0;

        return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int compare_stable(const void *a, const void *b) {
        const struct tr_slice *first = a, *second = b;
        int order = tr_slice_compare(first, second);

        return order ? order : (first->index > second->index) - (first->index < second->index);
}

/* How often each of so many is looked at when they are sorted. */
static uint64_t rounds(size_t count) {
        uint64_t rounds = 1;

        for (size_t left = count; left > 1; left /= 2)
                rounds++;
        return rounds;
}

int tr_slices_new(size_t count, uint64_t *steps, struct tr_slice **ret_slices) {
        struct tr_slice *slices;

        if (pay(steps, count * rounds(count)))
                return TR_CANONICAL_STOPPED;
        slices = reallocarray(NULL, count, sizeof(*slices));
        if (!slices)
                return tr_error_origin(-ENOMEM);
        *ret_slices = slices;
        return 0;
}

int tr_slices_sort(struct tr_slice *slices, size_t count, uint64_t *steps) {
        uint64_t bytes = 0;

        for (size_t i = 0; i < count; i++)
                bytes += slices[i].len;
        if (pay(steps, bytes / BYTES_PER_STEP * rounds(count)))
                return TR_CANONICAL_STOPPED;
        if (count > 1)
                qsort(slices, count, sizeof(*slices), compare_stable);
        return 0;
}

static int write_key(struct tr_writer *writer, struct tr_reader *reader) {
        struct tr_token token;
        struct tr_key key;

        if (tr_read(reader, &token))
                return tr_error_origin(-EBADMSG);
        tr_key_read(&key, &token);
        tr_write_str(writer, key.data, key.len);
        return 0;
}

/* Puts the pairs, of which the last `bytes` bytes of the writer are, into the order of the slices. */
static int reorder(struct tr_writer *writer, size_t bytes, const struct tr_slice *pairs, size_t count) {
        uint8_t *ordered = malloc(bytes), *at = ordered;

        if (!ordered)
                return tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < count; i++) {
                memcpy(at, pairs[i].data, pairs[i].len);
                at += pairs[i].len;
        }
        memcpy(writer->data + writer->len - bytes, ordered, bytes);
        free(ordered);
        return 0;
}

/* Appends the pairs; each slice's index is where its pair begins, since what they are in may move. */
static int write_pairs(struct tr_writer *writer, struct tr_reader *reader, struct tr_slice *pairs, size_t count,
                       uint64_t *steps) {
        for (size_t i = 0; i < count; i++) {
                int r;

                pairs[i].index = writer->len;
                r = write_key(writer, reader);
                if (!r)
                        r = write_value(writer, reader, steps);
                if (r)
                        return r;
                pairs[i].len = writer->len - pairs[i].index;
        }
        if (tr_writer_error(writer))
                return tr_error_origin(tr_writer_error(writer));
        for (size_t i = 0; i < count; i++)
                pairs[i].data = writer->data + pairs[i].index;
        return 0;
}

static int write_map(struct tr_writer *writer, struct tr_reader *reader, uint32_t count, uint64_t *steps) {
        struct tr_slice *pairs;
        size_t begin;
        int r;

        tr_write_map(writer, count);
        if (count == 0)
                return 0;
        r = tr_slices_new(count, steps, &pairs);
        if (r)
                return r;
        begin = writer->len;
        r = write_pairs(writer, reader, pairs, count, steps);
        if (!r)
                r = tr_slices_sort(pairs, count, steps);
        if (!r && count > 1)
                r = reorder(writer, writer->len - begin, pairs, count);
        free(pairs);
        return r;
}

static int write_array(struct tr_writer *writer, struct tr_reader *reader, uint32_t count, uint64_t *steps) {
        tr_write_array(writer, count);
        for (uint32_t i = 0; i < count; i++) {
                int r = write_value(writer, reader, steps);

                if (r)
                        return r;
        }
        return 0;
}

static int write_bytes(struct tr_writer *writer, const struct tr_token *token, uint64_t *steps) {
        if (pay(steps, token->len / BYTES_PER_STEP))
                return TR_CANONICAL_STOPPED;
        if (token->type == TR_STR)
                tr_write_str(writer, (const char *)token->data, token->len);
        else if (token->type == TR_BIN)
                tr_write_bin(writer, token->data, token->len);
        else
                tr_write_ext(writer, token->ext, token->data, token->len);
        return 0;
}

static int write_value(struct tr_writer *writer, struct tr_reader *reader, uint64_t *steps) {
        struct tr_token token;

        if (pay(steps, 1))
                return TR_CANONICAL_STOPPED;
        if (tr_read(reader, &token))
                return tr_error_origin(-EBADMSG);
        switch (token.type) {
        case TR_NIL:
                tr_write_nil(writer);
                return 0;
        case TR_BOOL:
                tr_write_bool(writer, token.boolean);
                return 0;
        case TR_INT:
        case TR_UINT:
        case TR_FLOAT:
                if (tr_number_is(&token))
                        tr_number_write(writer, &token);
                else
                        tr_write_float(writer, token.number);
                return 0;
        case TR_STR:
        case TR_BIN:
        case TR_EXT:
                return write_bytes(writer, &token, steps);
        case TR_ARRAY:
                return write_array(writer, reader, token.count, steps);
        case TR_MAP:
                return write_map(writer, reader, token.count, steps);
        }
        return 0;
}

int tr_canonical_write(struct tr_writer *writer, struct tr_reader *reader, uint64_t *steps) {
        int r = write_value(writer, reader, steps);

        if (r > 0)
                return r;
        if (!r && tr_writer_error(writer))
                r = tr_error_origin(tr_writer_error(writer));
        return tr_error_fold(r);
}
