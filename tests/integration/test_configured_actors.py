# SPDX-License-Identifier: Apache-2.0
"""Actors of the configuration: how they are started, when the daemon is ready, and how they come back."""

import json
import os
import pathlib
import socket
import tempfile
import unittest

import harness
import service

# Says into a pipe that it runs, with its arguments.
TELLER = """
local troupe = require "troupe"
local Teller = troupe.actor "Teller"

function Teller:init(pipe, ...)
  self.arguments = troupe.array { ... }
  local file = assert(io.open(pipe, "w"))
  file:write("started\\n")
  file:close()
end

function Teller.on:arguments_of() return self.arguments end
function Teller.on:fail() error "on purpose" end
"""

BROKEN = """
local troupe = require "troupe"
local Broken = troupe.actor "Broken"
function Broken:init() error "it does not start" end
"""


class ConfiguredActors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "teller.lua").write_text(TELLER)
        (self.folder / "broken.lua").write_text(BROKEN)
        self.pipe = self.folder / "pipe"
        self.other_pipe = self.folder / "other pipe"
        os.mkfifo(self.pipe)
        os.mkfifo(self.other_pipe)
        self.path = self.folder / "troupe.sock"

    def serve(self, *actors):
        """Whoever connects is served as soon as the daemon is up, whether it is ready or not."""
        file = self.folder / "trouped.json"
        file.write_text(json.dumps({"path": ["."], "actors": actors, "store": {"path": "troupe.db"}}))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            listener.listen()
            return service.Service("-c", file, listener=listener)

    def teller(self, *arguments, **keys):
        return {"actor": "teller:Teller", "args": [str(self.pipe), *arguments], "publish": "teller", **keys}

    def wait_for_start(self, pipe=None):
        """Waits until a teller is in its init."""
        with open(pipe or self.pipe, encoding="ascii") as pipe:
            self.assertEqual(pipe.read(), "started\n")

    def test_the_daemon_is_ready_when_init_has_ended(self):
        with self.serve(self.teller()) as daemon:
            # nobody reads yet: the actor waits in its init, and the daemon is not ready, but it serves
            with harness.Client(str(self.path)) as client:
                self.assertEqual(client.request("ping"), "pong")
            daemon.notify.setblocking(False)
            with self.assertRaises(BlockingIOError):
                daemon.told()
            daemon.notify.settimeout(harness.TIMEOUT_SECONDS)
            self.wait_for_start()
            self.assertEqual(daemon.wait_for("READY=1"), [])

    def test_arguments_and_limits(self):
        teller = self.teller(1, -2.5, "text", None, True, {"k": [1]}, name="the teller", heap="2M", mailbox=7)
        with self.serve(teller) as daemon:
            self.wait_for_start()
            daemon.wait_for("READY=1")
            with harness.Client(str(self.path)) as client:
                self.assertEqual(client.request("ask", "teller", "arguments_of", []), [1, -2.5, "text", None, True, {"k": [1]}])
                info = client.request("info", "teller")
                self.assertEqual((info["name"], info["published"], info["heap_max"], info["session"]),
                                 ("the teller", "teller", 2 << 20, "daemon"))

    def test_a_failure_does_not_hold_the_daemon_up(self):
        with self.serve({"actor": "broken:Broken"}, {"actor": "missing"}, {"actor": "broken:Missing", "restart": "never"}) as daemon:
            daemon.wait_for("READY=1")
            daemon.signal()
            self.assertEqual(daemon.wait(), 0)
            log = daemon.log()
        self.assertIn("it does not start", log)
        self.assertIn("it is started again in", log)
        self.assertIn("it is not started again", log)

    def test_it_comes_back_after_a_fault_under_its_name(self):
        with self.serve(self.teller()) as daemon:
            self.wait_for_start()
            daemon.wait_for("READY=1")
            with harness.Client(str(self.path)) as client:
                first = client.request("find", "teller")
                with self.assertRaises(harness.Error) as fault:
                    client.request("ask", "teller", "fail", [])
                self.assertEqual(fault.exception.code, "fault")
                self.wait_for_start()
                second = client.request("find", "teller")
                self.assertNotEqual(first, second)
                self.assertEqual(client.request("ask", "teller", "arguments_of", []), [])

    def test_it_comes_back_after_a_kill(self):
        with self.serve(self.teller()) as daemon:
            self.wait_for_start()
            daemon.wait_for("READY=1")
            with harness.Client(str(self.path)) as client:
                client.request("stop", "teller", {"kill": True})
                self.wait_for_start()

    def test_a_stop_is_for_good_unless_always(self):
        always = {"actor": "teller", "args": [str(self.other_pipe)], "publish": "always", "restart": "always"}
        with self.serve(self.teller(), always) as daemon:
            self.wait_for_start()
            self.wait_for_start(self.other_pipe)
            daemon.wait_for("READY=1")
            with harness.Client(str(self.path)) as client:
                teller = client.request("find", "teller")
                client.request("stop", teller)
                client.request("done", teller)
                client.request("stop", "always")
                self.wait_for_start(self.other_pipe)
                self.assertIsNone(client.request("find", "teller"))
                self.assertIsNotNone(client.request("find", "always"))


if __name__ == "__main__":
    unittest.main()
