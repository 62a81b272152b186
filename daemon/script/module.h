/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_MODULE_H
#define TR_SCRIPT_MODULE_H

#include <lua.h>
#include <stddef.h>

/*
 * Modules: what `require` finds, where, and whose top level runs.
 *
 * A module's top level runs once per VM. While it runs, the VM knows its name: what it declares (actors, classes) is
 * known by `module:Name`, and what would start or reach actors is refused.
 */

/* One top level that runs, on the C stack of who runs it. */
struct tr_loading {
        const char *module;
        const char *file;
        const struct tr_loading *outer;
};

/* The module whose top level runs now (the innermost), or NULL. Valid until that top level ends. */
const char *tr_module_loading(lua_State *L);
/* Raises `bad-request` naming the file where a top level runs: for `spawn` and its kind, whose name is `function`. */
void tr_module_refuse_at_top_level(lua_State *L, const char *function);

/* Loads a module that is not loaded yet and pushes its value. Raises library errors: `not-found` with the files that
 * were tried, `load` with the traceback. Never yields. */
void tr_module_require(lua_State *L, const char *name, size_t len);

/* Opens `require` and `package`. Once per VM, protected. */
void tr_module_open(lua_State *L);

#endif
