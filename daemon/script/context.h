/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_CONTEXT_H
#define TR_SCRIPT_CONTEXT_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

struct tr_call_context;

/*
 * What a component's functions get beside their input: the context. All protected, in the VM of a replica.
 */

/* Makes what all contexts of the VM have in common. Once, when the module has been loaded. */
void tr_context_open(lua_State *L);
/* Pushes one that is of no call. */
void tr_context_push(lua_State *L);
/* Pushes that of a call. */
void tr_context_push_call(lua_State *L, const char *operation, const struct tr_call_context *context);

/* Whether the value at an index is what context.error() answers. Does not raise. */
bool tr_context_is_error(lua_State *L, int index);
/* Pushes its data, and answers its name, which it holds. Does not raise where there is room on the stack. */
const char *tr_context_push_error_data(lua_State *L, int index, size_t *ret_len);

#endif
