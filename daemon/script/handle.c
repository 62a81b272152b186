/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles as Lua values.
 *
 * One handle is one object in a VM, so that == and table keys need nothing of ours: a weak cache by the handle's 16
 * bytes finds the one that exists. Reading any name off a handle is a message (daemon/script/handle_message.c); nothing
 * built in is on it, so no handler's name is taken.
 *
 * An object holds a reference to its target: that is what keeps how an actor ended for as long as a VM can ask.
 */
#include <stdlib.h>

#include "daemon/core/actor.h"
#include "daemon/core/system.h"
#include "daemon/core/target.h"
#include "daemon/script/box.h"
#include "daemon/script/held.h"
#include "daemon/script/open.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

struct held_target {
        struct tr_held held; /* first */
        struct tr_target *target;
};

struct handle_box {
        const void *tag;
        struct held_target *held; /* NULL: unknown, and after collection */
        struct tr_handle handle;
};

static const char handle_tag;

static void make_metatable(lua_State *L);
/* The registry's key of the cache: handle's bytes to object, weak. */
static const char cache_key;

const struct tr_handle *tr_to_handle(lua_State *L, int index, struct tr_target **ret_target) {
        struct handle_box *box = tr_box_to(L, index, &handle_tag);

        if (!box)
                return NULL;
        if (ret_target)
                *ret_target = box->held ? box->held->target : NULL;
        return &box->handle;
}

const struct tr_handle *tr_check_handle(lua_State *L, int index, const char *function, struct tr_target **ret_target) {
        const struct tr_handle *handle = tr_to_handle(L, index, ret_target);

        if (!handle)
                tr_value_misuse(L, function, index, "a handle");
        return handle;
}

static void target_release(struct tr_vm *vm, struct tr_held *held) {
        struct held_target *target = (struct held_target *)held;

        tr_target_unref(target->target);
        free(target);
}

/* Makes an object hold `target` (borrowed), or, where that is NULL, what the registry knows under its handle. */
static void hold(lua_State *L, struct handle_box *box, struct tr_target *target) {
        struct held_target *held = malloc(sizeof(*held));

        if (!held)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "no memory for a handle");
        held->held.release = target_release;
        held->target = target ? tr_target_ref(target)
                              : tr_registry_find(&tr_vm_of(L)->actor->target.system->registry, &box->handle);
        if (!held->target) {
                free(held);
                return;
        }
        tr_held_add(L, &held->held);
        box->held = held;
}

/* Pushes the object of a handle. `target` is borrowed; NULL: to be looked up where the object is new. */
static void push_handle(lua_State *L, const struct tr_handle *handle, struct tr_target *target) {
        struct handle_box *box;

        lua_rawgetp(L, LUA_REGISTRYINDEX, &cache_key);
        lua_pushlstring(L, (const char *)handle->bytes, sizeof(handle->bytes));
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL) {
                box = lua_touserdata(L, -1);
                if (!box->held && target)
                        hold(L, box, target);
                lua_replace(L, -3);
                lua_pop(L, 1);
                return;
        }
        lua_pop(L, 1);

        box = tr_box_push(L, &handle_tag, sizeof(*box), 1);
        box->held = NULL;
        box->handle = *handle;
        tr_box_seal(L, &handle_tag, make_metatable);
        hold(L, box, target);

        lua_pushvalue(L, -1);
        lua_insert(L, -4);
        lua_rawset(L, -3);
        lua_pop(L, 1);
}

void tr_push_handle(lua_State *L, struct tr_target *target) {
        push_handle(L, &target->handle, target);
}

void tr_push_handle_of(lua_State *L, const struct tr_handle *handle) {
        push_handle(L, handle, NULL);
}

static int handle_collect(lua_State *L) {
        struct handle_box *box = lua_touserdata(L, 1);
        struct held_target *held = box->held;

        box->held = NULL;
        tr_held_release(L, held ? &held->held : NULL);
        return 0;
}

static int handle_index(lua_State *L) {
        const char *handler;
        size_t len;

        if (lua_type(L, 2) != LUA_TSTRING)
                tr_value_misuse(L, "a handle", 2, "the name of a handler");
        handler = lua_tolstring(L, 2, &len);
        tr_push_message(L, 1, handler, len);
        return 1;
}

static int handle_newindex(lua_State *L) {
        tr_script_raise(L, TR_CODE_BAD_REQUEST, "a handle: nothing can be set on it");
}

/* The name and the first eight digits: all that may be shown of a handle, which is a permission. */
static int handle_tostring(lua_State *L) {
        struct handle_box *box = lua_touserdata(L, 1);
        char digits[TR_HANDLE_SHORT + 1];
        const char *name;

        if (box->held)
                name = box->held->target->label;
        else
                name = tr_handle_is_pool(&box->handle) ? "pool" : "actor";
        tr_handle_format_short(&box->handle, digits);
        lua_pushfstring(L, "%s %s", name, digits);
        return 1;
}

/* handle(text) */
static int library_handle(lua_State *L) {
        struct tr_handle handle;
        const char *text;
        size_t len;

        text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
        if (!text || !tr_handle_parse(text, len, &handle))
                tr_value_misuse(L, "handle", 1, "the text of a handle");
        tr_push_handle_of(L, &handle);
        return 1;
}

/* text(h) */
static int library_text(lua_State *L) {
        const struct tr_handle *handle = tr_check_handle(L, 1, "text", NULL);
        char text[TR_HANDLE_TEXT_MAX + 1];

        lua_pushlstring(L, text, tr_handle_format(handle, text));
        return 1;
}

static void make_metatable(lua_State *L) {
        static const luaL_Reg metamethods[] = {
                { "__gc", handle_collect },
                { "__index", handle_index },
                { "__newindex", handle_newindex },
                { "__tostring", handle_tostring },
                { NULL, NULL },
        };

        tr_box_metatable(L, &handle_tag, "handle", metamethods);
}

void tr_open_handles(lua_State *L) {
        tr_box_weak_values(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &cache_key);
}

const luaL_Reg tr_handle_functions[] = {
        { "handle", library_handle },
        { "text", library_text },
        { NULL, NULL },
};
