# SPDX-License-Identifier: Apache-2.0
"""libtroupe against the real daemon: through_libtroupe.c, and what the daemon has of it when it is over."""

import os
import pathlib
import subprocess
import unittest

import harness

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
PROGRAM = BUILD / "tests/integration/through_libtroupe"

COUNTER = """
    local troupe = require "troupe"
    local Counter = troupe.actor "Counter"
    function Counter:init(n) self.n = n or 0 end
    function Counter.on:bump(by) self.n = self.n + by end
    function Counter.on:next() self.n = self.n + 1 return self.n end
    function Counter.on:total() return self.n end
    function Counter.on:echo(x) return x end
    function Counter.on:fail(x) error(x, 0) end
    function Counter.async:nap() troupe.await(troupe.sleep(100)) end
    function Counter.async:wait() troupe.await(troupe.sleep(3600000)) end
"""


class ThroughLibtroupe(unittest.TestCase):
    def test_a_program(self):
        with harness.Daemon(files={"counter.lua": COUNTER}, config={"shutdown": {"grace": "200ms"}}) as daemon:
            done = subprocess.run([PROGRAM, daemon.socket], stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with harness.Client(daemon.socket) as client:
                self.assertEqual(client.request("list"), [])

    def test_building_a_program_needs_nothing_else(self):
        """Not the development files of what the library itself is built of."""
        done = subprocess.run(["pkg-config", "--cflags", "--libs", "troupe"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PKG_CONFIG_LIBDIR": str(BUILD / "client"), "PKG_CONFIG_PATH": ""})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\A(-[IL]\S+ )*-ltroupe\s*\Z")


if __name__ == "__main__":
    unittest.main()
