/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables to MessagePack: arrays, maps, instances of classes.
 *
 * What a table is depends on its keys and its mark. Its border is no proof: keys are counted. A container that was
 * written before is a reference between VMs; towards a peer one that is open is a cycle.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/script/encode.h"
#include "daemon/script/kind.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

static _Noreturn void refuse_key(struct tr_encoder *e, int index) {
        const char *path = tr_path_push(e->L, &e->path, e->path.depth - 1);

        tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path, "a message may not carry %s as a key: `%s` has one",
                           tr_value_kind(e->L, index), path);
}

static void put_be32(uint8_t *bytes, uint32_t value) {
        for (int i = 0; i < 4; i++)
                bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

void tr_encode_number(struct tr_encoder *e, enum tr_extension type, uint32_t number) {
        uint8_t payload[4];

        put_be32(payload, number);
        tr_write_ext(e->writer, (int8_t)type, payload, sizeof(payload));
}

bool tr_encode_was_written(struct tr_encoder *e, int index) {
        const void *container = lua_topointer(e->L, index);
        uint32_t number;

        if (e->form == TR_FORM_INTERNAL) {
                if (!tr_seen_add(&e->seen, e->L, container, &number))
                        return false;
                tr_encode_number(e, TR_EXT_REFERENCE, number);
                e->shared = true;
                return true;
        }
        for (int level = 1; level <= e->path.depth; level++)
                if (lua_topointer(e->L, tr_encode_container(e, level)) == container)
                        tr_encode_refuse(e, "a cycle");
        return false;
}

/* Writes the present key, which is no string, as the text that a plain map has for it. */
static void write_key_as_text(struct tr_encoder *e, const char *text) {
        int table = tr_encode_container(e, e->path.depth);

        luaL_checkstack(e->L, 2, NULL);
        lua_pushstring(e->L, text);
        if (lua_rawget(e->L, table) != LUA_TNIL) {
                const char *path = tr_path_push(e->L, &e->path, e->path.depth);

                tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path,
                                   "a message may not carry a map with a key twice: as a text `%s` is there before", path);
        }
        lua_pop(e->L, 1);
        tr_write_text(e->writer, text);
}

static void write_number_key(struct tr_encoder *e, int index) {
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
        write_key_as_text(e, text);
}

static void write_key(struct tr_encoder *e, int index) {
        const char *string;
        bool truth;
        size_t len;

        switch (lua_type(e->L, index)) {
        case LUA_TSTRING:
                string = lua_tolstring(e->L, index, &len);
                tr_encode_string(e, string, len);
                break;
        case LUA_TNUMBER:
                write_number_key(e, index);
                break;
        case LUA_TBOOLEAN:
                truth = lua_toboolean(e->L, index);
                if (e->form == TR_FORM_PLAIN)
                        write_key_as_text(e, truth ? "true" : "false");
                else
                        tr_write_bool(e->writer, truth);
                break;
        default:
                refuse_key(e, index);
        }
}

/* The pairs of a table as a map. How many there are is known behind the last. */
static void encode_pairs(struct tr_encoder *e, int index) {
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
                tr_encode_value(e, key + 1);
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
                tr_encode_insert(e->writer, start + 1, more + 2, 2);
        else
                tr_encode_insert(e->writer, start + 1, more, 4);
        e->writer->data[start] = count <= UINT16_MAX ? 0xde : 0xdf;
}

/* Elements 1 to `count` as an array; what is nil between them becomes null. */
static void encode_elements(struct tr_encoder *e, int index, uint32_t count) {
        struct tr_path_step *step = e->path.steps + e->path.depth - 1;
        int value = lua_gettop(e->L) + 1;

        tr_write_array(e->writer, count);
        step->value = value;
        for (uint32_t i = 1; i <= count; i++) {
                step->place = i;
                lua_rawgeti(e->L, index, i);
                tr_encode_value(e, value);
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
static uint32_t marked_count(struct tr_encoder *e, int index) {
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
        tr_encode_check_room(e, (size_t)count);
        return (uint32_t)count;
}

static void encode_plain_table(struct tr_encoder *e, int index, enum tr_mark mark) {
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
static void encode_instance(struct tr_encoder *e, int index) {
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
static void encode_with_metatable(struct tr_encoder *e, int index) {
        static const uint8_t any = 0;
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
                if (e->form == TR_FORM_INTERNAL)
                        tr_write_ext(e->writer, TR_EXT_ERROR, &any, 1);
                encode_pairs(e, index);
                return;
        }
        e->path.depth--;
        tr_encode_refuse(e, tr_value_kind(e->L, index));
}

void tr_encode_table(struct tr_encoder *e, int index) {
        int top = lua_gettop(e->L), nesting = tr_vm_of(e->L)->script->nesting;

        if (tr_encode_was_written(e, index))
                return;
        if (e->path.depth == nesting) {
                const char *path = tr_path_push(e->L, &e->path, e->path.depth);

                tr_script_raise_at(e->L, TR_CODE_NOT_SENDABLE, path,
                                   "a message may not be nested deeper than %d levels: `%s` is", nesting, path);
        }
        if (!lua_checkstack(e->L, TR_ENCODE_SLOTS))
                tr_script_raise(e->L, TR_CODE_NO_MEMORY, "no memory for the stack that a message needs");
        tr_encode_check_room(e, 1);

        e->path.depth++;
        if (lua_getmetatable(e->L, index))
                encode_with_metatable(e, index);
        else
                encode_plain_table(e, index, TR_MARK_NONE);
        e->path.depth--;
        lua_settop(e->L, top);
}
