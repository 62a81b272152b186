/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry. Handles are random, so that their own first bits serve as a
 * hash that nobody can choose; names, which people choose, are in a balanced
 * tree (tsearch), so that nobody can make a look-up slow.
 *
 * Weak: a look-up takes a reference only where the count is not zero yet. Zero
 * is final, whoever brought it there removes the target under the same lock.
 *
 * A name is its target's and goes with it, or it is a keeper's: then it stays
 * when the target ends, leads to what has ended (so that whoever asks by it is
 * told that), and nobody else can take it before the keeper moves it on.
 */
#include "daemon/core/registry.h"

#include <errno.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/core/target.h"

#define HANDLES_ROOM_FIRST 256

struct tr_published {
        /* Borrowed while `leads`: it withdraws its names before it goes. Else the one that it led to last, a reference; NULL: none yet. */
        struct tr_target *target;
        struct tr_published *next_of_target;
        bool leads;               /* the target has not ended */
        struct tr_keeper *keeper; /* borrowed; NULL: the name is the target's own */
        struct tr_published *next_of_keeper;
        size_t len;
        const char *name; /* follows the structure, or what is looked for */
};

static int published_compare(const void *a, const void *b) {
        const struct tr_published *x = a, *y = b;
        if (x->len != y->len)
                return x->len < y->len ? -1 : 1;
        return memcmp(x->name, y->name, x->len);
}

int tr_registry_init(struct tr_registry *registry) {
        *registry = (struct tr_registry){ .handles_room = HANDLES_ROOM_FIRST };
        registry->handles = calloc(registry->handles_room, sizeof(*registry->handles));
        if (!registry->handles)
                return tr_error_origin(-ENOMEM);
        tr_lock_init(&registry->lock);
        return 0;
}

void tr_registry_deinit(struct tr_registry *registry) {
        if (!registry->handles)
                return;
        tdestroy(registry->names, free);
        free(registry->handles);
        registry->handles = NULL;
        tr_lock_deinit(&registry->lock);
}

static struct tr_target **registry_slot_locked(struct tr_registry *registry, const struct tr_handle *handle)
        TR_REQUIRES(registry->lock) {
        uint64_t bits;
        memcpy(&bits, handle->bytes + 8, sizeof(bits));
        return &registry->handles[bits & (registry->handles_room - 1)];
}

static int registry_grow_locked(struct tr_registry *registry) TR_REQUIRES(registry->lock) {
        size_t old_room = registry->handles_room;
        struct tr_target **old = registry->handles;
        struct tr_target **handles = calloc(old_room * 2, sizeof(*handles));
        if (!handles)
                return -ENOMEM;
        registry->handles = handles;
        registry->handles_room = old_room * 2;
        for (size_t i = 0; i < old_room; i++) {
                for (struct tr_target *target = old[i], *next; target; target = next) {
                        struct tr_target **slot = registry_slot_locked(registry, &target->handle);
                        next = target->next_by_handle;
                        target->next_by_handle = *slot;
                        *slot = target;
                }
        }
        free(old);
        return 0;
}

int tr_registry_add(struct tr_registry *registry, struct tr_target *target) {
        int r = 0;
        tr_lock_acquire(&registry->lock);
        if (registry->handles_count >= registry->handles_room)
                r = registry_grow_locked(registry);
        if (r == 0) {
                struct tr_target **slot = registry_slot_locked(registry, &target->handle);
                target->next_by_handle = *slot;
                target->registered = true;
                *slot = target;
                registry->handles_count++;
        }
        tr_lock_release(&registry->lock);
        return r < 0 ? tr_error_origin(r) : 0;
}

void tr_registry_remove(struct tr_registry *registry, struct tr_target *target) {
        tr_lock_acquire(&registry->lock);
        if (target->registered) {
                struct tr_target **at = registry_slot_locked(registry, &target->handle);
                while (*at != target)
                        at = &(*at)->next_by_handle;
                *at = target->next_by_handle;
                target->registered = false;
                registry->handles_count--;
        }
        tr_lock_release(&registry->lock);
}

/* A reference where the target still has one. */
static struct tr_target *target_ref_if_alive(struct tr_target *target) {
        /* relaxed: the registry's lock orders the look-up with the removal */
        uint32_t refs = atomic_load_explicit(&target->refs, memory_order_relaxed);
        do {
                if (refs == 0)
                        return NULL;
        } while (!atomic_compare_exchange_weak_explicit(&target->refs, &refs, refs + 1, memory_order_relaxed,
                                                        memory_order_relaxed));
        return target;
}

struct tr_target *tr_registry_find(struct tr_registry *registry, const struct tr_handle *handle) {
        struct tr_target *found = NULL;
        tr_lock_acquire(&registry->lock);
        for (struct tr_target *at = *registry_slot_locked(registry, handle); at; at = at->next_by_handle) {
                if (tr_handle_equal(&at->handle, handle)) {
                        found = target_ref_if_alive(at);
                        break;
                }
        }
        tr_lock_release(&registry->lock);
        return found;
}

static struct tr_published *registry_name_locked(struct tr_registry *registry, const char *name, size_t len)
        TR_REQUIRES(registry->lock) {
        struct tr_published key = { .len = len, .name = name };
        void *node = tfind(&key, &registry->names, published_compare);
        return node ? *(struct tr_published **)node : NULL;
}

struct tr_target *tr_registry_find_name(struct tr_registry *registry, const char *name, size_t len) {
        tr_lock_acquire(&registry->lock);
        struct tr_published *published = registry_name_locked(registry, name, len);
        struct tr_target *found = published && published->target ? target_ref_if_alive(published->target) : NULL;
        tr_lock_release(&registry->lock);
        return found;
}

bool tr_registry_is_held(struct tr_registry *registry, const char *name, size_t len) {
        tr_lock_acquire(&registry->lock);
        bool held = registry_name_locked(registry, name, len);
        tr_lock_release(&registry->lock);
        return held;
}

static struct tr_published *published_new(const char *name, size_t len) {
        struct tr_published *published = malloc(sizeof(*published) + len + 1);
        if (!published)
                return NULL;
        char *copy = (char *)(published + 1);
        memcpy(copy, name, len);
        copy[len] = '\0';
        *published = (struct tr_published){ .len = len, .name = copy };
        return published;
}

/* Frees a list that was taken out, linked by next_of_target. No lock is held: a reference may be the last. */
static void published_free(struct tr_published *published) {
        while (published) {
                struct tr_published *next = published->next_of_target;
                if (!published->leads)
                        tr_target_unref(published->target);
                free(published);
                published = next;
        }
}

/* Takes a name out; its owner frees it. */
static void published_remove_locked(struct tr_registry *registry, struct tr_published *published) TR_REQUIRES(registry->lock) {
        struct tr_published **at;
        if (published->leads) {
                for (at = &published->target->published; *at != published; at = &(*at)->next_of_target)
                        ;
                *at = published->next_of_target;
        }
        if (published->keeper) {
                for (at = &published->keeper->kept; *at != published; at = &(*at)->next_of_keeper)
                        ;
                *at = published->next_of_keeper;
        }
        published->next_of_target = NULL;
        tdelete(published, &registry->names, published_compare);
}

/* Puts a new name in. 0 or -ENOMEM. */
static int published_insert_locked(struct tr_registry *registry, struct tr_published *published, struct tr_keeper *keeper)
        TR_REQUIRES(registry->lock) {
        if (!tsearch(published, &registry->names, published_compare))
                return -ENOMEM;
        published->keeper = keeper;
        if (keeper) {
                published->next_of_keeper = keeper->kept;
                keeper->kept = published;
        }
        return 0;
}

static void published_lead_locked(struct tr_published *published, struct tr_target *target) {
        published->target = target;
        published->leads = true;
        published->next_of_target = target->published;
        target->published = published;
}

int tr_registry_publish(struct tr_registry *registry, const char *name, size_t len, struct tr_target *target,
                        struct tr_keeper *keeper, struct tr_target **ret_holder) {
        struct tr_target *last = NULL;
        struct tr_published *published = published_new(name, len);
        if (!published)
                return tr_error_origin(-ENOMEM);

        int r = 0;
        tr_lock_acquire(&registry->lock);
        struct tr_published *held = registry_name_locked(registry, name, len);
        if (target->withdrawn) {
                r = TR_REGISTRY_ENDED;
        } else if (held && held->keeper && held->keeper == keeper && !held->leads) {
                last = held->target;
                published_lead_locked(held, target);
        } else if (held) {
                r = TR_REGISTRY_TAKEN;
                if (ret_holder)
                        *ret_holder = held->target ? target_ref_if_alive(held->target) : NULL;
        } else {
                r = published_insert_locked(registry, published, keeper);
                if (r == 0)
                        published_lead_locked(tr_steal(published), target);
        }
        tr_lock_release(&registry->lock);

        free(published);
        tr_target_unref(last);
        return r < 0 ? tr_error_origin(r) : r;
}

int tr_registry_move(struct tr_registry *registry, const char *name, size_t len, struct tr_target *from,
                     struct tr_target *to) {
        tr_lock_acquire(&registry->lock);
        struct tr_published *held = registry_name_locked(registry, name, len);
        bool moves = held && held->leads && !held->keeper && held->target == from && !to->withdrawn;
        if (moves) {
                struct tr_published **at = &from->published;
                while (*at != held)
                        at = &(*at)->next_of_target;
                *at = held->next_of_target;
                published_lead_locked(held, to);
        }
        tr_lock_release(&registry->lock);
        return moves ? 0 : tr_registry_publish(registry, name, len, to, NULL, NULL);
}

int tr_registry_keep(struct tr_registry *registry, const char *name, size_t len, struct tr_keeper *keeper) {
        struct tr_published *published = published_new(name, len);
        if (!published)
                return tr_error_origin(-ENOMEM);

        int r = 0;
        tr_lock_acquire(&registry->lock);
        struct tr_published *held = registry_name_locked(registry, name, len);
        if (held)
                r = held->keeper == keeper ? 0 : TR_REGISTRY_TAKEN;
        else if ((r = published_insert_locked(registry, published, keeper)) == 0)
                published = NULL; /* the tree's */
        tr_lock_release(&registry->lock);

        free(published);
        return r < 0 ? tr_error_origin(r) : r;
}

void tr_registry_release_name(struct tr_registry *registry, const char *name, size_t len, const struct tr_keeper *keeper) {
        tr_lock_acquire(&registry->lock);
        struct tr_published *published = registry_name_locked(registry, name, len);
        if (published && published->keeper == keeper)
                published_remove_locked(registry, published);
        else
                published = NULL;
        tr_lock_release(&registry->lock);
        published_free(published);
}

void tr_registry_release(struct tr_registry *registry, struct tr_keeper *keeper) {
        struct tr_published *removed = NULL, *published;
        tr_lock_acquire(&registry->lock);
        while ((published = keeper->kept)) {
                published_remove_locked(registry, published);
                published->next_of_target = removed;
                removed = published;
        }
        tr_lock_release(&registry->lock);
        published_free(removed);
}

int tr_registry_unpublish(struct tr_registry *registry, const char *name, size_t len) {
        tr_lock_acquire(&registry->lock);
        struct tr_published *published = registry_name_locked(registry, name, len);
        if (published)
                published_remove_locked(registry, published);
        tr_lock_release(&registry->lock);
        if (!published)
                return TR_REGISTRY_NOT_FOUND;
        published_free(published);
        return 0;
}

void tr_registry_withdraw(struct tr_registry *registry, struct tr_target *target) {
        struct tr_published *removed = NULL, *published;
        tr_lock_acquire(&registry->lock);
        target->withdrawn = true;
        while ((published = target->published)) {
                if (published->keeper) {
                        target->published = published->next_of_target;
                        published->next_of_target = NULL;
                        published->leads = false;
                        tr_target_ref(target);
                } else {
                        published_remove_locked(registry, published);
                        published->next_of_target = removed;
                        removed = published;
                }
        }
        tr_lock_release(&registry->lock);
        published_free(removed);
        tr_registry_release(registry, &target->keeper);
}

bool tr_registry_name_of(struct tr_registry *registry, struct tr_target *target, char *ret_name, size_t size) {
        tr_lock_acquire(&registry->lock);
        struct tr_published *published = target->published;
        bool found = published && published->len < size;
        if (found)
                memcpy(ret_name, published->name, published->len + 1);
        tr_lock_release(&registry->lock);
        return found;
}

int tr_registry_list(struct tr_registry *registry, struct tr_target ***ret_targets, size_t *ret_count) {
        size_t count = 0;
        tr_lock_acquire(&registry->lock);
        struct tr_target **targets = calloc(registry->handles_count + 1, sizeof(*targets));
        for (size_t i = 0; targets && i < registry->handles_room; i++) {
                for (struct tr_target *at = registry->handles[i]; at; at = at->next_by_handle) {
                        /* relaxed: one that goes at this moment may be listed or not */
                        if (!atomic_load_explicit(&at->gone, memory_order_relaxed) && target_ref_if_alive(at))
                                targets[count++] = at;
                }
        }
        tr_lock_release(&registry->lock);
        if (!targets)
                return tr_error_origin(-ENOMEM);
        *ret_targets = targets;
        *ret_count = count;
        return 0;
}
