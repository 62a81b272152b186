/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The combinators of promises (lua/promises.lua), and what they stand on.
 */

#include "daemon/script/combine.h"

#include "daemon/core/invocation.h"
#include "daemon/script/library.h"
#include "daemon/script/lua_parts.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/timers.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

int tr_combine_state(lua_State *L) {
        static const char *const states[] = { "pending", "fulfilled", "rejected" };
        const struct tr_promise *promise = tr_promise_to(L, 1);

        lua_pushstring(L, states[promise->state]);
        lua_getiuservalue(L, 1, TR_PROMISE_VALUE);
        return 2;
}

/* when(promise, function) */
int tr_combine_when(lua_State *L) {
        struct tr_promise *promise = tr_promise_to(L, 1);

        tr_promise_want(L, promise);
        if (promise->state != TR_PROMISE_PENDING) {
                lua_pushvalue(L, 2);
                lua_pushvalue(L, 1);
                lua_call(L, 1, 0);
                return 0;
        }
        if (lua_getiuservalue(L, 1, TR_PROMISE_CALLBACKS) == LUA_TNIL) {
                lua_pop(L, 1);
                lua_createtable(L, 1, 0);
                lua_pushvalue(L, -1);
                lua_setiuservalue(L, 1, TR_PROMISE_CALLBACKS);
        }
        lua_pushvalue(L, 2);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        return 0;
}

static int fulfil(lua_State *L) {
        lua_settop(L, 2);
        tr_promise_settle(L, 1, false);
        return 0;
}

static int reject(lua_State *L) {
        lua_settop(L, 2);
        tr_promise_settle(L, 1, true);
        return 0;
}

/* Whoever settles the message first is the one who answers: here that is nobody, and the promise is settled by the
 * caller. */
static int withdraw(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        const struct tr_promise *promise = tr_promise_to(L, 1);
        struct tr_message *message = tr_outstanding_message(vm, promise->pending_id);
        bool begun;

        if (promise->state != TR_PROMISE_PENDING || !message || message->kind != TR_MESSAGE_HANDLER)
                return 0;
        if (!tr_message_settle(message, &begun)) {
                lua_pushboolean(L, false);
                return 1;
        }
        tr_invocation_given_up(message);
        if (!begun)
                tr_transfer_reclaim(L, message);
        tr_outstanding_take(L, promise->pending_id);
        lua_pushstring(L, tr_ran_text(begun ? TR_RAN_MAYBE : TR_RAN_NO));
        return 1;
}

static int cancel(lua_State *L) {
        struct tr_promise *promise = tr_promise_to(L, 1);

        if (promise->state == TR_PROMISE_PENDING)
                tr_timers_cancel_sleep(L, promise);
        return 0;
}

/* check_ms(value, function) */
static int check_ms(lua_State *L) {
        (void)tr_timers_check_ns(L, 1, luaL_checkstring(L, 2));
        return 0;
}

/* fault(code, message, ran) */
static int fault(lua_State *L) {
        enum tr_code code = TR_CODE_FAULT;
        size_t len;
        const char *text = luaL_checklstring(L, 1, &len);

        tr_code_parse(text, len, &code);
        tr_script_push_error(L, code, "%s", luaL_checkstring(L, 2));
        lua_pushvalue(L, 3);
        lua_setfield(L, -2, "ran");
        return 1;
}

/* check(list, function) */
static int check(lua_State *L) {
        const char *function = luaL_checkstring(L, 2);
        lua_Integer count;

        if (!lua_istable(L, 1))
                tr_value_misuse(L, function, 1, "a list of promises");
        count = (lua_Integer)lua_rawlen(L, 1);
        for (lua_Integer i = 1; i <= count; i++) {
                lua_rawgeti(L, 1, i);
                tr_promise_check(L, -1, function);
                lua_pop(L, 1);
        }
        lua_pushinteger(L, count);
        return 1;
}

/* check_promise(value, function) */
static int check_promise(lua_State *L) {
        tr_promise_check(L, 1, luaL_checkstring(L, 2));
        return 0;
}

/* In the order in which the chunk takes them. */
static int push_foundation(lua_State *L) {
        static const lua_CFunction before[] = {
                tr_combine_state, tr_combine_when, fulfil, reject, withdraw,
        };
        static const lua_CFunction after[] = { cancel, fault, check, check_promise, check_ms };
        int top = lua_gettop(L);

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
                lua_pushcfunction(L, before[i]);
        lua_pushcfunction(L, tr_timers_sleep);
        for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
                lua_pushcfunction(L, after[i]);
        return lua_gettop(L) - top;
}

/* What programs call: makes the promise, whose settling is up to the function in the upvalue. It is made here because a
 * tail call of a function written in Lua leaves no trace of the line that called it, which the log is to name. */
static int combine(lua_State *L) {
        int count = lua_gettop(L);

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        tr_promise_new(L, true, 0);
        lua_insert(L, 1);
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, 1);
        lua_rotate(L, 2, 2);
        lua_call(L, count + 1, 0);
        return 1;
}

void tr_combine_load(lua_State *L) {
        tr_library_push_part(L, &tr_lua_promises, "=troupe");
        lua_call(L, push_foundation(L), 1);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
                lua_pushcclosure(L, combine, 1);
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, -4);
        }
}
