# SPDX-License-Identifier: Apache-2.0
"""Configured components of Lua modules: when the daemon is ready, and how their replicas are replaced under load by a reload."""

import json
import os
import pathlib
import socket
import tempfile
import unittest

import harness
import service

# Answers its version, slowly enough that calls wait for it.
MODULE = """
local operations = {}
function operations.version(input, context)
  local x = 0
  for i = 1, 20000 do x = x + i end
  return VERSION
end
function operations.who(input, context) return context.instance end
return { operations = operations }
"""


def module(version):
    return MODULE.replace("VERSION", str(version))


def manifest(name, **keys):
    return {"name": name, "module": "versioned", "operations": {"version": {"output": {"type": "integer"}}, "who": {"stateful": True}},
            **keys}


class Replacement(unittest.TestCase):
    components = [manifest("single"), manifest("several", replicas=3, concurrency=4),
                  manifest("named", replicas=[{"instance": "left"}, {"instance": "right"}])]

    def setUp(self):
        self.daemon = harness.Daemon(files={"versioned.lua": module(1)}, config={"components": self.components})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.request = self.client.request
        self.config = json.loads(self.daemon.config.read_text())

    def reload(self, components=None, version=None):
        if components:
            self.daemon.config.write_text(json.dumps({**self.config, "components": components}))
        if version:
            (self.daemon.directory / "lua" / "versioned.lua").write_text(module(version))
        return self.request("reload")

    def call_until(self, name, version, others=()):
        """Keeps calls outstanding until one is answered by that version; every one has to be answered, and by no other."""
        answers, outstanding = set(), []
        while version not in answers:
            outstanding += [self.client.start("call", name, "version", None) for _ in range(20 - len(outstanding))]
            answers.add(self.client.finish(outstanding.pop(0)))
        answers |= {self.client.finish(call) for call in outstanding}
        self.assertLessEqual(answers, {version, *others})

    def call_until_only(self, name, version, others):
        """Until every replica is of that version: so many answers on end are its."""
        in_a_row = 0
        while in_a_row < 100:
            answer = self.request("call", name, "version", None)
            self.assertIn(answer, {version, *others})
            in_a_row = in_a_row + 1 if answer == version else 0

    def test_a_changed_module_replaces_without_one_refusal(self):
        names = [component["name"] for component in self.components]
        for name in names:
            self.call_until(name, 1)
        before = {name: self.request("instances", name) for name in names}
        for version in 2, 3:
            outstanding = [self.client.start("call", name, "version", None) for _ in range(100) for name in names]
            self.reload(version=version)
            outstanding += [self.client.start("call", name, "version", None) for _ in range(100) for name in names]
            self.assertLessEqual({self.client.finish(call) for call in outstanding}, {version - 1, version})
            for name in names:
                self.call_until_only(name, version, {version - 1})
        after = {name: self.request("instances", name) for name in names}
        # names that were given stay, and generated ones are never used again
        self.assertEqual(sorted(after["named"]), ["left", "right"])
        self.assertEqual([len(after[name]) for name in names], [len(before[name]) for name in names])
        self.assertFalse(set(after["several"]) & set(before["several"]))

    def test_who_is_called_by_a_name_that_stays_is_not_refused(self):
        self.call_until("named", 1)
        while sorted(self.request("instances", "named")) != ["left", "right"]:
            pass
        calls = []
        for version in 2, 3, 4:
            calls += [self.client.start("call", "named", "who", None, {"instance": "left", "timeout": 60000}) for _ in range(100)]
            self.reload(version=version)
            calls += [self.client.start("call", "named", "who", None, {"instance": "left", "timeout": 60000}) for _ in range(100)]
            self.call_until_only("named", version, {version - 1})
        self.assertEqual({self.client.finish(call) for call in calls}, {"left"})

    def test_another_manifest_replaces_too(self):
        self.call_until("several", 1)
        outstanding = [self.client.start("call", "several", "version", None) for _ in range(100)]
        self.assertIsNone(self.reload([manifest("several", replicas=1, operations={"version": {"errors": ["E"]}})], version=2))
        outstanding += [self.client.start("call", "several", "version", None) for _ in range(100)]
        self.assertLessEqual({self.client.finish(call) for call in outstanding}, {1, 2})
        self.call_until_only("several", 2, {1})
        while len(self.request("instances", "several")) != 1:
            pass
        with self.assertRaisesRegex(harness.Error, "not-found"):
            self.request("call", "several", "who", None, {"instance": "x"})
        # and what is not configured any more is not there
        while True:
            try:
                self.request("call", "single", "version", None)
            except harness.Error as error:
                if error.code == "not-found":
                    break

    def test_a_module_that_does_not_start_leaves_the_others_serving(self):
        self.call_until("several", 1)
        (self.daemon.directory / "lua" / "versioned.lua").write_text("return { operations = {} }")
        self.assertIsNone(self.reload())
        self.call_until("several", 1)
        self.assertIsNone(self.reload(version=2))
        self.call_until("several", 2, {1})


class Ready(unittest.TestCase):
    def test_the_daemon_is_ready_when_every_replica_has_started_or_failed_once(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            pipe, path, config = folder / "pipe", folder / "troupe.sock", folder / "trouped.json"
            os.mkfifo(pipe)
            (folder / "slow.lua").write_text(
                f'return {{ operations = {{ run = function() end }}, init = function() io.open("{pipe}", "w"):close() end }}')
            (folder / "broken.lua").write_text('return { operations = { run = function() end }, init = function() error "no" end }')
            operations = {"run": {}}
            config.write_text(json.dumps({"path": ["."], "store": {"path": "troupe.db"}, "components": [
                {"name": "slow", "module": "slow", "operations": operations}, {"name": "none", "operations": operations},
                {"name": "broken", "module": "broken", "operations": operations},
                {"name": "missing", "module": "missing", "replicas": 2, "operations": operations}]}))
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen()
                with service.Service("-c", config, listener=listener) as daemon:
                    # nobody reads yet: the replica waits in its init, and the daemon is not ready, but it serves
                    with harness.Client(str(path)) as client:
                        self.assertEqual(client.request("ping"), "pong")
                    daemon.notify.setblocking(False)
                    with self.assertRaises(BlockingIOError):
                        daemon.told()
                    daemon.notify.settimeout(harness.TIMEOUT_SECONDS)
                    pipe.read_text()
                    self.assertEqual(daemon.wait_for("READY=1"), [])


if __name__ == "__main__":
    unittest.main()
