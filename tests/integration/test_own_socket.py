# SPDX-License-Identifier: Apache-2.0
"""The socket that the daemon makes for itself: its mode and group, what is in its way, and what is left of it."""

import grp
import json
import os
import pathlib
import signal
import socket
import stat
import tempfile
import unittest

import harness
import service

CANNOT_CREATE, TEMPORARY, CONFIGURATION = 73, 75, 78


def has_group(name):
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


class OwnSocket(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "troupe.sock"

    def configure(self, **socket_keys):
        file = self.folder / "trouped.json"
        file.write_text(json.dumps({"socket": {"path": "troupe.sock", **socket_keys}, "store": {"path": "troupe.db"}}))
        return file

    def assert_serves(self):
        with harness.Client(str(self.path)) as client:
            self.assertEqual(client.request("ping"), "pong")

    def assert_mode(self, mode):
        status = self.path.stat()
        self.assertTrue(stat.S_ISSOCK(status.st_mode))
        self.assertEqual(stat.S_IMODE(status.st_mode), mode)

    def test_it_serves_and_is_gone_at_the_end(self):
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            self.assert_serves()
        self.assertFalse(self.path.exists())

    def test_the_command_line_has_the_last_word(self):
        other = self.folder / "other.sock"
        with service.Service("-c", self.configure(), "-S", other) as daemon:
            daemon.wait_for("READY=1")
            self.assertTrue(other.exists())
            self.assertFalse(self.path.exists())

    def test_mode_and_group_as_configured(self):
        group = grp.getgrgid(os.getgid())
        with service.Service("-c", self.configure(mode="0640", group=group.gr_name)) as daemon:
            daemon.wait_for("READY=1")
            self.assert_mode(0o640)
            self.assertEqual(self.path.stat().st_gid, group.gr_gid)

    @unittest.skipIf(has_group("troupe"), "there is a group troupe on this machine")
    def test_without_a_group_it_is_the_owners_alone(self):
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            self.assert_mode(0o600)
            daemon.signal()
            self.assertEqual(daemon.wait(), 0)
            self.assertIn("there is no group troupe to be had: only its owner may connect", daemon.log())

    def test_a_configured_group_has_to_exist(self):
        code, _, errors = service.run("-c", self.configure(group="no-such-group"))
        self.assertEqual(code, CONFIGURATION)
        self.assertIn("no-such-group", errors)
        self.assertFalse(self.path.exists())

    def test_a_users_own_is_the_users_alone(self):
        with service.Service("--user", XDG_RUNTIME_DIR=str(self.folder), XDG_STATE_HOME=str(self.folder / "state"),
                             XDG_CONFIG_HOME=str(self.folder / "none")) as daemon:
            daemon.wait_for("READY=1")
            self.path = self.folder / "troupe" / "troupe.sock"
            self.assert_mode(0o600)
            self.assert_serves()

    def test_what_a_dead_daemon_left_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.path))
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            self.assert_serves()

    def test_what_a_killed_daemon_left_is_replaced(self):
        daemon = service.Service("-c", self.configure())
        with self.assertRaises(AssertionError), daemon:
            daemon.wait_for("READY=1")
            daemon.signal(signal.SIGKILL)
        self.assertTrue(self.path.exists())
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            self.assert_serves()

    def test_a_live_daemon_is_not_taken_over(self):
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            code, _, errors = service.run("-c", self.configure())
            self.assertEqual(code, TEMPORARY)
            self.assertIn("another daemon listens there", errors)
            self.assert_serves()

    def test_another_programs_live_socket_is_not_taken_over(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.path))
            other.listen()
            code, _, _ = service.run("-c", self.configure())
            self.assertEqual(code, TEMPORARY)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.path))

    def test_what_is_no_socket_stays(self):
        self.path.write_text("precious")
        code, _, _ = service.run("-c", self.configure())
        self.assertEqual(code, CANNOT_CREATE)
        self.assertEqual(self.path.read_text(), "precious")

    def test_a_passed_descriptor_that_is_no_socket(self):
        def pass_it():
            os.dup2(0, 3)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
            os.execv(service.TROUPED, ["trouped", "-c", str(self.configure())])

        child = os.fork()
        if child == 0:
            try:
                pass_it()
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), CONFIGURATION)


if __name__ == "__main__":
    unittest.main()
