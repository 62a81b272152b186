/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/lua_component.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* Entities in Lua, with a store in memory: what operations are given and what is committed, and what they ask for themselves. */

static struct lua_fixture fixture;

/* As the callers in these tests have it: what a call comes to, in one text. */
static const char outcome[] =
        "local function told(e) return e.code .. '/' .. e.ran .. ': ' .. e.message end\n"
        "local function outcome(...)\n"
        "  local ok, e = pcall(troupe.await, troupe.call(...))\n"
        "  if ok then return e == nil and 'nil' or e end\n"
        "  return told(e)\n"
        "end\n"
        "local function get(id) return outcome('c', 'get', nil, { id = id }) end\n";

/* The component `c`, of the module `c`; beside these operations it has `get`, which answers an entity, and `list`. */
static void declare(const char *members, const char *operations, const char *module) {
        char *json = NULL, *text = NULL;

        ck_assert_int_ge(asprintf(&text,
                                  "local ops = {}\n"
                                  "function ops.get(input, entity) return entity end\n"
                                  "function ops.list(input, entities) return entities end\n"
                                  "%s return { operations = ops }",
                                  module),
                         0);
        lua_fixture_module(&fixture, "c", text);
        ck_assert_int_ge(asprintf(&json,
                                  "{ \"name\": \"c\", \"module\": \"c\", %s \"operations\": { %s,"
                                  "\"get\": { \"type\": \"observation\" }, \"list\": { \"type\": \"observation\", \"scope\": \"entries\" } } }",
                                  members, operations),
                         0);
        lua_component_declare(&fixture, json);
        free(json);
        free(text);
}

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, outcome, body, expected);
}

static void setup(void) {
        lua_fixture_init(&fixture, 0);
        lua_component_store(&fixture);
}

static void teardown(void) {
        lua_fixture_deinit(&fixture);
}

/* what operations are given, and what is committed */

#define CHANGE "\"change\": { \"type\": \"transition\" }"
#define MAKE "\"make\": { \"type\": \"assignment\" }"

START_TEST(a_transition_commits_the_table_as_it_stands) {
        declare("", CHANGE,
                "function ops.change(input, entity, context)\n"
                "  local before = entity.version or 0\n"
                "  for key, value in pairs(input) do entity[key] = value end\n"
                "  entity.gone, entity.title = nil, entity.title or 'none'\n"
                "  return { id = entity.id, own = entity.id == context.id, before = before } end");
        expect("local made = outcome('c', 'change', { n = 1, gone = 5 })\n"
               "local first = get(made.id)\n"
               "local again = outcome('c', 'change', { n = 2, title = 'x', deep = { a = { 1, 2 } } }, { id = made.id })\n"
               "local second = get(made.id)\n"
               "return { made.own, made.before, first.n, first.gone == nil, first.title, first.version,\n"
               "  again.own, again.before, second.n, second.title, second.deep.a[2], second.version }",
               "[true,0,1,true,\"none\",1,true,1,2,\"x\",2,2]");
}
END_TEST

START_TEST(an_entity_that_is_not_there_is_nil_and_one_without_an_id_is_new) {
        declare("", CHANGE ", \"look\": { \"type\": \"transition\" }",
                "function ops.change(input, entity, context)\n"
                "  if not entity then return 'none' end\n"
                "  entity.n, entity.list, entity.map = (entity.n or 0) + input, {}, troupe.map {}\n"
                "  return { id = entity.id, own = context.id == entity.id, version = entity.version } end\n"
                "function ops.look(input, entity) return type(entity) end");
        expect("return outcome('c', 'change', 1, { id = 'a' })", "\"none\"");
        expect("return outcome('c', 'look', 1, { id = 'a' })", "\"nil\"");
        expect("local made = outcome('c', 'change', 5)\n"
               "local e = get(made.id)\n"
               "local again = outcome('c', 'change', 2, { id = made.id })\n"
               "local after = get(made.id)\n"
               "return { made.own, #made.id, made.version == nil, e.n, e.version, e.id == made.id, math.type(e.created), again.version,\n"
               "  after.n, after.version, after.updated >= e.updated, after.created == e.created }",
               "[true,32,true,5,1,true,\"integer\",1,7,2,true,true]");
}
END_TEST

START_TEST(values_of_entities_keep_their_types) {
        declare("", CHANGE,
                "function ops.change(input, entity) for key, value in pairs(input) do entity[key] = value end return entity.id end");
        expect("local id = outcome('c', 'change', { i = 1, f = 1.0, s = 'x', b = false, n = troupe.null, a = { 1, { 2 } }, empty = {},\n"
               "  map = troupe.map {}, deep = { x = { y = 1 } }, max = math.maxinteger, min = math.mininteger })\n"
               "local e = get(id)\n"
               "return { math.type(e.i), math.type(e.f), e.s, e.b, e.n == troupe.null, e.a, e.deep.x.y, e.max == math.maxinteger,\n"
               "  e.min == math.mininteger, e.empty, e.map }",
               "[\"integer\",\"float\",\"x\",false,true,[1,[2]],1,true,true,[],{}]");
}
END_TEST

START_TEST(the_stores_own_fields_are_its_own) {
        declare("", CHANGE,
                "function ops.change(input, entity)\n"
                "  local id = entity.id\n"
                "  entity.id, entity.version, entity.created, entity.updated, entity.n = 'other', 99, 1, nil, input\n"
                "  return id end");
        expect("local id = outcome('c', 'change', 1)\n"
               "local e = get(id)\n"
               "return { e.id == id, e.version, e.created > 1, e.updated > 1, get 'other' }",
               "[true,1,true,true,\"nil\"]");
}
END_TEST

START_TEST(what_raises_or_refuses_commits_nothing) {
        declare("", "\"change\": { \"type\": \"transition\", \"errors\": [\"NO\"] }, \"bad\": { \"type\": \"transition\", \"output\": { \"type\": \"integer\" } },"
                    MAKE,
                "local function fill(input, entity, context)\n"
                "  entity.n = 1\n"
                "  if input == 'raise' then error('it broke', 0) end\n"
                "  if input == 'refuse' then return context.error 'NO' end\n"
                "  return entity.id end\n"
                "ops.change, ops.make, ops.bad = fill, fill, fill");
        expect("local id = outcome('c', 'change')\n"
               "local options = { id = id }\n"
               "return { outcome('c', 'change', 'raise', options), outcome('c', 'change', 'refuse', options), outcome('c', 'bad', nil, options),\n"
               "  get(id).version }",
               "[\"fault/yes: it broke\",\"refused/yes: change answered NO\",\"contract/yes: bad: output is a string; an integer is expected\",1]");
        expect("return { outcome('c', 'make', 'raise', { id = 'm' }), get 'm' }", "[\"fault/yes: it broke\",\"nil\"]");
}
END_TEST

START_TEST(what_cannot_be_kept_is_refused) {
        declare("\"entity\": { \"properties\": { \"n\": { \"type\": \"integer\" }, \"m\": { \"type\": \"object\" } } },", CHANGE "," MAKE,
                "local what = { print = print, bytes = troupe.bytes 'x', time = troupe.timestamp(1), me = troupe.me() }\n"
                "function ops.change(input, entity)\n"
                "  if input == 'array' then for key in pairs(entity) do entity[key] = nil end entity[1] = 1 return end\n"
                "  entity[input] = what[input] or 'x' end\n"
                "function ops.make(input, changes) changes.m = {} changes.n = input end");
        expect("return outcome('c', 'change', 'print')",
               "\"not-sendable/yes: a message may not carry a function: `print` is a function\"");
        expect("return outcome('c', 'change', 'array')",
               "\"not-sendable/yes: an entity is a table of fields by their names: `the entity` is none\"");
        expect("local function code(what)\n"
               "  local _, e = pcall(troupe.await, troupe.call('c', 'change', what)) return { e.code, e.ran, e.path } end\n"
               "return { code 'bytes', code 'time', code 'me' }",
               "[[\"not-sendable\",\"yes\",\"/bytes\"],[\"not-sendable\",\"yes\",\"/time\"],[\"not-sendable\",\"yes\",\"/me\"]]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'change', 'n')) return { e.code, e.ran, e.subject, e.path }",
               "[\"contract\",\"yes\",\"entity\",\"/n\"]");
        expect("return { outcome('c', 'make', 1, { id = 'm' }), get('m').m }", "[\"nil\",{}]"); /* as the schema names it */
}
END_TEST

START_TEST(an_assignment_fills_changes) {
        declare("", MAKE,
                "function ops.make(input, changes, context)\n"
                "  for key, value in pairs(input) do changes[key] = value end\n"
                "  return { changes.id == context.id, changes.id } end");
        expect("local made = outcome('c', 'make', { title = 'x', n = 1 })\n"
               "local again = outcome('c', 'make', { n = troupe.null, more = { 1 } }, { id = made[2] })\n"
               "local e = get(made[2])\n"
               "return { made[1], again[1], again[2] == made[2], e.title, e.n == nil, e.more, e.version }",
               "[true,true,true,\"x\",true,[1],2]");
        expect("outcome('c', 'make', {}, { id = 'chosen' }) local e = get 'chosen' return { e.id, e.version }", "[\"chosen\",1]");
}
END_TEST

START_TEST(what_an_operation_returns_later_is_waited_for) {
        declare("\"concurrency\": 4,", CHANGE,
                "function ops.change(input, entity)\n"
                "  local later = troupe.all { troupe.sleep(1) }\n"
                "  entity.n = 'before'\n"
                "  if input == 'await' then troupe.await(later) entity.n = 'after' return entity.id end\n"
                "  entity.n = 'returned'\n"
                "  local id = entity.id\n"
                "  return troupe.race { troupe.call('c', 'get', nil, { id = id }) } end");
        expect("local id = outcome('c', 'change', 'await')\n"
               "local first = get(id).n\n"
               "local seen = outcome('c', 'change', 'return', { id = id })\n"
               "return { first, seen.n, get(id).n }",
               "[\"after\",\"after\",\"returned\"]");
}
END_TEST

START_TEST(a_list_is_by_the_options_of_the_call) {
        declare("", MAKE, "function ops.make(input, changes) for key, value in pairs(input) do changes[key] = value end end");
        expect("for i = 1, 5 do outcome('c', 'make', { n = i, odd = i % 2 == 1, kind = 'k' .. i % 3 }, { id = 'e' .. 6 - i }) end\n"
               "local function ids(options) local t = {} for i, e in ipairs(outcome('c', 'list', nil, options)) do t[i] = e.id end\n"
               "  return table.concat(t, ' ') end\n"
               "return { ids(), ids {}, ids { sort = 'n' }, ids { sort = 'n', limit = 2 }, ids { sort = 'n', limit = 2, after = 'e4' },\n"
               "  ids { where = { odd = true } }, ids { where = { odd = true, kind = 'k0' } }, ids { where = { none = troupe.null }, limit = 1 },\n"
               "  ids { where = {} }, ids { after = 'e3' }, ids { where = { n = 6 } } }",
               "[\"e1 e2 e3 e4 e5\",\"e1 e2 e3 e4 e5\",\"e5 e4 e3 e2 e1\",\"e5 e4\",\"e3 e2\",\"e1 e3 e5\",\"e3\",\"e1\",\"e1 e2 e3 e4 e5\","
               "\"e4 e5\",\"\"]");
}
END_TEST

/* { the options, what is said of them } */
static const char *const bad_options[][2] = {
        { "{ where = 5 }", "call: the option `where` wants a table" },
        { "{ where = { f = print } }", "a message may not carry a function: `f` is a function" },
        { "{ limit = 0 }", "call: the option `limit` wants a whole number above 0" },
        { "{ limit = 1.5 }", "call: the option `limit` wants a whole number above 0" },
        { "{ sort = '' }", "call: the option `sort` wants text of 1 to 256 bytes of UTF-8 without control characters" },
        { "{ after = 5 }", "call: the option `after` wants text of 1 to 256 bytes of UTF-8 without control characters" },
        { "{ id = 'a\\nb' }", "call: the option `id` wants text of 1 to 256 bytes of UTF-8 without control characters" },
        { "{ id = ('x'):rep(257) }", "call: the option `id` wants text of 1 to 256 bytes of UTF-8 without control characters" },
};

START_TEST(options_that_are_wrong_are_named) {
        char body[256], expected[256];

        declare("", MAKE, "ops.make = print");
        for (size_t i = 0; i < sizeof(bad_options) / sizeof(bad_options[0]); i++) {
                snprintf(body, sizeof(body), "return select(2, pcall(troupe.call, 'c', 'list', nil, %s)).message", bad_options[i][0]);
                snprintf(expected, sizeof(expected), "\"%s\"", bad_options[i][1]);
                expect(body, expected);
        }
        expect("return { outcome('c', 'get', nil, { id = ('x'):rep(256) }), get 'ä' }", "[\"nil\",\"nil\"]");
}
END_TEST

/* context.entities */

/* An operation that does with the entities what the input says, and answers what that comes to. */
static const char reach[] =
        "function ops.reach(input, context)\n"
        "  local promise = context.entities[input[1]](context.entities, table.unpack(input, 2))\n"
        "  local ok, e = pcall(troupe.await, promise)\n"
        "  if ok then return e end\n"
        "  return e.code .. '/' .. e.ran end\n";

START_TEST(entities_are_got_put_deleted_and_listed) {
        declare("", "\"reach\": {}", reach);
        lua_expect(&fixture,
                   "local function reach(...) return troupe.await(troupe.call('c', 'reach', table.pack(...))) end\n",
                   "local first = reach('put', 'a', { n = 1, list = {} })\n"
                   "local second = reach('put', 'a', { n = 2 }, { version = 1 })\n"
                   "local stale = reach('put', 'a', { n = 3 }, { version = 1 })\n"
                   "local new = reach('put', 'b', { n = 4 }, { version = 0 })\n"
                   "local there = reach('put', 'b', { n = 5 }, { version = 0 })\n"
                   "local listed = reach('list', { sort = 'n', where = { n = 4 } })\n"
                   "local got = reach('get', 'a')\n"
                   "return { first.version, first.list, second.version, second.list == nil, stale, new.id, there, #listed, listed[1].id,\n"
                   "  got.n, got.created == first.created, reach('get', 'c') == nil, #reach('list'),\n"
                   "  reach('delete', 'a', { version = 1 }), reach('delete', 'a', { version = 2 }), reach('delete', 'a'), reach('get', 'a') == nil }",
                   "[1,[],2,true,\"conflict/yes\",\"b\",\"conflict/yes\",1,\"b\",2,true,true,2,\"conflict/yes\",true,false,true]");
}
END_TEST

START_TEST(an_entity_that_is_put_without_an_id_gets_one) {
        declare("\"entity\": { \"properties\": { \"n\": { \"type\": \"integer\" } } },", "\"new\": {}",
                "function ops.new(input, context) return context.entities:put(nil, input) end");
        expect("local e = outcome('c', 'new', { n = 1 }) return { #e.id, e.version, get(e.id).n }", "[32,1,1]");
        expect("local _, e = pcall(troupe.await, troupe.call('c', 'new', { n = 'x' }))\n"
               "return { e.code, e.value.code, e.value.subject, e.value.path, e.value.ran }",
               "[\"fault\",\"contract\",\"entity\",\"/n\",\"no\"]");
        expect("local e = outcome('c', 'new', {}) return { e.version, e.n == nil }", "[1,true]");
}
END_TEST

/* { what is called, what is said of it } */
static const char *const misuses[][2] = {
        { "e.get('a')", "entities:get: \\\"a\\\" is not a context's entities (it is called with a colon)" },
        { "e:get()", "entities:get: nil is not an id: text of 1 to 256 bytes of UTF-8 without control characters" },
        { "e:get('')", "entities:get: \\\"\\\" is not an id: text of 1 to 256 bytes of UTF-8 without control characters" },
        { "e:put('a')", "entities:put: nil is not a table of fields" },
        { "e:put(5, {})", "entities:put: 5 is not an id: text of 1 to 256 bytes of UTF-8 without control characters" },
        { "e:put('a', {}, 5)", "entities:put: 5 is not a table of options" },
        { "e:put('a', {}, { version = -1 })", "entities:put: the option `version` wants a whole number, 0 or above" },
        { "e:put('a', {}, { version = 'x' })", "entities:put: the option `version` wants a whole number, 0 or above" },
        { "e:put('a', {}, { id = 'b' })", "entities:put: there is no option `id`" },
        { "e:put('a', { f = print })", "a message may not carry a function: `f` is a function" },
        { "e:put('a', { 1, 2 })", "an entity is a table of fields by their names: `the entity` is none" },
        { "e:delete()", "entities:delete: nil is not an id: text of 1 to 256 bytes of UTF-8 without control characters" },
        { "e:delete('a', { versoin = 1 })", "entities:delete: there is no option `versoin`" },
        { "e:list(5)", "entities:list: 5 is not a table of options" },
        { "e:list { limit = -1 }", "entities:list: the option `limit` wants a whole number above 0" },
};

START_TEST(misuse_of_entities_is_named) {
        char *module = NULL;
        char expected[256];
        size_t len = 0;
        FILE *text = open_memstream(&module, &len);

        ck_assert_ptr_nonnull(text);
        fputs("local misuses = {\n", text);
        for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++)
                fprintf(text, "function(e) return %s end,\n", misuses[i][0]);
        fputs("}\nfunction ops.misuse(input, context) return select(2, pcall(misuses[input], context.entities)).message end", text);
        fclose(text);
        declare("", "\"misuse\": {}", module);
        free(module);
        for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
                char body[64];

                snprintf(body, sizeof(body), "return (outcome('c', 'misuse', %zu):gsub('\"', '\\\\\"'))", i + 1);
                snprintf(expected, sizeof(expected), "\"%s\"", misuses[i][1]);
                expect(body, expected);
        }
        expect("return #outcome('c', 'list')", "0");
}
END_TEST

START_TEST(a_replica_may_reach_entities_all_its_life) {
        lua_fixture_module(&fixture, "life",
                           "local seen\n"
                           "return { operations = { seen = function() return seen end },\n"
                           "  init = function(context) troupe.await(context.entities:put('a', { n = 1 })) end,\n"
                           "  ready = function(context) seen = troupe.await(context.entities:get 'a').n end }");
        lua_component_declare(&fixture, "{ \"name\": \"life\", \"module\": \"life\", \"operations\": { \"seen\": {} } }");
        expect("local seen = outcome('life', 'seen') while seen == 'nil' do seen = outcome('life', 'seen') end return seen", "1");
}
END_TEST

START_TEST(two_changes_of_one_entity_are_both_made) {
        declare("\"replicas\": 2, \"concurrency\": 4,", CHANGE,
                "function ops.change(input, entity, context)\n"
                "  local n = entity.n or 0 troupe.await(troupe.sleep(1)) entity.n = n + 1 return entity.id end");
        expect("local id = outcome('c', 'change')\n"
               "local promises = {} for i = 1, 40 do promises[i] = troupe.call('c', 'change', nil, { id = id }) end\n"
               "troupe.await(troupe.all(promises)) return get(id).n",
               "41");
}
END_TEST

suite_main_with("lua_entities", setup, teardown, a_transition_commits_the_table_as_it_stands,
                an_entity_that_is_not_there_is_nil_and_one_without_an_id_is_new, values_of_entities_keep_their_types,
                the_stores_own_fields_are_its_own, what_raises_or_refuses_commits_nothing, what_cannot_be_kept_is_refused,
                an_assignment_fills_changes, what_an_operation_returns_later_is_waited_for, a_list_is_by_the_options_of_the_call,
                options_that_are_wrong_are_named, entities_are_got_put_deleted_and_listed,
                an_entity_that_is_put_without_an_id_gets_one, misuse_of_entities_is_named, a_replica_may_reach_entities_all_its_life,
                two_changes_of_one_entity_are_both_made);
