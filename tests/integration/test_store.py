# SPDX-License-Identifier: Apache-2.0
"""The store as a daemon opens it: where it is, whose it is, and what a daemon does that cannot have it."""

import json
import os
import pathlib
import signal
import sqlite3
import stat
import tempfile
import unittest

import harness
import service

CANNOT_CREATE, TEMPORARY, CONFIGURATION = 73, 75, 78


class Store(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "state" / "troupe.db"

    def configure(self, path="state/troupe.db"):
        file = self.folder / "trouped.json"
        file.write_text(json.dumps({"socket": {"path": "troupe.sock"}, "components": [],
                                    "store": {"path": path}}))
        return file

    def query(self, sql):
        database = sqlite3.connect(self.path)
        try:
            with database:
                return database.execute(sql).fetchall()
        finally:
            database.close()

    def assert_does_not_start(self, config, code, said):
        """It is told in the log, with the place, and nobody can connect."""
        ended, out, errors = service.run("-c", config, "-S", self.folder / "other.sock")
        self.assertEqual((ended, out), (code, ""))
        self.assertIn(f"{config}:1: store.path: {said}", errors)
        self.assertFalse((self.folder / "other.sock").exists())

    def test_it_is_made_and_is_there_for_the_next_daemon(self):
        for _ in range(2):
            with service.Service("-c", self.configure()) as daemon:
                daemon.wait_for("READY=1")
                self.assertEqual(self.query("PRAGMA user_version"), [(1,)])
                self.assertEqual(self.query("SELECT count(*) FROM entities"), [(0,)])
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(self.path.parent)), ["troupe.db", "troupe.db-lock"])

    def test_a_second_daemon_on_it_is_refused(self):
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
            self.assert_does_not_start(self.configure(), TEMPORARY, f"{self.path} is in use by another daemon, process {daemon.process.pid}")
            with harness.Client(str(self.folder / "troupe.sock")) as client:
                self.assertEqual(client.request("ping"), "pong")

    def test_what_a_killed_daemon_had_can_be_had(self):
        daemon = service.Service("-c", self.configure())
        with self.assertRaises(AssertionError), daemon:
            daemon.wait_for("READY=1")
            daemon.signal(signal.SIGKILL)
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")

    def test_one_of_a_later_version_is_refused(self):
        with service.Service("-c", self.configure()) as daemon:
            daemon.wait_for("READY=1")
        self.query("PRAGMA user_version = 99")
        self.assert_does_not_start(self.configure(), CONFIGURATION, f"{self.path} is of version 99, and this daemon knows none later than 1")
        self.assertEqual(self.query("PRAGMA user_version"), [(99,)])

    def test_one_that_cannot_be_opened_keeps_the_daemon_from_starting(self):
        self.path.parent.mkdir()
        self.path.write_text("this is no database, and of some length that the header of one has as well " * 20)
        self.assert_does_not_start(self.configure(), CANNOT_CREATE, f"{self.path} cannot be opened: file is not a database")
        self.assert_does_not_start(self.configure("trouped.json/troupe.db"), CANNOT_CREATE,
                                   f"{self.folder}/trouped.json/troupe.db cannot be opened: Not a directory")

    def test_a_users_own(self):
        places = {name: str(self.folder / name) for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        os.mkdir(places["XDG_RUNTIME_DIR"])
        store = self.folder / "XDG_STATE_HOME" / "troupe" / "troupe.db"
        with service.Service("--user", **places) as daemon:
            daemon.wait_for("READY=1")
            self.assertTrue(store.exists())
            code, _, errors = service.run("--user", "-S", self.folder / "other.sock", **places)
            self.assertEqual(code, TEMPORARY)
            self.assertIn(f"store.path: {store} is in use by another daemon", errors)


if __name__ == "__main__":
    unittest.main()
