/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SENDABLE_H
#define TR_SCRIPT_SENDABLE_H

#include <lua.h>

/*
 * Puts a copy in place of the value at the top of the stack in which everything that cannot be sent is replaced, and
 * pushes a note that says which fields were (nil: none, a metatable was in the way). Raises for want of memory only.
 */
void tr_sendable_replace(lua_State *L);

#endif
