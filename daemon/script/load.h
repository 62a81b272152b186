/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LOAD_H
#define TR_SCRIPT_LOAD_H

#include "daemon/script/vm.h"

/* Loads the actor's module, or the program's file, into a VM that has just been opened. NULL, or why not, the
 * caller's. */
struct tr_failure *tr_load(struct tr_vm *vm);

/* Opens `main`. Once per VM, protected. */
void tr_load_open(lua_State *L);

#endif
