/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_ENTITIES_H
#define TR_SCRIPT_ENTITIES_H

#include <lua.h>

struct tr_writer;

/* Pushes what contexts have as `entities`: the component's documents, to be got, put, deleted and listed. Protected, in the VM of a
 * replica. */
void tr_entities_push(lua_State *L);

/* Encodes the table at an index as a document, behind what the writer (the scratch) has; an empty one is a map. Raises `not-sendable`, where
 * it is no table of fields too; `what` is how it is called then. */
void tr_entities_encode(lua_State *L, int index, const char *what, struct tr_writer *writer);

#endif
