# SPDX-License-Identifier: Apache-2.0
"""The configuration is read again: what is applied, what is refused, and that nobody is refused meanwhile."""

import json
import signal
import subprocess
import unittest

import harness
import service

ACTOR = """
local troupe = require "troupe"
local Actor = troupe.actor "Actor"
function Actor:init(value) self.value = value end
function Actor.on:get() return self.value end
return Actor
"""

# Tells its version, slowly enough that messages wait for it.
WORKER = """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker:init(base) self.base = base or 0 end
function Worker.on:version()
  local x = 0
  for i = 1, 20000 do x = x + i end
  return VERSION + self.base
end
function Worker.on:who() return troupe.whoami() end
return Worker
"""


def worker(version):
    return WORKER.replace("VERSION", str(version))


class Reload(unittest.TestCase):
    files = {"actor.lua": ACTOR, "worker.lua": worker(1)}
    config = {}

    def setUp(self):
        self.daemon = harness.Daemon(files=self.files, config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.request = self.client.request
        self.request("subscribe", "lifecycle")
        self.base = json.loads(self.daemon.config.read_text())

    def configure(self, **changes):
        self.base = harness.merged(self.base, changes)
        self.daemon.config.write_text(json.dumps(self.base))

    def reload(self, **changes):
        self.configure(**changes)
        self.assertIsNone(self.request("reload"))

    def next_event(self):
        while not self.client.notifications:
            frame = self.client.receive()
            if frame is None:
                raise ConnectionError(self.daemon.log())
            self.client.notifications.append(frame)
        return self.client.notifications.popleft()[2][1]

    def next_line(self):
        """The next line of the log, where that was subscribed to."""
        while "message" not in (told := self.next_event()):
            pass
        return told["message"]

    def wait_for_line(self, beginning):
        while not self.next_line().startswith(beginning):
            pass

    def wait_for(self, event, name):
        """Waits until that is told of an actor of that name."""
        while True:
            told = self.next_event()
            if told["event"] == event and told.get("name") == name:
                return told


class Actors(Reload):
    config = {"actors": [{"actor": "actor", "args": [1], "publish": "kept", "name": "kept"},
                         {"actor": "actor", "args": [2], "publish": "changed", "name": "changed"},
                         {"actor": "actor", "args": [3], "publish": "gone", "name": "gone"}]}

    def test_the_difference_is_applied(self):
        # the daemon's own were started before anybody could subscribe, and the reload settles them all
        kept, gone = None, None
        while not (kept and gone and self.request("find", "changed")):
            kept, gone = self.request("find", "kept"), self.request("find", "gone")
        self.reload(actors=[{"actor": "actor", "args": [4], "publish": "added", "name": "added"},
                            {"actor": "actor", "args": [5], "publish": "changed", "name": "changed"},
                            self.config["actors"][0]])
        self.assertIsNone(self.request("done", gone))
        self.wait_for("started", "changed")
        self.assertEqual(self.request("ask", "changed", "get", []), 5)
        self.assertEqual(self.request("ask", "kept", "get", []), 1)
        self.assertEqual(self.request("find", "kept"), kept)
        self.assertEqual(self.request("ask", "added", "get", []), 4)
        self.assertIsNone(self.request("find", "gone"))
        self.assertEqual(sorted(row["name"] for row in self.request("list")), ["added", "changed", "kept"])

    def test_nothing_is_done_twice(self):
        before = None
        while not before:
            before = self.request("find", "kept")
        for _ in range(3):
            self.reload()
        self.assertEqual(self.request("find", "kept"), before)

    def test_a_running_actor_keeps_its_code(self):
        while not self.request("find", "kept"):
            pass
        self.assertEqual(self.request("ask", "kept", "get", []), 1)
        (self.daemon.directory / "lua" / "actor.lua").write_text(ACTOR.replace("self.value end", "-self.value end"))
        self.reload()
        self.assertEqual(self.request("ask", "kept", "get", []), 1)


class Refused(Reload):
    def test_a_configuration_that_is_wrong_changes_nothing(self):
        self.request("subscribe", "log")
        self.configure(actors=[{"actor": "actor", "publish": "new"}], limits={"actors": 7}, colour=1, socket={"group": "no such group"})
        with self.assertRaises(harness.Error) as raised:
            self.request("reload")
        self.assertEqual((raised.exception.code, raised.exception.ran), ("load", "no"))
        self.assertIn(f"{self.daemon.config}:1: colour: unknown key", raised.exception.message)
        self.assertIsNone(self.request("find", "new"))
        self.assertEqual(self.request("list"), [])
        self.assertEqual(self.request("hello")["limits"]["actors"], 1024)
        self.wait_for_line("reload: load: the configuration is refused, and nothing has changed")

    def test_what_the_machine_does_not_have_is_refused_too(self):
        self.configure(socket={"group": "no such group"})
        with self.assertRaisesRegex(harness.Error, "socket.group: there is no group no such group"):
            self.request("reload")

    def test_a_trace_file_that_cannot_be_written_changes_nothing(self):
        self.configure(actors=[{"actor": "actor", "publish": "new"}], trace={"file": "none/spans.jsonl"})
        with self.assertRaises(harness.Error) as raised:
            self.request("reload")
        self.assertEqual(raised.exception.code, "load")
        self.assertEqual(raised.exception.message, f"{self.daemon.config}:1: trace.file: {self.daemon.directory}/none/spans.jsonl "
                                                   "cannot be written: No such file or directory")
        self.assertIsNone(self.request("find", "new"))
        self.reload(trace={"file": "spans.jsonl"})
        self.assertEqual((self.daemon.directory / "spans.jsonl").read_text(), "")
        # Whoever has taken it away gets another one.
        (self.daemon.directory / "spans.jsonl").rename(self.daemon.directory / "rotated.jsonl")
        self.reload()
        self.assertEqual((self.daemon.directory / "spans.jsonl").read_text(), "")
        self.reload(trace={"file": None})

    def test_the_command_says_what_is_wrong(self):
        command = [harness.BUILD / "troupe", "-S", self.daemon.socket, "reload"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.daemon.config.write_text("{")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn(f"troupe: reload: load: the configuration is refused, and nothing has changed: {self.daemon.config}:1: ",
                      done.stderr)

    def test_what_could_not_be_started_is_said(self):
        self.request("publish", "held", self.request("spawn", "actor", [1]))
        self.configure(pools=[{"name": "held", "actor": "worker"}, {"name": "free", "actor": "worker", "workers": 1}])
        with self.assertRaises(harness.Error) as raised:
            self.request("reload")
        self.assertEqual(raised.exception.code, "taken")
        self.assertEqual(self.request("ask", "free", "version", []), 1)


class Limits(Reload):
    def test_limits_and_access_apply_to_what_comes(self):
        self.reload(limits={"actors": 1, "heap": "2M", "requests": 5})
        limits = self.request("hello")["limits"]
        self.assertEqual((limits["actors"], limits["heap"], limits["requests"]), (1, 2 << 20, 5))
        self.request("spawn", "actor", [1])
        with self.assertRaisesRegex(harness.Error, "limits.actors allows no more"):
            self.request("spawn", "actor", [1])
        self.reload(limits={"actors": 2})
        self.request("spawn", "actor", [1])

    def test_what_has_no_effect_is_logged(self):
        self.request("subscribe", "log")
        self.reload(path=["/elsewhere"], allow=[], socket={"path": "/elsewhere.sock"}, limits={"nesting": 7})
        lines = [self.next_line()]
        while lines[-1] != "reloaded":
            lines.append(self.next_line())
        self.assertEqual([line for line in lines if line.startswith("reload: ")],
                         [f"reload: {key} has changed, which has no effect until the daemon is started again"
                          for key in ("socket.path", "path", "allow", "limits.nesting")])


class Pools(Reload):
    config = {"pools": [{"name": "pool", "actor": "worker", "workers": 3}, {"name": "single", "actor": "worker", "workers": 1},
                        {"name": "gone", "actor": "worker", "workers": 1}]}

    def change(self, version):
        (self.daemon.directory / "lua" / "worker.lua").write_text(worker(version))

    def ask_until(self, name, version, others=()):
        """Keeps asks outstanding until one is answered with the version; every one has to be answered, and by nothing else."""
        answers, outstanding = set(), []
        while version not in answers:
            outstanding += [self.client.start("ask", name, "version", []) for _ in range(20 - len(outstanding))]
            answers.add(self.client.finish(outstanding.pop(0)))
        answers |= {self.client.finish(ask) for ask in outstanding}
        self.assertLessEqual(answers, {version, *others})

    def test_workers_are_replaced_without_one_refusal(self):
        for name in "pool", "single":
            self.ask_until(name, 1)
        before = {name: self.request("find", name) for name in ("pool", "single")}
        for version in 2, 3:
            outstanding = {name: [self.client.start("ask", name, "version", []) for _ in range(50)] for name in before}
            self.change(version)
            self.reload()
            for name in before:
                self.ask_until(name, version, others=(version - 1,))
                self.assertLessEqual({self.client.finish(ask) for ask in outstanding[name]}, {version - 1, version})
                self.assertEqual(self.request("find", name), before[name])
        # one after the other, and all of them
        last = {row["name"] for row in self.request("list", {"kind": "pool"}) if row["kind"] == "worker"}
        while not last >= {"w-1.2", "w-2.2", "w-3.2"}:
            last = {row["name"] for row in self.request("list", {"kind": "pool"}) if row["kind"] == "worker"}

    def test_a_pool_of_other_settings_has_the_name_at_once(self):
        self.ask_until("pool", 1)
        before = self.request("find", "pool")
        outstanding = [self.client.start("ask", "pool", "version", []) for _ in range(50)]
        self.configure(pools=[{"name": "pool", "actor": "worker", "workers": 2, "args": [10]}, self.config["pools"][1]])
        reload = self.client.start("reload")
        outstanding += [self.client.start("ask", "pool", "version", []) for _ in range(50)]
        self.assertIsNone(self.client.finish(reload))
        self.assertEqual([self.client.finish(ask) for ask in outstanding], [1] * 50 + [11] * 50)
        self.assertNotEqual(self.request("find", "pool"), before)
        self.assertIsNone(self.request("done", before))
        # and what is not there any more is gone
        names = {row["name"] for row in self.request("list", {"kind": "pool"}) if row["kind"] == "pool"}
        while "gone" in names:
            names = {row["name"] for row in self.request("list", {"kind": "pool"}) if row["kind"] == "pool"}
        self.assertEqual(names, {"pool", "single"})

    def test_a_module_that_does_not_load_leaves_the_others_serving(self):
        self.ask_until("pool", 1)
        (self.daemon.directory / "lua" / "worker.lua").write_text("this is no Lua")
        self.reload()
        self.ask_until("pool", 1)
        self.change(2)
        self.reload()
        self.ask_until("pool", 2, others=(1,))


class Service(unittest.TestCase):
    def test_the_service_manager_is_told(self):
        with harness.Daemon() as other:
            config, path = other.directory / "own.json", other.directory / "own.sock"
            config.write_text('{"store": {"path": "own.db"}}')
            with service.Service("-c", config, "-S", path) as daemon:
                daemon.wait_for("READY=1")
                for text in '{"limits": {"actors": 7}}', "no JSON":
                    config.write_text(text)
                    daemon.signal(signal.SIGHUP)
                    self.assertRegex(daemon.told(), r"\ARELOADING=1\nMONOTONIC_USEC=[0-9]+\Z")
                    self.assertEqual(daemon.told(), "READY=1")
                    with harness.Client(str(path)) as client:
                        self.assertEqual(client.hello["limits"]["actors"], 7)


if __name__ == "__main__":
    unittest.main()
