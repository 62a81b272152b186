/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lua files.
 *
 * Code runs with all that the daemon may do, so a file that somebody else than root or the daemon's own user may
 * write, or put in place, is not loaded. What is looked at is what was opened. Directories above the one of the
 * search path are the business of whoever configured it.
 *
 * Only text is compiled: Lua does not check binary chunks, and a crafted one takes the process over.
 */

#include "daemon/script/source.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/script/vm.h"

#define READ_BYTES 8192

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
        bool begun;
        bool in_first_line; /* of a "#!" */
        char *bytes;        /* READ_BYTES of them */
        struct sha256_ctx hash;
};

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
        const char *at = reading->bytes;
        ssize_t n;

        if (reading->error)
                return NULL;

        do {
                do
                        n = read(reading->fd, reading->bytes, READ_BYTES);
                while (n < 0 && errno == EINTR && !tr_actor_is_killed(tr_vm_of(L)->actor));
                if (n <= 0) {
                        reading->error = n < 0 ? errno : 0;
                        *size = 0;
                        return NULL;
                }
                *size = (size_t)n;
                sha256_update(&reading->hash, *size, (const uint8_t *)reading->bytes);
                at = skip_beginning(reading, reading->bytes, size);
        } while (*size == 0);
        return at;
}

/* The rest of a file whose end the compiler did not want to see, so that the hash is of all of it. */
static void read_rest(lua_State *L, struct reading *reading) {
        size_t size;

        while (!reading->error && read_piece(L, reading, &size))
                ;
}

static void write_hash(struct reading *reading, char ret_hash[TR_SOURCE_HASH_SIZE]) {
        uint8_t digest[(TR_SOURCE_HASH_SIZE - 1) / 2];

        sha256_digest(&reading->hash, sizeof(digest), digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(ret_hash + 2 * i, 3, "%02x", digest[i]);
}

int tr_source_load(lua_State *L, int fd, const char *chunk_name, int *ret_errno, char ret_hash[TR_SOURCE_HASH_SIZE]) {
        /* not on the stack: what an idle actor's stack has touched once stays in memory */
        TR_AUTO_FREE char *bytes = malloc(READ_BYTES);
        struct reading reading = { .fd = fd, .bytes = bytes, .error = bytes ? 0 : ENOMEM };
        int status;

        sha256_init(&reading.hash);
        status = lua_load(L, read_piece, &reading, chunk_name, "t");
        read_rest(L, &reading);
        write_hash(&reading, ret_hash);
        *ret_errno = reading.error;
        return status;
}
