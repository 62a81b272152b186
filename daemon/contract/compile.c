/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From JSON to nodes. One table has every keyword, what its value has to be, and where in the node it goes. What is not
 * in the table is refused: a keyword that is misspelt, or that nobody here knows, would else be a contract that does
 * not hold.
 *
 * Recursion is bounded by TR_SCHEMA_DEPTH_MAX, memory by the counts in schema.h and by the JSON itself.
 */
#include "daemon/contract/compile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIALECT "https://json-schema.org/draft/2020-12/schema"
/* Steps for putting enums in order: some ten times what the largest takes. */
#define STEPS (UINT64_C(1) << 26)

/* What a keyword's value is. */
enum kind {
        ANYTHING,
        TEXT,
        FLAG,
        LIST,
        SCHEMA,
        SCHEMAS,     /* a list of them, at least one */
        DEFINITIONS, /* a map of them that only references reach */
        UNREACHABLE, /* one that only references reach */
        PATTERNS,    /* patternProperties */
        MEMBERS,     /* compiled by members.c, all at once */
        COUNT,
        NUMBER,
        DIVISOR,
        TYPE,
        CONST,
        ENUM,
        PATTERN,
        DIALECT_NAME,
        IDENTITY,
        ANCHOR,
        REFERENCE,
};

/* What it goes into. */
enum part {
        NOWHERE,
        NODE,
        NUMBERS,
        STRINGS,
        ARRAYS,
        OBJECTS,
};

struct keyword {
        const char *name;
        enum kind kind;
        enum part part;
        size_t offset;
};

#define IN_NODE(member) NODE, offsetof(struct tr_node, member)
#define IN_NUMBERS(member) NUMBERS, offsetof(struct tr_numbers, member)
#define IN_STRINGS(member) STRINGS, offsetof(struct tr_strings, member)
#define IN_ARRAYS(member) ARRAYS, offsetof(struct tr_arrays, member)
#define IN_OBJECTS(member) OBJECTS, offsetof(struct tr_objects, member)

static const struct keyword keywords[] = {
        { "$schema", DIALECT_NAME },
        { "$id", IDENTITY },
        { "$anchor", ANCHOR },
        { "$dynamicAnchor", ANCHOR },
        { "$ref", REFERENCE },
        { "$dynamicRef", REFERENCE },
        { "$defs", DEFINITIONS },
        { "$comment", TEXT },
        { "title", TEXT },
        { "description", TEXT },
        { "default", ANYTHING },
        { "examples", LIST },
        { "deprecated", FLAG },
        { "readOnly", FLAG },
        { "writeOnly", FLAG },
        { "format", TEXT },
        { "contentEncoding", TEXT },
        { "contentMediaType", TEXT },
        { "contentSchema", UNREACHABLE },
        { "type", TYPE },
        { "const", CONST },
        { "enum", ENUM },
        { "allOf", SCHEMAS, IN_NODE(all_of) },
        { "anyOf", SCHEMAS, IN_NODE(any_of) },
        { "oneOf", SCHEMAS, IN_NODE(one_of) },
        { "not", SCHEMA, IN_NODE(not_) },
        { "if", SCHEMA, IN_NODE(if_) },
        { "then", SCHEMA, IN_NODE(then) },
        { "else", SCHEMA, IN_NODE(else_) },
        { "minimum", NUMBER, IN_NUMBERS(minimum) },
        { "maximum", NUMBER, IN_NUMBERS(maximum) },
        { "exclusiveMinimum", NUMBER, IN_NUMBERS(exclusive_minimum) },
        { "exclusiveMaximum", NUMBER, IN_NUMBERS(exclusive_maximum) },
        { "multipleOf", DIVISOR, IN_NUMBERS(multiple_of) },
        { "minLength", COUNT, IN_STRINGS(min) },
        { "maxLength", COUNT, IN_STRINGS(max) },
        { "pattern", PATTERN, IN_STRINGS(pattern) },
        { "prefixItems", SCHEMAS, IN_ARRAYS(prefix) },
        { "items", SCHEMA, IN_ARRAYS(items) },
        { "contains", SCHEMA, IN_ARRAYS(contains) },
        { "unevaluatedItems", SCHEMA, IN_ARRAYS(unevaluated) },
        { "minItems", COUNT, IN_ARRAYS(min) },
        { "maxItems", COUNT, IN_ARRAYS(max) },
        { "minContains", COUNT, IN_ARRAYS(min_contains) },
        { "maxContains", COUNT, IN_ARRAYS(max_contains) },
        { "uniqueItems", FLAG, IN_ARRAYS(unique) },
        { "properties", MEMBERS },
        { "required", MEMBERS },
        { "dependentRequired", MEMBERS },
        { "dependentSchemas", MEMBERS },
        { "patternProperties", PATTERNS },
        { "additionalProperties", SCHEMA, IN_OBJECTS(additional) },
        { "propertyNames", SCHEMA, IN_OBJECTS(names) },
        { "unevaluatedProperties", SCHEMA, IN_OBJECTS(unevaluated) },
        { "minProperties", COUNT, IN_OBJECTS(min) },
        { "maxProperties", COUNT, IN_OBJECTS(max) },
};

static const struct tr_node everything = { .is_true = true }, nothing = { .is_false = true };

const struct tr_node *tr_compile_boolean(const json_t *json) {
        return json_is_true(json) ? &everything : &nothing;
}

static const struct keyword *find_keyword(const char *name) {
        for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
                if (strcmp(keywords[i].name, name) == 0)
                        return &keywords[i];
        return NULL;
}

enum tr_shape tr_keyword_shape(const char *name) {
        const struct keyword *keyword = find_keyword(name);

        if (!keyword)
                return TR_SHAPE_NONE;
        switch (keyword->kind) {
        case SCHEMA:
        case UNREACHABLE:
                return TR_SHAPE_ONE;
        case SCHEMAS:
                return TR_SHAPE_LIST;
        case DEFINITIONS:
        case PATTERNS:
                return TR_SHAPE_MAP;
        case MEMBERS:
                return strcmp(name, "properties") == 0 || strcmp(name, "dependentSchemas") == 0 ? TR_SHAPE_MAP
                                                                                                : TR_SHAPE_NONE;
        default:
                return TR_SHAPE_NONE;
        }
}

__attribute__((format(printf, 3, 0))) static int wrong(struct tr_compiler *compiler, const struct tr_step *step,
                                                       const char *format, va_list arguments) {
        char *path = tr_pointer_text(step), *reason = NULL;

        if (!path || vasprintf(&reason, format, arguments) < 0) {
                free(path);
                return tr_error_origin(-ENOMEM);
        }
        *compiler->problem = (struct tr_schema_problem){ path, reason };
        return TR_SCHEMA_WRONG;
}

int tr_compile_wrong(struct tr_compiler *compiler, const struct tr_step *step, const char *format, ...) {
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = wrong(compiler, step, format, arguments);
        va_end(arguments);
        return r;
}

int tr_compile_wrong_in(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                        const char *format, ...) {
        struct tr_step step = { .parent = at->step, .key = keyword, .key_len = strlen(keyword) };
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = wrong(compiler, &step, format, arguments);
        va_end(arguments);
        return r;
}

int tr_compile_take(struct tr_compiler *compiler, size_t count, size_t bytes, void *ret_memory) {
        void **ret = ret_memory;
        size_t size;

        if (__builtin_mul_overflow(count, bytes, &size) || !(*ret = tr_arena_take(&compiler->schema->arena, size)))
                return tr_error_origin(-ENOMEM);
        return 0;
}

const struct tr_step *tr_compile_step(struct tr_compiler *compiler, const struct tr_step *parent, const char *key,
                                      size_t index) {
        struct tr_step *step = tr_arena_take(&compiler->arena, sizeof(*step));

        if (step)
                *step = (struct tr_step){ parent, key, key ? strlen(key) : 0, index };
        return step;
}

/* The parts of a node, and what they ask where none of their keywords is there. */
static const struct tr_numbers any_number = { .minimum.type = TR_NIL };
static const struct tr_strings any_string = { .max = UINT64_MAX };
static const struct tr_arrays any_array = { .max = UINT64_MAX, .min_contains = 1, .max_contains = UINT64_MAX };
static const struct tr_objects any_object = { .max = UINT64_MAX };
static const struct {
        size_t offset;
        const void *empty;
        size_t bytes;
} parts[] = {
        [NUMBERS] = { offsetof(struct tr_node, numbers), &any_number, sizeof(any_number) },
        [STRINGS] = { offsetof(struct tr_node, strings), &any_string, sizeof(any_string) },
        [ARRAYS] = { offsetof(struct tr_node, arrays), &any_array, sizeof(any_array) },
        [OBJECTS] = { offsetof(struct tr_node, objects), &any_object, sizeof(any_object) },
};

/* The part of the node, which is made where it is not there. */
static int make_part(struct tr_compiler *compiler, struct tr_node *node, enum part part, void *ret_part) {
        void **ret = ret_part, **slot;
        int r;

        if (part == NOWHERE || part == NODE) {
                *ret = node;
                return 0;
        }
        slot = (void *)((char *)node + parts[part].offset);
        if (!*slot) {
                r = tr_compile_take(compiler, 1, parts[part].bytes, slot);
                if (r)
                        return r;
                memcpy(*slot, parts[part].empty, parts[part].bytes);
        }
        *ret = *slot;
        return 0;
}

/* Values of one sort each. */

static int compile_count(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword, json_t *json,
                         uint64_t *ret_count) {
        double real = json_real_value(json);

        if (json_is_integer(json) && json_integer_value(json) >= 0)
                *ret_count = (uint64_t)json_integer_value(json);
        else if (json_is_real(json) && real >= 0 && real < 1e18 && (double)(uint64_t)real == real)
                *ret_count = (uint64_t)real;
        else if (json_is_real(json) && real >= 1e18)
                *ret_count = UINT64_MAX;
        else
                return tr_compile_wrong_in(compiler, at, keyword, "has to be an integer that is not negative");
        return 0;
}

static int compile_number(struct tr_compiler *compiler, const struct tr_subschema *at, const struct keyword *keyword,
                          json_t *json, struct tr_token *ret_number) {
        if (!json_is_number(json))
                return tr_compile_wrong_in(compiler, at, keyword->name, "has to be a number");
        if (keyword->kind == DIVISOR && json_number_value(json) <= 0)
                return tr_compile_wrong_in(compiler, at, keyword->name, "has to be above 0");
        if (json_is_integer(json)) {
                ret_number->type = TR_INT;
                ret_number->integer = json_integer_value(json);
        } else {
                ret_number->type = TR_FLOAT;
                ret_number->number = json_real_value(json);
        }
        return 0;
}

static int type_bit(json_t *name) {
        for (int i = 0; i < TR_TYPES; i++)
                if (json_is_string(name) && strcmp(json_string_value(name), tr_type_names[i]) == 0)
                        return 1 << i;
        return 0;
}

static int compile_type(struct tr_compiler *compiler, const struct tr_subschema *at, json_t *json) {
        json_t *name;
        size_t i;
        int types = type_bit(json);

        json_array_foreach(json, i, name) {
                int bit = type_bit(name);

                if (!bit || types & bit) {
                        types = 0;
                        break;
                }
                types |= bit;
        }
        if (!types)
                return tr_compile_wrong_in(
                        compiler, at, "type",
                        "has to be null, boolean, object, array, number, string or integer, or a list of "
                        "some of these");
        at->node->types = (uint8_t)types;
        return 0;
}

int tr_compile_pattern(struct tr_compiler *compiler, const struct tr_step *step, const char *text, size_t len,
                       const struct tr_pattern **ret_pattern) {
        struct tr_schema_pattern *entry;
        char reason[TR_PATTERN_REASON_MAX];
        int r;

        r = tr_compile_take(compiler, 1, sizeof(*entry), &entry);
        if (r)
                return r;
        r = tr_pattern_new(text, len, &entry->pattern, reason);
        if (r == TR_PATTERN_WRONG)
                return tr_compile_wrong(compiler, step, "%s", reason);
        if (r)
                return tr_error_fold(r);
        entry->next = compiler->schema->patterns;
        compiler->schema->patterns = entry;
        *ret_pattern = entry->pattern;
        compiler->patterns_bytes += tr_pattern_bytes(entry->pattern);
        if (compiler->patterns_bytes > TR_SCHEMA_PATTERNS_MAX)
                return tr_compile_wrong(compiler, step,
                                        "is a pattern with which all take more than the %u bytes that they may",
                                        TR_SCHEMA_PATTERNS_MAX);
        return 0;
}

static int compile_string_pattern(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                                  json_t *json, const struct tr_pattern **ret_pattern) {
        struct tr_step step = { .parent = at->step, .key = keyword, .key_len = strlen(keyword) };

        if (!json_is_string(json))
                return tr_compile_wrong(compiler, &step, "has to be a string");
        return tr_compile_pattern(compiler, &step, json_string_value(json), json_string_length(json), ret_pattern);
}

/* Subschemas */

static int compile_keywords(struct tr_compiler *compiler, const struct tr_subschema *at);

/* Remembers where it is, for references. */
static int remember(struct tr_compiler *compiler, const struct tr_subschema *at) {
        if (compiler->subschemas_count == compiler->subschemas_room) {
                size_t room = compiler->subschemas_room ? 2 * compiler->subschemas_room : 16;
                struct tr_subschema *grown = reallocarray(compiler->subschemas, room, sizeof(*grown));

                if (!grown)
                        return tr_error_origin(-ENOMEM);
                compiler->subschemas = grown;
                compiler->subschemas_room = room;
        }
        compiler->subschemas[compiler->subschemas_count++] = *at;
        return 0;
}

static int compile_object(struct tr_compiler *compiler, struct tr_subschema *at, const char *parent_uri) {
        int r;

        r = tr_compile_take(compiler, 1, sizeof(*at->node), &at->node);
        if (!r)
                r = tr_compile_identity(compiler, at, parent_uri);
        if (r)
                return r;
        at->node->resource = at->resource;
        r = remember(compiler, at);
        return r ? r : compile_keywords(compiler, at);
}

int tr_compile_subschema(struct tr_compiler *compiler, const struct tr_subschema *parent, const struct tr_step *step,
                         json_t *json, const struct tr_node **ret_node) {
        struct tr_subschema at = { json, NULL, parent->resource, step, parent->depth + 1, compiler->count };
        int r;

        if (!step)
                return tr_error_origin(-ENOMEM);
        if (++compiler->count > TR_SCHEMA_SUBSCHEMAS_MAX)
                return tr_compile_wrong(compiler, step, "is one subschema more than the %d that there may be",
                                        TR_SCHEMA_SUBSCHEMAS_MAX);
        if (at.depth > TR_SCHEMA_DEPTH_MAX)
                return tr_compile_wrong(compiler, step,
                                        "is deeper than the %d subschemas that may be inside each other",
                                        TR_SCHEMA_DEPTH_MAX);
        if (json_is_boolean(json)) {
                *ret_node = tr_compile_boolean(json);
                return 0;
        }
        if (!json_is_object(json))
                return tr_compile_wrong(compiler, step, "has to be a schema: an object, true or false");
        r = compile_object(compiler, &at, parent->resource ? parent->resource->uri : "");
        if (!r)
                *ret_node = at.node;
        return r;
}

static int compile_list(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword, json_t *json,
                        struct tr_node_list *ret_list) {
        size_t count = json_array_size(json);
        const struct tr_step *step = tr_compile_step(compiler, at->step, keyword, 0);
        int r;

        if (count == 0)
                return tr_compile_wrong_in(compiler, at, keyword, "has to be a list of schemas, of at least one");
        r = tr_compile_take(compiler, count, sizeof(*ret_list->list), &ret_list->list);
        for (size_t i = 0; i < count && !r; i++)
                r = step ? tr_compile_subschema(compiler, at, tr_compile_step(compiler, step, NULL, i),
                                                json_array_get(json, i), &ret_list->list[i])
                         : tr_error_origin(-ENOMEM);
        ret_list->count = count;
        return r;
}

static int compile_definitions(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                               json_t *json) {
        const struct tr_step *step = tr_compile_step(compiler, at->step, keyword, 0);
        const struct tr_node *ignored;
        const char *name;
        json_t *definition;
        int r = step ? 0 : tr_error_origin(-ENOMEM);

        if (!json_is_object(json))
                return tr_compile_wrong_in(compiler, at, keyword, "has to be an object of schemas");
        json_object_foreach(json, name, definition) {
                if (!r)
                        r = tr_compile_subschema(compiler, at, tr_compile_step(compiler, step, name, 0), definition,
                                                 &ignored);
        }
        return r;
}

static int compile_patterns(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                            json_t *json, struct tr_objects *objects) {
        const struct tr_step *step = tr_compile_step(compiler, at->step, keyword, 0);
        const char *text;
        json_t *schema;
        int r;

        if (!json_is_object(json))
                return tr_compile_wrong_in(compiler, at, keyword, "has to be an object of schemas");
        r = tr_compile_take(compiler, json_object_size(json), sizeof(*objects->patterns), &objects->patterns);
        json_object_foreach(json, text, schema) {
                struct tr_named_pattern *named = &objects->patterns[objects->patterns_count];
                const struct tr_step *inner = step ? tr_compile_step(compiler, step, text, 0) : NULL;

                if (!r)
                        r = tr_compile_subschema(compiler, at, inner, schema, &named->schema);
                if (!r)
                        r = tr_compile_pattern(compiler, inner, text, strlen(text), &named->pattern);
                if (r)
                        break;
                objects->patterns_count++;
        }
        return r;
}

static int compile_members(struct tr_compiler *compiler, const struct tr_subschema *at) {
        struct tr_objects *objects;
        int r = make_part(compiler, at->node, OBJECTS, &objects);

        /* once, whichever of the keywords comes first */
        return r || objects->members ? r : tr_compile_members(compiler, at, objects);
}

static int compile_dialect(struct tr_compiler *compiler, const struct tr_subschema *at, json_t *json) {
        const char *text = json_string_value(json);

        if (!text || (strcmp(text, DIALECT) != 0 && strcmp(text, DIALECT "#") != 0))
                return tr_compile_wrong_in(compiler, at, "$schema",
                                           "is not " DIALECT ", the only one that is supported");
        return 0;
}

static int expect(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword, bool is_so,
                  const char *what) {
        return is_so ? 0 : tr_compile_wrong_in(compiler, at, keyword, "has to be %s", what);
}

static int compile_flag(struct tr_compiler *compiler, const struct tr_subschema *at, const struct keyword *keyword,
                        json_t *json, bool *ret_flag) {
        int r = expect(compiler, at, keyword->name, json_is_boolean(json), "true or false");

        if (!r && keyword->part != NOWHERE)
                *ret_flag = json_is_true(json);
        return r;
}

static int compile_enum(struct tr_compiler *compiler, const struct tr_subschema *at, json_t *json) {
        size_t count = json_array_size(json);
        json_t **values;
        int r;

        if (!json_is_array(json))
                return expect(compiler, at, "enum", false, "a list");
        values = reallocarray(NULL, count + 1, sizeof(*values));
        if (!values)
                return tr_error_origin(-ENOMEM);
        for (size_t i = 0; i < count; i++)
                values[i] = json_array_get(json, i);
        r = tr_compile_values(compiler, at, "enum", values, count, &at->node->choices);
        free(values);
        return r;
}

static int compile_into(struct tr_compiler *compiler, const struct tr_subschema *at, const struct keyword *keyword,
                        json_t *json, void *target) {
        const struct tr_node *ignored;
        const char *name = keyword->name;

        switch (keyword->kind) {
        case ANYTHING:
                return 0;
        case TEXT:
                return expect(compiler, at, name, json_is_string(json), "a string");
        case FLAG:
                return compile_flag(compiler, at, keyword, json, target);
        case LIST:
                return expect(compiler, at, name, json_is_array(json), "a list");
        case SCHEMA:
                return tr_compile_subschema(compiler, at, tr_compile_step(compiler, at->step, name, 0), json, target);
        case UNREACHABLE:
                return tr_compile_subschema(compiler, at, tr_compile_step(compiler, at->step, name, 0), json, &ignored);
        case SCHEMAS:
                return compile_list(compiler, at, name, json, target);
        case DEFINITIONS:
                return compile_definitions(compiler, at, name, json);
        case COUNT:
                return compile_count(compiler, at, name, json, target);
        case NUMBER:
        case DIVISOR:
                return compile_number(compiler, at, keyword, json, target);
        case TYPE:
                return compile_type(compiler, at, json);
        case CONST:
                return tr_compile_values(compiler, at, name, &json, 1, &at->node->constant);
        case ENUM:
                return compile_enum(compiler, at, json);
        case PATTERN:
                return compile_string_pattern(compiler, at, name, json, target);
        case DIALECT_NAME:
                return compile_dialect(compiler, at, json);
        case ANCHOR:
                return tr_compile_anchor(compiler, at, name, json);
        case REFERENCE:
                return tr_compile_reference(compiler, at, name, json);
        case IDENTITY: /* compile_object() began with it */
        case PATTERNS:
        case MEMBERS:
                break;
        }
        return 0;
}

static int compile_keyword(struct tr_compiler *compiler, const struct tr_subschema *at, const char *name,
                           json_t *json) {
        const struct keyword *keyword = find_keyword(name);
        struct tr_objects *objects;
        char *part;
        int r;

        if (!keyword)
                return tr_compile_wrong_in(compiler, at, name, "is no keyword that is supported");
        if (keyword->kind == MEMBERS)
                return compile_members(compiler, at);
        if (keyword->kind == PATTERNS) {
                r = make_part(compiler, at->node, OBJECTS, &objects);
                return r ? r : compile_patterns(compiler, at, name, json, objects);
        }
        r = make_part(compiler, at->node, keyword->part, &part);
        return r ? r : compile_into(compiler, at, keyword, json, part + keyword->offset);
}

static int compile_keywords(struct tr_compiler *compiler, const struct tr_subschema *at) {
        const char *name;
        json_t *value;
        int r = 0;

        json_object_foreach(at->json, name, value) {
                r = compile_keyword(compiler, at, name, value);
                if (r)
                        break;
        }
        return r;
}

static int compile_root(struct tr_compiler *compiler, const json_t *json) {
        struct tr_subschema at = { (json_t *)json, NULL, NULL, NULL, 0, 0 };
        int r;

        compiler->count = 1;
        if (json_is_boolean(json)) {
                compiler->schema->root = tr_compile_boolean(json);
                return 0;
        }
        if (!json_is_object(json))
                return tr_compile_wrong(compiler, NULL, "has to be a schema: an object, true or false");
        r = compile_object(compiler, &at, "");
        if (r)
                return r;
        compiler->schema->root = at.node;
        return tr_compile_references(compiler);
}

int tr_schema_compile(const json_t *json, struct tr_schema **ret_schema, struct tr_schema_problem *ret_problem) {
        struct tr_schema_problem problem = { 0 };
        struct tr_compiler compiler = { .problem = &problem, .steps = STEPS };
        int r;

        compiler.references_end = &compiler.references;
        compiler.schema = calloc(1, sizeof(*compiler.schema));
        if (!compiler.schema)
                return tr_error_origin(-ENOMEM);
        atomic_init(&compiler.schema->refs, 1);
        r = compile_root(&compiler, json);
        free(compiler.subschemas);
        tr_arena_deinit(&compiler.arena);
        if (r) {
                tr_schema_unref(compiler.schema);
                if (r == TR_SCHEMA_WRONG)
                        *ret_problem = problem;
                return r > 0 ? r : tr_error_fold(r);
        }
        *ret_schema = compiler.schema;
        return 0;
}
