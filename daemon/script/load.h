/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LOAD_H
#define TR_SCRIPT_LOAD_H

#include "daemon/script/vm.h"

/* Loads the actor's module, or the program's file, into a VM that has just been opened. NULL, or why not, the
 * caller's. */
struct tr_failure *tr_load(struct tr_vm *vm);

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_load_functions[];

#endif
