/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `supervise`, with a clock that the test drives: no pause is waited for. What happens is recorded by an actor that the
 * children tell of it, in the order in which they do.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log_line.h"
#include "tests/unit/lua_fixture.h"
#include "tests/unit/suite.h"

static struct lua_fixture fixture;
static struct tr_target *boss, *recorder;
static _Atomic uint64_t now_ns;

static uint64_t driven(void) {
        return atomic_load(&now_ns);
}

/* The last pause that was logged, in milliseconds; 0: none since it was looked at. */
static _Atomic unsigned int pause_ms;

static void on_log(void *userdata, const struct tr_log_line *line) {
        const char *at = strstr(line->text, "it is started again in ");
        unsigned int ms;

        if (at && sscanf(at, "it is started again in %u ms", &ms) == 1) {
                atomic_store(&pause_ms, ms);
                sem_post(&fixture.woken);
        }
}

static const char recorder_text[] = "local Recorder = troupe.actor 'Recorder'\n"
                                    "function Recorder:init() self.lines = {} end\n"
                                    "function Recorder.on:add(line) table.insert(self.lines, line) end\n"
                                    "function Recorder.on:take(expected)\n"
                                    "  local lines = table.concat(self.lines, ', ')\n"
                                    "  if lines == expected then self.lines = {} end\n"
                                    "  return lines\n"
                                    "end\n";

/* Whose name ends in `!` fails in its init; whose begins with `slow` takes its time to close. */
static const char child_text[] =
        "local Child = troupe.actor 'Child'\n"
        "local function tell(...) return troupe.ask(troupe.find 'recorder'.add, table.concat({ ... }, ' ')) end\n"
        "function Child:init(name, ...)\n"
        "  self.name, self.more = name, table.concat({ select('#', ...), tostring((...)), tostring((select(2, ...))) "
        "}, ' ')\n"
        "  troupe.await(tell('start', name))\n"
        "  if name:find '!$' then error('init broke', 0) end\n"
        "end\n"
        "function Child.on:name() return self.name end\n"
        "function Child.on:more() return self.more end\n"
        "function Child.on:fail() error('it broke', 0) end\n"
        "function Child.on:loop() while true do self.last = {} end end\n"
        "function Child:close(reason)\n"
        "  troupe.await(tell('close', self.name))\n"
        "  if self.name:find '^slow' then troupe.await(tell('closed', self.name)) end\n"
        "end\n";

/* What the tests say in Lua is run here. */
static const char boss_text[] =
        "local Boss = troupe.actor 'Boss'\n"
        "local Child = require 'child'\n"
        "local env = setmetatable({ troupe = troupe, await = troupe.await }, { __index = _G })\n"
        "function env.ask(...) return troupe.await(troupe.ask(...)) end\n"
        "function env.child(name) return env.ask(env.sup.child, name) end\n"
        "function env.failed(...) local ok, e = pcall(...) return not ok and (e.code .. ': ' .. e.message) end\n"
        "function env.ended(h) return env.failed(troupe.await, troupe.done(h)) or 'stopped' end\n"
        "function Boss.async:run(code) return assert(load(code, '=code', 't', env))() end\n";

static void set_up(void) {
        atomic_store(&now_ns, 1000 * TR_NS_PER_S);
        atomic_store(&pause_ms, 0);
        tr_clock_set_source(driven);
        lua_fixture_init(&fixture, 0);
        tr_log_set_hook(on_log, NULL);
        lua_fixture_module(&fixture, "recorder", recorder_text);
        lua_fixture_module(&fixture, "child", child_text);
        lua_fixture_module(&fixture, "boss", boss_text);
        recorder = lua_fixture_spawn(&fixture, "recorder", &(struct tr_actor_options){ .publish = "recorder" });
        boss = lua_fixture_spawn(&fixture, "boss", NULL);
}

static void tear_down(void) {
        tr_target_unref(boss);
        tr_target_unref(recorder);
        lua_fixture_deinit(&fixture);
        tr_log_set_hook(NULL, NULL);
}

/* Runs Lua in the boss, and checks what it answers, as JSON has it. */
static void expect(const char *code, const char *expected) {
        char *answer = lua_answer(&fixture, boss, "run", code);

        ck_assert_msg(strcmp(answer, expected) == 0, "%s\nanswered %s\nand not  %s", code, answer, expected);
        free(answer);
}

static void run(const char *code) {
        expect(code, "null");
}

/* The supervisor sees the time when it has something to do. */
static void pass_ms(unsigned int ms) {
        atomic_fetch_add(&now_ns, ms * TR_NS_PER_MS);
        run("ask(sup.children)");
}

/* Plays the loop until exactly this has been recorded since the last time, and forgets it. At each look `ms` more have
 * passed. */
static void expect_record_passing(unsigned int ms, const char *expected) {
        size_t len = strlen(expected);

        for (;;) {
                char *quoted = lua_answer(&fixture, recorder, "take", expected), *record = quoted + 1;
                size_t record_len = strlen(record) - 1;
                bool is_all = record_len == len;
                bool is_prefix = record_len <= len && strncmp(record, expected, record_len) == 0;

                ck_assert_msg(is_prefix, "recorded %.*s\nand not  %s", (int)record_len, record, expected);
                free(quoted);
                if (is_all)
                        break;
                if (ms > 0)
                        pass_ms(ms);
        }
}

static void expect_record(const char *expected) {
        expect_record_passing(0, expected);
}

static bool has_paused(void *userdata) {
        return atomic_load(&pause_ms) != 0;
}

/* Waits until the supervisor has logged a pause, and done what it does before; answers it. */
static unsigned int wait_for_pause(void) {
        lua_run_until(&fixture, has_paused, NULL);
        run("ask(sup.children)");
        return atomic_exchange(&pause_ms, 0);
}

/* A pause begins, and passes. */
static void pass_pause(void) {
        pass_ms(wait_for_pause());
}

static const char three[] = "sup = troupe.supervise({ { 'child', 'a', name = 'a' }, { 'child', 'b', name = 'b' }, { "
                            "'child', 'c', name = 'c' } }, ";

static void supervise_three(const char *options) {
        char code[1024];

        snprintf(code, sizeof(code), "%s%s)", three, options);
        run(code);
        expect_record("start a, start b, start c");
}

START_TEST(it_starts_them_in_order_and_knows_them) {
        set_up();
        run("sup = troupe.supervise { { 'child', 'a', nil, 3, name = 'first', publish = 'dev.a' }, { 'child:Child', "
            "'b' } }");
        expect_record("start a, start b");
        expect("return #ask(sup.children)", "2");
        expect("local all = ask(sup.children) return { #all, ask(all[1].name), ask(all[2].name) }", "[2,\"a\",\"b\"]");
        expect("return child 'first' == ask(sup.children)[1] and child 'first' == troupe.find 'dev.a'", "true");
        expect("return ask(child 'first'.more)", "\"2 nil 3\"");
        expect("return failed(child, 'dev.a')", "\"not-found: there is no child dev.a\"");
        expect("return failed(child)", "\"not-found: there is no child nil\"");
        expect("return tostring(child 'first'):match '^first '", "\"first \"");
        run("empty = troupe.supervise {}");
        expect("return #ask(empty.children)", "0");
        tear_down();
}
END_TEST

/* How a child ends, and whether it comes back. */
static const struct {
        const char *restart, *how;
        bool back;
} ends[] = {
        { "permanent", "troupe.stop(child 'a')", true },  { "permanent", "failed(ask, child 'a'.fail)", true },
        { "transient", "troupe.stop(child 'a')", false }, { "transient", "failed(ask, child 'a'.fail)", true },
        { "temporary", "troupe.stop(child 'a')", false }, { "temporary", "failed(ask, child 'a'.fail)", false },
};

START_TEST(restart_says_who_comes_back) {
        char code[256];

        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                set_up();
                snprintf(code, sizeof(code),
                         "sup = troupe.supervise { { 'child', 'a', name = 'a', publish = 'a', restart = '%s' }, { "
                         "'child', 'b' } }",
                         ends[i].restart);
                run(code);
                expect_record("start a, start b");
                run("first = child 'a'");
                snprintf(code, sizeof(code), "%s ended(first)", ends[i].how);
                run(code);
                if (ends[i].back) {
                        pass_pause();
                        expect_record(strstr(ends[i].how, "stop") ? "close a, start a" : "start a");
                        expect("return child 'a' ~= first and ask(troupe.find 'a'.name)", "\"a\"");
                } else {
                        expect("while child 'a' do end return #ask(sup.children)", "1");
                        expect("return troupe.find 'a'", "null");
                        pass_ms(60000);
                        expect("return #ask(sup.children)", "1");
                        expect_record(strstr(ends[i].how, "stop") ? "close a" : "");
                }
                tear_down();
        }
}
END_TEST

START_TEST(who_is_killed_comes_back) {
        struct tr_target *child;

        set_up();
        run("sup = troupe.supervise { { 'child', 'a', publish = 'a', restart = 'transient' } }");
        expect_record("start a");
        child = tr_registry_find_name(&fixture.system->registry, "a", 1);
        child->ops->kill(child);
        pass_pause();
        expect_record("start a");
        tr_target_unref(child);
        tear_down();
}
END_TEST

START_TEST(one_for_one) {
        set_up();
        supervise_three("{ strategy = 'one-for-one' }");
        run("a, c = child 'a', child 'c' failed(ask, child 'b'.fail)");
        pass_pause();
        expect_record("start b");
        expect("return child 'a' == a and child 'c' == c", "true");
        tear_down();
}
END_TEST

START_TEST(one_for_all) {
        set_up();
        supervise_three("{ strategy = 'one-for-all' }");
        run("failed(ask, child 'b'.fail)");
        expect_record("close c, close a");
        expect_record_passing(100, "start a, start b, start c");
        tear_down();
}
END_TEST

START_TEST(rest_for_one) {
        set_up();
        supervise_three("{ strategy = 'rest-for-one' }");
        run("a = child 'a' failed(ask, child 'b'.fail)");
        expect_record("close c");
        expect_record_passing(100, "start b, start c");
        expect("return child 'a' == a", "true");
        tear_down();
}
END_TEST

START_TEST(an_end_that_concerns_more_takes_over) {
        set_up();
        supervise_three("{ strategy = 'rest-for-one' }");
        run("failed(ask, child 'c'.fail)");
        wait_for_pause();
        run("failed(ask, child 'a'.fail)");
        expect_record("close b");
        expect_record_passing(100, "start a, start b, start c");
        pass_ms(60000);
        expect_record("");
        tear_down();
}
END_TEST

START_TEST(with_others_the_transient_come_back_and_the_temporary_do_not) {
        set_up();
        run("sup = troupe.supervise({ { 'child', 'a', name = 'a' }, { 'child', 'b', name = 'b', publish = 'b', restart "
            "= 'transient' },\n"
            "  { 'child', 'c', name = 'c', publish = 'c', restart = 'temporary' } }, { strategy = 'one-for-all' })");
        expect_record("start a, start b, start c");
        run("local b = child 'b' troupe.stop(b) ended(b)");
        expect("while child 'b' do end return #ask(sup.children)", "2");
        /* its name is kept for it */
        expect("return failed(troupe.publish, 'b', troupe.me())", "\"taken: the name b is published already\"");
        expect_record("close b");
        run("failed(ask, child 'a'.fail)");
        expect_record_passing(100, "close c, start a, start b");
        expect("while child 'c' do end return { child 'c' == nil, troupe.find 'b' == child 'b', troupe.find 'c' == nil "
               "}",
               "[true,true,true]");
        tear_down();
}
END_TEST

START_TEST(when_the_restarts_run_out_it_stops_them_and_faults) {
        set_up();
        supervise_three("{ restarts = 2, within = 1000 }");
        for (int i = 0; i < 2; i++) {
                run("failed(ask, child 'b'.fail)");
                pass_pause();
                expect_record("start b");
        }
        run("failed(ask, child 'b'.fail)");
        expect_record("close c, close a");
        expect("return ended(sup)",
               "\"fault: supervise: b ended, and the restarts have run out (2 within 1000 ms): it broke\"");
        tear_down();
}
END_TEST

START_TEST(ends_of_long_ago_do_not_count) {
        set_up();
        supervise_three("{ restarts = 1, within = 1000, backoff = { min = 1, max = 1 } }");
        for (int i = 0; i < 4; i++) {
                run("failed(ask, child 'b'.fail)");
                pass_pause();
                expect_record("start b");
                pass_ms(999);
        }
        run("failed(ask, child 'a'.fail)");
        pass_pause();
        expect_record("start a");
        /* at the last millisecond of the window it is the second one */
        pass_ms(998);
        run("failed(ask, child 'b'.fail)");
        expect_record("close c, close a");
        tear_down();
}
END_TEST

START_TEST(no_restart_at_all) {
        set_up();
        supervise_three("{ restarts = 0 }");
        run("failed(ask, child 'a'.fail)");
        expect_record("close c, close b");
        expect("return ended(sup)",
               "\"fault: supervise: a ended, and the restarts have run out (0 within 5000 ms): it broke\"");
        tear_down();
}
END_TEST

START_TEST(pauses_double_and_nothing_starts_before_its_time) {
        static const unsigned int expected_ms[] = { 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };

        set_up();
        supervise_three("{ restarts = 100 }");
        for (size_t i = 0; i < sizeof(expected_ms) / sizeof(*expected_ms); i++) {
                run("b = child 'b' failed(ask, b.fail)");
                ck_assert_uint_eq(wait_for_pause(), expected_ms[i]);
                pass_ms(expected_ms[i] - 1);
                expect("return child 'b' == b", "true");
                pass_ms(1);
                expect_record("start b");
        }
        /* another child has pauses of its own, and a long run is rewarded */
        run("failed(ask, child 'a'.fail)");
        ck_assert_uint_eq(wait_for_pause(), 100);
        pass_ms(100);
        expect_record("start a");
        pass_ms(4999);
        run("failed(ask, child 'a'.fail)");
        ck_assert_uint_eq(wait_for_pause(), 200);
        pass_ms(200);
        expect_record("start a");
        pass_ms(5000);
        run("failed(ask, child 'a'.fail)");
        ck_assert_uint_eq(wait_for_pause(), 100);
        tear_down();
}
END_TEST

START_TEST(a_published_name_moves_in_one_step) {
        set_up();
        run("sup = troupe.supervise { { 'child', 'a', name = 'a', publish = 'dev.a' } }");
        expect("return failed(troupe.publish, 'dev.a', troupe.me())", "\"taken: the name dev.a is published already\"");
        expect_record("start a");
        run("first = troupe.find 'dev.a' failed(ask, first.fail)");
        wait_for_pause();
        expect("return { troupe.find 'dev.a' == first, child 'a' == first }", "[true,true]");
        expect("return failed(ask, troupe.find 'dev.a'.name)", "\"not-running: the actor is not running\"");
        expect("return failed(troupe.publish, 'dev.a', troupe.me())", "\"taken: the name dev.a is published already\"");
        expect("return failed(troupe.spawn, 'child', 'x', troupe.options { publish = 'dev.a' })",
               "\"taken: spawn: the name dev.a is published already\"");
        expect("return failed(troupe.supervise, { { 'child', 'x', publish = 'x' }, { 'child', 'x', publish = 'dev.a' } "
               "})",
               "\"taken: supervise: the name dev.a is published already\"");
        expect("return troupe.find 'x'", "null");
        pass_ms(100);
        expect_record("start a");
        expect("local second = troupe.find 'dev.a' return { second ~= first, second == child 'a', ask(second.name) }",
               "[true,true,\"a\"]");
        run("troupe.stop(sup) ended(sup)");
        expect("troupe.publish('dev.a', troupe.me()) return troupe.find 'dev.a' == troupe.me()", "true");
        tear_down();
}
END_TEST

START_TEST(it_stops_them_in_reverse_order_each_waited_for) {
        set_up();
        run("sup = troupe.supervise { { 'child', 'slow a' }, { 'child', 'slow b' }, { 'child', 'slow c' } }");
        expect_record("start slow a, start slow b, start slow c");
        run("troupe.stop(sup)");
        expect("return ended(sup)", "\"stopped\"");
        expect_record("close slow c, closed slow c, close slow b, closed slow b, close slow a, closed slow a");
        tear_down();
}
END_TEST

START_TEST(a_stop_in_a_pause_ends_it) {
        set_up();
        supervise_three("{ strategy = 'rest-for-one' }");
        run("failed(ask, child 'b'.fail)");
        expect_record("close c");
        wait_for_pause();
        run("troupe.stop(sup)");
        expect("return ended(sup)", "\"stopped\"");
        expect_record("close a");
        atomic_fetch_add(&now_ns, 60 * TR_NS_PER_S);
        expect_record("");
        tear_down();
}
END_TEST

START_TEST(who_is_killed_leaves_nobody_behind) {
        set_up();
        run("sup = troupe.supervise { { 'child', 'a', name = 'a', publish = 'a' } }");
        expect_record("start a");
        run("a = child 'a' troupe.stop(sup, { within = 1 })");
        expect("return ended(sup)", "\"stopped\"");
        expect_record("close a");

        /* one that cannot stop it in time is killed */
        run("sup = troupe.supervise { { 'child', 'a', name = 'a', publish = 'a' } }");
        expect_record("start a");
        run("a = child 'a' troupe.ask(a.loop) troupe.stop(sup, { within = 1 })");
        atomic_fetch_add(&now_ns, TR_NS_PER_MS);
        expect("return ended(sup)", "\"killed: the actor was killed\"");
        expect("return troupe.find 'a'", "null");
        /* and what is left has the grace */
        atomic_fetch_add(&now_ns, 10 * TR_NS_PER_S);
        expect("return ended(a)", "\"killed: the actor was killed\"");
        tear_down();
}
END_TEST

START_TEST(a_sibling_that_does_not_stop_is_killed_after_the_grace) {
        set_up();
        supervise_three("{ strategy = 'one-for-all' }");
        run("c = child 'c' troupe.ask(c.loop) failed(ask, child 'b'.fail)");
        wait_for_pause();
        atomic_fetch_add(&now_ns, 10 * TR_NS_PER_S);
        expect("return ended(c)", "\"killed: the actor was killed\"");
        expect_record("close a, start a, start b, start c");
        tear_down();
}
END_TEST

START_TEST(an_init_that_fails_is_an_end_like_others) {
        set_up();
        run("sup = troupe.supervise({ { 'child', 'a' }, { 'child', 'b!' } }, { restarts = 1 })");
        atomic_fetch_add(&now_ns, wait_for_pause() * TR_NS_PER_MS);
        run("failed(ask, sup.children)"); /* it may have faulted by now */
        expect_record("start a, start b!, start b!, close a");
        expect("return ended(sup)",
               "\"fault: supervise: child ended, and the restarts have run out (1 within 5000 ms): init broke\"");
        run("sup = troupe.supervise({ { 'missing', name = 'm' } }, { restarts = 0 })");
        expect("return ended(sup):match '^fault: supervise: m ended, .*: there is no module `missing`' ~= nil", "true");
        tear_down();
}
END_TEST

/* One of a round that is stopped before it has started, and does not come back, does not keep the others from starting. */
START_TEST(one_stopped_while_it_starts_lets_the_others_start) {
        set_up();
        lua_fixture_module(&fixture, "gate",
                           "local Gate = troupe.actor 'Gate'\n"
                           "function Gate:init() if troupe.find 'shut' then troupe.await(troupe.race {}) end end\n");
        run("sup = troupe.supervise({ { 'gate', name = 'g', publish = 'g', restart = 'transient' }, { 'child', 'b', "
            "name "
            "= 'b' } },\n"
            "  { strategy = 'one-for-all' })");
        expect_record("start b");
        run("g = child 'g' troupe.publish('shut', troupe.me()) failed(ask, child 'b'.fail)");
        pass_pause();
        run("repeat again = troupe.find 'g' until again ~= g troupe.stop(again) ended(again)");
        expect_record("start b");
        expect("return { child 'g' == nil, #ask(sup.children) }", "[true,1]");
        run("troupe.unpublish 'shut'");
        tear_down();
}
END_TEST

START_TEST(one_that_cannot_be_started_is_tried_again) {
        uint32_t limit;

        set_up();
        supervise_three("{ strategy = 'one-for-all', restarts = 10 }");
        limit = fixture.system->limits.actors;
        run("a, c = child 'a', child 'c' failed(ask, child 'b'.fail)");
        run("ended(a) ended(c)");
        expect_record("close c, close a");
        fixture.system->limits.actors = tr_system_actors(fixture.system) + 1;
        pass_pause();
        expect_record("start a, close a");
        fixture.system->limits.actors = limit;
        expect_record_passing(100, "start a, start b, start c");
        tear_down();
}
END_TEST

START_TEST(supervisors_in_supervisors) {
        unsigned int pause;

        set_up();
        run("sup = troupe.supervise({ { 'child', 'a' }, { 'troupe.supervisor', { { 'child', 'b', name = 'b', publish = "
            "'b' }, { 'child', 'c' } },\n"
            "  { restarts = 1 }, name = 'inner' } })");
        expect_record("start a, start b, start c");
        run("inner = child 'inner' failed(ask, troupe.find 'b'.fail)");
        pause = wait_for_pause();
        run("ask(inner.children)");
        atomic_fetch_add(&now_ns, pause * TR_NS_PER_MS);
        run("ask(inner.children)");
        expect_record("start b");
        run("failed(ask, ask(inner.child, 'b').fail)");
        expect_record("close c");
        expect_record_passing(100, "start b, start c");
        expect("return child 'inner' ~= inner and troupe.find 'b' == ask(child 'inner'.child, 'b')", "true");
        run("troupe.stop(sup)");
        expect_record("close c, close b, close a");
        tear_down();
}
END_TEST

/* What is refused, and how. */
static const char *const refused[][2] = {
        { "nil", "supervise: children: nil is not a list of children" },
        { "5", "supervise: children: 5 is not a list of children" },
        { "{ x = 1 }", "supervise: children: a table is not a list of children" },
        { "{ 42 }", "supervise: children[1]: 42 is not a child: a table { actor, arguments... }" },
        { "{ {} }", "supervise: children[1]: nil is not an actor" },
        { "{ { 'child' }, { print } }", "supervise: children[2]: a function is not an actor" },
        { "{ { 'child', restrat = 1 } }", "supervise: children[1]: there is no option `restrat`" },
        { "{ { 'child', [0] = 1 } }", "supervise: children[1]: there is no option `0`" },
        { "{ { 'child', restart = 'always' } }",
          "supervise: children[1]: restart: \"always\" is not a kind of restart (permanent, transient, temporary)" },
        { "{ { 'child', name = '' } }", "supervise: children[1]: the option `name` wants one line of text" },
        { "{ { 'child', publish = 'a b' } }", "supervise: children[1]: the option `publish` wants a name" },
        { "{ { 'child', options = 5 } }", "supervise: children[1]: options: 5 is not a table of options" },
        { "{ { 'child', options = { heap = -1 } } }",
          "supervise: children[1]: the option `heap` wants a size above 0: bytes, or text like \"64M\"" },
        { "{ { 'child', name = 'x', options = { name = 'y' } } }", "supervise: children[1]: `name` is given twice" },
        { "{ { 'child', name = 'x' }, { 'child', name = 'x' } }",
          "supervise: children[2]: another child has `x` for its `name`" },
        { "{ { 'child', publish = 'x' }, { 'child', options = { publish = 'x' } } }",
          "supervise: children[2]: another child has `x` for its `publish`" },
        { "{ { 'troupe.supervisor', { { 'child' }, 5 } } }",
          "supervise: children[1][2][2]: 5 is not a child: a table { actor, arguments... }" },
        { "{ { 'troupe.supervisor', {}, { strategy = 1 } } }",
          "supervise: children[1][3]: strategy: 1 is not a strategy (one-for-one, one-for-all, rest-for-one)" },
        { "{}, 5", "supervise: 5 is not a table of options" },
        { "{}, { foo = 1 }", "supervise: there is no option `foo`" },
        { "{}, { strategy = 'all' }",
          "supervise: strategy: \"all\" is not a strategy (one-for-one, one-for-all, rest-for-one)" },
        { "{}, { restarts = -1 }", "supervise: restarts: -1 is not a whole number, 0 or more" },
        { "{}, { restarts = 1.5 }", "supervise: restarts: 1.5 is not a whole number, 0 or more" },
        { "{}, { within = 0 }", "supervise: within: 0 is not a time (milliseconds above 0, or text like \"2s\")" },
        { "{}, { backoff = 5 }", "supervise: backoff: 5 is not a table { min = ms, max = ms }" },
        { "{}, { backoff = { mid = 5 } }", "supervise: backoff: there is no option `mid`" },
        { "{}, { backoff = { min = 5, max = 1 } }", "supervise: backoff.min is more than backoff.max" },
};

START_TEST(misuse_is_refused_where_it_is_written) {
        char code[512];

        set_up();
        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
                snprintf(code, sizeof(code),
                         "local e = failed(troupe.supervise, %s) return e == [==[bad-request: %s]==] or e",
                         refused[i][0], refused[i][1]);
                expect(code, "true");
        }
        expect("return failed(troupe.supervise, { { 'child' }, { 'child', { 1 }, print } })",
               "\"not-sendable: supervise: children[2]: a message may not carry a function: `argument 2` is a "
               "function\"");
        lua_fixture_module(&fixture, "early", "troupe.supervise {}");
        expect("return failed(require, 'early'):match 'supervise: not at the top level of a file' ~= nil", "true");
        tear_down();
}
END_TEST

suite_main("supervise", it_starts_them_in_order_and_knows_them, restart_says_who_comes_back, who_is_killed_comes_back,
           one_for_one, one_for_all, rest_for_one, an_end_that_concerns_more_takes_over,
           with_others_the_transient_come_back_and_the_temporary_do_not,
           when_the_restarts_run_out_it_stops_them_and_faults, ends_of_long_ago_do_not_count, no_restart_at_all,
           pauses_double_and_nothing_starts_before_its_time, a_published_name_moves_in_one_step,
           it_stops_them_in_reverse_order_each_waited_for, a_stop_in_a_pause_ends_it,
           who_is_killed_leaves_nobody_behind, a_sibling_that_does_not_stop_is_killed_after_the_grace,
           an_init_that_fails_is_an_end_like_others, one_stopped_while_it_starts_lets_the_others_start,
           one_that_cannot_be_started_is_tried_again, supervisors_in_supervisors,
           misuse_is_refused_where_it_is_written);
