/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_TASK_H
#define TR_SCRIPT_TASK_H

#include <lua.h>
#include <stdbool.h>

#include "daemon/base/list.h"
#include "daemon/script/vm.h"

struct tr_cargo;
struct tr_recurring;

/*
 * A task: one run of a handler, of the constructor, of close, of what a component's module has in their place, of a program's main, or
 * of what `every` calls. Its code is on a coroutine, for a kill must be able to leave it wherever it is, and an asynchronous one waits
 * in the middle.
 *
 *      calling -> running <-> awaiting
 *                    \-> answering (it returned a promise that has not settled) -> done
 */
enum tr_task_state {
        TR_TASK_RUNNING,
        TR_TASK_AWAITING,
        TR_TASK_ANSWERING,
};

struct tr_task {
        struct tr_list link;      /* in the VM's `tasks`, or its `idle` */
        struct tr_list wait_link; /* among those that wait for a promise, then in the VM's `ready` */
        lua_State *co;
        int anchor; /* the coroutine's key in the registry */
        enum tr_task_state state;
        bool may_await;
        bool changes; /* its answer has behind it what it was given to change, which the registry holds under the task */
        struct tr_message *message;     /* borrowed; NULL: none */
        const char *name;               /* of what runs without a message; NULL: it has none */
        struct tr_cargo *cargo;         /* what came with the message, while its arguments are decoded */
        struct tr_recurring *recurring; /* what `every` made, NULL: it is no tick */
};

/* A task whose coroutine is empty; NULL where memory is short. Not inside of the VM's code. */
struct tr_task *tr_task_new(struct tr_vm *vm, struct tr_message *message, bool may_await);
/*
 * Puts together a function and its arguments on the task's coroutine, protected: `build` runs there with the task as
 * its light argument, and what it returns is the function and the arguments. Lua's status; else the error is on top
 * of the main state, and the task is as it was.
 */
TR_MUST_CHECK int tr_task_build(struct tr_vm *vm, struct tr_task *task, lua_CFunction build, int *ret_count);
/* While it is built: the value on top, a table or nil, is what it changes; it stays there. May raise. */
void tr_task_change(lua_State *L, struct tr_task *task);
/* Runs what was built, `count` values, as far as it goes, and deals with its end. */
void tr_task_run(struct tr_vm *vm, struct tr_task *task, int count);
/* Ends one that did not run, or has been dealt with. */
void tr_task_free(struct tr_vm *vm, struct tr_task *task);

/* Goes on with everything whose promise has settled, and with what that settles, until nothing is ready. */
void tr_tasks_run_ready(struct tr_vm *vm);

/* The actor dies of the error on top of the main state, which is popped. Outside of the VM's code. */
void tr_vm_fault(struct tr_vm *vm);

/* The constructor or close has come to its end, or there is none: ends the task. Outside of the VM's code. */
void tr_task_lived(struct tr_vm *vm, struct tr_task *task);

/* The name of what a task runs, for people; NULL where it has none. */
const char *tr_task_handler(const struct tr_vm *vm, const struct tr_task *task);

/* At the VM's end: all of them. */
void tr_tasks_free(struct tr_vm *vm);

#endif
