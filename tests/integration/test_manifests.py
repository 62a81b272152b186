# SPDX-License-Identifier: Apache-2.0
"""Components as they are declared: in the configuration, in files beside it, and over the socket for a session."""

import json
import unittest

import harness
import service
import stranger

STRANGER = 21001


def manifest(name, **keys):
    return {"name": name, "operations": {"run": {}}, **keys}


class Declared(unittest.TestCase):
    config = {}

    def setUp(self):
        self.daemon = harness.Daemon(config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.request = self.client.request

    def connect(self):
        client = harness.Client(self.daemon.socket)
        self.addCleanup(client.close)
        return client

    def components(self):
        return {row["name"]: row for row in self.request("list", {"kind": "component"}) if row["kind"] == "component"}

    def refused(self, declared, client=None):
        with self.assertRaises(harness.Error) as raised:
            (client or self.client).request("component", declared)
        return raised.exception


class Session(Declared):
    def test_a_component_lasts_as_long_as_the_session(self):
        other = self.connect()
        self.assertIsNone(other.request("component", manifest("one")))
        self.assertIsNone(other.request("component", manifest("two", operations={"a": {"type": "effect", "doc": "it acts"}, "b": []})))
        self.assertEqual(set(self.components()), {"one", "two"})
        self.assertEqual(self.refused(manifest("one")).code, "taken")
        self.assertEqual(self.refused(manifest("one"), other).code, "taken")
        other.close()
        while self.components():
            pass
        self.assertIsNone(self.request("component", manifest("one")))

    def test_what_is_wrong_is_said_with_its_place(self):
        for declared, code, path, message in [
                (5, "bad-request", "", "component: the manifest must be an object"),
                ({}, "bad-request", "/name", "component: /name is missing"),
                (manifest("a b"), "bad-request", "/name",
                 "component: /name must be a name: letters, digits, _ and -, in parts joined by dots"),
                (manifest("c", colour=1), "bad-request", "/colour", "component: /colour is an unknown key"),
                (manifest("c", operations={"o": {"input": {"minLenght": 1}}}), "bad-request", "/operations/o/input/minLenght", None),
                (manifest("c", heap="2G"), "bad-request", "/heap", "component: /heap is above limits.heap_max"),
                (manifest("c", process={"command": ["x"], "cwd": "relative"}), "bad-request", "/process/cwd",
                 "component: /process/cwd must be an absolute path"),
                (manifest("c", replicas=[{"args": b"\xff"}]), "not-sendable", "/replicas/0/args",
                 "component: /replicas/0/args is bytes, and no text"),
                (manifest("c", **{"x" * 5000: 1}), "bad-request", None, None)]:
            refused = self.refused(declared)
            self.assertEqual((refused.code, refused.ran), (code, "no"), declared)
            if path is not None:
                self.assertEqual(refused.data["path"], path)
            if message:
                self.assertEqual(refused.message, message)
            self.assertLess(len(refused.message), 1500)
        self.assertEqual(self.components(), {})

    def test_a_name_that_is_there_twice(self):
        # {"name": "a", "name": "b"}, which no library writes
        self.client.send(b"\x94\x00\xcd\x03\xe7\xa9component\x91\x82\xa4name\xa1a\xa4name\xa1b")
        with self.assertRaises(harness.Error) as raised:
            self.client.finish(999)
        self.assertEqual((raised.exception.code, raised.exception.data["path"]), ("not-sendable", "/name"))


@unittest.skipUnless(stranger.is_possible, "only root can be somebody else")
class Access(Declared):
    config = {"access": [{"user": str(STRANGER), "roles": ["call", "spawn"], "names": ["a.*"]}]}

    def test_who_may(self):
        stranger.admit(self.daemon)
        you, answers = stranger.ask(self.daemon, [
            ("component", manifest("a.b")), ("component", manifest("b.a")), ("component", manifest("a.p", process={"command": ["x"]})),
            ("component", manifest("a.p", allow=[])), ("reload",)], user=STRANGER)
        self.assertEqual(answers, [None, "denied: component: access to the name b.a is not granted",
                                   "denied: component: `process` in a manifest needs the role operate",
                                   "denied: component: `allow` in a manifest needs the role operate",
                                   "denied: reload needs the role operate"])
        self.assertEqual(stranger.ask(self.daemon, [("component", manifest("x"))], user=STRANGER + 1)[1],
                         ["denied: component needs the role spawn"])


class Configured(Declared):
    config = {"components": ["components.d", manifest("inline")]}

    def setUp(self):
        super().setUp()
        self.folder = self.daemon.directory / "components.d"
        self.folder.mkdir()

    def write(self, name, text):
        (self.folder / name).write_text(text if isinstance(text, str) else json.dumps(text))

    def test_a_reload_applies_the_difference(self):
        self.assertEqual(set(self.components()), {"inline"})
        self.write("a.json", manifest("a"))
        self.write("b.json", manifest("b"))
        self.write("README", "no manifest")
        self.assertIsNone(self.request("reload"))
        before = self.components()
        self.assertEqual(set(before), {"inline", "a", "b"})
        # the session of nobody: they are not the connection's
        self.assertIsNone(self.request("reload"))
        self.assertEqual({name: row["handle"] for name, row in self.components().items()},
                         {name: row["handle"] for name, row in before.items()})

        self.write("a.json", manifest("a", operations={"run": {}, "more": {"type": "effect"}}))
        (self.folder / "b.json").unlink()
        self.assertIsNone(self.request("reload"))
        after = self.components()
        while "b" in after:
            after = self.components()
        self.assertEqual(set(after), {"inline", "a"})
        self.assertEqual(after["a"]["handle"], before["a"]["handle"])
        self.assertNotEqual(after["a"]["hash"], before["a"]["hash"])
        self.assertEqual(after["inline"]["hash"], before["inline"]["hash"])

    def test_what_is_wrong_changes_nothing(self):
        self.write("a.json", manifest("a"))
        self.write("b.json", '{"name": "b",\n"operations": {"o": {"type": "question"}}}')
        with self.assertRaises(harness.Error) as raised:
            self.request("reload")
        self.assertEqual(raised.exception.code, "load")
        self.assertIn(f"{self.folder}/b.json:2: /operations/o/type: must be one of: computation, ", raised.exception.message)
        self.assertEqual(set(self.components()), {"inline"})

    def test_what_a_session_has_is_not_taken_from_it(self):
        self.request("component", manifest("a"))
        self.write("a.json", manifest("a"))
        self.write("b.json", manifest("b"))
        with self.assertRaises(harness.Error) as raised:
            self.request("reload")
        self.assertEqual((raised.exception.code, raised.exception.message), ("taken", "there is a component a already"))
        self.assertEqual(set(self.components()), {"inline", "a", "b"})

    def test_one_that_was_stopped_comes_back(self):
        handle = self.components()["inline"]["handle"]
        self.request("stop", handle)
        self.request("done", handle)
        self.assertEqual(self.components(), {})
        self.assertIsNone(self.request("reload"))
        self.assertEqual(set(self.components()), {"inline"})


class Checked(unittest.TestCase):
    def test_check_reads_every_manifest(self):
        with harness.Daemon() as daemon:
            folder, config = daemon.directory, daemon.directory / "own.json"
            config.write_text('{"components": ["own.d", {"name": "inline",\n"operations": {"o": {"errors": ["a b"]}}}]}')
            (folder / "own.d").mkdir()
            (folder / "own.d" / "a.json").write_text('{"name": "a", "operations": {"o": {}},\n"nam": 1}')
            code, out, err = service.run("-c", config, "--check")
            self.assertEqual((code, out), (78, ""))
            self.assertEqual(err.splitlines(), [
                f"trouped: {config}:2: components[1]/operations/o/errors/0: must be a name: letters, digits, _ and -, in parts joined "
                "by dots",
                f"trouped: {folder}/own.d/a.json:2: /nam: is an unknown key"])
            # and so does a start
            self.assertEqual(service.run("-c", config, "-S", folder / "own.sock")[0], 78)
            # but not a program, which has no components
            (folder / "program.lua").write_text('require "troupe".main(function() print "it runs" end)')
            config.write_text('{"components": ["own.d"]}')
            self.assertEqual(service.run("-c", config, "run", folder / "program.lua")[:2], (0, "it runs\n"))


if __name__ == "__main__":
    unittest.main()
