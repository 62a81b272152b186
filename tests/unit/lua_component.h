/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_TESTS_UNIT_LUA_COMPONENT_H
#define TR_TESTS_UNIT_LUA_COMPONENT_H

#include "tests/unit/lua_fixture.h"

/* Components in a system of Lua. */

/* Gives the system a store, in memory. Before anything is declared in it. */
void lua_component_store(struct lua_fixture *fixture);
/* Declares one in the daemon's session; `json` is its manifest. */
void lua_component_declare(struct lua_fixture *fixture, const char *json);
/* Gives one that has been declared another manifest. */
void lua_component_replace(struct lua_fixture *fixture, const char *name, const char *json);
/* Starts an actor that is a replica of a component that has been declared, with a manifest of its own: it is called by nobody. The
 * caller's reference. */
struct tr_target *lua_component_replica(struct lua_fixture *fixture, const char *component, const char *json);

#endif
