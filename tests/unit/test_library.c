/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* The library: starting actors, reaching them, their ends and names, and what it refuses. */

static struct lua_fixture fixture;

#define ECHO                                                        \
        "local Echo = troupe.actor 'Echo'\n"                        \
        "function Echo:init(a, b) self.a, self.b = a, b end\n"      \
        "function Echo.on:both() return { self.a, self.b } end\n"   \
        "function Echo.on:echo(...) return ... end\n"               \
        "function Echo.on:count(...) return select('#', ...) end\n" \
        "function Echo.on:whoami() return troupe.whoami() end\n"    \
        "function Echo.on:me() return troupe.me() end\n"            \
        "local function caught(f, ...) local ok, e = pcall(f, ...) return { e.code, e.message, e.ran } end\n"

static void expect(const char *body, const char *expected) {
        lua_expect(&fixture, ECHO, body, expected);
}

START_TEST(messages_are_sent_two_ways) {
        lua_fixture_init(&fixture, 0);
        expect("local e = troupe.spawn(Echo) return troupe.all { troupe.ask(e.echo, 1), troupe.ask(e, 'echo', 2), "
               "troupe.ask(e.count),\n"
               "  troupe.ask(e.count, nil, nil), troupe.ask(e, 'count', nil) }",
               "[1,2,0,2,1]");
        expect("local e = troupe.spawn(Echo) return { select('#', troupe.send(e.echo, 1)), "
               "troupe.await(troupe.ask(e.me)) == e }",
               "[0,true]");
        expect("return caught(troupe.send, 42)", "[\"bad-request\",\"send: 42 is not a message or a handle\",\"no\"]");
        expect("return caught(troupe.ask, troupe.me())",
               "[\"bad-request\",\"ask: nil is not the name of a handler\",\"no\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(order_is_kept) {
        lua_fixture_init(&fixture, 0);
        lua_expect(
                &fixture,
                "local B = troupe.actor 'B'\n"
                "function B:init() self.last, self.wrong = 0, 0 end\n"
                "function B.on:next(n) if n ~= self.last + 1 then self.wrong = self.wrong + 1 end self.last = n end\n"
                "function B.on:report() return { self.last, self.wrong } end",
                "local b = troupe.spawn(B)\n"
                "for i = 1, 1000 do troupe.send(b.next, i) end\n"
                "return troupe.ask(b.report)",
                "[1000,0]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(a_full_mailbox_is_told_at_once) {
        lua_fixture_init(&fixture, 0);
        expect("local e = troupe.spawn(Echo, nil, nil, { mailbox = 10 })\n"
               "local sent, err = 0\n"
               "for i = 1, 1000000 do local ok, x = pcall(troupe.send, e.echo, i) if ok then sent = sent + 1 else err "
               "= x break end end\n"
               "return { err.code, err.ran, sent >= 10 }",
               "[\"mailbox-full\",\"no\",true]");
        expect("local e = troupe.spawn(Echo, nil, nil, { mailbox_bytes = 100 })\n"
               "local ok, err = pcall(troupe.send, e.echo, ('x'):rep(200))\n"
               "local ok2, err2 = pcall(troupe.await, troupe.ask(e.echo, ('x'):rep(200)))\n"
               "return { err.code, err2.code, err2.ran }",
               "[\"too-large\",\"too-large\",\"no\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(who_has_stopped_is_not_running) {
        lua_fixture_init(&fixture, 0);
        expect("local e = troupe.spawn(Echo)\n"
               "troupe.stop(e) troupe.await(troupe.done(e)) troupe.stop(e)\n"
               "troupe.send(e.echo, 1)\n"
               "local ok, err = pcall(troupe.await, troupe.ask(e.echo, 1))\n"
               "return { err.code, err.message, err.ran, tostring(troupe.await(troupe.done(e))) }",
               "[\"not-running\",\"the actor is not running\",\"no\",\"nil\"]");
        ck_assert_int_eq(atomic_load(&fixture.refused), 1);
        expect("local e = troupe.handle 'actor:00112233445566778899aabbccddeeff'\n"
               "troupe.send(e.x) troupe.stop(e) troupe.detach(e)\n"
               "local _, a = pcall(troupe.await, troupe.ask(e.x))\n"
               "local _, b = pcall(troupe.await, troupe.done(e))\n"
               "return { a.code, b.code }",
               "[\"not-running\",\"not-running\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(done_tells_how_it_ended) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "local B = troupe.actor 'B' function B.on:fails() error('it broke', 0) end",
                   "local b = troupe.spawn(B)\n"
                   "local done = troupe.done(b)\n"
                   "local _, asked = pcall(troupe.await, troupe.ask(b.fails))\n"
                   "local _, ended = pcall(troupe.await, done)\n"
                   "local _, later = pcall(troupe.await, troupe.done(b))\n"
                   "return { asked.message, ended.message, later.message, ended.handler, ended.ran }",
                   "[\"it broke\",\"it broke\",\"it broke\",\"fails\",\"yes\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(stop_within_a_time_ends_in_a_kill) {
        lua_fixture_init(&fixture, 0);
        lua_expect(&fixture, "local B = troupe.actor 'B' function B.async:waits() troupe.await(troupe.sleep('1h')) end",
                   "local b = troupe.spawn(B)\n"
                   "local p = troupe.ask(b.waits)\n"
                   "troupe.stop(b, { within = 5 })\n"
                   "local _, e = pcall(troupe.await, p)\n"
                   "return { e.code, select(2, pcall(troupe.await, troupe.done(b))).code }",
                   "[\"killed\",\"killed\"]");
        expect("return caught(troupe.stop, troupe.me(), { whithin = 5 })",
               "[\"bad-request\",\"stop: there is no option `whithin`\",\"no\"]");
        expect("return caught(troupe.stop, troupe.me(), { within = 0 })[1]", "\"bad-request\"");
        expect("return caught(troupe.stop, 42)", "[\"bad-request\",\"stop: 42 is not a handle\",\"no\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(options_are_told_from_arguments_by_counting) {
        lua_fixture_init(&fixture, 0);
        expect("return troupe.ask(troupe.spawn(Echo, 1, { name = 'x' }).both)", "[1,{\"name\":\"x\"}]");
        expect("return troupe.ask(troupe.spawn(Echo, 1, 2, { name = 'x' }).both)", "[1,2]");
        expect("local w = troupe.await(troupe.ask(troupe.spawn(Echo, 1, 2, { name = 'x', heap = '4M' }).whoami)) "
               "return { w.name, w.module, w.actor }",
               "[\"x\",\"m\",\"Echo\"]");
        expect("return troupe.ask(troupe.spawn(Echo, 1, troupe.options { name = 'x' }).both)", "[1]");
        expect("return troupe.ask(troupe.spawn('m:Echo', 1, 2).both)", "[1,2]");
        expect("return troupe.ask(troupe.spawn('m:Echo', 1, { name = 'x' }).both)", "[1,{\"name\":\"x\"}]");
        expect("return troupe.ask(troupe.spawn('m:Echo', 1, 2, troupe.options { name = 'x' }).both)", "[1,2]");
        lua_expect(&fixture,
                   "local V = troupe.actor 'V' function V:init(...) self.n = select('#', ...) end function V.on:n() "
                   "return self.n end",
                   "return troupe.all { troupe.ask(troupe.spawn(V, { name = 'x' }).n), troupe.ask(troupe.spawn(V, "
                   "troupe.options { name = 'x' }).n) }",
                   "[1,0]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(options_are_refused_by_name) {
        lua_fixture_init(&fixture, 0);
        expect("return caught(troupe.spawn, Echo, 1, 2, { heep = 1 })",
               "[\"bad-request\",\"spawn: there is no option `heep`\",\"no\"]");
        expect("return caught(troupe.spawn, Echo, 1, 2, { heap = '1X' })",
               "[\"bad-request\",\"spawn: the option `heap` wants a size above 0: bytes, or text like "
               "\"64M\"\",\"no\"]");
        expect("return caught(troupe.spawn, Echo, 1, 2, { heap = '2G' })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { heap = '1000000' })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { heap = 1000 })",
               "[\"bad-request\",\"spawn: the option `heap` is from 65536 to 1073741824 bytes\",\"no\"]");
        expect("return caught(troupe.spawn, Echo, 1, 2, { mailbox = 0 })",
               "[\"bad-request\",\"spawn: the option `mailbox` wants a whole number above 0\",\"no\"]");
        expect("return caught(troupe.spawn, Echo, 1, 2, { async = 1.5 })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { detach = 1 })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { publish = 'a/b' })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { name = 'two\\nlines' })[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, 1, 2, { [1] = 2 })",
               "[\"bad-request\",\"spawn: there is no option `1`\",\"no\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(what_is_no_actor_is_refused) {
        lua_fixture_init(&fixture, 0);
        expect("return caught(troupe.spawn, 42)", "[\"bad-request\",\"spawn: 42 is not an actor\",\"no\"]");
        expect("return caught(troupe.spawn, print)", "[\"bad-request\",\"spawn: a function is not an actor\",\"no\"]");
        expect("return caught(troupe.spawn)", "[\"bad-request\",\"spawn: nil is not an actor\",\"no\"]");
        expect("return caught(troupe.spawn, 'a/b')[1]", "\"bad-request\"");
        expect("return caught(troupe.spawn, Echo, print)[1]", "\"not-sendable\"");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(names_are_published_and_found) {
        lua_fixture_init(&fixture, 0);
        expect("local e = troupe.spawn(Echo, 1, 2, { publish = 'e' })\n"
               "local taken = caught(troupe.spawn, Echo, 1, 2, { publish = 'e' })\n"
               "troupe.publish('second', e)\n"
               "local found = { troupe.find 'e' == e, troupe.find 'second' == e, troupe.find 'none' == nil, "
               "select('#', troupe.find 'none') }\n"
               "troupe.unpublish 'second'\n"
               "return { taken[1], found, troupe.find 'second' == nil, caught(troupe.unpublish, 'second')[1], "
               "caught(troupe.publish, 'e', e)[1] }",
               "[\"taken\",[true,true,true,1],true,\"not-found\",\"taken\"]");
        expect("return caught(troupe.find, 'a/b')", "[\"bad-request\",\"find: \"a/b\" is not a name\",\"no\"]");
        /* free at once */
        expect("local e = troupe.spawn(Echo, 1, 2, { publish = 'again' }) troupe.stop(e) troupe.await(troupe.done(e))\n"
               "return { troupe.find 'again' == nil, caught(troupe.publish, 'again', e)[1] }",
               "[true,\"not-running\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(actors_beyond_the_limit_are_refused_until_one_ends) {
        lua_fixture_init(&fixture, 0);
        expect("local all, err = {}\n"
               "for i = 1, 1000 do local ok, e = pcall(troupe.spawn, Echo) if not ok then err = e break end all[i] = e "
               "end\n"
               "troupe.stop(all[1]) troupe.await(troupe.done(all[1]))\n"
               "local again = troupe.spawn(Echo)\n"
               "return { err.code, #all > 200, troupe.await(troupe.ask(again.echo, 'alive')) }",
               "[\"limit\",true,\"alive\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

START_TEST(log_takes_a_level_and_a_format) {
        lua_fixture_init(&fixture, 0);
        expect("troupe.log('debug', 'a %d', 1) troupe.log('debug', '100%') troupe.log('debug', {}) return 1", "1");
        expect("return caught(troupe.log, 'loud', 'x')[1]", "\"bad-request\"");
        expect("return caught(troupe.log, 'debug', '%d', 'x')",
               "[\"bad-request\",\"log: bad argument #2 to 'string.format' (number expected, got string)\",\"no\"]");
        lua_fixture_deinit(&fixture);
}
END_TEST

suite_main("library", messages_are_sent_two_ways, order_is_kept, a_full_mailbox_is_told_at_once,
           who_has_stopped_is_not_running, done_tells_how_it_ended, stop_within_a_time_ends_in_a_kill,
           options_are_told_from_arguments_by_counting, options_are_refused_by_name, what_is_no_actor_is_refused,
           names_are_published_and_found, actors_beyond_the_limit_are_refused_until_one_ends,
           log_takes_a_level_and_a_format);
