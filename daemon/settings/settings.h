/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SETTINGS_SETTINGS_H
#define TR_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/contract/manifest.h"
#include "daemon/settings/problem.h"

/*
 * The configuration as the daemon uses it. Immutable once it was read; any thread.
 *
 * Every key has a value: the defaults are a configuration themselves (tr_settings_defaults), read by the same code
 * before the file. Texts are the settings' own.
 */

/* Whose daemon it is decides where things are. */
enum tr_settings_scope {
        TR_SETTINGS_SYSTEM,
        TR_SETTINGS_USER,
        TR_SETTINGS_PROGRAM, /* none's, of a program that is run: as the system's, but no file of a component is read */
};

enum tr_restart {
        TR_RESTART_NEVER,
        TR_RESTART_ON_FAULT,
        TR_RESTART_ALWAYS,
};

/* Values as MessagePack, one behind another. */
struct tr_settings_args {
        uint8_t *data;
        size_t bytes;
        uint32_t count;
};

/* An entry of `actors`. Numbers that are 0 were not given. */
struct tr_settings_actor {
        char *actor;
        char *name;    /* NULL: none */
        char *publish; /* NULL: none */
        uint64_t heap_bytes;
        uint64_t mailbox;
        uint64_t mailbox_bytes;
        uint64_t async;
        uint64_t restart; /* enum tr_restart */
        struct tr_settings_args args;
        int line; /* where it stands in the file, for the log */
};

/* 0 or -ENOMEM, with *ret_copy untouched; deinit is fine on an empty one. The line does not count as what it is. */
TR_MUST_CHECK int tr_settings_actor_copy(const struct tr_settings_actor *actor, struct tr_settings_actor *ret_copy);
bool tr_settings_actor_equals(const struct tr_settings_actor *one, const struct tr_settings_actor *other);
void tr_settings_actor_deinit(struct tr_settings_actor *actor);

struct tr_settings_actors {
        struct tr_settings_actor *list;
        size_t count;
};

/* An entry of `pools`. Numbers that are 0 were not given. */
struct tr_settings_pool {
        char *name;
        char *actor;
        char *publish; /* NULL: the name */
        struct tr_settings_args args;
        uint64_t workers;
        uint64_t routing; /* as enum tr_routing */
        uint64_t queue;
        uint64_t heap_bytes;
        uint64_t mailbox;
        uint64_t mailbox_bytes;
        uint64_t async;
        uint64_t backoff_min_ms;
        uint64_t backoff_max_ms;
        uint64_t backoff_reset_ms;
        int line;
};

/* As those of an actor. */
TR_MUST_CHECK int tr_settings_pool_copy(const struct tr_settings_pool *pool, struct tr_settings_pool *ret_copy);
bool tr_settings_pool_equals(const struct tr_settings_pool *one, const struct tr_settings_pool *other);
void tr_settings_pool_deinit(struct tr_settings_pool *pool);

struct tr_settings_pools {
        struct tr_settings_pool *list;
        size_t count;
};

/* An entry of `access`. */
struct tr_settings_rule {
        char *user;     /* a name or a number; NULL: it is of a group */
        char *group;    /* the same; NULL: it is of a user */
        uint64_t roles; /* as the bits of enum tr_role */
        char **names;   /* patterns, NULL-terminated; NULL: none were given, which is all */
        int line;
};

struct tr_settings_access {
        struct tr_settings_rule *list;
        size_t count;
};

/* An element of `components`: a manifest, or where some are. */
struct tr_settings_source {
        char *path; /* of a file or a folder; NULL: it is a manifest */
        struct tr_manifest *manifest;
        int line;
};

struct tr_settings_sources {
        struct tr_settings_source *list;
        size_t count;
};

/* A component that is configured. */
struct tr_settings_component {
        struct tr_manifest *manifest; /* strong */
        char *file;                   /* where it was found */
};

struct tr_settings_components {
        struct tr_settings_component *list;
        size_t count;
};

struct tr_settings_limits {
        uint64_t actors;
        uint64_t actors_per_user;
        uint64_t connections;
        uint64_t connections_per_user;
        uint64_t requests;
        uint64_t frame_bytes;
        uint64_t output_bytes;
        uint64_t stalled_ms;
        uint64_t heap_bytes;
        uint64_t heap_max_bytes;
        uint64_t mailbox;
        uint64_t mailbox_bytes;
        uint64_t async;
        uint64_t nesting;
        uint64_t queue;
        uint64_t slow_ms;
        uint64_t memory_bytes; /* 0: no bound */
};

struct tr_settings {
        char *file; /* that was read; NULL: none, all are defaults */
        char *socket_path;
        uint64_t socket_mode;
        char *socket_group;    /* NULL: none */
        int socket_group_line; /* where it was configured, so that it has to exist; 0: it was not */
        char **path;           /* NULL-terminated */
        uint64_t allow;        /* enum tr_settings_allow, one bit each */
        bool has_allow;        /* it was configured */
        struct tr_settings_actors actors;
        struct tr_settings_pools pools;
        struct tr_settings_access access;
        struct tr_settings_sources sources;
        struct tr_settings_components components; /* of all sources, in their order */
        struct tr_settings_limits limits;
        char *store_path;
        int store_path_line; /* where it was configured; 0: it was not */
        char *trace_file;    /* NULL: none */
        int trace_file_line; /* where it was configured */
        uint64_t log_level;  /* enum tr_log_level */
        uint64_t log_format; /* enum tr_log_format */
        bool has_log_level;
        bool has_log_format;
        uint64_t grace_ms;
};

/* Bits of `allow`, as tr_allow_names has them. */
enum tr_settings_allow {
        TR_SETTINGS_ALLOW_FILES,
        TR_SETTINGS_ALLOW_COMMANDS,
        TR_SETTINGS_ALLOW_NATIVE,
};

/* The answers of tr_settings_load(). */
enum {
        TR_SETTINGS_WRONG = 1, /* the problems say what */
};

/* All defaults of the system's configuration, as JSON. */
extern const char tr_settings_defaults[];

/*
 * Reads the configuration: `file`, or where that is NULL the scope's own, which may be missing, and the files of components
 * that it names. 0, TR_SETTINGS_WRONG
 * with *problems filled, or a negative errno. *notes gets what is well formed but without effect. Both are the caller's
 * to deinit.
 */
TR_MUST_CHECK int tr_settings_load(const char *file, enum tr_settings_scope scope, struct tr_problems *problems,
                                   struct tr_problems *notes, struct tr_settings **ret_settings);
/* The same from a text, which is called by that file's name. Other files are not read. */
TR_MUST_CHECK int tr_settings_parse(const char *file, const char *text, size_t len, enum tr_settings_scope scope,
                                    struct tr_problems *problems, struct tr_problems *notes,
                                    struct tr_settings **ret_settings);
/* The same without any file: the defaults, and no components. */
TR_MUST_CHECK int tr_settings_new(enum tr_settings_scope scope, struct tr_problems *problems,
                                  struct tr_settings **ret_settings);
/* NULL is fine. */
void tr_settings_free(struct tr_settings *settings);
TR_DEFINE_CLEANUP(struct tr_settings, tr_settings_free)

#endif
