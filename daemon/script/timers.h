/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_TIMERS_H
#define TR_SCRIPT_TIMERS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>

#include "daemon/script/vm.h"

struct tr_promise;
struct tr_recurring;

/*
 * Timers of a VM: `sleep` and `every`.
 */

/* Its functions in the library, by name; see library.c. */
extern const luaL_Reg tr_timers_functions[];

/* sleep(ms). A lua_CFunction. */
int tr_timers_sleep(lua_State *L);
/* Milliseconds at an index, above 0: a whole number or text with a unit. Raises `bad-request` for the library
 * function. */
uint64_t tr_timers_check_ns(lua_State *L, int index, const char *function);

/* Fires what is due; outside of the VM's code. Answers the next deadline. */
uint64_t tr_timers_run(struct tr_vm *vm, uint64_t now_ns);
/* Nothing recurs from now on. Outside of the VM's code. */
void tr_timers_drain(struct tr_vm *vm);
/* A tick of what recurs is over. Outside of the VM's code. */
void tr_timers_ticked(struct tr_vm *vm, struct tr_recurring *recurring);
/* Of a promise that `sleep` answered and that is pending: it never settles. Protected. */
void tr_timers_cancel_sleep(lua_State *L, struct tr_promise *promise);

#endif
