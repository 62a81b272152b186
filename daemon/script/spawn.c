/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `spawn(A, ..., options?)`.
 *
 * Refused here: what is no actor, options, arguments that cannot be sent, limits, a name that is taken. What the new
 * VM finds out (a module that does not load, a constructor that fails) is the new actor's death.
 */

#include "daemon/script/spawn.h"

#include "daemon/core/session.h"
#include "daemon/script/codec.h"
#include "daemon/script/declare.h"
#include "daemon/script/module.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/spawn_options.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

bool tr_spawn_push_actor_name(lua_State *L, int index) {
        const char *name;
        size_t len, module_len;

        if (tr_declared_is(L, index)) {
                tr_declare_push_name(L, index);
                return true;
        }
        name = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &len) : NULL;
        if (!name || !tr_actor_name_is_valid(name, len, &module_len))
                return false;
        lua_pushvalue(L, index);
        return true;
}

int tr_spawn_name_of(lua_State *L) {
        return tr_spawn_push_actor_name(L, 1);
}

bool tr_spawn_has_options(lua_State *L, int first, int last) {
        int parameters;

        if (last <= first)
                return false;
        if (tr_spawn_options_is_marked(L, last))
                return true;
        return tr_declared_is(L, first) && lua_istable(L, last) && !tr_script_is_failure(L, last) &&
               tr_declare_count_parameters(L, first, &parameters) && last - first == parameters + 1;
}

/* Encodes the arguments from `first` to `last` into the scratch. */
static void encode_arguments(lua_State *L, int first, int last) {
        struct tr_vm *vm = tr_vm_of(L);

        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, first, last - first + 1, TR_FORM_INTERNAL, NULL, &vm->scratch);
        if (tr_writer_error(&vm->scratch) != 0)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
}

/* The constructor's message with what was encoded; NULL where memory is short. `started_id` is of the promise that its
 * answer settles; 0: none. */
static struct tr_message *new_init(struct tr_vm *vm, int count, uint64_t started_id) {
        struct tr_message *init =
                tr_message_new(TR_MESSAGE_INIT, "init", 4, vm->scratch.data, vm->scratch.len, (uint32_t)count);

        tr_vm_trim_scratch(vm);
        if (!init || !tr_transfer_load(vm, init)) {
                tr_message_unref(init);
                return NULL;
        }
        init->internal = true;
        init->caller_uid = vm->actor->target.owner_uid;
        if (started_id)
                tr_outstanding_ask(vm, started_id, init, NULL);
        return init;
}

struct tr_session *tr_spawn_session(struct tr_actor *actor, bool detach) {
        struct tr_session *session = NULL;

        if (!detach)
                session = tr_session_of(&actor->target);
        return session ?: tr_session_ref(actor->target.system->daemon_session);
}

int tr_spawn_push_target(lua_State *L) {
        tr_push_handle(L, lua_touserdata(L, 1));
        return 1;
}

/* Starts it with the encoded arguments. NULL and a reference in *ret_target, or why not. */
static struct tr_failure *start(lua_State *L, const struct tr_spawn_options *options, int count, uint64_t started_id,
                                struct tr_target **ret_target) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_session *session = options->supervised && !options->detach ? tr_session_inside(&vm->actor->target)
                                                                             : tr_spawn_session(vm->actor, options->detach);
        struct tr_message *init = session ? new_init(vm, count, started_id) : NULL;
        struct tr_failure *failure;

        failure = init ? tr_actor_spawn(vm->actor->target.system, session, &options->actor, tr_message_ref(init),
                                        ret_target, NULL)
                       : tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        tr_session_unref(session);
        if (failure && init)
                tr_transfer_reclaim(L, init);
        tr_message_unref(init);
        return failure;
}

int tr_spawn(lua_State *L, int first, const char *function, struct tr_spawn_options *options) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_promise *started;
        struct tr_target *target = NULL;
        struct tr_failure *failure;
        uint64_t started_id = 0;
        int last = lua_gettop(L), results = 1, status;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        tr_module_refuse_at_top_level(L, function);
        if (!tr_spawn_push_actor_name(L, first))
                tr_value_misuse(L, function, first, "an actor");
        options->actor.actor = lua_tostring(L, -1);
        options->actor.owner_uid = vm->actor->target.owner_uid;
        if (tr_spawn_has_options(L, first, last))
                tr_spawn_options_read(L, last--, function, options);
        encode_arguments(L, first + 1, last);
        lua_pushcfunction(L, tr_spawn_push_target);
        if (options->tells_start) {
                started = tr_promise_new(L, false, 0);
                started->pending_id = started_id = tr_outstanding_add(L, TR_OUTSTANDING_ASK);
                lua_insert(L, -2);
                results++;
        }

        failure = start(L, options, last - first, started_id, &target);
        if (failure) {
                tr_outstanding_take(L, started_id);
                tr_script_push_error(L, failure->code, "%s: %s", function, failure->message);
                tr_failure_unref(failure);
                return lua_error(L);
        }
        lua_pushlightuserdata(L, target);
        status = lua_pcall(L, 1, 1, 0);
        tr_target_unref(target);
        return status == LUA_OK ? results : lua_error(L);
}

static int library_spawn(lua_State *L) {
        struct tr_spawn_options options = { 0 };

        return tr_spawn(L, 1, "spawn", &options);
}

const luaL_Reg tr_spawn_functions[] = {
        { "spawn", library_spawn },
        { NULL, NULL },
};
