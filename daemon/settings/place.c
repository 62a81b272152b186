/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a JSON document. The parser keeps no positions, so a line is found by walking the text again, which costs
 * nothing that matters: it is done for what is wrong only. The walk trusts that the parser has accepted the text; it
 * still never leaves it.
 */
#include "config.h"

#include "daemon/settings/place.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"

static void print(const struct tr_place *place, FILE *stream) {
        if (!place)
                return;
        print(place->parent, stream);
        if (place->key)
                fprintf(stream, "%s%s", place->parent ? "." : "", place->key);
        else
                fprintf(stream, "[%zu]", place->index);
}

char *tr_place_text(const struct tr_place *place) {
        char *text = NULL;
        size_t len;
        FILE *stream = open_memstream(&text, &len);

        if (!stream)
                return NULL;
        print(place, stream);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

json_t *tr_place_find(const struct tr_place *place, json_t *document) {
        json_t *parent;

        if (!place)
                return document;
        parent = tr_place_find(place->parent, document);
        return place->key ? json_object_get(parent, place->key) : json_array_get(parent, place->index);
}

static const char *skip_space(const char *at, const char *end) {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
                at++;
        return at;
}

/* Behind the string that begins here. */
static const char *skip_string(const char *at, const char *end) {
        for (at++; at < end && *at != '"'; at++)
                if (*at == '\\')
                        at++;
        return at < end ? at + 1 : end;
}

/* Behind the value that begins here: at the comma or bracket that follows it. */
static const char *skip_value(const char *at, const char *end) {
        int depth = 0;

        while (at < end) {
                if (*at == '"') {
                        at = skip_string(at, end);
                        continue;
                }
                if (*at == '{' || *at == '[')
                        depth++;
                else if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
                        return at;
                else if (*at == '}' || *at == ']')
                        depth--;
                at++;
        }
        return end;
}

/* Whether the string from `at` on, quotes included, is the key; it may be written with escapes, which the parser
 * reads. */
static bool is_key(const char *at, const char *end, const char *key) {
        json_t *string = json_loadb(at, (size_t)(end - at), JSON_DECODE_ANY, NULL);
        const char *text = json_string_value(string);
        bool is = text && strcmp(text, key) == 0;

        json_decref(string);
        return is;
}

/* From the value around it to the place: *ret_mark is where a person looks for it, *ret_value where its value
 * begins. */
static bool step(const struct tr_place *place, const char *at, const char *end, const char **ret_mark,
                 const char **ret_value) {
        size_t index = 0;

        if (at >= end || *at != (place->key ? '{' : '['))
                return false;
        for (at = skip_space(at + 1, end); at < end && *at != '}' && *at != ']'; index++) {
                const char *mark = at;
                bool found = !place->key && index == place->index;

                if (place->key) {
                        at = skip_string(at, end);
                        found = is_key(mark, at, place->key);
                        at = skip_space(at, end);
                        at = skip_space(at < end ? at + 1 : end, end);
                }
                if (found) {
                        *ret_mark = mark;
                        *ret_value = at;
                        return true;
                }
                at = skip_value(at, end);
                at = skip_space(at < end && *at == ',' ? at + 1 : at, end);
        }
        return false;
}

/* Walks as far as the places go; answers whether that was all the way. */
static bool walk(const struct tr_place *place, const char *end, const char **mark, const char **value) {
        return !place || (walk(place->parent, end, mark, value) && step(place, *value, end, mark, value));
}

int tr_place_line(const struct tr_place *place, const char *text, size_t len) {
        const char *end = text + len, *mark = skip_space(text, end), *value = mark;
        int line = 1;

        (void)walk(place, end, &mark, &value);
        for (const char *at = text; at < mark; at++)
                line += *at == '\n';
        return line;
}

/* The next token of a pointer, its escapes read; the caller frees. NULL where memory is short. */
static char *token(const char *at, const char *end) {
        char *text = strndup(at, (size_t)(end - at));
        size_t len = 0;

        for (const char *from = text; from && *from; from++) {
                bool is_escape = *from == '~' && (from[1] == '0' || from[1] == '1');

                text[len++] = (char)(is_escape ? (from[1] == '0' ? '~' : '/') : *from);
                from += is_escape;
        }
        if (text)
                text[len] = '\0';
        return text;
}

int tr_place_line_below(const struct tr_place *place, json_t *value, const char *pointer, const char *text, size_t len) {
        struct tr_place inner = { .parent = place };
        TR_AUTO_FREE char *key = NULL;
        const char *end;
        json_t *next;

        if (*pointer != '/')
                return tr_place_line(place, text, len);
        end = strchrnul(pointer + 1, '/');
        key = token(pointer + 1, end);
        if (json_is_array(value)) {
                inner.index = key ? strtoul(key, NULL, 10) : SIZE_MAX;
                next = json_array_get(value, inner.index);
        } else {
                inner.key = key;
                next = key ? json_object_get(value, key) : NULL;
        }
        return next ? tr_place_line_below(&inner, next, end, text, len) : tr_place_line(place, text, len);
}
