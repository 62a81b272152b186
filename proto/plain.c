/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain form: what every stock MessagePack client understands, without
 * extension types and with text as the keys of maps.
 *
 * Values are copied one by one from typed bytes, which may be a peer's that only
 * pass through the daemon. The copy descends by recursion, and no deeper than the
 * scanner lets nesting through; bytes that were not scanned can make it answer
 * TR_READ_INVALID, nothing worse.
 *
 * Keys that differ may be the same as text (1 and "1"), and a map that has one twice is refused. They are compared as
 * they were written, once all of a map's are there: a few one by one, many in order, so that nobody can make it take
 * long.
 */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/value.h"

#define LEVELS_MAX (TR_NESTING_MAX + TR_FRAME_WRAPPING)
/* As many keys are compared one by one. */
#define KEYS_FEW 8

/* A key as it was written, and where its value was read. */
struct key {
        size_t at;
        size_t bytes;
        const uint8_t *value;
};

/* Those of one map. */
struct keys {
        uint32_t count;
        uint32_t room; /* in `many` */
        struct key *many; /* all of them, where they are more than fit in `few` */
        struct key few[KEYS_FEW];
};

static int write_value(struct tr_writer *writer, struct tr_reader *reader, unsigned level);

/* A program may have set a locale whose decimal point is none. */
static void use_decimal_point(char *text) {
        static const char known[] = "0123456789+-einfa";
        size_t begin = strspn(text, known), end = begin;

        while (text[end] && !strchr(known, text[end]))
                end++;
        if (end == begin)
                return;
        text[begin] = '.';
        memmove(text + begin + 1, text + end, strlen(text + end) + 1);
}

size_t tr_float_format(double number, char text[static TR_FLOAT_TEXT_MAX]) {
        /* Printing drops trailing zeros, so that there is no need to try fewer than the 15 digits that any normal
         * double has; subnormal ones have less. 17 always carry the value. */
        for (int digits = fabs(number) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
                snprintf(text, TR_FLOAT_TEXT_MAX, "%.*g", digits, number);
                if (strtod(text, NULL) == number)
                        break;
        }
        use_decimal_point(text);
        return strlen(text);
}

static int write_key(struct tr_writer *writer, struct tr_reader *reader) {
        char text[TR_FLOAT_TEXT_MAX];
        struct tr_token key;
        int r;

        r = tr_read(reader, &key);
        if (r)
                return r;
        switch (key.type) {
        case TR_STR:
        case TR_BIN:
                tr_write_string(writer, (const char *)key.data, key.len);
                return 0;
        case TR_BOOL:
                tr_write_text(writer, key.boolean ? "true" : "false");
                return 0;
        case TR_INT:
                snprintf(text, sizeof(text), "%" PRId64, key.integer);
                break;
        case TR_UINT:
                snprintf(text, sizeof(text), "%" PRIu64, key.unsigned_);
                break;
        case TR_FLOAT:
                (void)tr_float_format(key.number, text);
                break;
        default:
                return TR_READ_INVALID;
        }
        tr_write_text(writer, text);
        return 0;
}

static void write_handle_text(struct tr_writer *writer, const struct tr_handle *handle) {
        char text[TR_HANDLE_TEXT_MAX + 1];
        size_t len = tr_handle_format(handle, text);

        tr_write_str(writer, text, len);
}

static int write_handle(struct tr_writer *writer, const struct tr_token *ext) {
        struct tr_handle handle;

        if (ext->len != TR_HANDLE_BYTES)
                return TR_READ_INVALID;
        memcpy(handle.bytes, ext->data, TR_HANDLE_BYTES);
        write_handle_text(writer, &handle);
        return 0;
}

static int write_message(struct tr_writer *writer, const struct tr_token *ext) {
        struct tr_handle handle;
        const char *handler;
        size_t handler_len;

        if (!tr_message_decode(ext->data, ext->len, &handle, &handler, &handler_len))
                return TR_READ_INVALID;
        tr_write_array(writer, 2);
        write_handle_text(writer, &handle);
        tr_write_string(writer, handler, handler_len);
        return 0;
}

static int write_time(struct tr_writer *writer, const struct tr_token *ext) {
        char text[TR_TIME_TEXT_MAX];
        struct tr_time time;
        size_t len;

        if (!tr_time_decode(ext->data, ext->len, &time))
                return TR_READ_INVALID;
        len = tr_time_format(&time, text);
        tr_write_str(writer, text, len);
        return 0;
}

/* Room for one more. Grows with what has been read, not by what a header promises. 0 or -ENOMEM. */
static int keys_make_room(struct keys *keys) {
        uint32_t room = 2 * keys->count;
        struct key *many;

        if (keys->count < KEYS_FEW || keys->count < keys->room)
                return 0;
        many = reallocarray(keys->many, room, sizeof(*many));
        if (!many)
                return -ENOMEM;
        if (!keys->many)
                memcpy(many, keys->few, sizeof(keys->few));
        keys->many = many;
        keys->room = room;
        return 0;
}

static int keys_add(struct keys *keys, const struct key *key) {
        int r = keys_make_room(keys);

        if (!r)
                (keys->many ? keys->many : keys->few)[keys->count++] = *key;
        return r;
}

static int compare(const void *one, const void *other, void *data) {
        const struct key *a = one, *b = other;

        if (a->bytes != b->bytes)
                return a->bytes < b->bytes ? -1 : 1;
        return memcmp((const uint8_t *)data + a->at, (const uint8_t *)data + b->at, a->bytes);
}

/* One that is there twice; NULL where none is. */
static const struct key *keys_find_same(struct keys *keys, uint8_t *data) {
        if (keys->many)
                qsort_r(keys->many, keys->count, sizeof(*keys->many), compare, data);
        for (uint32_t i = 1; keys->many && i < keys->count; i++)
                if (!compare(&keys->many[i - 1], &keys->many[i], data))
                        return &keys->many[keys->many[i - 1].at > keys->many[i].at ? i - 1 : i];
        for (uint32_t i = 1; !keys->many && i < keys->count; i++)
                for (uint32_t j = 0; j < i; j++)
                        if (!compare(&keys->few[j], &keys->few[i], data))
                                return &keys->few[i];
        return NULL;
}

static int write_pair(struct tr_writer *writer, struct tr_reader *reader, unsigned level, struct keys *keys) {
        struct key key = { .at = writer->len };
        int r = write_key(writer, reader);

        key.bytes = writer->len - key.at;
        key.value = reader->at;
        if (!r)
                r = keys_add(keys, &key);
        return r ? r : write_value(writer, reader, level);
}

static int write_map(struct tr_writer *writer, struct tr_reader *reader, uint32_t pairs, unsigned level) {
        struct keys keys = { .count = 0 };
        const struct key *same;
        int r = 0;

        tr_write_map(writer, pairs);
        for (uint32_t i = 0; !r && i < pairs; i++)
                r = write_pair(writer, reader, level, &keys);
        if (!r)
                r = tr_writer_error(writer); /* and what is there is not all that was written */
        same = r ? NULL : keys_find_same(&keys, writer->data);
        if (same) {
                reader->at = same->value;
                r = TR_PLAIN_SAME_KEY;
        }
        free(keys.many);
        return r;
}

static int write_array(struct tr_writer *writer, struct tr_reader *reader, uint32_t count, unsigned level) {
        tr_write_array(writer, count);
        for (uint32_t i = 0; i < count; i++) {
                int r = write_value(writer, reader, level);

                if (r)
                        return r;
        }
        return 0;
}

static int write_instance(struct tr_writer *writer, struct tr_reader *reader, const struct tr_token *ext, unsigned level) {
        struct tr_reader fields;
        const char *name;
        size_t name_len;
        uint32_t pairs;
        int r;

        if (level == 0 || !tr_instance_decode(ext->data, ext->len, &name, &name_len, &fields, &pairs))
                return TR_READ_INVALID;
        r = write_map(writer, &fields, pairs, level - 1);
        if (r == TR_PLAIN_SAME_KEY)
                reader->at = fields.at;
        if (r == TR_READ_TRUNCATED || (!r && fields.at != fields.end))
                return TR_READ_INVALID;
        return r;
}

static int write_ext(struct tr_writer *writer, struct tr_reader *reader, const struct tr_token *ext, unsigned level) {
        switch (ext->ext) {
        case TR_EXT_HANDLE:
                return write_handle(writer, ext);
        case TR_EXT_MESSAGE:
                return write_message(writer, ext);
        case TR_EXT_INSTANCE:
                return write_instance(writer, reader, ext, level);
        case TR_EXT_TIMESTAMP:
                return write_time(writer, ext);
        default:
                return TR_READ_INVALID;
        }
}

/* `level`: how many containers, one in another, may begin here. */
static int write_value(struct tr_writer *writer, struct tr_reader *reader, unsigned level) {
        struct tr_token token;
        int r;

        r = tr_read(reader, &token);
        if (r)
                return r;
        if (level == 0 && (token.type == TR_ARRAY || token.type == TR_MAP))
                return TR_READ_INVALID;

        switch (token.type) {
        case TR_NIL:
                tr_write_nil(writer);
                return 0;
        case TR_BOOL:
                tr_write_bool(writer, token.boolean);
                return 0;
        case TR_INT:
                tr_write_int(writer, token.integer);
                return 0;
        case TR_UINT:
                tr_write_uint(writer, token.unsigned_);
                return 0;
        case TR_FLOAT:
                tr_write_float(writer, token.number);
                return 0;
        case TR_STR:
                tr_write_string(writer, (const char *)token.data, token.len);
                return 0;
        case TR_BIN:
                tr_write_bin(writer, token.data, token.len);
                return 0;
        case TR_ARRAY:
                return write_array(writer, reader, token.count, level - 1);
        case TR_MAP:
                return write_map(writer, reader, token.count, level - 1);
        case TR_EXT:
                return write_ext(writer, reader, &token, level);
        }
        return TR_READ_INVALID;
}

int tr_write_plain(struct tr_writer *writer, struct tr_reader *reader) {
        struct tr_reader ahead = *reader;
        size_t len = writer->len;
        int r;

        r = write_value(writer, &ahead, LEVELS_MAX);
        if (r) {
                writer->len = len;
                if (r == TR_PLAIN_SAME_KEY)
                        *reader = ahead;
                return r;
        }
        *reader = ahead;
        return tr_writer_error(writer);
}
