/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The installed JSON Schema says what the tables of keys say: the same keys, kinds, bounds, choices and defaults, in
 * both directions. And the installed sample is the defaults.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/settings/keys.h"
#include "daemon/settings/settings.h"
#include "tests/unit/suite.h"

static json_t *schema, *defaults;

static json_t *read_json(const char *name) {
        const char *source = getenv("TROUPE_SOURCE");
        char path[4096];
        json_error_t error;
        json_t *json;

        snprintf(path, sizeof(path), "%s/%s", source ? source : ".", name);
        json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(json, "%s:%d: %s", path, error.line, error.text);
        return json;
}

static void set_up(void) {
        schema = read_json("conf/trouped.schema.json");
        defaults = json_loads(tr_settings_defaults, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_ptr_nonnull(defaults);
}

static void tear_down(void) {
        json_decref(schema);
        json_decref(defaults);
}

static const char *text_of(json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

/* What a property refers to; where null is allowed beside it, the other. */
static const char *reference(json_t *property) {
        return text_of(json_array_get(json_object_get(property, "anyOf"), 0), "$ref")[0]
                       ? text_of(json_array_get(json_object_get(property, "anyOf"), 0), "$ref")
                       : text_of(property, "$ref");
}

static void check_bounds(const struct tr_key *key, json_t *property, const char *lower, const char *upper) {
        ck_assert_msg((uint64_t)json_integer_value(json_object_get(property, lower)) == key->min, "%s: %s", key->name,
                      lower);
        ck_assert_msg((uint64_t)json_integer_value(json_object_get(property, upper)) == key->max, "%s: %s", key->name,
                      upper);
}

static void check_choices(const struct tr_key *key, json_t *choices) {
        size_t count = 0;

        for (; key->choices[count]; count++)
                ck_assert_str_eq(json_string_value(json_array_get(choices, count)), key->choices[count]);
        ck_assert_uint_eq(json_array_size(choices), count);
}

static void check_table(const struct tr_key *keys, json_t *object, const struct tr_place *place);

/* Kinds that are all in what they refer to. */
static const struct {
        tr_read_fn *read;
        const char *reference;
} references[] = {
        { tr_read_size, "#/$defs/size" }, { tr_read_duration, "#/$defs/time" }, { tr_read_mode, "#/$defs/mode" },
        { tr_read_path, "#/$defs/path" }, { tr_read_name, "#/$defs/name" },     { tr_read_actor, "#/$defs/actor" },
};

static void check_reference(const struct tr_key *key, json_t *property) {
        for (size_t i = 0; i < sizeof(references) / sizeof(*references); i++)
                if (references[i].read == key->read)
                        ck_assert_str_eq(reference(property), references[i].reference);
}

static void check_kind(const struct tr_key *key, json_t *property, const struct tr_place *place) {
        json_t *items = json_object_get(property, "items");

        check_reference(key, property);
        if (key->read == tr_read_object) {
                check_table(key->keys, property, place);
        } else if (key->read == tr_read_objects || key->read == tr_read_actors || key->read == tr_read_access) {
                ck_assert_str_eq(text_of(property, "type"), "array");
                check_table(key->keys, items, NULL);
        } else if (key->read == tr_read_count) {
                ck_assert_str_eq(text_of(property, "type"), "integer");
                check_bounds(key, property, "minimum", "maximum");
        } else if (key->read == tr_read_size || key->read == tr_read_duration) {
                check_bounds(key, property, "minimum", "maximum");
        } else if (key->read == tr_read_text) {
                ck_assert_str_eq(text_of(property, "type"), "string");
                check_bounds(key, property, "minLength", "maxLength");
        } else if (key->read == tr_read_choice) {
                check_choices(key, json_object_get(property, "enum"));
        } else if (key->read == tr_read_choices) {
                check_choices(key, json_object_get(items, "enum"));
        } else if (key->read == tr_read_bool) {
                ck_assert_str_eq(text_of(property, "type"), "boolean");
        } else if (key->read != tr_read_mode && key->read != tr_read_path && key->read != tr_read_name &&
                   key->read != tr_read_actor) {
                /* lists with a check of their own */
                ck_assert_str_eq(text_of(property, "type"), "array");
        }
}

static void check_key(const struct tr_key *key, json_t *property, const struct tr_place *place) {
        bool nullable = json_array_size(json_object_get(property, "anyOf")) == 2;
        json_t *usual = place ? tr_place_find(place, defaults) : NULL;

        ck_assert_msg(property, "%s is not in the schema", key->name);
        ck_assert_msg(text_of(property, "description")[0], "%s is not described", key->name);
        ck_assert_msg(nullable == !!(key->flags & TR_KEY_NULLABLE), "%s: null", key->name);
        check_kind(key, property, place);
        /* an element of a list has no place in the defaults, and an object's are its members' */
        if (place && key->read != tr_read_object)
                ck_assert_msg(usual && json_equal(usual, json_object_get(property, "default")), "%s: default",
                              key->name);
        if (key->flags & TR_KEY_UNBUILT)
                ck_assert_msg(strstr(text_of(property, "description"), "(without effect in this version)") ||
                                      place->parent,
                              "%s: works", key->name);
}

/* `place` is NULL for what has no place in the defaults; the document itself is an empty key. */
static void check_table(const struct tr_key *keys, json_t *object, const struct tr_place *place) {
        json_t *properties = json_object_get(object, "properties"), *required = json_object_get(object, "required");
        size_t count = 0, required_count = 0;

        ck_assert_str_eq(text_of(object, "type"), "object");
        ck_assert(json_is_false(json_object_get(object, "additionalProperties")));
        for (; keys[count].name; count++) {
                const struct tr_place *parent = place && place->key[0] ? place : NULL;
                struct tr_place inner = { .parent = parent, .key = keys[count].name };

                check_key(&keys[count], json_object_get(properties, keys[count].name), place ? &inner : NULL);
                if (keys[count].flags & TR_KEY_REQUIRED)
                        ck_assert_str_eq(json_string_value(json_array_get(required, required_count++)),
                                         keys[count].name);
        }
        ck_assert_uint_eq(json_object_size(properties), count);
        ck_assert_uint_eq(json_array_size(required), required_count);
}

START_TEST(the_schema_is_the_tables) {
        struct tr_place document = { .key = "" };

        set_up();
        check_table(tr_settings_keys, schema, &document);
        tear_down();
}
END_TEST

START_TEST(the_sample_is_the_defaults) {
        json_t *sample = read_json("conf/trouped.json");

        set_up();
        ck_assert(json_equal(sample, defaults));
        json_decref(sample);
        tear_down();
}
END_TEST

suite_main("schema", the_schema_is_the_tables, the_sample_is_the_defaults);
