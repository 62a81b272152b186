/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Kills: code that never ends by itself, wherever it is. */

static struct lua_fixture fixture;

/* How an actor says that it is where it is to be killed: it posts to this one, whose handler answers the test. */
#define BEFORE                                             \
        "local A = troupe.actor 'A'\n"                     \
        "local function forever() while true do end end\n" \
        "function A.async:run(reached)\n"

/* Runs the body in a handler, which sends "reached" to a second actor on its way, and kills it there. */
static void check_killed(const char *body) {
        struct tr_target *target, *other;
        struct lua_asked *asked;
        char *module = NULL;

        ck_assert_int_ge(asprintf(&module,
                                  BEFORE "local function here() troupe.send(troupe.find('gate'), 'open') end\n%s\nend",
                                  body),
                         0);
        lua_fixture_module(&fixture, "m", module);
        free(module);
        lua_fixture_module(
                &fixture, "gate",
                "local Gate = troupe.actor 'Gate'\n"
                "function Gate:init() troupe.publish('gate', troupe.me()) end\n"
                "function Gate.on:open() self.is_open = true end\n"
                "function Gate.async:wait() while not self.is_open do troupe.await(troupe.sleep(1)) end end");
        other = lua_fixture_spawn(&fixture, "gate", NULL);
        ck_assert_answer(&fixture, other, "none", "no-such-handler/no: gate:Gate has no handler `none`");

        target = lua_fixture_spawn(&fixture, "m", NULL);
        asked = lua_ask(&fixture, target, "run", NULL);
        ck_assert_answer(&fixture, other, "wait", "null");
        target->ops->kill(target);
        ck_assert_str_eq(lua_wait(asked), "killed/maybe: the actor was killed");
        ck_assert_end(&fixture, target, "killed/maybe: the actor was killed");
        ck_assert_int_eq(atomic_load(&fixture.events[TR_EVENT_STUCK]), 0);
        lua_asked_unref(asked);
        tr_target_unref(target);

        other->ops->kill(other);
        ck_assert_end(&fixture, other, "killed/maybe: the actor was killed");
        tr_target_unref(other);
}

#define KILL_TEST(name, body)                                  \
        START_TEST(name) {                                     \
                lua_fixture_init(&fixture, TR_ALLOW_COMMANDS); \
                check_killed(body);                            \
                lua_fixture_deinit(&fixture);                  \
        }                                                      \
        END_TEST

KILL_TEST(a_loop, "here() forever()")
KILL_TEST(a_loop_that_catches, "here() while true do pcall(forever) end")
KILL_TEST(nested_catching,
          "here() local function f(n) while true do pcall(n > 0 and f or forever, n - 1) end end f(50)")
KILL_TEST(a_message_handler_that_loops, "here() xpcall(error, forever, 'x')")
KILL_TEST(a_message_handler_that_raises, "here() while true do xpcall(error, function() error('again') end, 'x') end")
KILL_TEST(callbacks_of_gsub, "here() while true do pcall(string.gsub, ('x'):rep(100), '.', forever) end")
KILL_TEST(callbacks_of_sort, "here() while true do pcall(table.sort, { 3, 2, 1 }, forever) end")
KILL_TEST(long_strings, "here() while true do string.rep('x', 100000) end")
KILL_TEST(
        a_chain_of_coroutines,
        "here() local function f(n) if n == 0 then forever() end while true do coroutine.wrap(f)(n - 1) end end f(20)")
KILL_TEST(coroutines_that_catch, "here() local co = coroutine.wrap(function() while true do pcall(function() "
                                 "coroutine.yield() forever() end) end end)\n"
                                 "while true do pcall(co) end")
KILL_TEST(resumes_without_end,
          "here() local co = coroutine.create(function() while true do coroutine.yield() end end)\n"
          "while true do coroutine.resume(co) end")
KILL_TEST(new_coroutines_without_end, "here() while true do coroutine.resume(coroutine.create(error)) end")
KILL_TEST(a_coroutine_inside_of_gsub, "here() local _ = ('x'):gsub('.', function() local co = coroutine.wrap(forever) "
                                      "while true do pcall(co) end end)")
KILL_TEST(closing, "local c <close> = setmetatable({}, { __close = function() here() forever() end })\nerror 'x'")
KILL_TEST(closing_a_coroutine, "local co = coroutine.create(function() local c <close> = setmetatable({}, { __close = "
                               "function() here() forever() end })\n"
                               "  coroutine.yield() end)\ncoroutine.resume(co) coroutine.close(co)")
KILL_TEST(metamethods, "here() local t = setmetatable({}, { __index = forever }) return t.x")
KILL_TEST(an_error_object_that_loops, "error(setmetatable({}, { __tostring = function() here() forever() end }))")
KILL_TEST(after_waiting, "troupe.await(troupe.sleep(1)) here() forever()")
KILL_TEST(while_it_waits, "here() troupe.await(troupe.sleep(100000))")
KILL_TEST(a_tick, "troupe.every(1, function() here() forever() end) troupe.await(troupe.sleep(100000))")
KILL_TEST(a_reader_of_load, "here() load(forever)")
KILL_TEST(a_command, "here() os.execute('sleep 1000')")
KILL_TEST(the_output_of_a_command, "here() return io.popen('sleep 1000'):read('a')")

START_TEST(a_module_that_loops) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(
                &fixture, "m",
                "pcall(function() while true do end end) while true do pcall(function() while true do end end) end");
        target = lua_fixture_spawn(&fixture, "m", NULL);
        target->ops->kill(target);
        ck_assert_end(&fixture, target, "killed/maybe: the actor was killed");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Some seconds that nothing can interrupt; but nobody waits for them. */
START_TEST(a_long_c_function_is_stuck) {
        int stuck = 0;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m",
                           "local A = troupe.actor 'A'\n"
                           "function A.on:run() return (('a'):rep(26):find(('a?'):rep(26) .. ('a'):rep(26))) end");
        /* A kill that comes before the function is entered ends the actor like any: then it is tried again, a little later. */
        for (int later = 0; !stuck; later = 2 * later + 1) {
                struct tr_target *target = lua_fixture_spawn(&fixture, "m", NULL);
                struct lua_asked *asked = lua_ask(&fixture, target, "run", NULL);

                while (atomic_load(&tr_actor_of(target)->messages_total) < 2)
                        sched_yield();
                for (int i = 0; i < later; i++)
                        sched_yield();
                target->ops->kill(target);
                ck_assert_str_eq(lua_wait(asked), "killed/maybe: the actor was killed");
                stuck = atomic_load(&fixture.events[TR_EVENT_STUCK]);
                lua_asked_unref(asked);
                tr_target_unref(target);
        }
        ck_assert_int_eq(stuck, 1);
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("kill", a_loop, a_loop_that_catches, nested_catching, a_message_handler_that_loops,
           a_message_handler_that_raises, callbacks_of_gsub, callbacks_of_sort, long_strings, a_chain_of_coroutines,
           coroutines_that_catch, resumes_without_end, new_coroutines_without_end, a_coroutine_inside_of_gsub, closing,
           closing_a_coroutine, metamethods, an_error_object_that_loops, after_waiting, while_it_waits, a_tick,
           a_reader_of_load, a_command, the_output_of_a_command, a_module_that_loops, a_long_c_function_is_stuck);
