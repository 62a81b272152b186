/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compiled chunks.
 *
 * They are few, and nearly always the first of the list is the one: no table. A chunk lives as long as somebody has a
 * reference, so it is loaded without the lock, while others may throw it out.
 */

#include "daemon/script/chunks.h"

#include <lauxlib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tr_chunk {
        struct tr_list link; /* under the lock of those that it is of */
        _Atomic uint32_t refs;
        uint8_t digest[TR_CHUNK_DIGEST_BYTES];
        const char *name; /* behind the code */
        size_t bytes;
        char code[];
};

void tr_chunk_unref(struct tr_chunk *chunk) {
        if (chunk && atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) == 1)
                free(chunk);
}

int tr_chunk_load(lua_State *L, const struct tr_chunk *chunk) {
        return luaL_loadbufferx(L, chunk->code, chunk->bytes, chunk->name, "b");
}

static struct tr_chunk *find_locked(struct tr_chunks *chunks, const uint8_t *digest, const char *name)
        TR_REQUIRES(chunks->lock) {
        struct tr_chunk *chunk;

        tr_list_for_each(chunk, &chunks->used, link)
                if (memcmp(chunk->digest, digest, TR_CHUNK_DIGEST_BYTES) == 0 && strcmp(chunk->name, name) == 0)
                        return chunk;
        return NULL;
}

struct tr_chunk *tr_chunks_find(struct tr_chunks *chunks, const uint8_t digest[TR_CHUNK_DIGEST_BYTES],
                                const char *name) {
        struct tr_chunk *chunk;

        tr_lock_acquire(&chunks->lock);
        chunk = find_locked(chunks, digest, name);
        if (chunk) {
                tr_list_unlink(&chunk->link);
                tr_list_prepend(&chunks->used, &chunk->link);
                atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
        }
        tr_lock_release(&chunks->lock);
        return chunk;
}

/* Where lua_dump() writes to: first nowhere, to learn how much it is. */
struct dump {
        char *to;
        size_t bytes, bytes_max;
};

static int write_dump(lua_State *L, const void *data, size_t bytes, void *userdata) {
        struct dump *dump = userdata;

        if (bytes > dump->bytes_max - dump->bytes)
                return 1;
        if (dump->to && bytes > 0)
                memcpy(dump->to + dump->bytes, data, bytes);
        dump->bytes += bytes;
        return 0;
}

/* NULL: too large, or there is no memory. */
static struct tr_chunk *chunk_new(lua_State *L, const uint8_t *digest, const char *name, size_t bytes_max) {
        struct dump dump = { .bytes_max = bytes_max };
        size_t name_bytes = strlen(name) + 1;
        struct tr_chunk *chunk;

        if (lua_dump(L, write_dump, &dump, false) != 0)
                return NULL;
        chunk = malloc(sizeof(*chunk) + dump.bytes + name_bytes);
        if (!chunk)
                return NULL;
        tr_list_init(&chunk->link);
        atomic_init(&chunk->refs, 1);
        memcpy(chunk->digest, digest, sizeof(chunk->digest));
        chunk->bytes = dump.bytes;
        chunk->name = memcpy(chunk->code + dump.bytes, name, name_bytes);
        dump = (struct dump){ .to = chunk->code, .bytes_max = dump.bytes };
        if (lua_dump(L, write_dump, &dump, false) != 0) {
                tr_chunk_unref(chunk);
                return NULL;
        }
        return chunk;
}

static void take_out_locked(struct tr_chunks *chunks, struct tr_chunk *chunk, struct tr_list *out)
        TR_REQUIRES(chunks->lock) {
        tr_list_unlink(&chunk->link);
        tr_list_append(out, &chunk->link);
        chunks->count--;
        chunks->bytes -= chunk->bytes;
}

static void unref_all(struct tr_list *out) {
        struct tr_chunk *chunk;

        tr_list_for_each(chunk, out, link) {
                tr_list_unlink(&chunk->link);
                tr_chunk_unref(chunk);
        }
}

void tr_chunks_keep(struct tr_chunks *chunks, lua_State *L, const uint8_t digest[TR_CHUNK_DIGEST_BYTES],
                    const char *name) {
        struct tr_chunk *chunk = chunk_new(L, digest, name, chunks->bytes_max), *same, *oldest;
        struct tr_list out = TR_LIST_INIT(out);

        if (!chunk)
                return;
        tr_lock_acquire(&chunks->lock);
        /* two may have compiled it at once */
        same = find_locked(chunks, digest, name);
        if (same)
                take_out_locked(chunks, same, &out);
        tr_list_prepend(&chunks->used, &chunk->link);
        chunks->count++;
        chunks->bytes += chunk->bytes;
        while ((chunks->count > chunks->count_max || chunks->bytes > chunks->bytes_max) &&
               (oldest = tr_list_last(&chunks->used, struct tr_chunk, link)))
                take_out_locked(chunks, oldest, &out);
        tr_lock_release(&chunks->lock);
        unref_all(&out);
}

void tr_chunks_drop(struct tr_chunks *chunks) {
        struct tr_list out = TR_LIST_INIT(out);

        tr_lock_acquire(&chunks->lock);
        tr_list_splice(&out, &chunks->used);
        chunks->count = 0;
        chunks->bytes = 0;
        tr_lock_release(&chunks->lock);
        unref_all(&out);
}
