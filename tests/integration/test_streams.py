# SPDX-License-Identifier: Apache-2.0
"""The example `streams` as one piece: replicas hold streams, one of them dies, and another one opens what that one held."""

import collections
import json
import os
import pathlib
import time
import unittest

import harness

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"
COMPONENT = "media.streams"

# Opens like the example's own, but not while something is published as `closed`.
GATED_SOURCE = """
local troupe = require "troupe"
local function open(id)
  while troupe.find "closed" do
    troupe.await(troupe.sleep(1))
  end
  local frame = 0
  return { next = function() frame = frame + 1 return { id = id, frame = frame } end }
end
return { open = open }
"""
GATE = """
local troupe = require "troupe"
local Gate = troupe.actor "Gate"
"""


def wait_for(condition):
    """What the condition answers, as soon as that is true."""
    deadline = time.monotonic() + harness.TIMEOUT_SECONDS
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("it never came to be")
    return value


class InLua(unittest.TestCase):
    def start(self, files=None, without=()):
        manifest = json.loads((EXAMPLES / "streams.json").read_text())
        for key in without:
            del manifest[key]
        self.daemon = harness.Daemon(path=[EXAMPLES], files=files, config={"components": [manifest]})
        self.addCleanup(lambda: self.daemon.close())
        self.connect()

    def connect(self):
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        wait_for(lambda: len(self.instances()) == 2)

    def call(self, operation, argument=None, **options):
        return self.client.request("call", COMPONENT, operation, argument, options)

    def instances(self):
        return self.client.request("instances", COMPONENT)

    def watch(self, stream, instance):
        return self.call("watch", {"id": stream}, instance=instance)["frame"]

    def outcome(self, operation, argument, **options):
        try:
            return self.call(operation, argument, **options)
        except harness.Error as error:
            return error.data.get("error", error.code)

    def holders(self):
        """The streams, by what `list` says of who holds them."""
        by_holder = collections.defaultdict(set)
        for stream in self.call("list"):
            by_holder[stream.get("holder")].add(stream["id"])
        return by_holder

    def make_streams(self):
        """Some on each replica; answers them by their holders."""
        made = collections.defaultdict(set)
        while len(made) < 2 or min(map(len, made.values())) < 2:
            stream = self.call("create", {"title": f"stream {len(made)}"})
            made[stream["instance"]].add(stream["id"])
        return made

    def handle_of(self, instance):
        return next(entry["handle"] for entry in self.client.request("list", {"kind": "component"})
                    if entry.get("instance") == instance)

    def kill(self, instance):
        """Kills a replica; it has ended when this returns."""
        handle = self.handle_of(instance)
        self.client.request("stop", handle, {"kill": True})
        with self.assertRaises(harness.Error) as raised:
            self.client.request("done", handle)
        self.assertEqual(raised.exception.code, "killed")

    def test_as_one_piece(self):
        self.start(files={"source.lua": GATED_SOURCE, "gate.lua": GATE})
        made = self.make_streams()
        self.assertEqual(self.holders(), made)
        for instance, streams in made.items():
            for stream in streams:
                self.assertEqual([self.watch(stream, instance) for _ in range(3)], [1, 2, 3])
        (gone, lost), (other, kept) = made.items()
        self.assertEqual(self.outcome("watch", {"id": min(lost)}, instance=other), "NOT_HELD")

        # one is killed, and nobody opens anything for now
        self.client.request("spawn", "gate", [], {"publish": "closed"})
        self.kill(gone)
        for stream in lost:
            self.assertEqual(self.outcome("watch", {"id": stream}, instance=gone), "addressee")
        self.assertEqual(self.holders(), made)
        for stream in kept:
            self.assertEqual(self.watch(stream, other), 4)

        # `lost` goes on, and opens them elsewhere
        self.client.request("stop", "closed", {"kill": True})
        wait_for(lambda: gone not in self.holders())
        holders = self.holders()
        self.assertEqual(set().union(*holders.values()), lost | kept)
        self.assertNotIn(gone, self.instances())
        for instance, streams in holders.items():
            self.assertIn(instance, self.instances())
            for stream in streams:
                self.assertEqual(self.watch(stream, instance), 1 if stream in lost else 5)

    def test_a_stream_is_finished_by_whoever_is_free(self):
        self.start(without=["lost"])
        made = self.make_streams()
        (gone, lost), (other, kept) = made.items()
        self.kill(gone)
        for stream in lost | kept:
            for _ in range(2):
                self.assertIsNone(self.call("finish", None, id=stream))
        self.assertEqual(self.holders(), {None: lost | kept})
        self.assertEqual(self.outcome("watch", {"id": min(kept)}, instance=other), "NOT_HELD")
        self.assertEqual(self.outcome("finish", None, id="nobody's"), "NO_SUCH_STREAM")
        titles = [stream["title"] for stream in self.call("list")]
        self.assertEqual(len(titles), len(lost | kept))

    def check_reopened(self, made, gone):
        """Waits until all streams that these have held are held by others; answers nothing, and holds that they can be watched."""
        wait_for(lambda: not set(self.holders()) & set(gone))
        holders = self.holders()
        self.assertEqual(set().union(*holders.values()), set().union(*made.values()))
        for instance, streams in holders.items():
            self.assertIn(instance, self.instances())
            for stream in streams:
                self.assertEqual(self.watch(stream, instance), 1)

    def test_a_daemon_that_is_killed_has_lost_them_all(self):
        self.start()
        made = self.make_streams()
        self.daemon.kill()
        self.client.close()
        self.daemon.start_again()
        self.connect()
        self.check_reopened(made, made)

    def test_what_is_stopped_in_order_hands_over(self):
        self.start()
        made = self.make_streams()
        gone = min(made)
        handle = self.handle_of(gone)
        self.client.request("stop", handle)
        self.client.request("done", handle)
        self.assertEqual(self.outcome("watch", {"id": min(made[gone])}, instance=gone), "addressee")
        self.check_reopened(made, [gone])

    def test_a_daemon_that_is_stopped_hands_over_to_the_next(self):
        self.start()
        made = self.make_streams()
        self.client.close()
        self.daemon.stop()
        self.daemon.start_again()
        self.connect()
        self.check_reopened(made, made)


if __name__ == "__main__":
    unittest.main()
