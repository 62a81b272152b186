/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LOG_H
#define TR_SCRIPT_LOG_H

#include "daemon/base/log.h"
#include "daemon/script/vm.h"

/* A line of the VM's actor in the daemon's log, with its name and the beginning of its handle. Never raises. */
void tr_vm_log(struct tr_vm *vm, enum tr_log_level level, const char *line);

/* Opens `log`. Once per VM, protected. */
void tr_log_open(lua_State *L);
/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_log_functions[];

#endif
