/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing values: msgpack-c packs, into memory that grows by doubling.
 *
 * Whoever builds an answer writes dozens of values, and none of those writes has
 * anything better to do about a failure than to stop. So a failure is remembered
 * and looked at once. What was written before it stays, but may end in the middle
 * of a value, so that nothing of it may be used.
 */
#include <errno.h>
#include <msgpack/pack.h>
#include <stdlib.h>
#include <string.h>

#include "proto/head.h"
#include "proto/utf8.h"
#include "proto/value.h"

/* One small answer without a second allocation. */
#define FIRST_BYTES 128

/* What a payload of [handle as bin, ...] begins with. */
#define MESSAGE_ARRAY 0x92
#define BIN8 0xc4
/* The head of a string of fewer bytes than this has its length in it. */
#define FIXSTR 0xa0
#define FIXSTR_BYTES 32

static int fail(struct tr_writer *writer) {
        writer->error = -ENOMEM;
        return writer->error;
}

static int grow(struct tr_writer *writer, size_t bytes) {
        size_t need, cap = writer->cap ? writer->cap : FIRST_BYTES;
        uint8_t *data;

        if (writer->error)
                return writer->error;
        if (__builtin_add_overflow(writer->len, bytes, &need))
                return fail(writer);
        while (cap < need)
                if (__builtin_mul_overflow(cap, 2, &cap))
                        cap = need;

        data = realloc(writer->data, cap);
        if (!data)
                return fail(writer);
        writer->data = data;
        writer->cap = cap;
        return 0;
}

/* Nearly everything finds room; only what does not is worth a call. */
static inline bool has_room(const struct tr_writer *writer, size_t bytes) {
        return bytes <= writer->cap - writer->len && !writer->error;
}

int tr_writer_reserve(struct tr_writer *writer, size_t bytes) {
        return has_room(writer, bytes) ? 0 : grow(writer, bytes);
}

static inline int append(void *data, const char *bytes, size_t len) {
        struct tr_writer *writer = data;

        if (!has_room(writer, len) && grow(writer, len))
                return -1;
        if (len > 0)
                memcpy(writer->data + writer->len, bytes, len);
        writer->len += len;
        return 0;
}

static inline msgpack_packer packer(struct tr_writer *writer) {
        msgpack_packer packer;

        msgpack_packer_init(&packer, writer, append);
        return packer;
}

/* No length above 32 bits can be written down; such bytes would not fit in any frame either. */
static bool fits(struct tr_writer *writer, size_t len) {
        if (len <= UINT32_MAX)
                return true;
        (void)fail(writer);
        return false;
}

void tr_writer_reset(struct tr_writer *writer) {
        writer->len = 0;
        writer->error = 0;
}

void tr_writer_deinit(struct tr_writer *writer) {
        if (!writer)
                return;
        free(writer->data);
        *writer = TR_WRITER_INIT;
}

uint8_t *tr_writer_steal(struct tr_writer *writer, size_t *ret_len) {
        uint8_t *data = writer->data;

        *ret_len = writer->len;
        *writer = TR_WRITER_INIT;
        return data;
}

void tr_write_nil(struct tr_writer *writer) {
        msgpack_packer p = packer(writer);

        msgpack_pack_nil(&p);
}

void tr_write_bool(struct tr_writer *writer, bool value) {
        msgpack_packer p = packer(writer);

        if (value)
                msgpack_pack_true(&p);
        else
                msgpack_pack_false(&p);
}

void tr_write_int(struct tr_writer *writer, int64_t value) {
        msgpack_packer p = packer(writer);

        msgpack_pack_int64(&p, value);
}

void tr_write_uint(struct tr_writer *writer, uint64_t value) {
        msgpack_packer p = packer(writer);

        msgpack_pack_uint64(&p, value);
}

void tr_write_float(struct tr_writer *writer, double value) {
        msgpack_packer p = packer(writer);

        msgpack_pack_double(&p, value);
}

void tr_write_str(struct tr_writer *writer, const char *data, size_t len) {
        msgpack_packer p = packer(writer);

        /* most keys and names: head and text at once */
        if (len < FIXSTR_BYTES && has_room(writer, 1 + len)) {
                writer->data[writer->len] = (uint8_t)(FIXSTR | len);
                if (len > 0)
                        memcpy(writer->data + writer->len + 1, data, len);
                writer->len += 1 + len;
                return;
        }
        if (!fits(writer, len))
                return;
        msgpack_pack_str(&p, len);
        append(writer, data, len);
}

void tr_write_bin(struct tr_writer *writer, const void *data, size_t len) {
        msgpack_packer p = packer(writer);

        if (!fits(writer, len))
                return;
        msgpack_pack_bin(&p, len);
        append(writer, data, len);
}

void tr_write_array(struct tr_writer *writer, uint32_t count) {
        msgpack_packer p = packer(writer);

        msgpack_pack_array(&p, count);
}

void tr_write_map(struct tr_writer *writer, uint32_t pairs) {
        msgpack_packer p = packer(writer);

        msgpack_pack_map(&p, pairs);
}

void tr_write_ext(struct tr_writer *writer, int8_t type, const void *payload, size_t len) {
        msgpack_packer p = packer(writer);

        if (!fits(writer, len))
                return;
        msgpack_pack_ext(&p, len, type);
        append(writer, payload, len);
}

void tr_write_raw(struct tr_writer *writer, const void *data, size_t len) {
        append(writer, data, len);
}

void tr_write_string(struct tr_writer *writer, const char *data, size_t len) {
        if (tr_utf8_is_valid(data, len))
                tr_write_str(writer, data, len);
        else
                tr_write_bin(writer, data, len);
}

void tr_write_handle(struct tr_writer *writer, const struct tr_handle *handle) {
        tr_write_ext(writer, TR_EXT_HANDLE, handle->bytes, TR_HANDLE_BYTES);
}

/* The bytes of a head of str or bin before `len` bytes: bin has no form within one byte. */
static size_t string_head_bytes(size_t len, bool is_str) {
        if (is_str && len < FIXSTR_BYTES)
                return 1;
        return len <= UINT8_MAX ? 2 : len <= UINT16_MAX ? 3 : 5;
}

void tr_write_message(struct tr_writer *writer, const struct tr_handle *handle, const char *handler,
                      size_t handler_len) {
        static const char head[] = { (char)MESSAGE_ARRAY, (char)BIN8, TR_HANDLE_BYTES };
        msgpack_packer p = packer(writer);
        size_t string_head = string_head_bytes(handler_len, tr_utf8_is_valid(handler, handler_len));

        if (!fits(writer, handler_len) || !fits(writer, sizeof(head) + TR_HANDLE_BYTES + string_head + handler_len))
                return;
        msgpack_pack_ext(&p, sizeof(head) + TR_HANDLE_BYTES + string_head + handler_len, TR_EXT_MESSAGE);
        append(writer, head, sizeof(head));
        append(writer, (const char *)handle->bytes, TR_HANDLE_BYTES);
        tr_write_string(writer, handler, handler_len);
}

void tr_write_time(struct tr_writer *writer, const struct tr_time *time) {
        uint64_t sec = (uint64_t)time->sec;
        uint8_t payload[12];

        /* The shortest of the specification's three forms. */
        if (sec >> 34) {
                tr_put_be32(payload, time->nsec);
                tr_put_be64(payload + 4, sec);
                tr_write_ext(writer, TR_EXT_TIMESTAMP, payload, 12);
        } else if (time->nsec > 0 || sec > UINT32_MAX) {
                tr_put_be64(payload, (uint64_t)time->nsec << 34 | sec);
                tr_write_ext(writer, TR_EXT_TIMESTAMP, payload, 8);
        } else {
                tr_put_be32(payload, (uint32_t)sec);
                tr_write_ext(writer, TR_EXT_TIMESTAMP, payload, 4);
        }
}
