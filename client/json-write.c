/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack to JSON text.
 *
 * Written out here rather than through a library's tree: integers stay exact (a library's may be a double), floats
 * stay floats (3.0 is written 3.0), and nothing is built up only to be printed. Text without spaces. What JSON cannot
 * hold is written as an object with one member that begins with a dollar. A map key that is no string becomes its
 * text; one that is no UTF-8 becomes "$bin:" and its base64, so that two keys never become one.
 */
#include "client/json.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/utf8.h"

/* The protocol's levels; an instance's fields lie in a payload of their own, which makes two of each. */
#define DEPTH_MAX (2 * (TR_NESTING_MAX + TR_FRAME_WRAPPING))

static int write_value(struct tr_writer *text, struct tr_reader *reader, unsigned int depth);

size_t tr_json_float(double value, char text[static TR_JSON_FLOAT_MAX]) {
        size_t from, to, len;

        /* What has a text of up to 15 digits is written with just those by %.15g, unless it has fewer bits than a
         * double. */
        for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
                len = snprintf(text, TR_JSON_FLOAT_MAX, "%.*g", digits, value);
                if (strtod(text, NULL) == value)
                        break;
        }

        /* The program's locale may have another decimal point, of one byte or several. */
        for (from = to = 0; from < len; from++) {
                if (strchr("0123456789+-e", text[from]))
                        text[to++] = text[from];
                else if (!to || text[to - 1] != '.')
                        text[to++] = '.';
        }
        text[to] = '\0';
        if (!strpbrk(text, ".e")) {
                memcpy(text + to, ".0", sizeof(".0"));
                to += 2;
        }
        return to;
}

static void write_float(struct tr_writer *text, double value) {
        char number[TR_JSON_FLOAT_MAX];

        if (isnan(value))
                tr_write_raw(text, "{\"$float\":\"nan\"}", 16);
        else if (isinf(value))
                tr_write_raw(text, value < 0 ? "{\"$float\":\"-inf\"}" : "{\"$float\":\"inf\"}", value < 0 ? 17 : 16);
        else
                tr_write_raw(text, number, tr_json_float(value, number));
}

static void write_escape(struct tr_writer *text, uint8_t c) {
        static const char letters[0x20] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
        char escape[8];

        if (c >= 0x20)
                snprintf(escape, sizeof(escape), "\\%c", c);
        else if (letters[c])
                snprintf(escape, sizeof(escape), "\\%c", letters[c]);
        else
                snprintf(escape, sizeof(escape), "\\u%04x", c);
        tr_write_raw(text, escape, strlen(escape));
}

/* The inside of a string, which is valid UTF-8. */
static void write_escaped(struct tr_writer *text, const uint8_t *data, size_t len) {
        size_t plain = 0;

        for (size_t i = 0; i < len; i++) {
                if (data[i] >= 0x20 && data[i] != '"' && data[i] != '\\')
                        continue;
                tr_write_raw(text, data + plain, i - plain);
                write_escape(text, data[i]);
                plain = i + 1;
        }
        tr_write_raw(text, data + plain, len - plain);
}

static void write_quoted(struct tr_writer *text, const void *data, size_t len) {
        tr_write_raw(text, "\"", 1);
        write_escaped(text, data, len);
        tr_write_raw(text, "\"", 1);
}

static int write_base64(struct tr_writer *text, const uint8_t *data, size_t len) {
        size_t size = BASE64_ENCODE_RAW_LENGTH(len);
        int r = tr_writer_reserve(text, size);

        if (r)
                return r;
        base64_encode_raw((char *)text->data + text->len, len, data);
        text->len += size;
        return 0;
}

static int write_bin(struct tr_writer *text, const uint8_t *data, size_t len) {
        int r;

        tr_write_raw(text, "{\"$bin\":\"", 9);
        r = write_base64(text, data, len);
        tr_write_raw(text, "\"}", 2);
        return r;
}

static int write_string(struct tr_writer *text, const void *data, size_t len) {
        if (!tr_utf8_is_valid(data, len))
                return write_bin(text, data, len);
        write_quoted(text, data, len);
        return 0;
}

static void write_handle(struct tr_writer *text, const struct tr_handle *handle) {
        char name[TR_HANDLE_TEXT_MAX + 1];

        tr_write_raw(text, "{\"$handle\":\"", 12);
        tr_write_raw(text, name, tr_handle_format(handle, name));
        tr_write_raw(text, "\"}", 2);
}

static int write_message(struct tr_writer *text, const struct tr_token *token) {
        struct tr_handle handle;
        const char *handler;
        size_t len;
        int r;

        if (!tr_message_decode(token->data, token->len, &handle, &handler, &len))
                return -EBADMSG;
        tr_write_raw(text, "[", 1);
        write_handle(text, &handle);
        tr_write_raw(text, ",", 1);
        r = write_string(text, handler, len);
        tr_write_raw(text, "]", 1);
        return r;
}

static int write_instance(struct tr_writer *text, const struct tr_token *token, unsigned int depth) {
        struct tr_reader reader = tr_reader(token->data, token->len);
        struct tr_token pair;

        if (tr_read(&reader, &pair) || pair.type != TR_ARRAY || pair.count != 2 || tr_read_skip(&reader))
                return -EBADMSG;
        return write_value(text, &reader, depth + 1);
}

static int write_ext(struct tr_writer *text, const struct tr_token *token, unsigned int depth) {
        struct tr_handle handle;
        struct tr_time time;
        char stamp[TR_TIME_TEXT_MAX];

        switch (token->ext) {
        case TR_EXT_HANDLE:
                if (token->len != TR_HANDLE_BYTES)
                        return -EBADMSG;
                memcpy(handle.bytes, token->data, TR_HANDLE_BYTES);
                write_handle(text, &handle);
                return 0;
        case TR_EXT_MESSAGE:
                return write_message(text, token);
        case TR_EXT_INSTANCE:
                return write_instance(text, token, depth);
        case TR_EXT_TIMESTAMP:
                if (!tr_time_decode(token->data, token->len, &time))
                        return -EBADMSG;
                write_quoted(text, stamp, tr_time_format(&time, stamp));
                return 0;
        default:
                return -EBADMSG;
        }
}

static void write_int(struct tr_writer *text, const struct tr_token *token) {
        char number[24];

        if (token->type == TR_UINT)
                snprintf(number, sizeof(number), "%" PRIu64, token->unsigned_);
        else
                snprintf(number, sizeof(number), "%" PRId64, token->integer);
        tr_write_raw(text, number, strlen(number));
}

/* The text of a key, without its quotes. */
static int write_key_text(struct tr_writer *text, const struct tr_token *key) {
        switch (key->type) {
        case TR_STR:
        case TR_BIN:
                if (tr_utf8_is_valid(key->data, key->len)) {
                        write_escaped(text, key->data, key->len);
                        return 0;
                }
                tr_write_raw(text, "$bin:", 5);
                return write_base64(text, key->data, key->len);
        case TR_BOOL:
                tr_write_raw(text, key->boolean ? "true" : "false", key->boolean ? 4 : 5);
                return 0;
        case TR_INT:
        case TR_UINT:
                write_int(text, key);
                return 0;
        case TR_FLOAT:
                if (isnan(key->number))
                        return -EBADMSG;
                if (isinf(key->number))
                        tr_write_raw(text, key->number < 0 ? "-inf" : "inf", key->number < 0 ? 4 : 3);
                else
                        write_float(text, key->number);
                return 0;
        default:
                return -EBADMSG;
        }
}

static int write_array(struct tr_writer *text, struct tr_reader *reader, uint32_t count, unsigned int depth) {
        tr_write_raw(text, "[", 1);
        for (uint32_t i = 0; i < count; i++) {
                int r;

                if (i)
                        tr_write_raw(text, ",", 1);
                r = write_value(text, reader, depth + 1);
                if (r)
                        return r;
        }
        tr_write_raw(text, "]", 1);
        return 0;
}

static int write_map(struct tr_writer *text, struct tr_reader *reader, uint32_t pairs, unsigned int depth) {
        tr_write_raw(text, "{", 1);
        for (uint32_t i = 0; i < pairs; i++) {
                struct tr_token key;
                int r;

                if (tr_read(reader, &key))
                        return -EBADMSG;
                tr_write_raw(text, i ? ",\"" : "\"", i ? 2 : 1);
                r = write_key_text(text, &key);
                tr_write_raw(text, "\":", 2);
                if (!r)
                        r = write_value(text, reader, depth + 1);
                if (r)
                        return r;
        }
        tr_write_raw(text, "}", 1);
        return 0;
}

static int write_value(struct tr_writer *text, struct tr_reader *reader, unsigned int depth) {
        struct tr_token token;

        if (depth > DEPTH_MAX || tr_read(reader, &token))
                return -EBADMSG;
        switch (token.type) {
        case TR_NIL:
                tr_write_raw(text, "null", 4);
                return 0;
        case TR_BOOL:
                tr_write_raw(text, token.boolean ? "true" : "false", token.boolean ? 4 : 5);
                return 0;
        case TR_INT:
        case TR_UINT:
                write_int(text, &token);
                return 0;
        case TR_FLOAT:
                write_float(text, token.number);
                return 0;
        case TR_STR:
                return write_string(text, token.data, token.len);
        case TR_BIN:
                return write_bin(text, token.data, token.len);
        case TR_ARRAY:
                return write_array(text, reader, token.count, depth);
        case TR_MAP:
                return write_map(text, reader, token.count, depth);
        case TR_EXT:
                return write_ext(text, &token, depth);
        }
        return -EBADMSG;
}

int tr_json_write(struct tr_writer *text, const void *data, size_t size) {
        struct tr_reader reader = tr_reader(data, size);
        int r = write_value(text, &reader, 0);

        if (!r && reader.at != reader.end)
                r = -EBADMSG;
        return r ? r : tr_writer_error(text);
}
