/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_STORE_H
#define TR_CORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/list.h"
#include "daemon/core/failure.h"

struct tr_manifest;
struct tr_message;
struct tr_schema;
struct tr_system;

/*
 * What outlives the daemon: entities, tasks, and the names that replicas hold. Here is what core wants of it, as jobs; who does them is
 * somebody above (daemon/store), or nobody.
 *
 * A job is its submitter's from tr_store_submit() to `done`. Jobs are done in the order in which they were submitted, where that can be
 * seen: a read sees each write that was submitted before it, and nothing that is not on disk. A write is done when it is on disk.
 *
 * A document is a map of MessagePack, in the typed form. As it goes out, `id`, `version` (1 is the first), `created` and `updated`
 * (milliseconds since 1970) stand among its fields; as it comes in, fields of these names are left out.
 */

/* An id that is made here: digits in hexadecimal, ordered by the millisecond in which it was. */
#define TR_STORE_ID_LEN 32
/* Bytes of one that somebody chose; the same of a key. */
#define TR_STORE_TEXT_MAX 256
/* Bytes of all that one job answers; beyond it is `too-large`. */
#define TR_STORE_ANSWER_MAX (64u << 20)
/* Tasks that are loaded at once at most. */
#define TR_STORE_LOAD_MAX 256
/* As a version that is expected: any, or none. */
#define TR_STORE_ANY UINT64_MAX
/* A time that never comes. */
#define TR_STORE_NEVER INT64_MAX

enum tr_store_kind {
        /* Reads. */
        TR_STORE_GET,  /* component, id: value is the document or nil; version (0: there is none) */
        TR_STORE_LIST, /* component, list: value is an array of documents */
        /* Writes. */
        TR_STORE_WRITE,  /* component, id (NULL: a new one), document, merge, expect, schema, wants_value: id, version, and the value,
                          * the document as it stands then; or conflict, contract (subject `entity`), not-sendable */
        TR_STORE_DELETE, /* component, id, expect: value is whether it was there; or conflict */
        /* Tasks: these write. An id of a task that is not there any more is no failure where nothing else is said. */
        TR_STORE_TASK_ADD,   /* task: the id, which is the value too; `found`: one of the same key was waiting, and it is that one's */
        TR_STORE_TASK_LOAD,  /* component, now_ms, limit, late_limit, fresh: tasks, next_ms */
        TR_STORE_TASK_BEGIN, /* id, task.runs: it runs; that often it has begun now */
        TR_STORE_TASK_END,   /* id: it is over, and gone */
        TR_STORE_TASK_AGAIN, /* id, due_ms, document, task.runs (as above): it waits again, and is loaded no more; the document is the
                              * cause (NULL: that is as it was) */
        TR_STORE_TASK_PARK,  /* id, document, task.runs: it is parked; the cause */
        TR_STORE_TASK_RETRY, /* id, now_ms: one that is parked waits, with no run counted, one that waits is due; task_component,
                              * task_operation, task_uid, `found`: it did not run; or not-found */
        TR_STORE_TASK_DROP,  /* id: gone; task_component, task_operation, task_uid, or not-found */
        TR_STORE_TASK_LIST,  /* reads: component (NULL: all), state (NULL: all): value is an array, as the protocol's `tasks` has it */
        /* Names that are held, of components that want to know of those that were lost. */
        TR_STORE_NAME_HOLD,    /* component, id (the instance) */
        TR_STORE_NAME_RELEASE, /* the same */
        TR_STORE_NAMES_LEFT,   /* reads: component: value is an array of the names that a daemon before this one has left held */
        TR_STORE_NAMES_FORGET, /* component: those; to be submitted behind what has come of them */
        TR_STORE_BACKUP, /* path, absolute: all of it, as it is at one moment, in a file of its own, which is there as a whole or not at all */
};

/* A task. What it points to is the submitter's where it goes in, the job's where it comes out. */
struct tr_store_task {
        char id[TR_STORE_ID_LEN + 1]; /* out */
        const char *component;
        const char *operation;
        const uint8_t *input; /* one value, typed */
        size_t input_bytes;
        const char *key;    /* NULL: none. Of this component and operation */
        const char *entity; /* NULL: none */
        const char *trace;  /* a traceparent; NULL: none */
        uint32_t depth;     /* of the chain */
        uint32_t uid, gid;  /* who asked for it */
        int32_t pid;
        int64_t due_ms;     /* since 1970, as all of these */
        int64_t expires_ms; /* TR_STORE_NEVER */
        bool delayed;
        uint32_t runs;      /* out: that have begun */
        int64_t created_ms; /* out */
        bool expired;       /* out, of one that was loaded: it is too late, and it is gone */
        void *memory;       /* out: the job's */
};

struct tr_store_list {
        const uint8_t *where; /* a map: fields, and what they have to be; NULL: anything */
        size_t where_bytes;
        const char *sort;     /* a field; NULL: the id */
        const char *after;    /* an id; NULL: from the first on */
        uint64_t limit;       /* 0: none */
};

struct tr_store_job {
        enum tr_store_kind kind;
        /* Once: on the store's thread, no lock held; or in tr_store_submit(), where the store takes no more. It must not block. The job
         * is the submitter's again. */
        void (*done)(struct tr_store_job *job);
        void *userdata; /* for done */

        /* In; what it points to stays until `done`. Texts end with a NUL. */
        const char *component;
        const char *id;
        const uint8_t *document;
        size_t document_bytes;
        bool merge; /* fields are laid over what is there, a nil takes one away; else the document takes the place of what is there */
        bool wants_value;
        uint64_t expect; /* the version that is there: TR_STORE_ANY, or 0: none is */
        const struct tr_schema *schema; /* of what is there then, without the store's own fields; NULL: anything */
        struct tr_store_list list;
        struct tr_store_task task;
        const char *state;
        const char *path;
        int64_t now_ms, due_ms;
        uint32_t limit;      /* of tasks that are loaded */
        bool fresh;          /* nobody has any of the component's tasks in hand: what was loaded is loaded no more */
        uint32_t late_limit; /* of those among them that are delayed and a second or more late */

        /* Out, tr_store_job_deinit() frees them. */
        struct tr_failure *failure; /* NULL: it was done */
        uint8_t *value;             /* one value, typed; NULL: there is none */
        size_t value_bytes;
        char new_id[TR_STORE_TEXT_MAX + 1]; /* the id, where one was made or found */
        uint64_t version;
        bool found;
        char *task_component;
        char *task_operation;
        uint32_t task_uid; /* who asked for it */
        struct tr_store_task *tasks; /* those that are due, the oldest first */
        uint32_t tasks_count;
        int64_t next_ms; /* when the next one that was not loaded is due; TR_STORE_NEVER: none is */

        /* The store's. */
        struct tr_list link;
};

/* How many tasks a component has. */
struct tr_store_counts {
        const char *component;
        uint64_t waiting, running, parked;
};

struct tr_store;

struct tr_store_ops {
        void (*submit)(struct tr_store *store, struct tr_store_job *job);
        void (*visit_counts)(struct tr_store *store, void (*visit)(void *userdata, const struct tr_store_counts *counts),
                             void *userdata);
};

/* Whoever implements it has this first. */
struct tr_store {
        const struct tr_store_ops *ops;
};

/* Any thread, no lock held that `done` would take. Does not wait. */
static inline void tr_store_submit(struct tr_store *store, struct tr_store_job *job) {
        store->ops->submit(store, job);
}

/* Any thread: calls back for each component that has tasks. */
static inline void tr_store_visit_counts(struct tr_store *store,
                                         void (*visit)(void *userdata, const struct tr_store_counts *counts), void *userdata) {
        store->ops->visit_counts(store, visit, userdata);
}

/* Frees what the job answered. An empty one is fine. */
void tr_store_job_deinit(struct tr_store_job *job);

/* Writes an id that nobody has, and a NUL. 0 or a negative errno. Any thread. */
TR_MUST_CHECK int tr_store_new_id(char ret_id[static TR_STORE_ID_LEN + 1]);
/* Whether a text can be an id, or a key: 1 to TR_STORE_TEXT_MAX bytes of UTF-8 without control characters. */
bool tr_store_text_is_valid(const char *text, size_t len);

/*
 * Has a job done for somebody who asks: the message, which nobody has posted, is settled with its value (nil, where it has none) or its
 * failure. What the job's `in` points to (a task apart) is copied, and so is its pointer to a schema, which the manifest (NULL: there is
 * none) keeps. NULL, and the message's reference is taken; or why not (store, no-memory), to be told with ran "no", and it is still the
 * caller's. Any thread, no lock held; it may be settled before this returns.
 */
struct tr_failure *tr_store_ask(struct tr_system *system, const struct tr_store_job *job, struct tr_manifest *manifest,
                                struct tr_message *take_message);

/* Settles a message with what a job that was done has answered, in the form that it wants: its value, or nil. */
void tr_store_resolve(struct tr_message *message, const struct tr_store_job *job);

/* `store`: why there is none. A new reference. */
struct tr_failure *tr_store_none(const struct tr_system *system);

#endif
