/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What `info` says of an actor's code.
 *
 * Whoever asks is on another thread and never looks into a VM: the pairs are encoded once, when the module was
 * loaded, and given to the actor, under its lock.
 */

#include "daemon/script/describe.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/script/vm.h"

/* Encoded pairs; freed with free() by core. */
struct description {
        uint32_t pairs;
        size_t bytes;
        uint8_t data[];
};

/* Adds the names in the table of handlers on top to the array at `names`; pops it. */
static void collect_names(lua_State *L, int names) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
                lua_pop(L, 1);
                lua_pushvalue(L, -1);
                lua_rawseti(L, names, (lua_Integer)lua_rawlen(L, names) + 1);
        }
        lua_pop(L, 1);
}

/* The strings of the array on top in order, by insertion: there are few. */
static void sort_names(lua_State *L) {
        lua_Integer count = (lua_Integer)lua_rawlen(L, -1);

        for (lua_Integer i = 2; i <= count; i++) {
                for (lua_Integer at = i; at > 1; at--) {
                        lua_rawgeti(L, -1, at - 1);
                        lua_rawgeti(L, -2, at);
                        if (!lua_compare(L, -1, -2, LUA_OPLT)) {
                                lua_pop(L, 2);
                                break;
                        }
                        lua_rawseti(L, -3, at - 1);
                        lua_rawseti(L, -2, at);
                }
        }
}

/* Writes the handler whose name is on top. */
static void write_handler(lua_State *L, struct tr_writer *writer) {
        lua_Debug function;
        const char *name;
        bool is_async;
        size_t len;

        name = lua_tolstring(L, -1, &len);
        tr_vm_push(L, TR_PIN_ON);
        lua_pushvalue(L, -2);
        is_async = lua_rawget(L, -2) == LUA_TNIL;
        if (is_async) {
                tr_vm_push(L, TR_PIN_ASYNC);
                lua_pushvalue(L, -4);
                lua_rawget(L, -2);
        }
        lua_getinfo(L, ">u", &function);
        lua_pop(L, is_async ? 3 : 1);

        tr_write_map(writer, 3);
        tr_write_text(writer, "name");
        tr_write_string(writer, name, len);
        tr_write_text(writer, "async");
        tr_write_bool(writer, is_async);
        tr_write_text(writer, "params");
        tr_write_int(writer, function.nparams > 0 ? function.nparams - 1 : 0); /* without self */
}

static void write_handlers(lua_State *L, struct tr_writer *writer) {
        lua_Integer count;

        lua_newtable(L);
        tr_vm_push(L, TR_PIN_ON);
        collect_names(L, lua_gettop(L) - 1);
        tr_vm_push(L, TR_PIN_ASYNC);
        collect_names(L, lua_gettop(L) - 1);
        sort_names(L);
        count = (lua_Integer)lua_rawlen(L, -1);
        tr_write_array(writer, (uint32_t)count);
        for (lua_Integer i = 1; i <= count; i++) {
                lua_rawgeti(L, -1, i);
                write_handler(L, writer);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
}

void tr_describe_publish(lua_State *L, const char *module) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_writer *writer = &vm->scratch;
        struct description *description;

        luaL_checkstack(L, LUA_MINSTACK, NULL);
        tr_writer_reset(writer);
        tr_write_text(writer, "module");
        tr_write_text(writer, module);
        tr_write_text(writer, "hash");
        tr_write_text(writer, vm->source_hash);
        if (!vm->actor->replica) {
                tr_write_text(writer, "handlers");
                write_handlers(L, writer);
        }
        description = tr_writer_error(writer) == 0 ? malloc(sizeof(*description) + writer->len) : NULL;
        if (!description)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        description->pairs = vm->actor->replica ? 2 : 3;
        description->bytes = writer->len;
        memcpy(description->data, writer->data, writer->len);

        tr_lock_acquire(&vm->actor->target.lock);
        vm->actor->behaviour_info = description;
        tr_lock_release(&vm->actor->target.lock);
}

uint32_t tr_describe(struct tr_actor *actor, struct tr_writer *writer) {
        const struct description *description;
        uint32_t pairs = 0;

        tr_lock_acquire(&actor->target.lock);
        description = actor->behaviour_info;
        if (description) {
                tr_write_raw(writer, description->data, description->bytes);
                pairs = description->pairs;
        }
        tr_lock_release(&actor->target.lock);
        return pairs;
}
