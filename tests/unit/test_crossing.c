/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* What crosses between actors, by every way there is: `send`, `ask`, arguments of `spawn`, answers. */

static struct lua_fixture fixture;

#define OTHER                                                                                  \
        "local await, ask, send = troupe.await, troupe.ask, troupe.send\n"                     \
        "local Other = troupe.actor 'Other'\n"                                                 \
        "function Other:init(...) self.n = 0 end\n"                                            \
        "function Other.on:take() self.n = self.n + 1 end\n"                                   \
        "function Other.on:count() return self.n end\n"                                        \
        "function Other.on:same(v) return v end\n"

static void expect(const char *before, const char *body, const char *expected) {
        char *all = NULL;

        ck_assert_int_ge(asprintf(&all, OTHER "%s", before), 0);
        lua_expect(&fixture, all, body, expected);
        free(all);
}

static void setup(void) {
        lua_fixture_init(&fixture, TR_ALLOW_FILES);
}

static void teardown(void) {
        lua_fixture_deinit(&fixture);
}

/* Everything comes back from another actor as it was, and is another object there and back. */
START_TEST(values_come_back_as_they_were) {
        expect("", "local o = troupe.spawn(Other)\n"
                   "local function back(v) return await(ask(o.same, v)) end\n"
                   "for _, v in ipairs { 0, 1, -1, math.maxinteger, math.mininteger, 0.0, -0.0, 1.0, 2^53, math.huge,\n"
                   "                     -math.huge, true, false, '', 'x', '\\0\\255', ('y'):rep(70000) } do\n"
                   "  local w = back(v)\n"
                   "  assert(w == v and math.type(w) == math.type(v), v)\n"
                   "  if v == 0 then assert(1 / w == 1 / v) end\n"
                   "end\n"
                   "local nan = back(0 / 0) assert(nan ~= nan)\n"
                   "assert(back(nil) == nil and back(troupe.null) == troupe.null)\n"
                   "local t = back { 1, 2.0, { x = troupe.null }, o, o.take, troupe.timestamp(1, 2) }\n"
                   "assert(math.type(t[1]) == 'integer' and math.type(t[2]) == 'float' and t[3].x == troupe.null)\n"
                   "assert(t[4] == o and t[5] == o.take and t[6] == troupe.timestamp(1, 2))\n"
                   "return true",
               "true");
}
END_TEST

START_TEST(bytes_come_back_byte_for_byte) {
        expect("", "local o, sizes = troupe.spawn(Other), { 0, 1, 255, 256, 65536, 1048576 }\n"
                   "for i, n in ipairs(sizes) do\n"
                   "  local b = troupe.bytes(n)\n"
                   "  for at = 1, n, n > 1000 and 97 or 1 do b[at] = at * 7 & 255 end\n"
                   "  local copy = await(ask(o.same, b))\n"
                   "  assert(copy == b and not rawequal(copy, b) and #b == n)\n"
                   "  local moved = await(ask(o.same, troupe.transfer(b)))\n"
                   "  assert(moved == copy and (#b == 0))\n"
                   "  sizes[i] = #moved\n"
                   "end\n"
                   "return sizes",
               "[0,1,255,256,65536,1048576]");
}
END_TEST

START_TEST(structure_is_kept) {
        expect("function Other.on:is_same(t) return rawequal(t.a, t.b) and rawequal(t.list[1], t) and rawequal(t.x, t.y) end",
               "local o, shared, b = troupe.spawn(Other), {}, troupe.bytes 'x'\n"
               "local t = { a = shared, b = shared, x = b, y = b }\n"
               "t.list = { t }\n"
               "local back = await(ask(o.same, t))\n"
               "return { await(ask(o.is_same, t)), rawequal(back.list[1], back), rawequal(back.a, back.b),\n"
               "         rawequal(back.x, back.y) }",
               "[true,true,true,true]");
}
END_TEST

/* By each way it is the same sentence, and nothing has arrived. */
START_TEST(what_cannot_cross_is_refused_by_name) {
        expect("local C = troupe.class 'C'\n"
               "local function deep(n) local v = {} for _ = 2, n do v = { v } end return v end\n"
               "local a = 'a message may not carry '\n"
               "local cases = {\n"
               "  { a .. 'a function: `handlers.onDone` is a function', { handlers = { onDone = print } } },\n"
               "  { a .. 'a function: `items[3]` is a function', { items = { 1, 2, print } } },\n"
               "  { a .. 'a function: `argument 1` is a function', print },\n"
               "  { a .. 'a function: `argument 2` is a function', 1, print },\n"
               "  { a .. 'a function: `argument 2.x` is a function', 1, { x = print } },\n"
               "  { a .. 'a coroutine: `co` is a coroutine', { co = coroutine.create(print) } },\n"
               "  { a .. 'a promise: `p` is a promise', { p = troupe.all {} } },\n"
               "  { a .. 'a file: `f` is a file', { f = io.stdout } },\n"
               "  { a .. 'a weak table: `w` is a weak table', { w = setmetatable({}, { __mode = 'k' }) } },\n"
               "  { a .. 'a table with a metatable: `m` is a table with a metatable', { m = setmetatable({}, {}) } },\n"
               "  { a .. 'a class: `C` is a class', { C = C } },\n"
               "  { a .. 'an actor declaration: `A` is an actor declaration', { A = Other } },\n"
               "  { a .. 'a table as a key: `argument 1` has one', { [{}] = 1 } },\n"
               "  { a .. 'a function as a key: `k` has one', { k = { [print] = 1 } } },\n"
               "}\n",
               "local o = troupe.spawn(Other)\n"
               "for i, case in ipairs(cases) do\n"
               "  local function check(way, ...)\n"
               "    local ok, e = pcall(...)\n"
               "    assert(not ok and e.code == 'not-sendable' and e.ran == 'no' and e.message == case[1]\n"
               "           and tostring(e) == case[1] and e.path, way .. ': ' .. tostring(e))\n"
               "  end\n"
               "  check('send', send, o.take, table.unpack(case, 2))\n"
               "  check('send', send, o, 'take', table.unpack(case, 2))\n"
               "  check('ask', ask, o.take, table.unpack(case, 2))\n"
               "  check('spawn', troupe.spawn, Other, table.unpack(case, 2))\n"
               "end\n"
               "for _, call in ipairs { send, ask } do\n"
               "  local ok, e = pcall(call, o.take, deep(129))\n"
               "  assert(not ok and e.code == 'not-sendable' and e.message:find('nested deeper than 128 levels', 1, true))\n"
               "end\n"
               "send(o.take, deep(128))\n"
               "return { #cases, await(ask(o.count)) }",
               "[14,1]");
}
END_TEST

START_TEST(answers_are_refused_by_name) {
        expect("local values = { function() return print end, function() return { handlers = { onDone = print } } end,\n"
               "                 function() return { items = { 1, 2, print } } end, function() return Other end }\n"
               "function Other.on:answer(i) return values[i]() end",
               "local o, r = troupe.spawn(Other), {}\n"
               "for i = 1, #values do\n"
               "  local ok, e = pcall(await, ask(o.answer, i))\n"
               "  r[i] = { e.code, e.ran, e.message }\n"
               "end\n"
               "r[#r + 1] = await(ask(o.count))\n"
               "return r",
               "[[\"not-sendable\",\"yes\",\"a message may not carry a function: `the answer` is a function\"],"
               "[\"not-sendable\",\"yes\",\"a message may not carry a function: `handlers.onDone` is a function\"],"
               "[\"not-sendable\",\"yes\",\"a message may not carry a function: `items[3]` is a function\"],"
               "[\"not-sendable\",\"yes\",\"a message may not carry an actor declaration: `the answer` is an actor "
               "declaration\"],0]");
}
END_TEST

/* The asker of the outermost handler is a peer: what it gets is written out. */
START_TEST(a_peer_gets_no_cycle) {
        expect("", "local s = { 1 } return { s, s }", "[[1],[1]]");
        expect("", "local t = { list = { {} } } t.list[1].up = t return t",
               "not-sendable/yes: a message may not carry a cycle: `list[1].up` is a cycle");
}
END_TEST

/* Instances */

START_TEST(the_receiver_loads_the_module_of_an_instance) {
        lua_fixture_module(&fixture, "shape",
                           "local Point = troupe.class 'Point'\n"
                           "function Point:init(x, y) rawset(self, 'x', x) rawset(self, 'y', y) end\n"
                           "function Point:sum() return self.x + self.y end\n"
                           "Point.__newindex = function() error 'no code may run' end\n"
                           "return { at = function(x, y) return Point.new(x, y) end, is = function(p) return troupe.is(p, Point) end }");
        /* the class itself is in nobody's hands */
        lua_fixture_module(&fixture, "adder",
                           "local Adder = troupe.actor 'Adder'\n"
                           "function Adder.on:sum(...) local n = 0 for _, p in ipairs { ... } do n = n + p:sum() end return n end\n"
                           "function Adder.on:back(p) return { p, is = require 'shape'.is(p) } end");
        expect("", "local shape = require 'shape'\n"
                   "local p, q = shape.at(1, 2), shape.at(3, 4)\n"
                   "local a = troupe.spawn 'adder'\n"
                   "local sum, back = await(ask(a.sum, p, q, p)), await(ask(a.back, p))\n"
                   "return { sum, back.is, shape.is(back[1]), back[1]:sum(), getmetatable(back[1]) == getmetatable(p) }",
               "[13,true,true,3,true]");
}
END_TEST

START_TEST(an_instance_that_was_raised_is_one) {
        lua_fixture_module(&fixture, "shape",
                           "local Point = troupe.class 'Point'\n"
                           "function Point:init(x) self.x = x end\n"
                           "function Point:get() return self.x end\n"
                           "return Point");
        lua_fixture_module(&fixture, "thrower",
                           "local Thrower = troupe.actor 'Thrower'\n"
                           "function Thrower.on:throw(x) error { at = require 'shape'.new(x) } end");
        expect("", "local ok, e = pcall(await, ask(troupe.spawn 'thrower'.throw, 7))\n"
                   "return { e.code, e.value.at:get(), troupe.is(e.value.at, require 'shape') }",
               "[\"fault\",7,true]");
        /* where its module does not load here the rest is there */
        lua_fixture_module(&fixture, "shape",
                           "if troupe.whoami().actor ~= 'Thrower' then error 'not here' end\n"
                           "local Point = troupe.class 'Point' function Point:init(x) end return Point");
        expect("", "local ok, e = pcall(await, ask(troupe.spawn 'thrower'.throw)) return { e.code, e.kind, tostring(e.value) }",
               "[\"fault\",\"error\",\"nil\"]");
}
END_TEST

/* A module that is there for who sends, and for nobody else. */
#define ONLY_IN_A                                                          \
        "if troupe.whoami().actor ~= 'A' then %s end\n"                    \
        "local C = troupe.class 'C' return function() return C.new() end"

static void expect_refused_instance(const char *elsewhere, const char *expected) {
        char *module = NULL;

        ck_assert_int_ge(asprintf(&module, ONLY_IN_A, elsewhere), 0);
        lua_fixture_module(&fixture, "only", module);
        free(module);
        expect("", "local o, new = troupe.spawn(Other), require 'only'\n"
                   "local ok, e = pcall(await, ask(o.take, { 1, new() }))\n"
                   "send(o.take, new())\n"
                   "return { e.code, e.ran, await(ask(o.count)) }",
               expected);
}

START_TEST(a_module_that_does_not_load_refuses_the_message) {
        expect_refused_instance("error 'not here'", "[\"load\",\"no\",0]");
        expect_refused_instance("require 'missing'", "[\"load\",\"no\",0]");
        expect_refused_instance("return", "[\"not-sendable\",\"no\",0]");
        ck_assert_int_eq(atomic_load(&fixture.refused), 6);

        /* gone meanwhile; and in an answer */
        lua_fixture_module(&fixture, "fleeting", "local C = troupe.class 'C' return function() return C.new() end");
        lua_fixture_module(&fixture, "giver",
                           "local Giver = troupe.actor 'Giver' local new = require 'fleeting'\n"
                           "function Giver.on:give() return new() end function Giver.on:take() return 1 end");
        expect("", "local g, o = troupe.spawn 'giver', troupe.spawn(Other)\n"
                             "await(ask(g.take))\n"
                             "local here = debug.getinfo(1, 'S').source:match '^@(.*)/[^/]*$'\n"
                             "local file = assert(io.open(here .. '/fleeting.lua', 'w')) file:write 'error \"changed\"' file:close()\n"
                             "local ok, e = pcall(await, ask(g.give))\n"
                             "return { e.code, e.ran, await(ask(g.take)) }",
               "[\"load\",\"yes\",1]");
}
END_TEST

START_TEST(a_message_that_is_refused_was_not_sent) {
        /* what was written of it before it was refused does not get into the next one */
        expect("", "local o = troupe.spawn(Other)\n"
                   "for i = 1, 100 do pcall(send, o.take, ('x'):rep(i * 100), { print }) end\n"
                   "return { await(ask(o.same, 'next')), await(ask(o.count)) }",
               "[\"next\",0]");
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                values_come_back_as_they_were,
                bytes_come_back_byte_for_byte,
                structure_is_kept,
                what_cannot_cross_is_refused_by_name,
                answers_are_refused_by_name,
                a_peer_gets_no_cycle,
                the_receiver_loads_the_module_of_an_instance,
                an_instance_that_was_raised_is_one,
                a_module_that_does_not_load_refuses_the_message,
                a_message_that_is_refused_was_not_sent,
        };
        return suite_run_with("crossing", setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));
}
