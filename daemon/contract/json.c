/* SPDX-License-Identifier: Apache-2.0 */
/* Recursion is bounded by the levels that a value may have at all. */
#include "daemon/contract/json.h"

static int write_value(struct tr_writer *writer, json_t *value, unsigned int depth);

static int write_object(struct tr_writer *writer, json_t *object, unsigned int depth) {
        const char *key;
        json_t *value;
        int r = 0;

        tr_write_map(writer, (uint32_t)json_object_size(object));
        json_object_foreach(object, key, value) {
                tr_write_text(writer, key);
                r = write_value(writer, value, depth);
                if (r != 0)
                        break;
        }
        return r;
}

static int write_array(struct tr_writer *writer, json_t *array, unsigned int depth) {
        json_t *value;
        size_t i;
        int r = 0;

        tr_write_array(writer, (uint32_t)json_array_size(array));
        json_array_foreach(array, i, value) {
                r = write_value(writer, value, depth);
                if (r != 0)
                        break;
        }
        return r;
}

static int write_value(struct tr_writer *writer, json_t *value, unsigned int depth) {
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return depth == TR_NESTING_MAX ? TR_JSON_TOO_DEEP : write_object(writer, value, depth + 1);
        case JSON_ARRAY:
                return depth == TR_NESTING_MAX ? TR_JSON_TOO_DEEP : write_array(writer, value, depth + 1);
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
                break;
        }
        tr_write_nil(writer);
        return 0;
}

int tr_json_pack(struct tr_writer *writer, json_t *value) {
        return write_value(writer, value, 0);
}
