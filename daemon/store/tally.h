/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_STORE_TALLY_H
#define TR_STORE_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/lock.h"
#include "daemon/core/store.h"

/*
 * How many tasks there are, by component and state. What a transaction changes is noted by the store's thread, and counts from its end
 * on. A component that was there once stays, with zeros: there are as many as have had a task.
 */
enum tr_tally_state {
        TR_TALLY_WAITING,
        TR_TALLY_RUNNING,
        TR_TALLY_PARKED,
        TR_TALLY_STATES,
};

extern const char *const tr_tally_states[TR_TALLY_STATES];

/* TR_TALLY_STATES: there is none of that name. */
enum tr_tally_state tr_tally_state_of(const char *name, size_t len);

struct tr_tally_entry {
        char *component;
        uint64_t counts[TR_TALLY_STATES]; /* guarded by the lock */
        int64_t noted[TR_TALLY_STATES];   /* the store's thread only */
};

struct tr_tally {
        struct tr_lock lock; /* nothing else is acquired under it */
        struct tr_tally_entry *entries TR_GUARDED_BY(lock);
        size_t count TR_GUARDED_BY(lock);
};

void tr_tally_init(struct tr_tally *tally);
void tr_tally_deinit(struct tr_tally *tally);

/* The store's thread: one more (or fewer) is in a state. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_tally_note(struct tr_tally *tally, const char *component, size_t len, enum tr_tally_state state, int64_t change);
/* What was noted has happened; has not. */
void tr_tally_commit(struct tr_tally *tally);
void tr_tally_forget(struct tr_tally *tally);
/* Any thread. */
void tr_tally_visit(struct tr_tally *tally, void (*visit)(void *userdata, const struct tr_store_counts *counts), void *userdata);

#endif
