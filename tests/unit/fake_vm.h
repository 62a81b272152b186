/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FAKE_VM_H
#define TESTS_FAKE_VM_H

#include <lauxlib.h>
#include <lua.h>
#include <stdatomic.h>
#include <stdint.h>

#include "daemon/core/actor.h"
#include "daemon/core/system.h"
#include "daemon/script/vm.h"

/*
 * As much of a VM as the value types and the codec need: a state with the standard library under a ceiling, an actor
 * that never runs, and the library table as the global `troupe`. Errors of the library are tables {code, message, path};
 * promises and declarations are tables with a true field `is_promise` or `is_declaration`.
 *
 * More globals, beside those of tests/unit/prelude.lua:
 *
 *      actor(label)               the handle of a new target, which its VM alone holds
 *      encode(form, ...)          the bytes of the values; form is "internal", "typed" or "plain"
 *      decode(form, bytes, count) the values (1 unless said) of bytes: another VM's where form is "internal", else a
 *                                 peer's
 *      loading(module)            that module's top level runs from now on; nil: none does
 *      forget(module)             its classes are not loaded
 *      modules                    where it is set: what require() runs, by name
 *
 * No assertion of check is in here: programs that are no suites use it, and its assertions allocate, so that they would
 * fail where allocations are to fail.
 */
struct fake_vm {
        struct tr_vm vm;
        struct tr_actor actor;
        struct tr_system *system;
        _Atomic uint64_t heap_bytes;
        _Atomic uint64_t total_bytes;
        const char *loading; /* the module whose top level runs */
        uint32_t targets;    /* that live */
};

void fake_vm_init(struct fake_vm *fake, uint64_t heap_max_bytes);
/* Checks that nothing is left: no byte counted, no target. */
void fake_vm_deinit(struct fake_vm *fake);

/* Runs a chunk, protected, with nothing on the stack before or after; the test fails with the error where there is
 * one. */
void fake_vm_run(struct fake_vm *fake, const char *chunk);
/* A new target, registered, with one reference. */
struct tr_target *fake_vm_target(struct fake_vm *fake, const char *label);

#endif
