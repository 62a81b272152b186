/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SPAWN_H
#define TR_SCRIPT_SPAWN_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_spawn_functions[];

struct tr_actor;
struct tr_session;
struct tr_spawn_options;

/* Spawns the actor at `first` with what follows it, to the top of the stack: its arguments, and perhaps its options. What
 * is in `options` stands unless those say otherwise. Pushes the promise of its start where that is wanted, and the handle; answers how many, as a lua_CFunction does; raises for `function`. */
int tr_spawn(lua_State *L, int first, const char *function, struct tr_spawn_options *options);
/* Pushes the full name of the actor at an index; false, nothing pushed, where that is none. */
bool tr_spawn_push_actor_name(lua_State *L, int index);
/* Whether the last argument, at `last`, is the options: marked as such, or a plain table where the constructor of the actor at `first`,
 * which can be counted, takes one argument less. */
bool tr_spawn_has_options(lua_State *L, int first, int last);
/* The session that what an actor spawns belongs to, a reference; NULL: out of memory. One that has left its own has ended for
 * everybody else: what it still spawns is the daemon's, and ends with that. */
struct tr_session *tr_spawn_session(struct tr_actor *actor, bool detach);
/* A lua_CFunction: pushes the handle of the target that its light userdata is. */
int tr_spawn_push_target(lua_State *L);
/* name_of(value): "module:Name" of a declaration, a text that names an actor as it is, or nothing. A lua_CFunction. */
int tr_spawn_name_of(lua_State *L);

#endif
