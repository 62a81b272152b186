/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The coroutine library, where ours differs.
 *
 * - Every switch sets `running`, so that a kill finds the coroutine to arm, and looks for a kill on both sides of it.
 * - `await` inside a coroutine of the actor's own suspends the whole handler: the yield is passed outward from resume
 *   to resume (each is a continuation) up to the handler's task, and the way back resumes them one by one without
 *   arguments. So all of them must be able to yield, which is looked at before anything is registered.
 * - Meanwhile such a coroutine is neither suspended nor running for anybody else: another handler that got hold of it
 *   cannot resume or close it.
 * - A yield of the handler's own coroutine has nobody to go to and is refused.
 * - lua_resetthread() of 5.4.4 counts no C calls: closing inside of closing is bounded here.
 */

#include "daemon/script/coroutine.h"

#include <lualib.h>

#include "daemon/script/kill.h"
#include "daemon/script/task.h"

/* Coroutines closed inside each other's __close: 800 overflow the 512 KiB of an actor's stack. */
#define CLOSING_MAX 100

static bool is_handlers_own(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        return vm->current && vm->current->co == L;
}

static lua_State *check_coroutine(lua_State *L) {
        lua_State *co = lua_tothread(L, 1);

        luaL_argexpected(L, co, 1, "thread");
        return co;
}

/* await */

_Noreturn static void refuse_await(lua_State *L, const char *why) {
        tr_script_push_error(L, TR_CODE_FAULT, "await: %s", why);
        lua_pushliteral(L, "await");
        lua_setfield(L, -2, "kind");
        lua_error(L);
        __builtin_unreachable();
}

void tr_coroutine_check_await(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_task *task = vm->current;
        const struct tr_chain *link;
        lua_State *outermost = L;

        for (link = vm->chain; link; link = link->outer)
                outermost = link->resumer;
        if (!task || task->co != outermost)
                refuse_await(L, vm->loading ? "a file's top level cannot wait"
                                            : "there is no handler here that could wait");
        if (!task->may_await) {
                lua_pushfstring(L, "the handler `%s` is declared under `on`; one that waits is declared under `async`",
                                tr_task_handler(vm, task) ?: "?");
                refuse_await(L, lua_tostring(L, -1));
        }
        if (!lua_isyieldable(L))
                refuse_await(L, "cannot wait inside a callback of a C function (sort, gsub and the like)");
        for (link = vm->chain; link; link = link->outer)
                if (!lua_isyieldable(link->resumer))
                        refuse_await(L, "cannot wait in a coroutine that runs inside a callback of a C function (sort, "
                                        "gsub and the like)");
}

/* resume and wrap */

/* Pushes an error message; stands for "failed". */
static int fail(lua_State *L, const char *message) {
        lua_pushstring(L, message);
        return -1;
}

/* What a resume of co came to: the number of values on top of L, or -1 with the error there. Where the VM is doomed,
 * or the handler awaits, it does not return (`k` goes on then). */
static int resumed(lua_State *L, lua_State *co, int status, int count, lua_KFunction k) {
        struct tr_vm *vm = tr_vm_of(L);

        if (tr_vm_is_doomed(vm))
                return tr_vm_give_up(L);
        if (status == LUA_YIELD && vm->suspending) {
                tr_coroutine_set_awaiting(co, true);
                return lua_yieldk(L, 0, 0, k);
        }
        if (status != LUA_OK && status != LUA_YIELD) {
                lua_xmove(co, L, 1);
                return -1;
        }
        if (!lua_checkstack(L, count + 1)) {
                lua_pop(co, count);
                return fail(L, "too many results to resume");
        }
        lua_xmove(co, L, count);
        return count;
}

static int resume(lua_State *L, lua_State *co, int count, lua_KFunction k) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_chain link = { .resumer = L, .outer = vm->chain };
        int status;

        if (tr_vm_is_doomed(vm))
                return tr_vm_give_up(L);
        vm->chain = &link;
        vm->running = co;
        status = lua_resume(co, L, count, &count);
        vm->running = L;
        vm->chain = link.outer;
        return resumed(L, co, status, count, k);
}

/* With the arguments on top of L. */
static int start_or_go_on(lua_State *L, lua_State *co, int count, lua_KFunction k) {
        if (tr_coroutine_is_awaiting(co))
                return fail(L, "cannot resume a coroutine whose handler awaits");
        if (!lua_checkstack(co, count))
                return fail(L, "too many arguments to resume");
        lua_xmove(L, co, count);
        return resume(L, co, count, k);
}

static int go_on_after_await(lua_State *L, lua_State *co, lua_KFunction k) {
        tr_coroutine_set_awaiting(co, false);
        return resume(L, co, 0, k);
}

static int finish_resume(lua_State *L, int count) {
        lua_pushboolean(L, count >= 0);
        if (count < 0)
                count = 1;
        lua_insert(L, -(count + 1));
        return count + 1;
}

static int resume_after_await(lua_State *L, int status, lua_KContext context) {
        return finish_resume(L, go_on_after_await(L, lua_tothread(L, 1), resume_after_await));
}

static int coroutine_resume(lua_State *L) {
        lua_State *co = check_coroutine(L);

        return finish_resume(L, start_or_go_on(L, co, lua_gettop(L) - 1, resume_after_await));
}

/* Closes what a coroutine has open, its error apart; answers as lua_resetthread(). */
static int close_coroutine(lua_State *L, lua_State *co) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_chain link = { .resumer = L, .outer = vm->chain };
        int status;

        if (vm->closing_depth >= CLOSING_MAX)
                return luaL_error(L, "coroutines are closed inside each other more than %d levels deep", CLOSING_MAX);
        vm->closing_depth++;
        vm->chain = &link;
        vm->running = co;
        status = lua_resetthread(co);
        vm->running = L;
        vm->chain = link.outer;
        vm->closing_depth--;
        return status;
}

/* A wrapped coroutine's error goes on in the one that resumed it, with the place put before it where it is a text.
 * Where it was raised is kept, should it become the handler's fault. */
static int finish_wrap(lua_State *L, lua_State *co, int count) {
        int status;

        if (count >= 0)
                return count;
        status = lua_status(co);
        if (status != LUA_OK && status != LUA_YIELD) {
                luaL_traceback(L, co, NULL, 0);
                tr_vm_pin(L, TR_PIN_WRAP_TRACE);
                /* lua_resume() left two of the error on co, and one of them was moved here: the other is what it
                 * closes with */
                status = close_coroutine(L, co);
                if (tr_vm_is_doomed(tr_vm_of(L)))
                        return tr_vm_give_up(L);
                lua_pop(L, 1);
                lua_xmove(co, L, 1);
        }
        if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
                luaL_where(L, 1);
                lua_insert(L, -2);
                lua_concat(L, 2);
        }
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_WRAP_FAILED);
        return lua_error(L);
}

static int wrap_after_await(lua_State *L, int status, lua_KContext context) {
        lua_State *co = lua_tothread(L, lua_upvalueindex(1));

        return finish_wrap(L, co, go_on_after_await(L, co, wrap_after_await));
}

static int call_wrapped(lua_State *L) {
        lua_State *co = lua_tothread(L, lua_upvalueindex(1));

        return finish_wrap(L, co, start_or_go_on(L, co, lua_gettop(L), wrap_after_await));
}

static int coroutine_wrap(lua_State *L) {
        lua_State *co;

        luaL_checktype(L, 1, LUA_TFUNCTION);
        co = lua_newthread(L);
        lua_pushvalue(L, 1);
        lua_xmove(L, co, 1);
        lua_pushcclosure(L, call_wrapped, 1);
        return 1;
}

/* the rest */

static int coroutine_yield(lua_State *L) {
        if (is_handlers_own(L))
                return luaL_error(L, "a bare coroutine.yield in a handler: nobody resumes it (use troupe.await, or a "
                                     "coroutine of your own)");
        return lua_yield(L, lua_gettop(L));
}

static const char *status_of(lua_State *L, lua_State *co) {
        lua_Debug frame;

        if (L == co)
                return "running";
        if (tr_coroutine_is_awaiting(co))
                return "normal";
        switch (lua_status(co)) {
        case LUA_YIELD:
                return "suspended";
        case LUA_OK:
                if (lua_getstack(co, 0, &frame))
                        return "normal";
                return lua_gettop(co) == 0 ? "dead" : "suspended";
        default:
                return "dead";
        }
}

static int coroutine_status(lua_State *L) {
        lua_pushstring(L, status_of(L, check_coroutine(L)));
        return 1;
}

static int coroutine_isyieldable(lua_State *L) {
        lua_State *co = lua_isnone(L, 1) ? L : check_coroutine(L);

        lua_pushboolean(L, lua_isyieldable(co) && !is_handlers_own(co));
        return 1;
}

/* A handler's own is to its code what the main one is to a program. */
static int coroutine_running(lua_State *L) {
        bool is_main = lua_pushthread(L);

        lua_pushboolean(L, is_main || is_handlers_own(L));
        return 2;
}

static int coroutine_close(lua_State *L) {
        lua_State *co = check_coroutine(L);
        const char *status = status_of(L, co);

        if (*status != 'd' && *status != 's')
                return luaL_error(L, "cannot close a %s coroutine", status);
        if (tr_vm_is_doomed(tr_vm_of(L)))
                return tr_vm_give_up(L);
        if (close_coroutine(L, co) == LUA_OK) {
                lua_pushboolean(L, true);
                return 1;
        }
        if (tr_vm_is_doomed(tr_vm_of(L)))
                return tr_vm_give_up(L);
        lua_pushboolean(L, false);
        lua_xmove(co, L, 1);
        return 2;
}

void tr_coroutine_open(lua_State *L) {
        static const luaL_Reg functions[] = {
                { "close", coroutine_close },   { "isyieldable", coroutine_isyieldable },
                { "resume", coroutine_resume }, { "running", coroutine_running },
                { "status", coroutine_status }, { "wrap", coroutine_wrap },
                { "yield", coroutine_yield },   { NULL, NULL },
        };

        lua_getglobal(L, LUA_COLIBNAME);
        luaL_setfuncs(L, functions, 0);
        lua_pop(L, 1);
}
