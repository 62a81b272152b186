/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `pool(name, A, ..., options?)`: as spawn, for a pool of workers. Each of them is given a copy of the arguments.
 */

#include "daemon/script/pool.h"

#include <string.h>

#include "daemon/core/pool.h"
#include "daemon/core/session.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/option.h"
#include "daemon/script/spawn.h"
#include "daemon/script/spawn_options.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

struct pool_options {
        struct tr_pool_options pool;
        const char *routing;
        bool detach;
};

static const struct tr_script_option backoff[] = {
        { "min", TR_SCRIPT_OPTION_TIME, offsetof(struct pool_options, pool.backoff_min_ns) },
        { "max", TR_SCRIPT_OPTION_TIME, offsetof(struct pool_options, pool.backoff_max_ns) },
        { "reset", TR_SCRIPT_OPTION_TIME, offsetof(struct pool_options, pool.backoff_reset_ns) },
};

static const struct tr_script_option known[] = {
        { "workers", TR_SCRIPT_OPTION_COUNT, offsetof(struct pool_options, pool.workers) },
        { "routing", TR_SCRIPT_OPTION_LABEL, offsetof(struct pool_options, routing) },
        { "queue", TR_SCRIPT_OPTION_COUNT, offsetof(struct pool_options, pool.queue) },
        { "heap", TR_SCRIPT_OPTION_SIZE, offsetof(struct pool_options, pool.heap_bytes) },
        { "mailbox", TR_SCRIPT_OPTION_COUNT, offsetof(struct pool_options, pool.mailbox) },
        { "mailbox_bytes", TR_SCRIPT_OPTION_SIZE, offsetof(struct pool_options, pool.mailbox_bytes) },
        { "async", TR_SCRIPT_OPTION_COUNT, offsetof(struct pool_options, pool.async) },
        { "backoff", TR_SCRIPT_OPTION_MAP, 0, backoff, sizeof(backoff) / sizeof(backoff[0]) },
        { "detach", TR_SCRIPT_OPTION_BOOL, offsetof(struct pool_options, detach) },
        { "publish", TR_SCRIPT_OPTION_NAME, offsetof(struct pool_options, pool.publish) },
};

static void read_options(lua_State *L, int index, struct pool_options *options) {
        struct tr_pool_options *pool = &options->pool;

        TR_SCRIPT_OPTIONS_READ(L, index, "pool", known, options);
        tr_spawn_options_check_heap(L, "pool", pool->heap_bytes);
        if (pool->workers > TR_POOL_WORKERS_MAX)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "pool: the option `workers` is at most %d", TR_POOL_WORKERS_MAX);
        if (options->routing && !tr_routing_parse(options->routing, strlen(options->routing), &pool->routing))
                tr_script_raise(L, TR_CODE_BAD_REQUEST,
                                "pool: the option `routing` wants round-robin, smallest-mailbox, random or shared");
        if (!tr_pool_backoff_is_valid(pool))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "pool: the option `backoff.max` is less than `backoff.min`");
}

/* Encodes the arguments from `first` to `last` into the scratch, which is what every worker's constructor is given. */
static void encode_arguments(lua_State *L, int first, int last, struct tr_pool_options *pool) {
        struct tr_vm *vm = tr_vm_of(L);

        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, first, last - first + 1, TR_FORM_INTERNAL, NULL, &vm->scratch);
        if (tr_writer_error(&vm->scratch) != 0)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        if (vm->transfers.count > 0)
                tr_script_raise(L, TR_CODE_NOT_SENDABLE, "pool: a buffer cannot be handed over to every worker");
        pool->args = vm->scratch.data;
        pool->args_bytes = vm->scratch.len;
        pool->args_count = (uint32_t)(last - first + 1);
        pool->args_internal = true;
}

/* NULL and a reference in *ret_target, or why not. */
static struct tr_failure *start(lua_State *L, const struct pool_options *options, struct tr_target **ret_target) {
        struct tr_actor *actor = tr_vm_of(L)->actor;
        struct tr_session *session = tr_spawn_session(actor, options->detach);
        struct tr_message *message = tr_message_new(TR_MESSAGE_INIT, "init", 4, NULL, 0, 0);
        struct tr_failure *failure;

        if (!session || !message) {
                tr_session_unref(session);
                tr_message_unref(message);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        }
        failure = tr_pool_start(actor->target.system, session, &options->pool, message, ret_target, NULL);
        tr_session_unref(session);
        return failure;
}

static int library_pool(lua_State *L) {
        struct pool_options options = { 0 };
        struct tr_target *target = NULL;
        struct tr_failure *failure;
        size_t name_len = 0;
        int last = lua_gettop(L), status;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        tr_module_refuse_at_top_level(L, "pool");
        options.pool.name = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &name_len) : NULL;
        if (!options.pool.name || !tr_name_is_valid(options.pool.name, name_len))
                tr_value_misuse(L, "pool", 1, "a name");
        if (!tr_spawn_push_actor_name(L, 2))
                tr_value_misuse(L, "pool", 2, "an actor");
        options.pool.actor = lua_tostring(L, -1);
        options.pool.owner_uid = tr_vm_of(L)->actor->target.owner_uid;
        if (tr_spawn_has_options(L, 2, last))
                read_options(L, last--, &options);
        encode_arguments(L, 3, last, &options.pool);
        lua_pushcfunction(L, tr_spawn_push_target);

        failure = start(L, &options, &target);
        tr_vm_trim_scratch(tr_vm_of(L));
        if (failure) {
                tr_script_push_error(L, failure->code, "pool: %s", failure->message);
                tr_failure_unref(failure);
                return lua_error(L);
        }
        lua_pushlightuserdata(L, target);
        status = lua_pcall(L, 1, 1, 0);
        tr_target_unref(target);
        return status == LUA_OK ? 1 : lua_error(L);
}

const luaL_Reg tr_pool_functions[] = {
        { "pool", library_pool },
        { NULL, NULL },
};
