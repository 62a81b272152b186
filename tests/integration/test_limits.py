# SPDX-License-Identifier: Apache-2.0
"""Limits are reached exactly, refuse in the right words, and give way again; and the order of each sender is kept."""

import threading
import unittest

import msgpack

import harness

SINK = """
local troupe = require "troupe"
local Sink = troupe.actor "Sink"
function Sink:init() self.n, self.last, self.wrong = 0, {}, 0 end
function Sink.on:put(sender, i)
  if i ~= (self.last[sender] or 0) + 1 then self.wrong = self.wrong + 1 end
  self.last[sender] = i
  self.n = self.n + 1
end
function Sink.on:state() return { n = self.n, wrong = self.wrong } end
function Sink.async:hold(gate) troupe.await(troupe.ask(gate.wait)) end
"""

# Answers those who wait when it is opened.
GATE = """
local troupe = require "troupe"
local Gate = troupe.actor "Gate"
function Gate:init() self.is_open = false end
function Gate.async:wait() while not self.is_open do troupe.await(troupe.sleep(1)) end end
function Gate.on:open() self.is_open = true end
"""

MAILBOX = 65_536
ACTORS = 1024
SENDERS, SENDS = 4, 100_000


class Limits(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files={"sink.lua": SINK, "gate.lua": GATE})
        self.addCleanup(self.daemon.close)

    def connect(self):
        client = harness.Client(self.daemon.socket)
        self.addCleanup(client.close)
        return client

    def test_a_mailbox_holds_65536_messages(self):
        client = harness.Client(self.daemon.socket, values="typed")
        self.addCleanup(client.close)
        actor = client.request("spawn", "sink", [], {"async": 1})
        gate = client.request("spawn", "gate", [])
        # One asynchronous handler is all that it may have in progress: from then on messages stay in the mailbox.
        holding = client.start("ask", actor, "hold", [gate])
        while client.request("info", actor)["state"] != "waiting":
            pass
        client.send(b"".join(msgpack.packb([2, "send", [actor, "put", ["a", i + 1]]]) for i in range(MAILBOX)))
        self.assertEqual(client.request("info", actor)["mailbox"], MAILBOX)
        with self.assertRaises(harness.Error) as refused:
            client.request("send", actor, "put", ["a", 0])
        self.assertEqual((refused.exception.code, refused.exception.ran), ("mailbox-full", "no"))
        with self.assertRaises(harness.Error) as refused:
            client.request("ask", actor, "state", [])
        self.assertEqual((refused.exception.code, refused.exception.ran), ("mailbox-full", "no"))

        client.request("send", gate, "open", [])
        self.assertIsNone(client.finish(holding))
        while client.request("info", actor)["mailbox"] == MAILBOX:
            pass
        self.assertEqual(client.request("ask", actor, "state", []), {"n": MAILBOX, "wrong": 0})

    def test_there_are_1024_actors(self):
        client = self.connect()
        starts = [client.start("spawn", "sink", []) for _ in range(ACTORS)]
        actors = [client.finish(start) for start in starts]
        self.assertEqual(len(set(actors)), ACTORS)
        with self.assertRaises(harness.Error) as refused:
            client.request("spawn", "sink", [])
        self.assertEqual((refused.exception.code, refused.exception.ran), ("limit", "no"))

        client.request("stop", actors[0])
        self.assertIsNone(client.request("done", actors[0]))
        self.assertEqual(client.request("ask", client.request("spawn", "sink", []), "state", []), {"n": 0, "wrong": 0})

    def test_the_order_of_each_sender_is_kept(self):
        owner = self.connect()
        actor = owner.request("spawn", "sink", [])
        failures = []

        def sender(name):
            try:
                with harness.Client(self.daemon.socket) as client:
                    window = 1000
                    for first in range(1, SENDS + 1, window):
                        sends = [msgpack.packb([2, "send", [actor, "put", [name, i]]]) for i in range(first, first + window)]
                        client.send(b"".join(sends))
                        # An answer says that all before it were served, so the mailbox is never full.
                        client.request("ask", actor, "state", [])
            except BaseException as failure:  # the thread that waits has to hear of anything
                failures.append(failure)

        threads = [threading.Thread(target=sender, args=(name,)) for name in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(owner.request("ask", actor, "state", []), {"n": SENDERS * SENDS, "wrong": 0})

    def test_unanswered_requests_are_bounded(self):
        with harness.Daemon(files={"sink.lua": SINK}, config={"limits": {"requests": 10}}) as daemon:
            with harness.Client(daemon.socket) as client:
                actor = client.request("spawn", "sink", [])
                holding = [client.start("done", actor) for _ in range(10)]
                with self.assertRaises(harness.Error) as refused:
                    client.request("done", actor)
                self.assertEqual((refused.exception.code, refused.exception.ran), ("busy", "no"))
                self.assertEqual(client.request("ping"), "pong")
                client.request("stop", actor)
                self.assertEqual([client.finish(request) for request in holding], [None] * 10)
                self.assertIsNone(client.request("done", actor))

    def test_connections_are_bounded(self):
        with harness.Daemon(config={"limits": {"connections": 3}}) as daemon:
            clients = [harness.Client(daemon.socket) for _ in range(3)]
            with self.assertRaises(RuntimeError) as refused:
                harness.Client(daemon.socket)
            self.assertRegex(str(refused.exception), r"limit: ")
            clients.pop().close()
            # The daemon sees the end of one and the beginning of the other in whatever order: the first may still be refused.
            while True:
                try:
                    clients.append(harness.Client(daemon.socket))
                    break
                except RuntimeError:
                    pass
            for client in clients:
                self.assertEqual(client.request("ping"), "pong")
                client.close()


if __name__ == "__main__":
    unittest.main()
