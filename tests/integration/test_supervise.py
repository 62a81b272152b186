# SPDX-License-Identifier: Apache-2.0
"""Supervisors in the daemon, seen from its socket: names that stay, and the order in which everything ends."""

import re
import unittest

import harness

FILES = {"lab.lua": """
local troupe = require "troupe"
local Device = troupe.actor "Device"
function Device:init(port) self.port = port end
function Device.on:read() return self.port end
function Device.on:fail() error("unplugged", 0) end
function Device:close(reason) print(("closing %s: %s"):format(self.port, reason)) end

local Lab = troupe.actor "Lab"
function Lab:init(pause)
  self.sup = troupe.supervise({
    { Device, "a", name = "a", publish = "lab.a" }, { Device, "b", publish = "lab.b" }, { Device, "c" },
  }, { backoff = { min = pause } })
  troupe.await(troupe.ask(self.sup.children))
end
function Lab.on:sup() return self.sup end
function Lab.async:replaced(name, old)
  repeat troupe.await(troupe.sleep(1)) until troupe.text(troupe.find(name)) ~= old
  return troupe.find(name)
end
"""}
AT_ONCE, NEVER = 1, 3_600_000


class Supervise(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files=FILES)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def request(self, method, *params):
        return self.client.request(method, *params)

    def assert_refused(self, code, method, *params):
        with self.assertRaises(harness.Error) as refused:
            self.request(method, *params)
        self.assertEqual(refused.exception.code, code)

    def closings(self):
        return re.findall(r"closing (\w+: \w+)", self.daemon.log())

    def test_a_name_stays_while_nobody_runs_under_it(self):
        self.addCleanup(self.daemon.close)
        lab = self.request("spawn", "lab:Lab", [NEVER])
        device = self.request("find", "lab.a")
        self.assert_refused("fault", "ask", "lab.a", "fail", [])
        self.assert_refused("not-running", "ask", "lab.a", "read", [])
        self.assert_refused("not-running", "send", "lab.a", "read", [])
        self.assertEqual(self.request("find", "lab.a"), device)
        self.assert_refused("fault", "done", "lab.a")
        self.assert_refused("taken", "publish", "lab.a", lab)
        self.assert_refused("taken", "spawn", "lab:Device", ["x"], {"publish": "lab.a"})
        self.request("stop", self.request("ask", lab, "sup", []))
        self.request("done", self.request("ask", lab, "sup", []))
        self.assertIsNone(self.request("find", "lab.a"))
        self.assert_refused("not-found", "ask", "lab.a", "read", [])

    def test_it_moves_to_the_replacement(self):
        self.addCleanup(self.daemon.close)
        lab = self.request("spawn", "lab:Lab", [AT_ONCE])
        for end in (("ask", "lab.a", "fail", []), ("stop", "lab.a", {"kill": True}), ("stop", "lab.a")):
            device = self.request("find", "lab.a")
            try:
                self.request(*end)
            except harness.Error as fault:
                self.assertEqual(fault.code, "fault")
            self.assertEqual(self.request("ask", lab, "replaced", ["lab.a", device]), self.request("find", "lab.a"))
            self.assertEqual(self.request("ask", "lab.a", "read", []), "a")

    def test_children_are_in_the_session_of_the_supervisor(self):
        self.addCleanup(self.daemon.close)
        lab = self.request("spawn", "lab:Lab", [NEVER])
        self.assertEqual(self.request("info", "lab.a")["session"], self.request("info", lab)["session"])
        self.request("detach", self.request("ask", lab, "sup", []))
        self.assertEqual(self.request("info", "lab.a")["session"], "daemon")

    def test_with_a_connection_they_end_in_order(self):
        with harness.Client(self.daemon.socket) as other:
            lab = other.request("spawn", "lab:Lab", [NEVER])
            sup = other.request("ask", lab, "sup", [])
            done = self.client.start("done", sup)
        self.assertIsNone(self.client.finish(done))
        # the log is written behind what happens
        while len(self.closings()) < 3:
            self.request("ping")
        self.assertEqual(self.closings(), ["c: stop", "b: stop", "a: stop"])
        self.daemon.close()

    def test_with_the_daemon_they_end_in_order(self):
        self.request("spawn", "lab:Lab", [NEVER], {"detach": True})
        self.request("shutdown")
        self.daemon.wait()
        self.assertEqual(self.closings(), ["c: stop", "b: stop", "a: stop"])
        self.daemon.close()

    def test_a_killed_supervisor_leaves_nobody_behind(self):
        lab = self.request("spawn", "lab:Lab", [NEVER])
        devices = [self.request("find", name) for name in ("lab.a", "lab.b")]
        self.request("stop", self.request("ask", lab, "sup", []), {"kill": True})
        for device in devices:
            self.assertIsNone(self.request("done", device))
        self.assertIsNone(self.request("find", "lab.a"))
        self.daemon.close()

    def test_one_that_a_client_starts(self):
        self.addCleanup(self.daemon.close)
        children = [["lab:Device", "one"], {1: "lab:Device", 2: "two", "name": "second", "restart": "transient"}]
        sup = self.request("spawn", "troupe.supervisor", [children, {"strategy": "rest-for-one"}])
        self.assertEqual([self.request("ask", device, "read", []) for device in self.request("ask", sup, "children", [])],
                         ["one", "two"])
        self.assertEqual(self.request("ask", self.request("ask", sup, "child", ["second"]), "read", []), "two")
        self.assert_refused("not-found", "ask", sup, "child", ["third"])
        self.assert_refused("fault", "spawn", "troupe.supervisor", [[["lab:Device"]], {"strategy": "none"}])


if __name__ == "__main__":
    unittest.main()
