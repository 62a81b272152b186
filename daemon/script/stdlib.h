/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_STDLIB_H
#define TR_SCRIPT_STDLIB_H

#include <lua.h>

struct tr_vm;

/*
 * Lua's standard library, less what would harm the process. Everything here runs once per VM, protected, with the
 * libraries opened as Lua has them.
 */

/* All that follows, in order. */
void tr_stdlib_open(lua_State *L);

/* print, load and its kind, xpcall, metatables, debug. */
void tr_base_open(lua_State *L);
/* Bounds on what runs inside one C function. */
void tr_bounds_open(lua_State *L);
/* Files and the process: what is granted, and what is never. */
void tr_outside_open(lua_State *L);
/* Logs the line that `io.write` has begun, if any. Outside of the VM's code. */
void tr_outside_end_line(struct tr_vm *vm);
/* The same inside of it. */
void tr_outside_log_line(lua_State *L);
/* os.execute and io.popen, where they are granted. */
void tr_command_open(lua_State *L);
/* Unknown globals. Last, because from here on reading one raises. */
void tr_globals_open(lua_State *L);

/* A function that is not to be had: what of, its name, and why, the end of a sentence that begins with both. The
 * library NULL: a basic function. */
struct tr_denial {
        const char *library;
        const char *function;
        const char *why;
};

/* Pushes a function that raises `denied` and says so; the denial is a constant. */
void tr_stdlib_push_denied(lua_State *L, const struct tr_denial *denial);

#endif
