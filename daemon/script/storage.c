/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ceiling refuses is tried once more after a collection, as Lua does with its own memory. The collector is
 * told of what is charged, since it sees nothing of a buffer but the object: of each charge at the next one, less what
 * has left until then. So a buffer that is handed on costs no collection, whatever its size.
 */
#include "daemon/script/storage.h"

#include <limits.h>
#include <stdlib.h>

#include "daemon/script/vm.h"

/* A step for what it does not know of; the collector counts in kilobytes. */
static void tell_collector(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        uint64_t kilobytes = vm->untold_bytes / 1024;

        vm->untold_bytes %= 1024;
        if (kilobytes > 0)
                lua_gc(L, LUA_GCSTEP, kilobytes < INT_MAX / 1024 ? (int)kilobytes : INT_MAX / 1024);
}

static void discharge(struct tr_vm *vm, size_t bytes) {
        tr_alloc_discharge(&vm->alloc, bytes);
        vm->untold_bytes -= bytes < vm->untold_bytes ? bytes : vm->untold_bytes;
}

void tr_storage_charge(lua_State *L, size_t bytes) {
        struct tr_alloc *alloc = &tr_vm_of(L)->alloc;

        tell_collector(L);
        if (!tr_alloc_charge(alloc, bytes)) {
                lua_gc(L, LUA_GCCOLLECT);
                if (!tr_alloc_charge(alloc, bytes)) {
                        /* in Lua's own words, which is how running into the ceiling reads elsewhere */
                        lua_pushliteral(L, "not enough memory");
                        lua_error(L);
                }
        }
        tr_vm_of(L)->untold_bytes += bytes;
}

static void storage_release(struct tr_vm *vm, struct tr_held *held) {
        struct tr_storage *storage = (struct tr_storage *)held;

        discharge(vm, tr_storage_bytes(storage));
        free(storage);
}

void tr_storage_leave(struct tr_vm *vm, struct tr_storage *storage) {
        tr_list_unlink(&storage->held.link);
        discharge(vm, tr_storage_bytes(storage));
}

struct tr_storage *tr_storage_grow(lua_State *L, struct tr_storage *storage, size_t room) {
        size_t more = storage ? room - storage->room : sizeof(*storage) + room;
        struct tr_storage *grown;

        tr_storage_charge(L, more);
        if (storage)
                tr_list_unlink(&storage->held.link);
        grown = realloc(storage, sizeof(*grown) + room);
        if (!grown) {
                discharge(tr_vm_of(L), more);
                if (storage)
                        tr_held_add(L, &storage->held);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "no memory for a byte buffer of %zu bytes", room);
        }
        grown->held.release = storage_release;
        grown->room = room;
        tr_held_add(L, &grown->held);
        return grown;
}
