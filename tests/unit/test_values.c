/* SPDX-License-Identifier: Apache-2.0 */
/* The value types: what Lua code cannot see of them. The rest is in values.lua. */
#include <string.h>

#include "daemon/script/values.h"
#include "tests/unit/fake_vm.h"
#include "tests/unit/lua_tests.h"

#define HEAP_BYTES (UINT64_C(64) << 20)

START_TEST(handles_let_go_of_their_targets) {
        struct fake_vm fake;

        fake_vm_init(&fake, HEAP_BYTES);
        fake_vm_run(&fake,
                    "kept = actor 'kept'; message = actor('held').x; for i = 1, 10 do local h = actor 'lost' end\n"
                    "collectgarbage()");
        ck_assert_uint_eq(fake.targets, 2);
        fake_vm_run(&fake, "local text = troupe.text(kept); kept = nil; message = nil; collectgarbage()\n"
                           "assert(tostring(troupe.handle(text)):find('^actor '))");
        ck_assert_uint_eq(fake.targets, 0);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(a_handle_holds_its_target) {
        struct fake_vm fake;
        struct tr_target *target, *found;
        lua_State *L;

        fake_vm_init(&fake, HEAP_BYTES);
        L = fake.vm.L;
        target = fake_vm_target(&fake, "one");
        tr_push_handle(L, target);
        tr_push_handle_of(L, &target->handle);
        ck_assert(lua_rawequal(L, -1, -2));
        ck_assert_mem_eq(tr_to_handle(L, -1, &found), &target->handle, sizeof(target->handle));
        ck_assert_ptr_eq(found, target);
        ck_assert_uint_eq(target->refs, 2);
        lua_pushinteger(L, 1);
        ck_assert_ptr_null(tr_to_handle(L, -1, &found));
        tr_target_unref(target);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(bytes_count_to_the_ceiling) {
        struct fake_vm fake;

        fake_vm_init(&fake, HEAP_BYTES);
        fake_vm_run(&fake, "b = troupe.bytes(32 << 20)");
        ck_assert_uint_gt(fake.vm.alloc.used_bytes, 32 << 20);
        /* garbage makes way, what is held does not */
        fake_vm_run(&fake, "for i = 1, 100 do local other = troupe.bytes(20 << 20) end");
        ck_assert(!fake.vm.alloc.exceeded);
        fake_vm_run(&fake, "local ok, e = pcall(troupe.bytes, 33 << 20)\n"
                           "assert(not ok and e == 'not enough memory')\n"
                           "assert(not pcall(b.append, b, b))\n"
                           "assert(not pcall(troupe.bytes, math.maxinteger))\n"
                           "assert(#b == 32 << 20)");
        ck_assert(fake.vm.alloc.exceeded);
        fake_vm_run(&fake, "b = nil; collectgarbage()");
        ck_assert_uint_lt(fake.vm.alloc.used_bytes, 1 << 20);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(the_collector_hears_of_bytes) {
        struct fake_vm fake;

        fake_vm_init(&fake, HEAP_BYTES);
        fake_vm_run(&fake, "for i = 1, 1000 do local b = troupe.bytes(64 << 10) end");
        ck_assert_uint_lt(fake.vm.alloc.used_bytes, HEAP_BYTES / 4);
        fake_vm_deinit(&fake);
}
END_TEST

START_TEST(failed_modules_take_their_classes_along) {
        struct fake_vm fake;
        lua_State *L;

        fake_vm_init(&fake, HEAP_BYTES);
        L = fake.vm.L;
        fake_vm_run(&fake, "loading 'shape.more'; More = troupe.class 'Point'; loading(nil)");
        tr_forget_classes(L, "shape");
        ck_assert_int_eq(lua_gettop(L), 0);
        ck_assert(!tr_push_class(L, "shape:Point", strlen("shape:Point")));
        ck_assert(tr_push_class(L, "shape.more:Point", strlen("shape.more:Point")));
        ck_assert(tr_push_class_name(L, -1));
        ck_assert_str_eq(lua_tostring(L, -1), "shape.more:Point");
        lua_settop(L, 0);
        fake_vm_run(&fake, "fault('is not a class', troupe.is, 1, Point)\n"
                           "loading 'shape'; assert(troupe.class 'Point' ~= Point)");
        fake_vm_deinit(&fake);
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                handles_let_go_of_their_targets,
                a_handle_holds_its_target,
                bytes_count_to_the_ceiling,
                the_collector_hears_of_bytes,
                failed_modules_take_their_classes_along,
        };

        return lua_tests_main("values", "tests/unit/values.lua", tests, sizeof(tests) / sizeof(tests[0]));
}
