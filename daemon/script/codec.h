/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_CODEC_H
#define TR_SCRIPT_CODEC_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/message.h"
#include "proto/value.h"

struct tr_cargo;

/*
 * Lua values as MessagePack and back: what crosses, and how (actors.md).
 *
 * Between VMs (TR_FORM_INTERNAL) the encoding is the protocol's typed form plus extension types of our own for what
 * MessagePack cannot say (daemon/script/extension.h); such bytes never leave the daemon.
 */

/*
 * Appends `count` values, from `first` on the stack on, to the writer. Raises at what cannot cross (`not-sendable`,
 * with `path`), naming the field in the sentences of actors.md, and `too-large` where the bytes would be more than a
 * message may ever have (shared structure written out can be without end). `what` says how a value itself is called
 * there: NULL for arguments ("argument 2"; fields of the first go without), else for instance "the answer".
 *
 * What was written before a raise stays in the writer, which must outlive the error: the VM's scratch. Runs no Lua
 * code. Buffers that are to be handed over are noted (transfer.h), for the caller to empty.
 */
void tr_codec_encode(lua_State *L, int first, int count, enum tr_form form, const char *what, struct tr_writer *writer);
/* The same with what is a part of that too, and is called otherwise: buffers that are to be handed over are those of both. */
void tr_codec_encode_behind(lua_State *L, int first, int count, enum tr_form form, const char *what, struct tr_writer *writer);

/*
 * Pushes `count` values from the bytes. Raises for want of memory, and, with a library error of the code that the asker
 * shall get (`not-sendable`: duplicate or nil key, ...; `load`, `not-found`: an instance's module), for what the bytes
 * hold. `internal`: they are in the internal form; else a peer wrote them, and no code may be loaded for an instance.
 *
 * From a peer, bin is a byte buffer, and a string where it is a map's key.
 *
 * `cargo` is what the bytes came with (NULL: nothing): its blocks are taken out of it last of all, when nothing can go
 * wrong any more. Those that nothing refers to stay in it.
 */
void tr_codec_decode(lua_State *L, const uint8_t *data, size_t bytes, uint32_t count, bool internal,
                     struct tr_cargo *cargo);

#endif
