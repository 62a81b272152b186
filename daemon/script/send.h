/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SEND_H
#define TR_SCRIPT_SEND_H

#include <lua.h>

/* Opens `send` and `ask`. Once per VM, protected. */
void tr_send_open(lua_State *L);

#endif
