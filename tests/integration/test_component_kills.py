# SPDX-License-Identifier: Apache-2.0
"""Serving processes are killed at random under load: each call ends once, in a way that is specified, and the counts add up.

KILLS in the environment says how many (the minute that the project asks for is KILLS=400); each comes when some answers have gone by.
"""

import collections
import os
import random
import signal
import subprocess
import sys
import unittest

import harness

KILLS = int(os.environ.get("KILLS", "40"))
SERVERS = 4
OUTSTANDING = 64
ANSWERS_PER_KILL = 150

# Serves until it is killed. What it has begun it answers, unless it is killed before.
WORKER = """
import socket, sys
import msgpack
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
unpacker = msgpack.Unpacker()
connection.sendall(msgpack.packb([0, 1, "serve", ["work", {"concurrency": 8}]]))
while data := connection.recv(65536):
    unpacker.feed(data)
    for frame in unpacker:
        if frame[0] == 1:
            print(frame[3]["instance"], flush=True)
        elif frame[0] == 0:
            operation, given, context = frame[3]
            connection.sendall(msgpack.packb([1, frame[1], None, [given, context["instance"], context["attempt"]]]))
"""

MANIFEST = {"name": "work", "deliveries": 3, "operations": {"answer": {}, "mine": {"stateful": True}}}


class Kills(unittest.TestCase):
    def start_server(self):
        server = subprocess.Popen([sys.executable, "-c", WORKER, self.daemon.socket], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True)
        self.servers[server.stdout.readline().strip()] = server

    def end_server(self, instance):
        server = self.servers.pop(instance)
        server.send_signal(signal.SIGKILL)
        server.wait()
        server.stdout.close()
        self.former.append(instance)

    def setUp(self):
        self.servers, self.former = {}, ["never"]
        self.daemon = harness.Daemon(config={"components": [MANIFEST]})
        self.addCleanup(self.daemon.close)
        self.addCleanup(lambda: [self.end_server(instance) for instance in list(self.servers)])
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        for _ in range(SERVERS):
            self.start_server()

    def send_one(self):
        """One more call, of a kind that chance decides."""
        kind = self.chance.choice(["answer", "answer", "mine", "former"])
        if kind == "answer":
            params = ["work", "answer", self.sent[kind]]
        else:
            instance = self.chance.choice(list(self.servers) if kind == "mine" else self.former)
            params = ["work", "mine", self.sent[kind], {"instance": instance, "timeout": "1m"}]
        self.outstanding[self.client.start("call", *params)] = (kind, params)
        self.sent[kind] += 1

    def check(self, request, error, result):
        kind, params = self.outstanding.pop(request)  # each is answered once
        if error is None:
            self.assertEqual(result[0], params[2])
            if kind == "answer":
                self.assertIn(result[2], (1, 2, 3))
            else:
                self.assertEqual(result[1], params[3]["instance"])
            self.ends[kind, "answered"] += 1
            return
        allowed = {
            "answer": {("undeliverable", "maybe")},
            "mine": {("abandoned", "maybe"), ("addressee", "no")},
            "former": {("addressee", "no")},
        }
        self.assertIn((error["code"], error["ran"]), allowed[kind])
        self.ends[kind, error["code"]] += 1

    def receive_one(self):
        frame = self.client.receive()
        self.assertEqual(frame[0], 1)
        self.check(*frame[1:])

    def test_each_call_ends_once(self):
        self.chance = random.Random(1)
        self.sent, self.ends, self.outstanding = collections.Counter(), collections.Counter(), {}
        answers = 0
        for kill in range(KILLS):
            while answers < (kill + 1) * ANSWERS_PER_KILL:
                while len(self.outstanding) < OUTSTANDING:
                    self.send_one()
                self.receive_one()
                answers += 1
            self.end_server(self.chance.choice(list(self.servers)))
            self.start_server()
        while self.outstanding:
            self.receive_one()
        for kind, count in self.sent.items():
            self.assertEqual(sum(number for (of, _), number in self.ends.items() if of == kind), count)
        self.assertEqual(self.ends["former", "addressee"], self.sent["former"])
        self.assertGreater(self.ends["answer", "answered"], 0)
        self.assertGreater(self.ends["mine", "answered"], 0)
        self.assertLess(self.ends["answer", "undeliverable"], self.sent["answer"] / 10)
        # nothing is left over, and what the daemon counted is what was accepted
        component = self.client.request("info", "work")
        refused = self.sent["former"] + self.ends["mine", "addressee"]
        self.assertEqual(component["mailbox"], 0)
        self.assertLessEqual(component["messages"], sum(self.sent.values()) - self.sent["former"])
        self.assertGreaterEqual(component["messages"], sum(self.sent.values()) - refused)
        self.assertEqual(self.client.request("ping"), "pong")


if __name__ == "__main__":
    unittest.main()
