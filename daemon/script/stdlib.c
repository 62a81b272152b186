/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lua's standard library as actors have it: what is taken out, replaced and bounded, each in a file of its own.
 */

#include "daemon/script/stdlib.h"

void tr_stdlib_open(lua_State *L) {
        tr_base_open(L);
        tr_bounds_open(L);
        tr_outside_open(L);
        tr_globals_open(L);
}
