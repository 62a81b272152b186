/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_OPERATIONS_H
#define TR_SCRIPT_OPERATIONS_H

#include <lua.h>

#include "daemon/script/vm.h"

/*
 * A component's module, in a VM that is one of its replicas: what it answers, and how messages become calls of that.
 */

/* Loads the replica's module. Raises `not-found` or `load`. Protected. */
void tr_operations_load(lua_State *L);

/* For tr_task_build(): the function that a message of that kind runs, and its arguments. Nothing where the module has none. */
int tr_operations_build_init(lua_State *L);
int tr_operations_build_call(lua_State *L);
int tr_operations_build_dispose(lua_State *L);

/* Runs `ready`: init has ended well, and nothing has been called yet. Outside of the VM's code. */
void tr_operations_ready(struct tr_vm *vm);

#endif
