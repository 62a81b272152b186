/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_CORE_CARGO_H
#define TR_CORE_CARGO_H

#include <stddef.h>
#include <stdint.h>

struct tr_actor;
struct tr_answer;

/*
 * What a message or an answer carries beside its bytes: blocks of memory that change hands instead of being copied.
 *
 * It has one owner at a time: the message or answer that it is in, or whoever took it out. The owner takes the blocks
 * for good, or returns the cargo: to the actor that loaded it, where it arrives as an answer that has no number, or,
 * where that has ended, nowhere.
 */
struct tr_block {
        void *memory;      /* of malloc(); NULL: it was taken */
        size_t len;        /* bytes of content: the loader's and the taker's business */
        size_t heap_bytes; /* what it counts as, in a heap and in a mailbox */
        uint64_t place;    /* the loader's own: where it was taken from */
        void *taker;       /* the taker's own: where it is to go */
};

struct tr_cargo {
        struct tr_actor *home;      /* strong: who loaded it; NULL: it is on its way back */
        struct tr_answer *wrapping; /* for the way back, which must not fail for want of memory */
        uint64_t heap_bytes;        /* of all its blocks */
        uint32_t count;
        struct tr_block blocks[];
};

/* For `count` blocks, which the caller fills in, as it does heap_bytes. NULL where memory is short. */
struct tr_cargo *tr_cargo_new(struct tr_actor *home, uint32_t count);
/* Sends it back; frees it where it is on its way back already. Any thread, no lock held. NULL is fine. */
void tr_cargo_return(struct tr_cargo *take_cargo);
/* Frees it, and the blocks that nobody took. NULL is fine. */
void tr_cargo_free(struct tr_cargo *take_cargo);

#endif
