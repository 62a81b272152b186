/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_READER_H
#define TR_SETTINGS_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/settings/place.h"
#include "daemon/settings/problem.h"

/*
 * Reads JSON into structures by tables of keys. What is wrong becomes a problem and reading goes on; what failed for
 * want of memory is remembered in `error`, and the caller looks once at the end.
 */
struct tr_json_reader {
        const char *file;
        const char *text; /* the document's source, for lines */
        size_t len;
        const char *folder; /* where relative paths start */
        json_t *defaults;   /* the document of defaults; NULL while that itself is read */
        struct tr_problems *problems;
        struct tr_problems *notes;
        int error;
};

struct tr_key;

/* Reads one value into `field`, which is NULL where nothing keeps it: then its form is checked. */
typedef void tr_read_fn(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                        const struct tr_key *key, void *field);

enum {
        TR_KEY_REQUIRED = 1 << 0,
        TR_KEY_NULLABLE = 1 << 1, /* null stands for its absence */
        TR_KEY_UNBUILT = 1 << 2,  /* its feature is not built yet: checked, kept nowhere, and told where it is given */
};

#define TR_KEY_UNKEPT SIZE_MAX

/* One key of an object. A table ends with a key without a name. */
struct tr_key {
        const char *name;
        tr_read_fn *read;
        size_t offset; /* of the field in the structure that the object is read into, or TR_KEY_UNKEPT */
        unsigned int flags;
        uint64_t min, max;          /* of numbers, and of a text's bytes */
        const struct tr_key *keys;  /* of an object, or of a list's elements where those are objects */
        const char *const *choices; /* NULL-terminated; the value is the place in it */
};

/* The kinds of fields. */
tr_read_fn tr_read_object;   /* into the same structure, by key->keys */
tr_read_fn tr_read_count;    /* uint64_t */
tr_read_fn tr_read_size;     /* uint64_t, bytes */
tr_read_fn tr_read_duration; /* uint64_t, milliseconds */
tr_read_fn tr_read_mode;     /* uint64_t: octal text */
tr_read_fn tr_read_bool;     /* bool */
tr_read_fn tr_read_text;     /* char * */
tr_read_fn tr_read_name;     /* char *: a name as proto/name.h has it */
tr_read_fn tr_read_actor;    /* char *: "module:Name" */
tr_read_fn tr_read_path;     /* char *, absolute */
tr_read_fn tr_read_paths;    /* char **, absolute, NULL-terminated */
tr_read_fn tr_read_choice;   /* uint64_t */
tr_read_fn tr_read_choices;  /* uint64_t: a list, one bit each */
tr_read_fn tr_read_objects;  /* a list of objects by key->keys; kept nowhere */

/* Reads an object by a table into a structure. */
void tr_read_keys(struct tr_json_reader *reader, const struct tr_place *place, json_t *object,
                  const struct tr_key *keys, void *structure);

/* Tells what is wrong at a place. */
void tr_reader_problem(struct tr_json_reader *reader, const struct tr_place *place, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Frees a NULL-terminated list of texts. NULL is fine. */
void tr_texts_free(char **texts);
/* Tells that memory is short. */
void tr_reader_no_memory(struct tr_json_reader *reader);

#endif
