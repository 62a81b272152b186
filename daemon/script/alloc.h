/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_ALLOC_H
#define TR_SCRIPT_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A VM's memory under a ceiling. Growth is counted and may be refused; shrinking never is. Lua answers a refusal with
 * a full collection and one more try, so a refusal alone is not the end: `exceeded` is set where the second try was
 * refused too, and stays set, whatever pcall did with the error.
 *
 * Storage of byte buffers lies outside of Lua's own memory and is charged here too.
 *
 * A structure belongs to the VM's thread; the two figures that others read are kept up with relaxed stores.
 */
struct tr_alloc {
        uint64_t used_bytes;
        uint64_t max_bytes;
        uint64_t margin_bytes;  /* of the ceiling, to be kept free for the time being (while a message is decoded) */
        uint64_t refused_bytes; /* size of the request refused last, 0: none is open */
        bool exceeded;
        bool closing;             /* the reserve may be used */
        _Atomic uint64_t *shared; /* the actor's figure that others read */
        _Atomic uint64_t *total;  /* the system's */
        uint64_t reported_bytes;  /* what `total` knows of */
        /* Called where `exceeded` becomes true and no margin is kept, in the middle of Lua's allocation. May be
         * NULL. */
        void (*on_exceeded)(struct tr_alloc *alloc);
};

void tr_alloc_init(struct tr_alloc *alloc, uint64_t max_bytes, _Atomic uint64_t *shared, _Atomic uint64_t *total);
/* A lua_Alloc; ud is the struct tr_alloc. */
void *tr_alloc_lua(void *ud, void *block, size_t old_bytes, size_t new_bytes);
/* Storage that Lua does not hold. False where the ceiling is reached (and then it is remembered like any other
 * refusal). */
bool tr_alloc_charge(struct tr_alloc *alloc, size_t bytes);
/* The same, whatever the ceiling: what was refused elsewhere comes back. */
void tr_alloc_charge_anyway(struct tr_alloc *alloc, size_t bytes);
void tr_alloc_discharge(struct tr_alloc *alloc, size_t bytes);
/* Tells the system's figure what is used now: when a turn is over, and last of all. */
void tr_alloc_report(struct tr_alloc *alloc);

#endif
