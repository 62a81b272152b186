/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/lua_component.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Tasks in Lua, with a store in memory: how they are asked for, and what their operations see of it. */

static struct lua_fixture fixture;

/* As those who ask have it. `seen(id)` waits for what a run of `work` notes under the task's id. */
static const char before[] =
        "local function task(...) return troupe.await(troupe.task(...)) end\n"
        "local function told(e) return e.code .. '/' .. e.ran .. ': ' .. e.message end\n"
        "local function refused(...) return told(select(2, pcall(task, ...))) end\n"
        "local function misuse(f, ...) return select(2, pcall(f, ...)).message end\n"
        "local function seen(id)\n"
        "  while true do\n"
        "    local e = troupe.await(troupe.call('c', 'noted', nil, { id = id }))\n"
        "    if e then return e end\n"
        "    troupe.await(troupe.sleep(1))\n"
        "  end\n"
        "end\n";

/* `work` notes what it sees. What it is to do first says its input. */
static const char module[] =
        "local ops = {}\n"
        "function ops.work(input, context)\n"
        "  if input.fail == context.attempt then error('it broke', 0) end\n"
        "  local more = input.more and troupe.await(context[input.more[1]](table.unpack(input.more, 2)))\n"
        "  troupe.await(context.entities:put(context.task_id, { operation = context.operation, attempt = context.attempt,\n"
        "    trace = context.trace, uid = context.caller.uid, pid = context.caller.pid, of = context.id, input = input, more = more }))\n"
        "end\n"
        "function ops.change(input, entity, context) if entity then entity.n, entity.task = input, context.task_id end end\n"
        "function ops.noted(input, entity) return entity end\n"
        "function ops.mine() end\n"
        "function ops.plain(input, context) return context.task_id == nil end\n"
        "return { operations = ops }";

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, before, body, expected);
}

static void setup(void) {
        lua_fixture_init(&fixture, 0);
        lua_component_store(&fixture);
        lua_fixture_module(&fixture, "c", module);
        lua_component_declare(&fixture, "{ \"name\": \"c\", \"module\": \"c\", \"concurrency\": 4, \"operations\": {"
                                        "\"work\": { \"input\": { \"type\": \"object\" } }, \"change\": { \"type\": \"transition\" },"
                                        "\"noted\": { \"type\": \"observation\" }, \"mine\": { \"stateful\": true }, \"plain\": {} } }");
}

static void teardown(void) {
        lua_fixture_deinit(&fixture);
}

START_TEST(a_task_is_run_and_knows_which_it_is) {
        expect("local id = task('c', 'work', { n = 1 })\n"
               "local e = seen(id)\n"
               "return { #id, e.operation, e.attempt, #e.trace, e.input.n, math.type(e.uid), e.pid > 0, e.of == nil }",
               "[32,\"work\",1,55,1,\"integer\",true,true]");
        expect("return troupe.await(troupe.call('c', 'plain'))", "true");
}
END_TEST

START_TEST(one_that_raises_is_run_again) {
        expect("local e = seen(task('c', 'work', { fail = 1 })) return e.attempt", "2");
}
END_TEST

START_TEST(it_is_a_part_of_the_trace_that_is_given_or_of_the_call_that_asks) {
        expect("local given = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'\n"
               "local e = seen(task('c', 'work', { more = { 'task', 'c', 'work', {} } }, { trace = given }))\n"
               "local next = seen(e.more)\n"
               "local late = seen(task('c', 'work', { more = { 'delay', 1, 'c', 'work', {} } }, { trace = given }))\n"
               "local last = seen(late.more)\n"
               "return { e.trace:sub(1, 36) == given:sub(1, 36), e.trace ~= given, next.trace:sub(1, 36) == given:sub(1, 36),\n"
               "  next.trace ~= e.trace, last.trace:sub(1, 36) == given:sub(1, 36) }",
               "[true,true,true,true,true]");
}
END_TEST

START_TEST(it_may_be_for_an_entity) {
        expect("local of = seen(task('c', 'work', {}, { id = 'f' })).of\n"
               "local made = task('c', 'change', 5)\n"
               "troupe.await(troupe.call('c', 'change', 1, { id = of }))\n" /* which is not there */
               "local changed = task('c', 'change', 6, { id = made })\n"
               "return { of, #changed }",
               "[\"f\",32]");
}
END_TEST

START_TEST(it_is_due_when_its_options_say) {
        expect("local function at(when) return seen(task('c', 'work', {}, { at = when })).attempt end\n"
               "local soon = os.time() - 5\n"
               "return { at(troupe.timestamp(soon)), at(os.date('!%Y-%m-%dT%H:%M:%SZ', soon)), at(soon * 1000),\n"
               "  seen(troupe.await(troupe.delay(1, 'c', 'work', {}))).attempt, seen(troupe.await(troupe.delay('2ms', 'c', 'work', {}))).attempt,\n"
               "  seen(task('c', 'work', {}, { delay = 1, expires = '1h' })).attempt }",
               "[1,1,1,1,1,1]");
}
END_TEST

START_TEST(a_key_makes_two_that_wait_one) {
        expect("local first = task('c', 'work', { n = 1 }, { key = 'k', delay = '1h' })\n"
               "local same = task('c', 'work', { n = 2 }, { key = 'k' })\n"
               "local other = task('c', 'work', {}, { key = 'l', delay = '1h' })\n"
               "local third = troupe.await(troupe.delay('1h', 'c', 'work', {}, { key = 'l' }))\n"
               "return { first == same, other == first, third == other }",
               "[true,false,true]");
}
END_TEST

START_TEST(what_cannot_be_kept_is_refused) {
        expect("return { refused('none', 'work'), refused('c', 'none') }",
               "[\"not-found/no: there is no component none\",\"not-found/no: the component c has no operation none\"]");
        expect("local function subject(...) local e = select(2, pcall(task, ...)) return { e.code, e.ran, e.subject } end\n"
               "return { subject('c', 'work', 5), subject('c', 'mine'), subject('c', 'work', {}, { instance = 'left' }) }",
               "[[\"contract\",\"no\",\"input\"],[\"contract\",\"no\",\"request\"],[\"contract\",\"no\",\"request\"]]");
        expect("local function code(options) return select(2, pcall(task, 'c', 'work', {}, options)).code end\n"
               "return { code { delay = 1, at = 1 }, code { expires = 1 } }",
               "[\"bad-request\",\"bad-request\"]");
}
END_TEST

/* { what is called, what is said of it } */
static const char *const misuses[][2] = {
        { "troupe.task, 5", "task: 5 is not the name of a component" },
        { "troupe.task, 'c', {}", "task: a table is not the name of an operation" },
        { "troupe.task, 'c', 'work', {}, 5", "task: 5 is not a table of options" },
        { "troupe.task, 'c', 'work', {}, { timeout = 1 }", "task: there is no option `timeout`" },
        { "troupe.task, 'c', 'work', {}, { delay = 0 }",
          "task: the option `delay` wants a time above 0: milliseconds, or text like \\\"200ms\\\"" },
        { "troupe.task, 'c', 'work', {}, { at = 'tomorrow' }",
          "task: the option `at` wants a point in time: a timestamp, RFC 3339 text, or milliseconds since 1970, above 0" },
        { "troupe.task, 'c', 'work', {}, { at = 0 }",
          "task: the option `at` wants a point in time: a timestamp, RFC 3339 text, or milliseconds since 1970, above 0" },
        { "troupe.task, 'c', 'work', {}, { at = 1.5 }",
          "task: the option `at` wants a point in time: a timestamp, RFC 3339 text, or milliseconds since 1970, above 0" },
        { "troupe.task, 'c', 'work', {}, { key = '' }",
          "task: the option `key` wants text of 1 to 256 bytes of UTF-8 without control characters" },
        { "troupe.task, 'c', 'work', {}, { trace = 'x' }", "task: the option `trace` wants a traceparent" },
        { "troupe.task, 'c', 'work', print", "a message may not carry a function: `the input` is a function" },
        { "troupe.delay, 0, 'c', 'work'", "delay: 0 is not a time (milliseconds above 0, or text like \\\"2s\\\")" },
        { "troupe.delay, 'c', 'work'", "delay: \\\"c\\\" is not a time (milliseconds above 0, or text like \\\"2s\\\")" },
        { "troupe.delay, 1", "delay: nil is not the name of a component" },
        { "troupe.delay, 1, 'c', 'work', {}, { delay = 1 }", "delay: there is no option `delay`" },
        { "troupe.delay, 1, 'c', 'work', {}, { at = 1 }", "delay: there is no option `at`" },
};

START_TEST(misuse_is_named) {
        char body[256], expected[256];

        for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
                snprintf(body, sizeof(body), "return (misuse(%s):gsub('\"', '\\\\\"'))", misuses[i][0]);
                snprintf(expected, sizeof(expected), "\"%s\"", misuses[i][1]);
                expect(body, expected);
        }
}
END_TEST

START_TEST(not_at_the_top_level_of_a_file) {
        lua_fixture_module(&fixture, "top", "troupe.task('c', 'work', {})");
        lua_fixture_module(&fixture, "late", "troupe.delay(1, 'c', 'work', {})");
        expect("local function told(name) return select(2, pcall(troupe.await, troupe.done(troupe.spawn(name)))).message end\n"
               "return { told('top'):match 'task: not at the top level', told('late'):match 'delay: not at the top level' }",
               "[\"task: not at the top level\",\"delay: not at the top level\"]");
}
END_TEST

START_TEST(what_is_handed_over_is_copied_and_gone) {
        expect("local b = troupe.bytes 'abc'\n"
               "task('c', 'work', { fail = 0, b = troupe.transfer(b) }, { delay = '1h' })\n"
               "local kept = troupe.bytes 'abc'\n"
               "pcall(task, 'none', 'work', { b = troupe.transfer(kept) })\n"
               "return { #b, #kept }",
               "[0,3]");
}
END_TEST

suite_main_with("lua_tasks", setup, teardown, a_task_is_run_and_knows_which_it_is, one_that_raises_is_run_again,
                it_is_a_part_of_the_trace_that_is_given_or_of_the_call_that_asks, it_may_be_for_an_entity,
                it_is_due_when_its_options_say, a_key_makes_two_that_wait_one, what_cannot_be_kept_is_refused, misuse_is_named,
                not_at_the_top_level_of_a_file, what_is_handed_over_is_copied_and_gone);
