/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_KIND_H
#define TR_SCRIPT_KIND_H

#include <lua.h>

/* What the value at an index is called in a sentence, with its article; static text. Runs no code. May raise for
 * want of memory. */
const char *tr_value_kind(lua_State *L, int index);

#endif
