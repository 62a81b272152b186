/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What Lua code raised, as core's failures.
 *
 * It may be anything: an object whose __tostring raises, loops or answers no string, a table that cannot be sent. So
 * each step of describing it is a protected call of its own on the main state, and what a step cannot say is left
 * out; in the end there always is a failure, since whoever waits is owed one.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/script/codec.h"
#include "daemon/script/sendable.h"
#include "daemon/script/vm.h"

/* What a step works on: its argument 2; argument 1 is the error value. */
struct describing {
        struct tr_failure *failure; /* strong; what has been made so far */
        const char *key;            /* under which a value is added */
        const char *kind;           /* of the fault */
        lua_State *failed;          /* the coroutine to trace */
};

/* The raw field of an error table as text, NULL where it is none. The table holds it. */
static const char *text_field(lua_State *L, int index, const char *key, size_t *ret_len) {
        const char *text;

        index = lua_absindex(L, index);
        lua_pushstring(L, key);
        lua_rawget(L, index);
        text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, ret_len) : NULL;
        lua_pop(L, 1);
        return text;
}

/* A failure with the code, message and ran of an error table. */
static int describe_own(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        const char *code_text, *ran_text, *message;
        size_t code_len = 0, ran_len = 0, len = 0;
        enum tr_code code = TR_CODE_FAULT;
        enum tr_ran ran;

        code_text = text_field(L, 1, "code", &code_len);
        if (code_text)
                tr_code_parse(code_text, code_len, &code);
        message = text_field(L, 1, "message", &len);
        describing->failure = tr_failure_new(code, "%.*s", (int)len, message ?: "");
        ran_text = text_field(L, 1, "ran", &ran_len);
        if (ran_text && tr_ran_parse(ran_text, ran_len, &ran))
                tr_failure_set_ran(describing->failure, ran);
        return 0;
}

/* A fault with the text of any value: its __tostring, or what kind of value it is. */
static int describe_text(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        const char *text;
        size_t len;

        if (lua_type(L, 1) == LUA_TSTRING || lua_type(L, 1) == LUA_TNUMBER ||
            luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL)
                luaL_tolstring(L, 1, NULL);
        else
                lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
        text = lua_tolstring(L, -1, &len);
        describing->failure = tr_failure_new(TR_CODE_FAULT, "%.*s", (int)len, text);
        return 0;
}

static int describe_value(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        struct tr_vm *vm = tr_vm_of(L);

        tr_writer_reset(&vm->scratch);
        tr_codec_encode(L, 1, 1, TR_FORM_TYPED, "the error", &vm->scratch);
        if (tr_writer_error(&vm->scratch) == 0)
                tr_failure_add_raw(describing->failure, describing->key, vm->scratch.data, vm->scratch.len);
        return 0;
}

/* The same for one that cannot be sent as it is, with a note on what was replaced. */
static int describe_replaced_value(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        const char *note;
        size_t len;

        lua_pushvalue(L, 1);
        tr_sendable_replace(L);
        note = lua_tolstring(L, -1, &len);
        if (note)
                tr_failure_add_text(describing->failure, "note", note, len);
        lua_pop(L, 1);
        lua_replace(L, 1);
        return describe_value(L);
}

/* An await where none can be is a kind of its own. A rejection of that kind that came from elsewhere names its
 * actor. */
static int describe_kind(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        const char *kind;
        size_t len;

        if (!tr_script_is_failure(L, 1) || text_field(L, 1, "actor", &len))
                return 0;
        kind = text_field(L, 1, "kind", &len);
        if (kind && strcmp(kind, "await") == 0)
                describing->kind = "await";
        return 0;
}

/* Where it was raised: on the coroutine that failed, and below it, where that was a wrapped one of the actor's, in
 * that one. */
static int describe_traceback(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);
        const char *text;
        size_t len;

        lua_settop(L, 1);
        tr_vm_push(L, TR_PIN_WRAP_FAILED);
        if (lua_toboolean(L, 1) && lua_rawequal(L, 1, 2)) {
                tr_vm_push(L, TR_PIN_WRAP_TRACE);
                lua_pushliteral(L, "\n");
        }
        luaL_traceback(L, describing->failed, NULL, 0);
        lua_concat(L, lua_gettop(L) - 2);
        text = lua_tolstring(L, -1, &len);
        tr_failure_add_text(describing->failure, "traceback", text, len);
        return 0;
}

/* One step with the value at an absolute index. One that fails has added nothing. */
static bool describe(lua_State *L, int index, struct describing *describing, lua_CFunction step) {
        lua_pushcfunction(L, step);
        lua_pushvalue(L, index);
        lua_pushlightuserdata(L, describing);
        if (lua_pcall(L, 2, 0, 0) == LUA_OK)
                return true;
        lua_pop(L, 1);
        return false;
}

static void describe_as_fault(lua_State *L, int index, struct describing *describing) {
        if (!describe(L, index, describing, describe_text))
                describing->failure =
                        tr_failure_new(TR_CODE_FAULT, "(error object is a %s value, and its __tostring failed)",
                                       luaL_typename(L, index));
        if (lua_type(L, index) == LUA_TSTRING)
                return;
        describing->key = "value";
        if (!describe(L, index, describing, describe_value))
                describe(L, index, describing, describe_replaced_value);
}

static int describe_fields(lua_State *L) {
        struct describing *describing = lua_touserdata(L, 2);

        lua_settop(L, 1);
        lua_pushnil(L);
        while (lua_next(L, 1)) {
                describing->key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "code";
                if (strcmp(describing->key, "code") != 0 && strcmp(describing->key, "message") != 0 &&
                    strcmp(describing->key, "ran") != 0)
                        describe(L, lua_gettop(L), describing, describe_value);
                lua_pop(L, 1);
        }
        return 0;
}

struct tr_failure *tr_script_failure_of(lua_State *L, int index) {
        struct describing describing = { 0 };

        index = lua_absindex(L, index);
        if (tr_script_is_failure(L, index) && describe(L, index, &describing, describe_own))
                describe(L, index, &describing, describe_fields);
        else
                describe_as_fault(L, index, &describing);
        return describing.failure;
}

/* With the ceiling as people write it: in the largest unit that leaves nothing over. */
static struct tr_failure *heap_failure(const struct tr_vm *vm) {
        static const char units[][sizeof(" bytes")] = { " bytes", "K", "M", "G" };
        uint64_t size = vm->alloc.max_bytes;
        size_t unit = 0;

        while (unit < 3 && size >= 1024 && size % 1024 == 0) {
                size /= 1024;
                unit++;
        }
        return tr_failure_new(TR_CODE_FAULT, "the heap ceiling of %llu%s was reached", (unsigned long long)size,
                              units[unit]);
}

/* The buffer in which a library function builds its result is refused without a collection and a second try, so nothing
 * but the sentence tells. */
static bool is_out_of_buffer(lua_State *L, int index) {
        return lua_type(L, index) == LUA_TSTRING && strcmp(lua_tostring(L, index), "not enough memory") == 0;
}

struct tr_failure *tr_script_fault_of(struct tr_vm *vm, lua_State *failed, const char *handler, bool stopped) {
        struct describing describing = { .kind = "error", .failed = failed };
        const char *actor = tr_target_actor(&vm->actor->target);
        lua_State *L = vm->L;
        int index;

        tr_vm_use_reserve(vm);
        vm->running = L;
        if (stopped)
                lua_pushnil(L);
        else
                lua_xmove(failed, L, 1);
        index = lua_gettop(L);

        if (vm->alloc.exceeded || is_out_of_buffer(L, index)) {
                describing.kind = "heap";
                describing.failure = heap_failure(vm);
        } else if (stopped) {
                describing.failure =
                        tr_failure_new(TR_CODE_FAULT, "a C function yielded in the handler, and nobody resumes it");
        } else {
                describe(L, index, &describing, describe_kind);
                describe_as_fault(L, index, &describing);
        }
        tr_failure_add_text(describing.failure, "kind", describing.kind, strlen(describing.kind));
        describe(L, index, &describing, describe_traceback);
        tr_failure_add_text(describing.failure, "actor", actor, strlen(actor));
        if (handler)
                tr_failure_add_text(describing.failure, "handler", handler, strlen(handler));
        lua_pop(L, 1);
        return describing.failure;
}
