/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_SOURCE_H
#define TR_SCRIPT_SOURCE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Lua files: opened where nobody else may have written them, and compiled as text.
 */

enum tr_source {
        TR_SOURCE_OPEN = 0,
        TR_SOURCE_MISSING, /* no such file, or it cannot be read: *ret_errno */
        TR_SOURCE_UNSAFE,  /* others may write it, or a folder of its path: the first *ret_unsafe_len bytes of that */
};

/* Opens the file at `path`, looking at who may write it and every directory on the way to it below and including the
 * first `root_len` bytes of the path. *ret_fd is the caller's to close. Does not raise. */
enum tr_source tr_source_open(const char *path, size_t root_len, int *ret_fd, int *ret_errno, size_t *ret_unsafe_len);

/* Hexadecimal digits of a hash, and a NUL. */
#define TR_SOURCE_HASH_SIZE 33

/* The hash of an open file's bytes. False, and nothing was written, where it cannot be read to its end. */
bool tr_source_hash(int fd, char ret_hash[TR_SOURCE_HASH_SIZE]);

/* Pushes the compiled chunk of an open file, or the error. Lua's status; ret_hash is the hash of the file's bytes.
 * Where it could not be read to its end, *ret_errno says why, and neither a chunk nor a hash is to be counted on.
 * Does not raise. The chunk's name is "@" and a path. */
int tr_source_load(lua_State *L, int fd, const char *chunk_name, int *ret_errno, char ret_hash[TR_SOURCE_HASH_SIZE]);
/* The same of a text that is there already: a part of the library. */
int tr_source_load_text(lua_State *L, const char *text, size_t len, const char *chunk_name);

#endif
