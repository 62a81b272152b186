# SPDX-License-Identifier: Apache-2.0
"""examples/streams.py: the component of streams, served by two processes that have nothing but a stock MessagePack library."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"


class Streams(unittest.TestCase):
    def setUp(self):
        manifest = json.loads((EXAMPLES / "streams.json").read_text())
        for key in ("module", "replicas"):
            del manifest[key]
        self.daemon = harness.Daemon(config={"components": [manifest]})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.processes = {name: self.start(name) for name in ("left", "right")}
        while sorted(self.client.request("instances", "media.streams")) != ["left", "right"]:
            pass

    def start(self, name):
        process = subprocess.Popen([sys.executable, str(EXAMPLES / "streams.py"), name], stderr=subprocess.DEVNULL,
                                   env={**os.environ, "TROUPE_SOCKET": self.daemon.socket})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def call(self, operation, value=None, **options):
        return self.client.request("call", "media.streams", operation, value or {}, options)

    def error(self, operation, value, **options):
        with self.assertRaises(harness.Error) as caught:
            self.call(operation, value, **options)
        return caught.exception

    def create_on_both(self):
        """At least one on each: {id: holder}."""
        made = {}
        while set(made.values()) != {"left", "right"}:
            sent = [self.client.start("call", "media.streams", "create", {"title": f"stream {n}"}) for n in range(8)]
            for each in sent:
                stream = self.client.finish(each)
                made[stream["id"]] = stream["instance"]
        return made

    def holders(self):
        return {entity["id"]: entity.get("holder") for entity in self.call("list")}

    def test_as_one_piece(self):
        made = self.create_on_both()
        self.assertEqual(made, self.holders())
        for key, holder in made.items():
            self.assertEqual([1, 2], [self.call("watch", {"id": key}, instance=holder) for _ in range(2)])
            other = {"left": "right", "right": "left"}[holder]
            self.assertEqual(("refused", "NOT_HELD"), (lambda error: (error.code, error.data["error"]))(
                self.error("watch", {"id": key}, instance=other)))
        self.processes["left"].kill()
        while self.client.request("instances", "media.streams") != ["right"]:
            pass
        lost = next(key for key, holder in made.items() if holder == "left")
        self.assertEqual("addressee", self.error("watch", {"id": lost}, instance="left").code)
        while set(self.holders().values()) != {"right"}:
            pass
        self.assertEqual(set(made), set(self.holders()))
        self.assertEqual(1, self.call("watch", {"id": lost}, instance="right"))

    def test_finish(self):
        made = self.create_on_both()
        for key, holder in made.items():
            self.assertIsNone(self.call("finish", id=key))
            self.assertEqual("refused", self.error("watch", {"id": key}, instance=holder).code)
        self.assertEqual({None}, set(self.holders().values()))
        self.assertEqual("NO_SUCH_STREAM", self.error("finish", {}, id="nobody").data["error"])


if __name__ == "__main__":
    unittest.main()
