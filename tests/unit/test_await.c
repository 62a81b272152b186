/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log_line.h"
#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Promises, and where a handler may wait for one. */

static struct lua_fixture fixture;

/* What most tests need: an actor that answers late, or fails late. */
#define LATE                                                                                    \
        "local Late = troupe.actor 'Late'\n"                                                    \
        "function Late.async:value(ms, v) troupe.await(troupe.sleep(ms)) return v end\n"        \
        "function Late.async:failure(ms) troupe.await(troupe.sleep(ms)) error('late', 0) end\n" \
        "local function later(ms, v) return troupe.ask(troupe.spawn(Late).value, ms, v) end\n"  \
        "local function fails(ms) return troupe.ask(troupe.spawn(Late).failure, ms) end\n"

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, LATE, body, expected);
}

START_TEST(await_gives_the_value_or_raises_the_reason) {
        lua_fixture_init(&fixture, 0);
        expect("return troupe.await(later(1, 'v'))", "\"v\"");
        expect("local p = later(1, 'v') troupe.await(p) return troupe.await(p)", "\"v\"");
        expect("return troupe.await(troupe.sleep(1))", "null");
        expect("troupe.await(fails(1))", "fault(error)/yes: late");
        expect("local ok, e = pcall(troupe.await, fails(1)) return { e.code, e.kind, e.message, e.ran, e.handler, "
               "tostring(e) }",
               "[\"fault\",\"error\",\"late\",\"yes\",\"failure\",\"late\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(await_works_through_everything_that_can_yield) {
        lua_fixture_init(&fixture, 0);
        expect("return select(2, pcall(function() return troupe.await(later(1, 1)) end))", "1");
        expect("return select(2, xpcall(function() return troupe.await(later(1, 1)) end, print))", "1");
        expect("local t = setmetatable({}, { __index = function() return troupe.await(later(1, 1)) end }) return t.x",
               "1");
        expect("local n = 0 for v in function() n = n + 1 if n < 4 then return troupe.await(later(1, n)) end end do "
               "end return n",
               "4");
        expect("local n = 0 do local c <close> = setmetatable({}, { __close = function() n = troupe.await(later(1, 5)) "
               "end }) end return n",
               "5");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(await_in_a_coroutine_suspends_the_whole_handler) {
        lua_fixture_init(&fixture, 0);
        expect("local co = coroutine.wrap(function(a)\n"
               "  local b = coroutine.yield(troupe.await(later(1, a)))\n"
               "  return troupe.await(later(1, b)) .. '!'\n"
               "end)\n"
               "return { co('a'), co('b') }",
               "[\"a\",\"b!\"]");
        expect("local function outer()\n"
               "  local inner = coroutine.create(function() coroutine.yield(troupe.await(later(1, 1))) return "
               "troupe.await(later(1, 2)) end)\n"
               "  local _, a = coroutine.resume(inner)\n"
               "  local _, b = coroutine.resume(inner)\n"
               "  return a + b + troupe.await(later(1, 3))\n"
               "end\n"
               "return coroutine.wrap(outer)()",
               "6");
        expect("local co = coroutine.create(function() troupe.await(fails(1)) end)\n"
               "local ok, e = coroutine.resume(co)\n"
               "return { ok, e.message, coroutine.status(co) }",
               "[false,\"late\",\"dead\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Two handlers of one actor; the second gets hold of what the first is suspended in. */
START_TEST(nobody_else_goes_on_with_what_awaits) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B.async:first()\n"
                   "  self.own = coroutine.running()\n"
                   "  self.co = coroutine.create(function() troupe.await(troupe.sleep(20)) return 7 end)\n"
                   "  return select(2, coroutine.resume(self.co))\n"
                   "end\n"
                   "function B.on:second()\n"
                   "  local t = {}\n"
                   "  for i, co in ipairs { self.co, self.own } do\n"
                   "    t[#t + 1] = coroutine.status(co)\n"
                   "    t[#t + 1] = select(2, coroutine.resume(co))\n"
                   "    t[#t + 1] = select(2, pcall(coroutine.close, co))\n"
                   "  end\n"
                   "  return table.concat(t, '; ')\n"
                   "end",
                   "local b = troupe.spawn(B)\n"
                   "local first = troupe.ask(b.first)\n"
                   "return { troupe.await(troupe.ask(b.second)), troupe.await(first) }",
                   "[\"normal; cannot resume a coroutine whose handler awaits; cannot close a normal coroutine; "
                   "normal; cannot resume a coroutine whose handler awaits; cannot close a normal coroutine\",7]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(where_it_cannot_wait_it_is_a_fault_of_its_own_kind) {
        lua_fixture_init(&fixture, 0);
        expect("table.sort({ 2, 1 }, function(a, b) troupe.await(troupe.sleep(1)) return a < b end)",
               "fault(await)/yes: await: cannot wait inside a callback of a C function (sort, gsub and the like)");
        expect("return (('x'):gsub('.', function() return troupe.await(later(1, 'y')) end))",
               "fault(await)/yes: await: cannot wait inside a callback of a C function (sort, gsub and the like)");
        expect("return (('x'):gsub('.', coroutine.wrap(function() return troupe.await(later(1, 'y')) end)))",
               "fault(await)/yes: await: cannot wait in a coroutine that runs inside a callback of a C function (sort, "
               "gsub and "
               "the like)");
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B.on:waits() troupe.await(troupe.sleep(1)) end",
                   "return troupe.ask(troupe.spawn(B).waits)",
                   "fault(await)/yes: await: the handler `waits` is declared under `on`; one that waits is declared "
                   "under `async`");
        /* also where there is nothing to wait for */
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B.on:settled() return troupe.await(troupe.all {}) end",
                   "return troupe.ask(troupe.spawn(B).settled)",
                   "fault(await)/yes: await: the handler `settled` is declared under `on`; one that waits is declared "
                   "under `async`");
        expect("table.sort({ 2, 1 }, function(a, b) troupe.await(troupe.all {}) return a < b end)",
               "fault(await)/yes: await: cannot wait inside a callback of a C function (sort, gsub and the like)");
        /* caught, it was nothing: no promise goes on with a handler that never waited */
        expect("local p = troupe.sleep(1)\n"
               "local ok = pcall(table.sort, { 2, 1 }, function() troupe.await(p) end)\n"
               "troupe.await(troupe.sleep(5))\n"
               "return ok",
               "false");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_file_cannot_wait) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", "troupe.await(troupe.sleep(1))");
        target = lua_fixture_spawn(&fixture, "m", NULL);
        ck_assert_end(&fixture, target,
                      "load/no: the module `m` failed to load: await: a file's top level cannot wait");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_bare_yield_is_a_fault) {
        lua_fixture_init(&fixture, 0);
        expect("coroutine.yield(1)", "fault(error)/yes: m.lua:9: a bare coroutine.yield in a handler: nobody resumes "
                                     "it (use troupe.await, or a coroutine "
                                     "of your own)");
        expect("return { coroutine.isyieldable(), select(2, coroutine.running()) }", "[false,true]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(while_one_waits_others_run) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B:init() self.seen = {} end\n"
                   "function B.async:work(x) table.insert(self.seen, 'start ' .. x) troupe.await(troupe.sleep(5))\n"
                   "  table.insert(self.seen, 'end ' .. x) end\n"
                   "function B.on:history() return table.concat(self.seen, ', ') end",
                   "local b = troupe.spawn(B)\n"
                   "troupe.await(troupe.all { troupe.ask(b.work, 'a'), troupe.ask(b.work, 'b') })\n"
                   "return troupe.ask(b.history)",
                   "\"start a, start b, end a, end b\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(combinators_settle_as_their_parts_do) {
        lua_fixture_init(&fixture, 0);
        expect("return troupe.all {}", "[]");
        expect("return troupe.all { later(9, 1), later(1, 2), later(5, 3) }", "[1,2,3]");
        expect("return troupe.all { later(9, 1), fails(1) }", "fault(error)/yes: late");
        expect("return troupe.race { later(500, 1), later(1, 2) }", "2");
        expect("return troupe.race { later(500, 1), fails(1) }", "fault(error)/yes: late");
        expect("return troupe.any { fails(1), later(9, 2) }", "2");
        expect("local ok, e = pcall(troupe.await, troupe.any { fails(1), fails(2) }) return { e.code, #e.errors, "
               "e.errors[2].message }",
               "[\"fault\",2,\"late\"]");
        expect("local ok, e = pcall(troupe.await, troupe.any {}) return { e.code, e.kind, #e.errors }", "[\"fault\",\"error\",0]");
        expect("local s = troupe.await(troupe.settled { later(1, 'v'), fails(1) })\n"
               "return { s[1].status, s[1].value, s[2].status, s[2].reason.message }",
               "[\"fulfilled\",\"v\",\"rejected\",\"late\"]");
        expect("return troupe.all { 1 }", "fault(error)/yes: all: 1 is not a promise");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Each level settles the next: none of it may be on the C stack. */
START_TEST(combinators_may_be_nested_without_end) {
        lua_fixture_init(&fixture, 0);
        expect("local p = later(1, 'deep') for i = 1, 20000 do p = troupe.race { p } end return p", "\"deep\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(timeout_takes_back_what_was_asked) {
        lua_fixture_init(&fixture, 0);
        expect("return troupe.timeout(later(1, 'in time'), 10000)", "\"in time\"");
        expect("return troupe.timeout(fails(1), 10000)", "fault(error)/yes: late");
        /* time enough for the actor to have begun, however busy the machine is */
        expect("return troupe.timeout(later(600, 1), 300)", "timeout/maybe: it has not settled in time");
        expect("return troupe.timeout(troupe.sleep(10000), 5)", "timeout/maybe: it has not settled in time");
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B:init() troupe.await(troupe.sleep(30)) self.ran = 0 end\n"
                   "function B.on:run() self.ran = self.ran + 1 return self.ran end",
                   "local b = troupe.spawn(B)\n"
                   "local p = troupe.ask(b.run)\n"
                   "local ok, e = pcall(troupe.await, troupe.timeout(p, 5))\n"
                   "local ok2, e2 = pcall(troupe.await, p)\n"
                   "return { e.code, e.ran, e2.code, troupe.await(troupe.ask(b.run)) }",
                   "[\"timeout\",\"no\",\"timeout\",1]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(every_ticks_until_it_is_ended) {
        lua_fixture_init(&fixture, 0);
        expect("local n, stop = 0\n"
               "stop = troupe.every(1, function() n = n + 1 if n == 3 then stop() end end)\n"
               "while n < 3 do troupe.await(troupe.sleep(1)) end\n"
               "troupe.await(troupe.sleep(10))\n"
               "return n",
               "3");
        /* a tick that waits is not overtaken */
        expect("local running, most, n = 0, 0, 0\n"
               "local stop = troupe.every(1, function()\n"
               "  running = running + 1 most = math.max(most, running)\n"
               "  troupe.await(troupe.sleep(5))\n"
               "  running = running - 1 n = n + 1\n"
               "end)\n"
               "while n < 3 do troupe.await(troupe.sleep(1)) end\n"
               "stop() stop()\n"
               "return most",
               "1");
        expect("troupe.every(1, function() error('tick', 0) end) troupe.await(troupe.sleep(10000))",
               "fault(error)/maybe: tick");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(every_does_not_hold_up_a_stop) {
        struct tr_target *target;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m",
                           "local A = troupe.actor 'A' function A:init() troupe.every(1, function() end) end\n"
                           "function A.on:hi() end");
        target = lua_fixture_spawn(&fixture, "m", NULL);
        ck_assert_answer(&fixture, target, "hi", "null");
        target->ops->stop(target, TR_STOP_ASKED, TR_NEVER);
        ck_assert_end(&fixture, target, "null");
        tr_target_unref(target);
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_nothing_can_settle_ends_with_stop) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B.async:waits() troupe.await(troupe.race {}) end",
                   "local b = troupe.spawn(B)\n"
                   "local p = troupe.ask(b.waits)\n"
                   "troupe.stop(b)\n"
                   "return p",
                   "stopped/maybe: the actor stopped before it answered this");
        lua_expect(&fixture,
                   "local B = troupe.actor 'B'\n"
                   "function B.async:waits(other) troupe.await(troupe.done(other)) return 'it has ended' end\n"
                   "local C = troupe.actor 'C'",
                   "local b, c = troupe.spawn(B), troupe.spawn(C)\n"
                   "local p = troupe.ask(b.waits, c)\n"
                   "troupe.stop(b)\n"
                   "troupe.await(troupe.sleep(5))\n"
                   "troupe.stop(c)\n"
                   "return p",
                   "\"it has ended\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* The log, as the hook sees it. */
static struct {
        pthread_mutex_t lock;
        int lines;
        char last[512];
} logged = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_line(void *userdata, const struct tr_log_line *line) {
        if (!strstr(line->text, "nobody awaited"))
                return;
        pthread_mutex_lock(&logged.lock);
        logged.lines++;
        snprintf(logged.last, sizeof(logged.last), "%s", line->text);
        pthread_mutex_unlock(&logged.lock);
}

static bool has_logged(void *userdata) {
        bool has;

        pthread_mutex_lock(&logged.lock);
        has = logged.lines >= *(int *)userdata;
        pthread_mutex_unlock(&logged.lock);
        return has;
}

START_TEST(a_rejection_nobody_awaited_is_logged) {
        int one = 1;

        tr_log_set_hook(on_line, NULL);
        lua_fixture_init(&fixture, 0);
        expect("local p = fails(1) troupe.await(troupe.sleep(20)) return pcall(troupe.await, p)", "false");
        expect("troupe.await(troupe.all { troupe.settled { fails(1) } })", "null");
        ck_assert_int_eq(logged.lines, 0);
        expect("troupe.ask(troupe.me().nothing) troupe.await(troupe.sleep(5)) return 1", "1");
        lua_run_until(&fixture, has_logged, &one);
        lua_fixture_deinit(&fixture);
        ck_assert_int_eq(logged.lines, 1);
        ck_assert_ptr_nonnull(strstr(logged.last, "has no handler `nothing` (it was made at "));
        ck_assert_ptr_nonnull(strstr(logged.last, "m.lua:9)"));
        tr_log_set_hook(NULL, NULL);
}
END_TEST

/* Sends an actor a message whose handler, in the module's second line, leaves a rejected promise; waits for the log. What it
 * asks itself is answered in the order in which it asks. */
static void check_made(const char *body, const char *where) {
        char *before = NULL;
        int more;

        pthread_mutex_lock(&logged.lock);
        more = logged.lines + 1;
        pthread_mutex_unlock(&logged.lock);
        ck_assert_int_ge(asprintf(&before,
                                  "local B = troupe.actor 'B'\nfunction B.on:run() %s end\n"
                                  "function B.on:hi() end function B.async:sync() troupe.await(troupe.ask(troupe.me().hi)) end",
                                  body),
                         0);
        lua_expect(&fixture, before,
                   "local b = troupe.spawn(B) troupe.send(b.run) troupe.await(troupe.ask(b.sync)) troupe.stop(b)\n"
                   "troupe.await(troupe.done(b))",
                   "null");
        free(before);
        lua_run_until(&fixture, has_logged, &more);
        pthread_mutex_lock(&logged.lock);
        ck_assert_msg(strstr(logged.last, where), "%s", logged.last);
        pthread_mutex_unlock(&logged.lock);
}

START_TEST(a_rejection_names_the_line_however_it_was_made) {
        tr_log_set_hook(on_line, NULL);
        lua_fixture_init(&fixture, 0);
        check_made("troupe.ask(troupe.me().none)", "m.lua:2)");
        /* a send: nobody wants what the handler returns */
        check_made("return troupe.ask(troupe.me().none)", "m.lua:2)");
        check_made("return troupe.all { troupe.ask(troupe.me().none) }", "m.lua:2)");
        check_made("return troupe.timeout(troupe.ask(troupe.me().none), 10000)", "m.lua:2)");
        check_made("return troupe.done(troupe.handle 'actor:00112233445566778899aabbccddeeff')", "m.lua:2)");
        check_made("pcall(troupe.ask, troupe.me().none)", "m.lua:2)");
        check_made("pcall(pcall, troupe.any, {})", "m.lua:2)");
        check_made("coroutine.wrap(troupe.ask)(troupe.me().none)", "(it was made by a coroutine that runs no Lua code)");
        lua_fixture_deinit(&fixture);
        tr_log_set_hook(NULL, NULL);
}
END_TEST

START_TEST(misuse_names_the_function) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "local function caught(f, ...) local ok, e = pcall(f, ...) return { e.code, e.message, e.ran } end",
                   "return { caught(troupe.await, 5), caught(troupe.race, 5), caught(troupe.settled, { 5 }), caught(troupe.timeout, 5, 5),\n"
                   "  caught(troupe.timeout, troupe.sleep(1), 0), caught(troupe.sleep, 'soon'), caught(troupe.every, 1) }",
                   "[[\"bad-request\",\"await: 5 is not a promise\",\"no\"],"
                   "[\"bad-request\",\"race: 5 is not a list of promises\",\"no\"],"
                   "[\"bad-request\",\"settled: 5 is not a promise\",\"no\"],"
                   "[\"bad-request\",\"timeout: 5 is not a promise\",\"no\"],"
                   "[\"bad-request\",\"timeout: 0 is not a time (milliseconds above 0, or text like \"2s\")\",\"no\"],"
                   "[\"bad-request\",\"sleep: \"soon\" is not a time (milliseconds above 0, or text like \"2s\")\",\"no\"],"
                   "[\"bad-request\",\"every: nil is not a function\",\"no\"]]");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Two at once: the third waits in the mailbox, and so does what is behind it, while answers still come in. */
START_TEST(asynchronous_handlers_in_progress_are_bounded) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local Gate = troupe.actor 'Gate'\n"
                   "function Gate:init() self.waiting = 0 end\n"
                   "function Gate.async:wait()\n"
                   "  self.waiting = self.waiting + 1\n"
                   "  while not self.is_open do troupe.await(troupe.sleep(1)) end\n"
                   "end\n"
                   "function Gate.on:waiting() return self.waiting end\n"
                   "function Gate.on:open() self.is_open = true end\n"
                   "local B = troupe.actor 'B'\n"
                   "function B:init(gate) self.gate, self.running, self.most, self.done = gate, 0, 0, 0 end\n"
                   "function B.async:work()\n"
                   "  self.running = self.running + 1 self.most = math.max(self.most, self.running)\n"
                   "  troupe.await(troupe.ask(self.gate, 'wait'))\n"
                   "  self.running, self.done = self.running - 1, self.done + 1\n"
                   "end\n"
                   "function B.on:seen() return { self.most, self.done >= 3 } end",
                   "local gate = troupe.spawn(Gate)\n"
                   "local b = troupe.spawn(B, gate, { async = 2 })\n"
                   "for i = 1, 5 do troupe.send(b.work) end\n"
                   "local seen = troupe.ask(b.seen)\n"
                   "while troupe.await(troupe.ask(gate, 'waiting')) < 2 do end\n"
                   "troupe.send(gate, 'open')\n"
                   "return seen",
                   "[2,true]");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("await", await_gives_the_value_or_raises_the_reason, await_works_through_everything_that_can_yield,
           await_in_a_coroutine_suspends_the_whole_handler, nobody_else_goes_on_with_what_awaits,
           where_it_cannot_wait_it_is_a_fault_of_its_own_kind, a_file_cannot_wait, a_bare_yield_is_a_fault,
           while_one_waits_others_run, combinators_settle_as_their_parts_do, combinators_may_be_nested_without_end,
           timeout_takes_back_what_was_asked, every_ticks_until_it_is_ended, every_does_not_hold_up_a_stop,
           what_nothing_can_settle_ends_with_stop, a_rejection_nobody_awaited_is_logged,
           a_rejection_names_the_line_however_it_was_made, misuse_names_the_function,
           asynchronous_handlers_in_progress_are_bounded);
