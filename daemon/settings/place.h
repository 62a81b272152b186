/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_PLACE_H
#define TR_SETTINGS_PLACE_H

#include <jansson.h>
#include <stddef.h>

/*
 * Where in a JSON document something is: a chain of steps from the inside out, on the stack of whoever reads the
 * document. NULL is the document itself.
 */
struct tr_place {
        const struct tr_place *parent;
        const char *key; /* the member of an object; NULL: the element of an array */
        size_t index;
};

/* As people write it: "limits.heap", "actors[2].restart"; "" for the document. NULL where memory is short; the
 * caller frees. */
char *tr_place_text(const struct tr_place *place);

/* The value there, borrowed; NULL where there is none. */
json_t *tr_place_find(const struct tr_place *place, json_t *document);

/*
 * The line, from 1, where the key (of a member) or the value (of an element) stands in the text that the document was
 * read from, which is valid JSON. Where the place is not in it, the line of what is nearest around it.
 */
int tr_place_line(const struct tr_place *place, const char *text, size_t len);
/* The same of what a JSON Pointer names in the value at the place. */
int tr_place_line_below(const struct tr_place *place, json_t *value, const char *pointer, const char *text, size_t len);

#endif
