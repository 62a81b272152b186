/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lua as the behaviour of actors: the table of functions that core calls, all on the actor's own thread but for info().
 */

#include <string.h>

#include "daemon/script/answers.h"
#include "daemon/script/call.h"
#include "daemon/script/describe.h"
#include "daemon/script/kill.h"
#include "daemon/script/outstanding.h"
#include "daemon/script/load.h"
#include "daemon/script/promise.h"
#include "daemon/script/script.h"
#include "daemon/script/stdlib.h"
#include "daemon/script/task.h"
#include "daemon/script/timers.h"
#include "daemon/script/vm.h"

static int script_open(struct tr_actor *actor, void **ret_self, struct tr_failure **ret_failure) {
        struct tr_vm *vm;

        if (tr_vm_open(actor, &vm) != 0) {
                *ret_failure =
                        tr_failure_new(TR_CODE_NO_MEMORY, "no room for the actor's runtime: its heap is too small");
                return 1;
        }
        *ret_self = vm;
        *ret_failure = tr_load(vm);
        return *ret_failure ? 1 : 0;
}

/* Goes on with what has become ready, and brings the figures up to date. */
static void settle(struct tr_vm *vm) {
        if (vm->settled_count > 0 || !tr_list_is_empty(&vm->ready))
                tr_tasks_run_ready(vm);
}

static void script_begin(void *self, struct tr_message *message) {
        struct tr_vm *vm = self;

        tr_call(vm, message);
        settle(vm);
}

static void script_answered(void *self, struct tr_answer *take_answer) {
        struct tr_vm *vm = self;

        tr_answered(vm, take_answer);
        settle(vm);
}

static uint64_t script_run_timers(void *self, uint64_t now_ns) {
        struct tr_vm *vm = self;
        uint64_t next_ns = tr_timers_run(vm, now_ns);

        tr_outside_end_line(vm);
        tr_alloc_report(&vm->alloc);
        return next_ns;
}

/* An actor's end settles nothing for a program that is otherwise over, but may for a handler that awaits it. */
static uint32_t script_pending(void *self) {
        const struct tr_vm *vm = self;

        return vm->pending + (tr_list_is_empty(&vm->tasks) ? 0 : vm->pending_done);
}

static bool script_awaits(void *self, struct tr_awaited *awaited) {
        return tr_outstanding_awaits(self, awaited);
}

static void script_trim(void *self) {
        tr_vm_trim(self);
}

static void script_drain(void *self) {
        tr_timers_drain(self);
}

static void script_free(void *self) {
        struct tr_vm *vm = self;

        tr_outside_end_line(vm);
        tr_promise_log_rejected(vm);
        tr_vm_close(vm);
}

static void script_interrupt(void *self) {
        tr_vm_interrupt(self);
}

static void script_report(void *self) {
        tr_vm_report(self);
}

const struct tr_behaviour tr_script_behaviour = {
        .open = script_open,
        .begin = script_begin,
        .answered = script_answered,
        .run_timers = script_run_timers,
        .pending = script_pending,
        .awaits = script_awaits,
        .trim = script_trim,
        .drain = script_drain,
        .free = script_free,
        .interrupt = script_interrupt,
        .report = script_report,
        .info = tr_describe,
};
