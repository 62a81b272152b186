/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_SCHEMA_H
#define TR_CONTRACT_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

struct json_t; /* jansson's */

/*
 * JSON Schema, draft 2020-12: compiled once, and then held against values in MessagePack, where they lie.
 * docs/schema.md says what of it is supported, and how the values that JSON does not have are judged.
 *
 * A schema is immutable, counted by reference, and any thread may use it at any time. It keeps nothing of the JSON that
 * it was compiled from.
 *
 * All work is bounded, whatever the schema and the value: a schema by its counts, a check by the steps below, by the
 * schemas inside each other (which bounds the stack) and by the memory of a pattern. What would go beyond a bound is
 * refused, as wrong or as a violation, with a reason that says which bound.
 */

/* Subschemas of a schema, those that are true and false included. */
#define TR_SCHEMA_SUBSCHEMAS_MAX 16384
/* Subschemas inside each other, as they are written; held against the same value one through another. */
#define TR_SCHEMA_DEPTH_MAX 64
#define TR_SCHEMA_HEIGHT_MAX 64
/* $id, $anchor and $dynamicAnchor together. */
#define TR_SCHEMA_NAMES_MAX 256
/* Bytes of what const and enum allow, as MessagePack; of a pattern; of all patterns, as PCRE2 compiles them. */
#define TR_SCHEMA_VALUES_MAX (1u << 20)
#define TR_SCHEMA_PATTERN_MAX 4096
#define TR_SCHEMA_PATTERNS_MAX (1u << 20)
/*
 * The steps of a check: so many, and so many more for each byte of the value. A step is a subschema that is tried on a
 * value, a member or element that is looked at, an item of a pattern that is tried, or 64 bytes that are looked at; to
 * begin with a pattern is 8.
 */
#define TR_SCHEMA_STEPS (1u << 20)
#define TR_SCHEMA_STEPS_PER_BYTE 16
/* Subschemas at work inside each other in a check, through levels of the value and through references. */
#define TR_SCHEMA_LEVELS_MAX 512

enum {
        TR_SCHEMA_WRONG = 1,    /* *ret_problem says where and why */
        TR_SCHEMA_VIOLATED = 2, /* *ret_violation says where and why */
};

struct tr_schema;

/* What is wrong with a schema. */
struct tr_schema_problem {
        char *path;   /* where in the schema, as a JSON Pointer ("/properties/title/minLenght"); "" is the whole */
        char *reason; /* what follows on the path: "is no keyword that is supported" */
};

/* How a value violates a schema. */
struct tr_schema_violation {
        char *path;   /* where in the value, as a JSON Pointer ("/items/2/title"); "" is the whole. UTF-8, without
                       * control characters; one of more than a kilobyte is cut, and ends in "..." */
        char *reason; /* what follows on the path: "is 11 characters long; at most 10 are allowed" */
};

/* Both leave the structure empty; an empty one is fine. */
void tr_schema_problem_deinit(struct tr_schema_problem *problem);
void tr_schema_violation_deinit(struct tr_schema_violation *violation);

/*
 * Compiles a schema: an object, true or false. 0, TR_SCHEMA_WRONG (*ret_problem is the caller's to deinit) or -ENOMEM.
 * The outputs of the other answers are untouched.
 */
TR_MUST_CHECK int tr_schema_compile(const struct json_t *json, struct tr_schema **ret_schema,
                                    struct tr_schema_problem *ret_problem);

struct tr_schema *tr_schema_ref(struct tr_schema *schema);
/* NULL is fine. Answers NULL. */
struct tr_schema *tr_schema_unref(struct tr_schema *schema);

/*
 * Holds one value against the schema: typed MessagePack (ext types and keys of any type as they are) that the scanner
 * has passed. 0, TR_SCHEMA_VIOLATED (*ret_violation is the caller's to deinit) or -ENOMEM.
 *
 * The value may be changed where it lies, without changing its length: where it fits only if an empty array is taken as
 * an object, that array is made an empty map, and what has changed fits the schema as it then is. A value that fits as
 * it is, and one that is refused, is left as it was.
 */
TR_MUST_CHECK int tr_schema_check(const struct tr_schema *schema, uint8_t *value, size_t bytes,
                                  struct tr_schema_violation *ret_violation);

#endif
