/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_CHUNKS_H
#define TR_SCRIPT_CHUNKS_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/base/lock.h"

/*
 * Compiled chunks, shared by all VMs of the process: what many actors load is compiled once.
 *
 * A chunk is known by the SHA-256 of its text and by its name, which is in it. So a text that has changed is another
 * chunk, and the same text under another name is too. It is kept whole, with its lines and names: errors and tracebacks
 * are those of the text. So many chunks and bytes are kept at most; the one that was used last the longest ago makes
 * room.
 *
 * Lua does not check what it loads in compiled form, and a crafted chunk takes the process over. Only what was compiled
 * from text here gets in, and there is no way from Lua code to it.
 */

#define TR_CHUNK_DIGEST_BYTES 32

struct tr_chunk;

struct tr_chunks {
        struct tr_lock lock; /* nothing is acquired under it, and nothing allocated or compiled */
        uint32_t count_max;
        size_t bytes_max;
        struct tr_list used TR_GUARDED_BY(lock); /* what was used last is first */
        uint32_t count TR_GUARDED_BY(lock);
        size_t bytes TR_GUARDED_BY(lock);
};

/* clang-format off */
#define TR_CHUNKS_INIT(name, count, bytes) \
        { .lock = TR_LOCK_INIT, .count_max = (count), .bytes_max = (bytes), .used = { &(name).used, &(name).used } }
/* clang-format on */

/* Any thread. The caller's reference, or NULL. */
struct tr_chunk *tr_chunks_find(struct tr_chunks *chunks, const uint8_t digest[TR_CHUNK_DIGEST_BYTES],
                                const char *name);
void tr_chunk_unref(struct tr_chunk *chunk);
/* Pushes its function, or the error; Lua's status. Does not raise. */
int tr_chunk_load(lua_State *L, const struct tr_chunk *chunk);

/* Keeps the function on top of the stack, which has just been compiled under that name from the text of that digest.
 * Not where it is larger than all of them may be, nor where there is no memory: then it is compiled again the next
 * time. Does not raise. */
void tr_chunks_keep(struct tr_chunks *chunks, lua_State *L, const uint8_t digest[TR_CHUNK_DIGEST_BYTES],
                    const char *name);

/* Lets go of all. */
void tr_chunks_drop(struct tr_chunks *chunks);

#endif
