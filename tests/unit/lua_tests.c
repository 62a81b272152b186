/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_tests.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/fake_vm.h"

#define HEAP_BYTES (UINT64_C(64) << 20)
/* on a machine that is busy, with a sanitizer */
#define TIMEOUT_S 120

static const char *tests_file;

/* Runs the file and leaves what it answers on the stack. */
static int run_tests_file(lua_State *L) {
        char path[512];

        snprintf(path, sizeof(path), TR_SRCDIR "/%s", tests_file);
        return luaL_loadfile(L, path) || lua_pcall(L, 0, 1, 0);
}

/* Leaves the name and the function of the test of that number, from 1. */
static void push_test(lua_State *L, int number) {
        if (run_tests_file(L))
                ck_abort_msg("%s", luaL_tolstring(L, -1, NULL));
        lua_rawgeti(L, -1, number);
        lua_getfield(L, -1, "name");
        lua_getfield(L, -2, "run");
}

static int traceback(lua_State *L) {
        luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
        return 1;
}

START_TEST(in_lua) {
        struct fake_vm fake;
        lua_State *L;

        fake_vm_init(&fake, HEAP_BYTES);
        L = fake.vm.L;
        lua_pushcfunction(L, traceback);
        push_test(L, _i + 1);
        if (lua_pcall(L, 0, 0, 1))
                ck_abort_msg("%s: %s", lua_tostring(L, -2), lua_tostring(L, -1));
        fake_vm_deinit(&fake);
}
END_TEST

static int global_tests(lua_State *L) {
        lua_newtable(L);
        return 1;
}

/* Outside of any test, where check can take no failure: a file that does not load has no tests, and fails as one. */
static int count_tests(void) {
        lua_State *L = luaL_newstate();
        int count = 0;

        lua_register(L, "tests", global_tests);
        if (!run_tests_file(L))
                for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
                        count++;
        lua_close(L);
        return count > 0 ? count : 1;
}

int lua_tests_main(const char *suite, const char *file, const TTest *const *tests, size_t count) {
        TCase *tcase = tcase_create(suite);
        Suite *all = suite_create(suite);
        SRunner *runner;
        int failed;

        tests_file = file;
        tcase_set_timeout(tcase, TIMEOUT_S);
        tcase_add_loop_test(tcase, in_lua, 0, count_tests());
        for (size_t i = 0; i < count; i++)
                tcase_add_test(tcase, tests[i]);
        suite_add_tcase(all, tcase);
        runner = srunner_create(all);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
