# SPDX-License-Identifier: Apache-2.0
"""MessagePack-RPC clients that nobody here wrote, and the conversations that each of them has with the daemon.

A client's library is driven by a small program in its own language (a *driver*, beside this file) that knows nothing of Troupe. Its
arguments are the socket and what the driver says; its standard input is lines, each the hexadecimal digits of one MessagePack array, and
it answers each with one such line:

    ["request", METHOD, PARAMS]   what the library made of the answer: ["result", VALUE] or ["error", VALUE]
    ["notify", METHOD, PARAMS]    ["sent"], once the library has been told to send it
    ["next"]                      what the daemon sends next, unasked: ["notification", METHOD, PARAMS], or ["request", METHOD, PARAMS],
                                  which the driver answers with PARAMS

A test file has a driver and says what its library cannot (integers beyond a float's, a difference between text and bytes); what all
of them must do is in Conversations, and in Called what those do that can be called.
"""

import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import unittest

import msgpack

import harness

# Where Debian has Go's packages.
GOPATH = "/usr/share/gocode"

# What packages of npm need in turn is of the newest versions of that day.
NPM_BEFORE = "2026-11-01"

HERE = pathlib.Path(__file__).resolve().parent

MODULES = {
    "counter.lua": """
local troupe = require "troupe"
local Counter = troupe.actor "Counter"
function Counter:init(n) self.n = n or 0 end
function Counter.on:bump(by) self.n = self.n + (by or 1) end
function Counter.on:total() return self.n end
""",
    "mirror.lua": """
local troupe = require "troupe"
local Point = troupe.class "Point"
function Point:init(x, y) self.x, self.y = x, y end
local Mirror = troupe.actor "Mirror"
function Mirror.on:same(v) return v end
function Mirror.on:kind(v) return math.type(v) or type(v) end
function Mirror.on:bytes()
  local all = {}
  for i = 0, 255 do all[i + 1] = string.char(i) end
  return troupe.bytes(table.concat(all))
end
function Mirror.on:power(n) return 1 << n end
function Mirror.on:text(n) return string.rep("x", n) end
function Mirror.on:length(v) return #v end
function Mirror.on:fail(why) error(why, 0) end
function Mirror.on:unusual()
  return { me = troupe.me(), total = troupe.me().power, point = Point.new(1, 2), numbers = { [10] = "ten" } }
end
function Mirror.async:asks(whom, what, ...)
  local client = troupe.handle(whom)
  troupe.send(client.answered, troupe.await(troupe.ask(client[what], ...)))
end
""",
}


class Process:
    """A running client. What it does not answer in time ends it, and fails the test with what it said on its standard error."""

    def __init__(self, command, environment=None):
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
                                        bufsize=0, env={**os.environ, **(environment or {})})

    def fail(self, what):
        self.process.kill()
        self.process.wait()
        self.stderr.seek(0)
        raise AssertionError(f"the client {what}: {self.stderr.read().decode(errors='replace')}")

    def write(self, data):
        try:
            while data:
                data = data[self.process.stdin.write(data):]
        except BrokenPipeError:
            self.fail("ended")

    def read(self):
        if not select.select([self.process.stdout], [], [], harness.TIMEOUT_SECONDS)[0]:
            self.fail("hangs")
        data = self.process.stdout.read(1 << 20)
        if not data:
            self.fail("ended")
        return data

    def close(self):
        """Ends its input, and holds that it ends well (where it has not failed already)."""
        self.process.stdin.close()
        try:
            if self.process.returncode is None and self.process.wait(harness.TIMEOUT_SECONDS):
                self.fail(f"exited with {self.process.returncode}")
        except subprocess.TimeoutExpired:
            self.fail("does not end")
        finally:
            self.process.stdout.close()
            self.stderr.close()


class Driver(Process):
    """A running driver."""

    def __init__(self, command, environment=None):
        super().__init__(command, environment)
        self.said = b""

    def do(self, *command):
        self.write(msgpack.packb(command).hex().encode() + b"\n")
        while b"\n" not in self.said:
            self.said += self.read()
        line, _, self.said = self.said.partition(b"\n")
        return msgpack.unpackb(bytes.fromhex(line.decode()), strict_map_key=False, unicode_errors="surrogateescape")


class Refused(Exception):
    """The library says that the request failed; `error` is what it has of that."""

    def __init__(self, error):
        self.error = error
        super().__init__(repr(error))


def raw(value):
    """The bytes of what a client gave back for bytes, where it has no difference between them and text."""
    return value if isinstance(value, bytes) else value.encode(errors="surrogateescape")


def need(*programs):
    """Skips the test where one of the programs is not installed."""
    for program in programs:
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed")


def need_success(why, *command, **options):
    """Skips the test where a command fails or does not end: what it needs is not installed."""
    try:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=harness.TIMEOUT_SECONDS, **options)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest(f"{why}: {command[0]} does not end") from None
    if done.returncode:
        said = " ".join(done.stdout.decode(errors="replace").split())
        raise unittest.SkipTest(f"{why}: {said[:300]}" if said else why)


def npm(case, *packages):
    """Installs packages (NAME@VERSION) of npm for the tests of a class; answers the environment in which node finds them."""
    need("node", "npm")
    folder = tempfile.mkdtemp(prefix="troupe-test-")
    case.addClassCleanup(shutil.rmtree, folder)
    need_success(f"npm cannot install {' '.join(packages)}", "npm", "install", "--prefix", folder, "--cache", f"{folder}/cache",
                 "--before", NPM_BEFORE, "--ignore-scripts", "--loglevel", "error", "--no-audit", "--no-fund", "--no-update-notifier",
                 "--fetch-timeout", 20_000, "--fetch-retries", 1, *packages)
    return {"NODE_PATH": f"{folder}/node_modules"}


def go_program(case, source, package, *sources):
    """Builds a program (of more than one source perhaps) that needs a package of Debian's, for the tests of a class; answers where it is."""
    need("go")
    if not pathlib.Path(GOPATH, "src", package).is_dir():
        raise unittest.SkipTest(f"the Go package {package} is not installed")
    folder = tempfile.mkdtemp(prefix="troupe-test-")
    case.addClassCleanup(shutil.rmtree, folder)
    program = f"{folder}/{pathlib.Path(source).stem}"
    subprocess.run(["go", "build", "-o", program, source, *sources], check=True, stdin=subprocess.DEVNULL, timeout=harness.TIMEOUT_SECONDS,
                   env={**os.environ, "GOPATH": GOPATH, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": f"{folder}/cache"})
    return program


class Conversations:
    """What every client must be able to do, as a mixin for a TestCase."""

    # What the library can carry.
    smallest, largest = -2**63, 2**63 - 1
    packs_as_others = ()    # integers between those that it sends as others
    bytes_are_text = False

    @classmethod
    def command(cls, socket):
        """The driver's command line."""
        raise NotImplementedError

    environment = {}

    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config={"shutdown": {"grace": "200ms"}})
        self.addCleanup(self.daemon.close)
        self.connect()

    def connect(self):
        self.client = Driver(self.command(self.daemon.socket), self.environment)
        self.addCleanup(self.client.close)

    def request(self, method, *params):
        outcome, value = self.client.do("request", method, params)
        if outcome == "error":
            raise Refused(value)
        self.assertEqual(outcome, "result")
        return value

    def notify(self, method, *params):
        self.assertEqual(self.client.do("notify", method, params), ["sent"])

    def chosen(self, name):
        """The options that let the daemon call the client by a name."""
        return {"method": name}

    def expect(self, kind, name):
        """The params of what the daemon sends next, unasked, which must be this kind by this name."""
        *what, params = self.client.do("next")
        self.assertEqual(what, [kind, name])
        return params

    def refusal(self, *request):
        """The text of the error that a request is answered with."""
        with self.assertRaises(Refused) as refused:
            self.request(*request)
        return self.text_of(refused.exception.error)

    def text_of(self, error):
        """The text in what the library has of an error; most hand on the pair as it came."""
        kind, text = error
        self.assertIn(kind, (0, 1))
        return text

    def test_spawn_send_ask(self):
        counter = self.request("spawn", "counter", [])
        self.assertRegex(counter, "^actor:[0-9a-f]{32}$")
        self.assertIsNone(self.request("send", counter, "bump", [2]))
        self.assertIsNone(self.request("send", counter, "bump", []))
        self.assertEqual(self.request("ask", counter, "total", []), 3)
        self.assertIsNone(self.request("publish", "visitors", counter))
        self.notify("send", "visitors", "bump", [39])
        self.assertEqual(self.request("ask", "visitors", "total", []), 42)

    def test_what_the_daemon_says_of_itself(self):
        self.assertEqual(self.request("ping"), "pong")
        self.assertEqual(self.request("hello", {})["protocol"], 1)
        counter = self.request("spawn", "counter", [0], {"name": "the counter", "heap": "1M"})
        self.assertEqual([actor["handle"] for actor in self.request("list")], [counter])
        info = self.request("info", counter)
        self.assertEqual((info["name"], info["heap_max"]), ("the counter", 1 << 20))

    def test_refusals(self):
        counter = self.request("spawn", "counter", [])
        self.assertRegex(self.refusal("ask", counter, "totel", []), r"^no-such-handler: .*totel.*\(ran: no\)$")
        self.assertRegex(self.refusal("spawn", "nowhere", []), r"^not-found: .*nowhere.*\(ran: no\)$")
        self.assertRegex(self.refusal("frobnicate"), r"^unknown-method: .*frobnicate.*\(ran: no\)$")
        self.assertRegex(self.refusal("ask", counter, "total", [], {"timeout": -1}), r"^bad-request: .*timeout.*\(ran: no\)$")
        self.notify("frobnicate", 1)
        self.notify("send", "nobody", "bump", [])
        self.assertEqual(self.request("ask", counter, "total", []), 0)

    def test_a_fault(self):
        mirror = self.request("spawn", "mirror", [])
        self.assertEqual(self.refusal("ask", mirror, "fail", ["it broke"]), "fault: it broke (ran: yes)")
        self.assertRegex(self.refusal("ask", mirror, "same", [1]), r"^not-running: .*\(ran: no\)$")

    def test_bytes(self):
        mirror, everything = self.request("spawn", "mirror", []), bytes(range(256))
        self.assertEqual(raw(self.request("ask", mirror, "bytes", [])), everything)
        self.assertEqual(self.request("ask", mirror, "length", [everything]), 256)
        self.assertEqual(raw(self.request("ask", mirror, "same", [everything])), everything)
        self.assertEqual(self.request("ask", mirror, "kind", [everything]), "string" if self.bytes_are_text else "userdata")

    def test_large_integers(self):
        mirror = self.request("spawn", "mirror", [])
        for power in (31, 32, 52, 62):
            if 2**power <= self.largest:
                self.assertEqual(self.request("ask", mirror, "power", [power]), 2**power)
        for number in {x for bits in (7, 8, 15, 16, 31, 32, 53, 63) for x in (2**bits - 1, 2**bits, -2**bits, -2**bits - 1)}:
            if self.smallest <= number <= self.largest and number not in self.packs_as_others:
                with self.subTest(number=number):
                    self.assertEqual(self.request("ask", mirror, "kind", [number]), "integer")
                    self.assertEqual(self.request("ask", mirror, "same", [number]), number)

    def test_values(self):
        mirror = self.request("spawn", "mirror", [])
        for value in (None, True, False, 0.5, -1e300, "", "žluťoučký kůň", "x" * 70_000, [1, [2, [3]]], list(range(100)),
                      {"a": {"b": [1, 2, {"c": "d"}]}}):
            with self.subTest(value=str(value)[:40]):
                self.assertEqual(self.request("ask", mirror, "same", [value]), value)
        self.assertEqual(len(self.request("ask", mirror, "text", [1 << 20])), 1 << 20)

    def test_what_stock_clients_have_no_type_for_is_plain(self):
        mirror = self.request("spawn", "mirror", [])
        self.assertEqual(self.request("ask", mirror, "unusual", []), {
            "me": mirror, "total": [mirror, "power"], "point": {"x": 1, "y": 2}, "numbers": {"10": "ten"}})


class Called:
    """What a client that can be called must be able to do besides, as a mixin for one with Conversations."""

    def test_an_outcome_that_comes_later(self):
        mirror = self.request("spawn", "mirror", [])
        self.assertIsNone(self.request("ask", mirror, "same", ["yes"], {"reply": self.chosen("Outcome")}))
        self.assertEqual(self.expect("notification", "Outcome"), [None, "yes"])
        self.assertIsNone(self.request("ask", mirror, "fail", ["no"], {"reply": self.chosen("Outcome")}))
        error, result = self.expect("notification", "Outcome")
        self.assertRegex(error[1], r"^fault: no \(ran: yes\)$")
        self.assertIsNone(result)

    def test_asked_by_an_actor(self):
        handle = self.request("listen", self.chosen("Message"))
        self.assertRegex(handle, "^actor:[0-9a-f]{32}$")
        mirror = self.request("spawn", "mirror", [])
        question = ["question", 1, 2.5, "three", [4], {"five": 5}]
        self.request("send", mirror, "asks", [handle, *question])
        self.assertEqual(self.expect("request", "Message"), question)
        # The client answered with what it was asked.
        self.assertEqual(self.expect("notification", "Message"), ["answered", question])

    def test_a_subscription(self):
        # What was sent is taken before the next request: ruby-neovim's session makes none while something waits to be taken.
        self.assertIsNone(self.request("subscribe", "lifecycle", self.chosen("Event")))
        counter = self.request("spawn", "counter", [])
        self.expect_event("started", counter)
        self.assertIsNone(self.request("stop", counter))
        self.expect_event("stopped", counter)
        self.assertIsNone(self.request("unsubscribe", "lifecycle"))

    def expect_event(self, what, counter):
        topic, event = self.expect("notification", "Event")
        self.assertEqual((topic, event["event"], event["actor"]), ("lifecycle", what, "counter:Counter"))
        # Events show as much of a handle as is no key to it.
        self.assertEqual(event["handle"], counter.removeprefix("actor:")[:8])
