/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_KILL_H
#define TR_SCRIPT_KILL_H

#include <lua.h>
#include <stdbool.h>

#include "daemon/script/vm.h"

/*
 * How running code is made to give up: on a kill, and at the heap ceiling.
 */

/* Whether what runs in the VM is to go no further. */
static inline bool tr_vm_is_doomed(const struct tr_vm *vm) {
        return tr_actor_is_killed(vm->actor) || (vm->alloc.exceeded && vm->alloc.margin_bytes == 0);
}

/* What runs on L is not interrupted, nor are coroutines that it makes. */
void tr_vm_let_run(lua_State *L);

/* Makes what runs now give up at its next instruction. Async-signal-safe on the VM's thread. */
void tr_vm_interrupt(struct tr_vm *vm);

/* Makes what runs now log where it is, at its next instruction. Async-signal-safe on the VM's thread. */
void tr_vm_report(struct tr_vm *vm);

/* For a C function that Lua code called, in a VM that is doomed: gives up on L, which runs now. The caller returns
 * what it answers; where L cannot yield it does not return. */
int tr_vm_give_up(lua_State *L);

#endif
