/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The options of `spawn`: which there are, of what type, and where their values go, as a table.
 */

#include "daemon/script/spawn_options.h"

#include <stddef.h>
#include <string.h>

#include "daemon/core/system.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/limits.h"
#include "proto/name.h"
#include "proto/quantity.h"
#include "proto/utf8.h"

enum type {
        OPTION_BOOL,  /* bool */
        OPTION_COUNT, /* uint32_t, above 0 */
        OPTION_SIZE,  /* uint64_t, bytes: an integer, or text with a unit; above 0 */
        OPTION_LABEL, /* const char *: one line of UTF-8 */
        OPTION_NAME,  /* const char * */
};

struct option {
        const char *key;
        enum type type;
        size_t offset; /* of the destination in struct tr_spawn_options */
};

static const struct option known[] = {
        { "heap", OPTION_SIZE, offsetof(struct tr_spawn_options, actor.heap_bytes) },
        { "mailbox", OPTION_COUNT, offsetof(struct tr_spawn_options, actor.mailbox) },
        { "mailbox_bytes", OPTION_SIZE, offsetof(struct tr_spawn_options, actor.mailbox_bytes) },
        { "async", OPTION_COUNT, offsetof(struct tr_spawn_options, actor.async) },
        { "name", OPTION_LABEL, offsetof(struct tr_spawn_options, actor.label) },
        { "detach", OPTION_BOOL, offsetof(struct tr_spawn_options, detach) },
        { "publish", OPTION_NAME, offsetof(struct tr_spawn_options, actor.publish) },
};

_Noreturn static void refuse(lua_State *L, const char *function, const struct option *option, const char *wanted) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: the option `%s` wants %s", function, option->key, wanted);
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

static bool is_one_line(const char *text, size_t len) {
        if (len == 0 || len > TR_NAME_MAX || !tr_utf8_is_valid(text, len))
                return false;
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
                        return false;
        return true;
}

/* Reads the value on top, whose key is below it, and stays: the table holds both. */
static void read_option(lua_State *L, const char *function, const struct option *option,
                        struct tr_spawn_options *options) {
        void *to = (char *)options + option->offset;
        const char *text = NULL;
        uint64_t number;
        size_t len = 0;

        switch (option->type) {
        case OPTION_BOOL:
                if (!lua_isboolean(L, -1))
                        refuse(L, function, option, "true or false");
                *(bool *)to = lua_toboolean(L, -1);
                break;
        case OPTION_COUNT:
                number = to_count(L);
                if (number == 0 || number > UINT32_MAX)
                        refuse(L, function, option, "a whole number above 0");
                *(uint32_t *)to = (uint32_t)number;
                break;
        case OPTION_SIZE:
                number = to_size(L);
                if (number == 0)
                        refuse(L, function, option, "a size above 0: bytes, or text like \"64M\"");
                *(uint64_t *)to = number;
                break;
        case OPTION_LABEL:
        case OPTION_NAME:
                text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
                if (!text || (option->type == OPTION_NAME ? !tr_name_is_valid(text, len) : !is_one_line(text, len)))
                        refuse(L, function, option, option->type == OPTION_NAME ? "a name" : "one line of text");
                *(const char **)to = text;
                break;
        }
}

static const struct option *find_option(lua_State *L, const char *function, int key) {
        if (lua_type(L, key) == LUA_TSTRING)
                for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                        if (strcmp(lua_tostring(L, key), known[i].key) == 0)
                                return &known[i];
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: there is no option `%s`", function, luaL_tolstring(L, key, NULL));
}

void tr_spawn_options_read(lua_State *L, int index, const char *function, struct tr_spawn_options *options) {
        const struct tr_system *system = tr_vm_of(L)->actor->target.system;

        index = lua_absindex(L, index);
        luaL_checkstack(L, 6, NULL);
        lua_pushnil(L);
        while (lua_next(L, index)) {
                read_option(L, function, find_option(L, function, lua_gettop(L) - 1), options);
                lua_pop(L, 1);
        }
        if (options->actor.heap_bytes && (options->actor.heap_bytes < TR_HEAP_MIN ||
                                          options->actor.heap_bytes > system->limits.heap_max_bytes))
                tr_script_raise(L, TR_CODE_BAD_REQUEST, "%s: the option `heap` is from %u to %llu bytes", function,
                                TR_HEAP_MIN, (unsigned long long)system->limits.heap_max_bytes);
}

bool tr_spawn_options_is_marked(lua_State *L, int index) {
        bool is;

        if (!lua_istable(L, index) || !lua_getmetatable(L, index))
                return false;
        tr_vm_push(L, TR_PIN_OPTIONS);
        is = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        return is;
}

/* Pushes the metatable, which the first use makes. */
static void push_metatable(lua_State *L) {
        tr_vm_push(L, TR_PIN_OPTIONS);
        if (lua_istable(L, -1))
                return;
        lua_pop(L, 1);
        lua_createtable(L, 0, 2);
        lua_pushliteral(L, "options");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        tr_vm_pin(L, TR_PIN_OPTIONS);
}

/* options(t): a copy of the table that says what it is. */
static int library_options(lua_State *L) {
        if (!lua_istable(L, 1))
                tr_value_misuse(L, "options", 1, "a table");
        lua_settop(L, 1);
        lua_newtable(L);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
                lua_pushvalue(L, -2);
                lua_insert(L, -2);
                lua_rawset(L, 2);
        }
        push_metatable(L);
        lua_setmetatable(L, 2);
        return 1;
}

const luaL_Reg tr_spawn_options_functions[] = {
        { "options", library_options },
        { NULL, NULL },
};
