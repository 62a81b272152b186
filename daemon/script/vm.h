/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_VM_H
#define TR_SCRIPT_VM_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/actor.h"
#include "daemon/core/timer.h"
#include "daemon/script/alloc.h"
#include "daemon/script/script.h"
#include "daemon/script/source.h"
#include "daemon/script/transfer.h"

struct tr_task;
struct tr_chain;
struct tr_loading;
struct tr_outstanding_slot;

/* What a VM keeps hold of, by integer keys of its registry (tr_vm_push, tr_vm_pin). */
enum tr_pin {
        TR_PIN_ERROR,       /* the metatable of error tables */
        TR_PIN_LIBRARY,     /* what `require "troupe"` answers */
        TR_PIN_PROMISE,     /* the metatable of promises */
        TR_PIN_PENDING,     /* slot -> pending promise */
        TR_PIN_SETTLED,     /* promises whose callbacks are due */
        TR_PIN_REJECTED,    /* id -> what is to be logged of a rejected promise that nobody awaited */
        TR_PIN_REJECTED_OF, /* id -> that promise, weak */
        TR_PIN_DECLARED,    /* declaration -> "module:Name", and back */
        TR_PIN_ACTOR,       /* the metatable of declarations */
        TR_PIN_OPTIONS,     /* the metatable of what `options` marks */
        TR_PIN_LOADED,      /* name -> module */
        TR_PIN_LOADLIB,     /* package.loadlib as Lua has it, where it is granted */
        TR_PIN_FORMAT,      /* string.format, as it was at the start */
        TR_PIN_LINE,        /* what `io.write` has written of a line that is not complete */
        TR_PIN_OWN,         /* the declaration that this VM's actor is of, or what a component's module answers */
        TR_PIN_ON,          /* its handlers, */
        TR_PIN_ASYNC,       /* its asynchronous handlers, */
        TR_PIN_SELF,        /* and its state */
        TR_PIN_MAIN,        /* what a program does */
        TR_PIN_OPERATIONS,  /* a replica's operations, */
        TR_PIN_CONTEXT,     /* and the metatable of its contexts */
        TR_PIN_WRAP_FAILED, /* the error that a wrapped coroutine failed with last, */
        TR_PIN_WRAP_TRACE,  /* and where that was */
        TR_PINS,
};

/*
 * One actor's Lua VM. Everything in it belongs to the actor's thread, but for `running` and `reporting`, which a
 * signal handler on that thread uses too.
 *
 * Everything that touches the VM runs inside a protected call. Handlers run on coroutines (task.c), the rest on the
 * main state; code of the actor never runs while `running` is not the state that it runs on.
 */
struct tr_vm {
        lua_State *L; /* the main state */
        struct tr_actor *actor;
        const struct tr_script *script;
        struct tr_alloc alloc;
        lua_State *volatile running; /* what runs now: where kill.c arms its hook */
        volatile bool reporting;     /* it is to say where it is (a signal handler sets it) */
        struct tr_writer scratch;    /* what an encoder writes into: owned here, so that a raised error leaks nothing */
        int pins[TR_PINS];
        struct tr_transfers transfers; /* what is handed over with the values being encoded */
        uint64_t untold_bytes;         /* of byte buffers, charged, that the collector does not know of (storage.c) */

        /* kill.c and coroutine.c */
        struct tr_task *current;      /* whose code runs; NULL: none of a handler's */
        const struct tr_chain *chain; /* the coroutines that resumed each other, innermost first */
        bool suspending;              /* what yields now waits for a promise, and takes its whole handler with it */
        uint32_t closing_depth;       /* coroutines being closed inside each other */

        /* module.c */
        const struct tr_loading *loading; /* the top levels that run, innermost first */
        char source_hash[TR_SOURCE_HASH_SIZE]; /* of the module that was read last while none was loading */

        /* task.c */
        struct tr_list tasks; /* in progress */
        struct tr_list idle;  /* to be used again */
        struct tr_list ready; /* whose promise has settled */
        uint32_t idle_count;

        /* outstanding.c */
        struct tr_outstanding_slot *slots;
        uint32_t slots_room;
        uint32_t slots_free;   /* the first free one, + 1 */
        uint32_t pending;      /* asks, sleeps and what recurs */
        uint32_t pending_done; /* waiting for an actor's end */
        struct tr_timers timers;
        struct tr_list recurring; /* what `every` made and has not ended */
        bool draining;            /* nothing recurs any more */

        /* outside.c */
        bool line_open; /* there is something in TR_PIN_LINE */

        /* promise.c */
        uint32_t settled_count;  /* promises in TR_PIN_SETTLED */
        uint32_t rejected_count; /* entries in TR_PIN_REJECTED */
        uint64_t rejected_id;
        struct tr_timer rejected_timer;
};

/* The lowest bit of a coroutine's extra space: it is suspended because its handler awaits (coroutine.c). */
#define TR_VM_AWAITING ((uintptr_t)1)

/* The VM that a state (any coroutine of it) belongs to. */
static inline struct tr_vm *tr_vm_of(lua_State *L) {
        return (struct tr_vm *)(*(uintptr_t *)lua_getextraspace(L) & ~TR_VM_AWAITING);
}

enum {
        TR_VM_NO_ROOM = 1, /* under the ceiling, or on the machine */
};

/* Opens a VM with its libraries, no code loaded. 0 or TR_VM_NO_ROOM. */
TR_MUST_CHECK int tr_vm_open(struct tr_actor *actor, struct tr_vm **ret_vm);
/* Runs no code of the actor. NULL and half-opened ones are fine. */
void tr_vm_close(struct tr_vm *vm);

/* Collects what opening and loading left, unless that is little beside what the actor has of its own. */
void tr_vm_trim(struct tr_vm *vm);

static inline void tr_vm_push(lua_State *L, enum tr_pin pin) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, tr_vm_of(L)->pins[pin]);
}

/* What its code may reach outside: TR_ALLOW_*. A component's manifest may say so for its module alone. */
unsigned int tr_vm_allow(const struct tr_vm *vm);

/* Pops a value and keeps it. May raise for want of memory. */
void tr_vm_pin(lua_State *L, enum tr_pin pin);

/*
 * Calls a C function on the main state with one light argument, protected, code of no handler running in it. 0, or
 * Lua's status with the error left on the main state's stack, to be popped by the caller. What the function returns
 * is dropped.
 */
TR_MUST_CHECK int tr_vm_protect(struct tr_vm *vm, lua_CFunction function, void *argument);

/* Gives back what a large message left in the scratch. */
void tr_vm_trim_scratch(struct tr_vm *vm);

/* The end is near: what is still to be told may use the reserve beyond the ceiling. */
static inline void tr_vm_use_reserve(struct tr_vm *vm) {
        vm->alloc.closing = true;
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
/* Pushes one instead, for the caller to add to and to raise. */
void tr_script_push_error(lua_State *L, enum tr_code code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Pushes a failure as such a table, with `ran` as the asker has it. */
void tr_script_push_failure(lua_State *L, struct tr_failure *failure, enum tr_ran ran);
/* Whether the value at an index is an error table of the library: between VMs it stays one, a peer gets the map of its
 * fields. */
bool tr_script_is_failure(lua_State *L, int index);
/* Makes the table at the index one. */
void tr_script_set_failure(lua_State *L, int index);
/* A new failure for the error value at an index of the main state: the table's own code and fields where it is one of
 * the library's, else a `fault` with its text, and `value` where it was no string. Never raises. */
struct tr_failure *tr_script_failure_of(lua_State *L, int index);

/*
 * The failure of code that raised what is on top of `failed` (a coroutine that is dead of it, or the main state; it
 * is popped), or that was stopped at the ceiling (nothing is popped). Always a `fault`, with `kind`, `traceback`
 * taken on that coroutine, `actor` and `handler` (may be NULL). Never raises.
 */
struct tr_failure *tr_script_fault_of(struct tr_vm *vm, lua_State *failed, const char *handler, bool stopped);

#endif
