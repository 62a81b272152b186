/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_COMPILE_H
#define TR_CONTRACT_COMPILE_H

#include <jansson.h>

#include "daemon/contract/node.h"
#include "daemon/contract/pointer.h"
#include "daemon/contract/schema.h"
#include "daemon/contract/uri.h"

/*
 * Compiling goes over the JSON once, which makes the nodes and writes down who refers to what (compile.c, with
 * members.c and values.c); then the references are led to their nodes (refs.c). Everything answers 0,
 * TR_SCHEMA_WRONG, with the problem filled in, or -ENOMEM.
 */

/* A subschema that is an object. */
struct tr_subschema {
        json_t *json;
        struct tr_node *node;
        struct tr_resource *resource;
        const struct tr_step *step;
        unsigned depth;
        size_t order; /* in the schema, from the beginning */
};

/* $ref and $dynamicRef. */
struct tr_reference {
        struct tr_reference *next;
        struct tr_subschema from;
        const char *text;
        bool is_dynamic;
};

struct tr_compiler {
        struct tr_schema *schema;
        struct tr_arena arena; /* for what is not needed afterwards */
        struct tr_schema_problem *problem;
        struct tr_subschema *subschemas; /* of the JSON objects; sorted by them once all are there */
        size_t subschemas_count, subschemas_room;
        size_t count; /* of all subschemas */
        size_t names; /* $id, $anchor, $dynamicAnchor */
        size_t values_bytes;
        size_t patterns_bytes;
        uint64_t steps; /* left for putting values in order */
        struct tr_resource *resources;
        struct tr_reference *references, **references_end;
};

/* How the subschemas lie in the value of a keyword. */
enum tr_shape {
        TR_SHAPE_NONE,
        TR_SHAPE_ONE,
        TR_SHAPE_LIST,
        TR_SHAPE_MAP,
};
enum tr_shape tr_keyword_shape(const char *keyword);

/* Fills in the problem; answers TR_SCHEMA_WRONG or -ENOMEM. */
int tr_compile_wrong(struct tr_compiler *compiler, const struct tr_step *step, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The same, of a keyword. */
int tr_compile_wrong_in(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Memory of the schema, zeroed. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_compile_take(struct tr_compiler *compiler, size_t count, size_t bytes, void *ret_memory);
/* A step that stays while compiling goes on: a member, or with NULL an element. NULL where memory is short. */
const struct tr_step *tr_compile_step(struct tr_compiler *compiler, const struct tr_step *parent, const char *key,
                                      size_t index);

/* Compiles a subschema that stands under a keyword: at `key`, with NULL at `index`, and with step NULL below the
 * keyword itself. */
TR_MUST_CHECK int tr_compile_subschema(struct tr_compiler *compiler, const struct tr_subschema *parent,
                                       const struct tr_step *step, json_t *json, const struct tr_node **ret_node);
/* The node of true, or that of false. */
const struct tr_node *tr_compile_boolean(const json_t *json);
TR_MUST_CHECK int tr_compile_pattern(struct tr_compiler *compiler, const struct tr_step *step, const char *text,
                                     size_t len, const struct tr_pattern **ret_pattern);

/* members.c: all keywords that name members. */
TR_MUST_CHECK int tr_compile_members(struct tr_compiler *compiler, const struct tr_subschema *at,
                                     struct tr_objects *objects);
/* values.c */
TR_MUST_CHECK int tr_compile_values(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                                    json_t *const *values, size_t count, const struct tr_values **ret_values);

/* refs.c */
TR_MUST_CHECK int tr_compile_identity(struct tr_compiler *compiler, struct tr_subschema *at, const char *parent_uri);
TR_MUST_CHECK int tr_compile_anchor(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                                    json_t *name);
TR_MUST_CHECK int tr_compile_reference(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                                       json_t *reference);
TR_MUST_CHECK int tr_compile_references(struct tr_compiler *compiler);

#endif
