/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_STORAGE_H
#define TR_SCRIPT_STORAGE_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/script/held.h"

/*
 * The storage of a byte buffer: one block outside of Lua's memory, so that it can leave a VM as it is. It is held by a
 * VM and charged to its ceiling.
 */
struct tr_storage {
        struct tr_held held; /* first */
        size_t room;
        uint8_t data[];
};

/* What it counts as. */
static inline size_t tr_storage_bytes(const struct tr_storage *storage) {
        return sizeof(*storage) + storage->room;
}

/* Makes the block larger, or a new one where it is NULL; the content stays. Raises where the ceiling is reached or
 * there is no memory, and the block is as it was. */
struct tr_storage *tr_storage_grow(lua_State *L, struct tr_storage *storage, size_t room);
/* Charges for storage that comes from elsewhere. Raises where the ceiling is reached. */
void tr_storage_charge(lua_State *L, size_t bytes);
/* It leaves the VM: not held and not charged any more. Does not raise. */
void tr_storage_leave(struct tr_vm *vm, struct tr_storage *storage);

#endif
