/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_COMBINE_H
#define TR_SCRIPT_COMBINE_H

#include <lua.h>
#include <stdbool.h>

/* Puts the combinators of promises into the library if `name` is one of them (all, any, race, settled, timeout).
 * Protected. */
bool tr_combine_load(lua_State *L, const char *name);

#endif
