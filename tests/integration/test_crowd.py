# SPDX-License-Identifier: Apache-2.0
"""Many connections with much under way, and among them one that does not read and one that floods: nobody waits for either."""

import re
import resource
import selectors
import threading
import unittest

import msgpack

import harness

MODULES = {
    "echo.lua": """
local troupe = require "troupe"
local Echo = troupe.actor "Echo"
function Echo.on:say(v) return v end
function Echo.on:large(n) return string.rep("x", n) end
function Echo.on:tell(h, n, what) for i = 1, n do troupe.send(troupe.handle(h), "n", i, what) end end
""",
    "slow.lua": """
local troupe = require "troupe"
local Slow = troupe.actor "Slow"
function Slow.async:put() troupe.await(troupe.sleep(1)) end
""",
}

CONNECTIONS, OUTSTANDING = 200, 100
SERVERS = 8
GROWTH_MAX = 96 << 20


class Crowd:
    """Connections that all ask at once, served by one thread of ours."""

    def __init__(self, daemon, actors):
        self.clients = [harness.Client(daemon.socket) for _ in range(CONNECTIONS)]
        self.actors = actors

    def ask_all(self):
        """Has every connection ask everything at once, and every answer be right."""
        waiting = selectors.DefaultSelector()
        for number, client in enumerate(self.clients):
            client.expected = {i: f"{number}/{i}" for i in range(OUTSTANDING)}
            actor = self.actors[number % SERVERS]
            client.send(b"".join(msgpack.packb([0, i, "ask", [actor, "say", [text]]]) for i, text in client.expected.items()))
            waiting.register(client.socket, selectors.EVENT_READ, client)
        while waiting.get_map():
            events = waiting.select(harness.TIMEOUT_SECONDS)
            if not events:
                raise AssertionError("nobody is answered any more")
            for key, _ in events:
                self.take(key.data)
                if not key.data.expected:
                    waiting.unregister(key.fileobj)
        waiting.close()

    @staticmethod
    def take(client):
        client.unpacker.feed(client.socket.recv(1 << 18))
        for kind, request_id, error, result in client.unpacker:
            if (kind, error, result) != (1, None, client.expected.pop(request_id)):
                raise AssertionError(f"a wrong answer: {(kind, request_id, error, result)}")

    def close(self):
        for client in self.clients:
            client.close()


class WithACrowd(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config={"limits": {"output": "8M", "stalled": "1h"}, "shutdown": {"grace": "100ms"}})
        self.addCleanup(self.daemon.close)
        self.owner = self.connect()
        self.actors = [self.owner.request("spawn", "echo", []) for _ in range(SERVERS)]
        self.crowd = Crowd(self.daemon, self.actors)
        self.addCleanup(self.crowd.close)
        self.crowd.ask_all()
        self.before = self.resident_bytes()

    def connect(self):
        client = harness.Client(self.daemon.socket)
        self.addCleanup(client.close)
        return client

    def resident_bytes(self):
        with open(f"/proc/{self.daemon.pid}/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def assert_bounded(self):
        """Sanitizers keep what was freed, so there it says nothing."""
        with open(f"/proc/{self.daemon.pid}/maps") as maps:
            if not re.search(r"lib(asan|tsan)", maps.read()):
                self.assertLess(self.resident_bytes() - self.before, GROWTH_MAX)

    def watch_session_of(self, client):
        """A request that is answered when that connection has ended."""
        return self.owner.start("done", client.request("spawn", "echo", []))

    def is_open(self, request_id):
        self.owner.request("ping")
        return request_id not in self.owner.answers

    def large(self, client, count, size):
        """Asks for so many answers of that size, none of which it reads."""
        try:
            client.send(b"".join(msgpack.packb([0, 1000 + i, "ask", [self.actors[0], "large", [size]]]) for i in range(count)))
        except OSError:
            pass  # it may be closed before all was sent

    def test_one_that_stops_reading_is_waited_for_by_nobody_and_closed_at_the_bound(self):
        reader, sleeper, glutton = self.connect(), self.connect(), self.connect()
        within = self.watch_session_of(sleeper)
        beyond = self.watch_session_of(glutton)
        self.large(sleeper, OUTSTANDING, 40_000)  # 4 MB: less than may wait
        self.crowd.ask_all()
        self.assertEqual(reader.request("ask", self.actors[0], "say", [1]), 1)
        self.assertTrue(self.is_open(within) and self.is_open(beyond))

        self.large(glutton, OUTSTANDING, 2_000_000)  # 200 MB: more
        self.crowd.ask_all()
        self.assertIsNone(self.owner.finish(beyond))
        self.crowd.ask_all()
        self.assertTrue(self.is_open(within))
        self.assert_bounded()
        # The one that stayed within the bound has lost nothing.
        for i in range(OUTSTANDING):
            self.assertEqual(sleeper.receive()[1:], [1000 + i, None, "x" * 40_000])

    def test_one_that_listens_and_does_not_read_is_waited_for_by_nobody(self):
        listener = self.connect()
        handle = listener.request("listen")
        watched = self.watch_session_of(listener)
        with self.assertRaises(harness.Error) as refused:
            while True:
                self.owner.request("send", handle, "n", ["x" * 100_000])
        self.assertEqual((refused.exception.code, refused.exception.ran), ("mailbox-full", "no"))
        with self.assertRaises(harness.Error) as refused:
            self.owner.request("ask", self.actors[1], "tell", [handle, 1000, "x" * 100_000])
        self.assertIn("mailbox", refused.exception.message)
        self.actors[1] = self.owner.request("spawn", "echo", [])
        self.crowd.ask_all()
        self.assertTrue(self.is_open(watched))
        self.assert_bounded()

    def test_a_flooder_of_a_slow_actor_is_refused_while_others_are_served(self):
        slow = self.owner.request("spawn", "slow", [], {"async": 1, "mailbox": 1000})
        flooder = self.connect()
        counts = {"taken": 0, "mailbox-full": 0, "other": 0}
        over = threading.Event()
        flooded = threading.Event()
        sends = b"".join(msgpack.packb([0, i, "send", [slow, "put", []]]) for i in range(2000))

        def flood():
            while not over.is_set():
                flooder.send(sends)
                for _ in range(2000):
                    _, _, error, _ = flooder.receive()
                    counts["taken" if error is None else error["code"] if error["code"] in counts else "other"] += 1
                if counts["mailbox-full"]:
                    flooded.set()

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            self.assertTrue(flooded.wait(harness.TIMEOUT_SECONDS))
            for _ in range(3):
                self.crowd.ask_all()
            self.assertEqual(self.owner.request("ask", self.actors[0], "say", [1]), 1)
        finally:
            over.set()
            thread.join()
        self.assertEqual(counts["other"], 0)
        self.assertGreaterEqual(counts["taken"], 1000)
        self.assert_bounded()


if __name__ == "__main__":
    unittest.main()
