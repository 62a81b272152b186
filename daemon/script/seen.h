/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SEEN_H
#define TR_SCRIPT_SEEN_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

struct tr_seen_slot;

/* Messages with no more containers than this need no table of them. */
#define TR_SEEN_FEW 16

/* The containers of one message by their address, numbered as they came. */
struct tr_seen {
        uint32_t count;
        uint32_t room;              /* slots, a power of two; 0: only the few */
        struct tr_seen_slot *slots; /* in a userdata at `anchor` */
        int anchor;                 /* stack index */
        const void *few[TR_SEEN_FEW];
};

/* Pushes the value that holds what it needs; it must stay where it is on the stack. */
void tr_seen_init(struct tr_seen *seen, lua_State *L);
/* Numbers the container, or, where it has a number already, answers true. */
bool tr_seen_add(struct tr_seen *seen, lua_State *L, const void *container, uint32_t *ret_number);

#endif
