# SPDX-License-Identifier: Apache-2.0
"""The daemon and the vectors of proto/vectors: every frame, value and refusal, in every encoding."""

import json
import unittest

import msgpack

import harness
from vector_files import KEYS_THAT_LUA_CHANGES, Pairs, bytes_where_no_text, comparable, data_of, encodings, load, unpack

ECHO = """
local troupe = require "troupe"
local Echo = troupe.actor "Echo"
function Echo.on:say(v) return v end
"""

# The configuration's least frame limit. Smaller ones are the scanner's own affair.
FRAME_MIN = 64

PING = msgpack.packb([0, 4711, "ping", []])
PONG = [1, 4711, None, "pong"]

# They would end the daemon or the test.
NOT_SENT = {"shutdown", "reload"}


class Vectors(unittest.TestCase):
    def start(self, config=None):
        daemon = harness.Daemon(files={"echo.lua": ECHO}, config=config)
        self.addCleanup(daemon.close)
        return daemon

    def test_values_come_back_as_they_were(self):
        with harness.Client(self.start().socket, values="typed") as client:
            client.unpacker = msgpack.Unpacker(strict_map_key=False, object_pairs_hook=Pairs)
            echo = client.request("spawn", "echo", [])
            for case in load("values.json"):
                if "$instance" in json.dumps(case["value"]):
                    continue
                for data in encodings(case):
                    with self.subTest(case["name"], data=data[:32].hex()):
                        wanted = comparable(bytes_where_no_text(unpack(data)))
                        if case["name"] in KEYS_THAT_LUA_CHANGES:
                            continue
                        self.assertEqual(comparable(self.echoed(client, echo, data)), wanted)

    def test_plain_values_are_what_stock_clients_can_read(self):
        with harness.Client(self.start().socket) as client:
            echo = client.request("spawn", "echo", [])
            for case in load("values.json"):
                if "$instance" in json.dumps(case["value"]) or "$map" in json.dumps(case.get("plain")) or "plain" not in case:
                    continue
                wanted = case["plain"]
                if isinstance(wanted, dict) and "$bin" in wanted or case["name"] in KEYS_THAT_LUA_CHANGES:
                    continue
                with self.subTest(case["name"]):
                    self.assertEqual(self.echoed(client, echo, data_of(case["hex"])), wanted)

    def echoed(self, client, echo, data):
        client.next_id += 1
        head = b"\x94\x00" + msgpack.packb(client.next_id) + b"\xa3ask\x93"
        client.send(head + msgpack.packb(echo) + b"\xa3say\x91" + data)
        return client.finish(client.next_id)

    def test_an_instance_of_a_class_that_is_not_loaded_is_refused(self):
        with harness.Client(self.start().socket) as client:
            echo = client.request("spawn", "echo", [])
            for case in load("values.json"):
                if "$instance" not in json.dumps(case["value"]):
                    continue
                with self.subTest(case["name"]), self.assertRaises(harness.Error) as refused:
                    self.echoed(client, echo, data_of(case["hex"]))
                self.assertEqual((refused.exception.code, refused.exception.ran), ("not-sendable", "no"))

    def test_frames_of_clients_are_understood(self):
        daemon = self.start()
        for case in load("frames.json"):
            if case["from"] != "client" or case["name"] in NOT_SENT:
                continue
            for data in encodings(case):
                with self.subTest(case["name"], data=data[:32].hex()), harness.Client(daemon.socket, errors=None) as client:
                    client.send(data + PING)
                    frames = []
                    while PONG not in frames:
                        frame = client.receive()
                        self.assertIsNotNone(frame)
                        frames.append(frame)
                    for _, _, error, _ in frames:
                        self.assertNotRegex(json.dumps(error, default=repr), "bad-frame|not-sendable|too-large|internal")

    def test_requests_are_refused_for_what_they_say(self):
        with harness.Client(self.start().socket) as client:
            for case in load("requests.json"):
                with self.subTest(case["name"]):
                    client.send(data_of(case["hex"]))
                    kind, request_id, error, result = client.receive()
                    self.assertEqual((kind, request_id, result), (1, 1, None))
                    self.assertEqual((error["code"], error["ran"]), (case["code"], "no"))
                    self.assertIn(case.get("says", ""), error["message"])
            client.send(PING)
            self.assertEqual(client.receive(), PONG)

    def test_frames_of_the_daemon_are_what_it_sends(self):
        """Byte for byte, wherever no handle is made up by chance."""
        cases = {case["name"]: data_of(case["hex"]) for case in load("frames.json") if case["from"] == "daemon"}
        with harness.Client(self.start().socket, errors=None) as client:
            for method, params, request_id, name in [
                    ("ping", [], 0, "ping: the answer"), ("ping", [], 2**32 - 1, "ping: the answer to the largest id"),
                    ("cancel", [1], 2, "cancel: it was not"), ("find", ["counter"], 3, "find: nobody")]:
                client.send(msgpack.packb([0, request_id, method, params]))
                self.assert_next(client, cases[name])
            echo = client.request("spawn", "echo", [], {"publish": "counter"})
            listener = client.request("listen")
            send, ask = [listener, "changed", [1, "two"]], [listener, "colour", ["red"]]
            for options, name in [({}, ""), ({"method": "nvim_call_function", "params": ["OnMessage"]}, ", with a method of its own and params"),
                                  ({"params": []}, ", with params that are empty")]:
                client.request("listen", options)
                client.notify("send", *send)
                self.assert_next(client, cases["listen: what an actor sends" + name])
            client.request("listen")
            client.notify("send", listener, "changed", [])
            self.assert_next(client, cases["listen: what an actor sends without arguments"])
            client.send(msgpack.packb([0, 60, "ask", [listener, "colour", []]]) + msgpack.packb([0, 61, "ask", ask]))
            self.assert_next(client, cases["listen: what an actor asks, the smallest id"] + cases["listen: what an actor asks"])
            client.send(b"".join(data_of(case["hex"]) for case in load("frames.json") if case["name"] == "listen: the answer to what an actor asked"))
            self.assertEqual(client.finish(61), "blue")

            for reply, name in [({"method": "replied"}, "without params"), ({"method": "replied", "params": []}, "with params that are empty"),
                                ({"method": "nvim_call_function", "params": ["OnReply"]}, "with params")]:
                client.send(msgpack.packb([0, 5, "ask", ["counter", "say", [3], {"reply": reply}]]))
                self.assert_next(client, cases["ask with a reply: accepted"] + cases["ask with a reply: the outcome, " + name])
            client.request("done", echo, {"reply": {"method": "ended", "params": [1]}})
            client.send(msgpack.packb([0, 10, "stop", [echo]]))
            self.assert_next(client, cases["stop: at once"], cases["done with a reply: the outcome"])

    def assert_next(self, client, *wanted):
        """What comes next is these bytes; several of them come in any order."""
        self.assertEqual(list(client.unpacker), [])
        got = b""
        while len(got) < sum(map(len, wanted)):
            got += client.socket.recv(sum(map(len, wanted)) - len(got))
        self.assertIn(got, [b"".join(wanted), b"".join(reversed(wanted))])

    def test_what_is_no_frame_or_is_refused(self):
        daemons = {}
        for case in load("invalid.json"):
            frame_max = case.get("frame_max")
            if frame_max and frame_max < FRAME_MIN:
                continue
            if frame_max not in daemons:
                daemons[frame_max] = self.start({"limits": {"frame": frame_max}} if frame_max else None)
            with self.subTest(case["name"]), harness.Client(daemons[frame_max].socket, errors=None) as client:
                if not frame_max:
                    client.request("hello", {"errors": "map"})
                self.judge(client, case, data_of(case["hex"]))

    def judge(self, client, case, data):
        is_request = data[1] == 0 if data[0] == 0x94 else "id" in case
        client.send(data)
        if "id" in case and is_request:
            kind, request_id, error, _ = client.receive()
            self.assertEqual((kind, request_id), (1, case["id"]))
            if isinstance(error, dict):
                self.assertEqual((error["code"], error["ran"]), (case["verdict"], "no"))
                if case["verdict"] == "not-sendable" and "path" in case:
                    self.assertEqual(error["path"], case["path"])
            else:
                self.assertRegex(error[1], f"^{case['verdict']}: ")
        if case["verdict"] == "bad-frame":
            self.assertIsNone(client.receive())
        elif case.get("ends", True):
            client.send(PING)
            self.assertEqual(client.receive(), PONG)


if __name__ == "__main__":
    unittest.main()
