/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long others live: `done`, `stop`, `detach`.
 */

#include "daemon/script/ends.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/session.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/timers.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

static int library_done(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_message *message;
        struct tr_promise *promise;
        struct tr_target *target;

        tr_check_handle(L, 1, "done", &target);
        promise = tr_promise_new(L, true, 0);
        if (!target) {
                tr_script_push_error(L, TR_CODE_NOT_RUNNING, "the actor is not running");
                tr_promise_settle(L, -2, true);
                return 1;
        }
        promise->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_DONE);
        message = tr_message_new(TR_MESSAGE_DONE, "", 0, NULL, 0, 0);
        if (!message) {
                tr_outstanding_take(L, promise->pending_id);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        tr_outstanding_ask(vm, promise->pending_id, message, target);
        tr_target_watch(target, message);
        return 1;
}

/* The time in the options of `stop`, TR_NEVER where there is none. */
static uint64_t check_within_ns(lua_State *L, int index) {
        uint64_t within_ns = TR_NEVER;

        if (lua_isnoneornil(L, index))
                return within_ns;
        if (!lua_istable(L, index))
                tr_value_misuse(L, "stop", index, "a table of options");
        lua_pushnil(L);
        while (lua_next(L, index)) {
                if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), "within") != 0)
                        tr_script_raise(L, TR_CODE_BAD_REQUEST, "stop: there is no option `%s`",
                                        luaL_tolstring(L, -2, NULL));
                within_ns = tr_timers_check_ns(L, lua_gettop(L), "stop");
                lua_pop(L, 1);
        }
        return within_ns;
}

static int library_stop(lua_State *L) {
        struct tr_target *target;
        uint64_t within_ns;

        tr_check_handle(L, 1, "stop", &target);
        within_ns = check_within_ns(L, 2);
        if (!target)
                return 0;
        if (target->ops->kind == TR_TARGET_CONNECTION)
                tr_script_raise(L, TR_CODE_DENIED, "stop: a connection is not stopped by others");
        target->ops->stop(target, TR_STOP_ASKED, within_ns);
        return 0;
}

static int library_detach(lua_State *L) {
        struct tr_target *target;

        tr_check_handle(L, 1, "detach", &target);
        if (target && target->ops->kind == TR_TARGET_CONNECTION)
                tr_script_raise(L, TR_CODE_DENIED, "detach: a connection belongs to no session");
        if (target)
                tr_session_detach(target);
        return 0;
}

const luaL_Reg tr_ends_functions[] = {
        { "detach", library_detach },
        { "done", library_done },
        { "stop", library_stop },
        { NULL, NULL },
};
