/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and references. A $id begins a resource, in which anchors are known and against which references are read.
 * Where a reference leads is looked up when all nodes are there: a URI among the resources, then a JSON Pointer from
 * the resource's JSON down, or an anchor in it. Nothing but this schema is ever looked at.
 *
 * A pointer leads to a subschema only where one stands: through keywords that have schemas. So each object that it can
 * end at has been compiled, and its node is found by the object itself.
 *
 * Subschemas that are held against the same value, one through another without end, would never answer: the last step
 * measures how many there are below each, and refuses what goes around or is too high. A $dynamicRef counts as where it
 * leads at first; where it leads later is bounded when it is checked.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/compile.h"

/* Bytes of a reference that are shown. */
#define SHOWN 128

enum visit {
        UNSEEN,
        ON_THE_WAY,
        MEASURED,
};

static int count_name(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword) {
        if (++compiler->names > TR_SCHEMA_NAMES_MAX)
                return tr_compile_wrong_in(compiler, at, keyword, "is one name more than the %d that there may be",
                                           TR_SCHEMA_NAMES_MAX);
        return 0;
}

static struct tr_resource *find_resource(const struct tr_compiler *compiler, const char *uri) {
        struct tr_resource *resource = compiler->resources;

        while (resource && strcmp(resource->uri, uri) != 0)
                resource = resource->next;
        return resource;
}

static int add_resource(struct tr_compiler *compiler, struct tr_subschema *at, const char *uri) {
        struct tr_resource *resource;
        const char *own = tr_arena_copy(&compiler->schema->arena, uri, strlen(uri));
        int r;

        r = tr_compile_take(compiler, 1, sizeof(*resource), &resource);
        if (r || !own)
                return r ? r : tr_error_origin(-ENOMEM);
        resource->uri = own;
        resource->node = at->node;
        resource->json = at->json;
        resource->next = compiler->resources;
        compiler->resources = resource;
        at->resource = resource;
        return 0;
}

int tr_compile_identity(struct tr_compiler *compiler, struct tr_subschema *at, const char *parent_uri) {
        json_t *json = json_object_get(at->json, "$id");
        const char *id = json_string_value(json);
        char uri[TR_URI_MAX];
        size_t len;
        int r;

        if (!json)
                return at->resource ? 0 : add_resource(compiler, at, "");
        if (!id)
                return tr_compile_wrong_in(compiler, at, "$id", "has to be a string");
        len = strcspn(id, "#");
        if (id[len] && id[len + 1])
                return tr_compile_wrong_in(compiler, at, "$id", "has a fragment: a name within a schema is an $anchor");
        r = count_name(compiler, at, "$id");
        if (r)
                return r;
        if (!tr_uri_resolve(parent_uri, id, len, uri))
                return tr_compile_wrong_in(compiler, at, "$id", "is longer than %d bytes", TR_URI_MAX - 1);
        if (find_resource(compiler, uri))
                return tr_compile_wrong_in(compiler, at, "$id", "is that of another subschema too");
        return add_resource(compiler, at, uri);
}

static bool is_anchor_name(const char *name) {
        if (!isalpha((unsigned char)name[0]) && name[0] != '_')
                return false;
        for (; *name; name++)
                if (!isalnum((unsigned char)*name) && !strchr("-._", *name))
                        return false;
        return true;
}

static const struct tr_anchor *find_anchor(const struct tr_resource *resource, const char *name) {
        const struct tr_anchor *anchor = resource->anchors;

        while (anchor && strcmp(anchor->name, name) != 0)
                anchor = anchor->next;
        return anchor;
}

const struct tr_node *tr_dynamic_anchor(const struct tr_resource *resource, const char *name) {
        for (const struct tr_anchor *anchor = resource->anchors; anchor; anchor = anchor->next)
                if (anchor->is_dynamic && strcmp(anchor->name, name) == 0)
                        return anchor->node;
        return NULL;
}

int tr_compile_anchor(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword, json_t *json) {
        const char *name = json_string_value(json);
        const struct tr_anchor *known;
        struct tr_anchor *anchor;
        int r;

        if (!name || json_string_length(json) != strlen(name) || !is_anchor_name(name))
                return tr_compile_wrong_in(
                        compiler, at, keyword,
                        "has to be a name of letters, digits, -, _ and . that begins with a letter or _");
        r = count_name(compiler, at, keyword);
        if (r)
                return r;
        known = find_anchor(at->resource, name);
        if (known && known->node != at->node)
                return tr_compile_wrong_in(compiler, at, keyword, "is that of another subschema too");
        r = tr_compile_take(compiler, 1, sizeof(*anchor), &anchor);
        if (r)
                return r;
        *anchor = (struct tr_anchor){ .next = at->resource->anchors, .node = at->node };
        anchor->is_dynamic = strcmp(keyword, "$dynamicAnchor") == 0;
        anchor->name = tr_arena_copy(&compiler->schema->arena, name, strlen(name));
        if (!anchor->name)
                return tr_error_origin(-ENOMEM);
        at->resource->anchors = anchor;
        at->resource->anchors_count++;
        return 0;
}

int tr_compile_reference(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                         json_t *json) {
        struct tr_reference *reference;

        if (!json_is_string(json) || strlen(json_string_value(json)) != json_string_length(json))
                return tr_compile_wrong_in(compiler, at, keyword, "has to be a string");
        reference = tr_arena_take(&compiler->arena, sizeof(*reference));
        if (!reference)
                return tr_error_origin(-ENOMEM);
        *reference = (struct tr_reference){ NULL, *at, json_string_value(json), strcmp(keyword, "$dynamicRef") == 0 };
        *compiler->references_end = reference;
        compiler->references_end = &reference->next;
        return 0;
}

/* Looking up */

static int compare_json(const void *a, const void *b) {
        const struct tr_subschema *first = a, *second = b;

        return (first->json > second->json) - (first->json < second->json);
}

static int compare_order(const void *a, const void *b) {
        const struct tr_subschema *first = a, *second = b;

        return (first->order > second->order) - (first->order < second->order);
}

static const struct tr_node *node_of(const struct tr_compiler *compiler, json_t *json) {
        const struct tr_subschema key = { .json = json };
        const struct tr_subschema *found;

        if (!json_is_object(json))
                return json_is_boolean(json) ? tr_compile_boolean(json) : NULL;
        found = bsearch(&key, compiler->subschemas, compiler->subschemas_count, sizeof(key), compare_json);
        return found ? found->node : NULL;
}

static int hex(char digit) {
        static const char digits[] = "0123456789abcdef";
        const char *at = digit ? strchr(digits, tolower((unsigned char)digit)) : NULL;

        return at ? (int)(at - digits) : -1;
}

/* Takes %XX away, in place; false where there is one that is none, or that is a NUL. */
static bool decode_percent(char *text) {
        char *to = text;

        for (; *text; text++) {
                if (*text != '%') {
                        *to++ = *text;
                        continue;
                }
                if (hex(text[1]) < 0 || hex(text[2]) < 0)
                        return false;
                *to = (char)(hex(text[1]) << 4 | hex(text[2]));
                if (!*to++)
                        return false;
                text += 2;
        }
        *to = '\0';
        return true;
}

/* Takes the first token off a pointer, behind its slash, and reads it where it lies; the pointer is NULL behind the
 * last. */
static char *take_token(char **pointer) {
        char *token = *pointer + 1, *to = token, *from = token;

        while (*from && *from != '/') {
                if (*from == '~' && (from[1] == '0' || from[1] == '1')) {
                        *to++ = from[1] == '0' ? '~' : '/';
                        from += 2;
                } else {
                        *to++ = *from++;
                }
        }
        /* `to` may be where the slash of the next is, which is never looked at again. */
        *pointer = *from ? from : NULL;
        *to = '\0';
        return token;
}

static json_t *element_of(json_t *array, const char *token) {
        size_t index = 0;

        if (!isdigit((unsigned char)token[0]) || (token[0] == '0' && token[1]) || strlen(token) > 9)
                return NULL;
        for (; isdigit((unsigned char)*token); token++)
                index = index * 10 + (size_t)(*token - '0');
        return *token ? NULL : json_array_get(array, index);
}

/* The JSON of the subschema that a pointer leads to; NULL where it leads to none. The pointer is used up. */
static json_t *follow(json_t *json, char *pointer) {
        while (pointer) {
                const char *token = take_token(&pointer);
                enum tr_shape shape = tr_keyword_shape(token);

                json = json_object_get(json, token);
                if (shape == TR_SHAPE_NONE)
                        return NULL;
                if (shape == TR_SHAPE_ONE)
                        continue;
                if (!pointer)
                        return NULL;
                token = take_token(&pointer);
                json = shape == TR_SHAPE_LIST ? element_of(json, token) : json_object_get(json, token);
        }
        return json;
}

static int unknown(struct tr_compiler *compiler, const struct tr_reference *reference, const char *why) {
        char shown[SHOWN];

        (void)tr_pointer_show(shown, sizeof(shown), reference->text, strlen(reference->text));
        return tr_compile_wrong_in(compiler, &reference->from, reference->is_dynamic ? "$dynamicRef" : "$ref",
                                   "leads to \"%s\", %s", shown, why);
}

static int lead_to_node(struct tr_reference *reference, const struct tr_node *node) {
        if (reference->is_dynamic)
                reference->from.node->dynamic_ref = node;
        else
                reference->from.node->ref = node;
        return 0;
}

static int lead_to_anchor(struct tr_compiler *compiler, struct tr_reference *reference,
                          const struct tr_resource *resource, const char *name) {
        const struct tr_anchor *anchor = find_anchor(resource, name);

        if (!anchor)
                return unknown(compiler, reference, "which is no $anchor there");
        if (reference->is_dynamic && tr_dynamic_anchor(resource, name)) {
                reference->from.node->dynamic_name = anchor->name;
                compiler->schema->has_dynamic = true;
        }
        return lead_to_node(reference, anchor->node);
}

static int lead_by_fragment(struct tr_compiler *compiler, struct tr_reference *reference,
                            const struct tr_resource *resource, const char *fragment) {
        char *decoded = tr_arena_copy(&compiler->arena, fragment, strlen(fragment));
        const struct tr_node *node;

        if (!decoded)
                return tr_error_origin(-ENOMEM);
        if (!decode_percent(decoded))
                return unknown(compiler, reference, "which is no URI");
        if (!*decoded)
                return lead_to_node(reference, resource->node);
        if (*decoded != '/')
                return lead_to_anchor(compiler, reference, resource, decoded);
        node = node_of(compiler, follow(resource->json, decoded));
        return node ? lead_to_node(reference, node) : unknown(compiler, reference, "where there is no schema");
}

static int lead(struct tr_compiler *compiler, struct tr_reference *reference) {
        const struct tr_resource *resource = reference->from.resource;
        size_t len = strcspn(reference->text, "#");
        char uri[TR_URI_MAX];

        if (len > 0) {
                if (!tr_uri_resolve(resource->uri, reference->text, len, uri))
                        return unknown(compiler, reference, "which is too long");
                resource = find_resource(compiler, uri);
        }
        if (!resource)
                return unknown(compiler, reference, "which is not in this schema, and others are not read");
        return lead_by_fragment(compiler, reference, resource, reference->text[len] ? reference->text + len + 1 : "");
}

/* Measuring */

static int measure(struct tr_compiler *compiler, struct tr_node *node, unsigned depth);

static const struct tr_step *step_of(const struct tr_compiler *compiler, const struct tr_node *node) {
        for (size_t i = 0; i < compiler->subschemas_count; i++)
                if (compiler->subschemas[i].node == node)
                        return compiler->subschemas[i].step;
        return NULL;
}

static int measure_below(struct tr_compiler *compiler, struct tr_node *node, const struct tr_node *below,
                         unsigned depth) {
        struct tr_node *next = (struct tr_node *)below;
        int r;

        if (!below || below->is_true || below->is_false)
                return 0;
        if (next->visit == ON_THE_WAY)
                return tr_compile_wrong(compiler, step_of(compiler, next),
                                        "is held against a value by itself, without end");
        r = next->visit == MEASURED ? 0 : measure(compiler, next, depth + 1);
        if (r)
                return r;
        if (next->height >= node->height)
                node->height = next->height + 1;
        if (node->height > TR_SCHEMA_HEIGHT_MAX || depth > TR_SCHEMA_HEIGHT_MAX)
                return tr_compile_wrong(compiler, step_of(compiler, node),
                                        "is held against a value through more than %d other subschemas",
                                        TR_SCHEMA_HEIGHT_MAX);
        return 0;
}

static int measure_list(struct tr_compiler *compiler, struct tr_node *node, const struct tr_node_list *list,
                        unsigned depth) {
        int r = 0;

        for (size_t i = 0; i < list->count && !r; i++)
                r = measure_below(compiler, node, list->list[i], depth);
        return r;
}

static int measure_dependent(struct tr_compiler *compiler, struct tr_node *node, const struct tr_objects *objects,
                             unsigned depth) {
        int r = 0;

        for (size_t i = 0; i < objects->checked_count && !r; i++)
                r = measure_below(compiler, node, objects->members[objects->checked[i]].dependent, depth);
        return r;
}

static int measure(struct tr_compiler *compiler, struct tr_node *node, unsigned depth) {
        const struct tr_node *const singles[] = { node->ref, node->dynamic_ref, node->not_,
                                                  node->if_, node->then,        node->else_ };
        const struct tr_node_list *const lists[] = { &node->all_of, &node->any_of, &node->one_of };
        int r = 0;

        node->visit = ON_THE_WAY;
        node->height = 1;
        for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]) && !r; i++)
                r = measure_below(compiler, node, singles[i], depth);
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !r; i++)
                r = measure_list(compiler, node, lists[i], depth);
        if (!r && node->objects)
                r = measure_dependent(compiler, node, node->objects, depth);
        node->visit = MEASURED;
        return r;
}

int tr_compile_references(struct tr_compiler *compiler) {
        int r = 0;

        qsort(compiler->subschemas, compiler->subschemas_count, sizeof(*compiler->subschemas), compare_json);
        for (struct tr_reference *at = compiler->references; at && !r; at = at->next)
                r = lead(compiler, at);
        /* so that of all that is wrong the same is said each time */
        qsort(compiler->subschemas, compiler->subschemas_count, sizeof(*compiler->subschemas), compare_order);
        for (size_t i = 0; i < compiler->subschemas_count && !r; i++)
                if (compiler->subschemas[i].node->visit == UNSEEN)
                        r = measure(compiler, compiler->subschemas[i].node, 1);
        return r;
}
