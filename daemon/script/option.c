/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options in Lua: a table of which there are, of what type, and where their values go.
 */

#include "daemon/script/option.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/store.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/limits.h"
#include "proto/name.h"
#include "proto/quantity.h"
#include "proto/utf8.h"

/* One table of options while it is read. */
struct option_map {
        const char *function;
        const char *inside; /* the option that it is the value of, with a dot behind it; or "" */
        const struct tr_script_option *known;
        size_t known_count;
        void *destination;
};

static void read_map(lua_State *L, int index, const struct option_map *map);

_Noreturn static void refuse(lua_State *L, const struct option_map *map, const struct tr_script_option *option,
                            const char *wanted) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: the option `%s%s` wants %s", map->function, map->inside, option->key, wanted);
}

/* The number at the top, or 0 where it is none above 0. */
static uint64_t to_count(lua_State *L) {
        int is_integer;
        lua_Integer integer = lua_tointegerx(L, -1, &is_integer);

        return lua_type(L, -1) == LUA_TNUMBER && is_integer && integer > 0 ? (uint64_t)integer : 0;
}

static uint64_t to_size(lua_State *L) {
        uint64_t bytes = 0;
        const char *text;
        size_t len;

        if (lua_type(L, -1) != LUA_TSTRING)
                return to_count(L);
        text = lua_tolstring(L, -1, &len);
        return tr_size_parse(text, len, &bytes) ? bytes : 0;
}

static uint64_t to_time(lua_State *L) {
        uint64_t ms = 0;
        const char *text;
        size_t len;

        if (lua_type(L, -1) != LUA_TSTRING)
                return to_count(L);
        text = lua_tolstring(L, -1, &len);
        return tr_duration_parse(text, len, &ms) ? ms : 0;
}

static bool is_one_line(const char *text, size_t len) {
        if (len == 0 || len > TR_NAME_MAX || !tr_utf8_is_valid(text, len))
                return false;
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                        return false;
        return true;
}

/* The version at the top. False where it is none. */
static bool to_version(lua_State *L, uint64_t *ret_version) {
        int is_integer;
        lua_Integer integer = lua_tointegerx(L, -1, &is_integer);

        if (lua_type(L, -1) != LUA_TNUMBER || !is_integer || integer < 0)
                return false;
        *ret_version = (uint64_t)integer;
        return true;
}

/* The value at the top as milliseconds since 1970. */
static bool to_moment(lua_State *L, int64_t *ret_ms) {
        const struct tr_time *time = tr_to_time(L, -1);
        struct tr_time read;
        const char *text;
        size_t len;

        if (time) {
                *ret_ms = tr_time_ms(time);
                return true;
        }
        if (lua_type(L, -1) == LUA_TSTRING) {
                text = lua_tolstring(L, -1, &len);
                if (!tr_time_parse(text, len, &read))
                        return false;
                *ret_ms = tr_time_ms(&read);
                return true;
        }
        *ret_ms = (int64_t)to_count(L);
        return *ret_ms > 0;
}

/* The text at the top, where it can be an id; else NULL. */
static const char *to_text(lua_State *L) {
        size_t len;
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;

        return text && tr_store_text_is_valid(text, len) ? text : NULL;
}

/* The table on top, which is the value of an option. */
static void read_inside(lua_State *L, const struct option_map *map, const struct tr_script_option *option) {
        char inside[TR_NAME_MAX];
        const struct option_map members = { map->function, inside, option->members, option->members_count, map->destination };

        snprintf(inside, sizeof(inside), "%s.", option->key);
        read_map(L, lua_gettop(L), &members);
}

/* Reads the value on top, whose key is below it, and stays: the table holds both. */
static void read_option(lua_State *L, const struct option_map *map, const struct tr_script_option *option) {
        void *to = (char *)map->destination + option->offset;
        const char *text = NULL;
        uint64_t number;
        size_t len = 0;

        switch (option->type) {
        case TR_SCRIPT_OPTION_BOOL:
                if (!lua_isboolean(L, -1))
                        refuse(L, map, option, "true or false");
                *(bool *)to = lua_toboolean(L, -1);
                break;
        case TR_SCRIPT_OPTION_COUNT:
                number = to_count(L);
                if (number == 0 || number > UINT32_MAX)
                        refuse(L, map, option, "a whole number above 0");
                *(uint32_t *)to = (uint32_t)number;
                break;
        case TR_SCRIPT_OPTION_SIZE:
                number = to_size(L);
                if (number == 0)
                        refuse(L, map, option, "a size above 0: bytes, or text like \"64M\"");
                *(uint64_t *)to = number;
                break;
        case TR_SCRIPT_OPTION_LABEL:
        case TR_SCRIPT_OPTION_NAME:
                text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
                if (!text || (option->type == TR_SCRIPT_OPTION_NAME ? !tr_name_is_valid(text, len) : !is_one_line(text, len)))
                        refuse(L, map, option, option->type == TR_SCRIPT_OPTION_NAME ? "a name" : "one line of text");
                *(const char **)to = text;
                break;
        case TR_SCRIPT_OPTION_TEXT:
                *(const char **)to = to_text(L);
                if (!*(const char **)to)
                        refuse(L, map, option, TR_SCRIPT_TEXT_WANTED);
                break;
        case TR_SCRIPT_OPTION_VERSION:
                if (!to_version(L, (uint64_t *)to))
                        refuse(L, map, option, "a whole number, 0 or above");
                break;
        case TR_SCRIPT_OPTION_MOMENT:
                if (!to_moment(L, (int64_t *)to))
                        refuse(L, map, option,
                               "a point in time: a timestamp, RFC 3339 text, or milliseconds since 1970, above 0");
                break;
        case TR_SCRIPT_OPTION_TABLE:
                if (!lua_istable(L, -1))
                        refuse(L, map, option, "a table");
                *(bool *)to = true;
                break;
        case TR_SCRIPT_OPTION_TIME:
                number = to_time(L);
                if (number == 0)
                        refuse(L, map, option, "a time above 0: milliseconds, or text like \"200ms\"");
                *(uint64_t *)to = number > TR_NEVER / TR_NS_PER_MS ? TR_NEVER : number * TR_NS_PER_MS;
                break;
        case TR_SCRIPT_OPTION_MAP:
                if (!lua_istable(L, -1))
                        refuse(L, map, option, "a table");
                read_inside(L, map, option);
                break;
        }
}

static const struct tr_script_option *find_option(lua_State *L, const struct option_map *map, int key) {
        if (lua_type(L, key) == LUA_TSTRING)
                for (size_t i = 0; i < map->known_count; i++)
                        if (strcmp(lua_tostring(L, key), map->known[i].key) == 0)
                                return &map->known[i];
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: there is no option `%s%s`", map->function, map->inside,
                        luaL_tolstring(L, key, NULL));
}

static void read_map(lua_State *L, int index, const struct option_map *map) {
        luaL_checkstack(L, 6, NULL);
        lua_pushnil(L);
        while (lua_next(L, index)) {
                read_option(L, map, find_option(L, map, lua_gettop(L) - 1));
                lua_pop(L, 1);
        }
}

void tr_script_options_read(lua_State *L, int index, const char *function, const struct tr_script_option *known,
                            size_t known_count, void *destination) {
        const struct option_map map = { function, "", known, known_count, destination };

        read_map(L, lua_absindex(L, index), &map);
}
