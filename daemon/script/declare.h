/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_DECLARE_H
#define TR_SCRIPT_DECLARE_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Declarations of actors: what `troupe.actor` answers, known by `module:Name`. All protected.
 */

/* Opens `actor`. Once per VM. */
void tr_declare_open(lua_State *L);
/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_declare_functions[];

/* Whether the value at an index is an actor's declaration. Does not raise. */
bool tr_declared_is(lua_State *L, int index);
/* Pushes its full name; nil where it is none, or was forgotten. */
void tr_declare_push_name(lua_State *L, int index);
/* How many arguments its constructor takes; false where it takes any number. */
bool tr_declare_count_parameters(lua_State *L, int index, int *ret_count);

/* The top level of a module has run: raises where what it declared does not hold together. */
void tr_declare_check(lua_State *L, const char *module);
/* Whether the module has declared one, and was not forgotten. */
bool tr_declare_knows(lua_State *L, const char *module);
/* The top level of a module has failed: what it declared is forgotten, and is no declaration any more. */
void tr_declare_forget(lua_State *L, const char *module);

/* Makes `name`, or the only one of its module where name is NULL, the declaration that this VM's actor is of.
 * Raises `not-found`. */
void tr_declare_adopt(lua_State *L, const char *module, const char *name);
/* Makes the actor's state, and pushes its constructor and what comes before the arguments. */
void tr_declare_push_constructor(lua_State *L, uint32_t arguments);

#endif
