# SPDX-License-Identifier: Apache-2.0
"""A thousand actors, again and again: what they leave behind, and what they do while nobody asks them for anything."""

import os
import pathlib
import time
import unittest

import harness

MEMBER = """
local troupe = require "troupe"
local Member = troupe.actor "Member"
function Member:init(n) self.n = n end
function Member.on:value() return self.n end
"""

ACTORS = 1000
ROUNDS = 100
# On a machine that is slow, or with a sanitizer, there are fewer rounds; these at least.
SECONDS = 60
ROUNDS_MIN = 5
# What the allocator's arenas may still grow by in the second half of the rounds: 320 bytes for each of 50,000 actors. (What is less
# than that is found by the sanitizer that looks for leaks.)
SLACK_KIB = 16 * 1024
# How long the idle are watched.
IDLE_SECONDS = 2


def private_kib(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def has_sanitizer(pid):
    """Sanitizers keep what was freed for a while."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return "libasan" in maps or "libtsan" in maps


def count(pid, what):
    return len(os.listdir(f"/proc/{pid}/{what}"))


def switches(pid):
    """How often each thread has gone to wait so far, by its id."""
    counts = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        line = next(line for line in status.read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))
        counts[status.parent.name] = int(line.split()[1])
    return counts


class ManyActors(unittest.TestCase):
    def start(self):
        daemon = harness.Daemon(files={"member.lua": MEMBER})
        self.addCleanup(daemon.close)
        client = harness.Client(daemon.socket)
        self.addCleanup(client.close)
        return daemon.pid, client

    def spawn(self, client, how_many):
        started = [client.start("spawn", "member", [n + 1]) for n in range(how_many)]
        return [client.finish(request) for request in started]

    def stop(self, client, members):
        """Stops them, and waits for their ends."""
        ends = [client.start("done", member) for member in members]
        for member in members:
            client.notify("stop", member)
        for end in ends:
            self.assertIsNone(client.finish(end))

    def wait_for(self, client, condition):
        """What the daemon does behind an answer may take a moment; a ping goes through its loop once."""
        deadline = time.monotonic() + harness.TIMEOUT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            client.request("ping")

    def test_a_hundred_add_up(self):
        _, client = self.start()
        members = self.spawn(client, 100)
        asked = [client.start("ask", member, "value", []) for member in members]
        self.assertEqual(sum(client.finish(request) for request in asked), 5050)
        self.stop(client, members)
        self.assertEqual(client.request("list"), [])

    def test_a_thousand_again_and_again_leave_nothing(self):
        pid, client = self.start()
        threads, descriptors, memory = count(pid, "task"), count(pid, "fd"), []
        began = time.monotonic()
        for done in range(ROUNDS):
            if done >= ROUNDS_MIN and time.monotonic() - began > SECONDS:
                break
            self.stop(client, self.spawn(client, ACTORS))
            self.wait_for(client, lambda: count(pid, "task") == threads)
            memory.append(private_kib(pid))
        self.assertEqual(count(pid, "fd"), descriptors)
        self.assertEqual(client.request("list"), [])
        if len(memory) == ROUNDS and not has_sanitizer(pid):
            self.assertLess(memory[-1], memory[ROUNDS // 2] + SLACK_KIB)

    def test_a_thousand_that_are_idle_do_not_wake(self):
        pid, client = self.start()
        if has_sanitizer(pid):
            self.skipTest("a sanitizer has a thread of its own, which wakes")
        self.spawn(client, ACTORS)
        self.wait_for(client, lambda: all(member["state"] == "idle" for member in client.request("list")))
        before = switches(pid)
        # The daemon's own thread runs for each ping, and no other does.
        until = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < until:
            client.request("ping")
        after = switches(pid)
        woken = {thread for thread in after if int(thread) != pid and after[thread] != before[thread]}
        self.assertEqual(woken, set())
        self.assertEqual(len(after), len(before))


if __name__ == "__main__":
    unittest.main()
