# SPDX-License-Identifier: Apache-2.0
"""Clients that are reached by others: `listen`, as it is seen from both sides."""

import unittest

import msgpack

import harness

MODULES = {
    "caller.lua": """
local troupe = require "troupe"
local Caller = troupe.actor "Caller"
local Point = troupe.class "Point"
function Point:init(x) self.x = x end
local function handle(h) return type(h) == "string" and troupe.handle(h) or h end
function Caller.on:tell(h, name, ...) troupe.send(handle(h), name, ...) end
function Caller.on:tell_times(h, n, what)
  for i = 1, n do troupe.send(handle(h), "n", i, what) end
end
function Caller.on:tell_until_full(h, what)
  local n = 0
  while true do
    local ok, e = pcall(troupe.send, handle(h), "n", n, what)
    if not ok then return { n, e.code } end
    n = n + 1
  end
end
function Caller.on:ask(h, name, ...) return troupe.ask(handle(h), name, ...) end
function Caller.async:kind(h, ...)
  local v = troupe.await(troupe.ask(handle(h), "any", ...))
  return math.type(v) or type(v)
end
function Caller.async:within(h, ms)
  local ok, e = pcall(troupe.await, troupe.timeout(troupe.ask(handle(h), "any"), ms))
  return { ok, e.code, e.ran }
end
function Caller.async:fails(h, ...)
  local ok, e = pcall(troupe.await, troupe.ask(handle(h), "any", ...))
  return { ok, e.code, e.message, e.ran, e.kind, e.handler }
end
function Caller.async:many(h, n)
  local ps, sum = {}, 0
  for i = 1, n do ps[i] = troupe.ask(handle(h), "any", i) end
  for i = 1, n do sum = sum + troupe.await(ps[i]) end
  return sum
end
function Caller.on:values(h)
  troupe.send(handle(h), "values", troupe.me(), troupe.me().tell, Point.new(1), troupe.timestamp(0, 0), { [1] = "a", [3] = "c" },
              troupe.bytes("raw"))
end
function Caller.on:cycle(h)
  local t = {} t.t = t
  local ok, e = pcall(troupe.send, handle(h), "cycle", t)
  return { e.code, e.message }
end
function Caller.on:shared(h) local t = { 1 } troupe.send(handle(h), "shared", { t, t }) end
function Caller.async:wait(h) return troupe.await(troupe.done(handle(h))) end
function Caller.on:stop(h)
  local ok, e = pcall(troupe.stop, handle(h))
  return e.code
end
function Caller.on:detach(h)
  local ok, e = pcall(troupe.detach, handle(h))
  return e.code
end
function Caller.on:print(h) return tostring(handle(h)) end
function Caller.on:echo(v) return v end
function Caller.on:raise(v) error(v) end
""",
}


class Listen(unittest.TestCase):
    config = {"shutdown": {"grace": "100ms"}}

    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.request = self.client.request
        self.caller = self.request("spawn", "caller", [])
        self.listener = self.connect()
        self.handle = self.listener.request("listen")

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def refusal(self, *request, client=None):
        with self.assertRaises(harness.Error) as refused:
            (client or self.client).request(*request)
        return refused.exception

    def ask(self, handler, *args):
        return self.request("ask", self.caller, handler, list(args))

    def start(self, handler, *args):
        return self.client.start("ask", self.caller, handler, list(args))

    def heard(self, client=None):
        """What comes to the listener next."""
        client = client or self.listener
        return client.notifications.popleft() if client.notifications else client.receive()

    def answer(self, request_id, result=None, error=None, client=None):
        (client or self.listener).send(msgpack.packb([1, request_id, error, result]))


class Sends(Listen):
    def test_a_handle_looks_like_an_actors(self):
        self.assertRegex(self.handle, "^actor:[0-9a-f]{32}$")

    def test_a_send_is_a_notification(self):
        self.ask("tell", self.handle, "changed", "a", 1, None, [2])
        self.assertEqual(self.heard(), [2, "message", ["changed", "a", 1, None, [2]]])
        self.ask("tell", self.handle, "nothing")
        self.assertEqual(self.heard(), [2, "message", ["nothing"]])

    def test_by_the_method_and_params_that_were_chosen(self):
        self.assertEqual(self.listener.request("listen", {"method": "nvim_call_function", "params": ["OnMessage"]}), self.handle)
        self.ask("tell", self.handle, "changed", 1)
        self.assertEqual(self.heard(), [2, "nvim_call_function", ["OnMessage", ["changed", 1]]])
        self.assertEqual(self.listener.request("listen", {"params": []}), self.handle)
        self.ask("tell", self.handle, "changed", 2)
        self.assertEqual(self.heard(), [2, "message", [["changed", 2]]])
        self.assertEqual(self.listener.request("listen", []), self.handle)
        self.ask("tell", self.handle, "changed", 3)
        self.assertEqual(self.heard(), [2, "message", ["changed", 3]])

    def test_in_the_order_in_which_they_were_sent(self):
        self.ask("tell_times", self.handle, 10000, "x")
        self.assertEqual([self.heard()[2][1] for _ in range(10000)], list(range(1, 10001)))

    def test_another_client_sends_and_hears_that_it_is_there(self):
        self.assertIsNone(self.request("send", self.handle, "hello", ["from a client"]))
        self.assertEqual(self.heard(), [2, "message", ["hello", "from a client"]])
        self.client.notify("send", self.handle, "hello", [])
        self.assertEqual(self.heard(), [2, "message", ["hello"]])

    def test_by_a_published_name(self):
        self.listener.request("publish", "door", self.handle)
        self.assertEqual(self.request("find", "door"), self.handle)
        self.request("send", "door", "knock", [])
        self.assertEqual(self.heard(), [2, "message", ["knock"]])
        waits = self.client.start("done", self.handle)
        self.listener.close()
        self.assertIsNone(self.client.finish(waits))
        self.assertIsNone(self.request("find", "door"))

    def test_values_go_out_in_the_connections_form(self):
        self.ask("values", self.handle)
        handle, message, instance, time, sparse, raw = self.heard()[2][1:]
        self.assertEqual((handle, message), (self.caller, [self.caller, "tell"]))
        self.assertEqual((instance, time, sparse, raw), ({"x": 1}, "1970-01-01T00:00:00Z", {"1": "a", "3": "c"}, b"raw"))
        self.listener.request("hello", {"values": "typed"})
        self.ask("values", self.handle)
        handle, message, instance, time, sparse, raw = self.heard()[2][1:]
        self.assertEqual(handle, msgpack.ExtType(1, bytes.fromhex(self.caller[6:])))
        self.assertEqual((message.code, instance.code, time), (2, 3, msgpack.Timestamp(0, 0)))
        self.assertEqual((sparse, raw), ({1: "a", 3: "c"}, b"raw"))

    def test_shared_structure_is_written_out_and_a_cycle_refused_where_it_is_sent(self):
        self.ask("shared", self.handle)
        self.assertEqual(self.heard(), [2, "message", ["shared", [[1], [1]]]])
        code, message = self.ask("cycle", self.handle)
        self.assertEqual(code, "not-sendable")
        self.assertIn("cycle", message)

    def test_what_another_client_sends_goes_out_in_the_listeners_form(self):
        self.request("send", self.handle, "any", [msgpack.ExtType(1, b"\x01" * 16), {1: 2}, msgpack.Timestamp(0, 0)])
        self.assertEqual(self.heard()[2], ["any", "actor:" + "01" * 16, {"1": 2}, "1970-01-01T00:00:00Z"])


class Asks(Listen):
    def test_an_ask_is_a_request_and_its_answer_the_result(self):
        asked = self.start("ask", self.handle, "sum", 2, 3)
        kind, request_id, method, params = self.heard()
        self.assertEqual((kind, method, params), (0, "message", ["sum", 2, 3]))
        self.answer(request_id, 5)
        self.assertEqual(self.client.finish(asked), 5)

    def test_ids_of_either_direction_are_separate(self):
        asked = self.start("ask", self.handle, "any")
        request_id = self.heard()[1]
        # A request of ours with the daemon's id is answered as ever, and the daemon's own is still unanswered.
        self.listener.send(msgpack.packb([0, request_id, "ping", []]))
        self.assertEqual(self.listener.receive(), [1, request_id, None, "pong"])
        self.answer(request_id, "yes")
        self.assertEqual(self.client.finish(asked), "yes")

    def test_answers_in_any_order(self):
        asked = [self.start("ask", self.handle, "any", i) for i in range(50)]
        frames = [self.heard() for _ in asked]
        for _, request_id, _, params in reversed(frames):
            self.answer(request_id, params[1] * 10)
        self.assertEqual([self.client.finish(each) for each in asked], [i * 10 for i in range(50)])

    def test_with_params(self):
        self.listener.request("listen", {"method": "call", "params": ["a", {"b": 1}]})
        asked = self.start("ask", self.handle, "sum", 2)
        kind, request_id, method, params = self.heard()
        self.assertEqual((kind, method, params), (0, "call", ["a", {"b": 1}, ["sum", 2]]))
        self.answer(request_id)
        self.assertIsNone(self.client.finish(asked))

    def test_an_error_answer_is_a_fault_with_its_text(self):
        for error, text in [("it broke", "it broke"), ([0, "it broke"], "it broke"), ({"code": 7, "message": "it broke"}, "it broke"),
                            (b"bytes", "bytes"), (7, "the client answered an error that has no text"),
                            ([], "the client answered an error that has no text"),
                            ({}, "the client answered an error that has no text"),
                            ([1, 2], "the client answered an error that has no text")]:
            with self.subTest(error=error):
                failing = self.start("fails", self.handle)
                self.answer(self.heard()[1], error=error)
                self.assertEqual(self.client.finish(failing), [False, "fault", text, "yes", "error", "any"])

    def test_a_client_asks_a_client(self):
        asked = self.client.start("ask", self.handle, "sum", [[2, 3]])
        kind, request_id, method, params = self.heard()
        self.assertEqual((kind, method, params), (0, "message", ["sum", [2, 3]]))
        self.answer(request_id, {1: msgpack.ExtType(1, b"\x01" * 16)})
        self.assertEqual(self.client.finish(asked), {"1": "actor:" + "01" * 16})
        asked = self.client.start("ask", self.handle, "sum", [])
        self.answer(self.heard()[1], error="no")
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.message, refused.exception.ran), ("fault", "no", "yes"))

    def test_a_client_asks_itself(self):
        asked = self.listener.start("ask", self.handle, "any", [])
        self.answer(self.heard()[1], "me")
        self.assertEqual(self.listener.finish(asked), "me")

    def test_answers_arrive_as_a_peers_values(self):
        for value, kind in [(1, "integer"), (1.5, "float"), ("x", "string"), ({}, "table"), (None, "nil"), (b"x", "userdata"),
                            (msgpack.ExtType(1, b"\x01" * 16), "userdata"), (msgpack.Timestamp(0, 0), "userdata")]:
            with self.subTest(value=value):
                asked = self.start("kind", self.handle)
                self.answer(self.heard()[1], value)
                self.assertEqual(self.client.finish(asked), kind)

    def test_an_answer_makes_no_actor_load_code(self):
        instance = msgpack.ExtType(3, msgpack.packb(["never_loaded:Thing", {"x": 1}]))
        asked = self.start("fails", self.handle)
        self.answer(self.heard()[1], instance)
        ok, code, message, ran, *_ = self.client.finish(asked)
        self.assertEqual((ok, code, ran), (False, "not-sendable", "yes"))
        self.assertIn("never_loaded", message)
        # One that it has loaded is an instance.
        asked = self.start("ask", self.handle, "any")
        self.answer(self.heard()[1], msgpack.ExtType(3, msgpack.packb(["caller:Point", {"x": 1}])))
        self.assertEqual(self.client.finish(asked), {"x": 1})

    def test_an_answer_that_cannot_be_accepted_is_an_answer(self):
        for value in [b"\xd4\x63\x00", b"\xcf" + b"\xff" * 8, b"\x81\xc0\x01", b"\x91" * 200 + b"\xc0"]:
            with self.subTest(value=value[:8]):
                asked = self.start("fails", self.handle)
                self.listener.send(b"\x94\x01" + msgpack.packb(self.heard()[1]) + b"\xc0" + value)
                self.assertEqual(self.client.finish(asked)[1::2][:2], ["not-sendable", "yes"])
        self.assertEqual(self.listener.request("ping"), "pong")

    def test_responses_nobody_waits_for_are_ignored(self):
        asked = self.start("ask", self.handle, "any")
        request_id = self.heard()[1]
        self.answer(request_id + 1, "nobody's")
        self.answer(request_id, "first")
        self.answer(request_id, "second")
        self.assertEqual(self.client.finish(asked), "first")
        self.assertEqual(self.listener.request("ping"), "pong")
        self.answer(0, "of one that does not listen", client=self.client)
        self.assertEqual(self.request("ping"), "pong")

    def test_the_asker_gives_up_and_a_late_answer_is_ignored(self):
        within = self.start("within", self.handle, 1)
        request_id = self.heard()[1]
        # It went out, so nobody knows whether it ran.
        self.assertEqual(self.client.finish(within), [False, "timeout", "maybe"])
        self.answer(request_id, "late")
        self.assertEqual(self.listener.request("ping"), "pong")

        asked = self.client.start("ask", self.handle, "any", [], {"timeout": 1})
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.ran), ("timeout", "maybe"))

        asked = self.client.start("ask", self.handle, "any", [])
        self.heard()
        request_id = self.heard()[1]
        self.assertTrue(self.request("cancel", asked))
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.ran), ("cancelled", "maybe"))
        self.answer(request_id, "late")
        self.assertEqual(self.listener.request("ping"), "pong")

    def test_more_than_one_after_another(self):
        asked = self.start("many", self.handle, 1000)
        for _ in range(1000):
            _, request_id, _, params = self.heard()
            self.answer(request_id, params[1])
        self.assertEqual(self.client.finish(asked), 500500)


class Ends(Listen):
    def test_asks_that_are_pending_are_stopped_and_later_ones_not_running(self):
        failing = self.start("fails", self.handle)
        asked = self.client.start("ask", self.handle, "any", [])
        waits = self.client.start("done", self.handle)
        waits_too = self.start("wait", self.handle)
        self.heard()
        self.heard()
        self.listener.close()
        self.assertEqual(self.client.finish(failing)[1], "stopped")
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.ran), ("stopped", "maybe"))
        self.assertIsNone(self.client.finish(waits))
        self.assertIsNone(self.client.finish(waits_too))

        self.assertEqual(self.ask("fails", self.handle)[1:4], ["not-running", "the actor is not running", "no"])
        self.assertEqual(self.refusal("ask", self.handle, "any", []).code, "not-running")
        self.assertEqual(self.refusal("send", self.handle, "any", []).code, "not-running")
        self.ask("tell", self.handle, "any")
        self.assertIsNone(self.request("done", self.handle))
        self.assertEqual(self.refusal("info", self.handle).code, "not-running")

    def test_a_peer_that_closes_its_side_for_writing_cannot_be_asked_but_still_told(self):
        # It is there for as long as a request of its own is unanswered.
        self.listener.start("done", self.caller)
        failing = self.start("fails", self.handle)
        self.heard()
        self.listener.socket.shutdown(1)
        self.assertEqual(self.client.finish(failing)[1::2][:2], ["stopped", "maybe"])
        self.assertEqual(self.ask("fails", self.handle)[1], "not-running")
        self.ask("tell", self.handle, "still")
        self.assertEqual(self.heard(), [2, "message", ["still"]])

    def test_what_sends_no_frame_any_more_is_stopped_too(self):
        failing = self.start("fails", self.handle)
        self.heard()
        self.listener.send(b"\xc1")
        self.assertEqual(self.client.finish(failing)[1], "stopped")

    def test_stopping_or_detaching_one_is_denied(self):
        self.assertEqual(self.refusal("stop", self.handle).code, "denied")
        self.assertEqual(self.refusal("stop", self.handle, {"kill": True}).code, "denied")
        self.assertEqual(self.refusal("detach", self.handle).code, "denied")
        self.assertEqual((self.ask("stop", self.handle), self.ask("detach", self.handle)), ("denied", "denied"))
        self.assertEqual(self.listener.request("ping"), "pong")

    def test_a_daemon_that_ends_does_not_wait_for_it(self):
        self.start("fails", self.handle)
        self.heard()
        self.request("shutdown")
        self.assertEqual(self.daemon.wait(), 0)


class Shows(Listen):
    def test_info_shows_what_it_is_and_list_has_actors_only(self):
        info = self.request("info", self.handle)
        self.assertEqual({**info, "since": 0}, {"handle": self.handle, "kind": "connection", "name": "client", "since": 0,
                                                "state": "running", "mailbox": 0, "mailbox_bytes": 0})
        self.assertEqual([each["handle"] for each in self.request("list")], [self.caller])

    def test_lua_prints_it(self):
        self.assertIn(self.handle[6:14], self.ask("print", self.handle))

    def test_unknown_keys_and_wrong_values_are_refused_by_name(self):
        for options, text in [({"methods": "x"}, "unknown option: methods"), ({"method": 7}, "method has to be"),
                              ({"method": ""}, "method has to be"), ({"params": {"a": 1}}, "params has to be an array"),
                              ({"params": "x"}, "params has to be an array"), ("x", "param 1 has to be a map")]:
            with self.subTest(options=options):
                refused = self.refusal("listen", options)
                self.assertEqual((refused.code, refused.ran), ("bad-request", "no"))
                self.assertIn(text, refused.message)
        self.assertEqual(self.refusal("listen", {}, {}).code, "bad-request")


class KeysThatAreTheSameAsText(Listen):
    """A plain client would get a map with a key twice."""

    twice = {"deep": [{1: "a", "1": "b"}]}

    def test_an_ask_is_refused_with_their_place(self):
        refused = self.refusal("ask", self.handle, "any", [0, self.twice])
        self.assertEqual((refused.code, refused.ran, refused.data["path"]), ("not-sendable", "no", "args[2].deep[1].1"))
        self.assertIn("`args[2].deep[1].1`", refused.message)
        self.assertEqual(self.ask("fails", self.handle, self.twice)[:2], [False, "not-sendable"])

    def test_a_send_is_dropped_and_told(self):
        self.request("subscribe", "refused")
        self.assertIsNone(self.request("send", self.handle, "any", [self.twice]))
        self.ask("tell", self.handle, "any", self.twice)
        for _ in range(2):
            _, _, (topic, event) = self.client.notifications.popleft() if self.client.notifications else self.client.receive()
            self.assertEqual((topic, event["code"], event["handler"], event["target"]), ("refused", "not-sendable", "any", self.handle[6:14]))
        # What comes behind it arrives, and it does not.
        self.request("send", self.handle, "last", [])
        self.assertEqual(self.heard(), [2, "message", ["last"]])

    def test_an_answer_is_refused_too(self):
        asked = self.client.start("ask", self.handle, "any", [])
        self.answer(self.heard()[1], self.twice)
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.ran, refused.exception.data["path"]), ("not-sendable", "yes", "deep[1].1"))

    def test_an_error_goes_without_what_has_no_plain_form(self):
        with self.assertRaises(harness.Error) as failed:
            self.ask("raise", self.twice)
        self.assertEqual((failed.exception.code, failed.exception.data["handler"]), ("fault", "raise"))
        self.assertNotIn("value", failed.exception.data)

    def test_a_typed_client_gets_them(self):
        typed = self.connect(values="typed")
        handle = "actor:" + typed.request("listen").data.hex()
        self.request("send", handle, "any", [self.twice])
        self.assertEqual(self.heard(typed), [2, "message", ["any", self.twice]])


class Bounded(Listen):
    config = {"shutdown": {"grace": "100ms"},
              "limits": {"requests": 8, "output": "1M", "frame": "256K", "stalled": "1h"}}

    def test_who_does_not_answer_is_asked_so_often_only(self):
        asked = [self.start("fails", self.handle, i) for i in range(8)]
        frames = [self.heard() for _ in asked]
        self.assertEqual(self.connect().request("ask", self.caller, "fails", [self.handle])[1::2][:2], ["mailbox-full", "no"])
        self.answer(frames[3][1], error="x")
        self.assertEqual(self.client.finish(asked[3])[1], "fault")
        again = self.start("fails", self.handle)
        self.answer(self.heard()[1], error="y")
        self.assertEqual(self.client.finish(again)[2], "y")

    def test_asks_that_were_given_up_make_room(self):
        for _ in range(100):
            self.assertEqual(self.ask("within", self.handle, 1), [False, "timeout", "maybe"])

    def test_who_does_not_read_is_told_so_much_only_and_reads_it_all_later(self):
        count, code = self.ask("tell_until_full", self.handle, "x" * 10000)
        self.assertEqual(code, "mailbox-full")
        self.assertEqual(self.refusal("send", self.handle, "n", ["y" * 10000]).code, "mailbox-full")
        self.assertEqual(self.refusal("ask", self.handle, "n", ["y" * 10000]).code, "mailbox-full")
        info = self.request("info", self.handle)
        self.assertGreater(info["mailbox"], 0)
        self.assertLessEqual(info["mailbox_bytes"], 1 << 20)
        self.assertEqual([self.heard()[2][1] for _ in range(count)], list(range(count)))
        self.assertEqual(self.listener.request("ping"), "pong")
        self.request("send", self.handle, "n", [-1])
        self.assertEqual(self.heard(), [2, "message", ["n", -1]])

    def test_an_ask_that_waits_never_goes_out_when_it_is_given_up(self):
        count, _ = self.ask("tell_until_full", self.handle, "x" * 10000)
        # What waits is queued: it was never handed over.
        self.assertEqual(self.ask("within", self.handle, 1), [False, "timeout", "no"])
        asked = self.client.start("ask", self.handle, "any", [])
        self.assertTrue(self.request("cancel", asked))
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(asked)
        self.assertEqual((refused.exception.code, refused.exception.ran), ("cancelled", "no"))
        self.assertEqual([self.heard()[2][1] for _ in range(count)], list(range(count)))
        self.listener.request("ping")
        self.assertEqual(list(self.listener.notifications), [])

    def test_an_ask_that_waits_ends_with_the_connection(self):
        self.ask("tell_until_full", self.handle, "x" * 10000)
        failing = self.start("fails", self.handle)
        self.ask("echo", "when it has asked")
        self.listener.close()
        self.assertEqual(self.client.finish(failing)[1::2][:2], ["stopped", "no"])

    def test_who_has_closed_its_side_for_writing_reads_all_that_waits(self):
        count, _ = self.ask("tell_until_full", self.handle, "x" * 10000)
        self.listener.socket.shutdown(1)
        self.assertEqual([self.heard()[2][1] for _ in range(count)], list(range(count)))
        self.assertIsNone(self.listener.receive())
        self.assertIsNone(self.request("done", self.handle))

    def test_what_is_larger_than_a_frame_is_too_large(self):
        self.listener.request("listen", {"params": ["p" * 60000]})
        self.assertEqual(self.refusal("send", self.handle, "n", ["x" * 210000]).code, "too-large")
        self.assertEqual(self.ask("fails", self.handle, "x" * 210000)[1::2][:2], ["too-large", "no"])
        self.request("send", self.handle, "n", [1])
        self.assertEqual(self.heard()[2][1], ["n", 1])

    def test_an_answer_that_is_larger_than_a_frame_is_an_answer(self):
        asked = self.start("fails", self.handle)
        self.answer(self.heard()[1], "x" * 300000)
        self.assertEqual(self.client.finish(asked)[1::2][:2], ["too-large", "yes"])
        self.assertEqual(self.listener.request("ping"), "pong")


if __name__ == "__main__":
    unittest.main()
