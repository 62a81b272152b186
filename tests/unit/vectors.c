/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors as bytes. Values are compared as their shortest encodings, of which each
 * value has one: JSON and every encoding of a value must come to the same bytes.
 */
#include "tests/unit/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void give_up(const char *what, const char *detail) {
        fprintf(stderr, "vectors: %s: %s\n", what, detail);
        abort();
}

json_t *vectors_load(const char *file) {
        char path[4096];
        json_error_t error;
        json_t *cases;

        snprintf(path, sizeof(path), "%s/proto/vectors/%s", TR_SRCDIR, file);
        cases = json_load_file(path, JSON_ALLOW_NUL, &error);
        if (!cases)
                give_up(path, error.text);
        if (!json_is_array(cases) || json_array_size(cases) == 0)
                give_up(path, "no cases");
        return cases;
}

json_t *vectors_get(json_t *object, const char *member) {
        json_t *value = json_object_get(object, member);

        if (!value)
                give_up("a member is missing", member);
        return value;
}

const char *vectors_text(json_t *object, const char *member) {
        const char *text = json_string_value(vectors_get(object, member));

        if (!text)
                give_up("a member is no string", member);
        return text;
}

static int hex_digit(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *at = digit ? strchr(digits, digit) : NULL;

        return at ? (int)(at - digits) : -1;
}

static void append_hex(struct tr_writer *writer, const char *digits) {
        for (const char *at = digits; *at; at += 2) {
                uint8_t byte;

                while (*at == ' ' || *at == '-')
                        at++;
                if (hex_digit(at[0]) < 0 || hex_digit(at[1]) < 0)
                        give_up("no hexadecimal digits", digits);
                byte = (uint8_t)(hex_digit(at[0]) << 4 | hex_digit(at[1]));
                tr_write_raw(writer, &byte, 1);
        }
}

/* Memory of exactly this size, so that a sanitizer sees a read beyond it. */
static uint8_t *take_bytes(struct tr_writer *writer, size_t *ret_len) {
        uint8_t *bytes = malloc(writer->len ? writer->len : 1);

        if (tr_writer_error(writer) || !bytes)
                give_up("bytes", "no memory");
        if (writer->len > 0)
                memcpy(bytes, writer->data, writer->len);
        *ret_len = writer->len;
        tr_writer_deinit(writer);
        return bytes;
}

uint8_t *vectors_hex(const char *digits, size_t *ret_len) {
        struct tr_writer writer = TR_WRITER_INIT;

        append_hex(&writer, digits);
        return take_bytes(&writer, ret_len);
}

uint8_t *vectors_bytes(const json_t *hex, size_t *ret_len) {
        struct tr_writer writer = TR_WRITER_INIT;
        json_t *item;
        size_t i;

        if (json_is_string(hex))
                return vectors_hex(json_string_value(hex), ret_len);
        json_array_foreach(hex, i, item) {
                json_int_t times = json_is_array(item) ? json_integer_value(json_array_get(item, 1)) : 1;
                const char *digits = json_string_value(json_is_array(item) ? json_array_get(item, 0) : item);

                for (; digits && times > 0; times--)
                        append_hex(&writer, digits);
        }
        return take_bytes(&writer, ret_len);
}

static uint8_t *base64(const char *text, size_t *ret_len) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        struct tr_writer writer = TR_WRITER_INIT;
        uint32_t bits = 0;
        int count = 0;

        for (; *text && *text != '='; text++) {
                const char *at = strchr(digits, *text);

                if (!at)
                        give_up("no base64", text);
                bits = bits << 6 | (uint32_t)(at - digits);
                count += 6;
                if (count >= 8) {
                        uint8_t byte = (uint8_t)(bits >> (count - 8));

                        tr_write_raw(&writer, &byte, 1);
                        count -= 8;
                }
        }
        return take_bytes(&writer, ret_len);
}

static void encode_base64(struct tr_writer *writer, const char *text, bool is_str) {
        size_t len;
        uint8_t *bytes = base64(text, &len);

        if (is_str)
                tr_write_str(writer, (const char *)bytes, len);
        else
                tr_write_bin(writer, bytes, len);
        free(bytes);
}

static struct tr_handle handle_of(const json_t *text) {
        struct tr_handle handle;

        if (!tr_handle_parse(json_string_value(text), json_string_length(text), &handle))
                give_up("no handle", json_string_value(text));
        return handle;
}

static void encode_float(struct tr_writer *writer, const char *text) {
        double number = text[0] == '-' ? -INFINITY : text[0] == 'i' ? INFINITY : NAN;

        tr_write_float(writer, number);
}

static void encode_message(struct tr_writer *writer, const json_t *pair) {
        struct tr_handle handle = handle_of(json_array_get(pair, 0));
        const json_t *handler = json_array_get(pair, 1);

        tr_write_message(writer, &handle, json_string_value(handler), json_string_length(handler));
}

static void encode_instance(struct tr_writer *writer, const json_t *pair) {
        struct tr_writer payload = TR_WRITER_INIT;

        vectors_encode(&payload, pair);
        tr_write_ext(writer, TR_EXT_INSTANCE, payload.data, payload.len);
        tr_writer_deinit(&payload);
}

static void encode_pairs(struct tr_writer *writer, const json_t *pairs) {
        json_t *pair;
        size_t i;

        tr_write_map(writer, (uint32_t)json_array_size(pairs));
        json_array_foreach(pairs, i, pair) {
                vectors_encode(writer, json_array_get(pair, 0));
                vectors_encode(writer, json_array_get(pair, 1));
        }
}

static void encode_special(struct tr_writer *writer, const char *name, const json_t *value) {
        struct tr_handle handle;
        struct tr_time time;

        if (strcmp(name, "$bin") == 0) {
                encode_base64(writer, json_string_value(value), false);
        } else if (strcmp(name, "$str") == 0) {
                encode_base64(writer, json_string_value(value), true);
        } else if (strcmp(name, "$float") == 0) {
                encode_float(writer, json_string_value(value));
        } else if (strcmp(name, "$handle") == 0) {
                handle = handle_of(value);
                tr_write_handle(writer, &handle);
        } else if (strcmp(name, "$message") == 0) {
                encode_message(writer, value);
        } else if (strcmp(name, "$instance") == 0) {
                encode_instance(writer, value);
        } else if (strcmp(name, "$timestamp") == 0) {
                time.sec = json_integer_value(json_array_get(value, 0));
                time.nsec = (uint32_t)json_integer_value(json_array_get(value, 1));
                tr_write_time(writer, &time);
        } else if (strcmp(name, "$map") == 0) {
                encode_pairs(writer, value);
        } else {
                give_up("an unknown kind of value", name);
        }
}

static void encode_object(struct tr_writer *writer, json_t *object) {
        void *first = json_object_iter(object);
        const char *key;
        json_t *value;

        if (json_object_size(object) == 1 && json_object_iter_key(first)[0] == '$') {
                encode_special(writer, json_object_iter_key(first), json_object_iter_value(first));
                return;
        }
        tr_write_map(writer, (uint32_t)json_object_size(object));
        json_object_foreach(object, key, value) {
                tr_write_text(writer, key);
                vectors_encode(writer, value);
        }
}

void vectors_encode(struct tr_writer *writer, const json_t *value) {
        json_t *item;
        size_t i;

        switch (json_typeof(value)) {
        case JSON_NULL:
                tr_write_nil(writer);
                break;
        case JSON_TRUE:
        case JSON_FALSE:
                tr_write_bool(writer, json_is_true(value));
                break;
        case JSON_INTEGER:
                tr_write_int(writer, json_integer_value(value));
                break;
        case JSON_REAL:
                tr_write_float(writer, json_real_value(value));
                break;
        case JSON_STRING:
                tr_write_str(writer, json_string_value(value), json_string_length(value));
                break;
        case JSON_ARRAY:
                tr_write_array(writer, (uint32_t)json_array_size(value));
                json_array_foreach(value, i, item)
                        vectors_encode(writer, item);
                break;
        case JSON_OBJECT:
                encode_object(writer, (json_t *)value);
                break;
        }
}

static void recode_ext(struct tr_writer *writer, const struct tr_token *token) {
        struct tr_handle handle;
        struct tr_time time;
        const char *handler;
        size_t len;

        if (token->ext == TR_EXT_TIMESTAMP && tr_time_decode(token->data, token->len, &time))
                tr_write_time(writer, &time);
        else if (token->ext == TR_EXT_MESSAGE && tr_message_decode(token->data, token->len, &handle, &handler, &len))
                tr_write_message(writer, &handle, handler, len);
        else
                tr_write_ext(writer, token->ext, token->data, token->len);
}

int vectors_recode(struct tr_writer *writer, struct tr_reader *reader) {
        for (uint64_t left = 1; left > 0; left--) {
                struct tr_token token;
                int r;

                r = tr_read(reader, &token);
                if (r)
                        return r;
                switch (token.type) {
                case TR_NIL:
                        tr_write_nil(writer);
                        break;
                case TR_BOOL:
                        tr_write_bool(writer, token.boolean);
                        break;
                case TR_INT:
                        tr_write_int(writer, token.integer);
                        break;
                case TR_UINT:
                        tr_write_uint(writer, token.unsigned_);
                        break;
                case TR_FLOAT:
                        tr_write_float(writer, token.number);
                        break;
                case TR_STR:
                        tr_write_str(writer, (const char *)token.data, token.len);
                        break;
                case TR_BIN:
                        tr_write_bin(writer, token.data, token.len);
                        break;
                case TR_ARRAY:
                        tr_write_array(writer, token.count);
                        left += token.count;
                        break;
                case TR_MAP:
                        tr_write_map(writer, token.count);
                        left += 2 * (uint64_t)token.count;
                        break;
                case TR_EXT:
                        recode_ext(writer, &token);
                        break;
                }
        }
        return 0;
}
