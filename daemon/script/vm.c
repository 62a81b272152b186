/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening and closing a VM.
 *
 * A panic must be impossible: from the first moment on the state is only touched inside a protected call. What is
 * done outside of one pushes light values onto the main state, which always has the LUA_MINSTACK slots that Lua gave
 * it, and pops them again.
 *
 * Closing runs finalizers of C libraries (files) and no code of the actor: setting one is refused (meta.c), and what
 * a handler still had to close was on its coroutine, which is simply freed.
 */

#include "daemon/script/vm.h"

#include <lualib.h>
#include <stdlib.h>

#include "daemon/core/replica.h"
#include "daemon/core/system.h"
#include "daemon/script/coroutine.h"
#include "daemon/script/failure.h"
#include "daemon/script/kill.h"
#include "daemon/script/library.h"
#include "daemon/script/module.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/task.h"

/* The scratch is memory that no ceiling counts: only so much stays with an actor that encodes nothing. */
#define SCRATCH_KEPT_BYTES (16u << 10)
/* What a VM with its libraries and a small module takes, roughly. */
#define VM_BYTES (48u << 10)
/* What opening and loading leave is a tenth of that. To look for it among much more is not worth the time. */
#define TRIMMED_MAX_BYTES (4 * VM_BYTES)

void tr_vm_pin(lua_State *L, enum tr_pin pin) {
        struct tr_vm *vm = tr_vm_of(L);

        if (vm->pins[pin] == LUA_NOREF)
                vm->pins[pin] = luaL_ref(L, LUA_REGISTRYINDEX);
        else
                lua_rawseti(L, LUA_REGISTRYINDEX, vm->pins[pin]);
}

/*
 * Lua begins its first cycle with the first allocation, when there is nothing to be found yet: an eighth of what it
 * takes to open a VM. This is a credit: so many bytes are allocated before it begins. tr_vm_trim() sets the pace then.
 */
static void put_off_collecting(lua_State *L) {
        lua_gc(L, LUA_GCSTEP, -(int)(VM_BYTES >> 10));
}

unsigned int tr_vm_allow(const struct tr_vm *vm) {
        const struct tr_replica *replica = vm->actor->replica;

        return replica && replica->manifest->has_allow ? (unsigned int)replica->manifest->allow : vm->script->allow;
}

static int open_libraries(lua_State *L) {
        static const luaL_Reg standard[] = {
                { LUA_GNAME, luaopen_base },       { LUA_COLIBNAME, luaopen_coroutine },
                { LUA_TABLIBNAME, luaopen_table }, { LUA_IOLIBNAME, luaopen_io },
                { LUA_OSLIBNAME, luaopen_os },     { LUA_STRLIBNAME, luaopen_string },
                { LUA_MATHLIBNAME, luaopen_math }, { LUA_UTF8LIBNAME, luaopen_utf8 },
        };
        struct tr_vm *vm = tr_vm_of(L);

        put_off_collecting(L);
        /* every pin has a key of its own from here on; luaL_ref() gives nil none */
        for (int pin = 0; pin < TR_PINS; pin++) {
                lua_pushboolean(L, false);
                vm->pins[pin] = luaL_ref(L, LUA_REGISTRYINDEX);
        }
        lua_pushboolean(L, true);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");

        for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++) {
                luaL_requiref(L, standard[i].name, standard[i].func, true);
                lua_pop(L, 1);
        }
        lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        tr_vm_pin(L, TR_PIN_LOADED);

        tr_failure_open(L);
        tr_coroutine_open(L);
        tr_library_open(L);
        tr_module_open(L);
        tr_stdlib_open(L);
        return 0;
}

/* The ceiling is reached for good, wherever the code is and whatever it catches. */
static void on_exceeded(struct tr_alloc *alloc) {
        tr_vm_interrupt(tr_container_of(alloc, struct tr_vm, alloc));
}

/*
 * Makes room for a VM where glibc's arena of this thread has none left: it grows by as much as is asked for and by no page more, so a
 * VM would cost it a dozen system calls that all threads' page faults wait for. Nothing is touched, so nothing is used by it.
 */
static void make_room(void) {
        void *volatile room = malloc(VM_BYTES);

        free(room);
}

int tr_vm_open(struct tr_actor *actor, struct tr_vm **ret_vm) {
        struct tr_vm *vm;

        vm = calloc(1, sizeof(*vm));
        if (!vm)
                return TR_VM_NO_ROOM;
        vm->actor = actor;
        vm->script = actor->target.system->behaviour_shared;
        tr_list_init(&vm->tasks);
        tr_list_init(&vm->idle);
        tr_list_init(&vm->ready);
        tr_list_init(&vm->recurring);
        for (int pin = 0; pin < TR_PINS; pin++)
                vm->pins[pin] = LUA_NOREF;
        tr_alloc_init(&vm->alloc, actor->heap_max_bytes, &actor->heap_bytes, &actor->target.system->heap_bytes);

        make_room();
        vm->L = lua_newstate(tr_alloc_lua, &vm->alloc);
        if (vm->L) {
                *(struct tr_vm **)lua_getextraspace(vm->L) = vm;
                vm->running = vm->L;
                tr_vm_let_run(vm->L);
                if (tr_vm_protect(vm, open_libraries, NULL) == LUA_OK) {
                        vm->alloc.on_exceeded = on_exceeded;
                        *ret_vm = vm;
                        return 0;
                }
        }
        tr_vm_close(vm);
        return TR_VM_NO_ROOM;
}

void tr_vm_close(struct tr_vm *vm) {
        if (!vm)
                return;
        vm->running = NULL;
        tr_outstanding_free(vm);
        tr_tasks_free(vm);
        vm->alloc.closing = true;
        vm->alloc.on_exceeded = NULL;
        if (vm->L)
                lua_close(vm->L);
        tr_alloc_report(&vm->alloc);
        tr_writer_deinit(&vm->scratch);
        free(vm);
}

static int collect(lua_State *L) {
        lua_gc(L, LUA_GCCOLLECT);
        return 0;
}

void tr_vm_trim(struct tr_vm *vm) {
        if (vm->alloc.used_bytes > TRIMMED_MAX_BYTES)
                return;
        if (tr_vm_protect(vm, collect, NULL) != LUA_OK)
                lua_pop(vm->L, 1);
        tr_alloc_report(&vm->alloc);
}

void tr_vm_trim_scratch(struct tr_vm *vm) {
        if (vm->scratch.cap > SCRATCH_KEPT_BYTES)
                tr_writer_deinit(&vm->scratch);
}

int tr_vm_protect(struct tr_vm *vm, lua_CFunction function, void *argument) {
        lua_State *interrupted = vm->running;
        struct tr_task *current = vm->current;
        int status;

        vm->running = vm->L;
        vm->current = NULL;
        lua_pushcfunction(vm->L, function);
        lua_pushlightuserdata(vm->L, argument);
        status = lua_pcall(vm->L, 1, 0, 0);
        vm->current = current;
        vm->running = interrupted;
        return status;
}
