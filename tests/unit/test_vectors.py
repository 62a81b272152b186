# SPDX-License-Identifier: Apache-2.0
"""The vectors say the same to a MessagePack library that nobody here wrote: what C reads in them, other languages read too."""

import base64
import json
import os
import pathlib
import struct
import unittest

import msgpack

VECTORS = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "proto" / "vectors"


def load(name):
    return json.loads((VECTORS / name).read_text())


def octets(hex_):
    if isinstance(hex_, str):
        return bytes.fromhex(hex_)
    return b"".join(octets(item) if isinstance(item, str) else octets(item[0]) * item[1] for item in hex_)


class Pairs(list):
    """A map, as its pairs in order: True, 1 and 1.0 are one key to a dict."""


def unpack(data):
    # What is no UTF-8 stays apart from all that is.
    return msgpack.unpackb(data, strict_map_key=False, object_pairs_hook=Pairs, unicode_errors="surrogateescape",
                           timestamp=0, max_ext_len=1 << 16, ext_hook=extension)


def handle(data):
    return {"$handle": ("pool:" if data[0] & 0x80 else "actor:") + data.hex()}


def extension(code, data):
    if code == 1:
        return handle(data)
    if code == 2:
        target, handler = unpack(data)
        return {"$message": [handle(target)["$handle"], handler if isinstance(handler, str) else handler.decode()]}
    if code == 3:
        return {"$instance": unpack(data)}
    raise ValueError(f"extension type {code}")


def special(name, value):
    if name == "$bin":
        return base64.b64decode(value)
    if name == "$str":
        return base64.b64decode(value).decode(errors="surrogateescape")
    if name == "$float":
        return float(value)
    if name == "$timestamp":
        return msgpack.Timestamp(*value)
    if name == "$map":
        return Pairs((meant(key), meant(item)) for key, item in value)
    return {name: meant(value)}


def meant(value):
    """What JSON stands for, as unpack() has it."""
    if isinstance(value, list):
        return [meant(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith("$"):
        return special(*next(iter(value.items())))
    return Pairs((key, meant(item)) for key, item in value.items())


def exact(value):
    """A value that compares by type and bit: 1, 1.0 and True differ, NaN is NaN."""
    if isinstance(value, Pairs):
        return ("map", [(exact(key), exact(item)) for key, item in value])
    if isinstance(value, (list, tuple)):
        return ("array", [exact(item) for item in value])
    if isinstance(value, dict):
        return {name: exact(item) for name, item in value.items()}
    if isinstance(value, float):
        return ("nan",) if value != value else ("float", struct.pack(">d", value))
    return (type(value).__name__, value)


class Vectors(unittest.TestCase):
    def assert_is(self, hex_, value):
        self.assertEqual(exact(unpack(octets(hex_))), exact(meant(value)))

    def test_values(self):
        for case in load("values.json"):
            for hex_ in [case["hex"], *case.get("also", [])]:
                with self.subTest(case["name"], hex=hex_):
                    self.assert_is(hex_, case["value"])

    def test_frames(self):
        for case in load("frames.json"):
            for hex_ in [case["hex"], *case.get("also", [])]:
                with self.subTest(case["name"], hex=hex_):
                    self.assertIn(case["from"], ("client", "daemon"))
                    self.assert_is(hex_, case["frame"])

    def test_every_method_has_a_frame(self):
        sent = {case["frame"][2] for case in load("frames.json") if case["frame"][0] == 0 and isinstance(case["frame"][2], str)}
        methods = """hello ping cancel find send ask done listen spawn pool stop detach publish unpublish list info call task
            instances serve withdraw component tasks task-retry task-drop subscribe unsubscribe trace metrics backup reload
            shutdown"""
        self.assertEqual(set(methods.split()) - sent, set())

    def test_errors(self):
        for case in load("errors.json"):
            with self.subTest(case["name"]):
                for form in ("pair", "map", "text"):
                    self.assert_is(case[form]["hex"], case[form]["frame"])
                error = case["map"]["frame"][2]
                text = f"{error['code']}: {error['message']} (ran: {error['ran']})"
                self.assertEqual((error["code"], error["ran"]), (case["code"], case["ran"]))
                self.assertEqual(case["text"]["frame"][2], text)
                self.assertEqual(case["pair"]["frame"][2], [case["kind"], text])

    def test_requests_that_are_refused(self):
        codes = {case["code"] for case in load("errors.json")}
        for case in load("requests.json"):
            with self.subTest(case["name"]):
                self.assert_is(case["hex"], case["frame"])
                self.assertIn(case["code"], codes)

    def test_invalid_frames_say_what_becomes_of_them(self):
        for case in load("invalid.json"):
            with self.subTest(case["name"]):
                self.assertIn(case["verdict"], ("bad-frame", "not-sendable", "too-large"))
                self.assertTrue(octets(case["hex"]))
                if case["verdict"] != "bad-frame":
                    self.assertIn("reason", case)


if __name__ == "__main__":
    unittest.main()
