/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_NODE_H
#define TR_CONTRACT_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/contract/canonical.h"
#include "daemon/contract/pattern.h"
#include "daemon/contract/schema.h"
#include "proto/value.h"

/*
 * A schema as it is compiled: nodes, one for each subschema, and what their keywords ask. Nothing in it changes once
 * tr_schema_compile() has answered. All of it but the patterns is in the schema's arena and goes with that.
 *
 * Keywords that are not there are NULL, or ask what everything fulfils.
 */

/* The bits of `type`. An integer is also a number. */
enum {
        TR_IS_NULL = 1 << 0,
        TR_IS_BOOLEAN = 1 << 1,
        TR_IS_OBJECT = 1 << 2,
        TR_IS_ARRAY = 1 << 3,
        TR_IS_NUMBER = 1 << 4,
        TR_IS_STRING = 1 << 5,
        TR_IS_INTEGER = 1 << 6,
};
#define TR_TYPES 7
extern const char *const tr_type_names[TR_TYPES];

struct tr_node_list {
        const struct tr_node **list;
        size_t count;
};

/* const and enum: canonical values, sorted. */
struct tr_values {
        struct tr_slice *list;
        size_t count;
};

struct tr_numbers {
        /* of the type TR_NIL where they are not there */
        struct tr_token minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of;
};

struct tr_strings {
        uint64_t min, max; /* characters */
        const struct tr_pattern *pattern;
};

struct tr_arrays {
        struct tr_node_list prefix;
        const struct tr_node *items, *contains, *unevaluated;
        uint64_t min, max, min_contains, max_contains;
        bool unique;
};

/* A member that some keyword names. */
struct tr_member {
        const char *name;
        size_t name_len;
        const struct tr_node *schema;    /* properties */
        const struct tr_node *dependent; /* dependentSchemas */
        const uint32_t *needs;           /* dependentRequired: indices in the list of members */
        size_t needs_count;
        bool is_required;
};

struct tr_named_pattern {
        const struct tr_pattern *pattern;
        const struct tr_node *schema;
};

struct tr_objects {
        struct tr_member *members; /* sorted by name */
        size_t members_count;
        uint32_t *checked; /* indices of members that are required, or on which others depend */
        size_t checked_count;
        struct tr_named_pattern *patterns;
        size_t patterns_count;
        const struct tr_node *additional, *names, *unevaluated;
        uint64_t min, max;
};

struct tr_node {
        bool is_false;   /* nothing fits */
        bool is_true;    /* everything does: there is nothing to be looked at */
        uint8_t types;   /* 0: any */
        uint8_t visit;   /* compiling: whether refs.c has been here */
        uint16_t height; /* compiling: nodes that are held against the same value below this, itself counted */
        const struct tr_values *constant, *choices;
        struct tr_numbers *numbers;
        struct tr_strings *strings;
        struct tr_arrays *arrays;
        struct tr_objects *objects;
        struct tr_node_list all_of, any_of, one_of;
        const struct tr_node *not_, *if_, *then, *else_;
        const struct tr_node *ref;
        /* $dynamicRef: where it leads unless a resource on the way here has a $dynamicAnchor of the name */
        const struct tr_node *dynamic_ref;
        const char *dynamic_name; /* NULL: always there */
        const struct tr_resource *resource;
};

/* What a $id, or the whole, begins: the names that are known in it. */
struct tr_anchor {
        const struct tr_anchor *next;
        const char *name;
        bool is_dynamic;
        const struct tr_node *node;
};

struct tr_resource {
        struct tr_resource *next;
        const char *uri;
        const struct tr_anchor *anchors;
        uint32_t anchors_count;
        const struct tr_node *node;
        struct json_t *json; /* compiling */
};

/* Where the resource has a $dynamicAnchor of the name; NULL where it has none. */
const struct tr_node *tr_dynamic_anchor(const struct tr_resource *resource, const char *name);

struct tr_arena {
        struct tr_block *blocks;
        size_t left; /* bytes in the newest */
};

struct tr_schema_pattern {
        struct tr_schema_pattern *next;
        struct tr_pattern *pattern;
};

struct tr_schema {
        atomic_uint refs;
        struct tr_arena arena;
        struct tr_schema_pattern *patterns;
        const struct tr_node *root;
        bool has_dynamic;
};

/* Zeroed memory that is freed with the arena; NULL where memory is short. */
void *tr_arena_take(struct tr_arena *arena, size_t bytes);
/* A copy with a NUL behind it. */
char *tr_arena_copy(struct tr_arena *arena, const char *text, size_t len);
void tr_arena_deinit(struct tr_arena *arena);

/* The member of the name, or NULL. */
const struct tr_member *tr_member_find(const struct tr_objects *objects, const char *name, size_t len);
int tr_member_compare(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
