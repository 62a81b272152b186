/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option maps.
 */
#include "config.h"

#include "daemon/io/option.h"

#include <assert.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/io/method.h"
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
        [TR_OPTION_ARRAY] = "an array",
};

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

static bool read_array(const struct tr_token *token, const struct tr_span *items, struct tr_items *ret_items) {
        if (token->type != TR_ARRAY)
                return false;
        *ret_items = (struct tr_items){ items->data, items->bytes, token->count };
        return true;
}

/* `items` is what stands behind the value's head: of an array, its elements. */
static bool option_read_value(const struct tr_option *option, const struct tr_token *token,
                              const struct tr_span *items, void *destination) {
        void *to = (char *)destination + option->offset;
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
        case TR_OPTION_ARRAY:
                return read_array(token, items, to);
        }
        return false;
}

static struct tr_failure *unknown_key(const struct tr_request *request, const struct tr_token *key) {
        /* Cut: it may be megabytes long. */
        int len = key->len < TR_NAME_MAX ? (int)key->len : TR_NAME_MAX;
        if (!tr_token_is_text(key) || !tr_utf8_is_valid(key->data, (size_t)len))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: an option's key has to be a string",
                                      request->method->name);
        return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: unknown option: %.*s", request->method->name, len,
                              (const char *)key->data);
}

/* Reads one pair. `seen` has a bit for each option that was there already. */
static struct tr_failure *read_pair(const struct tr_request *request, struct tr_reader *reader,
                                    const struct tr_option *options, size_t options_count, uint32_t *seen,
                                    void *destination) {
        struct tr_token key, value;
        size_t i = 0;
        struct tr_reader head;
        if (tr_read(reader, &key) != 0)
                return tr_failure_new(TR_CODE_INTERNAL, "options that were scanned cannot be read");
        head = *reader;
        if (tr_read(&head, &value) != 0 || tr_read_skip(reader) != 0)
                return tr_failure_new(TR_CODE_INTERNAL, "options that were scanned cannot be read");
        while (i < options_count && !tr_token_equals(&key, options[i].key))
                i++;
        if (i == options_count) /* stock clients write out every optional member, also one that is newer than this daemon */
                return value.type == TR_NIL ? NULL : unknown_key(request, &key);

        if (*seen & (UINT32_C(1) << i)) {
                struct tr_failure *failure = tr_failure_new(TR_CODE_NOT_SENDABLE, "%s: the option %s is there twice",
                                                            request->method->name, options[i].key);
                tr_failure_add_text(failure, "path", options[i].key, strlen(options[i].key));
                return failure;
        }
        *seen |= UINT32_C(1) << i;
        const struct tr_span items = { head.at, (size_t)(reader->at - head.at) };
        if (value.type != TR_NIL && !option_read_value(&options[i], &value, &items, destination))
                return tr_failure_new(TR_CODE_BAD_REQUEST, "%s: the option %s has to be %s", request->method->name,
                                      options[i].key, wanted[options[i].type]);
        return NULL;
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

        struct tr_reader reader = { param->items, param->span.data + param->span.bytes };
        struct tr_failure *failure = NULL;
        uint32_t seen = 0;
        for (uint32_t pair = 0; pair < param->token.count && !failure; pair++)
                failure = read_pair(request, &reader, options, options_count, &seen, destination);
        return failure;
}

char *tr_text_copy(const struct tr_text *text) {
        return text->data ? strndup(text->data, text->len) : NULL;
}

bool tr_text_equals(const struct tr_text *text, const char *other) {
        return text->data && strlen(other) == text->len && memcmp(text->data, other, text->len) == 0;
}
