/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `send` and `ask`.
 *
 * The arguments are encoded before anything else happens, so that a message that cannot be sent was not sent at all.
 * A message to an actor is in the internal form; one to a connection that listens is in the protocol's, and what is to
 * be handed over to that is copied.
 */

#include "daemon/script/send.h"

#include "daemon/core/system.h"
#include "daemon/script/codec.h"
#include "daemon/script/module.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/values.h"
#include "daemon/script/vm.h"

struct destination {
        struct tr_target *target; /* borrowed from the handle or message; NULL: nobody knows it */
        const char *handler;
        size_t handler_len;
        int first; /* index of the first argument */
        int count;
};

static struct destination check_destination(lua_State *L, const char *function) {
        struct destination to = { .first = 2 };

        if (tr_to_message(L, 1, &to.target, &to.handler, &to.handler_len))
                return to;
        if (!tr_to_handle(L, 1, &to.target))
                tr_value_misuse(L, function, 1, "a message or a handle");
        if (lua_type(L, 2) == LUA_TSTRING)
                to.handler = lua_tolstring(L, 2, &to.handler_len);
        if (!to.handler || to.handler_len > TR_HANDLER_NAME_MAX)
                tr_value_misuse(L, function, 2, "the name of a handler");
        to.first = 3;
        return to;
}

/* Encodes the arguments into the scratch. */
static void encode_arguments(lua_State *L, struct destination *to) {
        bool internal = !to->target || to->target->ops->kind != TR_TARGET_CONNECTION;
        struct tr_vm *vm = tr_vm_of(L);

        to->count = lua_gettop(L) >= to->first ? lua_gettop(L) - to->first + 1 : 0;
        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, to->first, to->count, internal ? TR_FORM_INTERNAL : TR_FORM_TYPED, NULL, &vm->scratch);
        if (tr_writer_error(&vm->scratch) != 0)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
}

/* A message with what was encoded, that nobody asks, loaded with what is handed over; NULL where memory is short. */
static struct tr_message *new_message(struct tr_vm *vm, const struct destination *to) {
        struct tr_message *message;

        message = tr_message_new(TR_MESSAGE_HANDLER, to->handler, to->handler_len, vm->scratch.data, vm->scratch.len,
                                 (uint32_t)to->count);
        tr_vm_trim_scratch(vm);
        if (!message)
                return NULL;
        message->internal = to->target->ops->kind != TR_TARGET_CONNECTION;
        message->caller_uid = vm->actor->target.owner_uid;
        if (message->internal && !tr_transfer_load(vm, message)) {
                tr_message_unref(message);
                return NULL;
        }
        return message;
}

/* Posts the message. Where it is refused its buffers are as they were. */
static enum tr_post post(lua_State *L, const struct destination *to, struct tr_message *take_message) {
        bool copied = !take_message->internal;
        enum tr_post post = tr_target_post(to->target, take_message);

        if (post != TR_POST_OK) {
                tr_transfer_reclaim(L, take_message);
                tr_target_refuse(to->target, take_message, post);
        } else if (copied) {
                tr_transfer_empty(L);
        }
        return post;
}

/* Nobody waits for a send that came too late, but it is counted. */
static void tell_refused(struct tr_vm *vm, const struct destination *to) {
        const struct tr_target *own = &vm->actor->target;
        const struct tr_refused refused = {
                .code = TR_CODE_NOT_RUNNING,
                .why = "the actor is not running",
                .target = to->target,
                .handler = to->handler,
                .handler_len = to->handler_len,
                .sender_uid = own->owner_uid,
        };

        tr_system_tell_refused(own->system, &refused);
}

static int library_send(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct destination to;
        struct tr_message *message;
        struct tr_failure *failure;
        enum tr_post outcome;

        tr_module_refuse_at_top_level(L, "send");
        to = check_destination(L, "send");
        encode_arguments(L, &to);
        if (!to.target) {
                tell_refused(vm, &to);
                return 0;
        }
        message = new_message(vm, &to);
        if (!message)
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        outcome = post(L, &to, message);
        if (outcome == TR_POST_OK)
                return 0;
        if (outcome == TR_POST_CLOSED) {
                tell_refused(vm, &to);
                return 0;
        }
        failure = tr_post_failure(outcome);
        tr_script_push_error(L, failure->code, "%s", failure->message);
        tr_failure_unref(failure);
        return lua_error(L);
}

static int library_ask(lua_State *L) {
        struct tr_vm *vm = tr_vm_of(L);
        struct destination to;
        struct tr_message *message;
        struct tr_promise *promise;

        tr_module_refuse_at_top_level(L, "ask");
        to = check_destination(L, "ask");
        encode_arguments(L, &to);
        promise = tr_promise_new(L, true, 0);
        if (!to.target) {
                tr_script_push_error(L, TR_CODE_NOT_RUNNING, "the actor is not running");
                tr_promise_settle(L, -2, true);
                return 1;
        }
        promise->pending_id = tr_outstanding_add(L, TR_OUTSTANDING_ASK);
        message = new_message(vm, &to);
        if (!message) {
                tr_outstanding_take(L, promise->pending_id);
                tr_script_raise(L, TR_CODE_NO_MEMORY, "out of memory");
        }
        tr_outstanding_ask(vm, promise->pending_id, message, to.target);
        /* refused or not, the answer comes through the mailbox */
        (void)post(L, &to, message);
        return 1;
}

const luaL_Reg tr_send_functions[] = {
        { "ask", library_ask },
        { "send", library_send },
        { NULL, NULL },
};
