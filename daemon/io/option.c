/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option maps.
 */
#include "config.h"

#include "daemon/io/option.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/store.h"
#include "daemon/core/system.h"
#include "daemon/io/chosen.h"
#include "daemon/io/connection.h"
#include "daemon/io/method.h"
#include "daemon/io/server_internal.h"
#include "proto/limits.h"
#include "proto/name.h"
#include "proto/quantity.h"
#include "proto/utf8.h"

static const char *const wanted[] = {
        [TR_OPTION_BOOL] = "true or false",
        [TR_OPTION_INTEGER] = "a whole number",
        [TR_OPTION_COUNT] = "a whole number from 1 to 4294967295",
        [TR_OPTION_SIZE] = "a size above 0 (bytes, or text with K, M or G)",
        [TR_OPTION_TIME] = "a time above 0 (milliseconds, or text with ms, s, m, h or d)",
        [TR_OPTION_TEXT] = "one line of text, at most 128 bytes",
        [TR_OPTION_NAME] = "a name",
        [TR_OPTION_ID] = "1 to 256 bytes of UTF-8 without control characters",
        [TR_OPTION_FIELD] = "the name of a field (UTF-8)",
        [TR_OPTION_MOMENT] = "a time: milliseconds since 1970, RFC 3339 text, or a timestamp",
        [TR_OPTION_ARRAY] = "an array",
        [TR_OPTION_MAP] = "a map",
        [TR_OPTION_CHOSEN] = "a map {method, params?}",
        [TR_OPTION_BACKOFF] = "a map {min?, max?, reset?}",
};

static const struct tr_option chosen_options[] = {
        { "method", TR_OPTION_TEXT, offsetof(struct tr_chosen_options, method) },
        { "params", TR_OPTION_ARRAY, offsetof(struct tr_chosen_options, params) },
};

static const struct tr_option backoff_options[] = {
        { "min", TR_OPTION_TIME, offsetof(struct tr_backoff_options, min_ns) },
        { "max", TR_OPTION_TIME, offsetof(struct tr_backoff_options, max_ns) },
        { "reset", TR_OPTION_TIME, offsetof(struct tr_backoff_options, reset_ns) },
};

/* One map of options while it is read. */
struct option_map {
        const struct tr_request *request;
        const char *inside; /* the option that it is the value of, with a dot behind it; "" for the method's own */
        const struct tr_option *options;
        size_t options_count;
        void *destination;
};

/* The value of one option: its head, and where what is in it begins and ends. */
struct option_value {
        struct tr_token token;
        const uint8_t *items;
        const uint8_t *end;
};

static struct tr_failure *read_map(const struct option_map *map, const struct option_value *value);

/* A whole number above 0, or text that means one. */
static bool read_quantity(const struct tr_token *token,
                          bool (*parse)(const char *text, size_t len, uint64_t *ret_value), uint64_t *ret_value) {
        int64_t integer;
        uint64_t value;
        if (tr_token_integer(token, &integer))
                value = integer > 0 ? (uint64_t)integer : 0;
        else if (!tr_token_is_text(token) || !parse((const char *)token->data, token->len, &value))
                return false;
        *ret_value = value;
        return value > 0;
}

static bool read_time(const struct tr_token *token, uint64_t *ret_ns) {
        uint64_t ms;
        if (!read_quantity(token, tr_duration_parse, &ms))
                return false;
        if (__builtin_mul_overflow(ms, TR_NS_PER_MS, ret_ns))
                *ret_ns = TR_NEVER; /* some centuries */
        return true;
}

static bool is_line(const char *text, size_t len) {
        if (len == 0 || len > TR_NAME_MAX || !tr_utf8_is_valid(text, len))
                return false;
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
                        return false;
        return true;
}

static bool read_text(const struct tr_token *token, bool (*is_valid)(const char *text, size_t len),
                      struct tr_text *ret_text) {
        if (!tr_token_is_text(token) || !is_valid((const char *)token->data, token->len))
                return false;
        *ret_text = (struct tr_text){ (const char *)token->data, token->len };
        return true;
}

static bool is_field(const char *text, size_t len) {
        return tr_utf8_is_valid(text, len) && !memchr(text, '\0', len);
}

static bool read_moment(const struct tr_token *token, int64_t *ret_ms) {
        struct tr_time time;
        int64_t ms;
        if (!tr_token_integer(token, &ms)) {
                bool is_time = tr_token_is_text(token)
                                       ? tr_time_parse((const char *)token->data, token->len, &time)
                                       : token->type == TR_EXT && token->ext == TR_EXT_TIMESTAMP &&
                                                 tr_time_decode(token->data, token->len, &time);
                if (!is_time)
                        return false;
                ms = tr_time_ms(&time);
        }
        *ret_ms = ms != 0 ? ms : -1; /* 0 says that none was given; one past moment is as good as another */
        return true;
}

/* Stock clients write an empty map as an empty array. */
static bool read_items(const struct option_value *value, enum tr_type type, struct tr_items *ret_items) {
        if (value->token.type != type && (value->token.type != TR_ARRAY || value->token.count > 0))
                return false;
        *ret_items = (struct tr_items){ value->items, (size_t)(value->end - value->items), value->token.count };
        return true;
}

/* Whether the value is of the option's type, and then it is in its place; of a chosen method, nothing but that it is a map. */
static bool option_read_value(const struct tr_option *option, const struct option_value *value, void *to) {
        const struct tr_token *token = &value->token;
        int64_t integer;
        switch (option->type) {
        case TR_OPTION_BOOL:
                if (token->type != TR_BOOL)
                        return false;
                *(bool *)to = token->boolean;
                return true;
        case TR_OPTION_INTEGER:
                return tr_token_integer(token, to);
        case TR_OPTION_COUNT:
                if (!tr_token_integer(token, &integer) || integer < 1 || integer > UINT32_MAX)
                        return false;
                *(uint32_t *)to = (uint32_t)integer;
                return true;
        case TR_OPTION_SIZE:
                return read_quantity(token, tr_size_parse, to);
        case TR_OPTION_TIME:
                return read_time(token, to);
        case TR_OPTION_TEXT:
                return read_text(token, is_line, to);
        case TR_OPTION_NAME:
                return read_text(token, tr_name_is_valid, to);
        case TR_OPTION_ID:
                return read_text(token, tr_store_text_is_valid, to);
        case TR_OPTION_FIELD:
                return read_text(token, is_field, to);
        case TR_OPTION_MOMENT:
                return read_moment(token, to);
        case TR_OPTION_ARRAY:
                return read_items(value, TR_ARRAY, to);
        case TR_OPTION_MAP:
                return read_items(value, TR_MAP, to);
        case TR_OPTION_CHOSEN:
        case TR_OPTION_BACKOFF:
                return token->type == TR_MAP;
        }
        return false;
}

static struct tr_failure *unknown_key(const struct option_map *map, const struct tr_token *key) {
        /* Cut: it may be megabytes long. */
        int len = key->len < TR_NAME_MAX ? (int)key->len : TR_NAME_MAX;
        if (!tr_token_is_text(key) || !tr_utf8_is_valid(key->data, (size_t)len))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: an option's key has to be a string",
                                      map->request->method->name);
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: unknown option: %s%.*s", map->request->method->name,
                              map->inside, len, (const char *)key->data);
}

static struct tr_failure *key_there_twice(const struct option_map *map, const struct tr_option *option) {
        char path[2 * TR_NAME_MAX];
        int len = snprintf(path, sizeof(path), "%s%s", map->inside, option->key);
        struct tr_failure *failure = tr_failure_new(TR_CODE_NOT_SENDABLE, "%s: the option %s is there twice",
                                                    map->request->method->name, path);
        tr_failure_add_text(failure, "path", path, (size_t)len);
        return failure;
}

/* Reads the options that are the value of one. */
static struct tr_failure *read_members(const struct option_map *map, const struct tr_option *option,
                                       const struct option_value *value, const struct tr_option *options,
                                       size_t options_count, void *destination) {
        char inside[TR_NAME_MAX];
        snprintf(inside, sizeof(inside), "%s.", option->key);
        const struct option_map members = {
                .request = map->request,
                .inside = inside,
                .options = options,
                .options_count = options_count,
                .destination = destination,
        };
        return read_map(&members, value);
}

static struct tr_failure *read_chosen(const struct option_map *map, const struct tr_option *option,
                                      const struct option_value *value, struct tr_chosen_options *ret_chosen) {
        struct tr_failure *failure = read_members(map, option, value, chosen_options,
                                                  sizeof(chosen_options) / sizeof(chosen_options[0]), ret_chosen);
        if (!failure && !ret_chosen->method.data)
                failure = tr_failure_new(TR_CODE_BAD_REQUEST, "%s: the option %s needs a method",
                                         map->request->method->name, option->key);
        return failure;
}

/* Reads a key and its value, which may be a container. False where they cannot be read, though they were scanned. */
static bool next_pair(struct tr_reader *reader, struct tr_token *ret_key, struct option_value *ret_value) {
        if (tr_read(reader, ret_key) != 0)
                return false;
        struct tr_reader head = *reader;
        if (tr_read(&head, &ret_value->token) != 0 || tr_read_skip(reader) != 0)
                return false;
        ret_value->items = head.at;
        ret_value->end = reader->at;
        return true;
}

/* Reads one pair. `seen` has a bit for each option that was there already. */
static struct tr_failure *read_pair(const struct option_map *map, struct tr_reader *reader, uint32_t *seen) {
        struct tr_token key;
        struct option_value value;
        size_t i = 0;
        if (!next_pair(reader, &key, &value))
                return tr_failure_new(TR_CODE_INTERNAL, "options that were scanned cannot be read");
        while (i < map->options_count && !tr_token_equals(&key, map->options[i].key))
                i++;
        if (i == map->options_count) /* stock clients write out every optional member, also one that is newer than this daemon */
                return value.token.type == TR_NIL ? NULL : unknown_key(map, &key);

        const struct tr_option *option = &map->options[i];
        void *to = (char *)map->destination + option->offset;
        if (*seen & (UINT32_C(1) << i))
                return key_there_twice(map, option);
        *seen |= UINT32_C(1) << i;
        if (value.token.type == TR_NIL)
                return NULL;
        if (!option_read_value(option, &value, to))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: the option %s%s has to be %s",
                                      map->request->method->name, map->inside, option->key, wanted[option->type]);
        if (option->type == TR_OPTION_CHOSEN)
                return read_chosen(map, option, &value, to);
        if (option->type == TR_OPTION_BACKOFF)
                return read_members(map, option, &value, backoff_options, sizeof(backoff_options) / sizeof(backoff_options[0]), to);
        return NULL;
}

static struct tr_failure *read_map(const struct option_map *map, const struct option_value *value) {
        struct tr_reader reader = { value->items, value->end };
        struct tr_failure *failure = NULL;
        uint32_t seen = 0;
        for (uint32_t pair = 0; pair < value->token.count && !failure; pair++)
                failure = read_pair(map, &reader, &seen);
        return failure;
}

struct tr_failure *tr_options_read(const struct tr_request *request, uint32_t index, const struct tr_option *options,
                                   size_t options_count, void *destination) {
        assert(options_count <= TR_OPTIONS_MAX);
        if (!tr_request_has(request, index))
                return NULL;
        const struct tr_param *param = &request->params[index];
        /* Stock clients of languages with one kind of table write an empty map as an empty array. */
        if (param->token.type == TR_ARRAY && param->token.count == 0)
                return NULL;
        if (param->token.type != TR_MAP)
                return tr_request_bad_param(request, index, "a map of options");

        const struct option_map map = { request, "", options, options_count, destination };
        const struct option_value value = { param->token, param->items, param->span.data + param->span.bytes };
        return read_map(&map, &value);
}

struct tr_failure *tr_option_check_heap(const struct tr_request *request, uint64_t heap_bytes) {
        uint64_t max_bytes = request->connection->server->system->limits.heap_max_bytes;
        if (heap_bytes == 0 || (heap_bytes >= TR_HEAP_MIN && heap_bytes <= max_bytes))
                return NULL;
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: the option heap has to be from %u to %" PRIu64 " bytes (limits.heap_max)",
                              request->method->name, TR_HEAP_MIN, max_bytes);
}

char *tr_text_copy(const struct tr_text *text) {
        return text->data ? strndup(text->data, text->len) : NULL;
}

bool tr_text_equals(const struct tr_text *text, const char *other) {
        return text->data && strlen(other) == text->len && memcmp(text->data, other, text->len) == 0;
}
