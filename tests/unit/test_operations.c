/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/core/component.h"
#include "daemon/core/replica.h"
#include "tests/unit/lua_component.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Replicas in Lua: what a component's module is, what its operations get, and what they come to. */

static struct lua_fixture fixture;

/* As the callers in these tests have it: what a call comes to, in one text. */
static const char outcome[] =
        "local function outcome(...)\n"
        "  local ok, e = pcall(troupe.await, troupe.call(...))\n"
        "  if ok then return e == nil and 'nil' or e end\n"
        "  return e.code .. (e.kind and '(' .. e.kind .. ')' or '') .. '/' .. e.ran .. ': ' .. e.message\n"
        "end\n";

/* The component `c`, of the module `c`; `members` are further ones of its manifest, each with a comma behind it. */
static void declare(const char *members, const char *operations, const char *module) {
        char *json = NULL;

        lua_fixture_module(&fixture, "c", module);
        ck_assert_int_ge(asprintf(&json, "{ \"name\": \"c\", \"module\": \"c\", %s \"operations\": { %s } }", members, operations), 0);
        lua_component_declare(&fixture, json);
        free(json);
}

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, outcome, body, expected);
}

static void setup(void) {
        lua_fixture_init(&fixture, 0);
}

static void teardown(void) {
        lua_fixture_deinit(&fixture);
}

/* the module */

/* { the module, how its replica ends } */
static const char *const no_modules[][2] = {
        { "return 1", "load/no: the module `bad` is no component's: it answers no table {operations = ...}" },
        { "", "load/no: the module `bad` is no component's: it answers no table {operations = ...}" },
        { "return {}", "load/no: the module `bad` is no component's: its `operations` is a nil and no table" },
        { "return { operations = 1 }", "load/no: the module `bad` is no component's: its `operations` is a number and no table" },
        { "return { operations = {}, opratons = {} }",
          "load/no: the module `bad` is no component's: it answers a table with `opratons`, where only operations, init, ready and "
          "dispose may be" },
        { "return { operations = {}, 5 }",
          "load/no: the module `bad` is no component's: it answers a table with `1`, where only operations, init, ready and dispose "
          "may be" },
        { "return { operations = {}, init = 5 }",
          "load/no: the module `bad` is no component's: its `init` is a number and no function" },
        { "return { operations = {}, ready = true }",
          "load/no: the module `bad` is no component's: its `ready` is a boolean and no function" },
        { "return { operations = {}, dispose = {} }",
          "load/no: the module `bad` is no component's: its `dispose` is a table and no function" },
        { "return { operations = { one = print, two = 2 } }",
          "load/no: the module `bad`: its operations have something among them that is none: two" },
        { "return { operations = { print } }",
          "load/no: the module `bad`: its operations have something among them that is none: 1" },
        { "return { operations = { two = print } }",
          "load/no: the module `bad` has no operation `one`, which the manifest of c has" },
        { "return { operations = { one = print }, init = function() error('no start', 0) end }", "fault(error)/yes: no start" },
        { "return { operations = { one = print }, ready = function() error('not ready', 0) end }", "fault(error)/yes: not ready" },
        { "error('no module', 0)", "load/no: the module `bad` failed to load: no module" },
};

START_TEST(a_module_that_is_no_components_is_a_failed_start) {
        declare("", "\"one\": {}", "return { operations = { one = print } }");
        for (size_t i = 0; i < sizeof(no_modules) / sizeof(no_modules[0]); i++) {
                struct tr_target *target;

                lua_fixture_module(&fixture, "bad", no_modules[i][0]);
                target = lua_component_replica(&fixture, "c", "{ \"name\": \"c\", \"module\": \"bad\", \"operations\": { \"one\": {} } }");
                ck_assert_end(&fixture, target, no_modules[i][1]);
                tr_target_unref(target);
        }
}
END_TEST

START_TEST(a_module_may_have_more_than_its_manifest) {
        declare("", "\"one\": {}", "return { operations = { one = function() return 1 end, two = print } }");
        expect("return outcome('c', 'one')", "1");
        expect("return outcome('c', 'two')", "\"not-found/no: the component c has no operation two\"");
}
END_TEST

/* what an operation gets */

START_TEST(an_operation_gets_what_its_type_says) {
        declare("", "\"plain\": {}, \"compute\": { \"type\": \"computation\" }, \"act\": { \"type\": \"effect\" },"
                    "\"look\": { \"type\": \"observation\" }, \"list\": { \"type\": \"observation\", \"scope\": \"entries\" }",
                "local function two(...) local input, context = ...\n"
                "  return { select('#', ...), input, context.operation } end\n"
                "local function three(...) local input, entity, context = ...\n"
                "  return { select('#', ...), input, type(entity), context.operation } end\n"
                "return { operations = { plain = two, compute = two, act = two, look = three, list = three } }");
        expect("return { outcome('c', 'plain', 1), outcome('c', 'compute', 'a'), outcome('c', 'act', { 1 }) }",
               "[[2,1,\"plain\"],[2,\"a\",\"compute\"],[2,[1],\"act\"]]");
        expect("return { outcome('c', 'look', 1), outcome('c', 'list', true) }",
               "[[3,1,\"nil\",\"look\"],\"store/no: there is no store: this program has none\"]");
}
END_TEST

START_TEST(what_needs_the_store_is_refused) {
        declare("", "\"change\": { \"type\": \"transition\" }, \"make\": { \"type\": \"assignment\" }, \"touch\": {}, \"wait\": {}",
                "local function none() return 'it ran' end\n"
                "return { operations = { change = none, make = none,\n"
                "  touch = function(input, context) return context.entities:get('a') end,\n"
                "  wait = function(input, context) return context.task('c', 'touch') end } }");
        expect("return { outcome('c', 'change'), outcome('c', 'make') }",
               "[\"store/no: there is no store: this program has none\","
               "\"store/no: there is no store: this program has none\"]");
        expect("return { outcome('c', 'touch'), outcome('c', 'wait') }",
               "[\"fault(error)/yes: there is no store: this program has none\","
               "\"fault(error)/yes: there is no store: this program has none\"]");
}
END_TEST

START_TEST(values_cross_as_over_a_socket) {
        declare("", "\"back\": {}, \"types\": {}",
                "return { operations = { back = function(input) return input end,\n"
                "  types = function(input) local t = {} for k, v in pairs(input) do t[k] = math.type(v) or type(v) end return t end } }");
        expect("return { outcome('c', 'back'), outcome('c', 'back', 1), outcome('c', 'back', 0.5), outcome('c', 'back', 'x'),\n"
               "  outcome('c', 'back', { a = { 1, {} } }) }",
               "[\"nil\",1,0.5,\"x\",{\"a\":[1,[]]}]");
        expect("local t = outcome('c', 'types', { i = 1, f = 1.0, h = troupe.me(), b = troupe.bytes('x'), n = troupe.null,\n"
               "  t = troupe.timestamp(1) })\n"
               "return { t.i, t.f, t.h, t.b, t.n, t.t }",
               "[\"integer\",\"float\",\"userdata\",\"userdata\",\"userdata\",\"userdata\"]");
        expect("local me = troupe.me() return { outcome('c', 'back', me) == me, outcome('c', 'back', me.run) == me.run }", "[true,true]");
        expect("local b = troupe.bytes('abc') local p = troupe.call('c', 'back', troupe.transfer(b))\n"
               "return { #b, tostring(troupe.await(p)) }",
               "[0,\"abc\"]");
        expect("local t = {} t.t = t return select(2, pcall(outcome, 'c', 'back', t)).message",
               "\"a message may not carry a cycle: `t` is a cycle\"");
}
END_TEST

START_TEST(the_context_says_who_calls_whom) {
        char expected[256];

        declare("\"replicas\": [{ \"instance\": \"left\", \"args\": { \"port\": [1, null] } }],",
                "\"fields\": {}, \"more\": {}, \"caller\": {}, \"trace\": {}, \"keys\": {}",
                "local ops = {}\n"
                "function ops.fields(input, c) return { c.component, c.operation, c.instance, c.index, c.attempt, c.args.port[1],\n"
                "  c.args.port[2] == troupe.null, type(c.state), type(c.log), type(c.entities.get) } end\n"
                "function ops.caller(input, c) return c.caller end\n"
                "function ops.trace(input, c) return c.trace end\n"
                "function ops.more(input, c) c.own = 1 return { c.own, c.nothing == nil, getmetatable(c), c.call == c.call } end\n"
                "function ops.keys(input, c) c.state.n = (c.state.n or 0) + 1 return c.state.n end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'fields')", "[\"c\",\"fields\",\"left\",0,1,1,true,\"table\",\"function\",\"function\"]");
        snprintf(expected, sizeof(expected), "[0,%u,%d]", (unsigned int)getgid(), (int)getpid());
        expect("local caller = outcome('c', 'caller') return { caller.uid, caller.gid, caller.pid }", expected);
        expect("return { outcome('c', 'keys'), outcome('c', 'keys') }", "[1,2]");
        expect("return outcome('c', 'more')", "[1,true,false,true]");
        expect("local t = outcome('c', 'trace') return { #t, t:match '^00%-%x+%-%x+%-01$' == t }", "[55,true]");
        expect("local given = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'\n"
               "local t = outcome('c', 'trace', nil, { trace = given }) return { t:sub(1, 36) == given:sub(1, 36), t ~= given }",
               "[true,true]");
}
END_TEST

/* how a call ends */

START_TEST(an_exception_is_the_answer_and_the_replica_lives_on) {
        declare("", "\"count\": {}, \"raise\": {}, \"table\": {}, \"later\": {}, \"sort\": {}, \"close\": {}, \"yield\": {}",
                "local ops, n = {}, 0\n"
                "function ops.count() n = n + 1 return n end\n"
                "function ops.raise(input) error(input, 0) end\n"
                "function ops.table() error { reason = 5 } end\n"
                "function ops.later() troupe.await(troupe.sleep(1)) error('late', 0) end\n"
                "function ops.sort() table.sort({ 1, 2 }, function() troupe.await(troupe.sleep(1)) end) end\n"
                "function ops.close() local x <close> = setmetatable({}, { __close = function() n = n + 100 end }) error('x', 0) end\n"
                "function ops.yield() coroutine.yield() end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'raise', 'it broke')", "\"fault(error)/yes: it broke\"");
        expect("return outcome('c', 'later')", "\"fault(error)/yes: late\"");
        expect("return outcome('c', 'sort')",
               "\"fault(await)/yes: await: cannot wait inside a callback of a C function (sort, gsub and the like)\"");
        expect("return outcome('c', 'yield'):match '^[^:]*'", "\"fault(error)/yes\"");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'table'))\n"
               "return { e.code, e.value.reason, e.actor, e.handler, e.traceback:match '^stack traceback:' ~= nil }",
               "[\"fault\",5,\"c\",\"table\",true]");
        expect("return outcome('c', 'close')", "\"fault(error)/yes: x\"");
        expect("for i = 1, 100 do outcome('c', 'raise', 'again') end return outcome('c', 'count')", "101");
        ck_assert_int_eq(atomic_load(&fixture.events[TR_EVENT_FAULTED]), 0);
}
END_TEST

START_TEST(an_error_that_is_declared_is_refused_and_another_a_breach) {
        declare("", "\"say\": { \"errors\": [\"NO_SUCH_STREAM\"] }, \"promise\": { \"errors\": [\"NO_SUCH_STREAM\"] }, \"bad\": {}, \"raise\": {}",
                "local ops = {}\n"
                "function ops.say(input, context) return context.error(input.name, input.data) end\n"
                "function ops.promise(input, context) return troupe.all { } end\n"
                "function ops.bad(input, context) return context.error('X', print) end\n"
                "function ops.raise(input, context) context.error(5) end\n"
                "return { operations = ops, init = function(context) pcall(context.error, 'X') end }");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'say', { name = 'NO_SUCH_STREAM', data = { id = 5 } }))\n"
               "return { e.code, e.ran, e.error, e.data.id }",
               "[\"refused\",\"yes\",\"NO_SUCH_STREAM\",5]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'say', { name = 'NO_SUCH_STREAM' }))\n"
               "return { e.code, e.error, e.data == nil }",
               "[\"refused\",\"NO_SUCH_STREAM\",true]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'say', { name = 'OTHER' })) return { e.code, e.ran, e.subject }",
               "[\"contract\",\"yes\",\"error\"]");
        expect("return outcome('c', 'bad')",
               "\"not-sendable/yes: a message may not carry a function: `the error's data` is a function\"");
        expect("return outcome('c', 'raise')", "\"fault(error)/yes: error: 5 is not the name of an error\"");
        expect("return outcome('c', 'promise')", "[]");
}
END_TEST

START_TEST(a_promise_that_is_returned_is_waited_for) {
        declare("\"concurrency\": 2,", "\"good\": {}, \"bad\": {}, \"error\": { \"errors\": [\"E\"] }, \"inner\": {}",
                "local ops = {}\n"
                "function ops.good(input, context) return context.call('c', 'inner', 7) end\n"
                "function ops.bad(input, context) return context.call('none', 'inner') end\n"
                "function ops.error(input, context) return troupe.race { troupe.timeout(troupe.sleep(1), 1000) } end\n"
                "function ops.inner(input) return input end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'good')", "7");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'bad')) return { e.code, e.ran, e.message, e.value.code }",
               "[\"fault\",\"yes\",\"there is no component none\",\"not-found\"]");
        expect("return outcome('c', 'error')", "\"nil\"");
}
END_TEST

START_TEST(what_is_against_the_contract) {
        declare("", "\"add\": { \"input\": { \"type\": \"object\", \"required\": [\"n\"] }, \"output\": { \"type\": \"integer\" } },"
                    "\"held\": { \"stateful\": true }, \"print\": {}",
                "local ran = 0\n"
                "return { operations = { add = function(input) ran = ran + 1 return input.n end, held = print, print = function() return { print } end } }");
        expect("return outcome('c', 'add', { n = 5 })", "5");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'add', { m = 5 })) return { e.code, e.ran, e.subject }",
               "[\"contract\",\"no\",\"input\"]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'add', { n = 'text' })) return { e.code, e.ran, e.subject }",
               "[\"contract\",\"yes\",\"output\"]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'held')) return { e.code, e.ran, e.subject }",
               "[\"contract\",\"no\",\"request\"]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'add', { n = 1 }, { instance = 'left' }))\n"
               "return { e.code, e.ran, e.subject }",
               "[\"contract\",\"no\",\"request\"]");
        expect("return outcome('c', 'print')",
               "\"not-sendable/yes: a message may not carry a function: `[1]` is a function\"");
}
END_TEST

/* by how many at once */

START_TEST(an_operation_that_waits_lets_as_many_in_as_the_manifest_says) {
        declare("\"concurrency\": 2,", "\"count\": {}, \"most\": {}",
                "local ops, now, most = {}, 0, 0\n"
                "function ops.count() now = now + 1 if now > most then most = now end\n"
                "  while most < 2 do troupe.await(troupe.sleep(1)) end troupe.await(troupe.sleep(1)) now = now - 1 end\n"
                "function ops.most() return most end\n"
                "return { operations = ops }");
        expect("local p = {} for i = 1, 10 do p[i] = troupe.call('c', 'count') end\n"
               "troupe.await(troupe.all(p)) return outcome('c', 'most')",
               "2");
}
END_TEST

START_TEST(a_replica_that_waits_for_itself_does_so_until_the_caller_gives_up) {
        declare("", "\"outer\": {}, \"inner\": {}, \"ran\": {}",
                "local ops, ran = {}, 0\n"
                "function ops.outer(input, context)\n"
                "  local ok, e = pcall(troupe.await, context.call('c', 'inner', nil, { timeout = 20 }))\n"
                "  return { ok, e.code, e.ran } end\n"
                "function ops.inner() ran = ran + 1 end\n"
                "function ops.ran() return ran end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'outer')", "[false,\"timeout\",\"no\"]");
        expect("return outcome('c', 'ran')", "0");
}
END_TEST

START_TEST(a_chain_of_calls_has_an_end) {
        declare("\"concurrency\": 64,", "\"deep\": {}, \"fresh\": {}",
                "local ops = {}\n"
                "function ops.deep(input, context)\n"
                "  local ok, e = pcall(troupe.await, context.call('c', 'deep', input + 1))\n"
                "  return ok and e or { input, e.code, e.ran } end\n"
                "function ops.fresh(input, context) if input == 0 then return 'done' end\n"
                "  return troupe.await(troupe.call('c', 'fresh', input - 1)) end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'deep', 1)", "[32,\"loop\",\"no\"]");
        expect("return outcome('c', 'fresh', 40)", "\"done\"");
}
END_TEST

/* what it may reach */

START_TEST(a_manifest_grants_to_its_module_alone) {
        static const char module[] = "return { operations = {\n"
                                     "  file = function() return (io.open '/dev/null') ~= nil end,\n"
                                     "  command = function() return os.execute 'true' end } }";

        declare("", "\"file\": {}, \"command\": {}", module);
        lua_component_declare(&fixture, "{ \"name\": \"d\", \"module\": \"c\", \"allow\": [\"files\"],"
                                        "\"operations\": { \"file\": {}, \"command\": {} } }");
        expect("return { outcome('c', 'file'):match 'not granted', outcome('c', 'command'):match 'not granted' }",
               "[\"not granted\",\"not granted\"]");
        expect("return { outcome('d', 'file'), outcome('d', 'command'):match 'not granted' }", "[true,\"not granted\"]");
}
END_TEST

/* the life of a replica */

START_TEST(init_ready_and_dispose_in_their_order) {
        lua_fixture_module(&fixture, "journal",
                           "local J = troupe.actor 'J' function J:init() self.lines = {} end\n"
                           "function J.on:write(line) self.lines[#self.lines + 1] = line end\n"
                           "function J.async:lines(n) while #self.lines < tonumber(n) do troupe.await(troupe.sleep(1)) end return self.lines end");
        struct tr_target *journal = lua_fixture_spawn(&fixture, "journal", &(struct tr_actor_options){ .publish = "journal" });
        struct lua_asked *lines;

        declare("", "\"echo\": {}", "return { operations = { echo = function(input) return input end } }");
        lua_fixture_module(&fixture, "life",
                           "local function write(line) troupe.send(troupe.find 'journal', 'write', line) end\n"
                           "local ops = {}\n"
                           "function ops.work(input, context) write('work ' .. context.state.from) return true end\n"
                           "local function named(context)\n"
                           "  for _, name in ipairs(troupe.instances 'life') do if name == context.instance then return 'held' end end\n"
                           "  return 'not held' end\n"
                           "return { operations = ops,\n"
                           "  init = function(context) context.state.from = 'init' troupe.await(troupe.sleep(5))\n"
                           "    write('init ' .. named(context)) end,\n"
                           "  ready = function(context) write('ready ' .. named(context)) end,\n"
                           "  dispose = function(context) write('dispose ' .. named(context) .. ' ' ..\n"
                           "    troupe.await(context.call('c', 'echo', 'calls'))) end }");
        lua_component_declare(&fixture, "{ \"name\": \"life\", \"module\": \"life\", \"replicas\": [{ \"instance\": \"one\" }],"
                                      "\"operations\": { \"work\": {} } }");
        expect("return outcome('life', 'work')", "true");
        struct tr_component *component = tr_component_find(fixture.system, "life", 4);
        component->target.ops->stop(&component->target, TR_STOP_ASKED, TR_NEVER);
        ck_assert_end(&fixture, &component->target, "null");
        tr_component_unref(component);
        lines = lua_ask(&fixture, journal, "lines", "4");
        ck_assert_str_eq(lua_wait(lines), "[\"init not held\",\"ready held\",\"work init\",\"dispose not held calls\"]");
        lua_asked_unref(lines);
        tr_target_unref(journal);
}
END_TEST

START_TEST(in_its_life_there_is_no_call) {
        declare("", "\"what\": {}",
                "local seen\n"
                "return { operations = { what = function() return seen end },\n"
                "  init = function(context)\n"
                "    local ok, e = pcall(context.error, 'X')\n"
                "    seen = { context.operation == nil, context.trace == nil, context.caller == nil, context.component, ok, e.message }\n"
                "  end }");
        expect("return outcome('c', 'what')",
               "[true,true,true,\"c\",false,\"error: this is no operation, and has nobody to answer with it\"]");
}
END_TEST

START_TEST(an_operation_that_is_new_waits_for_who_has_it) {
        declare("", "\"one\": {}", "return { operations = { one = function() return 'before' end } }");
        expect("return outcome('c', 'one')", "\"before\"");
        lua_fixture_module(&fixture, "gate", "local Gate = troupe.actor 'Gate'");
        lua_fixture_module(&fixture, "after",
                           "return { operations = { one = function() return 'after' end, two = function() return 'new' end },\n"
                           "  init = function() while not troupe.find 'gate' do troupe.await(troupe.sleep(1)) end end }");
        lua_component_replace(&fixture, "c", "{ \"name\": \"c\", \"module\": \"after\", \"operations\": { \"one\": {}, \"two\": {} } }");
        expect("local two = troupe.call('c', 'two')\n"
               "local before = outcome('c', 'one')\n"
               "troupe.spawn('gate', troupe.options { publish = 'gate', detach = true })\n"
               "return { before, troupe.await(two), outcome('c', 'one') }",
               "[\"before\",\"new\",\"after\"]");
}
END_TEST

/* its end */

START_TEST(a_replica_that_runs_out_of_heap_ends_and_another_one_takes_the_call) {
        declare("\"heap\": \"1M\", \"deliveries\": 2,", "\"grow\": {}, \"always\": {}",
                "local ops = {}\n"
                "local function grow() local t = {} while true do t[#t + 1] = { 1, 2, 3 } end end\n"
                "function ops.grow(input, context) if context.attempt == 1 then pcall(grow) end return context.attempt end\n"
                "function ops.always() pcall(grow) return 1 end\n"
                "return { operations = ops }");
        expect("return outcome('c', 'grow')", "2");
        expect("return outcome('c', 'always'):match '^[^:]*'", "\"undeliverable/maybe\"");
        expect("return outcome('c', 'grow')", "2");
}
END_TEST

START_TEST(a_replica_that_is_killed_ends_and_another_one_takes_the_call) {
        struct tr_replica **replicas;
        struct lua_asked *asked;
        struct tr_component *component;
        struct tr_target *caller;
        uint32_t count;

        lua_fixture_module(&fixture, "gate",
                           "local G = troupe.actor 'G' function G.on:arrived() self.there = true end\n"
                           "function G.async:wait() while not self.there do troupe.await(troupe.sleep(1)) end return 'arrived' end\n"
                           "local C = troupe.actor 'C'\n"
                           "function C.async:call() return troupe.await(troupe.call('c', 'block')) end");
        struct tr_target *gate = lua_fixture_spawn(&fixture, "gate:G", &(struct tr_actor_options){ .publish = "gate" });

        declare("", "\"block\": {}",
                "return { operations = { block = function(input, context)\n"
                "  if context.attempt > 1 then return context.attempt end\n"
                "  troupe.send(troupe.find 'gate', 'arrived') while true do end end } }");
        caller = lua_fixture_spawn(&fixture, "gate:C", NULL);
        asked = lua_ask(&fixture, caller, "call", NULL);
        ck_assert_answer(&fixture, gate, "wait", "\"arrived\"");
        component = tr_component_find(fixture.system, "c", 1);
        ck_assert_int_eq(tr_component_list_replicas(component, &replicas, &count), 0);
        ck_assert_uint_eq(count, 1);
        replicas[0]->target->ops->kill(replicas[0]->target);
        tr_replica_unref(replicas[0]);
        free(replicas);
        tr_component_unref(component);
        ck_assert_str_eq(lua_wait(asked), "2");
        lua_asked_unref(asked);
        tr_target_unref(caller);
        tr_target_unref(gate);
}
END_TEST

/* callers */

START_TEST(a_call_that_cannot_be_made) {
        declare("", "\"one\": {}", "return { operations = { one = function() return 1 end } }");
        expect("return outcome('none', 'one')", "\"not-found/no: there is no component none\"");
        expect("return outcome('c', 'none')", "\"not-found/no: the component c has no operation none\"");
        expect("return select(2, pcall(troupe.call, 5)).message", "\"call: 5 is not the name of a component\"");
        expect("return select(2, pcall(troupe.call, 'c', {})).message", "\"call: a table is not the name of an operation\"");
        expect("return select(2, pcall(troupe.call, 'c', 'one', 1, 5)).message", "\"call: 5 is not a table of options\"");
        expect("return select(2, pcall(troupe.call, 'c', 'one', 1, { key = 1 })).message", "\"call: there is no option `key`\"");
        expect("return select(2, pcall(troupe.call, 'c', 'one', 1, { trace = 'x' })).message",
               "\"call: the option `trace` wants a traceparent\"");
        expect("return select(2, pcall(troupe.call, 'c', 'one', 1, { timeout = 0 })).message",
               "\"call: the option `timeout` wants a time above 0: milliseconds, or text like \"200ms\"\"");
        expect("return select(2, pcall(troupe.call, 'c', 'one', print)).message",
               "\"a message may not carry a function: `the input` is a function\"");
        expect("return select(2, pcall(troupe.instances, 'none')).message", "\"there is no component none\"");
        expect("return select(2, pcall(troupe.component, {})).code", "\"bad-request\"");
        lua_fixture_module(&fixture, "top", "troupe.call('c', 'one')");
        expect("return select(2, pcall(troupe.await, troupe.done(troupe.spawn 'top'))).message:match 'call: not at the top level'",
               "\"call: not at the top level\"");
}
END_TEST

/* The replica is held up until there is something under the name `go`. */
START_TEST(a_call_that_is_taken_back_never_runs) {
        static const char gate[] = "local Gate = troupe.actor 'Gate'\n"
                                   "local function open() return troupe.spawn(Gate, troupe.options { publish = 'go' }) end\n"
                                   "local function close(gate) troupe.stop(gate) troupe.await(troupe.done(gate)) end\n"
                                   "local function call(...) return troupe.await(troupe.call('c', ...)) end\n"
                                   "local Caller = troupe.actor 'Caller'\n"
                                   "function Caller.on:calls() troupe.call('c', 'count') error('it ends', 0) end\n";

        declare("", "\"hold\": {}, \"count\": {}, \"total\": {}",
                "local ops, n = {}, 0\n"
                "function ops.hold() troupe.publish('held', troupe.me())\n"
                "  while not troupe.find 'go' do troupe.await(troupe.sleep(1)) end troupe.unpublish 'held' end\n"
                "function ops.count() n = n + 1 end\n"
                "function ops.total() return n end\n"
                "return { operations = ops }");
        lua_expect(&fixture, gate,
                   "local hold, queued = troupe.call('c', 'hold'), troupe.call('c', 'count')\n"
                   "local _, e = pcall(troupe.await, troupe.timeout(queued, 5))\n"
                   "local gate = open() troupe.await(hold) close(gate)\n"
                   "return { e.code, e.ran, call 'total' }",
                   "[\"timeout\",\"no\",0]");
        lua_expect(&fixture, gate,
                   "local hold = troupe.call('c', 'hold')\n"
                   "while not troupe.find 'held' do troupe.await(troupe.sleep(1)) end\n"
                   "local _, e = pcall(troupe.await, troupe.timeout(hold, 5))\n"
                   "local gate = open() call 'total' close(gate)\n"
                   "return { e.code, e.ran }",
                   "[\"timeout\",\"maybe\"]");
        /* by an actor that has ended */
        lua_expect(&fixture, gate,
                   "local hold, caller = troupe.call('c', 'hold'), troupe.spawn(Caller)\n"
                   "local _, e = pcall(troupe.await, troupe.ask(caller.calls))\n"
                   "pcall(troupe.await, troupe.done(caller))\n"
                   "local gate = open() troupe.await(hold) close(gate)\n"
                   "return { e.message, call 'total' }",
                   "[\"it ends\",0]");
}
END_TEST

suite_main_with("operations", setup, teardown, a_module_that_is_no_components_is_a_failed_start,
                a_module_may_have_more_than_its_manifest, an_operation_gets_what_its_type_says, what_needs_the_store_is_refused,
                values_cross_as_over_a_socket, the_context_says_who_calls_whom,
                an_exception_is_the_answer_and_the_replica_lives_on, an_error_that_is_declared_is_refused_and_another_a_breach,
                a_promise_that_is_returned_is_waited_for, what_is_against_the_contract,
                an_operation_that_waits_lets_as_many_in_as_the_manifest_says,
                a_replica_that_waits_for_itself_does_so_until_the_caller_gives_up, a_chain_of_calls_has_an_end,
                a_manifest_grants_to_its_module_alone,
                init_ready_and_dispose_in_their_order, in_its_life_there_is_no_call, an_operation_that_is_new_waits_for_who_has_it,
                a_replica_that_runs_out_of_heap_ends_and_another_one_takes_the_call,
                a_replica_that_is_killed_ends_and_another_one_takes_the_call, a_call_that_cannot_be_made,
                a_call_that_is_taken_back_never_runs);
