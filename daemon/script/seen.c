/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which containers of a message were written already.
 *
 * Most messages have a handful at most, and those are found by looking through a few pointers. Beyond that it is a hash
 * table with open addressing, at most half full, in a userdata on the stack: what raises an error meanwhile leaves it
 * to the collector.
 */
#include "daemon/script/seen.h"

#include <stddef.h>
#include <string.h>

struct tr_seen_slot {
        const void *container; /* NULL: free */
        uint32_t number;
};

#define ROOM_FIRST (TR_SEEN_FEW * 8)

void tr_seen_init(struct tr_seen *seen, lua_State *L) {
        seen->count = 0;
        seen->room = 0;
        seen->slots = NULL;
        lua_pushnil(L);
        seen->anchor = lua_gettop(L);
}

/* The slot of the container, or the free one where it belongs. */
static struct tr_seen_slot *find(struct tr_seen_slot *slots, uint32_t room, const void *container) {
        /* Fibonacci hashing; objects are aligned to 16 bytes, so that the low bits say nothing */
        uint64_t hash = (uint64_t)(uintptr_t)container * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t at = (uint32_t)(hash >> 32) & (room - 1);

        while (slots[at].container && slots[at].container != container)
                at = (at + 1) & (room - 1);
        return slots + at;
}

static void grow(struct tr_seen *seen, lua_State *L) {
        uint32_t room = seen->room ? seen->room * 2 : ROOM_FIRST;
        struct tr_seen_slot *slots = lua_newuserdatauv(L, room * sizeof(*slots), 0);

        memset(slots, 0, room * sizeof(*slots));
        for (uint32_t i = 0; i < seen->room; i++)
                if (seen->slots[i].container)
                        *find(slots, room, seen->slots[i].container) = seen->slots[i];
        for (uint32_t i = 0; !seen->room && i < seen->count; i++)
                *find(slots, room, seen->few[i]) = (struct tr_seen_slot){ seen->few[i], i };
        seen->slots = slots;
        seen->room = room;
        lua_replace(L, seen->anchor);
}

bool tr_seen_add(struct tr_seen *seen, lua_State *L, const void *container, uint32_t *ret_number) {
        struct tr_seen_slot *slot;

        if (!seen->room) {
                for (uint32_t i = 0; i < seen->count; i++)
                        if (seen->few[i] == container) {
                                *ret_number = i;
                                return true;
                        }
                if (seen->count < TR_SEEN_FEW) {
                        seen->few[seen->count++] = container;
                        return false;
                }
                grow(seen, L);
        }

        slot = find(seen->slots, seen->room, container);
        if (slot->container) {
                *ret_number = slot->number;
                return true;
        }
        *slot = (struct tr_seen_slot){ container, seen->count++ };
        if (seen->count > seen->room / 2)
                grow(seen, L);
        return false;
}
