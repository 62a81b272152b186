/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list's head is a userdata in the registry that has a finalizer itself. It is made before any other object that
 * has one, and lua_close() calls finalizers in reverse order, on a stack that is empty and has room: what is still in
 * the list then was lost by others.
 */
#include "daemon/script/held.h"

#include "daemon/script/open.h"
#include "daemon/script/vm.h"

static const char head_key;

void tr_held_add(lua_State *L, struct tr_held *held) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &head_key);
        tr_list_append(lua_touserdata(L, -1), &held->link);
        lua_pop(L, 1);
}

void tr_held_release(lua_State *L, struct tr_held *take_held) {
        if (!take_held)
                return;
        tr_list_unlink(&take_held->link);
        take_held->release(tr_vm_of(L), take_held);
}

static int head_collect(lua_State *L) {
        struct tr_list *head = lua_touserdata(L, 1);

        while (!tr_list_is_empty(head))
                tr_held_release(L, tr_list_first(head, struct tr_held, link));
        return 0;
}

void tr_open_held(lua_State *L) {
        struct tr_list *head = lua_newuserdatauv(L, sizeof(*head), 0);

        tr_list_init(head);
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, head_collect);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &head_key);
}
