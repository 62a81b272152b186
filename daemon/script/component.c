/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `component`: a program declares one, as a client does over the socket. It belongs to the program's session, and its module is looked
 * for where the program's are.
 */

#include "daemon/script/component.h"

#include "daemon/contract/manifest.h"
#include "daemon/core/component.h"
#include "daemon/core/session.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/spawn.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* Declares what the scratch holds. NULL, or why not. */
static struct tr_failure *declare(struct tr_vm *vm) {
        struct tr_target *own = &vm->actor->target;
        struct tr_manifest_problem problem = { 0 };
        struct tr_manifest *manifest = NULL;
        struct tr_session *session;
        struct tr_failure *failure;
        int r;

        r = tr_manifest_parse(vm->scratch.data, vm->scratch.len, &problem, &manifest);
        tr_vm_trim_scratch(vm);
        if (r < 0)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory");
        if (r > 0) {
                failure = tr_failure_new(TR_CODE_BAD_REQUEST, "component: the manifest%s%s %s", *problem.path ? " at " : "",
                                         problem.path, problem.reason);
                tr_manifest_problem_deinit(&problem);
                return failure;
        }
        session = tr_spawn_session(vm->actor, false);
        failure = tr_component_declare(own->system, session, manifest, own->owner_uid, own->owner_pid, NULL);
        tr_session_unref(session);
        tr_manifest_unref(manifest);
        return failure;
}

/* component(manifest) */
static int library_component(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_failure *failure;

        tr_module_refuse_at_top_level(L, "component");
        if (!vm->script->program_file)
                tr_script_raise(L, TR_CODE_BAD_REQUEST,
                                "component: only in a program; the daemon has its components from its configuration, and from clients");
        if (!lua_istable(L, 1))
                tr_value_misuse(L, "component", 1, "a manifest");
        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, 1, 1, TR_FORM_TYPED, "the manifest", &vm->scratch);
        failure = declare(vm);
        if (!failure)
                return 0;
        tr_script_push_error(L, failure->code, "%s", failure->message);
        tr_failure_unref(failure);
        return lua_error(L);
}

const luaL_Reg tr_component_functions[] = {
        { "component", library_component },
        { NULL, NULL },
};
