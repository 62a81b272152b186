/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Interrupting code that runs: a count hook of one instruction, armed on the coroutine that runs. It gives up, where
 * the VM is doomed, or says where it is and goes on.
 *
 * Where the coroutine can yield, the hook yields: no pcall catches that, and a VM that was left so is never resumed.
 * Where it cannot (inside sort, gsub, a module's top level), the hook raises and stays armed: whatever catches the
 * error raises again at its next instruction, until the code is unwound to where it can yield or to its end. There is
 * no hook at any other time, since one halves the speed of tight loops.
 *
 * The signal of a kill comes on the actor's own thread, at any point of it. lua_sethook() is made for that (lua.c
 * does the same); it may come between two coroutines and arm the one that does not run, which is why core repeats the
 * signal and why coroutine.c looks for itself at every switch. The allocator arms the same hook where the ceiling is
 * reached.
 */

#include "config.h"

#include "daemon/script/kill.h"

#ifdef TR_SANITIZED_THREAD
#include <poll.h>
#endif

#include "daemon/script/log.h"

#ifdef TR_SANITIZED_THREAD
/* ThreadSanitizer keeps a signal back until its thread makes a call that it intercepts, and Lua code that loops makes none: in such
 * builds a hook makes one, every so many instructions. */
#define INSTRUCTIONS_PER_CALL 10000

static void make_a_call(lua_State *L, lua_Debug *ar) {
        (void)poll(NULL, 0, 0);
}
#endif

void tr_vm_let_run(lua_State *L) {
#ifdef TR_SANITIZED_THREAD
        lua_sethook(L, make_a_call, LUA_MASKCOUNT, INSTRUCTIONS_PER_CALL);
#else
        lua_sethook(L, NULL, 0, 0);
#endif
}

static int log_traceback(lua_State *L) {
        luaL_traceback(L, L, NULL, 1);
        lua_pushfstring(L, "it is running for long\n%s", lua_tostring(L, -1));
        tr_vm_log(tr_vm_of(L), TR_LOG_WARNING, lua_tostring(L, -1));
        tr_actor_tell_slow(tr_vm_of(L)->actor, lua_tostring(L, -2));
        return 0;
}

/* In the middle of code that is to go on: nothing of it may be felt there, not even at the ceiling. */
static void report(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        vm->reporting = false;
        vm->alloc.closing = true;
        lua_pushcfunction(L, log_traceback);
        if (lua_pcall(L, 0, 0, 0) != LUA_OK)
                lua_pop(L, 1);
        vm->alloc.closing = false;
}

static void hook(lua_State *L, lua_Debug *ar) {
        struct tr_vm *vm = tr_vm_of(L);

        if (!tr_vm_is_doomed(vm)) {
                tr_vm_let_run(L);
                if (vm->reporting)
                        report(L);
                return;
        }
        if (lua_isyieldable(L)) {
                lua_yield(L, 0);
                return;
        }
        /* nil: nothing is allocated for it, and nobody gets to look at it */
        lua_pushnil(L);
        lua_error(L);
}

void tr_vm_interrupt(struct tr_vm *vm) {
        lua_State *L = vm->running;

        if (L)
                lua_sethook(L, hook, LUA_MASKCOUNT, 1);
}

void tr_vm_report(struct tr_vm *vm) {
        vm->reporting = true;
        tr_vm_interrupt(vm);
}

int tr_vm_give_up(lua_State *L) {
        if (lua_isyieldable(L))
                return lua_yield(L, 0);
        tr_vm_interrupt(tr_vm_of(L));
        lua_pushnil(L);
        return lua_error(L);
}
