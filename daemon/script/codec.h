/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_CODEC_H
#define TR_SCRIPT_CODEC_H

#include <lua.h>
#include <stdint.h>

#include "daemon/core/message.h"
#include "proto/value.h"

/*
 * Lua values as MessagePack and back: what crosses, and how (actors.md).
 *
 * Towards a VM (TR_FORM_INTERNAL) the encoding is the protocol's typed form plus extension types of our own for what
 * MessagePack cannot say (shared structure, cycles, array and map marks, moved buffers); such bytes never leave the daemon.
 */

/*
 * Appends `count` values, from `first` on the stack on, to the writer. Raises (tr_script_raise, `not-sendable`, with `path`)
 * at what cannot cross, naming the field: `message` sentences as actors.md gives them. `names` says how the values are called in such
 * a sentence: NULL for arguments (the first is not named, others are "argument 2"). The writer must outlive the error: the VM's scratch.
 */
void tr_codec_encode(lua_State *L, int first, int count, enum tr_form form, struct tr_writer *writer);

/*
 * Pushes `count` values from the bytes. Raises for want of memory, and, with a library error of the code that the asker
 * shall get (`not-sendable`: duplicate or nil key, ...; `load`, `not-found`: an instance's module), for what the bytes hold. `internal`: they are in the internal
 * form; else a peer wrote them, and no code may be loaded for an instance.
 */
void tr_codec_decode(lua_State *L, const uint8_t *data, size_t bytes, uint32_t count, bool internal);

/* Opens the value types (null, marks, handles, messages, bytes, timestamps, classes) and puts their functions into the library
 * table at the top of the stack. Once per VM, protected. */
void tr_values_open(lua_State *L);

#endif
