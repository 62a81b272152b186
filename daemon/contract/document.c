/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing is ours: it goes from bytes to bytes, and needs neither a tree nor a bound on how many values there are. Members are written
 * as they come and put in order behind the last, which as a rule they are already. Reading is jansson's.
 *
 * Recursion is bounded by the levels that a value may have at all.
 */
#include "config.h"

#include "daemon/contract/document.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/json.h"
#include "daemon/contract/json.h"
#include "daemon/contract/pointer.h"
#include "proto/limits.h"
#include "proto/utf8.h"

struct writing {
        struct tr_reader reader;
        struct tr_writer *text;
        char **path;
        const char **reason;
};

/* A member of a map: its name, and where it stands in the text. */
struct member {
        const char *name;
        size_t len;
        size_t begin, end;
};

static int refuse(const struct writing *writing, const struct tr_step *at, const char *reason) {
        char *path = tr_pointer_text(at);

        if (!path)
                return tr_error_origin(-ENOMEM);
        *writing->path = path;
        *writing->reason = reason;
        return TR_DOCUMENT_NO_JSON;
}

static void put(struct tr_writer *text, const char *literal) {
        tr_write_raw(text, literal, strlen(literal));
}

/* How many bytes stand in a JSON string as they are. */
static size_t plain_bytes(const char *text, size_t len) {
        size_t count = 0;

        while (count < len && (unsigned char)text[count] >= 0x20 && text[count] != '"' && text[count] != '\\' && text[count] != 0x7f)
                count++;
        return count;
}

/* Text that is UTF-8: what is escaped is of one byte. */
static void put_string(struct tr_writer *text, const void *data, size_t len) {
        const char *at = data, *end = at + len;

        put(text, "\"");
        while (at < end) {
                size_t plain = plain_bytes(at, (size_t)(end - at));
                char escaped[2 * TR_JSON_STEP_MAX];

                tr_write_raw(text, at, plain);
                at += plain;
                if (at == end)
                        break;
                tr_write_raw(text, escaped, (size_t)(tr_json_escape(escaped, escaped + sizeof(escaped), at, 1) - escaped));
                at++;
        }
        put(text, "\"");
}

static void put_float(struct tr_writer *text, double number) {
        char digits[TR_FLOAT_TEXT_MAX];
        size_t len = tr_float_format(number, digits);

        tr_write_raw(text, digits, len);
        if (!memchr(digits, '.', len) && !memchr(digits, 'e', len))
                put(text, ".0");
}

static void put_integer(struct tr_writer *text, int64_t number) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%" PRId64, number);

        tr_write_raw(text, digits, (size_t)len);
}

static int write_value(struct writing *writing, const struct tr_step *at, unsigned int depth);

/* Names */

static int compare_names(const void *one_name, size_t one_len, const void *other_name, size_t other_len) {
        int order = memcmp(one_name, other_name, one_len < other_len ? one_len : other_len);

        return order ? order : (one_len > other_len) - (one_len < other_len);
}

static int compare_members(const void *one, const void *other) {
        const struct member *a = one, *b = other;

        return compare_names(a->name, a->len, b->name, b->len);
}

/* The name that stands next. */
static int read_name(struct tr_reader *reader, const struct writing *writing, const struct tr_step *at, struct tr_step *ret_inner) {
        struct tr_token token;

        if (tr_read(reader, &token) != 0 || !tr_token_is_text(&token) || !tr_utf8_is_valid(token.data, token.len))
                return refuse(writing, at, "has a key that is no text");
        *ret_inner = (struct tr_step){ .parent = at, .key = (const char *)token.data, .key_len = token.len };
        return memchr(token.data, '\0', token.len) ? refuse(writing, ret_inner, "has a NUL in its key") : 0;
}

/* Containers */

/* Puts the members that stand at the end of the text in order, a comma between two. */
static int sort_members(struct writing *writing, const struct tr_step *at, struct member *members, uint32_t count) {
        struct tr_writer sorted = TR_WRITER_INIT;
        size_t begin = members[0].begin;
        bool in_order = true;
        int r = 0;

        for (uint32_t i = 1; in_order && i < count; i++)
                in_order = compare_members(&members[i - 1], &members[i]) < 0;
        if (in_order)
                return 0;
        qsort(members, count, sizeof(*members), compare_members);
        for (uint32_t i = 1; r == 0 && i < count; i++) {
                struct tr_step inner = { .parent = at, .key = members[i].name, .key_len = members[i].len };

                if (compare_members(&members[i - 1], &members[i]) == 0)
                        r = refuse(writing, &inner, "is there twice");
        }
        for (uint32_t i = 0; r == 0 && i < count; i++) {
                if (i > 0)
                        put(&sorted, ",");
                tr_write_raw(&sorted, writing->text->data + members[i].begin, members[i].end - members[i].begin);
        }
        if (r == 0 && tr_writer_error(&sorted))
                r = tr_error_origin(-ENOMEM);
        if (r == 0)
                memcpy(writing->text->data + begin, sorted.data, sorted.len);
        tr_writer_deinit(&sorted);
        return r;
}

static int write_map(struct writing *writing, const struct tr_step *at, uint32_t count, unsigned int depth) {
        struct member few[16], *members = few;
        int r = 0;

        if (count > sizeof(few) / sizeof(few[0])) {
                members = calloc(count, sizeof(*members));
                if (!members)
                        return tr_error_origin(-ENOMEM);
        }
        put(writing->text, "{");
        for (uint32_t i = 0; r == 0 && i < count; i++) {
                struct tr_step inner;

                r = read_name(&writing->reader, writing, at, &inner);
                if (r)
                        break;
                if (i > 0)
                        put(writing->text, ",");
                members[i] = (struct member){ inner.key, inner.key_len, writing->text->len, 0 };
                put_string(writing->text, inner.key, inner.key_len);
                put(writing->text, ":");
                r = write_value(writing, &inner, depth);
                members[i].end = writing->text->len;
        }
        if (r == 0 && tr_writer_error(writing->text))
                r = tr_error_origin(-ENOMEM);
        if (r == 0 && count > 1)
                r = sort_members(writing, at, members, count);
        put(writing->text, "}");
        if (members != few)
                free(members);
        return r;
}

static int write_array(struct writing *writing, const struct tr_step *at, uint32_t count, unsigned int depth) {
        int r = 0;

        put(writing->text, "[");
        for (uint32_t i = 0; r == 0 && i < count; i++) {
                struct tr_step inner = { .parent = at, .index = i };

                if (i > 0)
                        put(writing->text, ",");
                r = write_value(writing, &inner, depth);
        }
        put(writing->text, "]");
        return r;
}

static int write_value(struct writing *writing, const struct tr_step *at, unsigned int depth) {
        struct tr_token token;

        if (tr_read(&writing->reader, &token) != 0)
                return refuse(writing, at, "is not whole");
        switch (token.type) {
        case TR_ARRAY:
        case TR_MAP:
                if (depth == TR_NESTING_MAX)
                        return refuse(writing, at, "is nested too deep");
                return token.type == TR_MAP ? write_map(writing, at, token.count, depth + 1) :
                                              write_array(writing, at, token.count, depth + 1);
        case TR_STR:
                if (!tr_utf8_is_valid(token.data, token.len))
                        return refuse(writing, at, "is text that is not UTF-8, which JSON does not have");
                put_string(writing->text, token.data, token.len);
                return 0;
        case TR_INT:
                put_integer(writing->text, token.integer);
                return 0;
        case TR_FLOAT:
                if (!isfinite(token.number))
                        return refuse(writing, at, "is no finite number, which JSON does not have");
                put_float(writing->text, token.number);
                return 0;
        case TR_BOOL:
                put(writing->text, token.boolean ? "true" : "false");
                return 0;
        case TR_NIL:
                put(writing->text, "null");
                return 0;
        case TR_BIN:
                return refuse(writing, at, "is bytes, which JSON does not have");
        case TR_UINT:
                return refuse(writing, at, "is an integer above 2^63-1");
        case TR_EXT:
                break;
        }
        switch (token.ext) {
        case TR_EXT_TIMESTAMP:
                return refuse(writing, at, "is a timestamp, which JSON does not have");
        case TR_EXT_HANDLE:
        case TR_EXT_MESSAGE:
                return refuse(writing, at, "is a handle, which JSON does not have, and which ends with the daemon");
        default:
                return refuse(writing, at, "is a value that JSON does not have");
        }
}

int tr_document_write(const void *value, size_t bytes, struct tr_writer *text, char **ret_path, const char **ret_reason) {
        struct writing writing = { .reader = tr_reader(value, bytes), .text = text, .path = ret_path, .reason = ret_reason };
        int r = write_value(&writing, NULL, 0);

        if (r == 0 && tr_writer_error(text))
                r = tr_error_origin(-ENOMEM);
        return r;
}

/* Reading */

int tr_document_read(const char *text, size_t len, struct tr_writer *value) {
        json_error_t error;
        json_t *json = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
        int r;

        if (!json)
                return json_error_code(&error) == json_error_out_of_memory ? tr_error_origin(-ENOMEM) : TR_DOCUMENT_BAD;
        r = tr_json_pack(value, json) == 0 ? 0 : TR_DOCUMENT_BAD;
        json_decref(json);
        if (tr_writer_error(value))
                r = tr_error_origin(-ENOMEM);
        return r;
}

/* Laying one over another */

struct name {
        const char *data;
        size_t len;
};

static int compare_entries(const void *one, const void *other) {
        const struct name *a = one, *b = other;

        return compare_names(a->data, a->len, b->data, b->len);
}

static bool is_without(const struct tr_document_layers *layers, const struct name *name) {
        for (const char *const *without = layers->without; without && *without; without++)
                if (strlen(*without) == name->len && memcmp(*without, name->data, name->len) == 0)
                        return true;
        return false;
}

/* The names of `over`, in order. */
struct names {
        struct name *list;
        uint32_t count;
};

static int read_names(const struct tr_document_layers *layers, const struct writing *writing, struct names *ret_names) {
        struct tr_reader reader = tr_reader(layers->over, layers->over_bytes);
        struct tr_token head;
        struct tr_step step;
        int r = 0;

        if (tr_read(&reader, &head) != 0 || head.type != TR_MAP)
                return refuse(writing, NULL, "is no map");
        ret_names->list = calloc(head.count + 1, sizeof(*ret_names->list));
        if (!ret_names->list)
                return tr_error_origin(-ENOMEM);
        for (uint32_t i = 0; r == 0 && i < head.count; i++) {
                r = read_name(&reader, writing, NULL, &step);
                if (r == 0 && tr_read_skip(&reader) != 0)
                        r = refuse(writing, &step, "is not whole");
                if (r == 0)
                        ret_names->list[ret_names->count++] = (struct name){ step.key, step.key_len };
        }
        if (r == 0)
                qsort(ret_names->list, ret_names->count, sizeof(*ret_names->list), compare_entries);
        return r;
}

/* Appends the pairs of a map that stay, and counts them. `names`: those that are laid over it; NULL: it is on top. */
static uint32_t copy_pairs(const struct tr_document_layers *layers, const void *map, size_t bytes, const struct names *names,
                           struct tr_writer *writer) {
        struct tr_reader reader = tr_reader(map, bytes);
        struct tr_token head, key;
        uint32_t count = 0;

        if (tr_read(&reader, &head) != 0 || head.type != TR_MAP)
                return 0;
        for (uint32_t i = 0; i < head.count; i++) {
                const uint8_t *value;
                struct name name;
                bool stays;

                if (tr_read(&reader, &key) != 0)
                        break;
                value = reader.at;
                if (tr_read_skip(&reader) != 0)
                        break;
                name = (struct name){ (const char *)key.data, key.len };
                stays = !is_without(layers, &name) && !(!names && layers->removes && *value == 0xc0) &&
                        !(names && bsearch(&name, names->list, names->count, sizeof(*names->list), compare_entries));
                if (!stays)
                        continue;
                tr_write_str(writer, name.data, name.len);
                tr_write_raw(writer, value, (size_t)(reader.at - value));
                count++;
        }
        return count;
}

int tr_document_lay(const struct tr_document_layers *layers, struct tr_writer *writer, char **ret_path, const char **ret_reason) {
        const struct writing writing = { .path = ret_path, .reason = ret_reason };
        struct tr_writer pairs = TR_WRITER_INIT;
        struct names names = { 0 };
        uint32_t count = 0;
        int r;

        r = read_names(layers, &writing, &names);
        if (r == 0) {
                if (layers->base)
                        count = copy_pairs(layers, layers->base, layers->base_bytes, &names, &pairs);
                count += copy_pairs(layers, layers->over, layers->over_bytes, NULL, &pairs);
                tr_write_map(writer, count);
                tr_write_raw(writer, pairs.data, pairs.len);
                if (tr_writer_error(&pairs) || tr_writer_error(writer))
                        r = tr_error_origin(-ENOMEM);
        }
        tr_writer_deinit(&pairs);
        free(names.list);
        return r;
}
