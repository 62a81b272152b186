/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points in time as Lua values: seconds since 1970 and nanoseconds, immutable, ordered, printed as RFC 3339.
 */
#include <string.h>

#include "daemon/script/box.h"
#include "daemon/script/open.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

#define NSEC_MAX 999999999

struct time_box {
        const void *tag;
        struct tr_time time;
};

static const char time_tag;

const struct tr_time *tr_to_time(lua_State *L, int index) {
        struct time_box *box = tr_box_to(L, index, &time_tag);

        return box ? &box->time : NULL;
}

static void make_metatable(lua_State *L);

void tr_push_time(lua_State *L, const struct tr_time *time) {
        struct time_box *box = tr_box_push(L, &time_tag, sizeof(*box), 0);

        box->time = *time;
        tr_box_seal(L, &time_tag, make_metatable);
}

static int time_index(lua_State *L) {
        const struct tr_time *time = tr_to_time(L, 1);
        const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";

        if (strcmp(name, "sec") == 0)
                lua_pushinteger(L, time->sec);
        else if (strcmp(name, "nsec") == 0)
                lua_pushinteger(L, time->nsec);
        else
                lua_pushnil(L);
        return 1;
}

static int time_newindex(lua_State *L) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "a timestamp: nothing can be set on it");
}

/* Negative, 0 or positive, as the first is before, equal to or behind the second. */
static int compare(lua_State *L, const char *function) {
        const struct tr_time *a = tr_to_time(L, 1);
        const struct tr_time *b = tr_to_time(L, 2);

        if (!a || !b)
                tr_value_misuse(L, function, a ? 2 : 1, "a timestamp");
        if (a->sec != b->sec)
                return a->sec < b->sec ? -1 : 1;
        return (a->nsec > b->nsec) - (a->nsec < b->nsec);
}

static int time_less(lua_State *L) {
        lua_pushboolean(L, compare(L, "<") < 0);
        return 1;
}

static int time_less_or_equal(lua_State *L) {
        lua_pushboolean(L, compare(L, "<=") <= 0);
        return 1;
}

static int time_equal(lua_State *L) {
        /* == asks this of any two userdata */
        lua_pushboolean(L, tr_to_time(L, 1) && tr_to_time(L, 2) && compare(L, "==") == 0);
        return 1;
}

static int time_tostring(lua_State *L) {
        char text[TR_TIME_TEXT_MAX];

        lua_pushlstring(L, text, tr_time_format(tr_to_time(L, 1), text));
        return 1;
}

static lua_Integer check_integer(lua_State *L, int index) {
        int is_integer;
        lua_Integer integer = lua_tointegerx(L, index, &is_integer);

        if (!is_integer || lua_type(L, index) != LUA_TNUMBER)
                tr_value_misuse(L, "timestamp", index, "an integer");
        return integer;
}

/* timestamp(sec, nsec); without nsec it is 0. */
static int library_timestamp(lua_State *L) {
        lua_Integer nsec = lua_isnoneornil(L, 2) ? 0 : check_integer(L, 2);
        struct tr_time time = { .sec = check_integer(L, 1) };

        if (nsec < 0 || nsec > NSEC_MAX)
                tr_value_misuse(L, "timestamp", 2, "a number of nanoseconds (0 to 999999999)");
        time.nsec = (uint32_t)nsec;
        tr_push_time(L, &time);
        return 1;
}

static void make_metatable(lua_State *L) {
        static const luaL_Reg metamethods[] = {
                { "__eq", time_equal }, { "__index", time_index },       { "__le", time_less_or_equal },
                { "__lt", time_less },  { "__newindex", time_newindex }, { "__tostring", time_tostring },
                { NULL, NULL },
        };

        tr_box_metatable(L, &time_tag, "timestamp", metamethods);
}

const luaL_Reg tr_time_functions[] = {
        { "timestamp", library_timestamp },
        { NULL, NULL },
};
