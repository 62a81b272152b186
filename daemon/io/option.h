/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_OPTION_H
#define TR_IO_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/io/request.h"

/*
 * Option maps: which keys a method takes, of what type, and where their values go, as a table. Unknown keys and wrong
 * values are `bad-request`, naming the key. A key that is nil, or not there, leaves the destination as it was.
 */
enum tr_option_type {
        TR_OPTION_BOOL,    /* bool */
        TR_OPTION_INTEGER, /* int64_t; any */
        TR_OPTION_COUNT,   /* uint32_t; above 0 */
        TR_OPTION_SIZE,    /* uint64_t, bytes: an integer, or text with a unit; above 0 */
        TR_OPTION_TIME,    /* uint64_t, nanoseconds: milliseconds, or text with a unit; above 0 */
        TR_OPTION_TEXT,    /* struct tr_text: one line of UTF-8, at most TR_NAME_MAX bytes */
        TR_OPTION_NAME,    /* struct tr_text: a name */
        TR_OPTION_ID,      /* struct tr_text: of an entity, or a key: TR_STORE_TEXT_MAX bytes at most */
        TR_OPTION_FIELD,   /* struct tr_text: a field's name, any UTF-8 */
        TR_OPTION_MOMENT,  /* int64_t: milliseconds since 1970, or RFC 3339 text, or a timestamp; never 0 */
        TR_OPTION_ARRAY,   /* struct tr_items: an array of anything */
        TR_OPTION_MAP,     /* struct tr_items: a map of anything; its count is of pairs */
        TR_OPTION_CHOSEN,  /* struct tr_chosen_options: a map {method, params?} (chosen.h) */
        TR_OPTION_BACKOFF, /* struct tr_backoff_options: a map {min?, max?, reset?} of times */
};

/* Text in the piece that was read; no NUL behind it. */
struct tr_text {
        const char *data; /* NULL: not given */
        size_t len;
};

/* The elements of an array, or keys and values of a map, in the piece that was read, one behind another. */
struct tr_items {
        const uint8_t *data; /* NULL: not given */
        size_t bytes;
        uint32_t count;
};

/* Pauses, in nanoseconds; 0: not given. */
struct tr_backoff_options {
        uint64_t min_ns;
        uint64_t max_ns;
        uint64_t reset_ns;
};

struct tr_option {
        const char *key;
        enum tr_option_type type;
        size_t offset; /* of the destination in the method's structure */
};

/* Tables have at most so many entries. */
#define TR_OPTIONS_MAX 16

/* Reads an optional parameter that is a map (or an empty array). NULL, or bad-request. */
struct tr_failure *tr_options_read(const struct tr_request *request, uint32_t index, const struct tr_option *options,
                                   size_t options_count, void *destination);

#define TR_OPTIONS_READ(request, index, options, destination) \
        tr_options_read(request, index, options, sizeof(options) / sizeof((options)[0]), destination)

/* The option heap: NULL where it is 0 (not given) or between the least that a VM needs and limits.heap_max, or bad-request. */
struct tr_failure *tr_option_check_heap(const struct tr_request *request, uint64_t heap_bytes);

/* A new copy with a NUL behind it; NULL where memory is short, or where there is no text. */
char *tr_text_copy(const struct tr_text *text);
bool tr_text_equals(const struct tr_text *text, const char *other);

#endif
