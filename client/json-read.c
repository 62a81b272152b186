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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct converter {
        struct tr_writer *writer;
        const char *problem; /* of what is JSON and yet no value */
};

static int write_value(struct converter *converter, const json_t *value);

static int refuse(struct converter *converter, const char *problem) {
        converter->problem = problem;
        return -EINVAL;
}

static int write_base64(struct converter *converter, const char *text, size_t size) {
        struct base64_decode_ctx context;
        size_t bytes = BASE64_DECODE_LENGTH(size);
        uint8_t *data = malloc(bytes + 1);
        bool is_good;

        if (!data)
                return -ENOMEM;
        base64_decode_init(&context);
        is_good = base64_decode_update(&context, &bytes, data, size, text) && base64_decode_final(&context);
        if (is_good)
                tr_write_bin(converter->writer, data, bytes);
        free(data);
        return is_good ? 0 : refuse(converter, "what stands behind $bin is not base64");
}

static int write_named_float(struct converter *converter, const char *text) {
        double value;

        if (!strcmp(text, "nan"))
                value = NAN;
        else if (!strcmp(text, "inf"))
                value = INFINITY;
        else if (!strcmp(text, "-inf"))
                value = -INFINITY;
        else
                return refuse(converter, "what stands behind $float is none of nan, inf and -inf");
        tr_write_float(converter->writer, value);
        return 0;
}

static int write_handle(struct converter *converter, const char *text, size_t size) {
        struct tr_handle handle;

        if (!tr_handle_parse(text, size, &handle))
                return refuse(converter, "what stands behind $handle is not the text of one");
        tr_write_handle(converter->writer, &handle);
        return 0;
}

/* True, with what became of it in *ret_result, where the object stands for something else. */
static bool write_stand_in(struct converter *converter, const json_t *object, int *ret_result) {
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
                *ret_result = refuse(converter, "what stands behind $bin, $float or $handle is no string");
                return true;
        }
        text = json_string_value(value);
        size = json_string_length(value);
        *ret_result = !strcmp(key, "$bin")     ? write_base64(converter, text, size)
                      : !strcmp(key, "$float") ? write_named_float(converter, text)
                                               : write_handle(converter, text, size);
        return true;
}

static int write_object(struct converter *converter, const json_t *object) {
        json_t *mutable = (json_t *)object;
        int r;

        if (write_stand_in(converter, object, &r))
                return r;
        tr_write_map(converter->writer, json_object_size(object));
        for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at)) {
                tr_write_text(converter->writer, json_object_iter_key(at));
                r = write_value(converter, json_object_iter_value(at));
                if (r)
                        return r;
        }
        return 0;
}

static int write_array(struct converter *converter, const json_t *array) {
        size_t count = json_array_size(array);

        tr_write_array(converter->writer, count);
        for (size_t i = 0; i < count; i++) {
                int r = write_value(converter, json_array_get(array, i));

                if (r)
                        return r;
        }
        return 0;
}

static int write_value(struct converter *converter, const json_t *value) {
        struct tr_writer *writer = converter->writer;

        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return write_object(converter, value);
        case JSON_ARRAY:
                return write_array(converter, value);
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

static json_t *parse(const char *text, size_t size, json_error_t *ret_error) {
        return json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, ret_error);
}

int tr_json_read(struct tr_writer *writer, const char *text, size_t size) {
        struct converter converter = { .writer = writer };
        json_error_t error;
        json_t *value;
        int r;

        if (size > UINT32_MAX)
                return -EINVAL;
        value = parse(text, size, &error);
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
        r = write_value(&converter, value);
        json_decref(value);
        return r ? r : tr_writer_error(writer);
}

bool tr_json_problem(const char *text, size_t size, char problem[static TR_JSON_PROBLEM_MAX]) {
        struct tr_writer writer = TR_WRITER_INIT;
        struct converter converter = { .writer = &writer };
        json_error_t error;
        json_t *value = parse(text, size, &error);

        *problem = 0;
        if (!value && json_error_code(&error) == json_error_numeric_overflow)
                converter.problem = "a number does not fit in 64 bits";
        else if (!value)
                snprintf(problem, TR_JSON_PROBLEM_MAX, "that is not JSON: %s", error.text);
        else
                (void)write_value(&converter, value);
        if (converter.problem)
                snprintf(problem, TR_JSON_PROBLEM_MAX, "%s", converter.problem);
        json_decref(value);
        tr_writer_deinit(&writer);
        return *problem;
}
