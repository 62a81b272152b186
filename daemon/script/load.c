/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a new VM runs first: the module that declares its actor, or that is its component's, or, for a program, the program's file,
 * whose `main` is what the program does.
 *
 * It runs on a coroutine, like everything of the actor's, so that a kill can end it; but it is no handler, and cannot
 * wait.
 */

#include "daemon/script/load.h"

#include <string.h>

#include "daemon/core/target.h"
#include "daemon/script/declare.h"
#include "daemon/script/describe.h"
#include "daemon/script/kill.h"
#include "daemon/script/module.h"
#include "daemon/script/operations.h"
#include "daemon/script/supervise.h"
#include "daemon/script/task.h"
#include "daemon/script/values.h"

static int load_actor(lua_State *L) {
        const char *actor = tr_target_actor(&tr_vm_of(L)->actor->target);
        const char *colon = strchr(actor, ':');

        lua_pushlstring(L, actor, colon ? (size_t)(colon - actor) : strlen(actor));
        if (!tr_supervise_declare(L, lua_tostring(L, 1)))
                tr_module_require(L, lua_tostring(L, 1), lua_rawlen(L, 1));
        tr_declare_adopt(L, lua_tostring(L, 1), colon ? colon + 1 : NULL);
        tr_vm_push(L, TR_PIN_OWN);
        tr_declare_push_name(L, -1);
        if (tr_target_name_actor(&tr_vm_of(L)->actor->target, lua_tostring(L, -1)) < 0)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        tr_describe_publish(L, lua_tostring(L, 1));
        return 0;
}

static int load_replica(lua_State *L) {
        tr_operations_load(L);
        return 0;
}

static int load_program(lua_State *L) {
        const struct tr_script *script = tr_vm_of(L)->script;

        tr_module_require(L, script->program_module, strlen(script->program_module));
        tr_vm_push(L, TR_PIN_MAIN);
        if (lua_isfunction(L, -1))
                return 0;
        tr_script_push_error(L, TR_CODE_LOAD, "%s has no troupe.main: there is nothing to run", script->program_file);
        lua_pushliteral(L, "no-main");
        lua_setfield(L, -2, "kind");
        return lua_error(L);
}

/* main(fn): what the program does; ignored where the file is not the program. */
static int library_main(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        if (!lua_isfunction(L, 1))
                tr_value_misuse(L, "main", 1, "a function");
        if (!vm->loading)
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "main: stands at the top level of a file");
        if (!vm->actor->program || strcmp(vm->loading->module, vm->script->program_module) != 0)
                return 0;
        tr_vm_push(L, TR_PIN_MAIN);
        if (lua_toboolean(L, -1))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "main: %s says twice what the program does", vm->loading->file);
        lua_pushvalue(L, 1);
        tr_vm_pin(L, TR_PIN_MAIN);
        return 0;
}

const luaL_Reg tr_load_functions[] = {
        { "main", library_main },
        { NULL, NULL },
};

static lua_CFunction loader_of(const struct tr_actor *actor) {
        if (actor->program)
                return load_program;
        return actor->replica ? load_replica : load_actor;
}

struct tr_failure *tr_load(struct tr_vm *vm) {
        struct tr_task *task = tr_task_new(vm, NULL, false);
        struct tr_failure *failure;
        int status, count;

        if (!task)
                return tr_failure_new(TR_CODE_NO_MEMORY, "no room for the actor's runtime: its heap is too small");
        vm->running = task->co;
        lua_pushcfunction(task->co, loader_of(vm->actor));
        status = lua_resume(task->co, vm->L, 0, &count);
        vm->running = vm->L;

        if (status == LUA_OK && !vm->alloc.exceeded) {
                tr_task_free(vm, task);
                return NULL;
        }
        if (tr_actor_is_killed(vm->actor))
                return tr_failure_new(TR_CODE_KILLED, "the actor was killed");
        if (vm->alloc.exceeded)
                return tr_script_fault_of(vm, task->co, NULL, status == LUA_OK || status == LUA_YIELD);
        lua_xmove(task->co, vm->L, 1);
        failure = tr_script_failure_of(vm->L, -1);
        lua_pop(vm->L, 1);
        return failure;
}
