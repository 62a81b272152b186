/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_HELD_H
#define TR_SCRIPT_HELD_H

#include <lua.h>

#include "daemon/base/list.h"

struct tr_vm;

/*
 * What the objects of a VM hold outside of Lua's memory: the storage of a buffer, a reference to a target.
 *
 * Such an object has a finalizer of ours, but a finalizer may be lost: to call it Lua needs room on its stack, and
 * where there is no memory for that it drops the object and goes on. So everything held is also in a list of its VM,
 * from which it is released with the VM. The link is part of what is held, never of the object, whose memory Lua frees
 * when it likes.
 */
struct tr_held {
        struct tr_list link;
        /* Frees it; it is in no list any more. */
        void (*release)(struct tr_vm *vm, struct tr_held *held);
};

/* Neither raises. */
void tr_held_add(lua_State *L, struct tr_held *held);
/* Takes it out of the list and releases it. NULL is fine. */
void tr_held_release(lua_State *L, struct tr_held *take_held);

/* Stack slots with which, unused, no finalizer of ours is lost: what calling a C function takes (LUA_MINSTACK and the
 * function itself). */
#define TR_HELD_SLOTS (LUA_MINSTACK + 4)

#endif
