/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/notation.h"

#include <check.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *write_value(struct tr_writer *writer, const char *at);

/* Writes what stands before the closing bracket into a writer of its own, and counts it. */
static const char *write_items(struct tr_writer *items, const char *at, char close, uint32_t *ret_count) {
        uint32_t count = 0;
        while (*at != close) {
                at = write_value(items, at);
                count++;
                if (*at == ',' || *at == ':')
                        at++;
        }
        *ret_count = count;
        return at + 1;
}

static const char *write_container(struct tr_writer *writer, const char *at) {
        struct tr_writer items = TR_WRITER_INIT;
        uint32_t count;
        bool is_map = *at == '{';
        at = write_items(&items, at + 1, is_map ? '}' : ']', &count);
        if (is_map)
                tr_write_map(writer, count / 2);
        else
                tr_write_array(writer, count);
        tr_write_raw(writer, items.data, items.len);
        tr_writer_deinit(&items);
        return at;
}

static size_t read_hex(const char **at, uint8_t *bytes, size_t size) {
        size_t len = 0;
        for (; isxdigit((unsigned char)(*at)[0]) && isxdigit((unsigned char)(*at)[1]); *at += 2) {
                unsigned int byte;
                ck_assert_uint_lt(len, size);
                ck_assert_int_eq(sscanf(*at, "%2x", &byte), 1);
                bytes[len++] = (uint8_t)byte;
        }
        return len;
}

static const char *write_bytes(struct tr_writer *writer, const char *at) {
        uint8_t bytes[256];
        long type = 0;
        bool is_ext = *at == '!';
        if (is_ext) {
                char *end;
                type = strtol(at + 1, &end, 10);
                at = end;
        }
        at++;
        size_t len = read_hex(&at, bytes, sizeof(bytes));
        if (is_ext)
                tr_write_ext(writer, (int8_t)type, bytes, len);
        else
                tr_write_bin(writer, bytes, len);
        return at;
}

static const char *write_number(struct tr_writer *writer, const char *at) {
        char *end;
        size_t digits = strspn(at, "-0123456789");
        ck_assert_msg(digits > 0, "no value: %s", at);
        if (at[digits] == '.') {
                tr_write_float(writer, strtod(at, &end));
        } else if (*at == '-') {
                tr_write_int(writer, strtoll(at, &end, 10));
        } else {
                tr_write_uint(writer, strtoull(at, &end, 10));
        }
        return end;
}

static const char *write_value(struct tr_writer *writer, const char *at) {
        if (*at == '[' || *at == '{')
                return write_container(writer, at);
        if (*at == '#' || *at == '!')
                return write_bytes(writer, at);
        if (*at == '\'') {
                size_t len = strcspn(at + 1, "'");
                tr_write_str(writer, at + 1, len);
                return at + len + 2;
        }
        if (strncmp(at, "nil", 3) == 0) {
                tr_write_nil(writer);
                return at + 3;
        }
        if (strncmp(at, "true", 4) == 0) {
                tr_write_bool(writer, true);
                return at + 4;
        }
        if (strncmp(at, "false", 5) == 0) {
                tr_write_bool(writer, false);
                return at + 5;
        }
        return write_number(writer, at);
}

void notation_write(struct tr_writer *writer, const char *text) {
        while (*text)
                text = write_value(writer, text);
        ck_assert_int_eq(tr_writer_error(writer), 0);
}

static void print_value(FILE *to, struct tr_reader *reader);

static void print_items(FILE *to, struct tr_reader *reader, uint32_t count, bool is_map) {
        fputc(is_map ? '{' : '[', to);
        for (uint32_t i = 0; i < count; i++) {
                if (i > 0)
                        fputc(',', to);
                print_value(to, reader);
                if (is_map) {
                        fputc(':', to);
                        print_value(to, reader);
                }
        }
        fputc(is_map ? '}' : ']', to);
}

static void print_hex(FILE *to, const struct tr_token *token) {
        fputc('#', to);
        for (uint32_t i = 0; i < token->len; i++)
                fprintf(to, "%02x", token->data[i]);
}

static void print_value(FILE *to, struct tr_reader *reader) {
        struct tr_token token;
        if (tr_read(reader, &token) != 0) /* each assertion that holds is a write, too */
                ck_abort_msg("what was received is no MessagePack");
        switch (token.type) {
        case TR_NIL:
                fputs("nil", to);
                break;
        case TR_BOOL:
                fputs(token.boolean ? "true" : "false", to);
                break;
        case TR_INT:
                fprintf(to, "%" PRId64, token.integer);
                break;
        case TR_UINT:
                fprintf(to, "%" PRIu64, token.unsigned_);
                break;
        case TR_FLOAT:
                fprintf(to, "%f", token.number);
                break;
        case TR_STR:
                fprintf(to, "'%.*s'", (int)token.len, (const char *)token.data);
                break;
        case TR_EXT:
                fprintf(to, "!%d", token.ext);
                print_hex(to, &token);
                break;
        case TR_BIN:
                print_hex(to, &token);
                break;
        case TR_ARRAY:
        case TR_MAP:
                print_items(to, reader, token.count, token.type == TR_MAP);
                break;
        }
}

char *notation_read(struct tr_reader *reader) {
        char *text = NULL;
        size_t len;
        FILE *to = open_memstream(&text, &len);
        ck_assert_ptr_nonnull(to);
        print_value(to, reader);
        fclose(to);
        return text;
}
