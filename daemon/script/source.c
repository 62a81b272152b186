/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lua files.
 *
 * Code runs with all that the daemon may do, so a file that somebody else than root or the daemon's own user may write,
 * or put in place, is not loaded. What is looked at is what was opened. Directories above the one of the search path
 * are the business of whoever configured it.
 *
 * Only text is compiled: Lua does not check binary chunks, and a crafted one takes the process over. What was compiled
 * before, from the same text under the same name, is not compiled again (chunks.c); the file is read all the same, and
 * what it says now is what counts.
 */

#include "daemon/script/source.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/script/chunks.h"
#include "daemon/script/vm.h"

/* How much of a file is read at once. What is larger is compiled piece by piece, each time again. */
#define PIECE_BYTES (256 << 10)

/* Of all VMs. Some dozens of modules are many, and a compiled one is about as large as its text. */
#define COMPILED_MAX 256
#define COMPILED_BYTES ((size_t)4 << 20)

static struct tr_chunks compiled = TR_CHUNKS_INIT(compiled, COMPILED_MAX, COMPILED_BYTES);

static bool is_safe(const struct stat *stat) {
        return (stat->st_uid == 0 || stat->st_uid == geteuid()) && (stat->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The directories of a path from root_len bytes on. False with the length of the one that is not safe, or cannot be
 * looked at. */
static bool directories_are_safe(const char *path, size_t root_len, size_t *ret_unsafe_len) {
        TR_AUTO_FREE char *directory = strdup(path);
        size_t len = root_len;
        struct stat found;
        bool safe = directory;

        while (safe && path[len]) {
                directory[len] = 0;
                safe = stat(directory, &found) == 0 && is_safe(&found);
                *ret_unsafe_len = len;
                directory[len] = path[len];
                len += strcspn(path + len + 1, "/") + 1;
        }
        return safe;
}

enum tr_source tr_source_open(const char *path, size_t root_len, int *ret_fd, int *ret_errno, size_t *ret_unsafe_len) {
        struct stat stat;
        int fd;

        /* non-blocking: a named pipe must not keep an actor */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
                *ret_errno = errno;
                return TR_SOURCE_MISSING;
        }
        if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
                *ret_errno = S_ISDIR(stat.st_mode) ? EISDIR : EINVAL;
                close(fd);
                return TR_SOURCE_MISSING;
        }
        *ret_unsafe_len = strlen(path);
        if (!is_safe(&stat) || !directories_are_safe(path, root_len, ret_unsafe_len)) {
                close(fd);
                return TR_SOURCE_UNSAFE;
        }
        *ret_fd = fd;
        return TR_SOURCE_OPEN;
}

/* A file as lua_load() reads it: without a byte order mark, and without a first line that is the shell's. */
struct reading {
        int fd;
        int error;
        bool over;  /* there is no more than what is in `bytes` */
        bool given; /* and that has been read */
        bool begun;
        bool in_first_line; /* of a "#!" */
        char *bytes;
        size_t room, len;
        struct sha256_ctx hash;
};

/* Reads the next piece: as much as there is room for, or what is left. */
static void fill(struct tr_actor *actor, struct reading *reading) {
        ssize_t n;

        reading->len = 0;
        while (!reading->error && !reading->over && reading->len < reading->room) {
                n = read(reading->fd, reading->bytes + reading->len, reading->room - reading->len);
                if (n > 0)
                        reading->len += (size_t)n;
                else if (n == 0)
                        reading->over = true;
                else if (errno != EINTR || tr_actor_is_killed(actor))
                        reading->error = errno;
        }
        sha256_update(&reading->hash, reading->len, (const uint8_t *)reading->bytes);
        reading->given = false;
}

static const char *skip_beginning(struct reading *reading, const char *at, size_t *size) {
        static const char mark[] = { '\xef', '\xbb', '\xbf' };
        const char *end;

        if (!reading->begun) {
                reading->begun = true;
                if (*size >= sizeof(mark) && memcmp(at, mark, sizeof(mark)) == 0) {
                        at += sizeof(mark);
                        *size -= sizeof(mark);
                }
                reading->in_first_line = *size > 0 && *at == '#';
        }
        if (reading->in_first_line) {
                /* its end stays, so that the lines keep their numbers */
                end = memchr(at, '\n', *size);
                reading->in_first_line = !end;
                *size -= end ? (size_t)(end - at) : *size;
                at = end ? end : at;
        }
        return at;
}

static const char *read_piece(lua_State *L, void *data, size_t *size) {
        struct reading *reading = data;
        const char *at;

        do {
                if (reading->given)
                        fill(tr_vm_of(L)->actor, reading);
                reading->given = true;
                *size = reading->len;
                if (reading->error || *size == 0) {
                        *size = 0;
                        return NULL;
                }
                at = skip_beginning(reading, reading->bytes, size);
        } while (*size == 0);
        return at;
}

static void write_hash(const uint8_t *digest, char ret_hash[TR_SOURCE_HASH_SIZE]) {
        base16_encode_update(ret_hash, (TR_SOURCE_HASH_SIZE - 1) / 2, digest);
        ret_hash[TR_SOURCE_HASH_SIZE - 1] = 0;
}

/* Pushes a chunk that was compiled before. False where there is none, else *ret_status is Lua's. */
static bool load_compiled(lua_State *L, const uint8_t *digest, const char *chunk_name, int *ret_status) {
        struct tr_chunk *chunk = tr_chunks_find(&compiled, digest, chunk_name);

        if (!chunk)
                return false;
        *ret_status = tr_chunk_load(L, chunk);
        tr_chunk_unref(chunk);
        return true;
}

/* What has been begun to be read, whose first piece is there. */
static int load_pieces(lua_State *L, struct reading *reading, const char *chunk_name, uint8_t *ret_digest) {
        bool is_whole = reading->over;
        int status;

        if (is_whole) {
                sha256_digest(&reading->hash, TR_CHUNK_DIGEST_BYTES, ret_digest);
                if (load_compiled(L, ret_digest, chunk_name, &status))
                        return status;
        }
        status = lua_load(L, read_piece, reading, chunk_name, "t");
        /* the compiler does not want to see the end of every file, and the hash is of all of it */
        while (!reading->error && !reading->over)
                fill(tr_vm_of(L)->actor, reading);
        if (!is_whole)
                sha256_digest(&reading->hash, TR_CHUNK_DIGEST_BYTES, ret_digest);
        else if (status == LUA_OK)
                tr_chunks_keep(&compiled, L, ret_digest, chunk_name);
        return status;
}

int tr_source_load(lua_State *L, int fd, const char *chunk_name, int *ret_errno, char ret_hash[TR_SOURCE_HASH_SIZE]) {
        struct reading reading = { .fd = fd };
        uint8_t digest[TR_CHUNK_DIGEST_BYTES];
        int status = LUA_ERRFILE;
        struct stat stat;

        /* not on the stack: what an idle actor's stack has touched once stays in memory */
        reading.room = fstat(fd, &stat) == 0 && stat.st_size < PIECE_BYTES ? (size_t)stat.st_size + 1 : PIECE_BYTES;
        reading.bytes = malloc(reading.room);
        reading.error = reading.bytes ? 0 : ENOMEM;
        sha256_init(&reading.hash);
        fill(tr_vm_of(L)->actor, &reading);
        if (!reading.error) {
                status = load_pieces(L, &reading, chunk_name, digest);
                write_hash(digest, ret_hash);
        }
        free(reading.bytes);
        *ret_errno = reading.error;
        return status;
}

int tr_source_load_text(lua_State *L, const char *text, size_t len, const char *chunk_name) {
        uint8_t digest[TR_CHUNK_DIGEST_BYTES];
        struct sha256_ctx hash;
        int status;

        sha256_init(&hash);
        sha256_update(&hash, len, (const uint8_t *)text);
        sha256_digest(&hash, sizeof(digest), digest);
        if (load_compiled(L, digest, chunk_name, &status))
                return status;
        status = luaL_loadbufferx(L, text, len, chunk_name, "t");
        if (status == LUA_OK)
                tr_chunks_keep(&compiled, L, digest, chunk_name);
        return status;
}

bool tr_source_hash(int fd, char ret_hash[TR_SOURCE_HASH_SIZE]) {
        uint8_t bytes[8192], digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx hash;
        ssize_t n;

        sha256_init(&hash);
        do {
                n = read(fd, bytes, sizeof(bytes));
                if (n > 0)
                        sha256_update(&hash, (size_t)n, bytes);
        } while (n > 0 || (n < 0 && errno == EINTR));
        if (n < 0)
                return false;
        sha256_digest(&hash, sizeof(digest), digest);
        write_hash(digest, ret_hash);
        return true;
}
