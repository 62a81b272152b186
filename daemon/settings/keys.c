/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key of the configuration. conf/trouped.schema.json says the same for people's editors; a test holds the two,
 * and the defaults, in step.
 */
#include "daemon/settings/keys.h"

#include "daemon/settings/settings.h"
#include "proto/limits.h"
#include "proto/quantity.h"

#define AT(field) offsetof(struct tr_settings, field)

/* A thread, a descriptor and some hundred kilobytes each: beyond this a number is a typing mistake. */
#define ACTORS_MAX 1000000
#define COUNT_MAX UINT32_MAX
/* What 32-bit lengths of the wire can say. */
#define FRAME_MAX UINT32_MAX
/* The least that the standard library and ours fit in. */
#define SIZE_MAX_BYTES ((uint64_t)INT64_MAX)
#define YEAR_MS (UINT64_C(365) * 24 * 60 * 60 * 1000)

static const char *const restart_choices[] = { "never", "on-fault", "always", NULL };
static const char *const level_choices[] = { "error", "warning", "info", "debug", NULL };
static const char *const format_choices[] = { "auto", "text", "json", "journal", NULL };
/* As enum tr_routing. */
static const char *const routing_choices[] = { "round-robin", "smallest-mailbox", "random", "shared", NULL };
/* Each is the bit of enum tr_role. */
static const char *const role_choices[] = { "call", "serve", "spawn", "operate", NULL };

static const struct tr_key socket_keys[] = {
        { "path", tr_read_path, AT(socket_path) },
        { "mode", tr_read_mode, AT(socket_mode) },
        { "group", tr_read_text, AT(socket_group), .min = 1, .max = 256 },
        { NULL },
};

#define ACTOR_AT(field) offsetof(struct tr_settings_actor, field)

static const struct tr_key actor_keys[] = {
        { "actor", tr_read_actor, ACTOR_AT(actor), .flags = TR_KEY_REQUIRED },
        { "args", tr_read_args, ACTOR_AT(args) },
        { "name", tr_read_text, ACTOR_AT(name), .min = 1, .max = TR_NAME_MAX },
        { "publish", tr_read_name, ACTOR_AT(publish) },
        { "heap", tr_read_size, ACTOR_AT(heap_bytes), .min = TR_HEAP_MIN, .max = SIZE_MAX_BYTES },
        { "mailbox", tr_read_count, ACTOR_AT(mailbox), .min = 1, .max = COUNT_MAX },
        { "mailbox_bytes", tr_read_size, ACTOR_AT(mailbox_bytes), .min = 1, .max = SIZE_MAX_BYTES },
        { "async", tr_read_count, ACTOR_AT(async), .min = 1, .max = COUNT_MAX },
        { "restart", tr_read_choice, ACTOR_AT(restart), .choices = restart_choices },
        { NULL },
};

#define POOL_AT(field) offsetof(struct tr_settings_pool, field)

static const struct tr_key backoff_keys[] = {
        { "min", tr_read_duration, POOL_AT(backoff_min_ms), .min = 1, .max = YEAR_MS },
        { "max", tr_read_duration, POOL_AT(backoff_max_ms), .min = 1, .max = YEAR_MS },
        { "reset", tr_read_duration, POOL_AT(backoff_reset_ms), .min = 1, .max = YEAR_MS },
        { NULL },
};

static const struct tr_key pool_keys[] = {
        { "name", tr_read_name, POOL_AT(name), .flags = TR_KEY_REQUIRED },
        { "actor", tr_read_actor, POOL_AT(actor), .flags = TR_KEY_REQUIRED },
        { "args", tr_read_args, POOL_AT(args) },
        { "workers", tr_read_count, POOL_AT(workers), .min = 1, .max = 1024 },
        { "routing", tr_read_choice, POOL_AT(routing), .choices = routing_choices },
        { "queue", tr_read_count, POOL_AT(queue), .min = 1, .max = COUNT_MAX },
        { "heap", tr_read_size, POOL_AT(heap_bytes), .min = TR_HEAP_MIN, .max = SIZE_MAX_BYTES },
        { "mailbox", tr_read_count, POOL_AT(mailbox), .min = 1, .max = COUNT_MAX },
        { "mailbox_bytes", tr_read_size, POOL_AT(mailbox_bytes), .min = 1, .max = SIZE_MAX_BYTES },
        { "async", tr_read_count, POOL_AT(async), .min = 1, .max = COUNT_MAX },
        { "backoff", tr_read_object, 0, .keys = backoff_keys },
        { "detach", tr_read_bool, TR_KEY_UNKEPT }, /* it always is */
        { "publish", tr_read_name, POOL_AT(publish) },
        { NULL },
};

#define RULE_AT(field) offsetof(struct tr_settings_rule, field)

static const struct tr_key access_keys[] = {
        { "user", tr_read_text, RULE_AT(user), .min = 1, .max = 256 },
        { "group", tr_read_text, RULE_AT(group), .min = 1, .max = 256 },
        { "roles", tr_read_choices, RULE_AT(roles), .flags = TR_KEY_REQUIRED, .choices = role_choices },
        { "names", tr_read_patterns, RULE_AT(names) },
        { NULL },
};

static const struct tr_key store_keys[] = {
        { "path", tr_read_path, AT(store_path) },
        { NULL },
};

static const struct tr_key limits_keys[] = {
        { "actors", tr_read_count, AT(limits.actors), .min = 1, .max = ACTORS_MAX },
        { "actors_per_user", tr_read_count, AT(limits.actors_per_user), .min = 1, .max = ACTORS_MAX },
        { "connections", tr_read_count, AT(limits.connections), .min = 1, .max = ACTORS_MAX },
        { "connections_per_user", tr_read_count, AT(limits.connections_per_user), .min = 1, .max = ACTORS_MAX },
        { "requests", tr_read_count, AT(limits.requests), .min = 1, .max = COUNT_MAX },
        { "frame", tr_read_size, AT(limits.frame_bytes), .min = 64, .max = FRAME_MAX },
        { "output", tr_read_size, AT(limits.output_bytes), .min = 64, .max = SIZE_MAX_BYTES },
        { "stalled", tr_read_duration, AT(limits.stalled_ms), .min = 1, .max = YEAR_MS },
        { "heap", tr_read_size, AT(limits.heap_bytes), .min = TR_HEAP_MIN, .max = SIZE_MAX_BYTES },
        { "heap_max", tr_read_size, AT(limits.heap_max_bytes), .min = TR_HEAP_MIN, .max = SIZE_MAX_BYTES },
        { "mailbox", tr_read_count, AT(limits.mailbox), .min = 1, .max = COUNT_MAX },
        { "mailbox_bytes", tr_read_size, AT(limits.mailbox_bytes), .min = 1, .max = SIZE_MAX_BYTES },
        { "async", tr_read_count, AT(limits.async), .min = 1, .max = COUNT_MAX },
        { "nesting", tr_read_count, AT(limits.nesting), .min = 1, .max = TR_NESTING_MAX },
        { "queue", tr_read_count, AT(limits.queue), .min = 1, .max = COUNT_MAX },
        { "slow", tr_read_duration, AT(limits.slow_ms), .min = 1, .max = YEAR_MS },
        { "memory", tr_read_size, AT(limits.memory_bytes), .flags = TR_KEY_NULLABLE, .min = 1, .max = SIZE_MAX_BYTES },
        { NULL },
};

static const struct tr_key log_keys[] = {
        { "level", tr_read_choice, AT(log_level), .choices = level_choices },
        { "format", tr_read_choice, AT(log_format), .choices = format_choices },
        { NULL },
};

static const struct tr_key trace_keys[] = {
        { "file", tr_read_path, AT(trace_file), .flags = TR_KEY_NULLABLE },
        { NULL },
};

static const struct tr_key metrics_keys[] = {
        { "path", tr_read_path, TR_KEY_UNKEPT, .flags = TR_KEY_UNBUILT | TR_KEY_NULLABLE },
        { "mode", tr_read_mode, TR_KEY_UNKEPT, .flags = TR_KEY_UNBUILT },
        { "group", tr_read_text, TR_KEY_UNKEPT, .flags = TR_KEY_UNBUILT, .min = 1, .max = 256 },
        { NULL },
};

static const struct tr_key shutdown_keys[] = {
        { "grace", tr_read_duration, AT(grace_ms), .min = 1, .max = YEAR_MS },
        { NULL },
};

const struct tr_key tr_settings_keys[] = {
        { "socket", tr_read_object, 0, .keys = socket_keys },
        { "path", tr_read_paths, AT(path) },
        { "allow", tr_read_choices, AT(allow), .choices = tr_allow_names },
        { "actors", tr_read_actors, AT(actors), .keys = actor_keys },
        { "pools", tr_read_pools, AT(pools), .keys = pool_keys },
        { "components", tr_read_components, AT(sources) },
        { "access", tr_read_access, AT(access), .keys = access_keys },
        { "store", tr_read_object, 0, .keys = store_keys },
        { "limits", tr_read_object, 0, .keys = limits_keys },
        { "log", tr_read_object, 0, .keys = log_keys },
        { "trace", tr_read_object, 0, .keys = trace_keys },
        { "metrics", tr_read_object, 0, .keys = metrics_keys },
        { "shutdown", tr_read_object, 0, .keys = shutdown_keys },
        { NULL },
};
