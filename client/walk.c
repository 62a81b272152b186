/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going into arrays and maps.
 *
 * An element is a piece of its container's bytes. Passing over one needs no recursion, and a count that promises more
 * than there are bytes ends with -EBADMSG at the element that is not there.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "client/troupe.h"
#include "proto/value.h"

static int read_container(const struct troupe_value *value, struct tr_token *ret_token, struct tr_reader *ret_reader) {
        *ret_reader = tr_reader(value ? value->data : NULL, value && value->data ? value->size : 0);
        if (tr_read(ret_reader, ret_token))
                return -EBADMSG;
        return ret_token->type == TR_ARRAY || ret_token->type == TR_MAP ? 0 : -EINVAL;
}

int troupe_value_count(const struct troupe_value *value, size_t *ret_count) {
        struct tr_reader reader;
        struct tr_token token;
        int r = read_container(value, &token, &reader);

        if (!r)
                *ret_count = token.count;
        return r;
}

int troupe_walk_begin(struct troupe_walk *walk, const struct troupe_value *value) {
        struct tr_reader reader;
        struct tr_token token;
        int r = read_container(value, &token, &reader);

        if (!r)
                *walk = (struct troupe_walk){ reader.at, reader.end, token.count, token.type == TR_MAP };
        return r;
}

static int take(struct tr_reader *reader, struct troupe_value *ret_value) {
        const uint8_t *start = reader->at;

        if (tr_read_skip(reader))
                return -EBADMSG;
        *ret_value = (struct troupe_value){ start, reader->at - start };
        return 0;
}

int troupe_walk_next(struct troupe_walk *walk, struct troupe_value *ret_key, struct troupe_value *ret_element) {
        struct tr_reader reader = { walk->at, walk->end };
        struct troupe_value key = { 0 }, element;
        int r = 0;

        if (!walk->left)
                return 0;
        if (walk->is_map)
                r = take(&reader, &key);
        if (!r)
                r = take(&reader, &element);
        if (r)
                return r;
        walk->at = reader.at;
        walk->left--;
        if (ret_key)
                *ret_key = key;
        *ret_element = element;
        return 1;
}

int troupe_value_at(const struct troupe_value *array, size_t index, struct troupe_value *ret_element) {
        struct troupe_value element;
        struct troupe_walk walk;
        int r = troupe_walk_begin(&walk, array);

        if (r)
                return r;
        if (walk.is_map)
                return -EINVAL;
        if (index >= walk.left)
                return -ENOENT;
        do
                r = troupe_walk_next(&walk, NULL, &element);
        while (r > 0 && index--);
        if (r > 0)
                *ret_element = element;
        return r < 0 ? r : 0;
}

int troupe_value_get(const struct troupe_value *map, const char *key, struct troupe_value *ret_element) {
        struct troupe_value at, element;
        size_t len = strlen(key), at_len;
        struct troupe_walk walk;
        const char *text;
        int r = troupe_walk_begin(&walk, map);

        if (r)
                return r;
        if (!walk.is_map)
                return -EINVAL;
        while ((r = troupe_walk_next(&walk, &at, &element)) > 0) {
                if (troupe_value_string(&at, &text, &at_len) || at_len != len || memcmp(text, key, len))
                        continue;
                *ret_element = element;
                return 0;
        }
        return r < 0 ? r : -ENOENT;
}
