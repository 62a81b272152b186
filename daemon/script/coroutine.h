/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_COROUTINE_H
#define TR_SCRIPT_COROUTINE_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/script/vm.h"

/* Who resumed whom inside one handler: on the C stack of each resume. */
struct tr_chain {
        lua_State *resumer;
        const struct tr_chain *outer;
};

/* Replaces the functions of the coroutine library that run or end coroutines. Once per VM, protected. */
void tr_coroutine_open(lua_State *L);

/* Raises a fault of kind `await` where what runs on L cannot suspend its handler. */
void tr_coroutine_check_await(lua_State *L);

/* Marks one that is suspended because its handler awaits: no Lua code may resume or close it. */
static inline void tr_coroutine_set_awaiting(lua_State *co, bool awaiting) {
        uintptr_t *extra = lua_getextraspace(co);

        *extra = awaiting ? *extra | TR_VM_AWAITING : *extra & ~TR_VM_AWAITING;
}

static inline bool tr_coroutine_is_awaiting(lua_State *co) {
        return *(uintptr_t *)lua_getextraspace(co) & TR_VM_AWAITING;
}

#endif
