/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/stock.h"
#include "tests/unit/failing.h"
#include "tests/unit/lua_component.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 300
#include "tests/unit/suite.h"

/* Memory that is not to be had, once, at any point of what actors do: whoever asked is answered, one way or the other. */

static struct lua_fixture fixture;
static long allocation;
static const char *component; /* the manifest of one that is there, and a store; NULL: none is */

static void arm(void) {
        failing_arm(allocation);
}

/* Asks a new actor again and again, each time with another allocation failing, `step` further on, until none fails any more. */
static void check_by(long step, const char *module, const char *expected) {
        struct tr_target *target;
        struct lua_asked *asked;
        int answered = 0;

        lua_fixture_init(&fixture, 0);
        lua_fixture_module(&fixture, "m", module);
        if (component) {
                lua_component_store(&fixture);
                lua_component_declare(&fixture, component);
        }
        for (allocation = 1;; allocation += step) {
                target = lua_fixture_spawn(&fixture, "m:A", NULL);
                ck_assert_answer(&fixture, target, "ready", "true");
                lua_before_send = arm;
                asked = lua_ask(&fixture, target, "run", NULL);
                lua_before_send = NULL;
                lua_wait(asked);
                failing_arm(0);
                if (!asked->failure) {
                        ck_assert_str_eq(asked->text, expected);
                        answered++;
                }
                lua_asked_unref(asked);
                target->ops->kill(target);
                tr_target_unref(target);
                if (!failing_hit())
                        break;
        }
        ck_assert_int_gt(answered, 0);
        ck_assert_int_gt(allocation, 10);
        lua_fixture_deinit(&fixture);
}

static void check(const char *module, const char *expected) {
        check_by(1, module, expected);
}

START_TEST(while_a_handler_works) {
        tr_stock_disable();
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "function A.on:run()\n"
              "  local t = {} for i = 1, 50 do t[i] = { i, tostring(i) } end\n"
              "  local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(('x'):rep(100 * i)) end end)\n"
              "  return { #t, #co() + #co(), (select(2, pcall(error, { a = 1 }))).a }\n"
              "end",
              "[50,300,1]");
}
END_TEST

START_TEST(while_it_waits_for_others) {
        tr_stock_disable();
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "function A.on:echo(x) return x end\n"
              "function A.async:run()\n"
              "  local me = troupe.me()\n"
              "  local r = troupe.await(troupe.all { troupe.ask(me.echo, 1), troupe.ask(me.echo, { 2 }), "
              "troupe.ask(me, 'echo', 'three') })\n"
              "  troupe.await(troupe.sleep(1))\n"
              "  troupe.send(me.echo, 4)\n"
              "  return { r[1], r[2][1], r[3], (pcall(troupe.await, troupe.ask(me.nothing))) }\n"
              "end",
              "[1,2,\"three\",false]");
}
END_TEST

START_TEST(while_it_starts_another) {
        tr_stock_disable();
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local B = troupe.actor 'B' B.fields = { 'x' } function B.on:x() return self.x end\n"
              "function A.async:run()\n"
              "  local b = troupe.spawn(B, 5, { name = 'b' })\n"
              "  local x = troupe.await(troupe.ask(b.x))\n"
              "  troupe.stop(b) troupe.await(troupe.done(b))\n"
              "  return x\n"
              "end",
              "5");
}
END_TEST

/* What was handed over is there, or here, or has been looked at by who was asked. */
START_TEST(while_it_hands_over) {
        tr_stock_disable();
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local B = troupe.actor 'B' function B.on:swap(b) self.held, b = b, self.held return troupe.transfer(b "
              "or "
              "troupe.bytes 'first') end\n"
              "function A.async:run()\n"
              "  local other = troupe.spawn(B)\n"
              "  local b = troupe.bytes 'second'\n"
              "  local stop <close> = setmetatable({}, { __close = function() troupe.stop(other) end })\n"
              "  local ok, got = pcall(troupe.await, troupe.ask(other.swap, troupe.transfer(b)))\n"
              "  if not ok then return got.ran == 'yes' or #b == 6 end\n"
              "  ok, got = pcall(troupe.await, troupe.ask(other.swap, troupe.transfer(got)))\n"
              "  return #b == 0 and (not ok or tostring(got) == 'second')\n"
              "end",
              "true");
}
END_TEST

START_TEST(while_it_faults) {
        tr_stock_disable();
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local B = troupe.actor 'B' function B.on:fails() error({ 'it broke', print }) end\n"
              "function A.async:run() local ok, e = pcall(troupe.await, troupe.ask(troupe.spawn(B).fails)) return "
              "not ok and type(e.code) == 'string' end",
              "true");
}
END_TEST

/* Whatever fails, in the supervisor, in a child, or on the way between them: it goes on, or is over. */
START_TEST(while_it_supervises) {
        /* three actors start in it, which is gone through above */
        check_by(7,
                 "local A = troupe.actor 'A' function A.on:ready() return true end\n"
                 "local B = troupe.actor 'B' function B.on:fail() error('it broke', 0) end\n"
                 "function A.async:run()\n"
                 "  local name = 'n' .. troupe.text(troupe.me()):sub(7)\n"
                 "  local sup = troupe.supervise({ { B, name = 'b', publish = name }, { B } }, { restarts = 1000, "
                 "backoff "
                 "= "
                 "{ min = 1, max = 1 } })\n"
                 "  local stop <close> = setmetatable({}, { __close = function() troupe.stop(sup) end })\n"
                 "  local over = troupe.done(sup)\n"
                 "  local function ask(...) return troupe.await(troupe.race { troupe.ask(...), over }) end\n"
                 "  local b = ask(sup.child, 'b')\n"
                 "  pcall(ask, b.fail)\n"
                 "  local again repeat again = ask(sup.child, 'b') until again ~= b\n"
                 "  local count = #ask(sup.children)\n"
                 "  troupe.stop(sup) troupe.await(over)\n"
                 "  return { count, again ~= b, troupe.find(name) == nil }\n"
                 "end",
                 "[2,true,true]");
}
END_TEST

/* In the caller, in the component, and in its replica, which lives on. */
START_TEST(while_it_calls) {
        tr_stock_disable();
        component = "{ \"name\": \"c\", \"module\": \"m\", \"operations\": { \"twice\": { \"input\": { \"type\": \"object\" } },"
                    "\"fails\": {}, \"refuses\": { \"errors\": [\"NO\"] } } }";
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local ops = {}\n"
              "function ops.twice(input, context) return { n = 2 * input.n, attempt = context.attempt, who = context.caller.pid } end\n"
              "function ops.fails() error('it broke', 0) end\n"
              "function ops.refuses(input, context) return context.error('NO', { 1 }) end\n"
              "function A.async:run()\n"
              "  local function call(...) return troupe.await(troupe.call('c', ...)) end\n"
              "  local twice = call('twice', { n = 21 })\n"
              "  local fine, fault = pcall(call, 'fails')\n"
              "  local good, refusal = pcall(call, 'refuses')\n"
              "  return { twice.n, type(fault.code), type(refusal.code), #troupe.instances 'c' }\n"
              "end\n"
              "return { operations = ops }",
              "[42,\"string\",\"string\",1]");
        component = NULL;
}
END_TEST

/* Each run has an entity of its own, which may be there or not when something has failed. */
START_TEST(while_it_changes_entities) {
        tr_stock_disable();
        component = "{ \"name\": \"c\", \"module\": \"m\", \"operations\": { \"change\": { \"type\": \"transition\" },"
                    "\"make\": { \"type\": \"assignment\" }, \"look\": { \"type\": \"observation\" }, \"own\": {},"
                    "\"list\": { \"type\": \"observation\", \"scope\": \"entries\" } } }";
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local ops = {}\n"
              "function ops.make(input, changes) changes.n, changes.list = input, { 1, 2 } return changes.id end\n"
              "function ops.change(input, entity) entity.n = entity.n + input return entity.list end\n"
              "function ops.look(input, entity) return entity end\n"
              "function ops.list(input, entities) return #entities end\n"
              "function ops.own(input, context)\n"
              "  local e = troupe.await(context.entities:put(nil, { n = 1 }))\n"
              "  local same = troupe.await(context.entities:list { where = { id = e.id }, sort = 'n', limit = 1 })[1]\n"
              "  return troupe.await(context.entities:delete(same.id, { version = same.version })) end\n"
              "function A.async:run()\n"
              "  local function call(...) return troupe.await(troupe.call('c', ...)) end\n"
              "  local id = call('make', 40)\n"
              "  local list = call('change', 2, { id = id })\n"
              "  local e = call('look', nil, { id = id })\n"
              "  local count = call('list', nil, { where = { id = id }, limit = 1 })\n"
              "  return { e.n, e.version, list, count, call 'own' }\n"
              "end\n"
              "return { operations = ops }",
              "[42,2,[1,2],1,true]");
        component = NULL;
}
END_TEST

START_TEST(while_it_asks_for_tasks) {
        tr_stock_disable();
        component = "{ \"name\": \"c\", \"module\": \"m\", \"operations\": { \"work\": { \"input\": { \"type\": \"object\" } }, \"ask\": {} } }";
        check("local A = troupe.actor 'A' function A.on:ready() return true end\n"
              "local ops = {}\n"
              "function ops.work() end\n"
              "function ops.ask(input, context) return context.delay('1h', 'c', 'work', input, { key = 'k' }) end\n"
              "function A.async:run()\n"
              "  local id = troupe.await(troupe.task('c', 'work', { n = { 1 } }, { at = 32503680000000, expires = '1h', id = 'e' }))\n"
              "  local first = troupe.await(troupe.call('c', 'ask', {}))\n"
              "  return { #id, #first, first == troupe.await(troupe.call('c', 'ask', {})) }\n"
              "end\n"
              "return { operations = ops }",
              "[32,32,true]");
        component = NULL;
}
END_TEST

suite_main("script_memory", while_a_handler_works, while_it_waits_for_others, while_it_starts_another,
           while_it_hands_over, while_it_faults, while_it_supervises, while_it_calls, while_it_changes_entities,
           while_it_asks_for_tasks);
