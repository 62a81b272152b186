/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"
#include "tests/unit/suite.h"

static struct lua_fixture fixture;

START_TEST(counter_counts) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "counter",
                           "local Counter = troupe.actor 'Counter'\n"
                           "function Counter:init() self.n = 0 end\n"
                           "function Counter.on:bump(by) self.n = self.n + (by or 1) end\n"
                           "function Counter.on:total() return self.n end\n");
        target = lua_fixture_spawn(&fixture, "counter", NULL);
        ck_assert_answer(&fixture, target, "bump", "null");
        ck_assert_answer(&fixture, target, "bump", "null");
        ck_assert_answer(&fixture, target, "total", "2");
        ck_assert_answer(&fixture, target, "nothing", "no-such-handler/no: counter has no handler `nothing`");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("script", counter_counts);
