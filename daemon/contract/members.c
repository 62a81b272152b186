/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keywords that name members: properties, required, dependentRequired, dependentSchemas. All names that any of them
 * has come into one sorted list, so that a check looks each member of a value up once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/compile.h"

#define NAMES "has to be a list of names"

static int check_names(struct tr_compiler *compiler, const struct tr_step *step, json_t *names) {
        json_t *name;
        size_t i;

        if (!json_is_array(names))
                return tr_compile_wrong(compiler, step, NAMES);
        json_array_foreach(names, i, name)
                if (!json_is_string(name))
                        return tr_compile_wrong(compiler, step, NAMES);
        return 0;
}

static int check_shapes(struct tr_compiler *compiler, const struct tr_subschema *at) {
        static const char *const maps[] = { "properties", "dependentRequired", "dependentSchemas" };
        json_t *required = json_object_get(at->json, "required"), *names;
        struct tr_step step = { .parent = at->step, .key = "required", .key_len = strlen("required") };
        const char *name;
        int r = required ? check_names(compiler, &step, required) : 0;

        for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !r; i++) {
                json_t *map = json_object_get(at->json, maps[i]);

                if (map && !json_is_object(map))
                        r = tr_compile_wrong_in(compiler, at, maps[i], "has to be an object");
        }
        step = (struct tr_step){ .parent = at->step, .key = maps[1], .key_len = strlen(maps[1]) };
        if (!r)
                json_object_foreach(json_object_get(at->json, maps[1]), name, names) {
                        struct tr_step inner = { .parent = &step, .key = name, .key_len = strlen(name) };

                        r = check_names(compiler, &inner, names);
                        if (r)
                                break;
                }
        return r;
}

static size_t count_names(json_t *json) {
        json_t *dependent = json_object_get(json, "dependentRequired"), *names;
        size_t count = json_object_size(json_object_get(json, "properties")) +
                       json_array_size(json_object_get(json, "required")) + json_object_size(dependent) +
                       json_object_size(json_object_get(json, "dependentSchemas"));
        const char *name;

        json_object_foreach(dependent, name, names)
                count += json_array_size(names);
        return count;
}

static void add(struct tr_objects *objects, const char *name, size_t len) {
        objects->members[objects->members_count++] = (struct tr_member){ .name = name, .name_len = len };
}

static void add_keys(struct tr_objects *objects, json_t *map) {
        const char *name;
        json_t *value;

        json_object_foreach(map, name, value)
                add(objects, name, strlen(name));
}

static void add_elements(struct tr_objects *objects, json_t *names) {
        json_t *name;
        size_t i;

        json_array_foreach(names, i, name)
                add(objects, json_string_value(name), json_string_length(name));
}

static void add_all(struct tr_objects *objects, json_t *json) {
        json_t *dependent = json_object_get(json, "dependentRequired"), *names;
        const char *name;

        add_keys(objects, json_object_get(json, "properties"));
        add_keys(objects, json_object_get(json, "dependentSchemas"));
        add_keys(objects, dependent);
        add_elements(objects, json_object_get(json, "required"));
        json_object_foreach(dependent, name, names)
                add_elements(objects, names);
}

static int compare(const void *a, const void *b) {
        const struct tr_member *first = a, *second = b;

        return tr_member_compare(first->name, first->name_len, second->name, second->name_len);
}

/* Sorts them, leaves each name once, and makes the names the schema's own. */
static int settle(struct tr_compiler *compiler, struct tr_objects *objects) {
        size_t kept = 0;

        qsort(objects->members, objects->members_count, sizeof(*objects->members), compare);
        for (size_t i = 0; i < objects->members_count; i++)
                if (kept == 0 || compare(&objects->members[kept - 1], &objects->members[i]) != 0)
                        objects->members[kept++] = objects->members[i];
        objects->members_count = kept;
        for (size_t i = 0; i < kept; i++) {
                struct tr_member *member = &objects->members[i];

                member->name = tr_arena_copy(&compiler->schema->arena, member->name, member->name_len);
                if (!member->name)
                        return tr_error_origin(-ENOMEM);
        }
        return 0;
}

static struct tr_member *find(struct tr_objects *objects, const char *name, size_t len) {
        return (struct tr_member *)tr_member_find(objects, name, len);
}

static int compile_schemas(struct tr_compiler *compiler, const struct tr_subschema *at, const char *keyword,
                           struct tr_objects *objects, size_t offset) {
        const struct tr_step *step = tr_compile_step(compiler, at->step, keyword, 0);
        const char *name;
        json_t *schema;
        int r = step ? 0 : tr_error_origin(-ENOMEM);

        json_object_foreach(json_object_get(at->json, keyword), name, schema) {
                struct tr_member *member = find(objects, name, strlen(name));

                if (!r)
                        r = tr_compile_subschema(compiler, at, tr_compile_step(compiler, step, name, 0), schema,
                                                 (void *)((char *)member + offset));
        }
        return r;
}

static void note_required(struct tr_objects *objects, json_t *names) {
        json_t *name;
        size_t i;

        json_array_foreach(names, i, name)
                find(objects, json_string_value(name), json_string_length(name))->is_required = true;
}

static int note_needs(struct tr_compiler *compiler, struct tr_objects *objects, struct tr_member *member,
                      json_t *names) {
        uint32_t *needs;
        json_t *name;
        size_t i;
        int r;

        r = tr_compile_take(compiler, json_array_size(names), sizeof(*needs), &needs);
        if (r)
                return r;
        json_array_foreach(names, i, name)
                needs[i] =
                        (uint32_t)(find(objects, json_string_value(name), json_string_length(name)) - objects->members);
        member->needs = needs;
        member->needs_count = json_array_size(names);
        return 0;
}

static int note_all_needs(struct tr_compiler *compiler, struct tr_objects *objects, json_t *dependent) {
        const char *name;
        json_t *names;
        int r = 0;

        json_object_foreach(dependent, name, names)
                if (!r)
                        r = note_needs(compiler, objects, find(objects, name, strlen(name)), names);
        return r;
}

/* Which members have something to be seen to once it is known which are there. */
static int list_checked(struct tr_compiler *compiler, struct tr_objects *objects) {
        int r;

        r = tr_compile_take(compiler, objects->members_count, sizeof(*objects->checked), &objects->checked);
        for (size_t i = 0; i < objects->members_count && !r; i++) {
                const struct tr_member *member = &objects->members[i];

                if (member->is_required || member->needs || member->dependent)
                        objects->checked[objects->checked_count++] = (uint32_t)i;
        }
        return r;
}

int tr_compile_members(struct tr_compiler *compiler, const struct tr_subschema *at, struct tr_objects *objects) {
        int r;

        r = check_shapes(compiler, at);
        if (!r)
                r = tr_compile_take(compiler, count_names(at->json), sizeof(*objects->members), &objects->members);
        if (r)
                return r;
        add_all(objects, at->json);
        r = settle(compiler, objects);
        if (!r)
                r = compile_schemas(compiler, at, "properties", objects, offsetof(struct tr_member, schema));
        if (!r)
                r = compile_schemas(compiler, at, "dependentSchemas", objects, offsetof(struct tr_member, dependent));
        if (!r)
                r = note_all_needs(compiler, objects, json_object_get(at->json, "dependentRequired"));
        if (r)
                return r;
        note_required(objects, json_object_get(at->json, "required"));
        return list_checked(compiler, objects);
}
