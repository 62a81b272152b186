/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table without chains: since the daemon chooses the ids, it takes the next one whose slot is free. Half of the
 * slots always are, and two ids that have slots of their own keep them when the table grows.
 */
#include "config.h"

#include "daemon/io/calls.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_FIRST 8

static struct tr_call *calls_slot(const struct tr_calls *calls, uint32_t id) {
        return &calls->slots[id & (calls->room - 1)];
}

static int calls_grow(struct tr_calls *calls) {
        uint32_t room = calls->room ? 2 * calls->room : ROOM_FIRST;
        struct tr_call *before = calls->slots, *slots = calloc(room, sizeof(*slots));
        if (!slots)
                return tr_error_origin(-ENOMEM);
        for (uint32_t i = 0; i < calls->room; i++)
                if (before[i].message)
                        slots[before[i].id & (room - 1)] = before[i];
        free(before);
        calls->slots = slots;
        calls->room = room;
        return 0;
}

int tr_calls_add(struct tr_calls *calls, struct tr_message *take_message, struct tr_callee *callee, bool waiting, uint32_t *ret_id) {
        if (2 * calls->count >= calls->room) {
                int r = calls_grow(calls);
                if (r)
                        return tr_error_fold(r);
        }
        while (calls_slot(calls, calls->next_id)->message)
                calls->next_id++;
        *ret_id = calls->next_id++;
        *calls_slot(calls, *ret_id) = (struct tr_call){ *ret_id, waiting, take_message, callee };
        take_message->call_id = *ret_id;
        calls->count++;
        calls->bytes += tr_call_bytes(take_message);
        return 0;
}

/* The slot of that id; NULL where nothing has it. */
static struct tr_call *calls_find(const struct tr_calls *calls, uint32_t id) {
        if (calls->count == 0)
                return NULL;
        struct tr_call *slot = calls_slot(calls, id);
        return slot->message && slot->id == id ? slot : NULL;
}

bool tr_calls_has_sent(const struct tr_calls *calls, const struct tr_message *message) {
        const struct tr_call *slot = calls_find(calls, message->call_id);
        return slot && slot->message == message && !slot->waiting;
}

void tr_calls_set_sent(struct tr_calls *calls, uint32_t id) {
        struct tr_call *slot = calls_find(calls, id);
        if (slot)
                slot->waiting = false;
}

static struct tr_message *slot_empty(struct tr_calls *calls, struct tr_call *slot) {
        struct tr_message *message = slot->message;
        slot->message = NULL;
        calls->count--;
        calls->bytes -= tr_call_bytes(message);
        return message;
}

struct tr_message *tr_calls_take(struct tr_calls *calls, uint32_t id) {
        struct tr_call *slot = calls_find(calls, id);
        return slot ? slot_empty(calls, slot) : NULL;
}

struct tr_message *tr_calls_take_sent(struct tr_calls *calls, uint32_t id, struct tr_callee **ret_callee) {
        struct tr_call *slot = calls_find(calls, id);
        if (!slot || slot->waiting)
                return NULL;
        *ret_callee = slot->callee;
        return slot_empty(calls, slot);
}

void tr_calls_sweep(struct tr_calls *calls, uint32_t looks, struct tr_list *ret_settled) {
        for (uint32_t i = 0; i < looks && i < calls->room; i++) {
                struct tr_call *slot = calls_slot(calls, calls->swept++);
                if (slot->message && !slot->waiting && tr_message_state(slot->message) == TR_MESSAGE_SETTLED)
                        tr_list_append(ret_settled, &slot_empty(calls, slot)->link);
        }
}

void tr_calls_take_all(struct tr_calls *calls, const struct tr_callee *callee, struct tr_list *ret_all) {
        for (uint32_t i = 0; i < calls->room; i++)
                if (calls->slots[i].message && (!callee || calls->slots[i].callee == callee))
                        tr_list_append(ret_all, &slot_empty(calls, &calls->slots[i])->link);
        if (callee)
                return;
        free(calls->slots);
        calls->slots = NULL;
        calls->room = 0;
}
