/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of values that a configuration has. A field is written only where the whole value is right, so after a
 * problem the structure still holds what it held before.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/settings/reader.h"
#include "proto/name.h"
#include "proto/quantity.h"

static void keep_number(void *field, uint64_t number) {
        if (field)
                *(uint64_t *)field = number;
}

static void keep_text(struct tr_json_reader *reader, void *field, const char *text) {
        char *copy;

        if (!field)
                return;
        copy = strdup(text);
        if (!copy) {
                tr_reader_no_memory(reader);
                return;
        }
        free(*(char **)field);
        *(char **)field = copy;
}

void tr_read_count(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                   void *field) {
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value) || number < 0 || (uint64_t)number < key->min || (uint64_t)number > key->max)
                tr_reader_problem(reader, place, "must be a whole number from %" PRIu64 " to %" PRIu64, key->min,
                                  key->max);
        else
                keep_number(field, (uint64_t)number);
}

/* A number, or a text that the function reads. */
static bool quantity(json_t *value, bool (*parse)(const char *text, size_t len, uint64_t *ret_value),
                     uint64_t *ret_number) {
        if (json_is_string(value))
                return parse(json_string_value(value), json_string_length(value), ret_number);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return false;
        *ret_number = (uint64_t)json_integer_value(value);
        return true;
}

void tr_read_size(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        uint64_t bytes;

        if (!quantity(value, tr_size_parse, &bytes))
                tr_reader_problem(reader, place, "must be a size: bytes, or text with K, M or G (\"64M\")");
        else if (bytes < key->min || bytes > key->max)
                tr_reader_problem(reader, place, "must be a size from %" PRIu64 " to %" PRIu64 " bytes", key->min,
                                  key->max);
        else
                keep_number(field, bytes);
}

void tr_read_duration(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                      const struct tr_key *key, void *field) {
        uint64_t ms;

        if (!quantity(value, tr_duration_parse, &ms))
                tr_reader_problem(reader, place,
                                  "must be a time: milliseconds, or text with ms, s, m, h or d (\"10s\")");
        else if (ms < key->min || ms > key->max)
                tr_reader_problem(reader, place, "must be a time from %" PRIu64 " to %" PRIu64 " milliseconds",
                                  key->min, key->max);
        else
                keep_number(field, ms);
}

void tr_read_mode(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        const char *text = json_string_value(value);
        size_t digits = text ? strspn(text, "01234567") : 0;

        if (digits < 3 || digits > 4 || text[digits] != '\0' || (digits == 4 && *text != '0'))
                tr_reader_problem(reader, place, "must be permissions as octal text (\"0660\")");
        else
                keep_number(field, strtoul(text, NULL, 8));
}

void tr_read_bool(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        if (!json_is_boolean(value))
                tr_reader_problem(reader, place, "must be true or false");
        else if (field)
                *(bool *)field = json_is_true(value);
}

/* Text without a NUL in it, which no name, path or label can have; NULL where it is none. */
static const char *plain_text(json_t *value) {
        const char *text = json_string_value(value);

        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

void tr_read_text(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        const char *text = plain_text(value);

        if (!text || strlen(text) < key->min || strlen(text) > key->max)
                tr_reader_problem(reader, place, "must be text of %" PRIu64 " to %" PRIu64 " bytes", key->min,
                                  key->max);
        else
                keep_text(reader, field, text);
}

void tr_read_name(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        const char *text = plain_text(value);

        if (!text || !tr_name_is_valid(text, strlen(text)))
                tr_reader_problem(reader, place, "must be a name: letters, digits, _ and -, in parts joined by dots");
        else
                keep_text(reader, field, text);
}

void tr_read_actor(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                   void *field) {
        const char *text = plain_text(value);
        size_t module_len;

        if (!text || !tr_actor_name_is_valid(text, strlen(text), &module_len))
                tr_reader_problem(reader, place, "must be an actor: \"module:Name\" or \"module\"");
        else
                keep_text(reader, field, text);
}

/* The path as it is, or behind the reader's folder where it is relative. NULL for want of memory. */
static char *resolve(const struct tr_json_reader *reader, const char *path) {
        char *whole;

        if (*path == '/' || !reader->folder)
                return strdup(path);
        return asprintf(&whole, "%s/%s", reader->folder, path) < 0 ? NULL : whole;
}

void tr_read_path(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        const char *text = plain_text(value);
        TR_AUTO_FREE char *whole = NULL;

        if (!text || !*text) {
                tr_reader_problem(reader, place, "must be a path");
                return;
        }
        whole = resolve(reader, text);
        if (whole)
                keep_text(reader, field, whole);
        else
                tr_reader_no_memory(reader);
}

void tr_texts_free(char **texts) {
        for (char **at = texts; at && *at; at++)
                free(*at);
        free(texts);
}

void tr_read_paths(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                   void *field) {
        char **paths;
        json_t *element;
        size_t i;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list of paths");
                return;
        }
        paths = calloc(json_array_size(value) + 1, sizeof(*paths));
        if (!paths) {
                tr_reader_no_memory(reader);
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                tr_read_path(reader, &inner, element, key, &paths[i]);
                if (!paths[i]) {
                        tr_texts_free(paths);
                        return;
                }
        }
        tr_texts_free(*(char ***)field);
        *(char ***)field = paths;
}

static bool find_choice(const char *const *choices, const char *text, uint64_t *ret_at) {
        for (uint64_t i = 0; text && choices[i]; i++)
                if (strcmp(choices[i], text) == 0) {
                        *ret_at = i;
                        return true;
                }
        return false;
}

static void refuse_choice(struct tr_json_reader *reader, const struct tr_place *place, const char *const *choices) {
        char text[128];
        size_t at = 0;

        for (size_t i = 0; choices[i] && at < sizeof(text); i++)
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", choices[i]);
        tr_reader_problem(reader, place, "must be one of: %s", text);
}

void tr_read_choice(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                    const struct tr_key *key, void *field) {
        uint64_t at;

        if (find_choice(key->choices, plain_text(value), &at))
                keep_number(field, at);
        else
                refuse_choice(reader, place, key->choices);
}

void tr_read_choices(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                     const struct tr_key *key, void *field) {
        uint64_t bits = 0, at;
        json_t *element;
        size_t i;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list");
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                if (find_choice(key->choices, plain_text(element), &at)) {
                        bits |= UINT64_C(1) << at;
                } else {
                        refuse_choice(reader, &inner, key->choices);
                        return;
                }
        }
        keep_number(field, bits);
}

void tr_read_objects(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                     const struct tr_key *key, void *field) {
        json_t *element;
        size_t i;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list");
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                tr_read_keys(reader, &inner, element, key->keys, NULL);
        }
}
