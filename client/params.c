/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing arguments by a format string.
 *
 * The letters are read once, from left to right. How long an array or a map becomes is not known before its closing
 * bracket (one `*` may add any number of elements), so its head is written with a count of 32 bits, which is filled
 * in at its end; open brackets are a stack of places in the output, at most as deep as a value may be.
 */
#include "client/params.h"

#include <errno.h>
#include <string.h>

#include "client/json.h"
#include "client/troupe.h"
#include "proto/limits.h"

/* A head with a 32-bit count: the type's byte and the count. */
#define HEAD_BYTES 5
#define ARRAY32 0xdd
#define MAP32 0xdf

struct level {
        size_t head;    /* where its head is in the output */
        uint32_t count; /* values in it so far, a map's keys counted */
        char closing;   /* the bracket that ends it */
};

struct packer {
        struct tr_writer *writer;
        va_list args;
        struct level levels[TR_NESTING_MAX + 1]; /* the first is the list of the arguments itself */
        uint32_t depth;
};

static void write_head(struct tr_writer *writer, uint8_t type) {
        const uint8_t head[HEAD_BYTES] = { type };

        tr_write_raw(writer, head, sizeof(head));
}

static void set_count(struct tr_writer *writer, size_t head, uint32_t count) {
        if (tr_writer_error(writer))
                return;
        for (int i = 1; i < HEAD_BYTES; i++)
                writer->data[head + i] = count >> (8 * (HEAD_BYTES - 1 - i));
}

static int open_bracket(struct packer *packer, char bracket) {
        struct level *level;

        if (packer->depth == TR_NESTING_MAX)
                return -EINVAL;
        packer->levels[packer->depth].count++;
        level = &packer->levels[++packer->depth];
        *level = (struct level){ .head = packer->writer->len, .closing = bracket == '[' ? ']' : '}' };
        write_head(packer->writer, bracket == '[' ? ARRAY32 : MAP32);
        return 0;
}

static int close_bracket(struct packer *packer, char bracket) {
        struct level *level = &packer->levels[packer->depth];
        bool is_map = bracket == '}';

        if (!packer->depth || level->closing != bracket || (is_map && level->count % 2))
                return -EINVAL;
        set_count(packer->writer, level->head, is_map ? level->count / 2 : level->count);
        packer->depth--;
        return 0;
}

static int write_bytes(struct packer *packer, const void *data, size_t size, bool is_text) {
        if (size > UINT32_MAX || (size && !data))
                return -EINVAL;
        if (is_text)
                tr_write_str(packer->writer, size ? data : "", size);
        else
                tr_write_bin(packer->writer, size ? data : "", size);
        return 0;
}

static int write_text(struct packer *packer, const char *text) {
        if (text)
                return write_bytes(packer, text, strlen(text), true);
        tr_write_nil(packer->writer);
        return 0;
}

static int write_handle(struct packer *packer, const char *text) {
        struct tr_handle handle;

        if (!text || !tr_handle_parse(text, strlen(text), &handle))
                return -EINVAL;
        tr_write_handle(packer->writer, &handle);
        return 0;
}

static int write_json(struct packer *packer, const char *text, size_t size) {
        return text ? tr_json_read(packer->writer, text, size) : -EINVAL;
}

int tr_params_write_packed(struct tr_writer *writer, const void *data, size_t size) {
        struct tr_reader reader = tr_reader(data, size);

        if (!data || tr_read_skip(&reader) || reader.at != reader.end)
                return -EINVAL;
        tr_write_raw(writer, data, size);
        return 0;
}

int tr_params_write_target(struct tr_writer *writer, const char *target) {
        struct tr_handle handle;

        if (!target)
                return -EINVAL;
        if (tr_handle_parse(target, strlen(target), &handle))
                tr_write_handle(writer, &handle);
        else
                tr_write_str(writer, target, strlen(target));
        return 0;
}

/* A letter that may stand behind a star, and its parameters. */
static int write_whole(struct packer *packer, char letter) {
        const struct troupe_value *value;
        const void *data;

        switch (letter) {
        case 'j':
                data = va_arg(packer->args, const char *);
                return write_json(packer, data, data ? strlen(data) : 0);
        case 'J':
                data = va_arg(packer->args, const char *);
                return write_json(packer, data, va_arg(packer->args, size_t));
        case 'm':
                data = va_arg(packer->args, const void *);
                return tr_params_write_packed(packer->writer, data, va_arg(packer->args, size_t));
        case 'v':
                value = va_arg(packer->args, const struct troupe_value *);
                return value ? tr_params_write_packed(packer->writer, value->data, value->size) : -EINVAL;
        default:
                return -EINVAL;
        }
}

static int write_letter(struct packer *packer, char letter) {
        struct tr_writer *writer = packer->writer;
        const void *data;
        int64_t seconds;

        switch (letter) {
        case 'n':
                tr_write_nil(writer);
                return 0;
        case 'b':
                tr_write_bool(writer, va_arg(packer->args, int));
                return 0;
        case 'i':
                tr_write_int(writer, va_arg(packer->args, int));
                return 0;
        case 'l':
                tr_write_int(writer, va_arg(packer->args, int64_t));
                return 0;
        case 'd':
                tr_write_float(writer, va_arg(packer->args, double));
                return 0;
        case 's':
                return write_text(packer, va_arg(packer->args, const char *));
        case 'S':
        case 'y':
                data = va_arg(packer->args, const void *);
                return write_bytes(packer, data, va_arg(packer->args, size_t), letter == 'S');
        case 'h':
                return write_handle(packer, va_arg(packer->args, const char *));
        case 't':
                seconds = va_arg(packer->args, int64_t);
                tr_write_time(writer, &(struct tr_time){ seconds, va_arg(packer->args, uint32_t) });
                return 0;
        default:
                return write_whole(packer, letter);
        }
}

/* The elements of the array that a letter makes, without its head. */
static int write_elements(struct packer *packer, char letter) {
        struct tr_writer *writer = packer->writer;
        size_t start = writer->len, head;
        struct tr_reader reader;
        struct tr_token token;
        int r;

        r = write_whole(packer, letter);
        if (r || tr_writer_error(writer))
                return r;
        reader = tr_reader(writer->data + start, writer->len - start);
        if (tr_read(&reader, &token) || token.type != TR_ARRAY)
                return -EINVAL;
        head = reader.at - (writer->data + start);
        memmove(writer->data + start, reader.at, writer->len - start - head);
        writer->len -= head;
        if (token.count > UINT32_MAX - packer->levels[packer->depth].count)
                return -EINVAL;
        packer->levels[packer->depth].count += token.count;
        return 0;
}

static int pack(struct packer *packer, const char *format) {
        int r = 0;

        for (; !r && *format; format++) {
                switch (*format) {
                case ' ':
                case ',':
                case ':':
                        break;
                case '[':
                case '{':
                        r = open_bracket(packer, *format);
                        break;
                case ']':
                case '}':
                        r = close_bracket(packer, *format);
                        break;
                case '*':
                        r = *++format ? write_elements(packer, *format) : -EINVAL;
                        if (r)
                                return r;
                        break;
                default:
                        r = write_letter(packer, *format);
                        packer->levels[packer->depth].count++;
                }
        }
        return r ? r : packer->depth ? -EINVAL : tr_writer_error(packer->writer);
}

int tr_params_write(struct tr_writer *writer, const char *format, va_list args, uint32_t *ret_count) {
        struct packer packer = { .writer = writer };
        int r;

        va_copy(packer.args, args);
        r = pack(&packer, format ? format : "");
        va_end(packer.args);
        *ret_count = packer.levels[0].count;
        return r;
}

int tr_params_write_one(struct tr_writer *writer, const char *format, va_list args) {
        uint32_t count;
        int r = tr_params_write(writer, format, args, &count);

        if (!r && !count)
                tr_write_nil(writer);
        return r ? r : count > 1 ? -EINVAL : 0;
}

int tr_params_write_list(struct tr_writer *writer, const char *format, va_list args) {
        size_t head = writer->len;
        uint32_t count;
        int r;

        write_head(writer, ARRAY32);
        r = tr_params_write(writer, format, args, &count);
        set_count(writer, head, count);
        return r;
}
