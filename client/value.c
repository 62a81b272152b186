/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values: a type on top of borrowed MessagePack bytes.
 *
 * Nothing is decoded before it is asked for, and nothing is built: a program that wants one member of a large answer
 * pays for passing over the others. Every function trusts no more than the size that it is given.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/json.h"
#include "client/params.h"
#include "client/troupe.h"
#include "proto/value.h"

/* The value's head, with the reader behind it where the caller wants one. */
static int read_head(const struct troupe_value *value, struct tr_token *ret_token, struct tr_reader *ret_reader) {
        struct tr_reader reader;

        if (!value || !value->data)
                return -EBADMSG;
        reader = tr_reader(value->data, value->size);
        if (tr_read(&reader, ret_token))
                return -EBADMSG;
        if (ret_reader)
                *ret_reader = reader;
        return 0;
}

static int read_ext(const struct troupe_value *value, int8_t ext, struct tr_token *ret_token) {
        int r = read_head(value, ret_token, NULL);

        return r ? r : ret_token->type == TR_EXT && ret_token->ext == ext ? 0 : -EINVAL;
}

int troupe_value_type(const struct troupe_value *value) {
        static const enum troupe_type types[] = {
                [TR_NIL] = TROUPE_NIL,   [TR_BOOL] = TROUPE_BOOL,   [TR_INT] = TROUPE_INT,
                [TR_UINT] = TROUPE_INT,  [TR_FLOAT] = TROUPE_FLOAT, [TR_STR] = TROUPE_STRING,
                [TR_BIN] = TROUPE_BYTES, [TR_ARRAY] = TROUPE_ARRAY, [TR_MAP] = TROUPE_MAP,
        };
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (token.type != TR_EXT)
                return types[token.type];
        switch (token.ext) {
        case TR_EXT_HANDLE:
                return TROUPE_HANDLE;
        case TR_EXT_MESSAGE:
                return TROUPE_MESSAGE;
        case TR_EXT_INSTANCE:
                return TROUPE_INSTANCE;
        case TR_EXT_TIMESTAMP:
                return TROUPE_TIMESTAMP;
        default:
                return -EBADMSG;
        }
}

int troupe_value_bool(const struct troupe_value *value, int *ret_bool) {
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (token.type != TR_BOOL)
                return -EINVAL;
        *ret_bool = token.boolean;
        return 0;
}

int troupe_value_int(const struct troupe_value *value, int64_t *ret_int) {
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (token.type == TR_UINT)
                return -ERANGE;
        return tr_token_integer(&token, ret_int) ? 0 : -EINVAL;
}

int troupe_value_float(const struct troupe_value *value, double *ret_float) {
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (token.type == TR_FLOAT)
                *ret_float = token.number;
        else if (token.type == TR_INT)
                *ret_float = token.integer;
        else if (token.type == TR_UINT)
                *ret_float = token.unsigned_;
        else
                return -EINVAL;
        return 0;
}

int troupe_value_string(const struct troupe_value *value, const char **ret_data, size_t *ret_length) {
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (!tr_token_is_text(&token))
                return -EINVAL;
        *ret_data = (const char *)token.data;
        *ret_length = token.len;
        return 0;
}

int troupe_value_handle(const struct troupe_value *value, char ret_handle[TROUPE_HANDLE_SIZE]) {
        struct tr_handle handle;
        struct tr_token token;
        int r = read_head(value, &token, NULL);

        if (r)
                return r;
        if (token.type == TR_EXT && token.ext == TR_EXT_HANDLE && token.len == TR_HANDLE_BYTES)
                memcpy(handle.bytes, token.data, TR_HANDLE_BYTES);
        else if (!tr_token_is_text(&token) || !tr_handle_parse((const char *)token.data, token.len, &handle))
                return -EINVAL;
        tr_handle_format(&handle, ret_handle);
        return 0;
}

int troupe_value_message(const struct troupe_value *value, char ret_handle[TROUPE_HANDLE_SIZE],
                         const char **ret_handler, size_t *ret_handler_length) {
        struct tr_handle handle;
        struct tr_token token;
        int r = read_ext(value, TR_EXT_MESSAGE, &token);

        if (r)
                return r;
        if (!tr_message_decode(token.data, token.len, &handle, ret_handler, ret_handler_length))
                return -EBADMSG;
        tr_handle_format(&handle, ret_handle);
        return 0;
}

int troupe_value_instance(const struct troupe_value *value, const char **ret_class, size_t *ret_class_length,
                          struct troupe_value *ret_fields) {
        struct tr_token token, pair, name;
        struct tr_reader reader;
        int r = read_ext(value, TR_EXT_INSTANCE, &token);

        if (r)
                return r;
        reader = tr_reader(token.data, token.len);
        if (tr_read(&reader, &pair) || pair.type != TR_ARRAY || pair.count != 2 || tr_read(&reader, &name) ||
            !tr_token_is_text(&name))
                return -EBADMSG;
        *ret_class = (const char *)name.data;
        *ret_class_length = name.len;
        *ret_fields = (struct troupe_value){ reader.at, reader.end - reader.at };
        return 0;
}

int troupe_value_timestamp(const struct troupe_value *value, int64_t *ret_seconds, uint32_t *ret_nanoseconds) {
        struct tr_token token;
        struct tr_time time;
        int r = read_ext(value, TR_EXT_TIMESTAMP, &token);

        if (r)
                return r;
        if (!tr_time_decode(token.data, token.len, &time))
                return -EBADMSG;
        *ret_seconds = time.sec;
        *ret_nanoseconds = time.nsec;
        return 0;
}

int troupe_value_json(const struct troupe_value *value, char **ret_text, size_t *ret_length) {
        struct tr_writer text = TR_WRITER_INIT;
        size_t length;
        int r;

        r = value && value->data ? tr_json_write(&text, value->data, value->size) : -EBADMSG;
        tr_write_raw(&text, "", 1);
        if (!r)
                r = tr_writer_error(&text);
        if (r) {
                tr_writer_deinit(&text);
                return r;
        }
        *ret_text = (char *)tr_writer_steal(&text, &length);
        if (ret_length)
                *ret_length = length - 1;
        return 0;
}

int troupe_value_dup(const struct troupe_value *value, struct troupe_value *ret_copy) {
        void *data = malloc(value->size ? value->size : 1);

        if (!data)
                return -ENOMEM;
        if (value->size)
                memcpy(data, value->data, value->size);
        *ret_copy = (struct troupe_value){ data, value->size };
        return 0;
}

int troupe_pack(struct troupe_value *ret_value, const char *format, ...) {
        struct tr_writer writer = TR_WRITER_INIT;
        uint32_t count;
        va_list args;
        size_t size;
        int r;

        va_start(args, format);
        r = tr_params_write(&writer, format, args, &count);
        va_end(args);
        if (!r && count != 1)
                r = -EINVAL;
        if (r) {
                tr_writer_deinit(&writer);
                return r;
        }
        ret_value->data = tr_writer_steal(&writer, &size);
        ret_value->size = size;
        return 0;
}

void troupe_value_free(struct troupe_value *value) {
        if (!value)
                return;
        free((void *)value->data);
        *value = (struct troupe_value){ 0 };
}
