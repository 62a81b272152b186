/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte buffers as Lua values: a length, and storage with room for at least that, which append makes larger by half
 * again and more.
 */
#include <string.h>

#include "daemon/script/box.h"
#include "daemon/script/open.h"
#include "daemon/script/storage.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* The first room that append makes. */
#define ROOM_MIN 64

static const char bytes_tag;

static void make_metatable(lua_State *L);

struct tr_bytes *tr_to_bytes(lua_State *L, int index) {
        return tr_box_to(L, index, &bytes_tag);
}

static struct tr_bytes *check_bytes(lua_State *L, const char *function) {
        struct tr_bytes *bytes = tr_to_bytes(L, 1);

        if (!bytes)
                tr_value_misuse(L, function, 1, "a byte buffer");
        return bytes;
}

static size_t room_of(const struct tr_bytes *bytes) {
        return bytes->storage ? bytes->storage->room : 0;
}

static uint8_t *data_of(const struct tr_bytes *bytes) {
        return bytes->storage ? bytes->storage->data : NULL;
}

struct tr_bytes *tr_push_bytes(lua_State *L, const void *data, size_t len) {
        struct tr_bytes *bytes = tr_box_push(L, &bytes_tag, sizeof(*bytes), 0);

        *bytes = (struct tr_bytes){ .tag = &bytes_tag };
        tr_box_seal(L, &bytes_tag, make_metatable);
        if (len == 0)
                return bytes;

        bytes->storage = tr_storage_grow(L, NULL, len);
        if (data)
                memcpy(bytes->storage->data, data, len);
        else
                memset(bytes->storage->data, 0, len);
        bytes->len = len;
        return bytes;
}

static int bytes_collect(lua_State *L) {
        struct tr_bytes *bytes = lua_touserdata(L, 1);
        struct tr_storage *storage = bytes->storage;

        bytes->storage = NULL;
        bytes->len = 0;
        tr_held_release(L, storage ? &storage->held : NULL);
        return 0;
}

/* The integer at an index, or `otherwise` where there is none. */
static lua_Integer integer_or(lua_State *L, int index, const char *function, lua_Integer otherwise) {
        lua_Integer integer;
        int is_integer;

        if (lua_isnoneornil(L, index))
                return otherwise;
        integer = lua_tointegerx(L, index, &is_integer);
        if (!is_integer || lua_type(L, index) != LUA_TNUMBER)
                tr_value_misuse(L, function, index, "an integer");
        return integer;
}

/* The part that (i, j) means at indices 2 and 3, with the rules of string.sub: negative counts from the end. */
static const uint8_t *part(lua_State *L, const struct tr_bytes *bytes, const char *function, size_t *ret_len) {
        lua_Integer len = (lua_Integer)bytes->len;
        lua_Integer i = integer_or(L, 2, function, 1);
        lua_Integer j = integer_or(L, 3, function, -1);

        if (i < 0)
                i = i < -len ? 1 : len + i + 1;
        else if (i == 0)
                i = 1;
        if (j > len)
                j = len;
        else if (j < 0)
                j = j < -len ? 0 : len + j + 1;
        *ret_len = i > j ? 0 : (size_t)(j - i + 1);
        return *ret_len > 0 ? bytes->storage->data + (i - 1) : NULL;
}

/* b:sub(i, j) */
static int bytes_sub(lua_State *L) {
        struct tr_bytes *bytes = check_bytes(L, "bytes.sub");
        const uint8_t *data;
        size_t len;

        data = part(L, bytes, "bytes.sub", &len);
        tr_push_bytes(L, data, len);
        return 1;
}

/* b:string(i, j) */
static int bytes_string(lua_State *L) {
        struct tr_bytes *bytes = check_bytes(L, "bytes.string");
        const uint8_t *data;
        size_t len;

        data = part(L, bytes, "bytes.string", &len);
        lua_pushlstring(L, (const char *)data, len);
        return 1;
}

static uint8_t check_byte(lua_State *L, int index, const char *function) {
        int is_integer;
        lua_Integer byte = lua_tointegerx(L, index, &is_integer);

        if (!is_integer || lua_type(L, index) != LUA_TNUMBER || byte < 0 || byte > 255)
                tr_value_misuse(L, function, index, "a byte (0 to 255)");
        return (uint8_t)byte;
}

/* b:append(x), x being a string, a buffer (also itself), or one byte as a number. Answers b. */
static int bytes_append(lua_State *L) {
        struct tr_bytes *bytes = check_bytes(L, "bytes.append");
        struct tr_bytes *other = tr_to_bytes(L, 2);
        const void *data;
        uint8_t byte;
        size_t len, room;

        if (other) {
                data = data_of(other);
                len = other->len;
        } else if (lua_type(L, 2) == LUA_TSTRING) {
                data = lua_tolstring(L, 2, &len);
        } else if (lua_type(L, 2) == LUA_TNUMBER) {
                byte = check_byte(L, 2, "bytes.append");
                data = &byte;
                len = 1;
        } else {
                tr_value_misuse(L, "bytes.append", 2, "a string, a byte buffer or a byte");
        }
        room = room_of(bytes);
        if (len > room - bytes->len) {
                room += room / 2 > len ? room / 2 : len;
                bytes->storage = tr_storage_grow(L, bytes->storage, room < ROOM_MIN ? ROOM_MIN : room);
                if (other)
                        data = data_of(other); /* may be this buffer, which has moved */
        }
        if (len > 0)
                memcpy(data_of(bytes) + bytes->len, data, len);
        bytes->len += len;
        lua_settop(L, 1);
        return 1;
}

/* b[i], and the methods, which are in the first upvalue. */
static int bytes_index(lua_State *L) {
        struct tr_bytes *bytes = lua_touserdata(L, 1);
        lua_Integer at;
        int is_integer;

        if (lua_type(L, 2) != LUA_TNUMBER) {
                lua_pushvalue(L, 2);
                lua_rawget(L, lua_upvalueindex(1));
                return 1;
        }
        at = lua_tointegerx(L, 2, &is_integer);
        if (is_integer && at >= 1 && (lua_Unsigned)at <= bytes->len)
                lua_pushinteger(L, bytes->storage->data[at - 1]);
        else
                lua_pushnil(L);
        return 1;
}

static int bytes_newindex(lua_State *L) {
        struct tr_bytes *bytes = lua_touserdata(L, 1);
        int is_integer;
        lua_Integer at = lua_tointegerx(L, 2, &is_integer);

        if (!is_integer || lua_type(L, 2) != LUA_TNUMBER || at < 1 || (lua_Unsigned)at > bytes->len) {
                lua_pushfstring(L, "a place in a buffer of %I bytes", (LUAI_UACINT)bytes->len);
                tr_value_misuse(L, "bytes", 2, lua_tostring(L, -1));
        }
        bytes->storage->data[at - 1] = check_byte(L, 3, "bytes");
        return 0;
}

static int bytes_len(lua_State *L) {
        struct tr_bytes *bytes = lua_touserdata(L, 1);

        lua_pushinteger(L, (lua_Integer)bytes->len);
        return 1;
}

static int bytes_tostring(lua_State *L) {
        struct tr_bytes *bytes = lua_touserdata(L, 1);

        lua_pushlstring(L, (const char *)data_of(bytes), bytes->len);
        return 1;
}

static int bytes_equal(lua_State *L) {
        struct tr_bytes *a = tr_to_bytes(L, 1);
        struct tr_bytes *b = tr_to_bytes(L, 2);

        lua_pushboolean(L, a && b && a->len == b->len &&
                                   (a->len == 0 || memcmp(a->storage->data, b->storage->data, a->len) == 0));
        return 1;
}

/* bytes(n): n zeroes; bytes(s): a copy of a string's or a buffer's content. */
static int library_bytes(lua_State *L) {
        struct tr_bytes *other = tr_to_bytes(L, 1);
        lua_Integer count;
        const char *text;
        int is_integer;
        size_t len;

        if (other) {
                tr_push_bytes(L, data_of(other), other->len);
                return 1;
        }
        if (lua_type(L, 1) == LUA_TSTRING) {
                text = lua_tolstring(L, 1, &len);
                tr_push_bytes(L, text, len);
                return 1;
        }
        count = lua_tointegerx(L, 1, &is_integer);
        if (!is_integer || count < 0)
                tr_value_misuse(L, "bytes", 1, "a string or a number of bytes");
        tr_push_bytes(L, NULL, (size_t)count);
        return 1;
}

static void make_metatable(lua_State *L) {
        static const luaL_Reg metamethods[] = {
                { "__eq", bytes_equal },          { "__gc", bytes_collect },        { "__len", bytes_len },
                { "__newindex", bytes_newindex }, { "__tostring", bytes_tostring }, { NULL, NULL },
        };
        static const luaL_Reg methods[] = {
                { "append", bytes_append },
                { "string", bytes_string },
                { "sub", bytes_sub },
                { NULL, NULL },
        };

        tr_box_metatable(L, &bytes_tag, "bytes", metamethods);
        luaL_newlib(L, methods);
        lua_pushcclosure(L, bytes_index, 1);
        lua_setfield(L, -2, "__index");
}

const luaL_Reg tr_bytes_functions[] = {
        { "bytes", library_bytes },
        { NULL, NULL },
};
