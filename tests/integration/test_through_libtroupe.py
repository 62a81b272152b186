# SPDX-License-Identifier: Apache-2.0
"""libtroupe against the real daemon: through_libtroupe.c, and what the daemon has of it when it is over."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
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
    function Counter.async:pass(to)
      troupe.send(to.tick, 1, { two = 2 })
      return troupe.await(troupe.ask(to.add, 20, 22)), troupe.await(troupe.ask(to.later))
    end
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


def output(*command, **options):
    """What a command prints; it must succeed."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=harness.TIMEOUT_SECONDS, **options)
    if done.returncode:
        raise AssertionError(f"{command} exited {done.returncode}: {done.stdout}")
    return done.stdout


class Installed(unittest.TestCase):
    """The library as its users have it: nothing but what `make install` installs."""

    def setUp(self):
        if re.search(r"__[atu]\w*san_", output("nm", "-D", BUILD / "client/.libs/libtroupe.so.0")):
            self.skipTest("a library with a sanitizer needs programs with one")
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        targets = "install-libLTLIBRARIES", "install-includeHEADERS", "install-pkgconfigDATA"
        # what an outer make says of itself is not for this one
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        output("make", "-C", BUILD, *targets, f"DESTDIR={self.root}", env=environment)
        self.pkgconfig = next(self.root.rglob("troupe.pc")).parent

    def build(self, name, text):
        """A program of the text of its source."""
        flags = output("pkg-config", "--cflags", "--libs", "troupe",
                       env={**os.environ, "PKG_CONFIG_LIBDIR": str(self.pkgconfig), "PKG_CONFIG_PATH": "",
                            "PKG_CONFIG_SYSROOT_DIR": str(self.root)})
        source = self.root / f"{name}.c"
        source.write_text(text)
        output("cc", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", self.root / name, *flags.split())
        return self.root / name

    def run_program(self, program, daemon, **options):
        return output(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.pkgconfig.parent), "TROUPE_SOCKET": daemon.socket}, **options)

    def test_the_example_of_the_manual(self):
        example = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", (SOURCE / "man/libtroupe.3").read_text(), re.DOTALL | re.MULTILINE)[1]
        program = self.build("manual", example.replace("\\e", "\\"))
        with harness.Daemon(path=[SOURCE / "examples"]) as daemon:
            self.assertEqual(self.run_program(program, daemon), "2\n")
        with harness.Daemon() as daemon, self.assertRaisesRegex(AssertionError, "exited 1: not-found: "):
            self.run_program(program, daemon)

    def test_an_example(self):
        program = self.build("words", (SOURCE / "examples/words.c").read_text())
        with harness.Daemon(path=[SOURCE / "examples"]) as daemon:
            self.assertEqual(self.run_program(program, daemon, input="one two\ntwo\n"), "two 2\none 1\n")


if __name__ == "__main__":
    unittest.main()
