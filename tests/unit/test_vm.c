/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/script/vm.h"

#include "daemon/core/system.h"
#include "daemon/script/script.h"
#include "tests/unit/failing.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

static char *no_path[] = { NULL };
static struct tr_script script = { .path = no_path, .allow = TR_ALLOW_FILES | TR_ALLOW_COMMANDS };
static struct tr_system tr_system_of_the_test;
static char name[] = "test";
static struct tr_actor actor;

static void setup(uint64_t heap_bytes) {
        tr_system_of_the_test.behaviour_shared = &script;
        actor = (struct tr_actor){ .heap_max_bytes = heap_bytes };
        actor.target.system = &tr_system_of_the_test;
        actor.target.actor = actor.target.label = name;
}

static void check_closed(void) {
        ck_assert_uint_eq(atomic_load(&actor.heap_bytes), 0);
        ck_assert_uint_eq(atomic_load(&tr_system_of_the_test.heap_bytes), 0);
}

START_TEST(a_closed_vm_leaves_nothing) {
        struct tr_vm *vm;

        setup(64 << 20);
        ck_assert_int_eq(tr_vm_open(&actor, &vm), 0);
        ck_assert_uint_gt(atomic_load(&actor.heap_bytes), 0);
        tr_vm_close(vm);
        check_closed();
}
END_TEST

/* What an idle actor costs is made of this. A bare VM with its libraries takes 22 KiB. */
START_TEST(an_open_vm_is_small) {
        struct tr_vm *vm;

        setup(64 << 20);
        ck_assert_int_eq(tr_vm_open(&actor, &vm), 0);
        lua_gc(vm->L, LUA_GCCOLLECT);
        ck_assert_uint_lt(vm->alloc.used_bytes, 40 << 10);
        tr_vm_close(vm);
}
END_TEST

/* A panic would end the test. */
START_TEST(a_vm_opens_or_fails_under_every_ceiling) {
        struct tr_vm *vm;
        bool opened = false;
        int r;

        for (uint64_t heap_bytes = 0; heap_bytes < 100000; heap_bytes += 61) {
                setup(heap_bytes);
                r = tr_vm_open(&actor, &vm);
                if (r == 0) {
                        opened = true;
                        tr_vm_close(vm);
                } else {
                        ck_assert_int_eq(r, TR_VM_NO_ROOM);
                }
                check_closed();
        }
        ck_assert(opened);
}
END_TEST

/* Lua tries once more where an allocation fails, so some failures are not felt. */
START_TEST(every_allocation_may_fail) {
        struct tr_vm *vm;
        long n = 0;
        int r;

        setup(64 << 20);
        do {
                failing_arm(++n);
                r = tr_vm_open(&actor, &vm);
                if (r == 0)
                        tr_vm_close(vm);
                failing_arm(0);
                if (r != 0) {
                        ck_assert_int_eq(r, TR_VM_NO_ROOM);
                        ck_assert(failing_hit());
                }
                check_closed();
        } while (failing_hit());
}
END_TEST

suite_main("vm", a_closed_vm_leaves_nothing, an_open_vm_is_small, a_vm_opens_or_fails_under_every_ceiling,
           every_allocation_may_fail);
