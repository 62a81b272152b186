/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack to Lua values.
 *
 * The bytes are another VM's (the internal form) or a peer's, which the frame scanner has passed; neither is trusted
 * for more than what it costs. A count sizes a table only where that many values can still be there, containers have at
 * most the nesting that is allowed, and nothing is owned here but by the stack, so that an error at any place leaves
 * nothing.
 *
 * A table is filled raw. A map that a table could not tell from an array is marked as a map.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/cargo.h"
#include "daemon/script/codec.h"
#include "daemon/script/extension.h"
#include "daemon/script/held.h"
#include "daemon/script/module.h"
#include "daemon/script/path.h"
#include "daemon/script/transfer.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* Stack slots for one level, beyond what is there when it begins. */
#define SLOTS_PER_LEVEL (12 + TR_HELD_SLOTS)

struct decoder {
        lua_State *L;
        struct tr_reader reader;
        bool internal;
        int shared;       /* stack index of the containers by their number; 0: nothing refers to them */
        uint32_t numbers; /* containers that have begun */
        struct tr_cargo *cargo;
        struct tr_path path;
};

static void decode_value(struct decoder *d);

/* Raises `not-sendable` about the present value; the format takes its path. */
#define refuse(d, format, ...)                                                                         \
        do {                                                                                           \
                const char *path_ = tr_path_push((d)->L, &(d)->path, (d)->path.depth);                 \
                tr_script_raise_at((d)->L, TR_CODE_NOT_SENDABLE, path_, format, path_, ##__VA_ARGS__); \
        } while (0)

static _Noreturn void refuse_bytes(struct decoder *d) {
        tr_script_raise(d->L, TR_CODE_NOT_SENDABLE, "a message that is not MessagePack cannot be read");
}

static struct tr_token next(struct decoder *d) {
        struct tr_token token;

        if (tr_read(&d->reader, &token))
                refuse_bytes(d);
        return token;
}

/* How large a table may be made at once for `count` members of at least `bytes` each. */
static int members(const struct decoder *d, uint32_t count, size_t bytes) {
        size_t possible = (size_t)(d->reader.end - d->reader.at) / bytes;

        if (count < possible)
                possible = count;
        return possible < INT32_MAX / 2 ? (int)possible : INT32_MAX / 2;
}

/* The container at the top of the stack has begun. */
static void number_container(struct decoder *d) {
        if (d->shared) {
                lua_pushvalue(d->L, -1);
                lua_rawseti(d->L, d->shared, d->numbers);
        }
        d->numbers++;
}

/* One level down: the members' values will be at the stack index `value`. */
static struct tr_path_step *enter(struct decoder *d, int value) {
        struct tr_path_step *step;

        if (d->path.depth == TR_NESTING_MAX)
                refuse(d, "a message may not be nested deeper than " TR_NESTING_TEXT " levels: `%s` is");
        if (!lua_checkstack(d->L, SLOTS_PER_LEVEL))
                tr_script_raise(d->L, TR_CODE_NO_MEMORY, "no memory for the stack that a message needs");
        step = d->path.steps + d->path.depth++;
        step->value = value;
        return step;
}

static void decode_array(struct decoder *d, uint32_t count) {
        int array = lua_gettop(d->L) + 1;
        struct tr_path_step *step = enter(d, array + 1);

        lua_createtable(d->L, members(d, count, 1), 0);
        number_container(d);
        for (uint32_t i = 1; i <= count; i++) {
                step->place = i;
                decode_value(d);
                lua_rawseti(d->L, array, i);
        }
        d->path.depth--;
}

/* Pushes a map's key. */
static void decode_key(struct decoder *d) {
        struct tr_token token = next(d);

        switch (token.type) {
        case TR_STR:
        case TR_BIN:
                lua_pushlstring(d->L, (const char *)token.data, token.len);
                return;
        case TR_INT:
                lua_pushinteger(d->L, token.integer);
                return;
        case TR_BOOL:
                lua_pushboolean(d->L, token.boolean);
                return;
        case TR_FLOAT:
                if (!isnan(token.number)) {
                        lua_pushnumber(d->L, token.number);
                        return;
                }
                break;
        default:
                break;
        }
        d->path.depth--;
        if (token.type == TR_NIL)
                refuse(d, "a message may not carry a map with a nil key: `%s` has one");
        refuse(d, "a message may not carry a map with a key that is no string, number or boolean: `%s` has one");
}

/* Refuses the key at the top of the stack where the map has it. */
static void check_unique(struct decoder *d, int map) {
        lua_pushvalue(d->L, -1);
        if (lua_rawget(d->L, map) != LUA_TNIL)
                refuse(d, "a message may not carry a map with a key twice: `%s` is there before");
        lua_pop(d->L, 1);
}

/* Fills the table at the top of the stack with pairs. Answers whether a table could not tell it from an array. */
static bool decode_pairs(struct decoder *d, uint32_t pairs) {
        int map = lua_gettop(d->L), key = map + 1;
        struct tr_path_step *step = enter(d, key + 1);
        lua_Unsigned places = 0;

        step->place = 0;
        for (uint32_t i = 0; i < pairs; i++) {
                decode_key(d);
                if (!d->internal)
                        check_unique(d, map);
                /* a float key without a fraction is an integer in a table */
                if (lua_type(d->L, key) == LUA_TNUMBER) {
                        int is_integer;
                        lua_Integer place = lua_tointegerx(d->L, key, &is_integer);

                        places += is_integer && place >= 1 && place <= (lua_Integer)pairs;
                }
                decode_value(d);
                lua_rawset(d->L, map);
        }
        d->path.depth--;
        return places == pairs;
}

static void decode_map(struct decoder *d, uint32_t pairs) {
        lua_createtable(d->L, 0, members(d, pairs, 2));
        number_container(d);
        if (decode_pairs(d, pairs))
                tr_set_mark(d->L, -1, TR_MARK_MAP);
}

/* Pushes the class of an instance; from another VM it may first have to be loaded. */
static void push_class(struct decoder *d, const char *name, size_t len) {
        const char *colon = memchr(name, ':', len);

        if (tr_push_class(d->L, name, len))
                return;
        lua_pushlstring(d->L, name, len);
        if (!d->internal || !colon)
                refuse(d, "`%s` is an instance of %s, a class that is not loaded here", lua_tostring(d->L, -2));
        tr_module_require(d->L, name, (size_t)(colon - name));
        lua_pop(d->L, 1);
        if (!tr_push_class(d->L, name, len))
                refuse(d, "`%s` is an instance of %s, which that module does not declare", lua_tostring(d->L, -2));
        lua_replace(d->L, -2);
}

/* Pushes an instance of the class of that name, whose `pairs` fields come next. */
static void decode_instance(struct decoder *d, const char *name, size_t name_len, uint32_t pairs) {
        lua_createtable(d->L, 0, members(d, pairs, 2));
        number_container(d);
        push_class(d, name, name_len);
        if (!tr_set_class(d->L, -2))
                refuse(d, "`%s` is an instance of a class with a __gc metamethod, which is refused");
        decode_pairs(d, pairs);
}

static void decode_typed_instance(struct decoder *d, const struct tr_token *token) {
        struct tr_reader outer = d->reader;
        const char *name;
        size_t name_len;
        uint32_t pairs;

        if (!tr_instance_decode(token->data, token->len, &name, &name_len, &d->reader, &pairs))
                refuse_bytes(d);
        decode_instance(d, name, name_len, pairs);
        if (d->reader.at != d->reader.end)
                refuse_bytes(d);
        d->reader = outer;
}

static void decode_message(struct decoder *d, const struct tr_token *token) {
        struct tr_handle handle;
        const char *handler;
        size_t len;

        if (!tr_message_decode(token->data, token->len, &handle, &handler, &len))
                refuse_bytes(d);
        tr_push_handle_of(d->L, &handle);
        tr_push_message(d->L, -1, handler, len);
        lua_replace(d->L, -2);
}

static void decode_time(struct decoder *d, const struct tr_token *token) {
        struct tr_time time;

        if (!tr_time_decode(token->data, token->len, &time))
                refuse_bytes(d);
        tr_push_time(d->L, &time);
}

static void decode_handle(struct decoder *d, const struct tr_token *token) {
        struct tr_handle handle;

        if (token->len != sizeof(handle.bytes))
                refuse_bytes(d);
        memcpy(handle.bytes, token->data, sizeof(handle.bytes));
        tr_push_handle_of(d->L, &handle);
}

static uint32_t number_of(struct decoder *d, const struct tr_token *token) {
        uint32_t number = 0;

        if (token->len != sizeof(number))
                refuse_bytes(d);
        for (int i = 0; i < 4; i++)
                number = number << 8 | token->data[i];
        return number;
}

static void decode_reference(struct decoder *d, const struct tr_token *token) {
        if (!d->shared || lua_rawgeti(d->L, d->shared, number_of(d, token)) == LUA_TNIL)
                refuse_bytes(d);
}

/* Pushes a buffer that will take a block of the cargo. */
static void decode_block(struct decoder *d, const struct tr_token *token) {
        uint32_t number = number_of(d, token);

        if (!d->cargo || number >= d->cargo->count || d->cargo->blocks[number].taker)
                refuse_bytes(d);
        d->cargo->blocks[number].taker = tr_push_bytes(d->L, NULL, 0);
        number_container(d);
}

static void decode_marked(struct decoder *d, const struct tr_token *token) {
        enum tr_mark mark = token->len == 1 ? token->data[0] : TR_MARK_NONE;
        struct tr_token container = next(d);

        if (mark == TR_MARK_ARRAY && container.type == TR_ARRAY)
                decode_array(d, container.count);
        else if (mark == TR_MARK_MAP && container.type == TR_MAP)
                decode_map(d, container.count);
        else
                refuse_bytes(d);
        tr_set_mark(d->L, -1, mark);
}

static void decode_class(struct decoder *d, const struct tr_token *token) {
        struct tr_token fields = next(d);

        if (fields.type != TR_MAP)
                refuse_bytes(d);
        decode_instance(d, (const char *)token->data, token->len, fields.count);
}

static void decode_error(struct decoder *d) {
        struct tr_token fields = next(d);

        if (fields.type != TR_MAP)
                refuse_bytes(d);
        decode_map(d, fields.count);
        tr_script_set_failure(d->L, -1);
}

/* What only VMs write to each other. False where it is none of that. */
static bool decode_internal(struct decoder *d, const struct tr_token *token) {
        switch ((uint8_t)token->ext) {
        case TR_EXT_REFERENCE:
                decode_reference(d, token);
                return true;
        case TR_EXT_MARK:
                decode_marked(d, token);
                return true;
        case TR_EXT_CLASS:
                decode_class(d, token);
                return true;
        case TR_EXT_NULL:
                tr_push_null(d->L);
                return true;
        case TR_EXT_ERROR:
                decode_error(d);
                return true;
        case TR_EXT_BLOCK:
                decode_block(d, token);
                return true;
        default:
                return false;
        }
}

static void decode_ext(struct decoder *d, const struct tr_token *token) {
        switch (token->ext) {
        case TR_EXT_HANDLE:
                decode_handle(d, token);
                break;
        case TR_EXT_MESSAGE:
                decode_message(d, token);
                break;
        case TR_EXT_INSTANCE:
                decode_typed_instance(d, token);
                break;
        case TR_EXT_TIMESTAMP:
                decode_time(d, token);
                break;
        default:
                if (!d->internal || !decode_internal(d, token))
                        refuse(d, "a message may not carry an extension of an unknown type: `%s` is of type %d",
                               token->ext);
        }
}

/* Pushes the next value. */
static void decode_value(struct decoder *d) {
        struct tr_token token = next(d);

        switch (token.type) {
        case TR_NIL:
                if (d->path.depth > 0)
                        tr_push_null(d->L);
                else
                        lua_pushnil(d->L);
                break;
        case TR_BOOL:
                lua_pushboolean(d->L, token.boolean);
                break;
        case TR_INT:
                lua_pushinteger(d->L, token.integer);
                break;
        case TR_UINT:
                refuse(d, "a message may not carry an integer above 2^63-1: `%s` is one");
        case TR_FLOAT:
                lua_pushnumber(d->L, token.number);
                break;
        case TR_STR:
                lua_pushlstring(d->L, (const char *)token.data, token.len);
                break;
        case TR_BIN:
                tr_push_bytes(d->L, token.data, token.len);
                number_container(d);
                break;
        case TR_ARRAY:
                decode_array(d, token.count);
                break;
        case TR_MAP:
                decode_map(d, token.count);
                break;
        case TR_EXT:
                decode_ext(d, &token);
                break;
        }
}

/* Whether the bytes begin with the sign that references follow; moves past it. */
static bool starts_shared(struct tr_reader *reader) {
        static const uint8_t sign[] = { 0xd4, TR_EXT_SHARED };

        if (reader->end - reader->at < 3 || memcmp(reader->at, sign, sizeof(sign)) != 0)
                return false;
        reader->at += 3;
        return true;
}

void tr_codec_decode(lua_State *L, const uint8_t *data, size_t bytes, uint32_t count, bool internal,
                     struct tr_cargo *cargo) {
        struct decoder d;

        /* every value has a byte at least */
        if (count > bytes || !lua_checkstack(L, (int)(count < INT32_MAX / 2 ? count : INT32_MAX / 2) + SLOTS_PER_LEVEL))
                tr_script_raise(L, TR_CODE_TOO_LARGE, "a message with %u arguments is too large", (unsigned)count);
        d.L = L;
        d.reader = tr_reader(data, bytes);
        d.internal = internal;
        d.shared = 0;
        d.numbers = 0;
        d.cargo = cargo;
        for (uint32_t i = 0; cargo && i < cargo->count; i++)
                cargo->blocks[i].taker = NULL;
        d.path.what = NULL;
        d.path.depth = 0;
        if (internal && starts_shared(&d.reader)) {
                lua_newtable(L);
                d.shared = lua_gettop(L);
        }
        for (uint32_t i = 0; i < count; i++) {
                d.path.root = i + 1;
                decode_value(&d);
        }
        if (d.reader.at != d.reader.end)
                refuse_bytes(&d);
        if (d.shared)
                lua_remove(L, d.shared);
        if (cargo)
                tr_transfer_take(L, cargo);
}
