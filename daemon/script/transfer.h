/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_TRANSFER_H
#define TR_SCRIPT_TRANSFER_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

struct tr_bytes;
struct tr_cargo;
struct tr_message;
struct tr_vm;

/*
 * Buffers that are handed over instead of copied.
 *
 * `transfer(b)` makes a value that stands for the buffer inside of a message. Encoding notes the buffers that such values
 * stand for. When all that can go wrong in the sender has not, they are emptied into the message's cargo; the receiver's
 * decoder makes new buffers of the same storage. What cannot be delivered comes back as cargo and is put into the buffers
 * that it was taken from, where the program still has them.
 */
struct tr_transfers {
        uint64_t encoding; /* the number of the present encoding */
        uint32_t count;
        struct tr_bytes *first; /* noted in it, in order; borrowed from the values that are being sent */
        struct tr_bytes **end;
        uint64_t places; /* how many buffers were ever noted */
};

/* Pushes the buffer that the value at an index stands for; false, nothing pushed, where it is no transfer. Does not raise. */
bool tr_transfer_push(lua_State *L, int index);

/* An encoding begins: nothing is noted. */
void tr_transfer_begin(struct tr_vm *vm);
/* Notes the buffer at the top of the stack, which has storage; answers the number of its block. May raise for want of memory. */
uint32_t tr_transfer_note(lua_State *L, struct tr_bytes *bytes);

/* Empties what was noted in the last encoding into new cargo; *ret_cargo is NULL where nothing was. False where memory is
 * short, and the buffers are as they were. Does not raise. */
bool tr_transfer_pack(struct tr_vm *vm, struct tr_cargo **ret_cargo);
/* The same, for a message that is about to be posted. */
bool tr_transfer_load(struct tr_vm *vm, struct tr_message *message);
/* Empties what was noted, and was copied. Does not raise. */
void tr_transfer_empty(lua_State *L);

/* Makes the blocks the storage of the buffers that the decoder has named as their takers. Raises, with all of them where they
 * were, where the ceiling is reached. */
void tr_transfer_take(lua_State *L, struct tr_cargo *cargo);
/* Puts the blocks back where they were taken from in this VM, whatever the ceiling: they counted there before. Raises only for want
 * of memory, where the program has written to such a buffer meanwhile. Needs three stack slots. */
void tr_transfer_put_back(lua_State *L, struct tr_cargo *cargo);
/* The same with what a message carries that was refused here, or that nobody else will look at. */
void tr_transfer_reclaim(lua_State *L, struct tr_message *message);

#endif
