/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of what is pending.
 *
 * A slot per thing, reused last in first out, so that an actor that asks one thing at a time always works on the same
 * one. The number is the slot and a generation that counts its uses: an answer that comes after its promise was
 * settled otherwise (by `timeout`) finds nothing. The values are kept in a Lua array beside the slots, at slot + 1.
 */

#include "daemon/script/outstanding.h"

#include <stdlib.h>

#include "daemon/core/invocation.h"
#include "daemon/script/promise.h"
#include "daemon/script/task.h"

#define ROOM_FIRST 4

static uint64_t id_of(uint32_t generation, uint32_t slot) {
        return (uint64_t)generation << 32 | slot;
}

static struct tr_outstanding_slot *find(struct tr_vm *vm, uint64_t id) {
        uint32_t at = (uint32_t)id;
        struct tr_outstanding_slot *slot;

        if (at >= vm->slots_room)
                return NULL;
        slot = &vm->slots[at];
        return slot->used && slot->generation == id >> 32 ? slot : NULL;
}

static bool grow(struct tr_vm *vm) {
        uint32_t room = vm->slots_room ? vm->slots_room * 2 : ROOM_FIRST;
        struct tr_outstanding_slot *slots;

        slots = realloc(vm->slots, room * sizeof(*slots));
        if (!slots)
                return false;
        for (uint32_t at = room; at-- > vm->slots_room;) {
                slots[at] = (struct tr_outstanding_slot){ .generation = 1, .next_free = vm->slots_free };
                vm->slots_free = at + 1;
        }
        vm->slots = slots;
        vm->slots_room = room;
        return true;
}

uint64_t tr_outstanding_add(lua_State *L, enum tr_outstanding_kind kind) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_outstanding_slot *slot;
        uint32_t at;

        if (!vm->slots_free && !grow(vm))
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        at = vm->slots_free - 1;
        tr_vm_push(L, TR_PIN_PENDING);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, (lua_Integer)at + 1);
        lua_pop(L, 1);

        slot = &vm->slots[at];
        vm->slots_free = slot->next_free;
        slot->used = true;
        slot->kind = kind;
        if (kind == TR_OUTSTANDING_DONE)
                vm->pending_done++;
        else
                vm->pending++;
        return id_of(slot->generation, at);
}

void tr_outstanding_ask(struct tr_vm *vm, uint64_t id, struct tr_message *message, const struct tr_target *target) {
        struct tr_outstanding_slot *slot = &vm->slots[(uint32_t)id]; /* the id is a new one: its slot is in use */

        message->form = TR_FORM_INTERNAL;
        message->asker = &vm->actor->asker;
        message->asker->ops->ref(message->asker);
        message->ask.id = id;
        slot->message = tr_message_ref(message);
        slot->target = target;
}

/* How many handlers wait for the promise of a slot itself. A tick of what recurs holds up no stop. */
static uint32_t count_waiting(struct tr_vm *vm, uint32_t at) {
        const struct tr_promise *promise;
        const struct tr_task *task;
        uint32_t count = 0;

        /* as it is: nothing is allocated and nothing can be raised */
        tr_vm_push(vm->L, TR_PIN_PENDING);
        lua_rawgeti(vm->L, -1, (lua_Integer)at + 1);
        promise = tr_promise_to(vm->L, -1);
        if (promise)
                tr_list_for_each(task, &promise->waiting, wait_link)
                        count += task->message ? 1 : 0;
        lua_pop(vm->L, 2);
        return count;
}

/* Whether each handler that waits does so for the promise of a slot, and not for one that a combinator made of who knows which. */
static bool all_wait_directly(struct tr_vm *vm) {
        const struct tr_task *task;
        uint32_t waiting = 0, directly = 0;

        tr_list_for_each(task, &vm->tasks, link)
                waiting += task->message ? 1 : 0;
        for (uint32_t at = 0; at < vm->slots_room; at++)
                directly += vm->slots[at].used ? count_waiting(vm, at) : 0;
        return directly == waiting;
}

bool tr_outstanding_awaits(struct tr_vm *vm, struct tr_awaited *awaited) {
        bool directly = all_wait_directly(vm);

        for (uint32_t at = 0; at < vm->slots_room; at++) {
                const struct tr_outstanding_slot *slot = &vm->slots[at];
                const struct tr_target *target;

                /* what recurs has ended with the stop */
                if (!slot->used || slot->kind == TR_OUTSTANDING_EVERY || (directly && count_waiting(vm, at) == 0))
                        continue;
                if (!slot->message || tr_message_state(slot->message) == TR_MESSAGE_SETTLED)
                        return true;
                target = slot->target ?: slot->message->spawned;
                /* who answers a call of a component may only be starting, and the store always answers */
                if (slot->message->invocation || !target)
                        return true;
                tr_awaited_add(awaited, target);
        }
        return false;
}

struct tr_message *tr_outstanding_message(struct tr_vm *vm, uint64_t id) {
        const struct tr_outstanding_slot *slot = find(vm, id);

        return slot ? slot->message : NULL;
}

bool tr_outstanding_push(lua_State *L, uint64_t id) {
        if (!find(tr_vm_of(L), id))
                return false;
        luaL_checkstack(L, 4, NULL);
        tr_vm_push(L, TR_PIN_PENDING);
        lua_rawgeti(L, -1, (lua_Integer)(uint32_t)id + 1);
        lua_remove(L, -2);
        return true;
}

bool tr_outstanding_take(lua_State *L, uint64_t id) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_outstanding_slot *slot = find(vm, id);
        uint32_t at = (uint32_t)id;

        if (!tr_outstanding_push(L, id))
                return false;
        tr_vm_push(L, TR_PIN_PENDING);
        /* false and not nil: the key stays, so that the next use of the slot allocates nothing */
        lua_pushboolean(L, false);
        lua_rawseti(L, -2, (lua_Integer)at + 1);
        lua_pop(L, 1);

        if (slot->kind == TR_OUTSTANDING_DONE)
                vm->pending_done--;
        else
                vm->pending--;
        tr_message_unref(slot->message);
        slot->message = NULL;
        slot->used = false;
        /* 0 is no number: a slot that wraps around skips it */
        slot->generation += slot->generation == UINT32_MAX ? 2 : 1;
        slot->next_free = vm->slots_free;
        vm->slots_free = at + 1;
        return true;
}

void tr_outstanding_open(lua_State *L) {
        lua_newtable(L);
        tr_vm_pin(L, TR_PIN_PENDING);
}

/* A call that nobody waits for any more is not to be begun. */
static void give_up(struct tr_message *message) {
        bool begun;

        if (message && message->invocation && tr_message_settle(message, &begun))
                tr_invocation_given_up(message);
}

void tr_outstanding_free(struct tr_vm *vm) {
        for (uint32_t at = 0; at < vm->slots_room; at++) {
                give_up(vm->slots[at].message);
                tr_message_unref(vm->slots[at].message);
        }
        free(vm->slots);
        tr_timers_deinit(&vm->timers);
}
