/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_VALUES_H
#define TR_SCRIPT_VALUES_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/handle.h"
#include "proto/value.h"

struct tr_storage;
struct tr_target;

/*
 * The value types that Lua has not: null, marked tables, handles, messages, byte buffers, timestamps, classes.
 *
 * All functions run on the VM's own thread, inside a protected call, and may raise for want of memory, unless they say
 * that they do not. Indices may be relative. `check` functions raise `bad-request`, naming the library function and
 * what it wanted (`stop: 42 is not a handle`); `to` and `is` functions never raise and answer NULL or false.
 *
 * The userdata of these types begin with the address of a tag of their own, which no other userdata holds: asking for a
 * type is one comparison. Their metatables are hidden by `__metatable`.
 */

/* Opens them all and puts their functions into the library table at the top of the stack (null, array, map, bytes,
 * timestamp, transfer, class, is, handle, text). Once per VM. */
void tr_values_open(lua_State *L);

/* Raises `bad-request`: "FUNCTION: VALUE is not WANTED", VALUE being what is at the index (`42`, `"text"`, `nil`,
 * `a table`) and WANTED with its article. */
_Noreturn void tr_value_misuse(lua_State *L, const char *function, int index, const char *wanted);

/* null: a light value, true in a condition. Neither raises. */
void tr_push_null(lua_State *L);
bool tr_is_null(lua_State *L, int index);

/*
 * Marks: a table that is to cross as an array or as a map, whatever is in it. A mark is a metatable of ours, but for
 * Lua code such a table is a plain one: getmetatable() has to answer nil for it, and setmetatable() to take it (the
 * mark is gone then); `__metatable` is false.
 */
enum tr_mark {
        TR_MARK_NONE,
        TR_MARK_ARRAY,
        TR_MARK_MAP,
};

/* Of any value. Does not raise. */
enum tr_mark tr_mark_of(lua_State *L, int index);
/* Marks the table at the index, which has no metatable but perhaps a mark; NONE takes the mark away. Does not raise. */
void tr_set_mark(lua_State *L, int index, enum tr_mark mark);

/*
 * Handles: one object per handle in a VM, while it is held. It holds a reference to its target, where the system still
 * knows it.
 */
void tr_push_handle(lua_State *L, struct tr_target *target);
/* Looks the target up; a handle that nobody knows (any more) is still a value. */
void tr_push_handle_of(lua_State *L, const struct tr_handle *handle);
/* The handle at an index, valid while the value is; NULL where it is none. *ret_target (may be NULL: not wanted) is
 * borrowed from it, and NULL where the handle is unknown: to be treated as not running. */
const struct tr_handle *tr_to_handle(lua_State *L, int index, struct tr_target **ret_target);
const struct tr_handle *tr_check_handle(lua_State *L, int index, const char *function, struct tr_target **ret_target);

/* Messages: a handle and the name of a handler; one object per pair in a VM, while it is held. */
#define TR_HANDLER_NAME_MAX UINT16_MAX
/* Of the handle at an index. The name is at most TR_HANDLER_NAME_MAX bytes (else raises not-sendable). */
void tr_push_message(lua_State *L, int handle_index, const char *handler, size_t handler_len);
/* As tr_to_handle(), with the handler's name (NUL-terminated), valid while the value is. What is not wanted may be
 * NULL. */
const struct tr_handle *tr_to_message(lua_State *L, int index, struct tr_target **ret_target, const char **ret_handler,
                                      size_t *ret_handler_len);

/* Byte buffers. */
struct tr_bytes {
        const void *tag;
        struct tr_storage *storage; /* NULL: empty */
        size_t len;                 /* of what is in its data */

        /* transfer.c */
        uint64_t place; /* its number among the buffers that were ever noted; 0: it was not */
        uint64_t noted; /* the encoding in which it was noted last */
        uint32_t block; /* in that */
        struct tr_bytes *next_noted;
};

/* A new buffer with a copy (data NULL: zeroes). Raises where the ceiling is reached. */
struct tr_bytes *tr_push_bytes(lua_State *L, const void *data, size_t len);
struct tr_bytes *tr_to_bytes(lua_State *L, int index);

/* Timestamps: immutable. */
void tr_push_time(lua_State *L, const struct tr_time *time);
const struct tr_time *tr_to_time(lua_State *L, int index);

/* Classes: tables declared under `module:Name`, the metatables of their instances. */

/* Whether the table at the index is a class: pushes its name ("module:Name") if so, else nothing. Does not raise. */
bool tr_push_class_name(lua_State *L, int index);
/* Pushes the class of that name; false, nothing pushed, where it is not loaded. */
bool tr_push_class(lua_State *L, const char *name, size_t len);
/* Makes the table at the index an instance of the class at the top of the stack, which is popped. False, with nothing
 * done, where the class has a `__gc`: finalizers cannot be interrupted. No code of the class runs. Does not raise. */
bool tr_set_class(lua_State *L, int index);
/* Whether the module has declared a class, and was not forgotten. Does not raise. */
bool tr_knows_classes(lua_State *L, const char *module);
/* The top level of a module has failed: what it declared is no class any more, so that it may be loaded again. */
void tr_forget_classes(lua_State *L, const char *module);

#endif
