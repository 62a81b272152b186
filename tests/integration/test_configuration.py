# SPDX-License-Identifier: Apache-2.0
"""What is configured is what holds: limits as `hello` tells them and as they are felt, permissions, the log, and the system's own."""

import json
import resource
import tempfile
import unittest

import harness
import service

LIMITS = {"actors": 3, "actors_per_user": 2, "connections": 5, "connections_per_user": 4, "requests": 6, "frame": "64K",
          "output": "1M", "stalled": "2m", "heap": "1M", "heap_max": "2M", "mailbox": 7, "mailbox_bytes": "8K", "async": 9,
          "nesting": 10, "queue": 11, "slow": "12s", "memory": "1G"}
AS_TOLD = LIMITS | {"frame": 65536, "output": 1 << 20, "stalled": 120000, "heap": 1 << 20, "heap_max": 2 << 20,
                    "mailbox_bytes": 8192, "slow": 12000, "memory": 1 << 30}

PROBE = """
local troupe = require "troupe"
local Probe = troupe.actor "Probe"

function Probe.on:echo(value) return value end
function Probe.on:nested(levels)
  local value = {}
  for i = 2, levels do value = { value } end
  return value
end
function Probe.on:try(what)
  local tried, why = pcall(load(what))
  return tried, tostring(why)
end
function Probe.on:log(level, text) troupe.log(level, "%s", text) end
function Probe.on:fault() error "on purpose" end
"""


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


class Configuration(unittest.TestCase):
    def daemon(self, **config):
        return harness.Daemon(files={"probe.lua": PROBE}, config=config)

    def test_hello_tells_the_limits_and_the_defaults(self):
        with self.daemon(limits=LIMITS) as daemon, harness.Client(daemon.socket) as client:
            self.assertEqual(client.hello["limits"], AS_TOLD)
        with self.daemon() as daemon, harness.Client(daemon.socket) as client:
            self.assertEqual(client.hello["limits"], {
                "actors": 1024, "actors_per_user": 512, "connections": 4096, "connections_per_user": 1024, "requests": 65536,
                "frame": 16 << 20, "output": 64 << 20, "stalled": 30000, "heap": 64 << 20, "heap_max": 1 << 30,
                "mailbox": 65536, "mailbox_bytes": 64 << 20, "async": 1024, "nesting": 128, "queue": 65536, "slow": 5000,
                "memory": None})

    def test_nesting_is_bounded_in_both_directions(self):
        with self.daemon(limits={"nesting": 10}) as daemon, harness.Client(daemon.socket) as client:
            probe = client.request("spawn", "probe", [])
            self.assertEqual(client.request("ask", probe, "echo", [nested(10)]), nested(10))
            self.assertEqual(client.request("ask", probe, "nested", [10]), nested(10))
            for method, argument in (("echo", nested(11)), ("nested", 11)):
                with self.assertRaises(harness.Error) as refusal:
                    client.request("ask", probe, method, [argument])
                self.assertEqual(refusal.exception.code, "not-sendable")
                self.assertIn("nested deeper than 10 levels", refusal.exception.message)

    def test_a_heap_is_as_large_as_configured(self):
        with self.daemon(limits={"heap": "2M", "heap_max": "4M"}) as daemon, harness.Client(daemon.socket) as client:
            self.assertEqual(client.request("info", client.request("spawn", "probe", []))["heap_max"], 2 << 20)
            larger = client.request("spawn", "probe", [], {"heap": "4M"})
            self.assertEqual(client.request("info", larger)["heap_max"], 4 << 20)
            with self.assertRaises(harness.Error) as refusal:
                client.request("spawn", "probe", [], {"heap": "5M"})
            self.assertEqual(refusal.exception.code, "bad-request")

    def test_all_heaps_together(self):
        with self.daemon(limits={"memory": "100K"}) as daemon, harness.Client(daemon.socket) as client:
            probe = client.request("spawn", "probe", [])
            # the sum is told in steps of 64 KiB
            self.assertEqual(len(client.request("ask", probe, "echo", ["x" * 300000])), 300000)
            with self.assertRaises(harness.Error) as refusal:
                client.request("spawn", "probe", [])
            self.assertEqual((refusal.exception.code, refusal.exception.ran), ("no-memory", "no"))

    def test_permissions(self):
        for allow, files, commands in (([], False, False), (["files"], True, False), (["files", "commands"], True, True)):
            with self.subTest(allow=allow), self.daemon(allow=allow) as daemon, harness.Client(daemon.socket) as client:
                probe = client.request("spawn", "probe", [])
                self.assertEqual(client.request("ask", probe, "try", ["io.open('/dev/null'):close()"]), files)
                self.assertEqual(client.request("ask", probe, "try", ["os.execute('true')"]), commands)

    def test_the_log_has_its_level(self):
        with self.daemon(log={"level": "warning"}) as daemon, harness.Client(daemon.socket) as client:
            probe = client.request("spawn", "probe", [], {"name": "the probe"})
            for level in ("error", "warning", "info", "debug"):
                client.request("ask", probe, "log", [level, f"of {level}"])
            with self.assertRaises(harness.Error):
                client.request("ask", probe, "fault", [])
            client.request("shutdown")
            self.assertEqual(daemon.wait(), 0)
            # what it says of the configuration is about no actor
            lines = [line for line in map(json.loads, daemon.log().splitlines()) if "actor" in line]
            self.assertEqual([(line["level"], line["message"]) for line in lines[:2]],
                             [("error", "of error"), ("warning", "of warning")])
            self.assertEqual([line["actor"] for line in lines], ["the probe"] * 3)
            self.assertRegex(lines[2]["message"], r"\Afault: .*on purpose\nstack traceback:")

    def test_the_log_has_its_format(self):
        with self.daemon(log={"format": "text"}) as daemon:
            with harness.Client(daemon.socket) as client:
                client.request("shutdown")
            self.assertEqual(daemon.wait(), 0)
            self.assertRegex(daemon.log(), r"(?m)^\d\d:\d\d:\d\d\.\d{3} info: ready$")

    def test_what_the_system_does_not_give_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            def clip():
                resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))

            with service.Service("-c", service.store_in(folder), "-S", f"{folder}/socket", before=clip) as daemon:
                daemon.wait_for("READY=1")
                daemon.signal()
                self.assertEqual(daemon.wait(), 0)
                self.assertIn("limits.connections is 4096, but the system allows 300 descriptors", daemon.log())


if __name__ == "__main__":
    unittest.main()
