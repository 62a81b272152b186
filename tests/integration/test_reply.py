# SPDX-License-Identifier: Apache-2.0
"""Requests of clients that must not block: nil at once, and the outcome as a notification (`reply`)."""

import unittest

import msgpack

import harness

MODULES = {
    "worker.lua": """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker.on:say(...) return ... end
function Worker.on:me() return troupe.me() end
function Worker.on:break_it() error("it broke") end
function Worker.on:large(n) return string.rep("x", n) end
function Worker.async:nap(ms) troupe.await(troupe.sleep(ms)) return "woke" end
""",
}

REPLY = {"method": "OnReply"}


class Reply(unittest.TestCase):
    config = {"shutdown": {"grace": "100ms"}, "limits": {"requests": 4, "frame": "256K"}}

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

    def refusal(self, *request):
        with self.assertRaises(harness.Error) as refused:
            self.request(*request)
        return refused.exception

    def ask(self, handler, args=(), reply=REPLY, **options):
        return self.request("ask", self.worker, handler, list(args), {"reply": reply, **options})

    def heard(self):
        return self.client.notifications.popleft() if self.client.notifications else self.client.receive()

    def test_nil_at_once_and_the_outcome_later(self):
        for i in range(100):
            request_id = self.client.start("ask", self.worker, "say", [i], {"reply": REPLY})
            # Nil comes first, always, and its id is free from then on.
            self.assertEqual(self.client.receive(), [1, request_id, None, None])
            self.assertEqual(self.heard(), [2, "OnReply", [None, i]])

    def test_with_params(self):
        self.ask("say", ["x"], {"method": "nvim_call_function", "params": ["OnReply"]})
        self.assertEqual(self.heard(), [2, "nvim_call_function", ["OnReply", [None, "x"]]])
        self.ask("say", ["x"], {"method": "f", "params": []})
        self.assertEqual(self.heard(), [2, "f", [[None, "x"]]])
        self.ask("say", ["x"], {"method": "f", "params": [{"a": [1]}, None]})
        self.assertEqual(self.heard(), [2, "f", [{"a": [1]}, None, [None, "x"]]])

    def test_values_and_errors_in_the_forms_that_the_connection_had(self):
        self.ask("me")
        self.assertEqual(self.heard()[2], [None, self.worker])
        self.request("hello", {"values": "typed", "errors": "pair"})
        self.ask("me")
        self.assertEqual(self.heard()[2], [None, msgpack.ExtType(1, bytes.fromhex(self.worker[6:]))])
        self.ask("nothing")
        (kind, text), result = self.heard()[2]
        self.assertEqual((kind, result), (1, None))
        self.assertRegex(text, r"^no-such-handler: .*`nothing` \(ran: no\)$")
        self.request("hello", {"errors": "text"})
        self.ask("nothing")
        self.assertEqual(self.heard()[2], [text, None])

    def test_failures_are_outcomes_too(self):
        self.ask("nap", [60000], timeout=1)
        error, result = self.heard()[2]
        self.assertEqual((error["code"], result), ("timeout", None))
        self.ask("break_it")
        error, result = self.heard()[2]
        self.assertEqual((error["code"], error["ran"], error["handler"], result), ("fault", "yes", "break_it", None))
        # The actor is dead: the request was accepted all the same.
        self.ask("say")
        error, result = self.heard()[2]
        self.assertEqual((error["code"], error["ran"], result), ("not-running", "no", None))

    def test_one_that_is_larger_than_a_frame(self):
        self.ask("large", [300000])
        error, result = self.heard()[2]
        self.assertEqual((error["code"], error["ran"], result), ("too-large", "yes", None))
        self.ask("large", [1000], {"method": "f", "params": ["p" * 60000]})
        self.assertEqual(self.heard()[2][1], [None, "x" * 1000])
        self.ask("large", [220000], {"method": "f", "params": ["p" * 60000]})
        self.assertEqual(self.heard()[2][1][0]["code"], "too-large")

    def test_done(self):
        self.assertIsNone(self.request("done", self.worker, {"reply": REPLY}))
        self.request("stop", self.worker)
        self.assertEqual(self.heard(), [2, "OnReply", [None, None]])
        # Of one that has ended already: nil comes first here too.
        request_id = self.client.start("done", self.worker, {"reply": {"method": "f", "params": [1]}})
        self.assertEqual(self.client.receive(), [1, request_id, None, None])
        self.assertEqual(self.heard(), [2, "f", [1, [None, None]]])

        self.worker = self.request("spawn", "worker", [])
        self.request("done", self.worker, {"reply": REPLY})
        self.request("done", self.worker, {"reply": REPLY, "timeout": 1})
        self.assertEqual(self.heard()[2][0]["code"], "timeout")
        self.client.notify("ask", self.worker, "break_it", [])
        self.assertEqual(self.heard()[2][0]["code"], "fault")

    def test_as_a_notification_it_still_has_an_outcome(self):
        self.client.notify("ask", self.worker, "say", ["x"], {"reply": REPLY})
        self.assertEqual(self.client.receive(), [2, "OnReply", [None, "x"]])
        self.client.notify("done", self.worker, {"reply": REPLY})
        self.request("stop", self.worker)
        self.assertEqual(self.heard(), [2, "OnReply", [None, None]])

    def test_it_counts_among_the_unanswered(self):
        for _ in range(4):
            self.ask("nap", [60000])
        refused = self.refusal("ask", self.worker, "say", [], {"reply": REPLY})
        self.assertEqual((refused.code, refused.ran), ("busy", "no"))
        self.assertEqual(self.refusal("ask", self.worker, "say", []).code, "busy")
        self.assertEqual(self.refusal("done", self.worker, {"reply": REPLY}).code, "busy")
        # As a notification it is refused without a word.
        self.client.notify("ask", self.worker, "say", ["x"], {"reply": REPLY})
        self.assertEqual(self.request("ping"), "pong")
        self.assertEqual(list(self.client.notifications), [])

    def test_what_is_held_for_replies_is_bounded(self):
        daemon = harness.Daemon(files=MODULES, config={"limits": {"frame": "64K", "output": "128K"}, "shutdown": {"grace": "1ms"}})
        self.addCleanup(daemon.close)
        with harness.Client(daemon.socket) as client:
            worker = client.request("spawn", "worker", [])
            for _ in range(3):
                client.request("ask", worker, "nap", [60000], {"reply": {"method": "f", "params": ["p" * 40000]}})
            with self.assertRaises(harness.Error) as refused:
                client.request("ask", worker, "nap", [60000], {"reply": {"method": "f", "params": ["p" * 40000]}})
            self.assertEqual(refused.exception.code, "busy")

    def test_who_has_closed_its_side_for_writing_hears_of_it(self):
        self.ask("nap", [50])
        self.client.socket.shutdown(1)
        self.assertEqual(self.heard(), [2, "OnReply", [None, "woke"]])
        self.assertIsNone(self.client.receive())

    def test_wrong_ones_are_refused_by_name(self):
        for reply, text in [({}, "the option reply needs a method"), ([], "the option reply has to be a map"),
                            ({"params": []}, "the option reply needs a method"), ({"method": 7}, "the option reply.method has to be"),
                            ({"method": "f", "params": 7}, "the option reply.params has to be an array"),
                            ({"method": "f", "name": "x"}, "unknown option: reply.name"), ("f", "the option reply has to be a map")]:
            for request in ["ask", self.worker, "say", [], {"reply": reply}], ["done", self.worker, {"reply": reply}]:
                with self.subTest(request=request):
                    refused = self.refusal(*request)
                    self.assertEqual((refused.code, refused.ran), ("bad-request", "no"))
                    self.assertIn(text, refused.message)
        twice = b"\x94\x00\x09\xa3ask\x94" + msgpack.packb(self.worker) + b"\xa3say\x90\x81\xa5reply\x82\xa6method\xa1f\xa6method\xa1g"
        self.client.send(twice)
        error = self.client.receive()[2]
        self.assertEqual((error["code"], error["path"]), ("not-sendable", "reply.method"))
        self.ask("say", ["x"], {"method": b"f", "params": None})
        self.assertEqual(self.heard(), [2, "f", [None, "x"]])
        self.assertEqual(self.ask("say", ["x"], None), "x")


if __name__ == "__main__":
    unittest.main()
