/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `sleep` and `every`: entries of the VM's own heap of timers, which the actor's waiting takes its timeout from.
 *
 * A timer is part of a userdata that the table of what is pending holds on to until it has fired or was ended; so it
 * needs no memory of its own and cannot be collected while it is set. What `every` calls runs as a task, like a
 * handler: it may wait, and while it does, or whenever it takes longer than its period, the ticks that are due are
 * skipped.
 */

#include "daemon/script/timers.h"

#include "daemon/base/clock.h"
#include "daemon/script/kill.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/task.h"
#include "daemon/script/values.h"
#include "proto/quantity.h"

/* Behind the promise that `sleep` answers. */
struct sleeping {
        struct tr_timer timer;
        struct tr_vm *vm;
        uint64_t pending_id;
};

/* What `every` made. Its user value is the function. */
struct tr_recurring {
        struct tr_timer timer;
        struct tr_list link; /* in the VM's list until it has ended */
        struct tr_vm *vm;
        uint64_t pending_id;
        uint64_t period_ns;
        uint64_t due_ns;
        bool running; /* a tick of it is in progress */
};

uint64_t tr_timers_check_ns(lua_State *L, int index, const char *function) {
        lua_Integer integer;
        const char *text;
        uint64_t ms = 0;
        int is_integer;
        size_t len;

        if (lua_type(L, index) == LUA_TSTRING) {
                text = lua_tolstring(L, index, &len);
                if (!tr_duration_parse(text, len, &ms))
                        ms = 0;
        } else {
                integer = lua_tointegerx(L, index, &is_integer);
                if (is_integer && integer > 0)
                        ms = (uint64_t)integer;
        }
        if (ms == 0)
                tr_value_misuse(L, function, index, "a time (milliseconds above 0, or text like \"2s\")");
        return ms > TR_NEVER / TR_NS_PER_MS ? TR_NEVER : ms * TR_NS_PER_MS;
}

/* sleep */

static int wake(lua_State *L) {
        struct sleeping *sleeping = lua_touserdata(L, 1);

        if (!tr_outstanding_take(L, sleeping->pending_id))
                return 0;
        lua_pushnil(L);
        tr_promise_settle(L, -2, false);
        return 0;
}

static void on_sleeping(struct tr_timer *timer) {
        struct sleeping *sleeping = tr_container_of(timer, struct sleeping, timer);
        struct tr_vm *vm = sleeping->vm;

        if (tr_vm_protect(vm, wake, sleeping) != LUA_OK)
                tr_vm_fault(vm);
}

int tr_timers_sleep(lua_State *L) {
        uint64_t after_ns = tr_timers_check_ns(L, 1, "sleep");
        struct tr_promise *promise = tr_promise_new(L, false, sizeof(struct sleeping));
        struct sleeping *sleeping = (struct sleeping *)(promise + 1);

        *sleeping = (struct sleeping){ .timer.fire = on_sleeping, .vm = tr_vm_of(L) };
        sleeping->pending_id = promise->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_SLEEP);
        if (tr_timers_add(&sleeping->vm->timers, &sleeping->timer, tr_clock_deadline_ns(after_ns)) != 0) {
                tr_outstanding_take(L, sleeping->pending_id);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        return 1;
}

void tr_timers_cancel_sleep(lua_State *L, struct tr_promise *promise) {
        struct sleeping *sleeping = (struct sleeping *)(promise + 1);

        tr_timers_remove(&sleeping->vm->timers, &sleeping->timer);
        if (tr_outstanding_take(L, sleeping->pending_id))
                lua_pop(L, 1);
}

/* every */

/* It fires no more. What is pending of it ends with the tick in progress, if there is one. */
static void end_recurring(struct tr_recurring *recurring) {
        tr_timers_remove(&recurring->vm->timers, &recurring->timer);
        tr_list_unlink(&recurring->link);
}

static bool has_ended(const struct tr_recurring *recurring) {
        return tr_list_is_empty(&recurring->link);
}

static int forget_recurring(lua_State *L) {
        const struct tr_recurring *recurring = lua_touserdata(L, 1);

        if (has_ended(recurring) && !recurring->running)
                tr_outstanding_take(L, recurring->pending_id);
        return 0;
}

static int build_tick(lua_State *L) {
        const struct tr_task *task = lua_touserdata(L, 1);

        lua_settop(L, 0);
        tr_outstanding_push(L, task->recurring->pending_id);
        lua_getiuservalue(L, 1, 1);
        lua_remove(L, 1);
        return 1;
}

static void on_recurring(struct tr_timer *timer) {
        struct tr_recurring *recurring = tr_container_of(timer, struct tr_recurring, timer);
        struct tr_vm *vm = recurring->vm;
        uint64_t now_ns = tr_clock_ns();
        struct tr_task *task;
        int count;

        recurring->due_ns += recurring->period_ns;
        if (recurring->due_ns <= now_ns)
                recurring->due_ns += (now_ns - recurring->due_ns) / recurring->period_ns * recurring->period_ns +
                                     recurring->period_ns;
        /* the heap has room: this timer just left it */
        if (tr_timers_add(&vm->timers, &recurring->timer, recurring->due_ns) != 0 || recurring->running)
                return;

        task = tr_task_new(vm, NULL, true);
        if (!task)
                return;
        task->recurring = recurring;
        if (tr_task_build(vm, task, build_tick, &count) != LUA_OK) {
                tr_task_free(vm, task);
                tr_vm_fault(vm);
                return;
        }
        recurring->running = true;
        tr_task_run(vm, task, count);
}

void tr_timers_ticked(struct tr_vm *vm, struct tr_recurring *recurring) {
        recurring->running = false;
        if (tr_vm_protect(vm, forget_recurring, recurring) != LUA_OK)
                tr_vm_fault(vm);
}

static int library_end_recurring(lua_State *L) {
        struct tr_recurring *recurring = lua_touserdata(L, lua_upvalueindex(1));

        if (!has_ended(recurring)) {
                end_recurring(recurring);
                if (!recurring->running)
                        tr_outstanding_take(L, recurring->pending_id);
        }
        return 0;
}

static int library_every(lua_State *L) {
        uint64_t period_ns = tr_timers_check_ns(L, 1, "every");
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_recurring *recurring;

        if (!lua_isfunction(L, 2))
                tr_value_misuse(L, "every", 2, "a function");
        lua_settop(L, 2);
        recurring = lua_newuserdatauv(L, sizeof(*recurring), 1);
        *recurring = (struct tr_recurring){ .timer.fire = on_recurring, .vm = vm, .period_ns = period_ns };
        tr_list_init(&recurring->link);
        lua_pushvalue(L, 2);
        lua_setiuservalue(L, 3, 1);
        if (!vm->draining) {
                recurring->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_EVERY);
                recurring->due_ns = tr_clock_deadline_ns(period_ns);
                if (tr_timers_add(&vm->timers, &recurring->timer, recurring->due_ns) != 0) {
                        tr_outstanding_take(L, recurring->pending_id);
                        tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
                }
                tr_list_append(&vm->recurring, &recurring->link);
        }
        lua_pushvalue(L, 3);
        lua_pushcclosure(L, library_end_recurring, 1);
        return 1;
}

/* all */

void tr_timers_drain(struct tr_vm *vm) {
        struct tr_recurring *recurring;

        vm->draining = true;
        tr_list_for_each(recurring, &vm->recurring, link) {
                end_recurring(recurring);
                if (tr_vm_protect(vm, forget_recurring, recurring) != LUA_OK)
                        tr_vm_fault(vm);
        }
}

uint64_t tr_timers_run(struct tr_vm *vm, uint64_t now_ns) {
        struct tr_timer *timer;

        while (!vm->actor->failure && !tr_vm_is_doomed(vm) && (timer = tr_timers_take_due(&vm->timers, now_ns))) {
                timer->fire(timer);
                tr_tasks_run_ready(vm);
        }
        return tr_timers_next_ns(&vm->timers);
}

const luaL_Reg tr_timers_functions[] = {
        { "every", library_every },
        { "sleep", tr_timers_sleep },
        { NULL, NULL },
};
