/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `transfer`, and the way of a buffer's storage out of a VM, into another one, and back.
 *
 * Nothing leaves a buffer before it is certain that the message can be posted, and whatever may raise comes before the
 * first block is moved.
 *
 * A buffer that was noted once has a place: its number in a table that does not keep it alive. That is all that the sender
 * remembers, so a block that comes back finds its buffer, and one whose buffer is gone is freed.
 */
#include "daemon/script/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/cargo.h"
#include "daemon/script/box.h"
#include "daemon/script/open.h"
#include "daemon/script/storage.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

struct transfer {
        const void *tag;
};

static const char transfer_tag;
/* The registry's key: buffers by their place. */
static const char places_key;

static void make_metatable(lua_State *L) {
        static const luaL_Reg none[] = { { NULL, NULL } };

        tr_box_metatable(L, &transfer_tag, "transfer", none);
}

/* transfer(b) */
static int library_transfer(lua_State *L) {
        if (!tr_to_bytes(L, 1))
                tr_value_misuse(L, "transfer", 1, "a byte buffer");
        tr_box_push(L, &transfer_tag, sizeof(struct transfer), 1);
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, 1);
        tr_box_seal(L, &transfer_tag, make_metatable);
        return 1;
}

bool tr_transfer_push(lua_State *L, int index) {
        if (tr_box_tag(L, index) != &transfer_tag)
                return false;
        lua_getiuservalue(L, index, 1);
        return true;
}

/* leaving */

void tr_transfer_begin(struct tr_vm *vm) {
        struct tr_transfers *transfers = &vm->transfers;

        transfers->encoding++;
        transfers->count = 0;
        transfers->first = NULL;
        transfers->end = &transfers->first;
}

uint32_t tr_transfer_note(lua_State *L, struct tr_bytes *bytes) {
        struct tr_transfers *transfers = &tr_vm_of(L)->transfers;

        if (bytes->noted == transfers->encoding)
                return bytes->block;
        if (!bytes->place) {
                lua_rawgetp(L, LUA_REGISTRYINDEX, &places_key);
                lua_pushvalue(L, -2);
                lua_rawseti(L, -2, (lua_Integer)transfers->places + 1);
                lua_pop(L, 1);
                bytes->place = ++transfers->places;
        }
        bytes->noted = transfers->encoding;
        bytes->block = transfers->count++;
        bytes->next_noted = NULL;
        *transfers->end = bytes;
        transfers->end = &bytes->next_noted;
        return bytes->block;
}

/* The storage, which is nobody's now. */
static struct tr_storage *take_storage(struct tr_vm *vm, struct tr_bytes *bytes) {
        struct tr_storage *storage = bytes->storage;

        bytes->storage = NULL;
        bytes->len = 0;
        tr_storage_leave(vm, storage);
        return storage;
}

bool tr_transfer_pack(struct tr_vm *vm, struct tr_cargo **ret_cargo) {
        struct tr_transfers *transfers = &vm->transfers;
        struct tr_cargo *cargo;

        *ret_cargo = NULL;
        if (transfers->count == 0)
                return true;
        cargo = tr_cargo_new(vm->actor, transfers->count);
        if (!cargo)
                return false;
        for (struct tr_bytes *bytes = transfers->first; bytes; bytes = bytes->next_noted) {
                struct tr_block *block = &cargo->blocks[bytes->block];

                block->len = bytes->len;
                block->place = bytes->place;
                block->memory = take_storage(vm, bytes);
                block->heap_bytes = tr_storage_bytes(block->memory);
                cargo->heap_bytes += block->heap_bytes;
        }
        tr_transfer_begin(vm);
        *ret_cargo = cargo;
        return true;
}

bool tr_transfer_load(struct tr_vm *vm, struct tr_message *message) {
        struct tr_cargo *cargo;

        if (!tr_transfer_pack(vm, &cargo))
                return false;
        if (cargo)
                tr_message_load(message, cargo);
        return true;
}

void tr_transfer_empty(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);

        for (struct tr_bytes *bytes = vm->transfers.first; bytes; bytes = bytes->next_noted)
                free(take_storage(vm, bytes));
        tr_transfer_begin(vm);
}

/* arriving */

void tr_transfer_take(lua_State *L, struct tr_cargo *cargo) {
        size_t heap_bytes = 0;

        for (uint32_t i = 0; i < cargo->count; i++)
                if (cargo->blocks[i].taker)
                        heap_bytes += cargo->blocks[i].heap_bytes;
        luaL_checkstack(L, 1, NULL);
        tr_storage_charge(L, heap_bytes);
        for (uint32_t i = 0; i < cargo->count; i++) {
                struct tr_block *block = &cargo->blocks[i];
                struct tr_bytes *bytes = block->taker;

                if (!bytes)
                        continue;
                bytes->storage = block->memory;
                bytes->len = block->len;
                block->memory = NULL;
                tr_held_add(L, &bytes->storage->held);
        }
}

/* coming back */

/* The program has written to the buffer meanwhile: what comes back stands in front of that. */
static void join(lua_State *L, struct tr_block *block, const struct tr_bytes *bytes) {
        size_t room = block->len + bytes->len;
        struct tr_storage *back = block->memory;

        if (back->room < room) {
                back = realloc(back, sizeof(*back) + room);
                if (!back)
                        tr_script_raise(L, TR_CODE_NO_MEMORY, "no memory to give back a transfer of %zu bytes",
                                        block->len);
                back->room = room;
                block->memory = back;
        }
        memcpy(back->data + block->len, bytes->storage->data, bytes->len);
        tr_held_release(L, &bytes->storage->held);
}

static void put_back(lua_State *L, struct tr_bytes *bytes, struct tr_block *block) {
        if (bytes->storage)
                join(L, block, bytes);
        bytes->storage = block->memory;
        bytes->len += block->len;
        block->memory = NULL;
        tr_alloc_charge_anyway(&tr_vm_of(L)->alloc, tr_storage_bytes(bytes->storage));
        tr_held_add(L, &bytes->storage->held);
}

void tr_transfer_put_back(lua_State *L, struct tr_cargo *cargo) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &places_key);
        for (uint32_t i = 0; i < cargo->count; i++) {
                struct tr_block *block = &cargo->blocks[i];
                struct tr_bytes *bytes;

                lua_rawgeti(L, -1, (lua_Integer)block->place);
                bytes = tr_to_bytes(L, -1);
                if (bytes && block->memory)
                        put_back(L, bytes, block);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
}

void tr_transfer_reclaim(lua_State *L, struct tr_message *message) {
        /* relaxed: it is up to this thread alone, which put it there */
        struct tr_cargo *cargo = atomic_load_explicit(&message->cargo, memory_order_relaxed);

        if (!cargo)
                return;
        tr_transfer_put_back(L, cargo);
        tr_cargo_free(tr_message_take_cargo(message));
}

void tr_open_transfers(lua_State *L) {
        tr_transfer_begin(tr_vm_of(L));
        tr_box_weak_values(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &places_key);
}

const luaL_Reg tr_transfer_functions[] = {
        { "transfer", library_transfer },
        { NULL, NULL },
};
