/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_PROTO_VALUE_H
#define TR_PROTO_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/handle.h"

/*
 * Reading and writing single MessagePack values. The reader walks bytes in
 * place and allocates nothing; it is bounds-checked, so that it may be used on
 * anything, but what came from a peer has been through the frame scanner first.
 * The writer packs with msgpack-c into memory of its own.
 */

/* Extension types of the protocol. */
enum tr_ext {
        TR_EXT_HANDLE = 1,     /* 16 bytes */
        TR_EXT_MESSAGE = 2,    /* MessagePack of [handle as 16-byte bin, handler] */
        TR_EXT_INSTANCE = 3,   /* MessagePack of ["module:Name", {fields}] */
        TR_EXT_TIMESTAMP = -1, /* as the MessagePack specification has it */
};

enum tr_type {
        TR_NIL,
        TR_BOOL,
        TR_INT,  /* fits int64_t, whatever its encoding */
        TR_UINT, /* above INT64_MAX */
        TR_FLOAT,
        TR_STR,
        TR_BIN,
        TR_ARRAY,
        TR_MAP,
        TR_EXT,
};

/* One value, or the head of a container. `data` points into what is read. */
struct tr_token {
        enum tr_type type;
        int8_t ext; /* TR_EXT: the extension type number */
        union {
                bool boolean;
                int64_t integer;   /* TR_INT */
                uint64_t unsigned_; /* TR_UINT */
                double number;     /* TR_FLOAT, also from a 32-bit one */
                uint32_t count;    /* TR_ARRAY: elements; TR_MAP: pairs */
                uint32_t len;      /* TR_STR, TR_BIN, TR_EXT: bytes at data */
        };
        const uint8_t *data;
};

struct tr_reader {
        const uint8_t *at;
        const uint8_t *end;
};

enum {
        TR_READ_TRUNCATED = 1, /* the bytes end inside the value */
        TR_READ_INVALID = 2,   /* 0xc1, which MessagePack never uses */
};

static inline struct tr_reader tr_reader(const void *data, size_t bytes) {
        return (struct tr_reader){ data, (const uint8_t *)data + bytes };
}

/* Reads the next value (a container's head only) and moves past it. 0, or
 * TR_READ_*, with the reader where it was and *ret_token untouched. */
__attribute__((warn_unused_result)) int tr_read(struct tr_reader *reader, struct tr_token *ret_token);

/* Moves past one whole value with all that is in it, without recursion. Answers as tr_read() does. */
__attribute__((warn_unused_result)) int tr_read_skip(struct tr_reader *reader);

/* Whether a token is a str or bin that equals the text. Where the protocol
 * expects a string, stock clients may send bin. */
bool tr_token_is_text(const struct tr_token *token);
bool tr_token_equals(const struct tr_token *token, const char *text);

/* An integer where one is expected: TR_INT, or a float without a fraction that
 * an int64_t holds exactly. */
bool tr_token_integer(const struct tr_token *token, int64_t *ret_integer);

/* A point in time as the MessagePack specification's timestamp extension has
 * it: seconds since 1970 and 0 to 999,999,999 nanoseconds. */
struct tr_time {
        int64_t sec;
        uint32_t nsec;
};

/* Reads the payload of a TR_EXT_TIMESTAMP (4, 8 or 12 bytes). */
bool tr_time_decode(const uint8_t *payload, size_t len, struct tr_time *ret_time);
/* RFC 3339 in UTC, with as many decimals of a second as it has ("2026-01-02T03:04:05.5Z");
 * years outside 0000 to 9999 are written with a sign. Answers the length. */
#define TR_TIME_TEXT_MAX 48
size_t tr_time_format(const struct tr_time *time, char text[static TR_TIME_TEXT_MAX]);
/* Reads RFC 3339: a date, `T`, a time with any decimals, and `Z` or an offset. What is beyond nanoseconds is dropped, a leap second is
 * the one after it. */
bool tr_time_parse(const char *text, size_t len, struct tr_time *ret_time);
/* Milliseconds since 1970, rounded down; what does not fit is as far away as can be. */
int64_t tr_time_ms(const struct tr_time *time);

/* Reads the payload of a TR_EXT_MESSAGE. *ret_handler points into the payload. */
bool tr_message_decode(const uint8_t *payload, size_t len, struct tr_handle *ret_handle, const char **ret_handler,
                       size_t *ret_handler_len);

/* Reads the payload of a TR_EXT_INSTANCE as far as its fields: ret_fields stands before the first of *ret_pairs
 * keys, and whoever reads them sees to it that the payload ends behind the last. *ret_name points into the payload. */
bool tr_instance_decode(const uint8_t *payload, size_t len, const char **ret_name, size_t *ret_name_len,
                        struct tr_reader *ret_fields, uint32_t *ret_pairs);

/*
 * The writer. Every write appends; the first that fails for want of memory is
 * remembered, later ones do nothing, and the caller looks once at the end
 * (tr_writer_error: 0 or -ENOMEM). One writer belongs to one thread at a time.
 */
struct tr_writer {
        uint8_t *data;
        size_t len;
        size_t cap;
        int error;
};

#define TR_WRITER_INIT ((struct tr_writer){ 0 })

/* Forgets what was written, and its failure, and keeps the memory. */
void tr_writer_reset(struct tr_writer *writer);
/* Frees the memory; the writer may be used again. NULL and empty are fine. */
void tr_writer_deinit(struct tr_writer *writer);
/* Hands the bytes to the caller, who frees them with free(); the writer is empty after. */
uint8_t *tr_writer_steal(struct tr_writer *writer, size_t *ret_len);
/* Makes room for `bytes` more; 0 or -ENOMEM, remembered. */
int tr_writer_reserve(struct tr_writer *writer, size_t bytes);

static inline int tr_writer_error(const struct tr_writer *writer) {
        return writer->error;
}

void tr_write_nil(struct tr_writer *writer);
void tr_write_bool(struct tr_writer *writer, bool value);
void tr_write_int(struct tr_writer *writer, int64_t value);
void tr_write_uint(struct tr_writer *writer, uint64_t value);
void tr_write_float(struct tr_writer *writer, double value); /* always 64 bits */
void tr_write_str(struct tr_writer *writer, const char *data, size_t len);
static inline void tr_write_text(struct tr_writer *writer, const char *text) { /* NUL-terminated */
        tr_write_str(writer, text, strlen(text));
}
void tr_write_bin(struct tr_writer *writer, const void *data, size_t len);
void tr_write_array(struct tr_writer *writer, uint32_t count);
void tr_write_map(struct tr_writer *writer, uint32_t pairs);
void tr_write_ext(struct tr_writer *writer, int8_t type, const void *payload, size_t len);
/* Bytes that are MessagePack already. */
void tr_write_raw(struct tr_writer *writer, const void *data, size_t len);

/* str where the bytes are valid UTF-8, else bin: how a string goes to a peer. */
void tr_write_string(struct tr_writer *writer, const char *data, size_t len);
void tr_write_handle(struct tr_writer *writer, const struct tr_handle *handle);
void tr_write_message(struct tr_writer *writer, const struct tr_handle *handle, const char *handler,
                      size_t handler_len);
void tr_write_time(struct tr_writer *writer, const struct tr_time *time);

/* A float as text in the fewest digits that read back as the same number ("0.1", "1e+300", "inf", "nan"), with a point
 * in every locale. An integral one looks like an integer. Answers the length. */
#define TR_FLOAT_TEXT_MAX 40
size_t tr_float_format(double number, char text[static TR_FLOAT_TEXT_MAX]);

enum {
        TR_PLAIN_SAME_KEY = 3, /* a map has a key twice: as text, if not before */
};

/* Copies one value (not more) from the reader in the plain form that clients get
 * who did not ask for typed ones: a handle as its text, a message as [text,
 * handler], an instance as the map of its fields, a timestamp as RFC 3339 text,
 * map keys as text (integers in decimal, floats by tr_float_format, true and false),
 * and strings that are no UTF-8 as bin. 0, -ENOMEM, or TR_READ_* with reader and writer
 * as they were: TR_READ_INVALID also for what the scanner lets nobody send; or TR_PLAIN_SAME_KEY with the
 * writer as it was, and the reader before the value of that key. */
__attribute__((warn_unused_result)) int tr_write_plain(struct tr_writer *writer, struct tr_reader *reader);

#endif
