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

/* Makes the block larger, or a new one where it is NULL; the content stays. Raises where the ceiling is reached or
 * there is no memory, and the block is as it was. */
struct tr_storage *tr_storage_grow(lua_State *L, struct tr_storage *storage, size_t room);

#endif
