/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_STORE_H
#define TESTS_FAKE_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/store.h"

/*
 * A store of entities in memory whose jobs are done when a test says so, one by one: what happens between two of them is the
 * test's choice. It knows GET, LIST (all of them, by id), WRITE, DELETE and BACKUP (which does nothing); any other aborts.
 */
#define FAKE_STORE_ENTITIES_MAX 64

struct fake_entity {
        char *id;
        uint64_t version;
        uint8_t *fields; /* a map */
        size_t bytes;
};

struct fake_store {
        struct tr_store store; /* first */
        pthread_mutex_t lock;
        struct tr_list jobs; /* submitted and not done */
        bool closed;         /* what is submitted is told so at once */
        enum tr_code fails;  /* the next job that is done fails with this; 0 (bad-frame, which no store says): it does not */
        size_t submitted, writes; /* in all */
        struct tr_store_list list; /* of the last one that was listed: borrowed, as long as its call is there */
        struct fake_entity entities[FAKE_STORE_ENTITIES_MAX];
        size_t count;
};

void fake_store_init(struct fake_store *store);
void fake_store_deinit(struct fake_store *store);
/* Does the first job that there is; false where there is none. */
bool fake_store_step(struct fake_store *store);
/* Does all that there are, and what is submitted meanwhile. */
void fake_store_run(struct fake_store *store);
/* What it has of an entity, as notation.h writes it ("{'a':1}"), in memory that the caller frees; NULL: nothing. */
char *fake_store_fields(struct fake_store *store, const char *id);
uint64_t fake_store_version(struct fake_store *store, const char *id);
/* Puts one there, or in the place of what is there, as if somebody else had; a version more. */
void fake_store_put(struct fake_store *store, const char *id, const char *fields);

#endif
