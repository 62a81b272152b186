/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Declaring actors, and what a message to one comes to. */

static struct lua_fixture fixture;

/* An actor of a module that is written for it. */
static struct tr_target *spawn(const char *module) {
        lua_fixture_module(&fixture, "m", module);
        return lua_fixture_spawn(&fixture, "m", NULL);
}

static void check_end(const char *module, const char *expected) {
        struct tr_target *target = spawn(module);

        ck_assert_end(&fixture, target, expected);
        tr_target_unref(target);
}

START_TEST(a_counter_counts) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        target = spawn("local Counter = troupe.actor 'Counter'\n"
                       "function Counter:init() self.n = 0 end\n"
                       "function Counter.on:bump(by) self.n = self.n + (by and tonumber(by) or 1) end\n"
                       "function Counter.on:total() return self.n end");
        ck_assert_answer(&fixture, target, "bump", "null");
        free(lua_answer(&fixture, target, "bump", "41"));
        ck_assert_answer(&fixture, target, "total", "42");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_is_no_handler_is_refused_and_the_actor_lives) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        target = spawn("local A = troupe.actor 'A'\n"
                       "function A:method() return 1 end\n"
                       "function A:init() end\n"
                       "function A.on:calls() return self:method() end");
        ck_assert_answer(&fixture, target, "method", "no-such-handler/no: m:A has no handler `method`");
        ck_assert_answer(&fixture, target, "init", "no-such-handler/no: m:A has no handler `init`");
        ck_assert_answer(&fixture, target, "on", "no-such-handler/no: m:A has no handler `on`");
        ck_assert_answer(&fixture, target, "", "no-such-handler/no: m:A has no handler ``");
        ck_assert_int_eq(atomic_load(&fixture.refused), 4);
        ck_assert_answer(&fixture, target, "calls", "1");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(the_first_value_is_the_answer) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "", "return 1, 2, 3", "1");
        lua_expect(&fixture, "", "", "null");
        lua_expect(&fixture, "", "return nil, 1", "null");
        lua_expect(&fixture, "", "return 0.5", "0.5");
        lua_expect(&fixture, "", "return true", "true");
        lua_expect(&fixture, "", "return { 'a', { b = 1 } }", "[\"a\",{\"b\":1}]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(an_answer_that_cannot_be_sent_is_refused) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        target = spawn("local A = troupe.actor 'A'\n"
                       "function A.on:bad() return { f = print } end\n"
                       "function A.on:good() return 1 end");
        ck_assert_answer(&fixture, target, "bad",
                         "not-sendable/yes: a message may not carry a function: `f` is a function");
        ck_assert_answer(&fixture, target, "good", "1");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_promise_is_answered_with_what_it_settles_to) {
        const char *before = "local B = troupe.actor 'B'\n"
                             "function B.on:sum() return troupe.ask(troupe.me().half) end\n"
                             "function B.on:half() return 21 end\n"
                             "function B.on:none() return troupe.ask(troupe.me().nothing) end\n"
                             "function B.on:settled() return (troupe.all {}) end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B).sum)", "21");
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B).none)",
                   "no-such-handler/no: m:B has no handler `nothing`");
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B).settled)", "[]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* What it was told by others is no refusal of its own, and neither is an answer that cannot be sent. */
START_TEST(what_a_handler_came_to_is_no_refusal) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        target = spawn("local A = troupe.actor 'A'\n"
                       "function A.on:forwards() return troupe.done(troupe.handle 'actor:00112233445566778899aabbccddeeff') end\n"
                       "function A.async:waits() troupe.await(troupe.sleep(1)) return self.on.forwards(self) end\n"
                       "function A.on:bad() return print end");
        ck_assert_answer(&fixture, target, "forwards", "not-running/no: the actor is not running");
        ck_assert_answer(&fixture, target, "waits", "not-running/no: the actor is not running");
        ck_assert_answer(&fixture, target, "bad", "not-sendable/yes: a message may not carry a function: `the answer` is a function");
        ck_assert_int_eq(atomic_load(&fixture.refused), 0);
        ck_assert_uint_eq(atomic_load(&fixture.system->refused_total[TR_CODE_NOT_RUNNING]), 0);
        ck_assert_uint_eq(atomic_load(&fixture.system->refused_total[TR_CODE_NOT_SENDABLE]), 0);
        ck_assert_answer(&fixture, target, "none", "no-such-handler/no: m:A has no handler `none`");
        ck_assert_int_eq(atomic_load(&fixture.refused), 1);
        ck_assert_uint_eq(atomic_load(&fixture.system->refused_total[TR_CODE_NO_SUCH_HANDLER]), 1);
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(an_actor_has_its_whole_name_however_it_was_asked_for) {
        const char *before = "local B = troupe.actor 'B' function B.on:fails() error 'x' end function B.on:who() return troupe.whoami() end";
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "one", before);
        lua_expect(&fixture, before,
                   "local names = {}\n"
                   "for i, b in ipairs { troupe.spawn(B), troupe.spawn 'm:B', troupe.spawn 'one' } do\n"
                   "  local w = troupe.await(troupe.ask(b.who))\n"
                   "  local _, none = pcall(troupe.await, troupe.ask(b.none))\n"
                   "  local _, e = pcall(troupe.await, troupe.ask(b.fails))\n"
                   "  names[i] = { w.module, w.actor, none.message, e.actor }\n"
                   "end\n"
                   "return names",
                   "[[\"m\",\"B\",\"m:B has no handler `none`\",\"m:B\"],[\"m\",\"B\",\"m:B has no handler `none`\",\"m:B\"],"
                   "[\"one\",\"B\",\"one:B has no handler `none`\",\"one:B\"]]");
        target = lua_fixture_spawn(&fixture, "one", NULL);
        ck_assert_answer(&fixture, target, "none", "no-such-handler/no: one:B has no handler `none`");
        ck_assert_str_eq(target->actor, "one:B");
        ck_assert_str_eq(target->label, "one");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_generated_constructor_takes_the_fields_in_order) {
        const char *before = "local B = troupe.actor 'B'\n"
                             "B.fields = { 'a', 'b', 'c' }\n"
                             "B.defaults = { b = 7, c = function() return { 1 } end }\n"
                             "function B.on:all() return { self.a, self.b, self.c } end\n"
                             "local function all(...) return troupe.ask(troupe.spawn(B, ...).all) end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before, "return all(1)", "[1,7,[1]]");
        lua_expect(&fixture, before, "return all(1, nil, 3)", "[1,7,3]");
        lua_expect(&fixture, before, "return all(1, false, 3)", "[1,false,3]");
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "B.fields = { 'a', 'b', 'c', 'd' }\n"
                   "local function late(v) return function() troupe.await(troupe.sleep(1)) return v end end\n"
                   "B.defaults = { a = late(1), c = late(3), d = function() return 4 end }\n"
                   "function B.on:all() return { self.a, self.b, self.c, self.d } end",
                   "return troupe.all { troupe.ask(troupe.spawn(B, nil, 2).all), troupe.ask(troupe.spawn(B, 5, 6, 7).all) }",
                   "[[1,2,3,4],[5,6,7,4]]");
        lua_expect(&fixture,
                   "local B = troupe.actor 'B' B.fields = { 'a' }\n"
                   "B.defaults = { a = function() troupe.await(troupe.sleep(1)) end }",
                   "return troupe.done(troupe.spawn(B))",
                   "fault(error)/yes: the field `a` has neither an argument nor a default");
        /* not by asking: an ask that comes after the actor's death is not-running */
        lua_expect(&fixture, before, "return troupe.done(troupe.spawn(B))",
                   "fault(error)/yes: the field `a` has neither an argument nor a default");
        lua_expect(&fixture, before, "return troupe.done(troupe.spawn(B, 1, 2, 3, 4))",
                   "fault(error)/yes: m:B takes 3 arguments, not 4");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(surplus_arguments_are_a_fault_of_the_constructor) {
        const char *before = "local B, C, D = troupe.actor 'B', troupe.actor 'C', troupe.actor 'D'\n"
                             "function B:init(a, b) self.sum = a + (b or 0) end\n"
                             "function B.on:sum() return self.sum end\n"
                             "function D:init(...) self.n = select('#', ...) end\n"
                             "function D.on:n() return self.n end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B, 1, 2).sum)", "3");
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B, 1).sum)", "1");
        lua_expect(&fixture, before, "return troupe.done(troupe.spawn(B, 1, 2, 3))",
                   "fault(error)/yes: m:B takes 2 arguments, not 3");
        lua_expect(&fixture, before, "return troupe.done(troupe.spawn(C, 1))",
                   "fault(error)/yes: m:C takes 0 arguments, not 1");
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(D, 1, nil, nil).n)", "3");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(init_may_wait_and_comes_first) {
        const char *before = "local B = troupe.actor 'B'\n"
                             "function B:init() troupe.await(troupe.sleep(5)) self.ready = true end\n"
                             "function B.on:ready() return self.ready end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before, "return troupe.ask(troupe.spawn(B).ready)", "true");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(close_runs_last_and_knows_why) {
        const char *before = "local B = troupe.actor 'B'\n"
                             "function B:init(to) self.to = to end\n"
                             "function B.on:hi() end\n"
                             "function B:close(reason) troupe.await(troupe.ask(self.to, 'note', reason)) end\n"
                             "local N = troupe.actor 'N'\n"
                             "function N.on:note(s) self.s = s end\n"
                             "function N.on:noted() return self.s end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before,
                   "local n = troupe.spawn(N)\n"
                   "local b = troupe.spawn(B, n)\n"
                   "troupe.send(b.hi)\n"
                   "troupe.stop(b)\n"
                   "troupe.await(troupe.done(b))\n"
                   "return troupe.ask(n.noted)",
                   "\"stop\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(close_waits_for_time) {
        const char *before = "local B = troupe.actor 'B'\n"
                             "function B:init(to) self.to = to end\n"
                             "function B:close()\n"
                             "  troupe.await(troupe.sleep(5))\n"
                             "  troupe.await(troupe.ask(self.to, 'note'))\n"
                             "end\n"
                             "local N = troupe.actor 'N'\n"
                             "function N.on:note() self.is_noted = true end\n"
                             "function N.on:noted() return self.is_noted end";

        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, before,
                   "local n = troupe.spawn(N)\n"
                   "local b = troupe.spawn(B, n)\n"
                   "troupe.stop(b)\n"
                   "troupe.await(troupe.done(b))\n"
                   "return troupe.ask(n.noted)",
                   "true");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_does_not_hold_together_does_not_load) {
        lua_fixture_init(&fixture, 0);
        check_end("local A = troupe.actor 'A' function A.on:x() end function A.async:x() end",
                  "load/no: the module `m` failed to load: A: the handler `x` is declared under both `on` and `async`");
        check_end("local A = troupe.actor 'A' A.on.x = 1",
                  "load/no: the module `m` failed to load: A: `on` has something in it that is no handler: x");
        check_end("troupe.actor 'A' troupe.actor 'A'",
                  "load/no: the module `m` failed to load: actor: `A` is declared twice in the module `m`");
        check_end("local function f() troupe.actor 'A' end f()",
                  "load/no: the module `m` failed to load: actor: `A` is not declared at the top level of a file");
        check_end("local A = troupe.actor 'A' A.fields = { 'a' } function A:init() end",
                  "load/no: the module `m` failed to load: A: has both `init` and `fields`");
        check_end("troupe.actor '/'", "load/no: the module `m` failed to load: actor: \"/\" is not a name");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_declaration_made_later_is_refused) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "", "troupe.actor 'B'",
                   "fault(error)/yes: actor: `B` is not declared at the top level of a file");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_text_names_an_actor_in_its_own_vm) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "two", "troupe.actor 'A' troupe.actor 'B'");
        lua_fixture_module(&fixture, "none", "");
        target = lua_fixture_spawn(&fixture, "two", NULL);
        ck_assert_end(&fixture, target,
                      "not-found/no: the module `two` declares 2 actors: say which, as in `two:Name`");
        tr_target_unref(target);
        target = lua_fixture_spawn(&fixture, "two:C", NULL);
        ck_assert_end(&fixture, target, "not-found/no: the module `two` declares no actor `C`");
        tr_target_unref(target);
        target = lua_fixture_spawn(&fixture, "none", NULL);
        ck_assert_end(&fixture, target, "not-found/no: the module `none` declares no actor");
        tr_target_unref(target);
        target = lua_fixture_spawn(&fixture, "a.b", NULL);
        ck_assert_end(&fixture, target, "not-found/no: there is no module `a.b`; tried: a/b.lua, a/b/init.lua");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("handlers", a_counter_counts, what_is_no_handler_is_refused_and_the_actor_lives,
           the_first_value_is_the_answer, an_answer_that_cannot_be_sent_is_refused,
           a_promise_is_answered_with_what_it_settles_to, what_a_handler_came_to_is_no_refusal,
           an_actor_has_its_whole_name_however_it_was_asked_for, a_generated_constructor_takes_the_fields_in_order,
           surplus_arguments_are_a_fault_of_the_constructor, init_may_wait_and_comes_first,
           close_runs_last_and_knows_why, close_waits_for_time, what_does_not_hold_together_does_not_load,
           a_declaration_made_later_is_refused, a_text_names_an_actor_in_its_own_vm);
