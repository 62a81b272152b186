/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `context.entities`: the documents of the replica's own component, beside the one that an operation is given.
 *
 * Each function asks the store and answers a promise: what is written is on disk when that is fulfilled.
 */

#include "daemon/script/entities.h"

#include <string.h>

#include "daemon/core/entity.h"
#include "daemon/core/replica.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/option.h"
#include "daemon/script/request.h"
#include "daemon/script/transfer.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

/* Arguments: what they are methods of, then these. */
enum {
        SELF = 1,
        ID,
        LIST_OPTIONS = ID,
        DELETE_OPTIONS,
        VALUE = DELETE_OPTIONS,
        PUT_OPTIONS,
};

static void check_self(lua_State *L, const char *function, int arguments) {
        tr_module_refuse_at_top_level(L, function);
        if (!lua_istable(L, SELF))
                tr_value_misuse(L, function, SELF, "a context's entities (it is called with a colon)");
        lua_settop(L, arguments);
}

static void check_id(lua_State *L, const char *function, struct tr_entity_request *request) {
        if (lua_type(L, ID) == LUA_TSTRING)
                request->id = lua_tolstring(L, ID, &request->id_len);
        if (!request->id || !tr_store_text_is_valid(request->id, request->id_len))
                tr_value_misuse(L, function, ID, "an id: " TR_SCRIPT_TEXT_WANTED);
}

/* {version} */
static uint64_t check_version(lua_State *L, const char *function, int options) {
        static const struct tr_script_option known[] = { { "version", TR_SCRIPT_OPTION_VERSION, 0 } };
        uint64_t version = TR_STORE_ANY;

        if (lua_isnil(L, options))
                return version;
        if (!lua_istable(L, options))
                tr_value_misuse(L, function, options, "a table of options");
        TR_SCRIPT_OPTIONS_READ(L, options, function, known, &version);
        return version;
}

/* Whether a value begins with that byte that is a map. */
static bool is_map(uint8_t head) {
        return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
}

/* Raw, and no metatable says what it is to be. */
static bool is_empty(lua_State *L, int table) {
        if (lua_getmetatable(L, table)) {
                lua_pop(L, 1);
                return false;
        }
        lua_pushnil(L);
        if (!lua_next(L, table))
                return true;
        lua_pop(L, 2);
        return false;
}

void tr_entities_encode(lua_State *L, int index, const char *what, struct tr_writer *writer) {
        size_t start = writer->len;

        luaL_checkstack(L, 3, NULL);
        index = lua_absindex(L, index);
        if (is_empty(L, index)) {
                tr_write_map(writer, 0);
                return;
        }
        tr_codec_encode_behind(L, index, 1, TR_FORM_TYPED, what, writer);
        if (!is_map(writer->data[start]))
                tr_script_raise_at(L, TR_CODE_NOT_SENDABLE, what, "an entity is a table of fields by their names: `%s` is none", what);
}

/* Pushes the promise of what is asked for. */
static int ask(lua_State *L, const char *function, const struct tr_entity_request *request) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_message *message = tr_script_request_new(L, function, strlen(function), 0);

        tr_script_request_made(message, tr_entity_ask(vm->actor->replica->component, request, message));
        tr_vm_trim_scratch(vm);
        return 1;
}

/* entities:get(id) */
static int entities_get(lua_State *L) {
        struct tr_entity_request request = { .kind = TR_STORE_GET };

        check_self(L, "entities:get", ID);
        check_id(L, "entities:get", &request);
        return ask(L, "entities:get", &request);
}

/* entities:put(id, value, {version}) */
static int entities_put(lua_State *L) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        struct tr_entity_request request = { .kind = TR_STORE_WRITE };

        check_self(L, "entities:put", PUT_OPTIONS);
        if (!lua_isnil(L, ID))
                check_id(L, "entities:put", &request);
        if (!lua_istable(L, VALUE))
                tr_value_misuse(L, "entities:put", VALUE, "a table of fields");
        request.expect = check_version(L, "entities:put", PUT_OPTIONS);
        tr_writer_reset(scratch);
        tr_transfer_begin(tr_vm_of(L));
        tr_entities_encode(L, VALUE, "the entity", scratch);
        request.document = scratch->data;
        request.document_bytes = scratch->len;
        return ask(L, "entities:put", &request);
}

/* entities:delete(id, {version}) */
static int entities_delete(lua_State *L) {
        struct tr_entity_request request = { .kind = TR_STORE_DELETE };

        check_self(L, "entities:delete", DELETE_OPTIONS);
        check_id(L, "entities:delete", &request);
        request.expect = check_version(L, "entities:delete", DELETE_OPTIONS);
        return ask(L, "entities:delete", &request);
}

struct list_options {
        const char *sort, *after;
        uint32_t limit;
        bool has_where;
};

static const struct tr_script_option known_of_list[] = {
        { "where", TR_SCRIPT_OPTION_TABLE, offsetof(struct list_options, has_where) },
        { "sort", TR_SCRIPT_OPTION_TEXT, offsetof(struct list_options, sort) },
        { "limit", TR_SCRIPT_OPTION_COUNT, offsetof(struct list_options, limit) },
        { "after", TR_SCRIPT_OPTION_TEXT, offsetof(struct list_options, after) },
};

/* entities:list{where, sort, limit, after} */
static int entities_list(lua_State *L) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        struct list_options options = { 0 };
        struct tr_entity_request request = { .kind = TR_STORE_LIST };

        check_self(L, "entities:list", LIST_OPTIONS);
        if (!lua_isnil(L, LIST_OPTIONS)) {
                if (!lua_istable(L, LIST_OPTIONS))
                        tr_value_misuse(L, "entities:list", LIST_OPTIONS, "a table of options");
                TR_SCRIPT_OPTIONS_READ(L, LIST_OPTIONS, "entities:list", known_of_list, &options);
        }
        tr_writer_reset(scratch);
        if (options.has_where)
                request.where_bytes = tr_script_request_encode_where(L, LIST_OPTIONS);
        request.where = request.where_bytes > 0 ? scratch->data : NULL;
        request.sort = options.sort;
        request.sort_len = options.sort ? strlen(options.sort) : 0;
        request.after = options.after;
        request.after_len = options.after ? strlen(options.after) : 0;
        request.limit = options.limit;
        return ask(L, "entities:list", &request);
}

void tr_entities_push(lua_State *L) {
        static const luaL_Reg functions[] = {
                { "delete", entities_delete },
                { "get", entities_get },
                { "list", entities_list },
                { "put", entities_put },
                { NULL, NULL },
        };

        luaL_newlib(L, functions);
}
