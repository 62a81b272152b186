/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options come in structs that begin with their size, and that only ever grow at their end. A program built with an
 * older troupe.h passes less: the rest is 0, which means "as before". One built with a newer one may pass more, as
 * long as it does not use what this library does not know.
 */
#include "client/options.h"

#include <errno.h>
#include <string.h>

int tr_options_copy(void *ret_options, size_t own_size, size_t first_size, const void *given) {
        size_t size;

        memset(ret_options, 0, own_size);
        if (!given)
                return 0;
        memcpy(&size, given, sizeof(size));
        if (size < first_size)
                return -EINVAL;
        for (size_t i = own_size; i < size; i++)
                if (((const uint8_t *)given)[i])
                        return -E2BIG;
        memcpy(ret_options, given, size < own_size ? size : own_size);
        return 0;
}

struct tr_map tr_map_begin(struct tr_writer *out) {
        struct tr_map map = { .out = out, .head = out->len };

        tr_write_map(out, 0);
        return map;
}

static void write_key(struct tr_map *map, const char *key) {
        map->pairs++;
        tr_write_text(map->out, key);
}

void tr_map_text(struct tr_map *map, const char *key, const char *text) {
        if (!text)
                return;
        write_key(map, key);
        tr_write_text(map->out, text);
}

void tr_map_flag(struct tr_map *map, const char *key, bool is_set) {
        if (!is_set)
                return;
        write_key(map, key);
        tr_write_bool(map->out, true);
}

int tr_map_number(struct tr_map *map, const char *key, uint64_t number) {
        if (number > INT64_MAX)
                return -EINVAL;
        if (!number)
                return 0;
        write_key(map, key);
        tr_write_int(map->out, number);
        return 0;
}

void tr_map_array(struct tr_map *map, const char *key, uint32_t count) {
        write_key(map, key);
        tr_write_array(map->out, count);
}

/* The head of so small a map is one byte, whose lower half is its count. */
void tr_map_end(struct tr_map *map) {
        if (!tr_writer_error(map->out))
                map->out->data[map->head] |= map->pairs;
}
