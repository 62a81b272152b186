/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_DESCRIBE_H
#define TR_SCRIPT_DESCRIBE_H

#include <lua.h>

#include "daemon/core/actor.h"

/* Says what the VM's actor is, for info(): its module and handlers. Protected; once, when it was loaded. */
void tr_describe_publish(lua_State *L, const char *module);
/* info() of the behaviour. Any thread. */
uint32_t tr_describe(struct tr_actor *actor, struct tr_writer *writer);

#endif
