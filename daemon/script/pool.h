/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_POOL_H
#define TR_SCRIPT_POOL_H

#include <lauxlib.h>

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_pool_functions[];

#endif
