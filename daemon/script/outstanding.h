/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_OUTSTANDING_H
#define TR_SCRIPT_OUTSTANDING_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/script/vm.h"

/*
 * What is pending in a VM: the promises (and what `every` made) that something outside of its code will settle, by
 * number. An ask's number travels with the message and comes back with the answer.
 */
enum tr_outstanding_kind {
        TR_OUTSTANDING_ASK,   /* an answer: holds a program open, */
        TR_OUTSTANDING_SLEEP, /* as does a timer, */
        TR_OUTSTANDING_EVERY, /* and what recurs */
        TR_OUTSTANDING_DONE,  /* an actor's end */
};

struct tr_outstanding_slot {
        uint32_t generation;
        uint32_t next_free; /* + 1; 0: the last */
        uint8_t kind;
        bool used;
        struct tr_message *message;     /* strong: what was asked, NULL: a timer */
        const struct tr_target *target; /* whom, to be compared only: it may have gone since */
};

/* Once per VM, protected. */
void tr_outstanding_open(lua_State *L);
/* Keeps the value on top (it stays there) until it is taken. Never 0. May raise. */
uint64_t tr_outstanding_add(lua_State *L, enum tr_outstanding_kind kind);
/* The message whose answer the number stands for, not posted yet: the actor becomes who asks. Keeps a reference. `target` is whom it
 * goes to, NULL for one that is being started. */
void tr_outstanding_ask(struct tr_vm *vm, uint64_t id, struct tr_message *message, const struct tr_target *target);
/* As tr_behaviour's awaits(); between two turns' code only. */
bool tr_outstanding_awaits(struct tr_vm *vm, struct tr_awaited *awaited);
/* NULL where there is none. Borrowed. */
struct tr_message *tr_outstanding_message(struct tr_vm *vm, uint64_t id);
/* Pushes what is kept under the number; false, nothing pushed, where there is nothing (any more). */
bool tr_outstanding_push(lua_State *L, uint64_t id);
/* The same, and the number is free then. May raise. */
bool tr_outstanding_take(lua_State *L, uint64_t id);
/* At the VM's end. */
void tr_outstanding_free(struct tr_vm *vm);

#endif
