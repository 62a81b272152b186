# SPDX-License-Identifier: Apache-2.0
"""The end of the daemon: what is still answered, what is stopped and killed, and what is told to a service manager meanwhile."""

import signal
import tempfile
import unittest

import harness
import service

# Answers late: when it is told to. It says how it was closed into a pipe.
SLOW = """
local troupe = require "troupe"
local Slow = troupe.actor "Slow"

function Slow:init(file) self.file = file end
function Slow.async:later(ms) troupe.await(troupe.sleep(ms)) return "late" end
function Slow.on:spin() while true do end end
function Slow.on:stuck() return (("a"):rep(200000)):find(".-.-.-.-b") end
function Slow:close(reason)
  if self.file then assert(io.open(self.file, "w")):write(reason):close() end
end
"""


class Shutdown(unittest.TestCase):
    def daemon(self, grace="60s"):
        return harness.Daemon(files={"slow.lua": SLOW}, config={"shutdown": {"grace": grace}})

    def test_what_is_in_progress_is_answered_and_close_is_run(self):
        with self.daemon() as daemon, harness.Client(daemon.socket) as client:
            closed = daemon.directory / "closed"
            slow = client.request("spawn", "slow", [str(closed)])
            late = client.start("ask", slow, "later", [100])
            client.request("info", slow)
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(client.finish(late), "late")
            self.assertEqual(daemon.wait(), 0)
            self.assertEqual(closed.read_text(), "shutdown")

    def test_nothing_is_started_any_more(self):
        with self.daemon() as daemon, harness.Client(daemon.socket) as client:
            slow = client.request("spawn", "slow", [])
            late = client.start("ask", slow, "later", [60000])
            client.request("info", slow)
            daemon.process.send_signal(signal.SIGTERM)
            # the actor that waits keeps the daemon; it refuses from the moment on that it has seen the signal
            while True:
                try:
                    client.request("spawn", "slow", [])
                except harness.Error as error:
                    self.assertEqual(error.code, "shutting-down")
                    break
            daemon.process.send_signal(signal.SIGINT)
            with self.assertRaises(harness.Error) as killed:
                client.finish(late)
            self.assertEqual(killed.exception.code, "killed")
            self.assertEqual(daemon.wait(), 0)

    def test_past_the_grace_it_is_killed(self):
        with self.daemon(grace="10ms") as daemon, harness.Client(daemon.socket) as client:
            slow = client.request("spawn", "slow", [])
            spin = client.start("ask", slow, "spin", [])
            client.request("shutdown")
            with self.assertRaises(harness.Error) as killed:
                client.finish(spin)
            self.assertEqual((killed.exception.code, killed.exception.ran), ("killed", "maybe"))
            self.assertEqual(daemon.wait(), 0)

    def test_who_is_stuck_is_named_and_not_waited_for(self):
        # within the grace it gets into the function that nothing interrupts
        with self.daemon(grace="1s") as daemon, harness.Client(daemon.socket) as client:
            slow = client.request("spawn", "slow", [], {"name": "mule"})
            stuck = client.start("ask", slow, "stuck", [])
            client.request("shutdown")
            with self.assertRaises(harness.Error) as killed:
                client.finish(stuck)
            self.assertEqual(killed.exception.code, "killed")
            self.assertEqual(daemon.wait(), 0)
            self.assertRegex(daemon.log(), r'"actor":"mule",.*stuck in a C function; nothing waits for it')

    def test_the_watchdog_is_fed(self):
        with tempfile.TemporaryDirectory() as folder:
            with service.Service("-c", service.store_in(folder), "-S", f"{folder}/socket", WATCHDOG_USEC="100000") as daemon:
                before = daemon.wait_for("READY=1")
                self.assertEqual(before, ["WATCHDOG=1"])
                self.assertEqual([daemon.told() for _ in range(3)], ["WATCHDOG=1"] * 3)
                daemon.signal()
                daemon.wait_for("STOPPING=1")
                self.assertEqual(daemon.wait(), 0)

    def test_nothing_is_reloaded_any_more(self):
        with self.daemon() as daemon, harness.Client(daemon.socket) as client:
            slow = client.request("spawn", "slow", [])
            client.start("ask", slow, "later", [60000])
            client.request("shutdown")
            with self.assertRaises(harness.Error) as raised:
                client.request("reload")
            self.assertEqual(raised.exception.code, "shutting-down")
            daemon.process.send_signal(signal.SIGINT)
            self.assertEqual(daemon.wait(), 0)


if __name__ == "__main__":
    unittest.main()
