/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/script/request.h"

#include "daemon/script/codec.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"
#include "proto/name.h"

struct tr_message *tr_script_request_new(lua_State *L, const char *name, size_t name_len, size_t bytes) {
        struct tr_vm *vm = tr_vm_of(L);
        struct tr_promise *promise = tr_promise_new(L, true, 0);
        struct tr_message *message;

        promise->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_ASK);
        message = tr_message_new(TR_MESSAGE_HANDLER, name, name_len, vm->scratch.data, bytes, bytes > 0);
        if (!message) {
                tr_outstanding_take(L, promise->pending_id);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        message->caller_uid = vm->actor->target.owner_uid;
        tr_outstanding_ask(vm, promise->pending_id, message, NULL);
        /* whoever answers: it may be a process, or the store */
        message->form = TR_FORM_TYPED;
        return message;
}

void tr_script_request_made(struct tr_message *message, struct tr_failure *take_failure) {
        if (!take_failure)
                return;
        tr_message_reject(message, take_failure, TR_RAN_NO);
        tr_failure_unref(take_failure);
        tr_message_unref(message);
}

const char *tr_script_request_check_name(lua_State *L, int index, const char *function, const char *wanted, size_t *ret_len) {
        const char *name = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, ret_len) : NULL;

        if (!name || !tr_name_is_valid(name, *ret_len))
                tr_value_misuse(L, function, index, wanted);
        return name;
}

size_t tr_script_request_encode_where(lua_State *L, int options) {
        struct tr_writer *scratch = &tr_vm_of(L)->scratch;
        size_t start = scratch->len;

        options = lua_absindex(L, options);
        luaL_checkstack(L, 3, NULL);
        lua_pushliteral(L, "where");
        lua_rawget(L, options);
        lua_pushnil(L);
        /* an empty one would cross as an array */
        if (lua_next(L, -2)) {
                lua_pop(L, 2);
                tr_codec_encode_behind(L, -1, 1, TR_FORM_TYPED, "where", scratch);
        }
        lua_pop(L, 1);
        return scratch->len - start;
}
