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
#include "daemon/script/spawn_options.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

/* The actor at 1: its full name, on the stack. */
static const char *check_actor(lua_State *L) {
        const char *name;
        size_t len, module_len;

        if (tr_declared_is(L, 1)) {
                tr_declare_push_name(L, 1);
                return lua_tostring(L, -1);
        }
        name = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
        if (!name || !tr_actor_name_is_valid(name, len, &module_len))
                tr_value_misuse(L, "spawn", 1, "an actor");
        return name;
}

/* Whether the last argument, at `last`, is the options: marked as such, or a plain table where the constructor, which
 * can be counted, takes one argument less. */
static bool has_options(lua_State *L, int last) {
        int parameters;

        if (last < 2)
                return false;
        if (tr_spawn_options_is_marked(L, last))
                return true;
        return tr_declared_is(L, 1) && lua_istable(L, last) && !tr_script_is_failure(L, last) &&
               tr_declare_count_parameters(L, 1, &parameters) && last - 1 == parameters + 1;
}

/* The constructor's message with the arguments from 2 to `last`. */
static struct tr_message *new_init(lua_State *L, int last) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_message *init = NULL;

        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, 2, last - 1, TR_FORM_INTERNAL, NULL, &vm->scratch);
        if (tr_writer_error(&vm->scratch) == 0)
                init = tr_message_new(TR_MESSAGE_INIT, "init", 4, vm->scratch.data, vm->scratch.len,
                                      (uint32_t)(last - 1));
        tr_vm_trim_scratch(vm);
        if (!init || !tr_transfer_load(vm, init)) {
                tr_message_unref(init);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        init->internal = true;
        init->caller_uid = vm->actor->target.owner_uid;
        return init;
}

/* The session that what this actor spawns belongs to, a reference. One that has left its own has ended for everybody
 * else: what it still spawns is the daemon's, and ends with that. */
static struct tr_session *choose_session(struct tr_actor *actor, bool detach) {
        struct tr_session *session = detach ? NULL : tr_session_of(&actor->target);

        return session ?: tr_session_ref(actor->target.system->daemon_session);
}

static int push_target(lua_State *L) {
        tr_push_handle(L, lua_touserdata(L, 1));
        return 1;
}

static int library_spawn(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_actor *actor = vm->actor;
        struct tr_spawn_options options = { 0 };
        struct tr_target *target = NULL;
        struct tr_session *session;
        struct tr_failure *failure;
        struct tr_message *init;
        int last = lua_gettop(L), status;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        options.actor.owner_uid = actor->target.owner_uid;
        options.actor.actor = check_actor(L);
        tr_module_refuse_at_top_level(L, "spawn");
        if (has_options(L, last))
                tr_spawn_options_read(L, last--, &options);
        lua_pushcfunction(L, push_target);
        init = new_init(L, last);

        session = choose_session(actor, options.detach);
        failure = tr_actor_spawn(actor->target.system, session, &options.actor, tr_message_ref(init), &target, NULL);
        tr_session_unref(session);
        if (failure)
                tr_transfer_reclaim(L, init);
        tr_message_unref(init);
        if (failure) {
                tr_script_push_error(L, failure->code, "spawn: %s", failure->message);
                tr_failure_unref(failure);
                return lua_error(L);
        }
        lua_pushlightuserdata(L, target);
        status = lua_pcall(L, 1, 1, 0);
        tr_target_unref(target);
        return status == LUA_OK ? 1 : lua_error(L);
}

const luaL_Reg tr_spawn_functions[] = {
        { "spawn", library_spawn },
        { NULL, NULL },
};
