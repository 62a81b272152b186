/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* What becomes of an error that reaches the top of a handler, whatever was raised; and what brings Lua itself into
 * trouble. */

static struct lua_fixture fixture;

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, "", body, expected);
}

/* Asks an actor whose handler runs the body: how that failed, the caller's question. */
static struct lua_asked *failed(const char *body) {
        struct tr_target *target;
        struct lua_asked *asked;
        char module[1024];

        snprintf(module, sizeof(module), "local A = troupe.actor 'A'\nfunction A.on:run()\n%s\nend", body);
        lua_fixture_module(&fixture, "m", module);
        target = lua_fixture_spawn(&fixture, "m:A", NULL);
        asked = lua_ask(&fixture, target, "run", NULL);
        lua_wait(asked);
        ck_assert_ptr_nonnull(asked->failure);
        tr_target_unref(target);
        return asked;
}

static void check_field(const struct lua_asked *asked, const char *key, const char *expected) {
        char *text = lua_failure_field(asked->failure, key);

        if (expected)
                ck_assert_str_eq(text, expected);
        else
                ck_assert_ptr_null(text);
        free(text);
}

START_TEST(a_text_is_the_message) {
        lua_fixture_init(&fixture, 0);
        expect("error('it broke', 0)", "fault(error)/yes: it broke");
        expect("error('it broke')", "fault(error)/yes: m.lua:4: it broke");
        expect("local t = nil; return t.x", "fault(error)/yes: m.lua:4: attempt to index a nil value (local 't')");
        expect("return unknown",
               "fault(error)/yes: m.lua:4: the global `unknown` was never set: values set in main exist in the "
               "program alone and belong in a module or in the actor's fields");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_fault_says_who_and_where) {
        struct lua_asked *asked;
        char *traceback;

        lua_fixture_init(&fixture, 0);
        asked = failed("local function deeper() error('it broke') end deeper()");
        check_field(asked, "actor", "\"m:A\"");
        check_field(asked, "handler", "\"run\"");
        check_field(asked, "value", NULL);
        traceback = lua_failure_field(asked->failure, "traceback");
        ck_assert_ptr_nonnull(strstr(traceback, "in upvalue 'deeper'") ?: strstr(traceback, "in local 'deeper'"));
        ck_assert_ptr_nonnull(strstr(traceback, "m.lua:3: in function"));
        free(traceback);
        lua_asked_unref(asked);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Where a coroutine of the actor's failed is not on the stack of the one that had wrapped it. */
START_TEST(a_traceback_reaches_into_wrapped_coroutines) {
        struct lua_asked *asked;
        char *traceback;

        lua_fixture_init(&fixture, 0);
        asked = failed("local function inside() error('it broke', 0) end\ncoroutine.wrap(function() inside() end)()");
        traceback = lua_failure_field(asked->failure, "traceback");
        ck_assert_ptr_nonnull(strstr(traceback, "'inside'"));
        ck_assert_ptr_nonnull(strstr(traceback, "m.lua:4: in function"));
        free(traceback);
        lua_asked_unref(asked);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(any_value_may_be_raised) {
        struct lua_asked *asked;

        lua_fixture_init(&fixture, 0);
        asked = failed("error({ a = 1 })");
        ck_assert_str_eq(asked->text, "fault(error)/yes: (error object is a table value)");
        check_field(asked, "value", "{\"a\":1}");
        lua_asked_unref(asked);
        asked = failed("error(setmetatable({ a = 1 }, { __tostring = function(e) return 'a is ' .. e.a end }))");
        ck_assert_str_eq(asked->text, "fault(error)/yes: a is 1");
        check_field(asked, "value", "{\"a\":1}");
        lua_asked_unref(asked);
        asked = failed("error()");
        ck_assert_str_eq(asked->text, "fault(error)/yes: (error object is a nil value)");
        check_field(asked, "value", "null");
        lua_asked_unref(asked);
        asked = failed("error(42)");
        ck_assert_str_eq(asked->text, "fault(error)/yes: 42");
        check_field(asked, "value", "42");
        lua_asked_unref(asked);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_cannot_be_sent_of_it_is_replaced_and_noted) {
        struct lua_asked *asked;

        lua_fixture_init(&fixture, 0);
        asked = failed("error({ handlers = { onDone = print } })");
        check_field(asked, "value", "{\"handlers\":{\"onDone\":\"(a function)\"}}");
        check_field(asked, "note", "\"not sent as they were: handlers.onDone\"");
        lua_asked_unref(asked);
        asked = failed("local t = {} t.self = t error(t)");
        check_field(asked, "value", "{\"self\":\"(a table that is not sent)\"}");
        check_field(asked, "note", "\"not sent as they were: self\"");
        lua_asked_unref(asked);
        asked = failed("error({ 1, [3] = coroutine.create(print) })");
        check_field(asked, "note", "\"not sent as they were: [3]\"");
        lua_asked_unref(asked);
        asked = failed("error(print)");
        check_field(asked, "value", "\"(a function)\"");
        lua_asked_unref(asked);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(an_error_object_may_do_anything_when_it_is_asked_for_its_text) {
        lua_fixture_init(&fixture, 0);
        expect("error(setmetatable({}, { __tostring = function() error('no') end }))",
               "fault(error)/yes: (error object is a table value, and its __tostring failed)");
        expect("error(setmetatable({}, { __tostring = function() return {} end }))",
               "fault(error)/yes: (error object is a table value, and its __tostring failed)");
        expect("error(setmetatable({}, { __tostring = function() troupe.await(troupe.sleep(1)) end }))",
               "fault(error)/yes: (error object is a table value, and its __tostring failed)");
        expect("error(setmetatable({}, { __tostring = function() coroutine.yield() end }))",
               "fault(error)/yes: (error object is a table value, and its __tostring failed)");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(an_uncaught_rejection_is_a_fault_with_what_it_was) {
        struct lua_asked *asked;

        lua_fixture_init(&fixture, 0);
        asked = failed("troupe.send(troupe.me(), 'x', print)");
        ck_assert_str_eq(asked->text,
                         "fault(error)/yes: a message may not carry a function: `argument 1` is a function");
        ck_assert_int_eq(asked->failure->code, TR_CODE_FAULT);
        lua_asked_unref(asked);
        expect("local ok, e = pcall(troupe.send, troupe.me(), 'x', print) return { e.code, e.ran, e.path }",
               "[\"not-sendable\",\"no\",\"argument 1\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(errors_in_close_and_in_handlers_of_errors_are_errors) {
        lua_fixture_init(&fixture, 0);
        expect("local c <close> = setmetatable({}, { __close = function() error('in close', 0) end })",
               "fault(error)/yes: in close");
        /* described before the variables are closed: the first error is the one that is told */
        expect("local c <close> = setmetatable({}, { __close = function() error('in close', 0) end }) error('first', "
               "0)",
               "fault(error)/yes: first");
        expect("return (select(2, pcall(function() local c <close> = setmetatable({}, { __close = function() "
               "error('c', 0) end })\n"
               "error('e', 0) end)))",
               "\"c\"");
        expect("return select(2, xpcall(error, function(e) error(e) end, 'x'))", "\"error in error handling\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(variables_are_closed_where_the_handler_faults) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local B, N = troupe.actor 'B', troupe.actor 'N'\n"
                   "function B.on:run(to)\n"
                   "  local c <close> = setmetatable({}, { __close = function(_, e) troupe.send(to, 'note', e) end })\n"
                   "  error('it broke', 0)\n"
                   "end\n"
                   "function N.on:note(s) self.s = s end\n"
                   "function N.on:noted() return self.s end",
                   "local n = troupe.spawn(N)\n"
                   "pcall(troupe.await, troupe.ask(troupe.spawn(B).run, n))\n"
                   "return troupe.ask(n.noted)",
                   "\"it broke\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(recursion_without_end_is_an_error) {
        lua_fixture_init(&fixture, 0);
        expect("local function f(s) return (s:gsub('.', f)) end return f('x')", "fault(error)/yes: C stack overflow");
        expect("local function f() table.sort({ 3, 2, 1 }, function(a, b) f() return a < b end) end f()",
               "fault(error)/yes: C stack overflow");
        expect("local function f(n) return coroutine.wrap(function() return f(n + 1) end)() end return (pcall(f, 1))",
               "false");
        expect("local function f() return setmetatable({}, { __index = function(_, k) return f()[k] end }) end return "
               "(pcall(function() "
               "return f().x end))",
               "false");
        expect("local t = setmetatable({}, {}) getmetatable(t).__index = t return (pcall(function() return t.x end))",
               "false");
        expect("return (select(2, load(('('):rep(10000) .. '1' .. (')'):rep(10000))))", "\"C stack overflow\"");
        expect("return (select(2, load('return ' .. ('{'):rep(10000) .. ('}'):rep(10000))))", "\"C stack overflow\"");
        expect("local co co = coroutine.wrap(function() return co() end) return (pcall(co))", "false");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* lua_resetthread() of 5.4.4 counts no C calls: 800 of these overflow 512 KiB. */
START_TEST(coroutines_closed_inside_each_other_are_bounded) {
        lua_fixture_init(&fixture, 0);
        expect("local cos, deepest = {}\n"
               "for i = 1, 2000 do\n"
               "  cos[i] = coroutine.create(function()\n"
               "    local c <close> = setmetatable({}, { __close = function()\n"
               "      local ok, e = pcall(coroutine.close, cos[i + 1])\n"
               "      deepest = deepest or not ok and { i, e }\n"
               "    end })\n"
               "    coroutine.yield()\n"
               "  end)\n"
               "  coroutine.resume(cos[i])\n"
               "end\n"
               "coroutine.close(cos[1])\n"
               "return deepest",
               "[100,\"coroutines are closed inside each other more than 100 levels deep\"]");
        expect("local function nest(n) return coroutine.wrap(function()\n"
               "  local c <close> = setmetatable({}, { __close = function() nest(n + 1)() end }) error('e') end) end\n"
               "return (pcall(nest(1)))",
               "false");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* What upstream lists against 5.4.4. */
START_TEST(known_defects_do_no_harm) {
        lua_fixture_init(&fixture, 0);
        /* CVE-2022-33099: the Lua stack overflows when the C stack overflows while an error is handled */
        expect("local function loop() assert(pcall(loop)) end return tostring(select(2, xpcall(loop, loop)))",
               "\"error in error handling\"");
        expect("local f = load 'local _ENV <const> = { x = 1 } return x' return f()", "1");
        expect("local t = { 'return {' } for i = 1, 70000 do t[#t + 1] = i .. '.5,' end t[#t + 1] = '}'\n"
               "local r = load(table.concat(t))() return { #r, r[70000] }",
               "[70000,70000.5]");
        expect("return ('a\\0b'):rep(100) < ('a\\0c'):rep(100)", "true");
        expect("collectgarbage('generational') local t = {} for i = 1, 100000 do t[i % 1000] = { tostring(i) } end\n"
               "collectgarbage() collectgarbage('incremental') return #t",
               "999");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("errors", a_text_is_the_message, a_fault_says_who_and_where, a_traceback_reaches_into_wrapped_coroutines,
           any_value_may_be_raised, what_cannot_be_sent_of_it_is_replaced_and_noted,
           an_error_object_may_do_anything_when_it_is_asked_for_its_text,
           an_uncaught_rejection_is_a_fault_with_what_it_was, errors_in_close_and_in_handlers_of_errors_are_errors,
           variables_are_closed_where_the_handler_faults, recursion_without_end_is_an_error,
           coroutines_closed_inside_each_other_are_bounded, known_defects_do_no_harm);
