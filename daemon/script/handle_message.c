/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as Lua values: a handle and the name of one of its handlers, what `c.total` is.
 *
 * One message is one object in a VM: each handle has a weak cache by name in its user value. The object holds its
 * handle and the name in user values of its own, and therefore may point into both.
 */
#include <string.h>

#include "daemon/script/box.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* User values: of a handle, its cache of messages (a table, or nil so far); of a message, its handle and the name. */
enum {
        HANDLE_MESSAGES = 1,
        MESSAGE_HANDLE = 1,
        MESSAGE_NAME,
        MESSAGE_VALUES = MESSAGE_NAME,
};

struct message_box {
        const void *tag;
        const char *handler; /* the string in MESSAGE_NAME */
        size_t handler_len;
};

static const char message_tag;

static void make_metatable(lua_State *L);

const struct tr_handle *tr_to_message(lua_State *L, int index, struct tr_target **ret_target, const char **ret_handler,
                                      size_t *ret_handler_len) {
        struct message_box *box = tr_box_to(L, index, &message_tag);
        const struct tr_handle *handle;

        if (!box)
                return NULL;
        lua_getiuservalue(L, index, MESSAGE_HANDLE);
        handle = tr_to_handle(L, -1, ret_target);
        lua_pop(L, 1);
        if (ret_handler)
                *ret_handler = box->handler;
        if (ret_handler_len)
                *ret_handler_len = box->handler_len;
        return handle;
}

/* Pushes the handle's cache of messages. */
static void push_cache(lua_State *L, int handle_index) {
        if (lua_getiuservalue(L, handle_index, HANDLE_MESSAGES) != LUA_TNIL)
                return;
        lua_pop(L, 1);
        tr_box_weak_values(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, handle_index, HANDLE_MESSAGES);
}

void tr_push_message(lua_State *L, int handle_index, const char *handler, size_t handler_len) {
        struct message_box *box;

        if (handler_len > TR_HANDLER_NAME_MAX)
                tr_script_raise(L, TR_CODE_NOT_SENDABLE, "the name of a handler has at most %d bytes",
                                TR_HANDLER_NAME_MAX);
        handle_index = lua_absindex(L, handle_index);
        push_cache(L, handle_index);
        lua_pushlstring(L, handler, handler_len);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL) {
                lua_replace(L, -3);
                lua_pop(L, 1);
                return;
        }
        lua_pop(L, 1);

        box = tr_box_push(L, &message_tag, sizeof(*box), MESSAGE_VALUES);
        box->handler = lua_tolstring(L, -2, &box->handler_len);
        lua_pushvalue(L, handle_index);
        lua_setiuservalue(L, -2, MESSAGE_HANDLE);
        lua_pushvalue(L, -2);
        lua_setiuservalue(L, -2, MESSAGE_NAME);
        tr_box_seal(L, &message_tag, make_metatable);

        lua_pushvalue(L, -1);
        lua_insert(L, -4);
        lua_rawset(L, -3);
        lua_pop(L, 1);
}

/* The name of the variable of the calling function that holds the value at the top of the stack, which is popped; "c"
 * where none does. A message does not know what its handle is called. */
static const char *variable_of_caller(lua_State *L) {
        const char *name, *found = NULL;
        int value = lua_gettop(L);
        lua_Debug caller;

        if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "f", &caller)) {
                lua_settop(L, value - 1);
                return "c";
        }
        for (int i = 1; !found && (name = lua_getlocal(L, &caller, i)); i++) {
                /* "(temporary)" and its kind are no variables */
                if (name[0] != '(' && lua_rawequal(L, -1, value))
                        found = name;
                lua_pop(L, 1);
        }
        for (int i = 1; !found && (name = lua_getupvalue(L, value + 1, i)); i++) {
                if (name[0] != '\0' && lua_rawequal(L, -1, value))
                        found = name;
                lua_pop(L, 1);
        }
        lua_settop(L, value - 1);
        return found ? found : "c";
}

static int message_call(lua_State *L) {
        struct message_box *box = lua_touserdata(L, 1);

        lua_getiuservalue(L, 1, MESSAGE_HANDLE);
        tr_script_raise(L, TR_CODE_FAULT, "a message is no function: troupe.ask(%s.%s) asks, and answers a promise",
                        variable_of_caller(L), box->handler);
}

static int message_index(lua_State *L) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "a message: there is nothing on it to be read or set");
}

/* "counter:Counter.total 1f0c9e2b": as its handle prints, with the handler behind the name. */
static int message_tostring(lua_State *L) {
        struct message_box *box = lua_touserdata(L, 1);
        const char *text, *digits;

        lua_getiuservalue(L, 1, MESSAGE_HANDLE);
        text = luaL_tolstring(L, -1, NULL);
        digits = strrchr(text, ' ');
        lua_pushlstring(L, text, (size_t)(digits - text));
        lua_pushfstring(L, "%s.%s%s", lua_tostring(L, -1), box->handler, digits);
        return 1;
}

static void make_metatable(lua_State *L) {
        static const luaL_Reg metamethods[] = {
                { "__call", message_call },
                { "__index", message_index },
                { "__newindex", message_index },
                { "__tostring", message_tostring },
                { NULL, NULL },
        };

        tr_box_metatable(L, &message_tag, "message", metamethods);
}
