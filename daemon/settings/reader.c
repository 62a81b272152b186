/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an object is read by its table: each member by its key's function, what the table has not is refused, and what it
 * wants is missed. Reading never stops at a problem.
 */
#include "config.h"

#include "daemon/settings/reader.h"

#include <errno.h>
#include <string.h>

void tr_reader_no_memory(struct tr_json_reader *reader) {
        if (reader->error == 0)
                reader->error = tr_error_origin(-ENOMEM);
}

__attribute__((format(printf, 4, 0))) static void tell(struct tr_json_reader *reader, struct tr_problems *problems,
                                                       const struct tr_place *place, const char *format,
                                                       va_list arguments) {
        char *key = place ? tr_place_text(place) : NULL;
        int r;

        if (place && !key) {
                tr_reader_no_memory(reader);
                return;
        }
        r = tr_problems_addv(problems, reader->file, tr_place_line(place, reader->text, reader->len), key, format,
                             arguments);
        if (r < 0)
                reader->error = r;
}

void tr_reader_problem(struct tr_json_reader *reader, const struct tr_place *place, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        tell(reader, reader->problems, place, format, arguments);
        va_end(arguments);
}

__attribute__((format(printf, 3, 4))) static void note(struct tr_json_reader *reader, const struct tr_place *place,
                                                       const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        tell(reader, reader->notes, place, format, arguments);
        va_end(arguments);
}

static const struct tr_key *find_key(const struct tr_key *keys, const char *name) {
        for (; keys->name; keys++)
                if (strcmp(keys->name, name) == 0)
                        return keys;
        return NULL;
}

/* Whether a key asks for something that nobody does: neither what is done anyway nor nothing. */
static bool asks_in_vain(const struct tr_json_reader *reader, const struct tr_place *place, json_t *value) {
        bool is_nothing = json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0);

        return reader->defaults && !is_nothing && !json_equal(value, tr_place_find(place, reader->defaults));
}

static void read_key(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                     const struct tr_key *key, void *structure) {
        void *field = structure && key->offset != TR_KEY_UNKEPT ? (char *)structure + key->offset : NULL;

        if (!json_is_null(value) || !(key->flags & TR_KEY_NULLABLE))
                key->read(reader, place, value, key, field);
        if ((key->flags & TR_KEY_UNBUILT) && asks_in_vain(reader, place, value))
                note(reader, place, "without effect in this version");
}

void tr_read_keys(struct tr_json_reader *reader, const struct tr_place *place, json_t *object,
                  const struct tr_key *keys, void *structure) {
        const char *name;
        json_t *value;

        if (!json_is_object(object)) {
                tr_reader_problem(reader, place, "must be an object");
                return;
        }
        json_object_foreach(object, name, value) {
                struct tr_place inner = { .parent = place, .key = name };
                const struct tr_key *key = find_key(keys, name);

                if (key)
                        read_key(reader, &inner, value, key, structure);
                else
                        tr_reader_problem(reader, &inner, "unknown key");
        }
        for (const struct tr_key *key = keys; key->name; key++) {
                struct tr_place inner = { .parent = place, .key = key->name };

                if ((key->flags & TR_KEY_REQUIRED) && !json_object_get(object, key->name))
                        tr_reader_problem(reader, &inner, "is missing");
        }
}

void tr_read_object(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                    const struct tr_key *key, void *field) {
        tr_read_keys(reader, place, value, key->keys, field);
}
