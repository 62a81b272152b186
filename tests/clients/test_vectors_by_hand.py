# SPDX-License-Identifier: Apache-2.0
"""The values of proto/vectors through the clients in examples/, and through libtroupe.

Each client's own file is loaded by a driver in its language (vectors.*, beside this file): the client does what it always does, and then
its function `request` is used for what the driver reads, a line each:

    TARGET HANDLER HEX      asks with one argument, the value that its MessagePack library reads out of these bytes; prints what that
                            library makes of the answer

So a value is *sent*, and comes back as it was, or is *received*, where another client has put it there. What a library cannot carry is
said here, with why, and is held to be so: a driver then ends, or prints something else. Values are compared as a plain connection has
them, where nothing else is said.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import msgpack

import harness
import stock
import vector_files

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
EXAMPLES = SOURCE / "examples"
HERE = SOURCE / "tests" / "clients"

MODULES = {
    "keeper.lua": """
local troupe = require "troupe"
require "shapes"
require "a"
require "g"
require "m.sub"
local Keeper = troupe.actor "Keeper"
Keeper.fields = { "kept" }
Keeper.defaults = { kept = {} }
function Keeper.on:put(i, v) self.kept[i] = { v } end
function Keeper.on:get(i) return self.kept[i][1] end
function Keeper.on:same(v) return v end
""",
    "shapes.lua": """
local troupe = require "troupe"
troupe.class "Point"
troupe.class "Empty"
""",
    "a.lua": """
local troupe = require "troupe"
troupe.class "B"
""",
    "g.lua": """
local troupe = require "troupe"
troupe.class "Line"
troupe.class "Point"
""",
}
M_SUB = """
local troupe = require "troupe"
troupe.class "C"
"""

CASES = vector_files.load("values.json")


def because(reason, *names):
    return dict.fromkeys(names, reason)


def extensions(reason):
    """The cases with a value of an extension type."""
    texts = {case["name"]: json.dumps(case["value"]) for case in CASES}
    return because(reason, *(name for name, text in texts.items()
                             if any(f'"{kind}"' in text for kind in ("$handle", "$message", "$instance", "$timestamp"))))


class Driver(stock.Process):
    """A running driver, whose client has counted to 3."""

    def __init__(self, command, environment):
        super().__init__(command, environment)
        self.said = b""
        if self.line() != "3":
            self.fail("did not count")

    def line(self):
        while b"\n" not in self.said:
            self.said += self.read()
        line, _, self.said = self.said.partition(b"\n")
        return line.decode()

    def ask(self, target, handler, argument):
        self.write(f"{target} {handler} {argument.hex()}\n".encode())
        return bytes.fromhex(self.line())


def one_kind_of_string(value):
    if isinstance(value, tuple) and value[0] == "str":
        return ("bytes", value[1].encode(errors="surrogateescape"))
    return type(value)(map(one_kind_of_string, value)) if isinstance(value, (tuple, list)) else value


class Vectors:
    """What is done with each, as a mixin for a TestCase with `command`."""

    environment = {}
    # Names of cases, and why the library cannot carry such a value.
    not_sent = {}
    not_received = {}
    # The language has one kind of string for both: which it was is not looked at.
    text_is_bytes = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="troupe-test-")
        self.addCleanup(folder.cleanup)
        modules = pathlib.Path(folder.name)
        (modules / "m").mkdir()
        (modules / "m" / "sub.lua").write_text(M_SUB)
        self.daemon = harness.Daemon(path=[EXAMPLES, modules], files=MODULES)
        self.addCleanup(self.daemon.close)
        self.owner = harness.Client(self.daemon.socket)
        self.addCleanup(self.owner.close)
        self.owner.request("spawn", "keeper", [], {"publish": "keeper"})
        self.driver = None
        self.addCleanup(self.end)

    def end(self):
        if self.driver:
            self.driver.close()
        self.driver = None

    def ask(self, handler, argument):
        """What the client makes of the answer; None where it cannot do that, and has ended."""
        if not self.driver:
            self.driver = Driver(self.command, {**self.environment, "TROUPE_SOCKET": self.daemon.socket})
        try:
            return self.driver.ask("keeper", handler, argument)
        except AssertionError:
            self.driver.process.stdout.close()
            self.driver.process.stdin.close()
            self.driver.stderr.close()
            self.driver = None
            return None

    def wanted(self, case):
        """The value as the client is to have it."""
        return vector_files.meant(case.get("plain", case["value"]))

    def comparable(self, value):
        result = vector_files.comparable(value)
        return one_kind_of_string(result) if self.text_is_bytes else result

    def all(self, ask, reasons):
        self.assertLessEqual(set(reasons), {case["name"] for case in CASES})
        for i, case in enumerate(CASES):
            with self.subTest(case["name"]):
                answer = ask(i, vector_files.data_of(case["hex"]))
                got = None if answer is None else self.comparable(vector_files.unpack(answer))
                wanted = self.comparable(self.wanted(case))
                if case["name"] in reasons:
                    self.assertNotEqual(got, wanted, f"it can carry this, though {reasons[case['name']]}")
                else:
                    self.assertEqual(got, wanted)

    def test_values_that_it_sends(self):
        self.all(lambda i, data: self.ask("same", data), self.not_sent)

    def test_values_that_it_receives(self):
        def ask(i, data):
            self.owner.send(b"\x94\x00\x01\xa3ask\x93\xa6keeper\xa3put\x92" + msgpack.packb(i) + data)
            self.assertEqual(self.owner.receive(), [1, 1, None, None])
            return self.ask("get", msgpack.packb(i))

        self.all(ask, self.not_received)


class Python(Vectors, unittest.TestCase):
    command = [sys.executable, HERE / "vectors.py", EXAMPLES / "client.py"]
    not_sent = {
        **because("it reads text strictly", "a str that is no UTF-8: goes out as bin", "a str with a surrogate: goes out as bin"),
        **because("it reads maps whose keys are text or bytes only, unless told otherwise", "integer keys", "float keys", "boolean keys"),
    }


class Ruby(Vectors, unittest.TestCase):
    command = ["ruby", HERE / "vectors.rb", EXAMPLES / "client.rb"]
    not_sent = extensions("it refuses to read extension types that are not registered with it")

    @classmethod
    def setUpClass(cls):
        stock.need("ruby")
        stock.need_success("ruby-msgpack is not installed", "ruby", "-e", "require 'msgpack'")


class Node(Vectors, unittest.TestCase):
    command = ["node", HERE / "vectors.js", EXAMPLES / "client.js"]
    not_received = {
        **because("a number is a float", "2^63-1, the largest integer", "-2^63, the smallest integer",
                  "an integral float stays a float", "negative zero", "an array"),
        **because("it reads maps whose keys are text or numbers only", "a key of bytes that are no UTF-8"),
    }
    not_sent = {
        **not_received,
        **because("a number is a float, and infinity has another name", "integer keys", "float keys"),
        **because("it reads maps whose keys are text or numbers only", "boolean keys", "a key of bytes"),
        **because("what is no UTF-8 is replaced in text", "a str that is no UTF-8: goes out as bin"),
        **because("a Date has milliseconds", "a timestamp with nanoseconds"),
    }

    @classmethod
    def setUpClass(cls):
        cls.environment = stock.npm(cls, "@msgpack/msgpack@3.1.2")


class Go(Vectors, unittest.TestCase):
    not_sent = not_received = because("it makes text of a key of bytes", "a key of bytes that are no UTF-8")

    @classmethod
    def setUpClass(cls):
        """Its function is inside of main(), which goes on with the driver."""
        folder = tempfile.mkdtemp(prefix="troupe-test-")
        cls.addClassCleanup(shutil.rmtree, folder)
        client = (EXAMPLES / "client.go").read_text().rstrip()
        if not client.endswith("\n}"):
            raise AssertionError("client.go does not end with main()")
        longer = pathlib.Path(folder) / "client.go"
        longer.write_text(client.removesuffix("}") + "\tvectors(request)\n}\n")
        cls.command = [stock.go_program(cls, longer, "github.com/ugorji/go/codec", shutil.copy(HERE / "vectors.go", folder))]


class Perl(Vectors, unittest.TestCase):
    text_is_bytes = True
    not_sent = {**extensions("it reads no extension types"), **because("infinity has another name", "float keys")}
    not_received = because("Data::MessagePack::Stream makes undef of an empty text", "an empty string")
    command = ["perl", HERE / "vectors.pl", EXAMPLES / "client.pl"]

    @classmethod
    def setUpClass(cls):
        stock.need("perl")
        stock.need_success("libdata-messagepack-stream-perl is not installed",
                           "perl", "-MData::MessagePack", "-MData::MessagePack::Stream", "-e", "1")


class Php(Vectors, unittest.TestCase):
    text_is_bytes = True
    not_received = {
        **because("a key that looks like an integer is one", "integer keys", "float keys", "an instance with an integer key"),
        **because("it makes an object of an empty map, and a map of one pair of that", "an empty map", "an instance without fields",
                  "an instance whose fields are an empty array"),
    }
    not_sent = {
        **not_received,
        **extensions("it makes null of extension types"),
        **because("a key that is no text is an integer", "boolean keys"),
    }
    command = ["php", HERE / "vectors.php", EXAMPLES / "client.php"]

    @classmethod
    def setUpClass(cls):
        stock.need("php")
        stock.need_success("php-msgpack is not installed", "php", "-r", "exit(extension_loaded('msgpack') ? 0 : 1);")


class Libtroupe(Vectors, unittest.TestCase):
    """It takes values typed, and so they come back as they were."""

    command = [BUILD / "tests" / "clients" / "vectors"]
    not_sent = not_received = because("it is Lua that has no key which is a float without a fraction",
                                      *vector_files.KEYS_THAT_LUA_CHANGES)

    def wanted(self, case):
        return vector_files.bytes_where_no_text(vector_files.unpack(vector_files.data_of(case["hex"])))


if __name__ == "__main__":
    unittest.main()
