/* SPDX-License-Identifier: Apache-2.0 */
/* Recursion is bounded by the levels that a value may have at all. */
#include "config.h"

#include "daemon/contract/unpack.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/contract/pointer.h"
#include "proto/limits.h"
#include "proto/utf8.h"
#include "proto/value.h"

struct reading {
        struct tr_reader reader;
        uint32_t count; /* of values so far */
        char **path;
        const char **reason;
};

static int none(struct reading *reading, const struct tr_step *at, const char *reason) {
        char *path = tr_pointer_text(at);

        if (!path)
                return tr_error_origin(-ENOMEM);
        *reading->path = path;
        *reading->reason = reason;
        return TR_UNPACK_NO_JSON;
}

static int read_value(struct reading *reading, const struct tr_step *at, unsigned int depth, json_t **ret_json);

/* A member's key and value. */
static int read_pair(struct reading *reading, const struct tr_step *at, unsigned int depth, json_t *object) {
        TR_AUTO_FREE char *key = NULL;
        struct tr_step inner = { .parent = at };
        struct tr_token token;
        json_t *value;
        int r;

        if (tr_read(&reading->reader, &token) != 0 || !tr_token_is_text(&token) ||
            !tr_utf8_is_valid(token.data, token.len))
                return none(reading, at, "has a key that is no text");
        inner.key = (const char *)token.data;
        inner.key_len = token.len;
        if (memchr(token.data, '\0', token.len))
                return none(reading, &inner, "has a NUL in its key");
        key = strndup(inner.key, token.len);
        if (!key)
                return tr_error_origin(-ENOMEM);
        if (json_object_get(object, key))
                return none(reading, &inner, "is there twice");
        r = read_value(reading, &inner, depth, &value);
        if (r != 0)
                return r;
        return json_object_set_new_nocheck(object, key, value) < 0 ? tr_error_origin(-ENOMEM) : 0;
}

static int read_element(struct reading *reading, const struct tr_step *at, size_t index, unsigned int depth,
                        json_t *array) {
        struct tr_step inner = { .parent = at, .index = index };
        json_t *value;
        int r = read_value(reading, &inner, depth, &value);

        if (r != 0)
                return r;
        return json_array_append_new(array, value) < 0 ? tr_error_origin(-ENOMEM) : 0;
}

static int read_container(struct reading *reading, const struct tr_step *at, const struct tr_token *head,
                          unsigned int depth, json_t **ret_json) {
        bool is_map = head->type == TR_MAP;
        json_t *json;
        int r = 0;

        if (depth == TR_NESTING_MAX)
                return none(reading, at, "is nested too deep");
        json = is_map ? json_object() : json_array();
        if (!json)
                return tr_error_origin(-ENOMEM);
        for (uint32_t i = 0; r == 0 && i < head->count; i++)
                r = is_map ? read_pair(reading, at, depth + 1, json) : read_element(reading, at, i, depth + 1, json);
        if (r != 0) {
                json_decref(json);
                return r;
        }
        *ret_json = json;
        return 0;
}

static int read_value(struct reading *reading, const struct tr_step *at, unsigned int depth, json_t **ret_json) {
        struct tr_token token;
        json_t *json = NULL;

        if (tr_read(&reading->reader, &token) != 0)
                return none(reading, at, "is not whole");
        if (++reading->count > TR_UNPACK_VALUES_MAX)
                return none(reading, at, "is one value too many");
        switch (token.type) {
        case TR_ARRAY:
        case TR_MAP:
                return read_container(reading, at, &token, depth, ret_json);
        case TR_STR:
        case TR_BIN:
                if (!tr_utf8_is_valid(token.data, token.len))
                        return none(reading, at, "is bytes, and no text");
                json = json_stringn_nocheck((const char *)token.data, token.len);
                break;
        case TR_INT:
                json = json_integer(token.integer);
                break;
        case TR_FLOAT:
                if (!isfinite(token.number))
                        return none(reading, at, "is no finite number");
                json = json_real(token.number);
                break;
        case TR_BOOL:
                json = json_boolean(token.boolean);
                break;
        case TR_NIL:
                json = json_null();
                break;
        case TR_UINT:
                return none(reading, at, "is an integer above 2^63-1");
        case TR_EXT:
                return none(reading, at, "is a value that JSON does not have");
        }
        if (!json)
                return tr_error_origin(-ENOMEM);
        *ret_json = json;
        return 0;
}

int tr_json_unpack(const void *value, size_t bytes, json_t **ret_json, char **ret_path, const char **ret_reason) {
        struct reading reading = { .reader = tr_reader(value, bytes), .path = ret_path, .reason = ret_reason };

        return read_value(&reading, NULL, 0, ret_json);
}
