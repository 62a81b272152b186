/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_ENDS_H
#define TR_SCRIPT_ENDS_H

#include <lua.h>

/* Opens `done`, `stop` and `detach`. Once per VM, protected. */
void tr_ends_open(lua_State *L);

#endif
