/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Promises, and `await`.
 *
 * A promise is pending, then fulfilled or rejected, for good. Tasks that await one are in a list of it, through a
 * link of their own: waiting allocates nothing, so nothing can fail half-way. What settles a promise never runs
 * whatever waits: tasks become ready and callbacks (of the Lua-written combinators) are queued, and both are gone
 * through when control is back outside of the VM's code, one after another however promises are nested in each other.
 *
 * A rejection that nobody wanted is to be logged, but it may still be awaited as long as somebody holds the promise.
 * So its text is kept beside a weak reference; a moment after the last such rejection one collection shows which
 * promises are gone. What is still held at the end of the VM is logged then.
 */

#include "daemon/script/promise.h"

#include "daemon/base/clock.h"
#include "daemon/script/coroutine.h"
#include "daemon/script/log.h"
#include "daemon/script/task.h"
#include "daemon/script/values.h"

/* After a rejection that nobody wanted: how long until it is looked who still holds it. */
#define REJECTED_AFTER_NS (250 * TR_NS_PER_MS)

static const char promise_tag;

/* what promises are */

struct tr_promise *tr_promise_to(lua_State *L, int index) {
        struct tr_promise *promise;

        if (lua_type(L, index) != LUA_TUSERDATA || lua_rawlen(L, index) < sizeof(*promise))
                return NULL;
        promise = lua_touserdata(L, index);
        return promise->tag == &promise_tag ? promise : NULL;
}

bool tr_promise_is(lua_State *L, int index) {
        return tr_promise_to(L, index);
}

struct tr_promise *tr_promise_check(lua_State *L, int index, const char *function) {
        struct tr_promise *promise = tr_promise_to(L, index);

        if (!promise)
                tr_value_misuse(L, function, index, "a promise");
        return promise;
}

/* Keeps which Lua code called the present function: other functions written in C, such as pcall, may be in between. */
static void keep_maker(lua_State *L, struct tr_promise *promise) {
        lua_Debug maker;

        promise->made_line = -1;
        for (int level = 1; lua_getstack(L, level, &maker); level++) {
                lua_getinfo(L, "lf", &maker);
                if (maker.currentline < 0) {
                        lua_pop(L, 1);
                        continue;
                }
                lua_setiuservalue(L, -2, TR_PROMISE_MAKER);
                promise->made_line = maker.currentline;
                return;
        }
}

struct tr_promise *tr_promise_new(lua_State *L, bool is_told, size_t room_bytes) {
        struct tr_promise *promise;

        luaL_checkstack(L, 4, NULL);
        promise = lua_newuserdatauv(L, sizeof(*promise) + room_bytes, TR_PROMISE_VALUES);
        *promise = (struct tr_promise){ .tag = &promise_tag };
        tr_list_init(&promise->waiting);
        tr_vm_push(L, TR_PIN_PROMISE);
        lua_setmetatable(L, -2);
        if (is_told)
                keep_maker(L, promise);
        return promise;
}

/* rejections that nobody wanted */

static void forget_rejected(lua_State *L, uint64_t id) {
        tr_vm_push(L, TR_PIN_REJECTED);
        lua_pushnil(L);
        lua_rawseti(L, -2, (lua_Integer)id);
        tr_vm_push(L, TR_PIN_REJECTED_OF);
        lua_pushnil(L);
        lua_rawseti(L, -2, (lua_Integer)id);
        lua_pop(L, 2);
        tr_vm_of(L)->rejected_count--;
}

void tr_promise_want(lua_State *L, struct tr_promise *promise) {
        promise->wanted = true;
        if (promise->rejected_id) {
                forget_rejected(L, promise->rejected_id);
                promise->rejected_id = 0;
        }
}

/* Logs those whose promise is gone, or all. */
static int log_rejected(lua_State *L) {
        bool all = lua_touserdata(L, 1);
        struct tr_vm *vm = tr_vm_of(L);

        lua_settop(L, 0);
        if (!all)
                lua_gc(L, LUA_GCCOLLECT);
        tr_vm_push(L, TR_PIN_REJECTED);
        tr_vm_push(L, TR_PIN_REJECTED_OF);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
                if (all || lua_rawgeti(L, 2, lua_tointeger(L, 3)) == LUA_TNIL) {
                        tr_vm_log(vm, TR_LOG_WARNING, lua_tostring(L, 4));
                        lua_pushnil(L);
                        lua_rawseti(L, 1, lua_tointeger(L, 3));
                        vm->rejected_count--;
                }
                lua_settop(L, 3);
        }
        return 0;
}

void tr_promise_log_rejected(struct tr_vm *vm) {
        if (vm->rejected_count > 0 && tr_vm_protect(vm, log_rejected, vm) != LUA_OK)
                lua_pop(vm->L, 1);
}

static void on_rejected_timer(struct tr_timer *timer) {
        struct tr_vm *vm = tr_container_of(timer, struct tr_vm, rejected_timer);

        if (vm->rejected_count > 0 && tr_vm_protect(vm, log_rejected, NULL) != LUA_OK)
                lua_pop(vm->L, 1);
}

static void open_rejected(lua_State *L) {
        lua_newtable(L);
        tr_vm_pin(L, TR_PIN_REJECTED);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "v");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        tr_vm_pin(L, TR_PIN_REJECTED_OF);
}

/* Pushes where it was made, in words. */
static void push_where_made(lua_State *L, int index, const struct tr_promise *promise) {
        lua_Debug maker;

        if (lua_getiuservalue(L, index, TR_PROMISE_MAKER) != LUA_TFUNCTION) {
                lua_pop(L, 1);
                lua_pushliteral(L, "by a coroutine that runs no Lua code");
                return;
        }
        lua_getinfo(L, ">S", &maker);
        lua_pushfstring(L, "at %s:%d", maker.short_src, promise->made_line);
}

static void remember_rejected(lua_State *L, int index, struct tr_promise *promise) {
        struct tr_vm *vm = tr_vm_of(L);
        uint64_t id;

        luaL_checkstack(L, 6, NULL);
        if (vm->rejected_id == 0)
                open_rejected(L);
        id = ++vm->rejected_id;
        if (lua_getiuservalue(L, index, TR_PROMISE_VALUE) == LUA_TTABLE)
                lua_getfield(L, -1, "message");
        else
                lua_pushnil(L);
        push_where_made(L, index, promise);
        lua_pushfstring(L, "a promise was rejected and nobody awaited it: %s (it was made %s)",
                        lua_tostring(L, -2) ?: "?", lua_tostring(L, -1));
        lua_replace(L, -2);
        tr_vm_push(L, TR_PIN_REJECTED);
        lua_insert(L, -2);
        lua_rawseti(L, -2, (lua_Integer)id);
        tr_vm_push(L, TR_PIN_REJECTED_OF);
        lua_pushvalue(L, index);
        lua_rawseti(L, -2, (lua_Integer)id);
        lua_pop(L, 4);

        promise->rejected_id = id;
        vm->rejected_count++;
        /* where there is no memory for the timer the log comes at the end */
        if (!tr_timer_is_set(&vm->rejected_timer) &&
            tr_timers_add(&vm->timers, &vm->rejected_timer, tr_clock_deadline_ns(REJECTED_AFTER_NS)) != 0)
                return;
}

/* settling */

/* Pushes the queue of what has callbacks that are due, which the first use makes. */
static void push_settled(lua_State *L) {
        tr_vm_push(L, TR_PIN_SETTLED);
        if (lua_istable(L, -1))
                return;
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_SETTLED);
}

void tr_promise_settle(lua_State *L, int index, bool rejected) {
        struct tr_promise *promise = tr_promise_to(L, index);
        struct tr_vm *vm = tr_vm_of(L);

        index = lua_absindex(L, index);
        if (promise->state != TR_PROMISE_PENDING) {
                lua_pop(L, 1);
                return;
        }
        if (lua_getiuservalue(L, index, TR_PROMISE_CALLBACKS) != LUA_TNIL) {
                push_settled(L);
                lua_pushvalue(L, index);
                lua_rawseti(L, -2, (lua_Integer)vm->settled_count + 1);
                vm->settled_count++;
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
        lua_setiuservalue(L, index, TR_PROMISE_VALUE);
        promise->state = rejected ? TR_PROMISE_REJECTED : TR_PROMISE_FULFILLED;
        tr_list_splice(&vm->ready, &promise->waiting);
        if (rejected && !promise->wanted && promise->made_line != 0)
                remember_rejected(L, index, promise);
}

void tr_promise_wait(struct tr_promise *promise, struct tr_task *task) {
        promise->wanted = true;
        tr_list_append(&promise->waiting, &task->wait_link);
}

/* Goes through the queue, which grows meanwhile. */
static int run_callbacks(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        lua_settop(L, 0);
        tr_vm_push(L, TR_PIN_SETTLED);
        for (lua_Integer at = 1; at <= vm->settled_count; at++) {
                lua_rawgeti(L, 1, at);
                lua_pushnil(L);
                lua_rawseti(L, 1, at);
                lua_getiuservalue(L, 2, TR_PROMISE_CALLBACKS);
                lua_pushnil(L);
                lua_setiuservalue(L, 2, TR_PROMISE_CALLBACKS);
                for (lua_Integer i = 1; lua_rawgeti(L, 3, i) != LUA_TNIL; i++) {
                        lua_pushvalue(L, 2);
                        lua_call(L, 1, 0);
                }
                lua_settop(L, 1);
        }
        vm->settled_count = 0;
        return 0;
}

int tr_promise_run_callbacks(struct tr_vm *vm) {
        return vm->settled_count > 0 ? tr_vm_protect(vm, run_callbacks, NULL) : LUA_OK;
}

/* await */

/* Answers what the promise at 1 has settled with, or raises it. */
static int deliver(lua_State *L) {
        struct tr_promise *promise = tr_promise_to(L, 1);

        lua_getiuservalue(L, 1, TR_PROMISE_VALUE);
        return promise->state == TR_PROMISE_REJECTED ? lua_error(L) : 1;
}

static int deliver_after_wait(lua_State *L, int status, lua_KContext context) {
        return deliver(L);
}

static int await(lua_State *L) {
        struct tr_promise *promise = tr_promise_check(L, 1, "await");
        struct tr_vm *vm = tr_vm_of(L);

        lua_settop(L, 1);
        /* also where there is nothing to wait for: whether that is so is a matter of time */
        tr_coroutine_check_await(L);
        if (promise->state != TR_PROMISE_PENDING) {
                tr_promise_want(L, promise);
                return deliver(L);
        }
        tr_promise_wait(promise, vm->current);
        vm->suspending = true;
        return lua_yieldk(L, 0, 0, deliver_after_wait);
}

static int promise_tostring(lua_State *L) {
        static const char *const states[] = { "pending", "fulfilled", "rejected" };

        lua_pushfstring(L, "promise (%s)", states[tr_promise_check(L, 1, "tostring")->state]);
        return 1;
}

const luaL_Reg tr_promise_functions[] = {
        { "await", await },
        { NULL, NULL },
};

void tr_promise_open(lua_State *L) {
        lua_createtable(L, 0, 3);
        lua_pushliteral(L, "promise");
        lua_setfield(L, -2, "__name");
        lua_pushcfunction(L, promise_tostring);
        lua_setfield(L, -2, "__tostring");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        tr_vm_pin(L, TR_PIN_PROMISE);

        tr_vm_of(L)->rejected_timer.fire = on_rejected_timer;
}
