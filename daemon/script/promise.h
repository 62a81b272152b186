/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_PROMISE_H
#define TR_SCRIPT_PROMISE_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/script/vm.h"

struct tr_task;

enum tr_promise_state {
        TR_PROMISE_PENDING,
        TR_PROMISE_FULFILLED,
        TR_PROMISE_REJECTED,
};

/* User values of a promise. */
enum {
        TR_PROMISE_VALUE = 1,     /* what it settled with */
        TR_PROMISE_CALLBACKS = 2, /* an array of functions that are called with it when it has settled; nil: none */
        TR_PROMISE_MAKER = 3,     /* the Lua function that made it, for the log; nil: none did */
        TR_PROMISE_VALUES = 3,
};

/*
 * A promise: a userdata that settles once. All functions on the VM's own thread, in a protected call unless they say
 * otherwise.
 */
struct tr_promise {
        const void *tag;        /* of promises */
        uint8_t state;          /* enum tr_promise_state */
        bool wanted;            /* somebody waits, or has looked */
        int made_line;          /* in the function that made it; 0: nobody is to be told, -1: unknown */
        uint64_t pending_id;    /* of the pending thing that settles it (outstanding.c); 0: none, or over */
        uint64_t rejected_id;   /* what is to be logged where nobody ever wants it; 0: nothing */
        struct tr_list waiting; /* tasks, by wait_link */
};

/* Opens promises: their metatable, `await`, and what the Lua-written combinators stand on. Once per VM. */
void tr_promise_open(lua_State *L);
/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_promise_functions[];

/* Pushes a new one, with `room_bytes` more behind it for the caller. `is_told`: where nobody awaits its rejection that is
 * logged, with the line of the Lua code that called the present function. */
struct tr_promise *tr_promise_new(lua_State *L, bool is_told, size_t room_bytes);
/* Whether the value at an index is a promise. Does not raise. */
bool tr_promise_is(lua_State *L, int index);
struct tr_promise *tr_promise_to(lua_State *L, int index);
struct tr_promise *tr_promise_check(lua_State *L, int index, const char *function);

/* Settles the one at an index with the value on top, which is popped. Nothing where it has settled. Whatever waits
 * goes on in tr_tasks_run_ready(). */
void tr_promise_settle(lua_State *L, int index, bool rejected);
/* A pending one settles some time: the task is ready then. Does not raise. */
void tr_promise_wait(struct tr_promise *promise, struct tr_task *task);
/* Somebody has looked at it. Does not raise. */
void tr_promise_want(lua_State *L, struct tr_promise *promise);
/* Calls what waits for promises that have settled. Protected inside; outside of the VM's code. Lua's status, the
 * error left on the main state. */
TR_MUST_CHECK int tr_promise_run_callbacks(struct tr_vm *vm);

/* At the VM's end: logs the rejections that nobody awaited. Outside of the VM's code. */
void tr_promise_log_rejected(struct tr_vm *vm);

#endif
