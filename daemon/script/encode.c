/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua values to MessagePack.
 *
 * Everything is looked at raw, so that no code of the program runs and nothing changes meanwhile. Recursion goes as
 * deep as values may be nested, and the stack holds, level by level, the table, its present key and that key's value,
 * from which a refusal makes the path.
 *
 * Between VMs a container that was written before is written as a reference. Towards a peer it is written out at each
 * place, which can be without end in two ways: a cycle is found among the open containers, and everything else ends at
 * the most bytes that a message may have.
 */
#include "daemon/script/encode.h"

#include <string.h>

#include "daemon/script/codec.h"
#include "daemon/script/kind.h"
#include "daemon/script/storage.h"
#include "daemon/script/transfer.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* What a message may have even where the heap's ceiling is lower: the default of limits.mailbox_bytes. */
#define MESSAGE_BYTES_MIN (UINT32_C(64) << 20)

/* Or what it is part of, where that could not have crossed either: the functions in a class are not what is wrong about
 * sending it. */
void tr_encode_refuse(struct tr_encoder *e, const char *kind) {
        int depth = e->path.depth;
        const char *path;

        luaL_checkstack(e->L, TR_ENCODE_SLOTS, NULL);
        for (int level = 1; level <= e->path.depth; level++) {
                const char *part_of = tr_value_kind(e->L, tr_encode_container(e, level));

                if (strcmp(part_of, "a class") == 0 || strcmp(part_of, "an actor declaration") == 0) {
                        kind = part_of;
                        depth = level - 1;
                        break;
                }
        }
        path = tr_path_push(e->L, &e->path, depth);
        tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path, "a message may not carry %s: `%s` is %s", kind, path,
                           kind);
}

void tr_encode_check_room(struct tr_encoder *e, size_t bytes) {
        size_t len = e->writer->len;

        if (len > e->end || bytes > e->end - len)
                tr_script_raise(e->L, TR_CODE_TOO_LARGE, "a message of more than %zu bytes is too large", e->end);
}

void tr_encode_string(struct tr_encoder *e, const char *string, size_t len) {
        tr_encode_check_room(e, len);
        if (e->form == TR_FORM_INTERNAL)
                tr_write_str(e->writer, string, len);
        else
                tr_write_string(e->writer, string, len);
}

void tr_encode_insert(struct tr_writer *writer, size_t at, const uint8_t *bytes, size_t count) {
        if (tr_writer_reserve(writer, count))
                return;
        memmove(writer->data + at + count, writer->data + at, writer->len - at);
        memcpy(writer->data + at, bytes, count);
        writer->len += count;
}

static void encode_handle(struct tr_encoder *e, const struct tr_handle *handle) {
        char text[TR_HANDLE_TEXT_MAX + 1];
        size_t len;

        if (e->form != TR_FORM_PLAIN) {
                tr_write_handle(e->writer, handle);
                return;
        }
        len = tr_handle_format(handle, text);
        tr_write_str(e->writer, text, len);
}

static void encode_time(struct tr_encoder *e, const struct tr_time *time) {
        char text[TR_TIME_TEXT_MAX];
        size_t len;

        if (e->form != TR_FORM_PLAIN) {
                tr_write_time(e->writer, time);
                return;
        }
        len = tr_time_format(time, text);
        tr_write_str(e->writer, text, len);
}

static void encode_bytes(struct tr_encoder *e, int index, const struct tr_bytes *bytes) {
        tr_encode_check_room(e, bytes->len);
        if (e->form != TR_FORM_INTERNAL || !tr_encode_was_written(e, index))
                tr_write_bin(e->writer, bytes->storage ? bytes->storage->data : NULL, bytes->len);
}

/* The buffer at the top of the stack, which is to be handed over. It is noted also where the message has it already, as a
 * copy or towards a peer: it is emptied all the same. */
static void encode_transfer(struct tr_encoder *e) {
        int index = lua_gettop(e->L);
        struct tr_bytes *bytes = tr_to_bytes(e->L, index);
        uint32_t block = bytes->storage ? tr_transfer_note(e->L, bytes) : 0;

        if (e->form != TR_FORM_INTERNAL || !bytes->storage)
                encode_bytes(e, index, bytes);
        else if (!tr_encode_was_written(e, index))
                tr_encode_number(e, TR_EXT_BLOCK, block);
}

static void encode_userdata(struct tr_encoder *e, int index) {
        const struct tr_handle *handle;
        const struct tr_time *time;
        struct tr_bytes *bytes;
        const char *handler;
        size_t len;

        handle = tr_to_handle(e->L, index, NULL);
        if (handle) {
                encode_handle(e, handle);
                return;
        }
        handle = tr_to_message(e->L, index, NULL, &handler, &len);
        if (handle) {
                tr_encode_check_room(e, len);
                if (e->form != TR_FORM_PLAIN) {
                        tr_write_message(e->writer, handle, handler, len);
                } else {
                        tr_write_array(e->writer, 2);
                        encode_handle(e, handle);
                        tr_write_string(e->writer, handler, len);
                }
                return;
        }
        bytes = tr_to_bytes(e->L, index);
        if (bytes) {
                encode_bytes(e, index, bytes);
                return;
        }
        if (tr_transfer_push(e->L, index)) {
                encode_transfer(e);
                lua_pop(e->L, 1);
                return;
        }
        time = tr_to_time(e->L, index);
        if (!time)
                tr_encode_refuse(e, tr_value_kind(e->L, index));
        encode_time(e, time);
}

static void encode_light(struct tr_encoder *e, int index) {
        static const uint8_t any = 0;

        if (!tr_is_null(e->L, index))
                tr_encode_refuse(e, tr_value_kind(e->L, index));
        if (e->form == TR_FORM_INTERNAL && e->path.depth == 0)
                tr_write_ext(e->writer, TR_EXT_NULL, &any, 1);
        else
                tr_write_nil(e->writer);
}

void tr_encode_value(struct tr_encoder *e, int index) {
        const char *string;
        size_t len;

        switch (lua_type(e->L, index)) {
        case LUA_TNIL:
                tr_write_nil(e->writer);
                break;
        case LUA_TBOOLEAN:
                tr_write_bool(e->writer, lua_toboolean(e->L, index));
                break;
        case LUA_TNUMBER:
                if (lua_isinteger(e->L, index))
                        tr_write_int(e->writer, lua_tointeger(e->L, index));
                else
                        tr_write_float(e->writer, lua_tonumber(e->L, index));
                break;
        case LUA_TSTRING:
                string = lua_tolstring(e->L, index, &len);
                tr_encode_string(e, string, len);
                break;
        case LUA_TTABLE:
                tr_encode_table(e, index);
                break;
        case LUA_TUSERDATA:
                encode_userdata(e, index);
                break;
        case LUA_TLIGHTUSERDATA:
                encode_light(e, index);
                break;
        default:
                tr_encode_refuse(e, tr_value_kind(e->L, index));
        }
}

void tr_codec_encode(lua_State *L, int first, int count, enum tr_form form, const char *what,
                     struct tr_writer *writer) {
        tr_transfer_begin(tr_vm_of(L));
        tr_codec_encode_behind(L, first, count, form, what, writer);
}

void tr_codec_encode_behind(lua_State *L, int first, int count, enum tr_form form, const char *what,
                            struct tr_writer *writer) {
        static const uint8_t shared[] = { 0xd4, TR_EXT_SHARED, 0 };
        uint64_t heap_max_bytes = tr_vm_of(L)->alloc.max_bytes;
        size_t bytes_max = heap_max_bytes > MESSAGE_BYTES_MIN ? heap_max_bytes : MESSAGE_BYTES_MIN;
        size_t start = writer->len;
        struct tr_encoder e;
        int top;

        luaL_checkstack(L, TR_ENCODE_SLOTS, NULL);
        first = lua_absindex(L, first);
        top = lua_gettop(L);
        /* not initialized as a whole: it is more than a kilobyte, of which most messages use next to nothing */
        e.L = L;
        e.writer = writer;
        e.form = form;
        e.shared = false;
        e.end = start + (bytes_max < UINT32_MAX ? bytes_max : UINT32_MAX);
        e.path.what = what;
        e.path.depth = 0;
        if (form == TR_FORM_INTERNAL)
                tr_seen_init(&e.seen, L);
        for (int i = 0; i < count; i++) {
                e.root = first + i;
                e.path.root = (uint32_t)i + 1;
                tr_encode_value(&e, e.root);
        }
        if (e.shared)
                tr_encode_insert(writer, start, shared, sizeof(shared));
        lua_settop(L, top);
        if (tr_writer_error(writer))
                tr_script_raise(L, TR_CODE_NO_MEMORY, "no memory for a message of %zu bytes", writer->len - start);
}
