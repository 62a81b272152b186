/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua values to MessagePack.
 *
 * Everything is looked at raw, so that no code of the program runs and nothing changes meanwhile. Recursion goes as deep as
 * values may be nested, and the stack holds, level by level, the table, its present key and that key's value, from which a
 * refusal makes the path.
 *
 * Between VMs a container that was written before is written as a reference. Towards a peer it is written out at each
 * place, which can be without end in two ways: a cycle is found among the open containers, and everything else ends at the
 * most bytes that a message may have.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "daemon/script/box.h"
#include "daemon/script/codec.h"
#include "daemon/script/extension.h"
#include "daemon/script/kind.h"
#include "daemon/script/path.h"
#include "daemon/script/seen.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* What a message may have even where the heap's ceiling is lower: the default of limits.mailbox_bytes. */
#define MESSAGE_BYTES_MIN (UINT32_C(64) << 20)
/* Stack slots that one level needs beyond what is there when it begins. */
#define SLOTS_PER_LEVEL 12

struct encoder {
        lua_State *L;
        struct tr_writer *writer;
        enum tr_form form;
        bool shared; /* a reference was written */
        size_t end;  /* where the writer may at most get to */
        int root;    /* stack index of the value being written that is in no container */
        struct tr_path path;
        struct tr_seen seen; /* TR_FORM_INTERNAL */
};

static void encode_value(struct encoder *e, int index);

/* The stack index of the container that is `level` deep, from 1. */
static int container_at(const struct encoder *e, int level) {
        return level == 1 ? e->root : e->path.steps[level - 2].value;
}

/* Refuses the present value, which is `kind`; or what it is part of, where that could not have crossed either (the
 * functions in a class are not what is wrong about sending it). */
static _Noreturn void refuse(struct encoder *e, const char *kind) {
        int depth = e->path.depth;
        const char *path;

        luaL_checkstack(e->L, SLOTS_PER_LEVEL, NULL);
        for (int level = 1; level <= e->path.depth; level++) {
                const char *part_of = tr_value_kind(e->L, container_at(e, level));

                if (strcmp(part_of, "a class") == 0 || strcmp(part_of, "an actor declaration") == 0) {
                        kind = part_of;
                        depth = level - 1;
                        break;
                }
        }
        path = tr_path_push(e->L, &e->path, depth);
        tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path, "a message may not carry %s: `%s` is %s", kind, path, kind);
}

static _Noreturn void refuse_key(struct encoder *e, int index) {
        const char *path = tr_path_push(e->L, &e->path, e->path.depth - 1);

        tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path, "a message may not carry %s as a key: `%s` has one",
                           tr_value_kind(e->L, index), path);
}

/* Refuses to write `bytes` more where that is more than any message may have. */
static void check_room(struct encoder *e, size_t bytes) {
        size_t len = e->writer->len;

        if (len > e->end || bytes > e->end - len)
                tr_script_raise(e->L, TR_CODE_TOO_LARGE, "a message of more than %zu bytes is too large", e->end);
}

/* Puts bytes in front of what was written from `at` on. */
static void insert(struct tr_writer *writer, size_t at, const uint8_t *bytes, size_t count) {
        if (tr_writer_reserve(writer, count))
                return;
        memmove(writer->data + at + count, writer->data + at, writer->len - at);
        memcpy(writer->data + at, bytes, count);
        writer->len += count;
}

static void put_be32(uint8_t *bytes, uint32_t value) {
        for (int i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A string as a peer or a VM gets it: between VMs str holds any bytes. */
static void write_string(struct encoder *e, const char *string, size_t len) {
        check_room(e, len);
        if (e->form == TR_FORM_INTERNAL)
                tr_write_str(e->writer, string, len);
        else
                tr_write_string(e->writer, string, len);
}

static void write_number_key(struct encoder *e, int index) {
        char text[TR_FLOAT_TEXT_MAX];

        if (e->form != TR_FORM_PLAIN) {
                if (lua_isinteger(e->L, index))
                        tr_write_int(e->writer, lua_tointeger(e->L, index));
                else
                        tr_write_float(e->writer, lua_tonumber(e->L, index));
                return;
        }
        if (lua_isinteger(e->L, index))
                snprintf(text, sizeof(text), "%lld", (long long)lua_tointeger(e->L, index));
        else
                tr_float_format(lua_tonumber(e->L, index), text);
        tr_write_text(e->writer, text);
}

static void write_key(struct encoder *e, int index) {
        const char *string;
        bool truth;
        size_t len;

        switch (lua_type(e->L, index)) {
        case LUA_TSTRING:
                string = lua_tolstring(e->L, index, &len);
                write_string(e, string, len);
                break;
        case LUA_TNUMBER:
                write_number_key(e, index);
                break;
        case LUA_TBOOLEAN:
                truth = lua_toboolean(e->L, index);
                if (e->form == TR_FORM_PLAIN)
                        tr_write_text(e->writer, truth ? "true" : "false");
                else
                        tr_write_bool(e->writer, truth);
                break;
        default:
                refuse_key(e, index);
        }
}

/* The pairs of a table as a map. How many there are is known behind the last. */
static void encode_pairs(struct encoder *e, int index) {
        struct tr_path_step *step = e->path.steps + e->path.depth - 1;
        size_t start = e->writer->len;
        int key = lua_gettop(e->L) + 1;
        uint8_t more[4];
        uint32_t count;

        tr_write_map(e->writer, 0);
        step->value = key + 1;
        step->place = 0;
        lua_pushnil(e->L);
        for (count = 0; lua_next(e->L, index); count++) {
                write_key(e, key);
                encode_value(e, key + 1);
                lua_settop(e->L, key);
        }
        if (count == 0 || tr_writer_error(e->writer))
                return;
        if (count < 16) {
                e->writer->data[start] |= (uint8_t)count;
                return;
        }
        /* the head grows from one byte to three or five */
        put_be32(more, count);
        if (count <= UINT16_MAX)
                insert(e->writer, start + 1, more + 2, 2);
        else
                insert(e->writer, start + 1, more, 4);
        e->writer->data[start] = count <= UINT16_MAX ? 0xde : 0xdf;
}

/* Elements 1 to `count` as an array; what is nil between them becomes null. */
static void encode_elements(struct encoder *e, int index, uint32_t count) {
        struct tr_path_step *step = e->path.steps + e->path.depth - 1;
        int value = lua_gettop(e->L) + 1;

        tr_write_array(e->writer, count);
        step->value = value;
        for (uint32_t i = 1; i <= count; i++) {
                step->place = i;
                lua_rawgeti(e->L, index, i);
                encode_value(e, value);
                lua_settop(e->L, value - 1);
        }
}

/* Whether the keys of a table whose border is `count`, above 0, are exactly 1 to count. */
static bool is_sequence(lua_State *L, int index, lua_Unsigned count) {
        lua_Unsigned keys = 0;

        for (lua_pushnil(L); lua_next(L, index); keys++) {
                lua_pop(L, 1);
                /* below 1 wraps around */
                if (!lua_isinteger(L, -1) || (lua_Unsigned)lua_tointeger(L, -1) - 1 >= count) {
                        lua_pop(L, 1);
                        return false;
                }
        }
        return keys == count;
}

/* A table marked as an array has as many elements as its greatest key says, and no key of another kind. */
static uint32_t marked_count(struct encoder *e, int index) {
        lua_Integer count = 0;

        for (lua_pushnil(e->L); lua_next(e->L, index); lua_pop(e->L, 1)) {
                lua_Integer key = lua_isinteger(e->L, -2) ? lua_tointeger(e->L, -2) : 0;

                if (key < 1) {
                        const char *path = tr_path_push(e->L, &e->path, e->path.depth - 1);

                        tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path,
                                           "a table marked as an array may not have other keys than 1 and up: `%s` has",
                                           path);
                }
                if (key > count)
                        count = key;
        }
        /* a byte each, at least */
        check_room(e, (size_t)count);
        return (uint32_t)count;
}

static void encode_plain_table(struct encoder *e, int index, enum tr_mark mark) {
        const uint8_t payload = (uint8_t)mark;
        lua_Unsigned count;

        if (mark != TR_MARK_NONE && e->form == TR_FORM_INTERNAL)
                tr_write_ext(e->writer, TR_EXT_MARK, &payload, 1);
        if (mark == TR_MARK_ARRAY) {
                encode_elements(e, index, marked_count(e, index));
                return;
        }
        count = mark == TR_MARK_NONE ? lua_rawlen(e->L, index) : 0;
        if (count > 0 && count <= UINT32_MAX && is_sequence(e->L, index, count)) {
                encode_elements(e, index, (uint32_t)count);
                return;
        }
        /* The border says nothing of an empty table: that is an array, unless it is marked. */
        if (count == 0 && mark == TR_MARK_NONE) {
                lua_pushnil(e->L);
                if (!lua_next(e->L, index)) {
                        tr_write_array(e->writer, 0);
                        return;
                }
                lua_pop(e->L, 2);
        }
        encode_pairs(e, index);
}

/* The instance of the class whose name is at the top of the stack. */
static void encode_instance(struct encoder *e, int index) {
        size_t len, start = e->writer->len;
        const char *name = lua_tolstring(e->L, -1, &len);
        uint8_t head[6] = { 0xc9, [5] = TR_EXT_INSTANCE };

        if (e->form == TR_FORM_INTERNAL)
                tr_write_ext(e->writer, TR_EXT_CLASS, name, len);
        if (e->form != TR_FORM_TYPED) {
                encode_pairs(e, index);
                return;
        }
        /* The payload's length stands in front of it. */
        tr_write_raw(e->writer, head, sizeof(head));
        tr_write_array(e->writer, 2);
        tr_write_str(e->writer, name, len);
        encode_pairs(e, index);
        if (!tr_writer_error(e->writer))
                put_be32(e->writer->data + start + 1, (uint32_t)(e->writer->len - start - sizeof(head)));
}

/* The table at the index, which has the metatable that is at the top of the stack. */
static void encode_with_metatable(struct encoder *e, int index) {
        enum tr_mark mark = tr_mark_of(e->L, index);

        if (mark != TR_MARK_NONE) {
                encode_plain_table(e, index, mark);
                return;
        }
        if (tr_push_class_name(e->L, -1)) {
                lua_pushliteral(e->L, "__mode");
                if (lua_rawget(e->L, -3) == LUA_TNIL) {
                        lua_pop(e->L, 1);
                        encode_instance(e, index);
                        return;
                }
        } else if (tr_script_is_failure(e->L, index)) {
                encode_plain_table(e, index, TR_MARK_MAP);
                return;
        }
        e->path.depth--;
        refuse(e, tr_value_kind(e->L, index));
}

/* Writes a reference and answers true where the container at the index was written already, or refuses the cycle. */
static bool was_written(struct encoder *e, int index) {
        const void *container = lua_topointer(e->L, index);
        uint8_t payload[4];
        uint32_t number;

        if (e->form == TR_FORM_INTERNAL) {
                if (!tr_seen_add(&e->seen, e->L, container, &number))
                        return false;
                put_be32(payload, number);
                tr_write_ext(e->writer, TR_EXT_REFERENCE, payload, sizeof(payload));
                e->shared = true;
                return true;
        }
        for (int level = 1; level <= e->path.depth; level++)
                if (lua_topointer(e->L, container_at(e, level)) == container)
                        refuse(e, "a cycle");
        return false;
}

static void encode_table(struct encoder *e, int index) {
        int top = lua_gettop(e->L);

        if (was_written(e, index))
                return;
        if (e->path.depth == TR_NESTING_MAX) {
                const char *path = tr_path_push(e->L, &e->path, e->path.depth);

                tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path,
                                   "a message may not be nested deeper than " TR_NESTING_TEXT " levels: `%s` is", path);
        }
        if (!lua_checkstack(e->L, SLOTS_PER_LEVEL))
                tr_script_raise(e->L, TR_CODE_NO_MEMORY, "no memory for the stack that a message needs");
        check_room(e, 1);

        e->path.depth++;
        if (lua_getmetatable(e->L, index))
                encode_with_metatable(e, index);
        else
                encode_plain_table(e, index, TR_MARK_NONE);
        e->path.depth--;
        lua_settop(e->L, top);
}

static void encode_handle(struct encoder *e, const struct tr_handle *handle) {
        char text[TR_HANDLE_TEXT_MAX + 1];
        size_t len;

        if (e->form != TR_FORM_PLAIN) {
                tr_write_handle(e->writer, handle);
                return;
        }
        len = tr_handle_format(handle, text);
        tr_write_str(e->writer, text, len);
}

static void encode_time(struct encoder *e, const struct tr_time *time) {
        char text[TR_TIME_TEXT_MAX];
        size_t len;

        if (e->form != TR_FORM_PLAIN) {
                tr_write_time(e->writer, time);
                return;
        }
        len = tr_time_format(time, text);
        tr_write_str(e->writer, text, len);
}

static void encode_userdata(struct encoder *e, int index) {
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
                check_room(e, len);
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
                check_room(e, bytes->len);
                if (e->form != TR_FORM_INTERNAL || !was_written(e, index))
                        tr_write_bin(e->writer, bytes->data, bytes->len);
                return;
        }
        time = tr_to_time(e->L, index);
        if (!time)
                refuse(e, tr_value_kind(e->L, index));
        encode_time(e, time);
}

static void encode_light(struct encoder *e, int index) {
        static const uint8_t any = 0;

        if (!tr_is_null(e->L, index))
                refuse(e, tr_value_kind(e->L, index));
        if (e->form == TR_FORM_INTERNAL && e->path.depth == 0)
                tr_write_ext(e->writer, TR_EXT_NULL, &any, 1);
        else
                tr_write_nil(e->writer);
}

/* The value at the index, which for one in a container is where the innermost step of the path says. */
static void encode_value(struct encoder *e, int index) {
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
                write_string(e, string, len);
                break;
        case LUA_TTABLE:
                encode_table(e, index);
                break;
        case LUA_TUSERDATA:
                encode_userdata(e, index);
                break;
        case LUA_TLIGHTUSERDATA:
                encode_light(e, index);
                break;
        default:
                refuse(e, tr_value_kind(e->L, index));
        }
}

void tr_codec_encode(lua_State *L, int first, int count, enum tr_form form, const char *what, struct tr_writer *writer) {
        static const uint8_t shared[] = { 0xd4, TR_EXT_SHARED, 0 };
        uint64_t heap_max_bytes = tr_vm_of(L)->alloc.max_bytes;
        size_t bytes_max = heap_max_bytes > MESSAGE_BYTES_MIN ? heap_max_bytes : MESSAGE_BYTES_MIN;
        size_t start = writer->len;
        struct encoder e;
        int top;

        luaL_checkstack(L, SLOTS_PER_LEVEL, NULL);
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
                encode_value(&e, e.root);
        }
        if (e.shared)
                insert(writer, start, shared, sizeof(shared));
        lua_settop(L, top);
        if (tr_writer_error(writer))
                tr_script_raise(L, TR_CODE_NO_MEMORY, "no memory for a message of %zu bytes", writer->len - start);
}
