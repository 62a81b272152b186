/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text to MessagePack.
 *
 * jansson parses: it keeps integers and floats apart, refuses what is beyond 64 bits and what is no UTF-8, keeps the
 * order of members, and bounds nesting (2,048 levels: the daemon says of less than that that it is too deep, with the
 * place). A member that is there twice is refused here because a map with a key twice is refused there.
 */
#include "client/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int write_value(struct tr_writer *writer, const json_t *value);

static int write_base64(struct tr_writer *writer, const char *text, size_t size) {
        struct base64_decode_ctx context;
        size_t bytes = BASE64_DECODE_LENGTH(size);
        uint8_t *data = malloc(bytes + 1);
        bool is_good;

        if (!data)
                return -ENOMEM;
        base64_decode_init(&context);
        is_good = base64_decode_update(&context, &bytes, data, size, text) && base64_decode_final(&context);
        if (is_good)
                tr_write_bin(writer, data, bytes);
        free(data);
        return is_good ? 0 : -EINVAL;
}

static int write_named_float(struct tr_writer *writer, const char *text) {
        double value;

        if (!strcmp(text, "nan"))
                value = NAN;
        else if (!strcmp(text, "inf"))
                value = INFINITY;
        else if (!strcmp(text, "-inf"))
                value = -INFINITY;
        else
                return -EINVAL;
        tr_write_float(writer, value);
        return 0;
}

static int write_handle(struct tr_writer *writer, const char *text, size_t size) {
        struct tr_handle handle;

        if (!tr_handle_parse(text, size, &handle))
                return -EINVAL;
        tr_write_handle(writer, &handle);
        return 0;
}

/* True, with what became of it in *ret_result, where the object stands for something else. */
static bool write_stand_in(struct tr_writer *writer, const json_t *object, int *ret_result) {
        json_t *mutable = (json_t *)object; /* jansson's iterators are not const */
        void *iterator = json_object_iter(mutable);
        const char *key, *text;
        const json_t *value;
        size_t size;

        if (json_object_size(object) != 1 || !iterator)
                return false;
        key = json_object_iter_key(iterator);
        value = json_object_iter_value(iterator);
        if (strcmp(key, "$bin") && strcmp(key, "$float") && strcmp(key, "$handle"))
                return false;
        if (!json_is_string(value)) {
                *ret_result = -EINVAL;
                return true;
        }
        text = json_string_value(value);
        size = json_string_length(value);
        *ret_result = !strcmp(key, "$bin")     ? write_base64(writer, text, size)
                      : !strcmp(key, "$float") ? write_named_float(writer, text)
                                               : write_handle(writer, text, size);
        return true;
}

static int write_object(struct tr_writer *writer, const json_t *object) {
        json_t *mutable = (json_t *)object;
        int r;

        if (write_stand_in(writer, object, &r))
                return r;
        tr_write_map(writer, json_object_size(object));
        for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
                tr_write_text(writer, json_object_iter_key(at));
                r = write_value(writer, json_object_iter_value(at));
                if (r)
                        return r;
        }
        return 0;
}

static int write_array(struct tr_writer *writer, const json_t *array) {
        size_t count = json_array_size(array);

        tr_write_array(writer, count);
        for (size_t i = 0; i < count; i++) {
                int r = write_value(writer, json_array_get(array, i));

                if (r)
                        return r;
        }
        return 0;
}

static int write_value(struct tr_writer *writer, const json_t *value) {
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return write_object(writer, value);
        case JSON_ARRAY:
                return write_array(writer, value);
        case JSON_STRING:
                tr_write_str(writer, json_string_value(value), json_string_length(value));
                return 0;
        case JSON_INTEGER:
                tr_write_int(writer, json_integer_value(value));
                return 0;
        case JSON_REAL:
                tr_write_float(writer, json_real_value(value));
                return 0;
        case JSON_TRUE:
        case JSON_FALSE:
                tr_write_bool(writer, json_is_true(value));
                return 0;
        case JSON_NULL:
                tr_write_nil(writer);
                return 0;
        }
        return -EINVAL;
}

int tr_json_read(struct tr_writer *writer, const char *text, size_t size) {
        json_error_t error;
        json_t *value;
        int r;

        if (size > UINT32_MAX)
                return -EINVAL;
        value = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
        if (!value) {
                switch (json_error_code(&error)) {
                case json_error_out_of_memory:
                        return -ENOMEM;
                case json_error_numeric_overflow:
                        return -ERANGE;
                default:
                        return -EINVAL;
                }
        }
        r = write_value(writer, value);
        json_decref(value);
        return r ? r : tr_writer_error(writer);
}
