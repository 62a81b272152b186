# SPDX-License-Identifier: Apache-2.0
"""backup: the store in a file of its own, which any SQLite reads, while others write."""

import contextlib
import json
import os
import pathlib
import sqlite3
import stat
import threading
import unittest

import harness
from replica import Replica

MANIFEST = {"name": "shelf", "operations": {"fill": {"type": "assignment"}}}


class Backup(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(config={"components": [MANIFEST]})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.replica = Replica(self.daemon.socket, "shelf", {"fill": lambda value, context: [context["id"], value]})
        self.addCleanup(self.replica.close)
        self.path = self.daemon.directory / "copy.db"

    def fill(self, value, client=None, **options):
        return (client or self.client).request("call", "shelf", "fill", value, options)

    def backup(self, path=None):
        return self.client.request("backup", str(path or self.path))

    def refuse(self, code, *params):
        with self.assertRaises(harness.Error) as caught:
            self.client.request("backup", *params)
        self.assertEqual(code, caught.exception.code, caught.exception)
        return str(caught.exception)

    def rows(self, path=None):
        with contextlib.closing(sqlite3.connect(path or self.path)) as database:
            self.assertEqual([("ok",)], database.execute("pragma integrity_check").fetchall())
            return {key: json.loads(body) for key, body in database.execute("select id, body from entities where component = 'shelf'")}

    def left(self):
        return sorted(entry.name for entry in self.daemon.directory.glob("copy.db*"))

    def test_all_of_it_is_there(self):
        keys = {self.fill({"n": n}): {"n": n} for n in range(20)}
        self.assertIsNone(self.backup())
        self.assertEqual(keys, self.rows())
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
        self.assertEqual(["copy.db"], self.left())

    def test_it_is_replaced_as_a_whole(self):
        self.fill({"n": 1}, id="a")
        self.backup()
        self.fill({"n": 2}, id="a")
        with contextlib.closing(sqlite3.connect(self.path)) as before:
            before.execute("begin").execute("select count(*) from entities").fetchall()
            self.backup()
            self.assertEqual('{"n":1}', before.execute("select body from entities").fetchone()[0].replace(" ", ""))
        self.assertEqual({"a": {"n": 2}}, self.rows())

    def test_it_is_of_one_moment_while_others_write(self):
        over = threading.Event()
        made = threading.Semaphore(0)

        def write():
            with harness.Client(self.daemon.socket) as client:
                n = 0
                while not over.is_set():
                    n += 1
                    self.fill({"n": n}, client, id="first")
                    self.fill({"n": n}, client, id="second")
                    made.release()
        writer = threading.Thread(target=write)
        writer.start()
        last = 0
        try:
            for _ in range(10):
                made.acquire()
                self.backup()
                rows = self.rows()
                self.assertIn(rows["first"]["n"] - rows["second"]["n"], (0, 1))
                self.assertGreaterEqual(rows["second"]["n"], last)
                last = rows["second"]["n"]
        finally:
            over.set()
            writer.join()
        self.assertEqual(["copy.db"], self.left())

    def test_what_is_no_path(self):
        for path in ("", "copy.db", "./copy.db", "/tmp/a\0b", 7, None):
            with self.subTest(path=path):
                self.assertIn("absolute path" if isinstance(path, str) else "path", self.refuse("bad-request", path))
        self.refuse("bad-request")

    def test_where_it_cannot_be(self):
        nowhere = self.daemon.directory / "nowhere" / "copy.db"
        self.assertIn(str(nowhere), self.refuse("store", str(nowhere)))
        self.assertIn("troupe.db", self.refuse("bad-request", str(self.daemon.directory / "troupe.db")))
        self.refuse("bad-request", str(self.daemon.directory))
        self.fill({"n": 1})
        self.backup()
        self.assertEqual(1, len(self.rows()))

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_what_is_no_file_stays(self):
        self.refuse("bad-request", "/dev/full")
        self.assertTrue(stat.S_ISCHR(pathlib.Path("/dev/full").stat().st_mode))

    def test_a_daemon_can_begin_with_it(self):
        keys = {self.fill({"n": n}) for n in range(5)}
        self.backup()
        with harness.Daemon(config={"components": [MANIFEST], "store": {"path": str(self.path)}}) as daemon, \
                harness.Client(daemon.socket) as client:
            client.request("ping")
            replica = Replica(daemon.socket, "shelf", {"fill": lambda value, context: [context["id"], value]})
            keys.add(client.request("call", "shelf", "fill", {}))
            replica.close()
            client.request("backup", str(daemon.directory / "copy.db"))
            self.assertEqual(keys, set(self.rows(daemon.directory / "copy.db")))


if __name__ == "__main__":
    unittest.main()
