/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/lua_fixture.h"
/* on a machine that is busy, with a sanitizer */
#define SUITE_TIMEOUT_S 120
#include "tests/unit/suite.h"

/* `transfer` between actors: what was handed over is in one place, the other's or, where it was refused, one's own. */

static struct lua_fixture fixture;

/* Another actor. What it is sent under `hold` it keeps. */
#define OTHER                                                                      \
        "local await, ask, send, transfer = troupe.await, troupe.ask, troupe.send, troupe.transfer\n" \
        "local Other = troupe.actor 'Other'\n"                                     \
        "function Other.on:take(b) return { #b, tostring(b) } end\n"               \
        "function Other.on:hold(b) self.held = b end\n"                            \
        "function Other.on:left() return #self.held end\n"                         \
        "function Other.on:same(a, b, c) return rawequal(a, b) and rawequal(b, c) and #a end\n" \
        "function Other.on:give() return transfer(self.held) end\n"                \
        "function Other.async:give_late() await(troupe.sleep(30)) return { transfer(self.held) } end\n" \
        "function Other.on:fault() error 'broken' end\n"

/* One whose constructor waits, so that what it is sent stays queued, until its time has come to fail. */
#define WAITING                                                                                 \
        "local Waiting = troupe.actor 'Waiting'\n"                                              \
        "function Waiting:init(ms) troupe.await(troupe.sleep(ms)) error 'no good' end\n"        \
        "function Waiting.on:take(b) end\n"

static void expect(const char *before, const char *body, const char *expected) {
        char *all = NULL;

        ck_assert_int_ge(asprintf(&all, OTHER "%s", before), 0);
        lua_expect(&fixture, all, body, expected);
        free(all);
}

static void setup(void) {
        lua_fixture_init(&fixture, 0);
}

static void teardown(void) {
        lua_fixture_deinit(&fixture);
}

START_TEST(the_storage_moves_and_the_buffer_is_empty) {
        expect("",
               "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
               "local got = await(ask(o.take, transfer(b)))\n"
               "local left = #b\n"
               "b:append 'again'\n"
               "return { got, left, tostring(b), await(ask(o.take, transfer(b))) }",
               "[[5,\"hello\"],0,\"again\",[5,\"again\"]]");
        /* an empty one has nothing to hand over */
        expect("", "local b = troupe.bytes(0) return { await(ask(troupe.spawn(Other).take, transfer(b))), #b }",
               "[[0,\"\"],0]");
        /* without it, a copy */
        expect("", "local b = troupe.bytes 'hello' return { await(ask(troupe.spawn(Other).take, b)), #b }",
               "[[5,\"hello\"],5]");
}
END_TEST

START_TEST(anywhere_in_a_message) {
        expect("function Other.on:deep(v) return { tostring(v.list[2].data), tostring(v.other) } end",
               "local a, b = troupe.bytes 'one', troupe.bytes 'two'\n"
               "local v = { list = { 1, { data = transfer(a) } }, other = transfer(b) }\n"
               "return { await(ask(troupe.spawn(Other).deep, v)), #a, #b }",
               "[[\"one\",\"two\"],0,0]");
        expect("", "local b, o = troupe.bytes 'sent', troupe.spawn(Other)\n"
                   "send(o.hold, transfer(b))\n"
                   "return { #b, await(ask(o.left)) }",
               "[0,4]");
        expect("local Made = troupe.actor 'Made' function Made:init(b) self.b = b end\n"
               "function Made.on:content() return tostring(self.b) end",
               "local b = troupe.bytes 'given'\n"
               "local m = troupe.spawn(Made, transfer(b))\n"
               "return { #b, await(ask(m.content)) }",
               "[0,\"given\"]");
        /* to oneself */
        expect("", "local b = troupe.bytes 'mine'\n"
                   "local p = ask(troupe.me(), 'keep', transfer(b))\n"
                   "return { #b, await(p) } end\n"
                   "function A.on:keep(b) return tostring(b)",
               "[0,\"mine\"]");
}
END_TEST

START_TEST(one_buffer_arrives_as_one) {
        expect("", "local b = troupe.bytes 'abc' local o = troupe.spawn(Other)\n"
                   "local r = { await(ask(o.same, b, b, b)), #b }\n"
                   "r[3], r[4] = await(ask(o.same, transfer(b), b, transfer(b))), #b\n"
                   "b:append 'de'\n"
                   "r[5], r[6] = await(ask(o.same, b, transfer(b), b)), #b\n"
                   "return r",
               "[3,3,3,0,2,0]");
}
END_TEST

START_TEST(an_answer_hands_over_too) {
        expect("", "local o = troupe.spawn(Other)\n"
                   "send(o.hold, troupe.bytes 'abc')\n"
                   "return { tostring(await(ask(o.give))), await(ask(o.left)) }",
               "[\"abc\",0]");
}
END_TEST

START_TEST(a_peer_is_answered_with_a_copy) {
        struct tr_target *target;

        lua_fixture_module(&fixture, "m", OTHER "function Other:init() self.held = troupe.bytes 'abc' end");
        target = lua_fixture_spawn(&fixture, "m", NULL);
        ck_assert_answer(&fixture, target, "give", "bin(3)");
        ck_assert_answer(&fixture, target, "left", "0");
        ck_assert_answer(&fixture, target, "give", "bin(0)");
        tr_target_unref(target);
}
END_TEST

START_TEST(a_refusal_in_the_sender_empties_nothing) {
        /* something else in the message, its size, no room */
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
                   "local ok, e = pcall(ask, o.take, transfer(b), print)\n"
                   "local ok2, e2 = pcall(send, o.take, { transfer(b), f = print })\n"
                   "return { e.message, e2.code, #b, tostring(b) }",
               "[\"a message may not carry a function: `argument 2` is a function\",\"not-sendable\",5,\"hello\"]");
        expect("", "local b = troupe.bytes(100000)\n"
                   "local o = troupe.spawn(Other, troupe.options { mailbox_bytes = 50000 })\n"
                   "local p = ask(o.take, transfer(b))\n"
                   "local r = { #b, select(2, pcall(await, p)).code }\n"
                   "r[3], r[4] = select(2, pcall(send, o.take, transfer(b))).code, #b\n"
                   "return r",
               "[100000,\"too-large\",\"too-large\",100000]");
        expect(WAITING, "local b = troupe.bytes 'hello'\n"
                        "local w = troupe.spawn(Waiting, 10000, troupe.options { mailbox = 1 })\n"
                        "send(w.take)\n"
                        "local r = { select(2, pcall(send, w.take, transfer(b))).code, #b }\n"
                        "local p = ask(w.take, transfer(b))\n"
                        "r[3], r[4] = #b, select(2, pcall(await, p)).code\n"
                        "troupe.stop(w, { within = 1 })\n"
                        "return r",
               "[\"mailbox-full\",5,5,\"mailbox-full\"]");
        /* nobody there */
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
                   "troupe.stop(o) await(troupe.done(o))\n"
                   "send(o.take, transfer(b))\n"
                   "local r = { #b }\n"
                   "local p = ask(o.take, transfer(b))\n"
                   "r[2], r[3] = #b, select(2, pcall(await, p)).code\n"
                   "local unknown = troupe.handle('actor:' .. ('0'):rep(32))\n"
                   "send(unknown.take, transfer(b)) pcall(await, ask(unknown.take, transfer(b)))\n"
                   "r[4] = #b return r",
               "[5,5,\"not-running\",5]");
        /* no new actor */
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other, troupe.options { publish = 'held' })\n"
                   "local ok, e = pcall(troupe.spawn, Other, transfer(b), troupe.options { publish = 'held' })\n"
                   "return { e.code, #b }",
               "[\"taken\",5]");
}
END_TEST

START_TEST(a_refusal_by_the_receiver_gives_it_back) {
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
                   "local p = ask(o.none, transfer(b))\n"
                   "return { #b, select(2, pcall(await, p)).code, tostring(b) }",
               "[0,\"no-such-handler\",\"hello\"]");
        /* what was sent is back when its message has been put away, which is at a later turn */
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
                   "send(o.none, transfer(b)) send(o.hold, troupe.bytes(0))\n"
                   "await(ask(o.left)) await(ask(o.left))\n"
                   "return tostring(b)",
               "\"hello\"");
        /* its heap */
        expect("", "local b = troupe.bytes(4 << 20)\n"
                   "b[4 << 20] = 7\n"
                   "local o = troupe.spawn(Other, troupe.options { heap = '4M' })\n"
                   "local ok, e = pcall(await, ask(o.take, { transfer(b) }))\n"
                   "return { e.code, e.ran, #b, b[#b], await(ask(o.take, 'alive')) }",
               "[\"too-large\",\"no\",4194304,7,[5,\"alive\"]]");
        /* what comes beside it */
        lua_fixture_module(&fixture, "broken",
                           "if troupe.whoami().actor == 'Other' then error 'not here' end\n"
                           "return troupe.class 'C'");
        expect("", "local b, o, C = troupe.bytes 'hello', troupe.spawn(Other), require 'broken'\n"
                   "local ok, e = pcall(await, ask(o.take, transfer(b), C.new()))\n"
                   "return { e.code, #b }",
               "[\"load\",5]");
}
END_TEST

START_TEST(the_end_of_the_receiver_gives_it_back) {
        /* it faults, is killed, stops without having started */
        expect(WAITING, "local a, b = troupe.bytes 'asked', troupe.bytes 'sent'\n"
                        "local w = troupe.spawn(Waiting, 20)\n"
                        "local p = ask(w.take, transfer(a)) send(w.take, transfer(b))\n"
                        "local r = { #a, #b, select(2, pcall(await, p)).code, tostring(a) }\n"
                        "pcall(await, troupe.done(w))\n"
                        "r[5] = tostring(b) return r",
               "[0,0,\"fault\",\"asked\",\"sent\"]");
        expect("local Loop = troupe.actor 'Loop' function Loop:init() while true do local t = {} end end",
               "local a, b = troupe.bytes 'asked', troupe.bytes 'sent'\n"
               "local l = troupe.spawn(Loop)\n"
               "local p = ask(l.take, transfer(a)) send(l.take, transfer(b))\n"
               "troupe.stop(l, { within = 1 })\n"
               "local r = { select(2, pcall(await, p)).code, tostring(a) }\n"
               "pcall(await, troupe.done(l))\n"
               "r[3] = tostring(b) return r",
               "[\"killed\",\"asked\",\"sent\"]");
        /* its constructor's argument, where its module does not load */
        lua_fixture_module(&fixture, "bad", "error 'not today'");
        expect("", "local b = troupe.bytes 'hello'\n"
                   "local o = troupe.spawn('bad:O', transfer(b))\n"
                   "local ok, e = pcall(await, troupe.done(o))\n"
                   "return { e.code, tostring(b) }",
               "[\"load\",\"hello\"]");
        /* what it has taken is gone with it */
        expect("", "local b, o = troupe.bytes 'hello', troupe.spawn(Other)\n"
                   "pcall(await, ask(o.fault, transfer(b)))\n"
                   "return #b",
               "0");
}
END_TEST

START_TEST(a_timeout_gives_back_what_is_queued) {
        expect(WAITING, "local b, w = troupe.bytes 'hello', troupe.spawn(Waiting, 10000)\n"
                        "local ok, e = pcall(await, troupe.timeout(ask(w.take, transfer(b)), 10))\n"
                        "local r = { e.code, e.ran, tostring(b) }\n"
                        "troupe.stop(w, { within = 1 })\n"
                        "return r",
               "[\"timeout\",\"no\",\"hello\"]");
        /* it stands in front of what was written meanwhile, in the room that it has or with more */
        expect(WAITING, "local w, r = troupe.spawn(Waiting, 10000), {}\n"
                        "for i, more in ipairs { ' world', ('x'):rep(100) } do\n"
                        "  local b = troupe.bytes(0):append 'hello'\n"
                        "  local p = ask(w.take, transfer(b))\n"
                        "  b:append(more)\n"
                        "  pcall(await, troupe.timeout(p, 10))\n"
                        "  r[i] = { #b, b:string(1, 8) }\n"
                        "end\n"
                        "troupe.stop(w, { within = 1 })\n"
                        "return r",
               "[[11,\"hello wo\"],[105,\"helloxxx\"]]");
}
END_TEST

START_TEST(an_answer_that_nobody_takes_goes_back) {
        expect("local Small = troupe.actor 'Small'\n"
               "function Small.async:fetch(o) return select(2, pcall(await, ask(o.give))) end",
               "local o = troupe.spawn(Other)\n"
               "send(o.hold, transfer(troupe.bytes(4 << 20)))\n"
               "local s = troupe.spawn(Small, troupe.options { heap = '4M' })\n"
               "local e = await(ask(s.fetch, o))\n"
               "return { e.code, e.ran, await(ask(o.left)) }",
               "[\"too-large\",\"yes\",4194304]");
        expect("", "local o = troupe.spawn(Other)\n"
                   "send(o.hold, troupe.bytes 'hello')\n"
                   "local ok, e = pcall(await, troupe.timeout(ask(o.give_late), 5))\n"
                   "await(troupe.sleep(60)) await(ask(o.left))\n"
                   "return { e.code, e.ran, await(ask(o.left)) }",
               "[\"timeout\",\"maybe\",5]");
}
END_TEST

START_TEST(it_counts_where_it_is) {
        /* twice six megabytes fit, one after the other; and in the receiver they do not */
        expect("local Small = troupe.actor 'Small'\n"
               "function Small.on:many(o) for i = 1, 3 do\n"
               "  local b = troupe.bytes(6 << 20) send(o.hold, transfer(b)) end return 'done' end\n"
               "function Small.on:hold(b) self.held = b end\n"
               "function Small.on:more() self.more = troupe.bytes(6 << 20) end",
               "local limit, o = troupe.options { heap = '8M' }, troupe.spawn(Other)\n"
               "local s, t = troupe.spawn(Small, limit), troupe.spawn(Small, limit)\n"
               "local r = { await(ask(s.many, o)), await(ask(o.left)) }\n"
               "send(t.hold, transfer(troupe.bytes(6 << 20)))\n"
               "local ok, e = pcall(await, ask(t.more))\n"
               "r[3], r[4] = e.code, e.kind return r",
               "[\"done\",6291456,\"fault\",\"heap\"]");
        /* what comes back counts again */
        expect(WAITING "local Small = troupe.actor 'Small'\n"
                       "function Small.async:run(more)\n"
                       "  local w, b = troupe.spawn(Waiting, 10000), troupe.bytes(6 << 20)\n"
                       "  pcall(await, troupe.timeout(ask(w.take, transfer(b)), 10))\n"
                       "  troupe.stop(w, { within = 1 })\n"
                       "  return #b + #troupe.bytes(more) end",
               "local s = troupe.spawn(Small, troupe.options { heap = '8M' })\n"
               "local r = { await(ask(s.run, 1)) }\n"
               "local ok, e = pcall(await, ask(s.run, 6 << 20))\n"
               "r[2], r[3] = e.code, e.kind return r",
               "[6291457,\"fault\",\"heap\"]");
}
END_TEST

START_TEST(a_buffer_that_is_gone_is_not_brought_back) {
        expect(WAITING, "local w = troupe.spawn(Waiting, 10000)\n"
                        "local p = ask(w.take, transfer(troupe.bytes(1000)))\n"
                        "collectgarbage()\n"
                        "pcall(await, troupe.timeout(p, 10))\n"
                        "send(w.take, transfer(troupe.bytes(1000)))\n"
                        "send(troupe.spawn(Waiting, 10000).take, transfer(troupe.bytes(1000)))\n"
                        "troupe.stop(w, { within = 1 })\n"
                        "return 1",
               "1");
}
END_TEST

START_TEST(misuse_is_named) {
        expect("", "local r = {}\n"
                   "for i, v in ipairs { 42, 'text', troupe.me(), {} } do r[i] = select(2, pcall(transfer, v)).message end\n"
                   "r[#r + 1] = select(2, pcall(transfer)).message\n"
                   "r[#r + 1] = select(2, pcall(ask, troupe.me(), 'x', { [transfer(troupe.bytes 'x')] = 1 })).message\n"
                   "return r",
               "[\"transfer: 42 is not a byte buffer\",\"transfer: \"text\" is not a byte buffer\","
               "\"transfer: a handle is not a byte buffer\",\"transfer: a table is not a byte buffer\","
               "\"transfer: nil is not a byte buffer\","
               "\"a message may not carry a transfer as a key: `argument 1` has one\"]");
}
END_TEST

/* Two threads, one buffer, a thousand times each way. */
START_TEST(a_buffer_goes_to_and_fro) {
        expect("local Player = troupe.actor 'Player'\n"
               "function Player.on:ball(b, from) b[1] = b[1] + 1 & 255 send(from, transfer(b)) end",
               "self.player = troupe.spawn(Player)\n"
               "local b = troupe.bytes(1 << 16)\n"
               "send(self.player.ball, transfer(b), troupe.me().back)\n"
               "while not self.over do await(troupe.sleep(1)) end\n"
               "return { #b, #self.over, self.over[1] } end\n"
               "function A.on:back(b)\n"
               "  self.count = (self.count or 0) + 1\n"
               "  if self.count == 1000 then self.over = b else send(self.player.ball, transfer(b), troupe.me().back) end",
               "[0,65536,232]");
}
END_TEST

int main(void) {
        const TTest *const tests[] = {
                the_storage_moves_and_the_buffer_is_empty,
                anywhere_in_a_message,
                one_buffer_arrives_as_one,
                an_answer_hands_over_too,
                a_peer_is_answered_with_a_copy,
                a_refusal_in_the_sender_empties_nothing,
                a_refusal_by_the_receiver_gives_it_back,
                the_end_of_the_receiver_gives_it_back,
                a_timeout_gives_back_what_is_queued,
                an_answer_that_nobody_takes_goes_back,
                it_counts_where_it_is,
                a_buffer_that_is_gone_is_not_brought_back,
                misuse_is_named,
                a_buffer_goes_to_and_fro,
        };
        return suite_run_with("transfer", setup, teardown, tests, sizeof(tests) / sizeof(tests[0]));
}
