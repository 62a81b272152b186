# SPDX-License-Identifier: Apache-2.0
"""Values between sockets and actors, and on to other actors: what arrives, what comes back, and what is refused."""

import math
import struct
import unittest

import msgpack

import harness

MODULES = {
    "shape.lua": """
local troupe = require "troupe"
local Point = troupe.class "Point"
function Point:init(x, y) self.x, self.y = x, y end
function Point:sum() return self.x + self.y end
return Point
""",
    # It has not loaded the class.
    "echo.lua": """
local troupe = require "troupe"
local Echo = troupe.actor "Echo"
function Echo.on:same(v) return v end
function Echo.on:kind(v) return math.type(v) or type(v) end
function Echo.on:size(v) return #v end
function Echo.on:cycle() local t = { list = { {} } } t.list[1].up = t return t end
function Echo.on:shared() local t = { 1 } return { t, t } end
function Echo.on:bad() return { handlers = { onDone = print } } end
function Echo.on:bytes(n) self.kept = troupe.bytes(n) return troupe.transfer(self.kept) end
function Echo.on:kept() return #self.kept end
""",
    # It has, and passes on what it gets.
    "passer.lua": """
local troupe = require "troupe"
local Point = require "shape"
local Passer = troupe.actor "Passer"
function Passer:init() self.echo = troupe.spawn "echo" end
function Passer.on:copied(v) return troupe.ask(self.echo.same, v) end
function Passer.on:emptied(b)
  local asked = troupe.ask(self.echo.same, troupe.transfer(b))
  if #b > 0 then error "it was not handed over" end
  return asked
end
function Passer.on:sum(p) return troupe.is(p, Point) and p:sum() end
function Passer.on:point(x, y) return Point.new(x, y) end
""",
}
SIZES = (0, 1, 255, 256, 65_536, 1_048_576)
POINT = msgpack.ExtType(3, msgpack.packb(["shape:Point", {"x": 1, "y": 2}]))


def instance(value):
    """Its class and its fields."""
    assert value.code == 3
    return msgpack.unpackb(value.data)


class Values(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES)
        self.addCleanup(self.daemon.close)
        self.client = self.connect(values="typed")
        self.echo = self.client.request("spawn", "echo", [])
        self.passer = self.client.request("spawn", "passer", [])

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def ask(self, target, handler, *arguments):
        return self.client.request("ask", target, handler, list(arguments))

    def refusal(self, target, handler, *arguments):
        with self.assertRaises(harness.Error) as refused:
            self.ask(target, handler, *arguments)
        error = refused.exception
        return error.code, error.ran, error.message

    def test_bytes_come_back_byte_for_byte(self):
        for size in SIZES:
            sent = bytes(i * 7 & 255 for i in range(size))
            with self.subTest(size):
                self.assertEqual(self.ask(self.echo, "size", sent), size)
                self.assertEqual(self.ask(self.echo, "same", sent), sent)
                self.assertEqual(self.ask(self.passer, "copied", sent), sent)
                self.assertEqual(self.ask(self.passer, "emptied", sent), sent)
                self.assertEqual(self.ask(self.passer, "copied", [sent, sent]), [sent, sent])

    def test_what_is_transferred_to_a_peer_is_a_copy_and_gone(self):
        self.assertEqual(self.ask(self.echo, "bytes", 1000), bytes(1000))
        self.assertEqual(self.ask(self.echo, "kept"), 0)

    def test_numbers_are_what_they_were(self):
        for target, handler in ((self.echo, "same"), (self.passer, "copied")):
            for number in (0, 1, -1, 127, 128, 2**31, 2**53 + 1, 2**63 - 1, -2**63):
                self.assertIs(type(self.ask(target, handler, number)), int)
                self.assertEqual(self.ask(target, handler, number), number)
            for number in (0.0, -0.0, 1.0, 0.1, 2.0**53, 5e-324, math.inf, -math.inf, math.nan):
                back = self.ask(target, handler, number)
                self.assertIs(type(back), float)
                self.assertEqual(struct.pack("d", back), struct.pack("d", number))
        self.assertEqual(self.ask(self.echo, "kind", 1), "integer")
        self.assertEqual(self.ask(self.echo, "kind", 1.0), "float")

    def test_containers_are_what_they_were(self):
        for value in ([], {}, [[]], [{}], {"a": []}, [None, 1], {"a": None}, {1: "a"}, {1: "a", 2: "b"}, {1.5: 1, True: 2},
                      [1, [2, {"x": [3]}]], None, True, "", "gr\u00fcn"):
            with self.subTest(value):
                self.assertEqual(self.ask(self.echo, "same", value), value)
                self.assertEqual(self.ask(self.passer, "copied", value), value)

    def test_instances(self):
        self.assertEqual(self.ask(self.passer, "sum", POINT), 3)
        self.assertEqual(instance(self.ask(self.passer, "point", 1, 2)), instance(POINT))
        plain = self.connect()
        self.assertEqual(plain.request("ask", self.passer, "point", [1, 2]), {"x": 1, "y": 2})

    def test_no_peer_makes_an_actor_load_code(self):
        self.assertEqual(self.refusal(self.echo, "same", {"deep": [POINT]}),
                         ("not-sendable", "no", "`deep[1]` is an instance of shape:Point, a class that is not loaded here"))
        missing = msgpack.ExtType(3, msgpack.packb(["nowhere:Point", {}]))
        self.assertEqual(self.refusal(self.passer, "same", missing)[:2], ("no-such-handler", "no"))
        self.assertEqual(self.refusal(self.passer, "sum", missing)[:2], ("not-sendable", "no"))
        # another actor does
        self.assertEqual(instance(self.ask(self.passer, "copied", POINT)), instance(POINT))

    def test_what_cannot_go_to_a_peer_is_refused_by_name(self):
        self.assertEqual(self.refusal(self.echo, "cycle"),
                         ("not-sendable", "yes", "a message may not carry a cycle: `list[1].up` is a cycle"))
        self.assertEqual(self.refusal(self.echo, "bad"),
                         ("not-sendable", "yes", "a message may not carry a function: `handlers.onDone` is a function"))
        self.assertEqual(self.ask(self.echo, "shared"), [[1], [1]])

    def test_what_does_not_fit_is_refused_and_the_actor_lives(self):
        small = self.client.request("spawn", "echo", [], {"heap": "1M"})
        self.assertEqual(self.refusal(small, "size", bytes(2 << 20))[:2], ("too-large", "no"))
        self.assertEqual(self.ask(small, "size", bytes(1 << 10)), 1 << 10)


if __name__ == "__main__":
    unittest.main()
