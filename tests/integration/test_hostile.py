# SPDX-License-Identifier: Apache-2.0
"""A client that misbehaves hurts nobody but itself: each way is tried while another client goes on working."""

import resource
import socket
import struct
import threading
import unittest

import msgpack

import harness

ECHO = """
local troupe = require "troupe"
local Echo = troupe.actor "Echo"
function Echo:init() self.n = 0 end
function Echo.on:say(v) return v end
function Echo.on:bump() self.n = self.n + 1 return self.n end
function Echo.on:large(n) return string.rep("x", n) end
function Echo.async:hold() troupe.await(troupe.sleep(3600000)) end
"""


class Worker(threading.Thread):
    """Another client: asks on and on, and every answer has to be right."""

    def __init__(self, daemon):
        super().__init__()
        self.client = harness.Client(daemon.socket)
        self.actor = self.client.request("spawn", "echo", [])
        self.asked = 0
        self.failure = None
        self.over = threading.Event()
        self.asked_more = threading.Condition()

    def run(self):
        try:
            while not self.over.is_set():
                if self.client.request("ask", self.actor, "bump", []) != self.asked + 1:
                    raise AssertionError("a wrong answer")
                with self.asked_more:
                    self.asked += 1
                    self.asked_more.notify_all()
        except BaseException as failure:  # the thread that waits has to hear of anything
            with self.asked_more:
                self.failure = failure
                self.asked_more.notify_all()

    def goes_on(self, asks=100):
        """Waits until so many more asks were answered."""
        with self.asked_more:
            until = self.asked + asks
            served = self.asked_more.wait_for(lambda: self.failure or self.asked >= until, harness.TIMEOUT_SECONDS)
        if self.failure or not served:
            raise AssertionError(f"the other client was not served: {self.failure}")

    def stop(self):
        self.over.set()
        self.join()
        self.client.close()


class Hostile(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files={"echo.lua": ECHO}, config={"limits": {"stalled": "500ms"}, "shutdown": {"grace": "100ms"}})
        self.addCleanup(self.daemon.close)
        self.worker = Worker(self.daemon)
        self.worker.start()
        self.addCleanup(self.worker.stop)

    def connect(self):
        client = harness.Client(self.daemon.socket, errors=None)
        self.addCleanup(client.close)
        return client

    def assert_alive(self, client):
        self.assertEqual(client.request("ping"), "pong")
        self.worker.goes_on()

    def assert_closed(self, client):
        self.assertIsNone(client.receive())
        self.worker.goes_on()

    def heap_bytes(self):
        """The daemon's resident memory."""
        with open(f"/proc/{self.daemon.pid}/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def test_garbage(self):
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"\xc1", b"\xff" * 1000, bytes(range(256)) * 5000, b"\x94\x03\x01\xa1x\x90"):
            with self.subTest(garbage=garbage[:20]):
                client = self.connect()
                try:
                    client.send(garbage)
                except OSError:
                    pass  # it may be closed before all was sent
                self.assert_closed(client)

    def test_what_is_no_frame_is_answered_where_an_id_was_read(self):
        client = self.connect()
        client.send(msgpack.packb([0, 7, "ping"]))
        self.assertEqual(client.receive(), [1, 7, [0, "bad-frame: this is not a frame of MessagePack-RPC (ran: no)"], None])
        self.assert_closed(client)

    def test_what_came_before_garbage_is_served(self):
        client = self.connect()
        actor = client.request("spawn", "echo", [])
        asks = b"".join(msgpack.packb([0, 100 + i, "ask", [actor, "bump", []]]) for i in range(1000))
        client.send(asks + b"\xc1")
        self.assertEqual([client.receive() for _ in range(1000)], [[1, 100 + i, None, i + 1] for i in range(1000)])
        self.assert_closed(client)

    def test_half_a_frame(self):
        frame = msgpack.packb([0, 1, "ask", [self.worker.actor, "say", ["x" * 100]]])
        for half in (1, 2, len(frame) // 2, len(frame) - 1):
            with self.subTest(half=half):
                client = self.connect()
                client.send(frame[:half])
                self.worker.goes_on()
                client.send(frame[half:])
                self.assertEqual(client.receive(), [1, 1, None, "x" * 100])
                client.send(frame[:half])
                client.socket.shutdown(socket.SHUT_WR)
                self.assert_closed(client)

    def test_a_frame_of_4_gib_by_its_header(self):
        before = self.heap_bytes()
        for head in (b"\xdb", b"\xc6"):  # str 32, bin 32
            with self.subTest(head=head):
                client = self.connect()
                client.send(b"\x94\x00\x05\xa4send\x93\xa1a\xa1b\x91" + head + struct.pack(">I", 2**32 - 1))
                answer = client.receive()
                self.assertEqual(answer[:2], [1, 5])
                self.assertRegex(answer[2][1], r"^too-large: ")
                client.send(b"x" * (1 << 20))  # the beginning of the rest, which is thrown away
                self.worker.goes_on()
        self.assertLess(self.heap_bytes() - before, 64 << 20)

    def test_arrays_of_2_to_the_32(self):
        before = self.heap_bytes()
        for head in (b"\xdd", b"\xdf"):  # array 32, map 32
            with self.subTest(head=head):
                client = self.connect()
                client.send(b"\x94\x00\x06\xa4send\x93\xa1a\xa1b" + head + struct.pack(">I", 2**32 - 1))
                self.assertRegex(client.receive()[2][1], r"^too-large: ")
                client.send(b"\xc0" * (1 << 20))
                self.worker.goes_on()
        self.assertLess(self.heap_bytes() - before, 64 << 20)

    def test_a_header_that_promises_2_to_the_28_elements(self):
        before = self.heap_bytes()
        client = self.connect()
        client.send(b"\xdd\x10\x00\x00\x00")  # as the frame itself, which none can be
        self.assert_closed(client)
        client = self.connect()
        client.send(b"\x94\x00\x08\xa4ping\xdd\x10\x00\x00\x00")  # as its params
        self.assertRegex(client.receive()[2][1], r"^too-large: ")
        self.assertLess(self.heap_bytes() - before, 64 << 20)
        self.worker.goes_on()

    def test_300_levels_of_nesting(self):
        client = self.connect()
        nested = b"\x91" * 300 + b"\xc0"
        client.send(b"\x94\x00\x09\xa3ask\x93" + msgpack.packb(self.worker.actor) + b"\xa3say\x91" + nested)
        answer = client.receive()
        self.assertEqual(answer[:2], [1, 9])
        self.assertEqual(answer[2], [1, "not-sendable: nested deeper than 128 levels (ran: no)"])
        self.assert_alive(client)

    def test_128_levels_cross(self):
        client = self.connect()
        nested = b"\x91" * 128 + b"\xc0"
        client.send(b"\x94\x00\x09\xa3ask\x93" + msgpack.packb(self.worker.actor) + b"\xa3say\x91" + nested)
        client.unpacker = msgpack.Unpacker(max_buffer_size=1 << 20)
        value = client.receive()[3]
        for _ in range(128):
            (value,) = value
        self.assertIsNone(value)

    def test_who_never_reads_its_answers_is_closed(self):
        client = self.connect()
        actor = client.request("spawn", "echo", [], {"publish": "mine"})
        watcher = harness.Client(self.daemon.socket)
        self.addCleanup(watcher.close)
        done = watcher.start("done", actor)
        client.send(b"".join(msgpack.packb([0, 10 + i, "ask", [actor, "large", [100_000]]]) for i in range(100)))
        self.worker.goes_on()
        self.assertIsNone(watcher.finish(done))  # its session has ended, so it was closed
        self.worker.goes_on()

    def test_who_floods_a_full_mailbox_is_answered_each_time(self):
        sends = 2000
        client = self.connect()
        full = client.request("spawn", "echo", [], {"async": 1, "mailbox": 1})
        client.send(msgpack.packb([0, sends, "ask", [full, "hold", []]]))
        while client.request("info", full)["state"] != "waiting":
            pass
        self.assertIsNone(client.request("send", full, "say", []))
        flood = [msgpack.packb([0, i, "send", [full, "say", []]]) for i in range(sends)]
        flood.insert(sends // 2, msgpack.packb([2, "cancel", [sends]]))
        client.send(b"".join(flood))
        client.socket.shutdown(socket.SHUT_WR)
        self.worker.goes_on()
        answers = {}
        while frame := client.receive():
            self.assertNotIn(frame[1], answers)
            answers[frame[1]] = frame[2][1].split(":")[0]
        self.assertEqual(answers, {**dict.fromkeys(range(sends), "mailbox-full"), sends: "cancelled"})
        self.worker.goes_on()

    def test_who_never_reads_and_goes_on_asking_is_not_read_from(self):
        client = self.connect()
        client.socket.setblocking(False)
        pings = msgpack.packb([0, 1, "ping", []]) * 1000
        sent = 0
        with self.assertRaises(OSError):  # BlockingIOError: nobody takes any more; BrokenPipeError: closed for it
            while sent < 1 << 30:
                sent += client.socket.send(pings)
        self.assertLess(sent, 64 << 20)
        self.worker.goes_on()

    def test_ids_that_are_used_again(self):
        client = self.connect()
        client.send(msgpack.packb([0, 1, "done", [self.worker.actor]]) + msgpack.packb([0, 1, "ping", []]))
        self.assertEqual(client.receive(), [1, 1, [1, "bad-request: a request with the id 1 is unanswered (ran: no)"], None])
        self.worker.goes_on()


if __name__ == "__main__":
    unittest.main()
