/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_FAILURE_H
#define TR_SCRIPT_FAILURE_H

#include <lua.h>

/* The functions of failure.c and fault.c that others call are in vm.h. Opens the error tables. Once per VM,
 * protected. */
void tr_failure_open(lua_State *L);

#endif
