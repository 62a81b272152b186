/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"
#include "tests/unit/suite.h"

/* Orderly stops whose handlers wait for what cannot come any more; and those that only look like it. */

static struct lua_fixture fixture;

#define NOTE                                                 \
        "local Note = troupe.actor 'Note'\n"                 \
        "function Note.on:note(text) self.text = text end\n" \
        "function Note.async:noted() while not self.text do troupe.await(troupe.sleep(1)) end return self.text end\n"

/* What the stopped actors are, and how the test tells what became of them. */
static const char actors[] =
        "local W = troupe.actor 'W'\n"
        "function W.async:own_end() troupe.await(troupe.done(troupe.me())) end\n"
        "function W.on:forwards() return troupe.done(troupe.me()) end\n"
        "function W.async:one_of() troupe.await(troupe.any { troupe.done(troupe.me()), troupe.race {} }) end\n"
        "function W.async:asks_itself() return troupe.await(troupe.ask(troupe.me(), 'own_end')) end\n"
        "function W.async:is_answered(note)\n"
        "  local p = troupe.ask(troupe.me(), 'answer') troupe.send(note, 'note', 'asked') return troupe.await(p)\n"
        "end\n"
        "function W.async:answer() troupe.await(troupe.sleep(1)) return 42 end\n"
        "function W.async:in_time() return not pcall(troupe.await, troupe.timeout(troupe.done(troupe.me()), 1)) end\n"
        "function W.async:ticks()\n"
        "  troupe.every(1, function() troupe.await(troupe.done(troupe.me())) end)\n"
        "  troupe.await(troupe.sleep(5)) troupe.await(troupe.done(troupe.me()))\n"
        "end\n"
        "function W.on:watches(other) self.end_of_other, self.long = troupe.done(other), troupe.sleep('1d') end\n"
        "function W.async:end_of(other) troupe.await(troupe.done(other)) return 'it has ended' end\n"
        "function W.async:asks(other, ...) return troupe.await(troupe.ask(other, ...)) end\n"
        "local Closing = troupe.actor 'Closing'\n"
        "function Closing:init(other) self.other = other end\n"
        "function Closing:close() troupe.await(troupe.done(self.other or troupe.me())) end\n"
        "local Starting = troupe.actor 'Starting'\n"
        "function Starting:init(of) troupe.await(of == 'end' and troupe.done(troupe.me()) or troupe.ask(troupe.me(), "
        "of)) end\n"
        "function Starting.on:hello() return 'hello' end\n" NOTE "local function outcome(p)\n"
        "  local ok, e = pcall(troupe.await, p)\n"
        "  return ok and (e == nil and 'nil' or e) or e.code .. '/' .. e.ran\n"
        "end\n";

/* { what is done, what comes of it } */
static const char *const cases[][2] = {
        /* its own end, in every shape */
        { "local a = troupe.spawn(W) local p = troupe.ask(a.own_end) troupe.stop(a) return { outcome(p), "
          "outcome(troupe.done(a)) }",
          "[\"stopped/maybe\",\"nil\"]" },
        { "local a = troupe.spawn(W) local p = troupe.ask(a.forwards) troupe.stop(a) return outcome(p)",
          "\"stopped/maybe\"" },
        { "local a = troupe.spawn(W) local p = troupe.ask(a.one_of) troupe.stop(a) return outcome(p)",
          "\"stopped/maybe\"" },
        { "local a = troupe.spawn(W) local p = troupe.ask(a.asks_itself) troupe.await(troupe.ask(a.answer))\n"
          "troupe.stop(a) return outcome(p)",
          "\"stopped/maybe\"" },
        { "local a = troupe.spawn(W) local p = troupe.ask(a.ticks) troupe.stop(a) return outcome(p)",
          "\"stopped/maybe\"" },
        { "local c = troupe.spawn(Closing) troupe.stop(c) return outcome(troupe.done(c))", "\"nil\"" },
        { "local s = troupe.spawn(Starting, 'end') local p = troupe.ask(s.hello) troupe.stop(s)\n"
          "return { outcome(p), outcome(troupe.done(s)) }",
          "[\"stopped/no\",\"nil\"]" },
        /* what it asked itself, and can never begin */
        { "local s = troupe.spawn(Starting, 'hello') troupe.stop(s) return outcome(troupe.done(s)) ~= ''", "true" },
        { "local a, note = troupe.spawn(W, troupe.options { async = 1 }), troupe.spawn(Note)\n"
          "local p, q = troupe.ask(a.is_answered, note), troupe.ask(a.answer)\n"
          "troupe.await(troupe.ask(note.noted)) troupe.stop(a) return { outcome(p), outcome(q) }",
          "[\"stopped/maybe\",\"stopped/no\"]" },
        /* that can: nothing is cut short */
        { "local a = troupe.spawn(W) local p, q = troupe.ask(a.own_end), troupe.ask(a.answer) troupe.stop(a)\n"
          "return { outcome(p), outcome(q) }",
          "[\"stopped/maybe\",42]" },
        { "local a = troupe.spawn(W) local p = troupe.ask(a.in_time) troupe.stop(a) return outcome(p)", "true" },
        { "local a, b = troupe.spawn(W), troupe.spawn(W) local p, q = troupe.ask(a.end_of, b), troupe.ask(b.answer)\n"
          "troupe.stop(a) troupe.stop(b) return { outcome(p), outcome(q) }",
          "[\"it has ended\",42]" },
};

START_TEST(one_that_waits_for_itself) {
        lua_fixture_init(&fixture, 0);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                lua_expect(&fixture, actors, cases[i][0], cases[i][1]);
        lua_fixture_deinit(&fixture);
}
END_TEST

/* One of each ring ends early; what the others waited for comes. */
START_TEST(rings) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, actors,
                   "local a, b = troupe.spawn(W), troupe.spawn(W)\n"
                   "local p, q = troupe.ask(a.end_of, b), troupe.ask(b.end_of, a)\n"
                   "troupe.stop(a) troupe.stop(b)\n"
                   "local both = { outcome(p), outcome(q) } table.sort(both) return both",
                   "[\"it has ended\",\"stopped/maybe\"]");
        lua_expect(&fixture, actors,
                   "local ring, ends, count = {}, {}, { ['it has ended'] = 0, ['stopped/maybe'] = 0 }\n"
                   "for i = 1, 20 do ring[i] = troupe.spawn(W) end\n"
                   "for i = 1, 20 do ends[i] = troupe.ask(ring[i].end_of, ring[i % 20 + 1]) end\n"
                   "for i = 1, 20 do troupe.stop(ring[i]) end\n"
                   "for i = 1, 20 do local how = outcome(ends[i]) count[how] = count[how] + 1 end\n"
                   "return { count['it has ended'], count['stopped/maybe'] }",
                   "[19,1]");
        /* two that ask each other: the handler asked waits for the one who asks */
        lua_expect(&fixture, actors,
                   "local a, b = troupe.spawn(W), troupe.spawn(W)\n"
                   "local p, q = troupe.ask(a.asks, b, 'end_of', a), troupe.ask(b.asks, a, 'end_of', b)\n"
                   "troupe.stop(a) troupe.stop(b)\n"
                   "return { outcome(p) ~= '', outcome(q) ~= '', outcome(troupe.done(a)) ~= '', "
                   "outcome(troupe.done(b)) ~= '' }",
                   "[true,true,true,true]");
        /* one who starts, and one whose end that waits for: neither takes messages */
        lua_expect(&fixture,
                   "local S = troupe.actor 'S' function S:init(other) troupe.await(troupe.done(other)) end\n"
                   "local T = troupe.actor 'T'\n"
                   "function T.async:run(s) troupe.await(troupe.done(s)) return 'it has ended' end\n",
                   "local t = troupe.spawn(T) local s = troupe.spawn(S, t) local p = troupe.ask(t.run, s)\n"
                   "troupe.stop(s) troupe.stop(t)\n"
                   "local ok, e = pcall(troupe.await, p) return ok or e.code == 'stopped'",
                   "true");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* A close handler has an order to hold to: where one of its ring is a handler, that is what is given up. */
START_TEST(a_close_handler_goes_before) {
        lua_fixture_init(&fixture, 0);
        for (int i = 0; i < 20; i++)
                lua_expect(&fixture,
                           "local Child = troupe.actor 'Child'\n"
                           "function Child.async:wait(parent) troupe.await(troupe.done(parent)) end\n"
                           "local Parent = troupe.actor 'Parent'\n"
                           "function Parent:init(child, to) self.child, self.to = child, to end\n"
                           "function Parent:close()\n"
                           "  troupe.stop(self.child) troupe.await(troupe.done(self.child))\n"
                           "  troupe.await(troupe.ask(self.to, 'note', 'closed to the end'))\n"
                           "end\n" NOTE,
                           "local note, child = troupe.spawn(Note), troupe.spawn(Child)\n"
                           "local parent = troupe.spawn(Parent, child, note)\n"
                           "troupe.send(child.wait, parent) troupe.stop(parent)\n"
                           "troupe.await(troupe.done(parent))\n"
                           "return troupe.ask(note.noted)",
                           "\"closed to the end\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* What else is pending in one of a ring, and nobody waits for, does not keep it. */
START_TEST(only_what_handlers_wait_for_counts) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, actors,
                   "local a, b, other = troupe.spawn(W), troupe.spawn(W), troupe.spawn(W)\n"
                   "troupe.await(troupe.ask(a.watches, other))\n"
                   "local p, q = troupe.ask(a.end_of, b), troupe.ask(b.end_of, a)\n"
                   "troupe.stop(a) troupe.stop(b)\n"
                   "local both = { outcome(p), outcome(q) } table.sort(both) return both",
                   "[\"it has ended\",\"stopped/maybe\"]");
        lua_expect(&fixture, actors,
                   "local sup = troupe.supervise { { 'm:W', name = 'w' }, { 'm:W' }, { 'm:W' } }\n"
                   "troupe.send(troupe.await(troupe.ask(sup.child, 'w')).end_of, sup)\n"
                   "troupe.stop(sup) return outcome(troupe.done(sup))",
                   "\"nil\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

/* Who ends early is stopped orderly all the same. */
START_TEST(close_runs) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture,
                   "local W = troupe.actor 'W'\n"
                   "function W.async:own_end() troupe.await(troupe.done(troupe.me())) end\n"
                   "function W:init(to) self.to = to end\n"
                   "function W:close(reason) troupe.await(troupe.sleep(1)) troupe.await(troupe.ask(self.to, 'note', "
                   "reason)) end\n" NOTE,
                   "local note = troupe.spawn(Note) local a = troupe.spawn(W, note)\n"
                   "local p = troupe.ask(a.own_end) troupe.stop(a)\n"
                   "local ok, e = pcall(troupe.await, p)\n"
                   "return { ok, e.code, troupe.await(troupe.ask(note.noted)) }",
                   "[false,\"stopped\",\"stop\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

static const struct tr_behaviour *behaviour;

/* Is killed just as it joins those that wait for others. */
static bool awaits_and_is_killed(void *self, struct tr_awaited *awaited) {
        tr_actor_kill(&tr_actor_current()->target);
        return behaviour->awaits(self, awaited);
}

/* One that is killed in the turn in which it joins the list does not stay there. */
START_TEST(a_kill_as_it_joins) {
        lua_fixture_init(&fixture, 0);
        behaviour = fixture.system->behaviour;
        static struct tr_behaviour killed; /* threads that are about to end still use it */
        killed = *behaviour;
        killed.awaits = awaits_and_is_killed;
        fixture.system->behaviour = &killed;
        lua_expect(&fixture, actors,
                   "local a, b = troupe.spawn(W), troupe.spawn(W) local p = troupe.ask(a.end_of, b)\n"
                   "troupe.stop(a) return { outcome(p), outcome(troupe.done(a)) }",
                   "[\"killed/maybe\",\"killed/maybe\"]");
        tr_lock_acquire(&fixture.system->standstill.lock);
        ck_assert(tr_list_is_empty(&fixture.system->standstill.standing));
        tr_lock_release(&fixture.system->standstill.lock);
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("standstill", one_that_waits_for_itself, rings, a_close_handler_goes_before,
           only_what_handlers_wait_for_counts, close_runs, a_kill_as_it_joins);
