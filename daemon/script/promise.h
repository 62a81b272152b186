/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_PROMISE_H
#define TR_SCRIPT_PROMISE_H

#include <lua.h>
#include <stdbool.h>

/* Whether the value at an index is a promise. */
bool tr_promise_is(lua_State *L, int index);

#endif
