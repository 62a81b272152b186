/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_TASK_H
#define TR_CORE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/store.h"

struct tr_component;
struct tr_failure;
struct tr_message;
struct tr_system;

/*
 * Tasks: calls that are kept by the store until they have been run, whoever asked for them, and whichever daemon it is by then.
 */

/* What comes with a task. All of it is borrowed, and copied where it is kept. */
struct tr_task_options {
        const char *instance; /* instance_len bytes; NULL: none, as it has to be (contract) */
        size_t instance_len;
        const char *id;       /* of an entity; id_len bytes, NULL: none */
        size_t id_len;
        const char *key;      /* key_len bytes; NULL: none */
        size_t key_len;
        const char *trace;    /* a valid traceparent; NULL: a new trace */
        size_t trace_len;
        uint64_t delay_ms;    /* 0: none */
        int64_t at_ms;        /* since 1970; 0: none. A past one is now */
        uint64_t expires_ms;  /* after it was due; 0: never */
        uint32_t uid, gid;    /* of the caller */
        int32_t pid;
};

/*
 * The message, which nobody has posted, is a task (its handler the operation's name, its one argument the input, in the typed form):
 * it is settled with the task's id once that is on disk, or with why not (store, no-memory, shutting-down). NULL, and its reference is
 * taken; or why not (not-found, contract, bad-request, store, loop, no-memory), to be told with ran "no", and it is still the caller's.
 * The input is checked, and may be changed, in place. Any thread, no lock held; it may be settled before this returns.
 */
struct tr_failure *tr_task_accept(struct tr_component *component, const struct tr_task_options *options,
                                  struct tr_message *take_message);

/* What is asked of tasks themselves. All of it is borrowed, and copied where it is kept. */
struct tr_tasks_request {
        enum tr_store_kind kind; /* TR_STORE_TASK_LIST, TR_STORE_TASK_RETRY, TR_STORE_TASK_DROP */
        const char *component;   /* of a list: component_len bytes; NULL: all */
        size_t component_len;
        const char *state;       /* of a list: `waiting`, `running` or `parked`, state_len bytes; NULL: all */
        size_t state_len;
        const char *id;          /* of the others: id_len bytes */
        size_t id_len;
};

/*
 * The message, which nobody has posted, is settled with the array (LIST), with nil (RETRY, DROP), or with why not (not-found, too-large,
 * store). NULL, and its reference is taken; or why not (bad-request, not-found, store, no-memory), to be told with ran "no", and it is
 * still the caller's. Any thread, no lock held; it may be settled before this returns.
 */
struct tr_failure *tr_tasks_ask(struct tr_system *system, const struct tr_tasks_request *request, struct tr_message *take_message);

enum tr_task_event {
        TR_TASK_ACCEPTED, /* on disk */
        TR_TASK_STARTED,  /* a run of it */
        TR_TASK_FINISHED, /* it is over: answered, or with an error that its operation declares */
        TR_TASK_FAILED,   /* a run of it has; it is tried again */
        TR_TASK_PARKED,
        TR_TASK_EXPIRED,
        TR_TASK_DROPPED,
        TR_TASK_RETRIED, /* by a person */
        TR_TASK_EVENTS_COUNT,
};

/* "accepted" ... "retried" */
const char *tr_task_event_text(enum tr_task_event event);

/* What has become of a task. All of it is borrowed for the call of system->hooks.task(). */
struct tr_task_news {
        enum tr_task_event event;
        const char *id;
        const char *component;
        const char *operation;
        uint32_t attempt;               /* runs that have begun; 0: none, or (RETRIED, DROPPED) it was not asked */
        const struct tr_failure *cause; /* FAILED, PARKED, and FINISHED with a declared error; else NULL */
        uint32_t uid;                   /* who asked for the task */
        int32_t pid;
};

#endif
