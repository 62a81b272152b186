/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_NAMES_H
#define TR_SCRIPT_NAMES_H

#include <lua.h>

/* Opens `me`, `whoami`, `find`, `publish` and `unpublish`. Once per VM, protected. */
void tr_names_open(lua_State *L);

#endif
