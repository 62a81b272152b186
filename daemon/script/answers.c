/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers to what the actor asked.
 *
 * Like a message, an answer is decoded under a margin of the ceiling: one that does not fit rejects its promise, and
 * the actor lives on. One whose promise was settled otherwise meanwhile is dropped. What such an answer carries goes
 * back to who answered, with the answer's memory; what this actor has sent, and nobody took, comes in the same way.
 */

#include "daemon/script/answers.h"

#include "daemon/base/cleanup.h"
#include "daemon/core/cargo.h"
#include "daemon/script/codec.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/promise.h"
#include "daemon/script/task.h"

/* The part of the ceiling that must stay free when an answer has been decoded. */
#define MARGIN_DIVISOR 8

struct settling {
        struct tr_answer *answer;
        struct tr_failure *failure; /* what it is rejected with, NULL: it is fulfilled */
        enum tr_ran ran;
};

static int settle(lua_State *L) {
        const struct settling *settling = lua_touserdata(L, 1);
        struct tr_answer *answer = settling->answer;

        lua_settop(L, 0);
        if (!tr_outstanding_push(L, answer->id))
                return 0;
        if (settling->failure) {
                tr_script_push_failure(L, settling->failure, settling->ran);
        } else {
                tr_codec_decode(L, answer->value, answer->bytes, 1, !answer->foreign, answer->cargo);
                tr_cargo_free(tr_steal(answer->cargo));
        }
        tr_promise_settle(L, 1, settling->failure);
        tr_outstanding_take(L, answer->id);
        return 0;
}

/* Why the answer could not be taken: the error is on top of the main state, and popped. */
static struct tr_failure *decoding_failure(struct tr_vm *vm, bool too_large) {
        struct tr_failure *failure;

        failure = too_large ? tr_failure_new(TR_CODE_TOO_LARGE, "the answer does not fit in the actor's heap")
                            : tr_script_failure_of(vm->L, -1);
        lua_pop(vm->L, 1);
        return failure;
}

static int put_back(lua_State *L) {
        const struct tr_answer *answer = lua_touserdata(L, 1);

        tr_transfer_put_back(L, answer->cargo);
        return 0;
}

/* Decodes the answer, and settles its promise with it or with why it could not be had. */
static void settle_with(struct tr_vm *vm, struct tr_answer *answer) {
        struct settling settling = { .answer = answer, .failure = answer->failure, .ran = answer->ran };
        struct tr_failure *failure = NULL;
        int status;

        vm->alloc.margin_bytes = vm->alloc.max_bytes / MARGIN_DIVISOR;
        status = tr_vm_protect(vm, settle, &settling);
        vm->alloc.margin_bytes = 0;

        if (status != LUA_OK) {
                failure = decoding_failure(vm, vm->alloc.exceeded || status == LUA_ERRMEM);
                vm->alloc.exceeded = false;
                settling.failure = failure;
                settling.ran = TR_RAN_YES;
                if (tr_vm_protect(vm, settle, &settling) != LUA_OK)
                        tr_vm_fault(vm);
        }
        tr_failure_unref(failure);
}

void tr_answered(struct tr_vm *vm, struct tr_answer *take_answer) {
        if (take_answer->id != TR_ANSWER_CARGO)
                settle_with(vm, take_answer);
        else if (tr_vm_protect(vm, put_back, take_answer) != LUA_OK)
                tr_vm_fault(vm);
        tr_answer_free(take_answer);
}
