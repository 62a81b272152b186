# SPDX-License-Identifier: Apache-2.0
"""Pools as their users see them: over the socket, from Lua, and with the command."""

import collections
import json
import os
import re
import subprocess
import unittest

import harness
import stranger

WORKER = """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker:init(base)
  self.base = base or 0
end
function Worker.on:add(n)
  return self.base + n
end
function Worker.on:who()
  return troupe.whoami()
end
function Worker.on:fault()
  error("it broke")
end
function Worker.on:me()
  return troupe.me()
end
function Worker.on:leave()
  troupe.stop(troupe.me())
end
function Worker.on:note(n)
  self.noted = self.noted or {}
  table.insert(self.noted, n)
end
function Worker.async:doze(n)
  troupe.await(troupe.sleep(1))
  table.insert(self.noted, n)
end
-- Takes longer than that sleep.
function Worker.on:drag(n)
  local began = os.clock()
  while os.clock() - began < 0.002 do end
  table.insert(self.noted, n)
end
function Worker.on:noted()
  return { troupe.whoami().worker, self.noted }
end
function Worker.on:nap()
  for _ = 1, 1000 do end
end
-- Holds the whole worker until the gate says otherwise.
function Worker.on:block(gate)
  troupe.send(troupe.handle(gate), "arrived")
  while not troupe.find("gate.open") do end
end
return Worker
"""

GATE = """
local troupe = require "troupe"
local Gate = troupe.actor "Gate"
function Gate:init()
  self.count = 0
end
function Gate.on:arrived()
  self.count = self.count + 1
end
function Gate.async:wait_for(n)
  while self.count < n do
    troupe.await(troupe.sleep(1))
  end
end
function Gate.on:open()
  troupe.publish("gate.open", troupe.me())
end
return Gate
"""

BROKEN = """
local troupe = require "troupe"
local Broken = troupe.actor "Broken"
function Broken:init()
  error("no start")
end
return Broken
"""

FROM_LUA = """
local troupe = require "troupe"
local Client = troupe.actor "Client"
function Client.async:use()
  local pool = troupe.pool("own", "worker", 100, troupe.options { workers = 2, backoff = { min = "1ms" } })
  local asks = {}
  for i = 1, 10 do
    asks[i] = troupe.ask(pool.add, i)
  end
  local sum = 0
  for _, n in ipairs(troupe.await(troupe.all(asks))) do
    sum = sum + n
  end
  troupe.stop(pool)
  troupe.await(troupe.done(pool))
  return { sum, troupe.find("own") == nil }
end
function Client.async:fails()
  local pool = troupe.pool("bad", "broken", troupe.options { workers = 2 })
  local _, e = pcall(troupe.await, troupe.done(pool))
  return { e.code, troupe.find("bad") == nil }
end
local function refusal(...)
  local _, e = pcall(troupe.pool, ...)
  return e.code .. ": " .. tostring(e)
end
function Client.on:refusals()
  local o = troupe.options
  return {
    refusal("a b", "worker"), refusal("x", 42), refusal("x", "worker", o { workers = 1025 }), refusal("x", "worker", o { wrkers = 1 }),
    refusal("x", "worker", o { routing = "best" }), refusal("x", "worker", o { backoff = { mn = 1 } }),
    refusal("x", "worker", o { backoff = { min = 0 } }), refusal("x", "worker", o { backoff = { min = "1h" } }),
    refusal("x", "worker", troupe.transfer(troupe.bytes(1)), o {}), refusal("x", "worker", print, o {}),
  }
end
return Client
"""

FILES = {"worker.lua": WORKER, "gate.lua": GATE, "broken.lua": BROKEN, "client.lua": FROM_LUA}


class Pools(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files=FILES)
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def pool(self, **options):
        return self.client.request("pool", "adders", "worker", [100], {"workers": 4, "backoff": {"min": "1ms", "max": "2ms"}, **options})

    def running(self, target="adders"):
        return self.client.request("info", target)["running"]

    def wait_until_running(self, count, target="adders"):
        """Each answer is a round trip through the loop, so this is no busy wait of the daemon's."""
        while self.running(target) < count:
            pass

    def workers(self):
        return [row for row in self.client.request("list", {"kind": "pool"}) if row["kind"] == "worker"]

    def test_the_size_asked_for(self):
        handle = self.pool()
        self.assertRegex(handle, "^pool:[0-9a-f]{32}$")
        self.wait_until_running(4)
        info = self.client.request("info", handle)
        self.assertEqual(("pool", "adders", "adders", "running", "round-robin", 4),
                         tuple(info[key] for key in ("kind", "name", "published", "state", "routing", "size")))
        self.assertEqual(["w-1", "w-2", "w-3", "w-4"], sorted(row["name"] for row in self.workers()))
        self.assertEqual({"adders"}, {row["pool"] for row in self.workers()})

    def test_as_many_as_there_are_cpus(self):
        self.client.request("pool", "adders", "worker", [])
        self.assertEqual(len(os.sched_getaffinity(0)), self.client.request("info", "adders")["size"])

    def test_round_robin_is_even_and_each_answers_for_itself(self):
        self.pool()
        self.wait_until_running(4)
        asks = [self.client.start("ask", "adders", "who", []) for _ in range(100)]
        answers = [self.client.finish(sent) for sent in asks]
        counts = collections.Counter(answer["worker"] for answer in answers)
        self.assertEqual({"w-1": 25, "w-2": 25, "w-3": 25, "w-4": 25}, counts)
        self.assertEqual({"adders"}, {answer["pool"] for answer in answers})

    def test_shared_holds_nobody_up(self):
        self.pool(routing="shared", workers=2)
        self.wait_until_running(2)
        gate = self.client.request("spawn", "gate", [])
        blocked = self.client.start("ask", "adders", "block", [gate])
        self.client.request("ask", gate, "wait_for", [1])
        self.assertEqual([101] * 50, [self.client.request("ask", "adders", "add", [1]) for _ in range(50)])
        self.client.request("ask", gate, "open", [])
        self.assertIsNone(self.client.finish(blocked))

    def test_a_fault_is_the_messages_and_nothing_else_is_lost(self):
        self.pool(workers=2)
        self.wait_until_running(2)
        gate = self.client.request("spawn", "gate", [])
        for _ in range(2):
            self.client.start("ask", "adders", "block", [gate])
        self.client.request("ask", gate, "wait_for", [2])
        fault = self.client.start("ask", "adders", "fault", [])
        adds = [self.client.start("ask", "adders", "add", [n]) for n in range(1000)]
        self.client.request("ask", gate, "open", [])
        self.assertEqual([100 + n for n in range(1000)], [self.client.finish(sent) for sent in adds])
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(fault)
        self.assertEqual(("fault", "yes"), (refused.exception.code, refused.exception.ran))
        self.wait_until_running(2)
        self.assertEqual(1, self.client.request("info", "adders")["restarts"])
        self.assertEqual(1, sum(row["name"].endswith(".1") for row in self.workers()))

    def test_a_killed_worker_is_replaced(self):
        self.pool()
        self.wait_until_running(4)
        third = next(row for row in self.workers() if row["name"] == "w-3")
        with self.assertRaises(harness.Error) as refused:
            self.client.request("stop", third["handle"])
        self.assertEqual(("denied", "stop: a worker ends with its pool; alone it can be killed only"),
                         (refused.exception.code, refused.exception.message))
        self.client.request("stop", third["handle"], {"kill": True})
        with self.assertRaises(harness.Error) as refused:
            self.client.request("done", third["handle"])
        self.assertEqual("killed", refused.exception.code)
        self.wait_until_running(4)
        self.assertEqual(["w-1", "w-2", "w-3.1", "w-4"], sorted(row["name"] for row in self.workers()))

    def test_a_start_that_fails_everywhere(self):
        with self.assertRaises(harness.Error) as refused:
            self.client.request("pool", "broken", "broken", [], {"workers": 3})
        self.assertEqual("fault", refused.exception.code)
        self.assertIsNone(self.client.request("find", "broken"))
        with self.assertRaises(harness.Error) as refused:
            self.client.request("pool", "missing", "missing", [])
        self.assertEqual("not-found", refused.exception.code)

    def test_a_stop_ends_all_workers(self):
        self.pool()
        handle = self.client.request("find", "adders")
        adds = [self.client.start("ask", "adders", "add", [n]) for n in range(500)]
        self.client.request("stop", "adders")
        self.assertEqual([100 + n for n in range(500)], [self.client.finish(sent) for sent in adds])
        self.assertIsNone(self.client.request("done", handle))
        self.assertIsNone(self.client.request("find", "adders"))
        self.assertEqual([], self.client.request("list"))

    def test_it_ends_with_its_connection_unless_detached(self):
        with harness.Client(self.daemon.socket) as other:
            other.request("pool", "gone", "worker", [], {"workers": 1})
            other.request("pool", "kept", "worker", [], {"workers": 1, "detach": True})
            gone = other.request("find", "gone")
        self.assertIsNone(self.client.request("done", gone))
        self.assertIsNotNone(self.client.request("find", "kept"))

    def test_if_absent(self):
        handle = self.pool()
        self.assertEqual(handle, self.pool(if_absent=True))
        with self.assertRaises(harness.Error) as refused:
            self.pool()
        self.assertEqual("taken", refused.exception.code)

    def test_options_are_refused_by_name(self):
        for options, message in (
                ({"wrkers": 1}, "pool: unknown option: wrkers"),
                ({"workers": 0}, "pool: the option workers has to be a whole number from 1 to 4294967295"),
                ({"workers": 1025}, "pool: the option workers has to be a whole number from 1 to 1024"),
                ({"routing": "best"}, "pool: the option routing has to be round-robin, smallest-mailbox, random or shared"),
                ({"backoff": {"mn": 1}}, "pool: unknown option: backoff.mn"),
                ({"backoff": 5}, "pool: the option backoff has to be a map {min?, max?, reset?}"),
                ({"backoff": {"min": "1h"}}, "pool: the option backoff.max has to be at least backoff.min")):
            with self.subTest(options=options), self.assertRaises(harness.Error) as refused:
                self.client.request("pool", "x", "worker", [], options)
            self.assertEqual(("bad-request", message), (refused.exception.code, refused.exception.message))

    def test_from_lua(self):
        client = self.client.request("spawn", "client", [])
        self.assertEqual(["fault", True], self.client.request("ask", client, "fails", []))
        self.assertEqual([sum(range(101, 111)), True], self.client.request("ask", client, "use", []))
        self.assertEqual([
            'bad-request: pool: "a b" is not a name',
            "bad-request: pool: 42 is not an actor",
            "bad-request: pool: the option `workers` is at most 1024",
            "bad-request: pool: there is no option `wrkers`",
            "bad-request: pool: the option `routing` wants round-robin, smallest-mailbox, random or shared",
            "bad-request: pool: there is no option `backoff.mn`",
            'bad-request: pool: the option `backoff.min` wants a time above 0: milliseconds, or text like "200ms"',
            "bad-request: pool: the option `backoff.max` is less than `backoff.min`",
            "not-sendable: pool: a buffer cannot be handed over to every worker",
            "not-sendable: a message may not carry a function: `argument 1` is a function",
        ], self.client.request("ask", client, "refusals", []))

    def test_the_command(self):
        def troupe(*words):
            return subprocess.run([str(harness.BUILD / "troupe"), "-S", self.daemon.socket, *words], check=True, stdout=subprocess.PIPE,
                                  text=True, timeout=harness.TIMEOUT_SECONDS).stdout
        handle = troupe("pool", "--workers", "3", "--routing", "shared", "cli", "worker", "7").strip()
        self.assertRegex(handle, "^pool:[0-9a-f]{32}$")
        self.assertEqual("8\n", troupe("ask", "cli", "add", "1"))
        self.assertEqual(handle, troupe("pool", "--if-absent", "cli", "worker", "7").strip())
        while json.loads(troupe("-j", "info", "cli"))["running"] < 3:
            pass
        rows = json.loads(troupe("-j", "ls", "pools"))
        self.assertEqual(["pool", "worker", "worker", "worker"], sorted(row["kind"] for row in rows))
        titles, *table = (line.split() for line in troupe("ls", "pools").splitlines())
        self.assertEqual(["HANDLE", "KIND", "NAME", "PUBLISHED", "STATE", "MAILBOX", "MESSAGES", "HEAP", "ACTOR"], titles)
        self.assertEqual([["pool", "cli", "cli", "running", "0", "1"], ["worker", "w-1", "-"], ["worker", "w-2", "-"],
                          ["worker", "w-3", "-"]],
                         sorted(row[1:7] if row[1] == "pool" else row[1:4] for row in table))
        self.assertEqual({"worker:Worker"}, {row[8] for row in table})
        self.assertEqual([], [line for line in troupe("ls", "actors").splitlines()[1:]])
        self.assertEqual("shared", json.loads(troupe("-j", "info", "cli"))["routing"])
        troupe("stop", "cli")
        troupe("done", handle)


    def test_another_name(self):
        handle = self.client.request("pool", "adders", "worker", [], {"workers": 1, "publish": "sums"})
        self.assertEqual([handle, None], [self.client.request("find", name) for name in ("sums", "adders")])
        self.assertEqual(("adders", "sums"), tuple(self.client.request("info", "sums")[key] for key in ("name", "published")))

    def test_a_worker_is_itself(self):
        self.pool(workers=2)
        self.wait_until_running(2)
        self.assertEqual({row["handle"] for row in self.workers()}, {self.client.request("ask", "adders", "me", []) for _ in range(2)})

    def test_its_queue_holds_what_the_limits_say(self):
        self.pool(routing="shared")
        info = self.client.request("info", "adders")
        self.assertEqual((65536, 64 << 20), (info["mailbox_max"], info["mailbox_bytes_max"]))

    def test_order_holds_for_each_worker(self):
        self.pool()
        self.wait_until_running(4)
        for n in range(400):
            self.client.notify("send", "adders", "note", [n])
        noted = dict(self.client.request("ask", "adders", "noted", []) for _ in range(4))
        self.assertEqual(["w-1", "w-2", "w-3", "w-4"], sorted(noted))
        for numbers in noted.values():
            self.assertEqual(sorted(numbers), numbers)
        self.assertEqual(list(range(400)), sorted(sum(noted.values(), [])))

    def test_what_waits_behind_a_message_does_not_hold_a_timer_up(self):
        self.pool(workers=1)
        gate = self.client.request("spawn", "gate", [])
        self.client.notify("send", "adders", "note", [0])
        self.client.notify("send", "adders", "block", [gate])
        self.client.request("ask", gate, "wait_for", [1])
        self.client.notify("send", "adders", "doze", [1])
        for n in range(2, 10):
            self.client.notify("send", "adders", "drag", [n])
        self.client.request("send", gate, "open", [])
        worker, noted = self.client.request("ask", "adders", "noted", [])
        self.assertEqual(("w-1", list(range(10))), (worker, sorted(noted)))
        self.assertLessEqual(noted.index(1), 2)

    def test_a_clean_exit_is_replaced_too(self):
        self.pool(workers=1)
        self.client.request("ask", "adders", "leave", [])
        while self.client.request("info", "adders")["restarts"] < 1:
            pass
        self.wait_until_running(1)
        self.assertEqual(["w-1.1"], [row["name"] for row in self.workers()])
        self.assertEqual(0, self.client.request("info", "adders")["faults"])
        self.assertEqual(101, self.client.request("ask", "adders", "add", [1]))

    def test_lines_do_not_overrun_its_mailboxes(self):
        for routing in ("round-robin", "smallest-mailbox", "random", "shared"):
            with self.subTest(routing):
                self.client.request("pool", routing, "worker", [], {"workers": 3, "mailbox": 8, "routing": routing,
                                                                           **({"queue": 20} if routing == "shared" else {})})
                self.wait_until_running(3, routing)
                self.assertEqual(20 if routing == "shared" else 8, self.client.request("info", routing)["mailbox_max"])
                lines = "".join(f"{n}\n" for n in range(1000))
                subprocess.run([str(harness.BUILD / "troupe"), "-S", self.daemon.socket, "send", routing, "nap", "--lines"], input=lines,
                               check=True, text=True, timeout=harness.TIMEOUT_SECONDS)


@unittest.skipUnless(stranger.is_possible, "only root can be somebody else")
class SomebodyElses(unittest.TestCase):
    def test_killing_one_worker_takes_an_operator(self):
        rules = [{"user": "12345", "roles": ["call", "spawn"]}]
        with harness.Daemon(files=FILES, config={"access": rules}) as daemon, harness.Client(daemon.socket) as client:
            stranger.admit(daemon)
            stranger.ask(daemon, [("pool", "theirs", "worker", [], {"workers": 1, "detach": True})], user=12345)
            worker = next(row["handle"] for row in client.request("list", {"kind": "pool"}) if row["kind"] == "worker")
            _, answers = stranger.ask(daemon, [("stop", worker, {"kill": True}), ("stop", "theirs")], user=12345)
            self.assertIn("denied: stop: to kill one worker of a pool needs the role operate", answers[0])
            self.assertIsNone(answers[1])


class ConfiguredPools(unittest.TestCase):
    def test_they_run_and_go_on_trying(self):
        pools = [{"name": "adders", "actor": "worker", "args": [7], "workers": 2, "routing": "shared"},
                 {"name": "broken", "actor": "broken", "workers": 1, "backoff": {"min": "1ms", "max": "2ms"}}]
        with harness.Daemon(files=FILES, config={"pools": pools}) as daemon, harness.Client(daemon.socket) as client:
            self.assertEqual(8, client.request("ask", "adders", "add", [1]))
            self.assertEqual("daemon", client.request("info", "adders")["session"])
            while client.request("info", "broken")["restarts"] < 5:  # after ten it is tried once a minute
                pass
            self.assertEqual("starting", client.request("info", "broken")["state"])

    def test_pauses_grow(self):
        pools = [{"name": "broken", "actor": "broken", "workers": 1, "backoff": {"min": "10ms", "max": "80ms"}}]
        with harness.Daemon(files=FILES, config={"pools": pools}) as daemon, harness.Client(daemon.socket) as client:
            while client.request("info", "broken")["given_up"] < 1:
                pass
            while "tried once a minute" not in daemon.log():  # the log is written by a thread of its own
                pass
            pauses = [int(ms) for ms in re.findall(r"it is replaced in (\d+) ms", daemon.log())]
        self.assertEqual(10, len(pauses))
        for wanted, pause in zip([10, 20, 40, 80, 80, 80, 80, 80, 80, 60_000], pauses):
            self.assertTrue(0.8 * wanted - 1 <= pause <= 1.2 * wanted, pauses)

    def test_pools_come_before_actors(self):
        actors = [{"actor": "worker", "publish": "adders"}]
        pools = [{"name": "adders", "actor": "worker"}]
        with harness.Daemon(files=FILES, config={"pools": pools, "actors": actors}) as daemon, harness.Client(daemon.socket) as client:
            self.assertRegex(client.request("find", "adders"), "^pool:")


if __name__ == "__main__":
    unittest.main()
