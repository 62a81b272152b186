/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading manifests. Each object has a table of its keys, each key a function that reads its value into a field; the first
 * thing that is wrong ends it, with its place. What belongs to more than one key is checked when all are there.
 * conf/component.schema.json says the same for people's editors; a test holds the two in step.
 */
#include "config.h"

#include "daemon/contract/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/contract/json.h"
#include "daemon/contract/pointer.h"
#include "daemon/contract/schema.h"
#include "daemon/contract/unpack.h"
#include "proto/limits.h"
#include "proto/name.h"
#include "proto/quantity.h"

#define COUNT_MAX UINT32_MAX
#define SIZE_MAX_BYTES ((uint64_t)INT64_MAX)
#define YEAR_MS (UINT64_C(365) * 24 * 60 * 60 * 1000)
#define TEXT_MAX 65536

struct reading {
        const char *folder;
        bool lenient; /* it was MessagePack: null is absent, and an empty array an object where one is wanted */
        struct tr_manifest_problem *problem;
};

struct field;

/* Reads a value into a field. 0, TR_MANIFEST_WRONG, or -ENOMEM. */
typedef int read_fn(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to);

struct field {
        const char *key;
        read_fn *read;
        size_t offset; /* in the structure that the object is read into */
        uint64_t min, max;
        const char *const *choices; /* NULL-terminated */
        bool required;
};

/* What is wrong */

__attribute__((format(printf, 3, 4))) static int wrong(struct reading *reading, const struct tr_step *at,
                                                       const char *format, ...) {
        TR_AUTO_FREE char *path = tr_pointer_text(at);
        va_list arguments;
        char *reason;
        int r;

        va_start(arguments, format);
        r = vasprintf(&reason, format, arguments);
        va_end(arguments);
        if (r < 0)
                return tr_error_origin(-ENOMEM);
        if (!path) {
                free(reason);
                return tr_error_origin(-ENOMEM);
        }
        *reading->problem = (struct tr_manifest_problem){ .path = tr_steal(path), .reason = reason };
        return TR_MANIFEST_WRONG;
}

/* A schema's, whose place goes on where the schema is. Takes the other. */
static int wrong_schema(struct reading *reading, const struct tr_step *at, struct tr_schema_problem *take_problem) {
        TR_AUTO_FREE char *outer = tr_pointer_text(at);
        char *path = NULL;

        if (!outer || asprintf(&path, "%s%s", outer, take_problem->path) < 0) {
                tr_schema_problem_deinit(take_problem);
                return tr_error_origin(-ENOMEM);
        }
        *reading->problem = (struct tr_manifest_problem){ .path = path, .reason = tr_steal(take_problem->reason) };
        tr_schema_problem_deinit(take_problem);
        return TR_MANIFEST_WRONG;
}

static struct tr_step member(const struct tr_step *parent, const char *key) {
        return (struct tr_step){ .parent = parent, .key = key, .key_len = strlen(key) };
}

static struct tr_step element(const struct tr_step *parent, size_t index) {
        return (struct tr_step){ .parent = parent, .index = index };
}

/* Objects */

static const struct field *find_field(const struct field *fields, const char *key) {
        for (; fields->key; fields++)
                if (strcmp(fields->key, key) == 0)
                        return fields;
        return NULL;
}

static bool is_object(const struct reading *reading, json_t *value) {
        return json_is_object(value) || (reading->lenient && json_is_array(value) && json_array_size(value) == 0);
}

static int read_object(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *fields,
                       void *structure) {
        const char *key;
        json_t *inner;

        if (!is_object(reading, value))
                return wrong(reading, at, "must be an object");
        json_object_foreach(value, key, inner) {
                struct tr_step place = member(at, key);
                const struct field *field = find_field(fields, key);
                int r = 0;

                if (!field)
                        r = wrong(reading, &place, "is an unknown key");
                else if (!reading->lenient || !json_is_null(inner))
                        r = field->read(reading, &place, inner, field, (char *)structure + field->offset);
                if (r != 0)
                        return r;
        }
        for (; fields->key; fields++) {
                struct tr_step place = member(at, fields->key);

                inner = json_object_get(value, fields->key);
                if (fields->required && (!inner || (reading->lenient && json_is_null(inner))))
                        return wrong(reading, &place, "is missing");
        }
        return 0;
}

/* Kinds of values */

/* Text without a NUL in it, which no name or path has; NULL where it is none. */
static const char *plain_text(json_t *value) {
        const char *text = json_string_value(value);

        return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int keep(const char *text, char **to) {
        *to = strdup(text);
        return *to ? 0 : tr_error_origin(-ENOMEM);
}

static int read_text(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        const char *text = plain_text(value);

        if (!text || strlen(text) < field->min || strlen(text) > field->max)
                return wrong(reading, at, "must be text of %" PRIu64 " to %" PRIu64 " bytes", field->min, field->max);
        return keep(text, to);
}

static int read_name(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        const char *text = plain_text(value);

        if (!text || !tr_name_is_valid(text, strlen(text)))
                return wrong(reading, at, "must be a name: letters, digits, _ and -, in parts joined by dots");
        return keep(text, to);
}

static int read_bool(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        if (!json_is_boolean(value))
                return wrong(reading, at, "must be true or false");
        *(bool *)to = json_is_true(value);
        return 0;
}

/* A whole number that is not negative, also where it is written as 2.0. */
static bool whole_number(json_t *value, uint64_t *ret_number) {
        double real = json_real_value(value);

        if (json_is_integer(value) && json_integer_value(value) >= 0)
                *ret_number = (uint64_t)json_integer_value(value);
        else if (json_is_real(value) && real >= 0 && real < 0x1p63 && real == floor(real))
                *ret_number = (uint64_t)real;
        else
                return false;
        return true;
}

static int read_count(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        uint64_t number;

        if (!whole_number(value, &number) || number < field->min || number > field->max)
                return wrong(reading, at, "must be a whole number from %" PRIu64 " to %" PRIu64, field->min, field->max);
        *(uint32_t *)to = (uint32_t)number;
        return 0;
}

/* A number, or a text that the function reads. */
static bool quantity(json_t *value, bool (*parse)(const char *text, size_t len, uint64_t *ret_value), uint64_t *ret_number) {
        if (json_is_string(value))
                return parse(json_string_value(value), json_string_length(value), ret_number);
        return whole_number(value, ret_number);
}

static int read_size(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        uint64_t bytes;

        if (!quantity(value, tr_size_parse, &bytes))
                return wrong(reading, at, "must be a size: bytes, or text with K, M or G (\"64M\")");
        if (bytes < field->min || bytes > field->max)
                return wrong(reading, at, "must be a size from %" PRIu64 " to %" PRIu64 " bytes", field->min, field->max);
        *(uint64_t *)to = bytes;
        return 0;
}

static int read_time(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        uint64_t ms;

        if (!quantity(value, tr_duration_parse, &ms))
                return wrong(reading, at, "must be a time: milliseconds, or text with ms, s, m, h or d (\"10s\")");
        if (ms < field->min || ms > field->max)
                return wrong(reading, at, "must be a time from %" PRIu64 " to %" PRIu64 " milliseconds", field->min,
                             field->max);
        *(uint64_t *)to = ms;
        return 0;
}

static int wrong_choice(struct reading *reading, const struct tr_step *at, const char *const *choices) {
        char text[128];
        size_t len = 0;

        for (size_t i = 0; choices[i] && len < sizeof(text); i++)
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "", choices[i]);
        return wrong(reading, at, "must be one of: %s", text);
}

static bool find_choice(json_t *value, const char *const *choices, uint32_t *ret_at) {
        const char *text = plain_text(value);

        for (uint32_t i = 0; text && choices[i]; i++)
                if (strcmp(choices[i], text) == 0) {
                        *ret_at = i;
                        return true;
                }
        return false;
}

static int read_schema(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        struct tr_schema_problem problem = { 0 };
        json_t *empty = is_object(reading, value) && !json_is_object(value) ? json_object() : NULL;
        int r = tr_schema_compile(empty ? empty : value, to, &problem);

        json_decref(empty);
        return r == TR_SCHEMA_WRONG ? wrong_schema(reading, at, &problem) : tr_error_fold(r);
}

/* A list of texts, each read by a function; NULL-terminated. */
static int read_texts(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field,
                      read_fn *read, void *to) {
        char **texts;
        json_t *inner;
        size_t i;

        if (!json_is_array(value))
                return wrong(reading, at, "must be a list");
        texts = calloc(json_array_size(value) + 1, sizeof(*texts));
        if (!texts)
                return tr_error_origin(-ENOMEM);
        *(char ***)to = texts;
        json_array_foreach(value, i, inner) {
                struct tr_step place = element(at, i);
                int r = read(reading, &place, inner, field, &texts[i]);

                if (r != 0)
                        return r;
        }
        return 0;
}

/* Operations */

static const char *const type_choices[] = {
        [TR_OPERATION_COMPUTATION] = "computation", [TR_OPERATION_EFFECT] = "effect",
        [TR_OPERATION_OBSERVATION] = "observation", [TR_OPERATION_TRANSITION] = "transition",
        [TR_OPERATION_ASSIGNMENT] = "assignment",   NULL,
};
static const char *const scope_choices[] = { "entry", "entries", NULL };

static int read_type(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        uint32_t choice;

        if (!find_choice(value, field->choices, &choice))
                return wrong_choice(reading, at, field->choices);
        *(enum tr_operation_type *)to = (enum tr_operation_type)choice;
        return 0;
}

static int read_scope(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        uint32_t choice;

        if (!find_choice(value, field->choices, &choice))
                return wrong_choice(reading, at, field->choices);
        *(bool *)to = choice == 1;
        return 0;
}

static int read_errors(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        return read_texts(reading, at, value, field, read_name, to);
}

#define OPERATION_AT(field) offsetof(struct tr_operation, field)

static const struct field operation_fields[] = {
        { "type", read_type, OPERATION_AT(type), .choices = type_choices },
        { "stateful", read_bool, OPERATION_AT(stateful) },
        { "scope", read_scope, OPERATION_AT(entries), .choices = scope_choices },
        { "input", read_schema, OPERATION_AT(input) },
        { "output", read_schema, OPERATION_AT(output) },
        { "errors", read_errors, OPERATION_AT(errors) },
        { "timeout", read_time, OPERATION_AT(timeout_ms), 1, YEAR_MS },
        { "doc", read_text, OPERATION_AT(doc), 0, TEXT_MAX },
        { NULL },
};

static int read_operation(struct reading *reading, const struct tr_step *at, json_t *value, const char *name,
                          struct tr_operation *operation) {
        struct tr_step scope = member(at, "scope");
        int r;

        if (!tr_name_is_valid(name, strlen(name)))
                return wrong(reading, at, "is no name: letters, digits, _ and -, in parts joined by dots");
        r = keep(name, &operation->name);
        if (r == 0)
                r = read_object(reading, at, value, operation_fields, operation);
        if (r == 0 && operation->entries && operation->type != TR_OPERATION_OBSERVATION)
                r = wrong(reading, &scope, "is entries, which only an observation gets");
        return r;
}

static int by_name(const void *one, const void *other) {
        return strcmp(((const struct tr_operation *)one)->name, ((const struct tr_operation *)other)->name);
}

static int read_operations(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field,
                           void *to) {
        struct tr_manifest *manifest = to;
        size_t count = json_object_size(value);
        const char *name;
        json_t *inner;

        if (!is_object(reading, value))
                return wrong(reading, at, "must be an object");
        if (count == 0 || count > TR_MANIFEST_OPERATIONS_MAX)
                return wrong(reading, at, "must have 1 to %d operations", TR_MANIFEST_OPERATIONS_MAX);
        manifest->operations = calloc(count, sizeof(*manifest->operations));
        if (!manifest->operations)
                return tr_error_origin(-ENOMEM);
        json_object_foreach(value, name, inner) {
                struct tr_step place = member(at, name);
                int r = read_operation(reading, &place, inner, name, &manifest->operations[manifest->operations_count++]);

                if (r != 0)
                        return r;
        }
        qsort(manifest->operations, count, sizeof(*manifest->operations), by_name);
        return 0;
}

/* Replicas */

static int read_args(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        struct tr_manifest_replica *replica = to;
        struct tr_writer writer = TR_WRITER_INIT;
        int r = tr_json_pack(&writer, value);

        if (r == TR_JSON_TOO_DEEP)
                r = wrong(reading, at, "is nested deeper than %d levels", TR_NESTING_MAX);
        else if (tr_writer_error(&writer) < 0)
                r = tr_error_origin(-ENOMEM);
        else
                replica->args = tr_writer_steal(&writer, &replica->args_bytes);
        tr_writer_deinit(&writer);
        return r;
}

static const struct field replica_fields[] = {
        { "instance", read_name, offsetof(struct tr_manifest_replica, instance) },
        { "args", read_args, 0 },
        { NULL },
};

static bool is_named(const struct tr_manifest_replicas *replicas, uint32_t count, const char *instance) {
        for (uint32_t i = 0; i < count; i++)
                if (replicas->list[i].instance && strcmp(replicas->list[i].instance, instance) == 0)
                        return true;
        return false;
}

static int wrong_instance(struct reading *reading, const struct tr_step *list, uint32_t index) {
        struct tr_step replica = element(list, index), instance = member(&replica, "instance");

        return wrong(reading, &instance, "is the name of another replica already");
}

/* Also where there are none: a list is there as soon as it was given. 0 or -ENOMEM. */
static int replicas_make(struct tr_manifest_replicas *replicas, size_t count) {
        replicas->list = calloc(count + 1, sizeof(*replicas->list));
        if (!replicas->list)
                return tr_error_origin(-ENOMEM);
        replicas->count = (uint32_t)count;
        return 0;
}

static int read_replicas(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field,
                         void *to) {
        struct tr_manifest_replicas *replicas = to;
        bool is_list = json_is_array(value);
        uint64_t count = json_array_size(value);
        json_t *inner;
        size_t i;
        int r;

        if ((!is_list && !whole_number(value, &count)) || count > TR_MANIFEST_REPLICAS_MAX)
                return wrong(reading, at, "must be a whole number from 0 to %d, or a list of so many objects",
                             TR_MANIFEST_REPLICAS_MAX);
        r = replicas_make(replicas, count);
        if (r < 0)
                return r;
        json_array_foreach(value, i, inner) {
                struct tr_step place = element(at, i);

                r = read_object(reading, &place, inner, replica_fields, &replicas->list[i]);
                if (r == 0 && replicas->list[i].instance && is_named(replicas, (uint32_t)i, replicas->list[i].instance))
                        r = wrong_instance(reading, at, (uint32_t)i);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Processes */

static int read_command(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field,
                        void *to) {
        const struct field word = { .min = 0, .max = TEXT_MAX };
        struct tr_step first = element(at, 0);

        if (!json_is_array(value) || json_array_size(value) == 0)
                return wrong(reading, at, "must be a list: a program and its arguments");
        if (json_string_length(json_array_get(value, 0)) == 0)
                return wrong(reading, &first, "must be a program");
        return read_texts(reading, at, value, &word, read_text, to);
}

static int read_cwd(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        const char *path = plain_text(value);

        if (!path || !*path)
                return wrong(reading, at, "must be a path");
        if (*path == '/')
                return keep(path, to);
        if (!reading->folder)
                return wrong(reading, at, "must be an absolute path");
        return asprintf((char **)to, "%s/%s", reading->folder, path) < 0 ? tr_error_origin(-ENOMEM) : 0;
}

static int read_variable(struct reading *reading, const struct tr_step *at, const char *name, json_t *value, char **to) {
        const char *text = plain_text(value);

        if (!*name || strchr(name, '='))
                return wrong(reading, at, "is no name of a variable");
        if (strcmp(name, "TROUPE_FD") == 0)
                return wrong(reading, at, "is set by the daemon");
        if (!text)
                return wrong(reading, at, "must be text");
        return asprintf(to, "%s=%s", name, text) < 0 ? tr_error_origin(-ENOMEM) : 0;
}

static int read_env(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        const char *name;
        size_t count = 0;
        json_t *inner;
        char **env;

        if (!is_object(reading, value))
                return wrong(reading, at, "must be an object");
        env = calloc(json_object_size(value) + 1, sizeof(*env));
        if (!env)
                return tr_error_origin(-ENOMEM);
        *(char ***)to = env;
        json_object_foreach(value, name, inner) {
                struct tr_step place = member(at, name);
                char *variable = NULL;
                int r = read_variable(reading, &place, name, inner, &variable);

                if (r != 0)
                        return r;
                env[count++] = variable;
        }
        return 0;
}

#define PROCESS_AT(field) offsetof(struct tr_manifest_process, field)

static const struct field process_fields[] = {
        { "command", read_command, PROCESS_AT(command), .required = true },
        { "replicas", read_replicas, PROCESS_AT(replicas) },
        { "cwd", read_cwd, PROCESS_AT(cwd) },
        { "env", read_env, PROCESS_AT(env) },
        { NULL },
};

static int read_process(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field,
                        void *to) {
        struct tr_manifest_process *process = calloc(1, sizeof(*process));
        int r;

        if (!process)
                return tr_error_origin(-ENOMEM);
        *(struct tr_manifest_process **)to = process;
        r = read_object(reading, at, value, process_fields, process);
        if (r == 0 && !process->replicas.list)
                r = replicas_make(&process->replicas, 1);
        return r;
}

/* The whole */

static int read_allow(struct reading *reading, const struct tr_step *at, json_t *value, const struct field *field, void *to) {
        struct tr_manifest *manifest = to;
        json_t *inner;
        uint32_t choice;
        size_t i;

        if (!json_is_array(value))
                return wrong(reading, at, "must be a list");
        json_array_foreach(value, i, inner) {
                struct tr_step place = element(at, i);

                if (!find_choice(inner, field->choices, &choice))
                        return wrong_choice(reading, &place, field->choices);
                manifest->allow |= UINT64_C(1) << choice;
        }
        manifest->has_allow = true;
        return 0;
}

#define AT(field) offsetof(struct tr_manifest, field)

static const struct field manifest_fields[] = {
        { "name", read_name, AT(name), .required = true },
        { "module", read_name, AT(module) },
        { "process", read_process, AT(process) },
        { "replicas", read_replicas, AT(replicas) },
        { "concurrency", read_count, AT(concurrency), 1, COUNT_MAX },
        { "deliveries", read_count, AT(deliveries), 1, COUNT_MAX },
        { "attempts", read_count, AT(attempts), 1, COUNT_MAX },
        { "queue", read_count, AT(queue), 1, COUNT_MAX },
        { "entity", read_schema, AT(entity) },
        { "lost", read_name, AT(lost) },
        { "allow", read_allow, 0, .choices = tr_allow_names },
        { "heap", read_size, AT(heap_bytes), TR_HEAP_MIN, SIZE_MAX_BYTES },
        { "operations", read_operations, 0, .required = true },
        { NULL },
};

static int check_lost(struct reading *reading, const struct tr_manifest *manifest) {
        struct tr_step at = member(NULL, "lost");
        const struct tr_operation *operation =
                manifest->lost ? tr_manifest_find(manifest, manifest->lost, strlen(manifest->lost)) : NULL;

        if (manifest->lost && !operation)
                return wrong(reading, &at, "names no operation of the component");
        if (operation && operation->stateful)
                return wrong(reading, &at, "names a stateful operation, which nobody is left to run");
        return 0;
}

/* Replicas of the process share their names with the module's. */
static int check_instances(struct reading *reading, const struct tr_manifest *manifest) {
        const struct tr_manifest_process *process = manifest->process;
        struct tr_step outer = member(NULL, "process"), list = member(&outer, "replicas");

        for (uint32_t i = 0; process && i < process->replicas.count; i++)
                if (process->replicas.list[i].instance &&
                    is_named(&manifest->replicas, manifest->replicas.count, process->replicas.list[i].instance))
                        return wrong_instance(reading, &list, i);
        return 0;
}

/* How many replicas the module has: none where there is none, one where it was not said. */
static int settle_replicas(struct tr_manifest *manifest) {
        if (!manifest->module)
                tr_manifest_replicas_deinit(&manifest->replicas);
        else if (!manifest->replicas.list)
                return replicas_make(&manifest->replicas, 1);
        return 0;
}

static int on_piece(const char *piece, size_t bytes, void *hash) {
        sha256_update(hash, bytes, (const uint8_t *)piece);
        return 0;
}

/* Of the document in one form, and of what it stands for beside that: where the process runs. */
static int write_hash(json_t *json, struct tr_manifest *manifest) {
        const char *cwd = manifest->process && manifest->process->cwd ? manifest->process->cwd : "";
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx hash;

        sha256_init(&hash);
        if (json_dump_callback(json, on_piece, &hash, JSON_COMPACT | JSON_SORT_KEYS) < 0)
                return tr_error_origin(-ENOMEM);
        sha256_update(&hash, strlen(cwd), (const uint8_t *)cwd);
        sha256_digest(&hash, sizeof(digest), digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(manifest->hash + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int read_manifest(struct reading *reading, json_t *json, struct tr_manifest *manifest) {
        int r = read_object(reading, NULL, json, manifest_fields, manifest);

        if (r == 0)
                r = check_lost(reading, manifest);
        if (r == 0)
                r = check_instances(reading, manifest);
        if (r == 0)
                r = settle_replicas(manifest);
        return r == 0 ? write_hash(json, manifest) : r;
}

static int read_whole(struct reading *reading, json_t *json, struct tr_manifest **ret_manifest) {
        TR_CLEANUP(tr_manifest_unref_cleanup_) struct tr_manifest *manifest = calloc(1, sizeof(*manifest));
        int r;

        if (!manifest)
                return tr_error_origin(-ENOMEM);
        atomic_init(&manifest->refs, 1);
        manifest->concurrency = 1;
        manifest->deliveries = 3;
        manifest->attempts = 16;
        r = read_manifest(reading, json, manifest);
        if (r == 0)
                *ret_manifest = tr_steal(manifest);
        return r;
}

int tr_manifest_read(const json_t *json, const char *folder, struct tr_manifest_problem *ret_problem,
                     struct tr_manifest **ret_manifest) {
        struct reading reading = { .folder = folder, .problem = ret_problem };

        return read_whole(&reading, (json_t *)json, ret_manifest);
}

/* As MessagePack */

int tr_manifest_parse(const void *value, size_t bytes, struct tr_manifest_problem *ret_problem,
                      struct tr_manifest **ret_manifest) {
        struct reading reading = { .lenient = true, .problem = ret_problem };
        const char *reason;
        char *path;
        json_t *json;
        int r;

        if (bytes > TR_MANIFEST_BYTES_MAX)
                return wrong(&reading, NULL, "is larger than %u bytes", TR_MANIFEST_BYTES_MAX);
        r = tr_json_unpack(value, bytes, &json, &path, &reason);
        if (r == TR_UNPACK_NO_JSON) {
                *ret_problem = (struct tr_manifest_problem){ .path = path, .reason = strdup(reason) };
                if (ret_problem->reason)
                        return TR_MANIFEST_NO_JSON;
                tr_manifest_problem_deinit(ret_problem);
                return tr_error_origin(-ENOMEM);
        }
        if (r < 0)
                return tr_error_fold(r);
        r = read_whole(&reading, json, ret_manifest);
        json_decref(json);
        return r;
}
