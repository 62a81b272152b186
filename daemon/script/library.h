/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_LIBRARY_H
#define TR_SCRIPT_LIBRARY_H

#include <lua.h>

/* What `require "troupe"` answers. Makes its table and puts everything into it. Once per VM, protected. */
void tr_library_open(lua_State *L);

#endif
