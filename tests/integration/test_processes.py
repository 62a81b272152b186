# SPDX-License-Identifier: Apache-2.0
"""Processes that the daemon starts to serve a component: how they begin and end, what they may do, and what becomes of calls."""

import os
import signal
import sys
import unittest

import harness

# A worker in Python with nothing but a MessagePack library. It serves as its first argument says.
WORKER = """
import json, os, signal, socket, sys
import msgpack
connection = socket.socket(fileno=int(os.environ["TROUPE_FD"]))
unpacker = msgpack.Unpacker()
ids = 0
def send(frame):
    connection.sendall(msgpack.packb(frame))
def receive():
    while True:
        for frame in unpacker:
            return frame
        data = connection.recv(65536)
        if not data:
            print("its socket was closed", flush=True)
            sys.exit(0)
        unpacker.feed(data)
def request(method, *params):
    global ids
    ids += 1
    send([0, ids, method, params])
    frame = receive()
    return frame[2] or frame[3]
print("begins", flush=True)
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[1] == "hasty":
    connection.sendall(msgpack.packb([0, 1, "serve", ["work"]]) + msgpack.packb([0, 2, "withdraw", ["work"]]))
    os._exit(0)
if sys.argv[1] != "mute":
    others = [request("list"), request("spawn", "x", []), request("serve", "other"), request("serve", "work", {"instance": "mine"}),
              request("ping")]
    print("serves", request("serve", "work", {"concurrency": 2}), flush=True)
while True:
    kind, number, method, params = receive()
    operation, given, context = params
    if operation == "exit":
        os._exit(given)
    answers = {
        "who": [os.getpid(), context["instance"], context["component"]],
        "place": [os.environ.get("COLOUR"), os.environ.get("HOME"), os.getcwd(), sorted(os.listdir("/proc/self/fd")),
                  os.getpgid(0) == os.getpid()],
        "others": locals().get("others"),
    }
    if operation in answers:
        send([1, number, None, answers[operation]])
"""

OPERATIONS = {"who": {}, "place": {}, "others": {}, "exit": {}, "block": {}, "mine": {"stateful": True}}


class Processes(unittest.TestCase):
    def start(self, *arguments, config=None, closes=True, **process):
        manifest = {
            "name": "work",
            "process": {"command": [sys.executable, "-c", WORKER, *(arguments or ("serve",))], **process},
            "operations": OPERATIONS,
        }
        other = {"name": "other", "operations": {"a": {}}}
        self.daemon = harness.Daemon(config={"components": [manifest, other], **(config or {})})
        if closes:
            self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def call(self, operation, given=None, **options):
        return self.client.request("call", "work", operation, given, options)

    def instances(self):
        return self.client.request("instances", "work")

    def wait_for_instances(self, count):
        """Each answer is a round trip through the loop, so this is no busy wait of the daemon's."""
        while len(self.instances()) != count:
            pass
        return self.instances()

    def wait_for_log(self, text):
        while text not in self.daemon.log():
            self.client.request("ping")

    def test_serve_as_the_manifest_says(self):
        self.start(replicas=[{"instance": "left"}, {"instance": "right"}], cwd="/tmp", env={"COLOUR": "red"})
        self.assertEqual(set(self.wait_for_instances(2)), {"left", "right"})
        seen = {tuple(self.call("who")) for _ in range(4)}
        self.assertEqual({instance for _, instance, _ in seen}, {"left", "right"})
        colour, home, place, descriptors, leads_group = self.call("place")
        self.assertEqual((colour, home, place, leads_group), ("red", os.environ.get("HOME"), "/tmp", True))
        # in, out, error, its socket, and that of the listing
        self.assertEqual(descriptors, ["0", "1", "2", "3", "4"])
        self.wait_for_log("serves {")
        rows = self.client.request("list", {"kind": "component"})
        pids = {row["pid"] for row in rows if row["kind"] == "replica"}
        self.assertEqual(pids, {pid for pid, _, _ in seen})

    def test_may_serve_their_own_and_call_and_nothing_else(self):
        self.start()
        listed, spawned, served_another, served_as_mine, ping = self.call("others")
        for refused in (listed, spawned, served_another):
            self.assertRegex(refused[1], "^denied: ")
        self.assertRegex(served_as_mine[1], "^denied: |^bad-request: ")
        self.assertEqual(ping, "pong")

    def test_one_that_exits_is_replaced(self):
        self.start()
        before = self.call("who")
        with self.assertRaises(harness.Error) as raised:
            self.call("exit", 3)
        self.assertEqual((raised.exception.code, raised.exception.ran), ("undeliverable", "maybe"))
        after = self.call("who")
        self.assertNotEqual(before[0], after[0])
        self.assertNotEqual(before[1], after[1])
        self.assertIn("process 0 exited with status 3; it is replaced in", self.daemon.log())

    def test_what_one_said_that_has_ended_harms_nobody(self):
        """Its end may be seen before what it said, or after."""
        self.start("hasty", replicas=16)
        while self.daemon.log().count("exited with status 0; it is replaced") < 64:
            self.client.request("ping")
        self.assertEqual(self.client.request("ping"), "pong")

    def wait_until_in_hand(self, count):
        while sum(row.get("in_hand", 0) for row in self.client.request("list", {"kind": "component"})) != count:
            pass

    def test_killed_under_calls(self):
        self.start(replicas=[{"instance": "left"}])
        pid = self.call("who")[0]
        ordinary = self.client.start("call", "work", "block", None)
        addressed = self.client.start("call", "work", "mine", None, {"instance": "left", "timeout": "1h"})
        self.wait_until_in_hand(2)
        queued = self.client.start("call", "work", "mine", None, {"instance": "left", "timeout": "1h"})
        self.client.request("ping")
        os.kill(pid, signal.SIGKILL)
        with self.assertRaises(harness.Error) as raised:
            self.client.finish(addressed)
        self.assertEqual((raised.exception.code, raised.exception.ran), ("abandoned", "maybe"))
        with self.assertRaises(harness.Error) as raised:
            self.client.finish(queued)
        self.assertEqual((raised.exception.code, raised.exception.ran), ("addressee", "no"))
        # the ordinary one goes to who comes next, under the same name
        self.wait_until_in_hand(1)
        self.assertEqual(self.instances(), ["left"])
        self.client.request("cancel", ordinary)
        with self.assertRaises(harness.Error) as raised:
            self.client.finish(ordinary)
        self.assertEqual((raised.exception.code, raised.exception.ran), ("cancelled", "maybe"))
        self.wait_for_log("process 0 was killed by SIGKILL")

    def test_one_that_cannot_be_run(self):
        manifest = {"name": "none", "process": {"command": ["/nowhere/to/be/found"]}, "operations": {"a": {}}}
        with harness.Daemon(config={"components": [manifest]}) as daemon, harness.Client(daemon.socket) as client:
            while "could not be started (/nowhere/to/be/found): No such file" not in daemon.log():
                client.request("ping")
            with self.assertRaises(harness.Error) as raised:
                client.request("call", "none", "a", None, {"timeout": "1ms"})
            self.assertEqual((raised.exception.code, raised.exception.ran), ("timeout", "no"))

    def test_an_orderly_stop_closes_their_sockets_or_ends_them(self):
        self.start(replicas=2, closes=False)
        pids = [pid for pid, _, _ in (self.call("who") for _ in range(4))]
        self.wait_for_instances(2)
        self.daemon.close()
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_one_that_does_not_end_is_killed_after_the_grace(self):
        self.start("stubborn", closes=False, config={"shutdown": {"grace": "100ms"}})
        pid = self.call("who")[0]
        self.daemon.close()
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_one_that_never_serves_is_ended_with_the_daemon(self):
        self.start("mute", config={"shutdown": {"grace": "1s"}})
        self.wait_for_log("begins")
        self.assertEqual(self.instances(), [])


if __name__ == "__main__":
    unittest.main()
