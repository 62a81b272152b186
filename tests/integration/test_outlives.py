# SPDX-License-Identifier: Apache-2.0
"""A program of libtroupe that outlives its daemon: outlives.c, through a daemon that is killed and another one in its place."""

import os
import pathlib
import subprocess
import unittest

import harness

PROGRAM = pathlib.Path(os.environ["TROUPE_BUILD"]) / "tests/integration/outlives"

COUNTER = """
    local troupe = require "troupe"
    local Counter = troupe.actor "Counter"
    function Counter:init(n) self.n = n end
    function Counter.on:total() return self.n end
    function Counter.async:wait() troupe.await(troupe.sleep(3600000)) end
"""


class Outlives(unittest.TestCase):
    def test_what_is_known_of_each_request(self):
        with harness.Daemon(files={"counter.lua": COUNTER}) as daemon:
            program = subprocess.Popen([PROGRAM, daemon.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            self.addCleanup(program.kill)
            self.assertEqual(program.stdout.readline(), "ready\n")
            daemon.kill()
            program.stdin.write("dead\n")
            program.stdin.flush()
            self.assertEqual([program.stdout.readline() for _ in range(3)],
                             ["begun: disconnected, ran: maybe\n", "queued: disconnected, ran: no\n", "LOST\n"])
            daemon.start_again()
            self.assertEqual(program.communicate(timeout=harness.TIMEOUT_SECONDS), ("RESTORED\n", ""))
            self.assertEqual(program.returncode, 0)


if __name__ == "__main__":
    unittest.main()
