/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_COMPONENT_H
#define TR_SCRIPT_COMPONENT_H

#include <lauxlib.h>

/* `component`, by name; see library.c. */
extern const luaL_Reg tr_component_functions[];

#endif
