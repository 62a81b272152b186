/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SUPERVISE_H
#define TR_SCRIPT_SUPERVISE_H

#include <lua.h>
#include <stdbool.h>

/* Loads `supervise`: pushes a table of it. Protected. */
void tr_supervise_load(lua_State *L);
/* Declares the supervisor if that is the module's name. Raises for want of memory. */
bool tr_supervise_declare(lua_State *L, const char *module);

#endif
