# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md, sentence by sentence, where no other test holds one. Frames are written out: nothing here helps the client."""

import os
import subprocess
import sys
import unittest

import msgpack

import harness
import stranger

MODULES = {
    "worker.lua": """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker:init() self.n = 0 end
function Worker.on:bump() self.n = self.n + 1 return self.n end
function Worker.on:count() return self.n end
function Worker.on:say(...) return ... end
function Worker.on:kind(v) return math.type(v) or type(v) end
function Worker.on:break_it() error("it broke", 0) end
function Worker.on:me() return troupe.me() end
function Worker.on:keys() return { [1] = "a", [2.5] = "b", [true] = "c" } end
function Worker.on:raw() return "\\xff", nil end
function Worker.on:spin() while true do end end
function Worker.on:has_begun() return self.gate ~= nil end
function Worker.async:wait(gate) self.gate = gate troupe.await(troupe.ask(gate.wait)) return "waited" end
""",
    "gate.lua": """
local troupe = require "troupe"
local Gate = troupe.actor "Gate"
function Gate.async:wait()
  self.waiting = (self.waiting or 0) + 1
  while not self.is_open do troupe.await(troupe.sleep(1)) end
end
function Gate.async:entered() while not self.waiting do troupe.await(troupe.sleep(1)) end end
function Gate.on:open() self.is_open = true end
""",
    "sleepy.lua": """
local troupe = require "troupe"
local Sleepy = troupe.actor "Sleepy"
function Sleepy:init() troupe.await(troupe.sleep(3600000)) end
""",
}

TYPED = msgpack.ExtType


class Sentences(unittest.TestCase):
    config = {"shutdown": {"grace": "100ms"}}

    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.request = self.client.request
        self.worker = self.request("spawn", "worker", [])

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def stock(self):
        """A connection that never said hello."""
        return self.connect(errors=None)

    def say(self, *frames, client=None):
        (client or self.client).send(b"".join(map(msgpack.packb, frames)))

    def refusal(self, *request, client=None):
        with self.assertRaises(harness.Error) as refused:
            (client or self.client).request(*request)
        self.error = refused.exception
        return (self.error.code, self.error.ran)

    def failure(self, request_id, client=None):
        """How a request that was started failed."""
        with self.assertRaises(harness.Error) as failed:
            (client or self.client).finish(request_id)
        return (failed.exception.code, failed.exception.ran)


class Frames(Sentences):
    def test_ids_are_unsigned_32_bit_integers_in_any_encoding(self):
        client = self.stock()
        for id_bytes, value in [(b"\x00", 0), (b"\x7f", 127), (b"\xcc\x00", 0), (b"\xcd\x00\x07", 7), (b"\xce\xff\xff\xff\xff", 2**32 - 1),
                                (b"\xcf" + b"\x00" * 7 + b"\x01", 1), (b"\xd0\x05", 5), (b"\xd3" + b"\x00" * 4 + b"\xff" * 4, 2**32 - 1)]:
            client.send(b"\x94\x00" + id_bytes + b"\xa4ping\x90")
            self.assertEqual(client.receive(), [1, value, None, "pong"])

    def test_an_id_may_be_used_again_once_it_is_answered_and_not_before(self):
        gate = self.request("spawn", "gate", [])
        client = self.connect()
        self.say([0, 5, "ask", [self.worker, "wait", [TYPED(1, bytes.fromhex(gate[6:]))]]], [0, 5, "ping", []], client=client)
        kind, request_id, error, _ = client.receive()
        self.assertEqual((kind, request_id, error["code"], error["ran"]), (1, 5, "bad-request", "no"))
        self.request("send", gate, "open", [])
        self.assertEqual(client.receive(), [1, 5, None, "waited"])
        self.say([0, 5, "ping", []], client=client)
        self.assertEqual(client.receive(), [1, 5, None, "pong"])

    def test_a_method_that_is_no_string_and_params_that_are_no_array_are_bad_requests(self):
        client = self.connect()
        for method, params in [(7, []), (None, []), (["ping"], []), ({}, []), ("ping", None), ("ping", {}), ("ping", "x"), ("ping", 0),
                               ("ask", {"target": 1}), ("unheard_of", None)]:
            with self.subTest(method=method, params=params):
                wanted = "unknown-method" if method == "unheard_of" else "bad-request"
                self.say([0, 1, method, params], [2, method, params], [0, 2, "ping", []], client=client)
                _, request_id, error, result = client.receive()
                self.assertEqual((request_id, error["code"], error["ran"], result), (1, wanted, "no", None))
                self.assertEqual(client.receive(), [1, 2, None, "pong"])

    def test_other_message_types_and_lengths_end_the_connection(self):
        for data in [msgpack.packb([3, 1, "ping", []]), msgpack.packb([-1, 1, "ping", []]), msgpack.packb([0, 1, "ping", [], 1]),
                     msgpack.packb([1, 1, None]), msgpack.packb([2, "ping", [], 1]), msgpack.packb([]), msgpack.packb({}), msgpack.packb("x"),
                     msgpack.packb([0, -1, "ping", []]), msgpack.packb([0, 2**32, "ping", []]), msgpack.packb([0, 1.0, "ping", []]),
                     msgpack.packb([1.0, 1, None, None]), msgpack.packb(["0", 1, "ping", []])]:
            with self.subTest(data=data):
                client = self.stock()
                client.send(msgpack.packb([0, 9, "ping", []]) + data + msgpack.packb([0, 10, "ping", []]))
                self.assertEqual(client.receive(), [1, 9, None, "pong"])
                frame = client.receive()
                if frame is not None:
                    self.assertRegex(frame[2][1], "^bad-frame: ")
                    self.assertIsNone(client.receive())
        self.assertEqual(self.request("ping"), "pong")

    def test_unknown_notifications_and_responses_are_ignored(self):
        client = self.connect()
        self.say([2, "nvim_error_event", [1, "x"]], [2, "vim_get_api_info", []], [1, 77, None, "x"], [1, 0, "x", None],
                 [0, 3, "ping", []], client=client)
        self.assertEqual(client.receive(), [1, 3, None, "pong"])

    def test_a_nil_is_absent(self):
        self.assertEqual(self.request("ask", self.worker, "say", [1], None), 1)
        self.assertEqual(self.request("ask", self.worker, "say", [1], {"timeout": None, "trace": None, "reply": None, "new": None}), 1)
        self.assertRegex(self.request("spawn", "worker", [], {"heap": None, "publish": None, "if_absent": None}), "^actor:")
        for request in (("hello", None), ("list", None), ("done", "nobody", None), ("listen", None), ("stop", UNKNOWN, None)):
            self.say([0, 900, request[0], list(request[1:])])
            error = self.client.receive()[2]
            self.assertIn(error and error["code"], (None, "not-found"))
        self.assertEqual(self.refusal("ask", None, "say", []), ("bad-request", "no"))
        self.assertEqual(self.refusal("ask", self.worker, "say", None), ("bad-request", "no"))

    def test_each_method_says_which_param_is_wrong(self):
        for request, text in [(("ping", 1), "ping takes 0 params"), (("ask", "x", "y"), "ask takes 3 to 4 params"), (("cancel",), "cancel takes 1"),
                              (("cancel", "x"), "cancel: param 1 has to be the id"), (("cancel", -1), "cancel: param 1"),
                              (("cancel", 2**32), "cancel: param 1"), (("find", 7), "find: param 1"), (("find", "a/b"), "find: param 1"),
                              (("send", 7, "x", []), "send: param 1"), (("send", "a/b", "x", []), "send: param 1"),
                              (("send", "a", 7, []), "send: param 2"), (("send", "a", "x", {"b": 1}), "send: param 3"),
                              (("spawn", "a:b:c", []), "spawn: param 1"), (("spawn", "worker", 1), "spawn: param 2"),
                              (("spawn", "worker", [], 7), "spawn: param 3"), (("publish", "", "x"), "publish: param 1"),
                              (("publish", "x" * 129, "x"), "publish: param 1"), (("done", "x", []), None)]:
            with self.subTest(request=request):
                if text is None:
                    self.assertEqual(self.refusal(*request), ("not-found", "no"))
                    continue
                if request[0] == "send":
                    self.request("publish", "a", self.worker)
                self.assertEqual(self.refusal(*request), ("bad-request", "no"))
                self.assertIn(text, self.error.message)
                if request[0] == "send":
                    self.request("unpublish", "a")

    def test_unknown_keys_are_refused_by_name_wherever_options_are(self):
        for request in (("hello",), ("list",), ("listen",), ("ask", self.worker, "say", []), ("done", self.worker), ("stop", self.worker),
                        ("spawn", "worker", [])):
            with self.subTest(request=request):
                self.assertEqual(self.refusal(*request, {"colour": 1}), ("bad-request", "no"))
                self.assertIn("colour", self.error.message)
                self.assertEqual(self.refusal(*request, {7: 1}), ("bad-request", "no"))
        self.assertEqual(self.request("ask", self.worker, "count", []), 0)


UNKNOWN = "actor:" + "0" * 32


class Values(Sentences):
    def test_every_target_is_a_handle_its_text_or_a_name(self):
        for method, rest in [("send", ["bump", []]), ("ask", ["say", []]), ("info", []), ("done", [{"timeout": 1}]), ("detach", []), ("stop", [])]:
            for target in ["mine", b"mine", None, None]:
                actor = self.request("spawn", "worker", [], {"publish": "mine"})
                target = target or (actor if method != "done" else TYPED(1, bytes.fromhex(actor[6:])))
                with self.subTest(method=method, target=target):
                    request_id = self.client.start(method, target, *rest)
                    try:
                        self.client.finish(request_id)
                    except harness.Error as error:
                        self.assertEqual((method, error.code), ("done", "timeout"))
                self.request("stop", actor)
                self.request("done", actor)

    def test_a_bin_is_a_string_where_one_is_expected(self):
        self.assertEqual(self.request(b"ask", self.worker.encode(), b"say", [5], {b"timeout": b"1m"}), 5)
        self.assertRegex(self.request(b"spawn", b"worker", [], {b"publish": b"bin.name"}), "^actor:")
        self.assertIsNotNone(self.request("find", b"bin.name"))
        self.assertEqual(self.request("hello", {b"errors": b"map", b"client": b"x"})["protocol"], 1)
        # And bytes where none is: they come back as bytes.
        self.assertEqual(self.request("ask", self.worker, "say", [b"x"]), b"x")
        self.assertEqual(self.request("ask", self.worker, "kind", [b"x"]), "userdata")

    def test_an_integral_float_is_an_integer_where_one_is_expected(self):
        self.say([0, 40, "done", [self.worker]], [0, 41, "cancel", [40.0]])
        self.assertEqual(self.client.finish(41), True)
        self.assertEqual(self.failure(40), ("cancelled", "no"))
        self.assertEqual(self.request("hello", {"protocol": 1.0})["protocol"], 1)
        self.assertEqual(self.refusal("hello", {"protocol": 1.5}), ("bad-request", "no"))
        # A value stays what it is.
        self.assertEqual(self.request("ask", self.worker, "kind", [1.0]), "float")

    def test_an_empty_array_is_an_empty_map_where_one_is_expected(self):
        self.assertEqual(self.request("ask", self.worker, "say", [1], []), 1)
        self.assertEqual(self.request("hello", [])["server"], "trouped")
        self.assertEqual(self.request("list", [])[0]["handle"], self.worker)
        self.assertEqual(self.refusal("ask", self.worker, "say", [1], [1]), ("bad-request", "no"))
        self.assertEqual(self.refusal("ask", self.worker, "say", {}), ("bad-request", "no"))

    def test_strings_that_are_no_utf8_go_out_as_bin(self):
        client = harness.Client(self.daemon.socket)
        self.addCleanup(client.close)
        self.assertEqual(client.request("ask", self.worker, "raw", []), b"\xff")

    def test_map_keys_go_out_as_text_unless_typed(self):
        self.assertEqual(self.request("ask", self.worker, "keys", []), {"1": "a", "2.5": "b", "true": "c"})
        self.request("hello", {"values": "typed"})
        self.assertEqual(self.request("ask", self.worker, "keys", []), {1: "a", 2.5: "b", True: "c"})

    def test_what_cannot_cross_is_refused_and_a_notification_of_it_counted(self):
        for value, path in [(b"\xcf" + b"\xff" * 8, "args[1]"), (b"\x81\xc0\x01", "args[1]"), (b"\xd4\x63\x00", "args[1]"),
                            (b"\x91" * 129 + b"\xc0", None), (b"\x81\xa1k\xcf" + b"\xff" * 8, "args[1].k")]:
            with self.subTest(value=value[:10]):
                args = msgpack.packb(self.worker) + b"\xa3say\x91" + value
                self.client.send(b"\x94\x00\x07\xa3ask\x93" + args + b"\x93\x02\xa4send\x93" + args + msgpack.packb([0, 8, "ping", []]))
                error = self.client.receive()[2]
                self.assertEqual((error["code"], error["ran"]), ("not-sendable", "no"))
                if path:
                    self.assertEqual(error["path"], path)
                self.assertEqual(self.client.receive(), [1, 8, None, "pong"])

    def test_what_only_the_receiver_sees_rejects_an_ask_and_drops_a_send(self):
        twice = msgpack.packb(self.worker) + b"\xa4bump\x91\x82\xa1k\x01\xa1k\x02"
        self.client.send(b"\x94\x00\x07\xa3ask\x93" + twice + b"\x94\x00\x08\xa4send\x93" + twice)
        answers = {frame[1]: frame[2] for frame in (self.client.receive(), self.client.receive())}
        self.assertEqual((answers[7]["code"], answers[7]["ran"], answers[8]), ("not-sendable", "no", None))
        self.assertEqual(self.refusal("ask", self.worker, "no_such", []), ("no-such-handler", "no"))
        self.assertIsNone(self.request("send", self.worker, "no_such", []))
        self.assertEqual(self.request("ask", self.worker, "count", []), 0)

    def test_the_daemons_own_answers_have_string_keys_and_small_integers(self):
        def check(value):
            if isinstance(value, dict):
                for key, item in value.items():
                    self.assertIsInstance(key, str)
                    check(item)
            elif isinstance(value, list):
                for item in value:
                    check(item)
            elif isinstance(value, int):
                self.assertLess(abs(value), 2**53)
        for hello in ({}, {"values": "typed"}):
            client = self.connect(**hello)
            check(client.hello)
            check(client.request("list"))
            check(client.request("info", self.worker))
            check(client.request("info", client.request("listen")))


class Hello(Sentences):
    def test_what_it_answers(self):
        hello = self.client.hello
        self.assertEqual(set(hello), {"server", "version", "protocol", "limits", "you"})
        self.assertEqual((hello["server"], hello["protocol"]), ("trouped", 1))
        self.assertEqual(set(hello["you"]), {"uid", "gid", "pid", "roles"})

    def test_it_applies_to_what_is_received_after_it(self):
        gate = self.request("spawn", "gate", [])
        client = self.stock()
        wait = [self.worker, "wait", [TYPED(1, bytes.fromhex(gate[6:]))]]
        me = [self.worker, "me", []]
        self.say([0, 1, "done", [self.worker]], [0, 2, "ask", wait], [0, 3, "ask", me], [0, 4, "hello", [{"errors": "map", "values": "typed"}]],
                 [0, 5, "ask", me], [0, 6, "done", [self.worker]], [0, 7, "hello", [{"errors": "text"}]], [0, 8, "done", [self.worker]],
                 [0, 9, "ask", me], client=client)
        answers = {}
        while len(answers) < 5:
            _, request_id, error, result = client.receive()
            answers[request_id] = error or result
        handle = TYPED(1, bytes.fromhex(self.worker[6:]))
        self.assertEqual((answers[3], answers[5], answers[9]), (self.worker, handle, handle))
        self.request("stop", self.worker, {"kill": True})
        while len(answers) < 9:
            _, request_id, error, result = client.receive()
            answers[request_id] = error or result
        # Each in the form that the connection had when it came, though all fail at once.
        self.assertEqual(answers[1][0], 0)
        self.assertRegex(answers[1][1], r"^killed: .* \(ran: (no|maybe)\)$")
        self.assertRegex(answers[2][1], r"^killed: .* \(ran: maybe\)$")
        self.assertEqual(answers[6]["code"], "killed")
        self.assertRegex(answers[8], r"^killed: .* \(ran: (no|maybe)\)$")

    def test_a_part_of_it_leaves_the_rest_as_it_was(self):
        client = self.connect(errors="text", values="typed", timeout=20)
        client.request("hello", {"client": "again"})
        self.assertIsInstance(client.request("ask", self.worker, "me", []), TYPED)
        with self.assertRaises(RuntimeError) as refused:
            client.request("done", self.worker)
        self.assertRegex(str(refused.exception), "^timeout: ")

    def test_the_pair_has_kind_1_for_the_callers_own_mistakes(self):
        client = self.stock()
        for request, kind, code in [(["nothing", []], 1, "unknown-method"), (["ping", [1]], 1, "bad-request"), (["ask", ["nobody", "x", []]], 1, "not-found"),
                                    (["ask", [self.worker, "no_such", []]], 1, "no-such-handler"), (["ask", [UNKNOWN, "x", []]], 0, "not-running"),
                                    (["done", [self.worker, {"timeout": 1}]], 0, "timeout"), (["stop", ["nobody"]], 1, "not-found"),
                                    (["ask", [self.worker, "break_it", []]], 0, "fault")]:
            self.say([0, 1, *request], client=client)
            error = client.receive()[2]
            self.assertEqual(error[0], kind)
            self.assertRegex(error[1], rf"^{code}: .* \(ran: (no|maybe|yes)\)$")

    def test_what_is_not_known_is_refused_and_changes_nothing(self):
        self.assertEqual(self.refusal("hello", {"protocol": 2}), ("bad-request", "no"))
        self.assertEqual(self.error.data["supported"], [1])
        for options in ({"errors": "json"}, {"values": "raw"}, {"timeout": 0}, {"errors": "pair", "values": "raw"}, {"errors": "text", "protocol": 2}):
            self.assertEqual(self.refusal("hello", options), ("bad-request", "no"))
        self.assertEqual(self.refusal("nothing"), ("unknown-method", "no"))
        self.assertEqual(self.request("ask", self.worker, "me", []), self.worker)

    def test_the_default_timeout_is_for_all_requests_that_wait(self):
        client = self.connect(timeout="20ms")
        gate = TYPED(1, bytes.fromhex(self.request("spawn", "gate", [])[6:]))
        self.assertEqual(self.refusal("done", self.worker, client=client)[0], "timeout")
        self.assertEqual(self.refusal("ask", self.worker, "wait", [gate], client=client)[0], "timeout")
        self.assertEqual(self.refusal("spawn", "sleepy", [], client=client)[0], "timeout")
        # One that names its own has that.
        request = client.start("done", self.worker, {"timeout": "1h"})
        self.request("stop", self.worker)
        self.request("send", gate, "open", [])
        self.assertIsNone(client.finish(request))


class Notifications(Sentences):
    def test_whatever_is_run_as_one_has_no_answer(self):
        self.say([2, "spawn", ["worker", [], {"publish": "quiet"}]], [2, "ask", [self.worker, "bump", []]], [2, "send", [self.worker, "bump", []]],
                 [2, "hello", [{"values": "typed"}]], [2, "find", ["quiet"]], [2, "list", []], [2, "done", [self.worker]], [2, "ping", []],
                 [2, "listen", [{"method": "m"}]], [2, "publish", ["again", self.worker]])
        self.assertEqual(self.request("ask", "again", "count", []), 2)
        self.assertIsInstance(self.request("find", "quiet"), TYPED)
        self.assertEqual(list(self.client.notifications), [])

    def test_refused_ones_have_none_either(self):
        self.say([2, "send", ["nobody", "x", []]], [2, "send", [self.worker, "no_such", []]], [2, "ask", []], [2, "spawn", ["worker", [], {"x": 1}]],
                 [2, "stop", ["nobody"]], [2, "cancel", ["x"]], [2, "hello", [{"errors": "json"}]], [2, "publish", ["a/b", self.worker]])
        self.assertEqual(self.request("ask", self.worker, "count", []), 0)
        self.assertEqual(list(self.client.notifications), [])

    def test_cancel_as_one(self):
        self.say([0, 50, "done", [self.worker]], [2, "cancel", [50]])
        self.assertEqual(self.failure(50)[0], "cancelled")

    def test_the_daemon_sends_none_that_nobody_asked_for(self):
        self.say([0, 60, "spawn", ["worker", []]], [0, 61, "ask", [self.worker, "break_it", []]])
        self.client.finish(60)
        self.failure(61)
        self.assertEqual(self.request("ping"), "pong")
        self.assertEqual(list(self.client.notifications), [])


class GivingUp(Sentences):
    """`ran` is told truthfully: what was queued never runs, and of what had begun nobody knows."""

    def setUp(self):
        super().setUp()
        self.gate = self.request("spawn", "gate", [])
        self.one = self.request("spawn", "worker", [], {"async": 1})
        gate = TYPED(1, bytes.fromhex(self.gate[6:]))
        self.running = self.client.start("ask", self.one, "wait", [gate])
        self.request("ask", self.gate, "entered", [])
        # The one asynchronous handler that it may have in progress is: what comes now is queued.

    def test_a_timeout_of_what_is_queued_and_of_what_is_running(self):
        self.assertEqual(self.refusal("ask", self.one, "bump", [], {"timeout": 1}), ("timeout", "no"))
        self.assertEqual(self.timeout_of_what_is_running(), ("timeout", "maybe"))
        self.request("send", self.gate, "open", [])
        self.assertEqual(self.client.finish(self.running), "waited")
        self.assertEqual(self.request("ask", self.one, "count", []), 0)

    def timeout_of_what_is_running(self):
        """The outcome of the first ask that has begun when its time passes: each has twice the time of the one before."""
        milliseconds = 1
        while True:
            other = self.request("spawn", "worker", [])
            gate = TYPED(1, bytes.fromhex(self.request("spawn", "gate", [])[6:]))
            outcome = self.refusal("ask", other, "wait", [gate], {"timeout": milliseconds})
            if self.request("ask", other, "has_begun", []):
                return outcome
            self.assertEqual(outcome, ("timeout", "no"))
            milliseconds *= 2

    def test_a_cancel_of_what_is_queued_and_of_what_is_running(self):
        queued = self.client.start("ask", self.one, "bump", [])
        self.assertTrue(self.request("cancel", queued))
        self.assertEqual(self.failure(queued), ("cancelled", "no"))
        self.assertTrue(self.request("cancel", self.running))
        self.assertEqual(self.failure(self.running), ("cancelled", "maybe"))
        self.assertFalse(self.request("cancel", self.running))
        self.assertFalse(self.request("cancel", 123456))
        self.request("send", self.gate, "open", [])
        self.assertEqual(self.request("ask", self.one, "count", []), 0)

    def test_a_cancel_reaches_requests_of_its_own_connection_only(self):
        other = self.connect()
        queued = self.client.start("ask", self.one, "bump", [])
        self.request("ping")
        self.assertFalse(other.request("cancel", queued))
        self.request("send", self.gate, "open", [])
        self.assertEqual(self.client.finish(queued), 1)

    def test_what_is_queued_counts_against_the_mailbox_until_it_is_taken(self):
        small = self.request("spawn", "worker", [], {"async": 1, "mailbox": 2, "mailbox_bytes": 100})
        gate_handle = self.request("spawn", "gate", [])
        gate = TYPED(1, bytes.fromhex(gate_handle[6:]))
        running = self.client.start("ask", small, "wait", [gate])
        self.request("ask", gate, "entered", [])
        self.assertEqual(self.refusal("send", small, "say", ["x" * 101]), ("too-large", "no"))
        self.request("send", small, "say", ["x" * 60])
        self.assertEqual(self.refusal("send", small, "say", ["x" * 60]), ("mailbox-full", "no"))
        self.request("send", small, "bump", [])
        self.assertEqual(self.refusal("ask", small, "bump", []), ("mailbox-full", "no"))
        self.request("send", gate, "open", [])
        self.assertEqual(self.client.finish(running), "waited")

    def test_queued_asks_of_a_connection_that_has_ended_never_run_and_its_sends_do(self):
        other = self.connect()
        self.say([0, 1, "ask", [self.one, "bump", []]], [0, 2, "send", [self.one, "bump", []]], [2, "send", [self.one, "bump", []]], client=other)
        self.assertEqual(other.receive(), [1, 2, None, None])
        mine = other.request("spawn", "worker", [])
        done = self.client.start("done", mine)
        other.close()
        self.assertIsNone(self.client.finish(done))  # so the daemon has seen the end
        self.request("send", self.gate, "open", [])
        self.assertEqual(self.request("ask", self.one, "count", []), 2)

    def test_a_stop_serves_what_is_queued_and_a_kill_says_what_it_knows(self):
        queued = self.client.start("ask", self.one, "bump", [])
        self.request("ping")
        self.request("stop", self.one)
        self.assertEqual(self.refusal("ask", self.one, "bump", []), ("not-running", "no"))
        self.assertEqual(self.refusal("send", self.one, "bump", []), ("not-running", "no"))
        self.request("stop", self.one, {"kill": True})
        self.assertEqual((self.failure(self.running), self.failure(queued)), (("killed", "maybe"), ("killed", "no")))
        self.assertEqual(self.refusal("done", self.one)[0], "killed")


class Bounds(Sentences):
    config = {"shutdown": {"grace": "100ms"},
              "limits": {"frame": "64K", "output": "256K", "stalled": "1h", "requests": 100, "nesting": 5, "mailbox_bytes": "1M", "actors": 20}}

    def test_hello_names_each_as_the_configuration_does(self):
        limits = self.client.hello["limits"]
        self.assertEqual((limits["frame"], limits["output"], limits["requests"], limits["nesting"]), (65536, 262144, 100, 5))

    def test_frames(self):
        client = self.connect()
        head = len(msgpack.packb([0, 1, "ask", [self.worker, "say", ["x" * 60000]]])) - 60000
        self.say([0, 1, "ask", [self.worker, "say", ["x" * (65536 - head)]]], client=client)
        self.assertEqual(len(client.receive()[3]), 65536 - head)
        self.say([0, 2, "ask", [self.worker, "say", ["x" * (65537 - head)]]], [2, "send", [self.worker, "say", ["x" * 70000]]],
                 [0, 3, "ping", []], client=client)
        error = client.receive()[2]
        self.assertEqual((error["code"], error["ran"]), ("too-large", "no"))
        self.assertEqual(client.receive(), [1, 3, None, "pong"])

    def test_nesting(self):
        def nested(levels):
            return [] if levels == 1 else [nested(levels - 1)]
        self.assertEqual(self.request("ask", self.worker, "say", [nested(5)]), nested(5))
        self.assertEqual(self.refusal("ask", self.worker, "say", [nested(6)]), ("not-sendable", "no"))

    def test_unanswered_requests(self):
        waiting = [self.client.start("done", self.worker) for _ in range(100)]
        for request in (("done", self.worker), ("ask", self.worker, "bump", []), ("spawn", "worker", [])):
            self.assertEqual(self.refusal(*request), ("busy", "no"))
        # What is answered at once, and notifications, are no unanswered requests.
        self.assertEqual(self.request("ping"), "pong")
        self.request("send", self.worker, "bump", [])
        self.client.notify("ask", self.worker, "bump", [])
        self.assertTrue(self.request("cancel", waiting[0]))
        self.assertEqual(self.request("ask", self.worker, "count", []), 2)

    def test_output_that_is_not_read(self):
        watcher = self.connect()
        client = self.connect()
        mine = client.request("spawn", "worker", [])
        done = watcher.start("done", mine)
        # Answers that come from elsewhere are not held up by not reading: the connection ends at the bound.
        try:
            self.say(*([0, i, "ask", [mine, "say", ["x" * 60000]]] for i in range(50)), client=client)
        except OSError:
            pass  # it may be closed before all was sent
        self.assertIsNone(watcher.finish(done))

    def test_actors(self):
        for _ in range(19):
            self.request("spawn", "worker", [])
        self.assertEqual(self.refusal("spawn", "worker", []), ("limit", "no"))


class Memory(Sentences):
    config = {"shutdown": {"grace": "100ms"}, "limits": {"memory": "1M"}}

    def test_of_all_heaps_together(self):
        handles = [self.worker]
        with self.assertRaises(harness.Error) as refused:
            while len(handles) < 1000:
                handles.append(self.request("spawn", "worker", []))
        self.assertEqual((refused.exception.code, refused.exception.ran), ("no-memory", "no"))
        self.assertGreater(len(handles), 1)
        for handle in handles:
            self.request("stop", handle)
            self.request("done", handle)
        self.request("spawn", "worker", [])


AS_ANOTHER_USER = """
import socket, sys, msgpack
codes, sockets = [], []
for _ in range(4):
    sockets.append(socket.socket(socket.AF_UNIX))
    sockets[-1].connect(sys.argv[1])
    sockets[-1].sendall(msgpack.packb([0, 1, "ping", []]))
    error = next(msgpack.Unpacker(sockets[-1].makefile("rb", buffering=0)))[2]
    codes.append(error and error[1].split(":")[0])
print(codes)
"""


@unittest.skipUnless(os.getuid() == 0, "only root can be somebody else")
class PerUser(Sentences):
    config = {"limits": {"connections_per_user": 2, "actors_per_user": 2},
              "access": [{"user": "12345", "roles": ["call", "spawn"]}, {"user": "12346", "roles": ["call", "spawn"]}]}

    def test_connections(self):
        os.chmod(self.daemon.directory, 0o755)
        os.chmod(self.daemon.socket, 0o666)
        for user in (12345, 12346):
            printed = subprocess.run([sys.executable, "-c", AS_ANOTHER_USER, self.daemon.socket], check=True, stdout=subprocess.PIPE,
                                     user=user, group=user, extra_groups=[], cwd="/", timeout=harness.TIMEOUT_SECONDS, text=True).stdout
            self.assertEqual(printed, "[None, None, 'limit', 'limit']\n")
        # Root is excepted.
        for _ in range(4):
            self.assertEqual(self.connect().request("ping"), "pong")

    def test_actors(self):
        def attempt(user, *requests):
            return stranger.ask(self.daemon, requests, user=user)[1]

        def spawn(**options):
            return "spawn", "worker", [], options

        stranger.admit(self.daemon)
        for user in (12345, 12346):
            limit = f"limit: user {user} has 2 actors, and limits.actors_per_user allows no more"
            first, second, *rest = attempt(user, spawn(detach=True, publish=f"u{user}"), spawn(detach=True), spawn())
            self.assertRegex(first, "^actor:")
            self.assertRegex(second, "^actor:")
            self.assertEqual(rest, [limit])
            # Whichever connection they were started by; and one that has ended makes room.
            self.assertEqual(attempt(user, spawn()), [limit])
            stop, done, spawned, again = attempt(user, ("stop", f"u{user}"), ("done", first), spawn(), spawn())
            self.assertEqual((stop, done, again), (None, None, limit))
            self.assertRegex(spawned, "^actor:")
        # Root is excepted.
        for _ in range(4):
            self.assertRegex(self.request("spawn", "worker", []), "^actor:")


if __name__ == "__main__":
    unittest.main()
