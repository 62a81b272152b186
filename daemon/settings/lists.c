/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of a configuration whose elements are more than their table says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/contract/json.h"
#include "daemon/settings/keys.h"
#include "daemon/settings/settings.h"
#include "proto/name.h"

void tr_settings_actor_deinit(struct tr_settings_actor *actor) {
        free(actor->actor);
        free(actor->name);
        free(actor->publish);
        free(actor->args.data);
        *actor = (struct tr_settings_actor){ 0 };
}

static bool copy_text(const char *text, char **ret_copy) {
        *ret_copy = text ? strdup(text) : NULL;
        return *ret_copy || !text;
}

static bool copy_args(const struct tr_settings_args *args, struct tr_settings_args *ret_copy) {
        *ret_copy = *args;
        ret_copy->data = args->bytes ? malloc(args->bytes) : NULL;
        if (ret_copy->data)
                memcpy(ret_copy->data, args->data, args->bytes);
        return ret_copy->data || !args->bytes;
}

int tr_settings_actor_copy(const struct tr_settings_actor *actor, struct tr_settings_actor *ret_copy) {
        struct tr_settings_actor copy = *actor;
        bool whole = copy_text(actor->actor, &copy.actor);

        whole &= copy_text(actor->name, &copy.name);
        whole &= copy_text(actor->publish, &copy.publish);
        whole &= copy_args(&actor->args, &copy.args);
        if (!whole) {
                tr_settings_actor_deinit(&copy);
                return tr_error_origin(-ENOMEM);
        }
        *ret_copy = copy;
        return 0;
}

static bool same_text(const char *one, const char *other) {
        return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool same_args(const struct tr_settings_args *one, const struct tr_settings_args *other) {
        return one->count == other->count && one->bytes == other->bytes &&
               (one->bytes == 0 || memcmp(one->data, other->data, one->bytes) == 0);
}

bool tr_settings_actor_equals(const struct tr_settings_actor *one, const struct tr_settings_actor *other) {
        return same_text(one->actor, other->actor) && same_text(one->name, other->name) &&
               same_text(one->publish, other->publish) && same_args(&one->args, &other->args) &&
               one->heap_bytes == other->heap_bytes && one->mailbox == other->mailbox &&
               one->mailbox_bytes == other->mailbox_bytes && one->async == other->async && one->restart == other->restart;
}

void tr_settings_actors_deinit(struct tr_settings_actors *actors) {
        for (size_t i = 0; i < actors->count; i++)
                tr_settings_actor_deinit(&actors->list[i]);
        free(actors->list);
        *actors = (struct tr_settings_actors){ 0 };
}

void tr_settings_pool_deinit(struct tr_settings_pool *pool) {
        free(pool->name);
        free(pool->actor);
        free(pool->publish);
        free(pool->args.data);
        *pool = (struct tr_settings_pool){ 0 };
}

int tr_settings_pool_copy(const struct tr_settings_pool *pool, struct tr_settings_pool *ret_copy) {
        struct tr_settings_pool copy = *pool;
        bool whole = copy_text(pool->name, &copy.name);

        whole &= copy_text(pool->actor, &copy.actor);
        whole &= copy_text(pool->publish, &copy.publish);
        whole &= copy_args(&pool->args, &copy.args);
        if (!whole) {
                tr_settings_pool_deinit(&copy);
                return tr_error_origin(-ENOMEM);
        }
        *ret_copy = copy;
        return 0;
}

bool tr_settings_pool_equals(const struct tr_settings_pool *one, const struct tr_settings_pool *other) {
        return same_text(one->name, other->name) && same_text(one->actor, other->actor) &&
               same_text(one->publish, other->publish) && same_args(&one->args, &other->args) &&
               one->workers == other->workers && one->routing == other->routing && one->queue == other->queue &&
               one->heap_bytes == other->heap_bytes && one->mailbox == other->mailbox &&
               one->mailbox_bytes == other->mailbox_bytes && one->async == other->async &&
               one->backoff_min_ms == other->backoff_min_ms && one->backoff_max_ms == other->backoff_max_ms &&
               one->backoff_reset_ms == other->backoff_reset_ms;
}

void tr_settings_pools_deinit(struct tr_settings_pools *pools) {
        for (size_t i = 0; i < pools->count; i++)
                tr_settings_pool_deinit(&pools->list[i]);
        free(pools->list);
        *pools = (struct tr_settings_pools){ 0 };
}

/* Room for the elements of a list; NULL where it is none, or memory is short, which is said. */
static void *new_list(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, size_t element_size) {
        void *list;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list");
                return NULL;
        }
        list = calloc(json_array_size(value) + 1, element_size);
        if (!list)
                tr_reader_no_memory(reader);
        return list;
}

/* Two that want one name would take turns at failing. */
static void check_publish(struct tr_json_reader *reader, const struct tr_place *place,
                          const struct tr_settings_actors *actors) {
        const struct tr_settings_actor *last = &actors->list[actors->count - 1];
        struct tr_place inner = { .parent = place, .key = "publish" };

        for (size_t i = 0; last->publish && i + 1 < actors->count; i++)
                if (actors->list[i].publish && strcmp(actors->list[i].publish, last->publish) == 0)
                        tr_reader_problem(reader, &inner, "is the name of actors[%zu] already", i);
}

void tr_read_actors(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                    const struct tr_key *key, void *field) {
        struct tr_settings_actors actors = { .list = new_list(reader, place, value, sizeof(*actors.list)) };
        json_t *element;
        size_t i;

        if (!actors.list)
                return;
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                actors.list[i].restart = TR_RESTART_ON_FAULT;
                actors.list[i].line = tr_place_line(&inner, reader->text, reader->len);
                actors.count++;
                tr_read_keys(reader, &inner, element, key->keys, &actors.list[i]);
                check_publish(reader, &inner, &actors);
        }
        tr_settings_actors_deinit(field);
        *(struct tr_settings_actors *)field = actors;
}

static const char *pool_name(const struct tr_settings_pool *pool) {
        return pool->publish ? pool->publish : pool->name;
}

static void check_pool(struct tr_json_reader *reader, const struct tr_place *place, const struct tr_settings_pools *pools) {
        const struct tr_settings_pool *last = &pools->list[pools->count - 1];
        const char *name = pool_name(last);
        struct tr_place inner = { .parent = place, .key = last->publish ? "publish" : "name" };

        for (size_t i = 0; name && i + 1 < pools->count; i++)
                if (pool_name(&pools->list[i]) && strcmp(pool_name(&pools->list[i]), name) == 0)
                        tr_reader_problem(reader, &inner, "is the name of pools[%zu] already", i);
        if (last->backoff_min_ms && last->backoff_max_ms && last->backoff_max_ms < last->backoff_min_ms) {
                inner.key = "backoff";
                tr_reader_problem(reader, &inner, "has a max that is less than its min");
        }
}

void tr_read_pools(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                   void *field) {
        struct tr_settings_pools pools = { .list = new_list(reader, place, value, sizeof(*pools.list)) };
        json_t *element;
        size_t i;

        if (!pools.list)
                return;
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                pools.list[i].line = tr_place_line(&inner, reader->text, reader->len);
                pools.count++;
                tr_read_keys(reader, &inner, element, key->keys, &pools.list[i]);
                check_pool(reader, &inner, &pools);
        }
        tr_settings_pools_deinit(field);
        *(struct tr_settings_pools *)field = pools;
}

void tr_read_args(struct tr_json_reader *reader, const struct tr_place *place, json_t *value, const struct tr_key *key,
                  void *field) {
        struct tr_settings_args *args = field;
        struct tr_writer writer = TR_WRITER_INIT;
        json_t *element;
        size_t i;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list");
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                if (tr_json_pack(&writer, element) == TR_JSON_TOO_DEEP)
                        tr_reader_problem(reader, &inner, "is nested deeper than %d levels", TR_NESTING_MAX);
        }
        if (tr_writer_error(&writer) < 0) {
                tr_reader_no_memory(reader);
        } else if (args) {
                free(args->data);
                args->data = tr_writer_steal(&writer, &args->bytes);
                args->count = (uint32_t)json_array_size(value);
        }
        tr_writer_deinit(&writer);
}

void tr_settings_access_deinit(struct tr_settings_access *access) {
        for (size_t i = 0; i < access->count; i++) {
                free(access->list[i].user);
                free(access->list[i].group);
                tr_texts_free(access->list[i].names);
        }
        free(access->list);
        *access = (struct tr_settings_access){ 0 };
}

void tr_read_access(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                    const struct tr_key *key, void *field) {
        struct tr_settings_access access = { .list = new_list(reader, place, value, sizeof(*access.list)) };
        json_t *element;
        size_t i;

        if (!access.list)
                return;
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                access.list[i].line = tr_place_line(&inner, reader->text, reader->len);
                access.count++;
                tr_read_keys(reader, &inner, element, key->keys, &access.list[i]);
                if (json_is_object(element) && !json_object_get(element, "user") == !json_object_get(element, "group"))
                        tr_reader_problem(reader, &inner, "must have either a user or a group");
        }
        tr_settings_access_deinit(field);
        *(struct tr_settings_access *)field = access;
}

/* A name, or what names begin with and then "*"; "*" is all. */
static bool is_pattern(const char *text) {
        size_t len = strlen(text);

        if (len == 0 || text[len - 1] != '*')
                return tr_name_is_valid(text, len);
        if (len == 1)
                return true;
        return tr_name_is_valid(text, len - (text[len - 2] == '.' ? 2 : 1));
}

/* A copy, the caller's; NULL where it is none, or memory is short, which is said. */
static char *read_pattern(struct tr_json_reader *reader, const struct tr_place *place, json_t *value) {
        const char *text = json_string_value(value);
        char *copy;

        if (!text || strlen(text) != json_string_length(value) || !is_pattern(text)) {
                tr_reader_problem(reader, place, "must be a name, or the beginning of names and *");
                return NULL;
        }
        copy = strdup(text);
        if (!copy)
                tr_reader_no_memory(reader);
        return copy;
}

void tr_read_patterns(struct tr_json_reader *reader, const struct tr_place *place, json_t *value,
                      const struct tr_key *key, void *field) {
        char **patterns;
        json_t *element;
        size_t i, count = 0;

        if (!json_is_array(value)) {
                tr_reader_problem(reader, place, "must be a list of names");
                return;
        }
        patterns = calloc(json_array_size(value) + 1, sizeof(*patterns));
        if (!patterns) {
                tr_reader_no_memory(reader);
                return;
        }
        json_array_foreach(value, i, element) {
                struct tr_place inner = { .parent = place, .index = i };

                patterns[count] = read_pattern(reader, &inner, element);
                count += patterns[count] != NULL;
        }
        tr_texts_free(*(char ***)field);
        *(char ***)field = patterns;
}
