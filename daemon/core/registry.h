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
 * Somebody whose names stay when what they lead to has ended: a supervisor, which moves them to the replacement. All zero: it
 * keeps none. Guarded by the registry's lock; it is released before it goes.
 */
struct tr_keeper {
        struct tr_published *kept;
};

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
/* What has ended is found where somebody keeps the name. NULL also where a kept name leads nowhere yet. */
struct tr_target *tr_registry_find_name(struct tr_registry *registry, const char *name, size_t len);

/*
 * Names. The name is valid wherever one is given.
 */

/* 0; TR_REGISTRY_ENDED; TR_REGISTRY_TAKEN, with *ret_holder (may be NULL: not wanted) a new reference to who holds it, or NULL; or
 * -ENOMEM. A keeper (NULL: the name is the target's own) gets the name where it is free, and moves it here in one step where it
 * is its own and leads to nobody who runs. */
TR_MUST_CHECK int tr_registry_publish(struct tr_registry *registry, const char *name, size_t len, struct tr_target *target,
                                      struct tr_keeper *keeper, struct tr_target **ret_holder);
/* The name leads to `to` from now on, in one step where it is `from`'s own; else as tr_registry_publish() without a keeper. */
TR_MUST_CHECK int tr_registry_move(struct tr_registry *registry, const char *name, size_t len, struct tr_target *from,
                                   struct tr_target *to);
/* The name is the keeper's from now on, though it leads nowhere yet. 0, also where it was its own before; TR_REGISTRY_TAKEN; or -ENOMEM. */
TR_MUST_CHECK int tr_registry_keep(struct tr_registry *registry, const char *name, size_t len, struct tr_keeper *keeper);
/* One name is free again, whatever it leads to; nothing where it is not the keeper's. */
void tr_registry_release_name(struct tr_registry *registry, const char *name, size_t len, const struct tr_keeper *keeper);
/* All that it keeps. */
void tr_registry_release(struct tr_registry *registry, struct tr_keeper *keeper);
/* 0 or TR_REGISTRY_NOT_FOUND. */
TR_MUST_CHECK int tr_registry_unpublish(struct tr_registry *registry, const char *name, size_t len);
/* The target has ended: its names are free, also those that it keeps, and it gets no further one. What others keep stays. */
void tr_registry_withdraw(struct tr_registry *registry, struct tr_target *target);
/* Whether a name is anybody's, though it may lead nowhere. */
bool tr_registry_is_held(struct tr_registry *registry, const char *name, size_t len);
/* Copies the first name a target is published under (a name has at most TR_NAME_MAX bytes); false where there is none. */
bool tr_registry_name_of(struct tr_registry *registry, struct tr_target *target, char *ret_name, size_t size);

/* New references to all targets that are not gone, in an array that the caller frees; *ret_count of them. 0 or -ENOMEM. */
TR_MUST_CHECK int tr_registry_list(struct tr_registry *registry, struct tr_target ***ret_targets, size_t *ret_count);

#endif
