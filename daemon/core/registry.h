/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_REGISTRY_H
#define TR_CORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/lock.h"
#include "proto/handle.h"

struct tr_target;
struct tr_published;

/*
 * Handles and published names: how a target is found. One lock over both, held for a look-up or a change and nothing else.
 * The table of handles holds no reference: a target is in it from its registration until its last reference is gone.
 */
struct tr_registry {
        struct tr_lock lock;
        struct tr_target **handles TR_GUARDED_BY(lock); /* chains by the handle's first bits */
        size_t handles_room TR_GUARDED_BY(lock);        /* a power of two */
        size_t handles_count TR_GUARDED_BY(lock);
        void *names TR_GUARDED_BY(lock); /* a tree of struct tr_published (tsearch) */
};

enum {
        TR_REGISTRY_TAKEN = 1,     /* the name is published already */
        TR_REGISTRY_NOT_FOUND = 2,
        TR_REGISTRY_ENDED = 3, /* the target has ended */
};

TR_MUST_CHECK int tr_registry_init(struct tr_registry *registry);
void tr_registry_deinit(struct tr_registry *registry);

/* 0 or -ENOMEM. */
TR_MUST_CHECK int tr_registry_add(struct tr_registry *registry, struct tr_target *target);
/* For the last unref: nobody can find it any more (a count that reached zero is never raised again). */
void tr_registry_remove(struct tr_registry *registry, struct tr_target *target);

/* A new reference, or NULL. */
struct tr_target *tr_registry_find(struct tr_registry *registry, const struct tr_handle *handle);
struct tr_target *tr_registry_find_name(struct tr_registry *registry, const char *name, size_t len);

/* 0; TR_REGISTRY_ENDED; TR_REGISTRY_TAKEN, with *ret_holder (may be NULL: not wanted) a new reference to who holds it; or -ENOMEM. The name is valid. */
TR_MUST_CHECK int tr_registry_publish(struct tr_registry *registry, const char *name, size_t len, struct tr_target *target,
                                      struct tr_target **ret_holder);
/* 0 or TR_REGISTRY_NOT_FOUND. */
TR_MUST_CHECK int tr_registry_unpublish(struct tr_registry *registry, const char *name, size_t len);
/* All names of a target, which gets no further one. */
void tr_registry_unpublish_all(struct tr_registry *registry, struct tr_target *target);
/* Copies the first name a target is published under (a name has at most TR_NAME_MAX bytes); false where there is none. */
bool tr_registry_name_of(struct tr_registry *registry, struct tr_target *target, char *ret_name, size_t size);

/* New references to all targets that are not gone, in an array that the caller frees; *ret_count of them. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_registry_list(struct tr_registry *registry, struct tr_target ***ret_targets, size_t *ret_count);

#endif
