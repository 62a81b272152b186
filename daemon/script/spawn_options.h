/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SPAWN_OPTIONS_H
#define TR_SCRIPT_SPAWN_OPTIONS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

#include "daemon/core/actor.h"

/* What `spawn` takes beside the constructor's arguments. Texts are held by the table they were read from. */
struct tr_spawn_options {
        struct tr_actor_options actor;
        bool detach;
        bool tells_start; /* a promise is wanted that settles when the constructor has returned, or as how it failed */
        bool supervised;  /* what is started is in the session inside of the one who starts it */
};

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_spawn_options_functions[];
/* Whether the value at an index was marked by `options`. Does not raise. */
bool tr_spawn_options_is_marked(lua_State *L, int index);
/* Reads the table at an index. Raises `bad-request` for `function`, naming the option that is unknown or has a bad value. */
void tr_spawn_options_read(lua_State *L, int index, const char *function, struct tr_spawn_options *options);
/* Raises where a heap would be larger than is allowed. */
void tr_spawn_options_check_heap(lua_State *L, const char *function, uint64_t heap_bytes);

#endif
