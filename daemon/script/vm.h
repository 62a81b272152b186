/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_VM_H
#define TR_SCRIPT_VM_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/actor.h"
#include "daemon/script/alloc.h"
#include "daemon/script/script.h"

/*
 * One actor's Lua VM. Everything in it belongs to the actor's thread, but for
 * what interrupt() touches (`running`, `armed`), which a signal handler on that thread reads.
 *
 * Everything that touches the VM runs inside a protected call.
 */
struct tr_vm {
        lua_State *L; /* the main state; handlers run on coroutines of it */
        struct tr_actor *actor;
        const struct tr_script *script;
        struct tr_alloc alloc;
        lua_State *volatile running; /* the coroutine that runs now: where interrupt() arms its hook */
        struct tr_writer scratch;    /* what an encoder writes into: owned here, so that a raised error leaks nothing */
        void *state;                 /* the rest of it: vm.c's own */
};

/* The VM that a state (any coroutine of it) belongs to. */
static inline struct tr_vm *tr_vm_of(lua_State *L) {
        return *(struct tr_vm **)lua_getextraspace(L);
}

/*
 * Errors of the library are tables {code, message, ran, ...} with a metatable whose __tostring is the message
 * (actors.md, Failure). Raises one; never returns.
 */
_Noreturn void tr_script_raise(lua_State *L, enum tr_code code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The same with a field `path`: which part of a value it is about. */
_Noreturn void tr_script_raise_at(lua_State *L, enum tr_code code, const char *path, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* Pushes a failure as such a table, with `ran` as the asker has it. */
void tr_script_push_failure(lua_State *L, struct tr_failure *failure, enum tr_ran ran);
/* Whether the value at an index is an error table of the library: it crosses as the map of its fields. */
bool tr_script_is_failure(lua_State *L, int index);
/* A new failure for the error value at an index: the table's own code and fields where it is one of the library's, else
 * a `fault` with its text, and `value` where it was no string. Never raises. */
struct tr_failure *tr_script_failure_of(lua_State *L, int index);

#endif
