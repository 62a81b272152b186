# SPDX-License-Identifier: Apache-2.0
"""Tasks of components in Lua: asked for by actors and replicas, and run when the daemon that took them has long ended."""

import time
import unittest

import harness

# `work` notes that it has run, under the task's id.
MODULE = """
local troupe = require "troupe"
local ops = {}
function ops.work(input, context)
  if input.fail == context.attempt then error("it broke", 0) end
  if input.next then troupe.await(context.task("works", "work", input.next)) end
  troupe.await(context.entities:put(context.task_id, { attempt = context.attempt, name = input.name, trace = context.trace:sub(4, 35) }))
end
function ops.done(input, entities) return entities end
return { operations = ops }
"""
ASKER = """
local troupe = require "troupe"
local Asker = troupe.actor "Asker"
function Asker.async:task(...) return troupe.await(troupe.task("works", "work", ...)) end
function Asker.async:delay(ms, ...) return troupe.await(troupe.delay(ms, "works", "work", ...)) end
"""
MANIFEST = {"name": "works", "module": "works", "concurrency": 4,
            "operations": {"work": {"input": {"type": "object"}}, "done": {"type": "observation", "scope": "entries"}}}


class Tasks(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files={"works.lua": MODULE, "asker.lua": ASKER}, config={"components": [MANIFEST]})
        self.addCleanup(lambda: self.daemon.close())
        self.connect()

    def connect(self):
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.asker = self.client.request("spawn", "asker", [])

    def ask(self, handler, *arguments):
        return self.client.request("ask", self.asker, handler, list(arguments))

    def start_again(self, end):
        self.client.close()
        getattr(self.daemon, end)()
        self.daemon.start_again()
        self.connect()

    def done(self, count):
        """What has been noted, by name, when there are that many."""
        deadline = time.monotonic() + harness.TIMEOUT_SECONDS
        while len(noted := self.client.request("call", "works", "done", None)) < count:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(len(noted), count)
        return {entity["name"]: entity for entity in noted}

    def test_one_asks_for_the_next(self):
        trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
        first = self.ask("task", {"name": "a", "next": {"name": "b", "next": {"name": "c"}}}, {"trace": trace})
        noted = self.done(3)
        self.assertEqual(noted["a"]["id"], first)
        self.assertEqual({entity["trace"] for entity in noted.values()}, {trace[3:35]})

    def test_one_that_raises_is_run_again(self):
        self.ask("task", {"name": "a", "fail": 1})
        self.assertEqual(self.done(1)["a"]["attempt"], 2)

    def test_what_is_due_later_outlives_the_daemon(self):
        for end in ("kill", "stop"):
            with self.subTest(end=end):
                soon = int(time.time() * 1000) + 1500
                late = self.ask("task", {"name": f"{end} at"}, {"at": soon, "key": end})
                self.assertEqual(self.ask("task", {"name": "never"}, {"at": soon, "key": end}), late)
                self.ask("delay", 1500, {"name": f"{end} delay"})
                self.start_again(end)
        noted = self.done(4)
        self.assertEqual(set(noted), {"kill at", "kill delay", "stop at", "stop delay"})
        self.assertEqual({entity["attempt"] for entity in noted.values()}, {1})


if __name__ == "__main__":
    unittest.main()
