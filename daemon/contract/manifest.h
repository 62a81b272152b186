/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CONTRACT_MANIFEST_H
#define TR_CONTRACT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

struct json_t; /* jansson's */
struct tr_schema;

/*
 * What a component says of itself: its operations with their contracts, and who serves it. Read once and checked as a whole;
 * immutable then, and reference-counted: any thread. A call holds the manifest that it was checked against.
 */
enum tr_operation_type {
        TR_OPERATION_COMPUTATION,
        TR_OPERATION_EFFECT,
        TR_OPERATION_OBSERVATION,
        TR_OPERATION_TRANSITION,
        TR_OPERATION_ASSIGNMENT,
};

struct tr_operation {
        char *name;
        enum tr_operation_type type;
        bool stateful;            /* it is called by the name of a replica, and all of them serve it */
        bool entries;             /* its scope: it gets a list of entities */
        struct tr_schema *input;  /* NULL: anything */
        struct tr_schema *output; /* NULL: anything */
        char **errors;            /* that it may return; NULL-terminated, NULL: none */
        uint64_t timeout_ms;      /* of its calls where they name none; 0: none */
        char *doc;                /* NULL: none */
};

/* One replica that the daemon starts. */
struct tr_manifest_replica {
        char *instance; /* its name; NULL: a random one */
        uint8_t *args;  /* one value as MessagePack, in the typed form; NULL: none */
        size_t args_bytes;
};

struct tr_manifest_replicas {
        struct tr_manifest_replica *list;
        uint32_t count;
};

void tr_manifest_replicas_deinit(struct tr_manifest_replicas *replicas);

/* A command that the daemon starts and supervises. */
struct tr_manifest_process {
        char **command; /* NULL-terminated, at least one */
        char *cwd;      /* absolute; NULL: / */
        char **env;     /* "NAME=value" beyond the daemon's own; NULL-terminated, NULL: none */
        struct tr_manifest_replicas replicas;
};

struct tr_manifest {
        _Atomic uint32_t refs;
        char *name;
        char *module;                         /* NULL: no replicas in the daemon */
        struct tr_manifest_replicas replicas; /* of the module; none without one */
        struct tr_manifest_process *process;  /* NULL: none */
        uint32_t concurrency;
        uint32_t deliveries;
        uint32_t attempts;
        uint32_t queue; /* 0: limits.queue */
        struct tr_schema *entity; /* NULL: anything */
        char *lost;               /* the name of an operation; NULL: none */
        uint64_t allow;           /* bits of what `allow` names, as the configuration has them (has_allow) */
        bool has_allow;
        uint64_t heap_bytes; /* 0: the default */
        struct tr_operation *operations; /* by name */
        uint32_t operations_count;
        char hash[65]; /* SHA-256 of what it was read from, in hexadecimal: two that differ are different manifests */
};

/* What is wrong with a manifest, and where: the caller's to deinit. */
struct tr_manifest_problem {
        char *path;   /* a JSON Pointer; "" is the whole */
        char *reason; /* what follows on it: "is missing" */
};

void tr_manifest_problem_deinit(struct tr_manifest_problem *problem);

enum {
        TR_MANIFEST_WRONG = 1,
        TR_MANIFEST_NO_JSON = 2, /* it holds what JSON does not have */
};

/* What a manifest may have at most. */
#define TR_MANIFEST_OPERATIONS_MAX 4096
#define TR_MANIFEST_REPLICAS_MAX 1024
/* Bytes of one that a peer sends. */
#define TR_MANIFEST_BYTES_MAX (1u << 20)

/* What `allow` may name, here as in the configuration: each is a bit, in this order. NULL-terminated. */
extern const char *const tr_allow_names[];

/*
 * Reads a manifest. Relative paths in it start at `folder` (absolute; NULL: they are refused). 0, TR_MANIFEST_WRONG with
 * *ret_problem filled, or -ENOMEM.
 */
TR_MUST_CHECK int tr_manifest_read(const struct json_t *json, const char *folder, struct tr_manifest_problem *ret_problem,
                                   struct tr_manifest **ret_manifest);
/*
 * The same from MessagePack, typed, that the scanner has passed: there a nil member is absent, an empty array is an object
 * where the manifest has one, and relative paths are refused. As tr_manifest_read(), or TR_MANIFEST_NO_JSON with
 * *ret_problem.
 */
TR_MUST_CHECK int tr_manifest_parse(const void *value, size_t bytes, struct tr_manifest_problem *ret_problem,
                                    struct tr_manifest **ret_manifest);
struct tr_manifest *tr_manifest_ref(struct tr_manifest *manifest);
/* NULL is fine. */
void tr_manifest_unref(struct tr_manifest *manifest);
TR_DEFINE_CLEANUP(struct tr_manifest, tr_manifest_unref)

/* Borrowed; NULL: it has none of that name. */
const struct tr_operation *tr_manifest_find(const struct tr_manifest *manifest, const char *name, size_t len);
bool tr_operation_declares(const struct tr_operation *operation, const char *error, size_t len);

#endif
