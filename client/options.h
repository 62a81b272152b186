/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CLIENT_OPTIONS_H
#define TR_CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/value.h"

/*
 * A method's options: from the program's struct, and into a request's map.
 */

/* Where a member of a struct of options ends: what the struct's first version ended with is its least size. */
#define TR_SIZE_TO(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/*
 * Copies the program's struct, which begins with its size, into the library's. NULL is all 0. 0, -EINVAL (no size, or
 * less than its first version had), or -E2BIG (something is set that is not known here).
 */
__attribute__((warn_unused_result)) int tr_options_copy(void *ret_options, size_t own_size, size_t first_size,
                                                        const void *given);

/* A map whose pairs are counted as they are written: fewer than sixteen of them. */
struct tr_map {
        struct tr_writer *out;
        size_t head;
        uint8_t pairs;
};

struct tr_map tr_map_begin(struct tr_writer *out);
/* NULL is absent. */
void tr_map_text(struct tr_map *map, const char *key, const char *text);
/* False is absent. */
void tr_map_flag(struct tr_map *map, const char *key, bool is_set);
/* 0 is absent. -EINVAL where it is more than the protocol's integers hold. */
__attribute__((warn_unused_result)) int tr_map_number(struct tr_map *map, const char *key, uint64_t number);
/* An array: who calls writes that many elements behind it. */
void tr_map_array(struct tr_map *map, const char *key, uint32_t count);
void tr_map_end(struct tr_map *map);

#endif
