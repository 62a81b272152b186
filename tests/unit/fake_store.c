/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_store.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/contract/schema.h"
#include "proto/value.h"
#include "tests/unit/notation.h"

/* Tests make allocations fail: what goes wrong here is no matter for ck_assert(), which allocates. */
static void must(bool holds) {
        if (!holds)
                abort();
}

static struct fake_entity *find(struct fake_store *store, const char *id) {
        for (size_t i = 0; i < store->count; i++)
                if (strcmp(store->entities[i].id, id) == 0)
                        return &store->entities[i];
        return NULL;
}

static bool is_own(const struct tr_token *key) {
        return tr_token_equals(key, "id") || tr_token_equals(key, "version") || tr_token_equals(key, "created") ||
               tr_token_equals(key, "updated");
}

/* Whether a map has a key. */
static bool has_key(const uint8_t *map, size_t bytes, const struct tr_token *wanted) {
        struct tr_reader reader = tr_reader(map, bytes);
        struct tr_token head, key;
        must(tr_read(&reader, &head) == 0 && head.type == TR_MAP);
        for (uint32_t i = 0; i < head.count; i++) {
                must(tr_read(&reader, &key) == 0 && tr_read_skip(&reader) == 0);
                if (key.len == wanted->len && memcmp(key.data, wanted->data, key.len) == 0)
                        return true;
        }
        return false;
}

/* Appends the pairs of a map that are not ours, nor `hidden` by another, nor, where they `remove`, nil; answers how many. */
static uint32_t copy_pairs(const uint8_t *map, size_t bytes, const uint8_t *hiding, size_t hiding_bytes, bool removes,
                           struct tr_writer *writer) {
        struct tr_reader reader = tr_reader(map, bytes);
        struct tr_token head, key, value;
        uint32_t pairs = 0;
        must(tr_read(&reader, &head) == 0 && head.type == TR_MAP);
        for (uint32_t i = 0; i < head.count; i++) {
                const uint8_t *from = reader.at;
                must(tr_read(&reader, &key) == 0);
                struct tr_reader at = reader;
                must(tr_read(&at, &value) == 0 && tr_read_skip(&reader) == 0);
                if (is_own(&key) || (hiding && has_key(hiding, hiding_bytes, &key)) || (removes && value.type == TR_NIL))
                        continue;
                tr_write_raw(writer, from, (size_t)(reader.at - from));
                pairs++;
        }
        return pairs;
}

static void write_document(const struct fake_entity *entity, struct tr_writer *writer) {
        struct tr_reader reader = tr_reader(entity->fields, entity->bytes);
        struct tr_token head;
        must(tr_read(&reader, &head) == 0);
        tr_write_map(writer, 4 + head.count);
        tr_write_text(writer, "id");
        tr_write_text(writer, entity->id);
        tr_write_text(writer, "version");
        tr_write_uint(writer, entity->version);
        tr_write_text(writer, "created");
        tr_write_uint(writer, 1);
        tr_write_text(writer, "updated");
        tr_write_uint(writer, 2);
        tr_write_raw(writer, reader.at, (size_t)(reader.end - reader.at));
}

static struct tr_failure *no_memory(void) {
        return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
}

/* NULL where memory is short. */
static struct fake_entity *set(struct fake_store *store, const char *id, const uint8_t *fields, size_t bytes) {
        struct fake_entity *entity = find(store, id);
        uint8_t *copy = malloc(bytes);
        char *name = entity ? NULL : strdup(id);
        if (!copy || (!entity && !name)) {
                free(copy);
                free(name);
                return NULL;
        }
        must(store->count < FAKE_STORE_ENTITIES_MAX);
        memcpy(copy, fields, bytes);
        if (!entity) {
                entity = &store->entities[store->count++];
                *entity = (struct fake_entity){ .id = name };
        }
        free(entity->fields);
        entity->fields = copy;
        entity->bytes = bytes;
        entity->version++;
        return entity;
}

/* The fields that are to be there. NULL, or no memory. */
static struct tr_failure *compose(const struct tr_store_job *job, const struct fake_entity *entity, struct tr_writer *fields) {
        struct tr_writer pairs = TR_WRITER_INIT;
        uint32_t count = 0;
        if (job->merge && entity)
                count += copy_pairs(entity->fields, entity->bytes, job->document, job->document_bytes, false, &pairs);
        count += copy_pairs(job->document, job->document_bytes, NULL, 0, job->merge, &pairs);
        tr_write_map(fields, count);
        tr_write_raw(fields, pairs.data, pairs.len);
        bool failed = tr_writer_error(&pairs) || tr_writer_error(fields);
        tr_writer_deinit(&pairs);
        return failed ? no_memory() : NULL;
}

static struct tr_failure *check(const struct tr_store_job *job, struct tr_writer *fields) {
        struct tr_schema_violation violation = { 0 };
        int r = job->schema ? tr_schema_check(job->schema, fields->data, fields->len, &violation) : 0;
        struct tr_failure *failure = r < 0 ? no_memory() : r > 0 ? tr_failure_new(TR_CODE_CONTRACT, "the entity is wrong") : NULL;
        if (r > 0)
                tr_failure_add_text(failure, "subject", "entity", 6);
        tr_schema_violation_deinit(&violation);
        return failure;
}

static void answer(struct tr_store_job *job, struct tr_writer *writer) {
        if (tr_writer_error(writer)) {
                job->failure = no_memory();
                tr_writer_deinit(writer);
        } else {
                job->value = tr_writer_steal(writer, &job->value_bytes);
        }
}

static void do_write(struct fake_store *store, struct tr_store_job *job) {
        struct tr_writer fields = TR_WRITER_INIT, value = TR_WRITER_INIT;
        char made[TR_STORE_ID_LEN + 1];
        const char *id = job->id;
        if (!id) {
                must(tr_store_new_id(made) == 0);
                id = made;
        }
        struct fake_entity *entity = find(store, id);
        uint64_t version = entity ? entity->version : 0;
        if (job->expect != TR_STORE_ANY && job->expect != version)
                job->failure = tr_failure_new(TR_CODE_CONFLICT, "it is of version %llu", (unsigned long long)version);
        if (!job->failure)
                job->failure = compose(job, entity, &fields);
        if (!job->failure)
                job->failure = check(job, &fields);
        if (!job->failure) {
                entity = set(store, id, fields.data, fields.len);
                job->failure = entity ? NULL : no_memory();
        }
        if (!job->failure) {
                store->writes++;
                job->version = entity->version;
                if (job->wants_value) {
                        write_document(entity, &value);
                        answer(job, &value);
                }
        }
        tr_writer_deinit(&fields);
}

static void do_delete(struct fake_store *store, struct tr_store_job *job) {
        struct tr_writer value = TR_WRITER_INIT;
        struct fake_entity *entity = find(store, job->id);
        uint64_t version = entity ? entity->version : 0;
        if (job->expect != TR_STORE_ANY && job->expect != version) {
                job->failure = tr_failure_new(TR_CODE_CONFLICT, "it is of version %llu", (unsigned long long)version);
                return;
        }
        job->found = entity;
        if (entity) {
                free(entity->id);
                free(entity->fields);
                *entity = store->entities[--store->count];
                store->writes++;
        }
        tr_write_bool(&value, job->found);
        answer(job, &value);
}

static void do_get(struct fake_store *store, struct tr_store_job *job) {
        struct tr_writer value = TR_WRITER_INIT;
        const struct fake_entity *entity = find(store, job->id);
        job->version = entity ? entity->version : 0;
        if (entity)
                write_document(entity, &value);
        else
                tr_write_nil(&value);
        answer(job, &value);
}

static void do_list(struct fake_store *store, struct tr_store_job *job) {
        struct tr_writer value = TR_WRITER_INIT;
        store->list = job->list;
        tr_write_array(&value, (uint32_t)store->count);
        for (size_t i = 0; i < store->count; i++)
                write_document(&store->entities[i], &value);
        answer(job, &value);
}

static void do_job(struct fake_store *store, struct tr_store_job *job) {
        if (store->fails) {
                job->failure = tr_failure_new(store->fails, "the disk is full");
                store->fails = 0;
                return;
        }
        switch (job->kind) {
        case TR_STORE_GET:
                do_get(store, job);
                break;
        case TR_STORE_LIST:
                do_list(store, job);
                break;
        case TR_STORE_WRITE:
                do_write(store, job);
                break;
        case TR_STORE_DELETE:
                do_delete(store, job);
                break;
        case TR_STORE_BACKUP:
                must(job->path);
                break;
        default:
                abort();
        }
}

static void store_submit(struct tr_store *base, struct tr_store_job *job) {
        struct fake_store *store = (struct fake_store *)base;
        if (job->kind == TR_STORE_TASK_LOAD) { /* there are none: each component asks, once */
                job->next_ms = TR_STORE_NEVER;
                job->done(job);
                return;
        }
        pthread_mutex_lock(&store->lock);
        store->submitted++;
        bool closed = store->closed;
        if (!closed)
                tr_list_append(&store->jobs, &job->link);
        pthread_mutex_unlock(&store->lock);
        if (!closed)
                return;
        job->failure = tr_failure_new(TR_CODE_SHUTTING_DOWN, "the store takes no more");
        job->done(job);
}

static void store_visit_counts(struct tr_store *store, void (*visit)(void *userdata, const struct tr_store_counts *counts),
                               void *userdata) {
}

static const struct tr_store_ops ops = { .submit = store_submit, .visit_counts = store_visit_counts };

void fake_store_init(struct fake_store *store) {
        *store = (struct fake_store){ .store.ops = &ops };
        pthread_mutex_init(&store->lock, NULL);
        tr_list_init(&store->jobs);
}

void fake_store_deinit(struct fake_store *store) {
        must(tr_list_is_empty(&store->jobs));
        for (size_t i = 0; i < store->count; i++) {
                free(store->entities[i].id);
                free(store->entities[i].fields);
        }
        pthread_mutex_destroy(&store->lock);
}

bool fake_store_step(struct fake_store *store) {
        pthread_mutex_lock(&store->lock);
        struct tr_store_job *job = tr_list_first(&store->jobs, struct tr_store_job, link);
        if (job)
                tr_list_unlink(&job->link);
        pthread_mutex_unlock(&store->lock);
        if (!job)
                return false;
        do_job(store, job);
        job->done(job);
        return true;
}

void fake_store_run(struct fake_store *store) {
        while (fake_store_step(store))
                ;
}

char *fake_store_fields(struct fake_store *store, const char *id) {
        const struct fake_entity *entity = find(store, id);
        if (!entity)
                return NULL;
        struct tr_reader reader = tr_reader(entity->fields, entity->bytes);
        return notation_read(&reader);
}

uint64_t fake_store_version(struct fake_store *store, const char *id) {
        const struct fake_entity *entity = find(store, id);
        return entity ? entity->version : 0;
}

void fake_store_put(struct fake_store *store, const char *id, const char *fields) {
        struct tr_writer writer = TR_WRITER_INIT;
        notation_write(&writer, fields);
        must(set(store, id, writer.data, writer.len));
        tr_writer_deinit(&writer);
}
