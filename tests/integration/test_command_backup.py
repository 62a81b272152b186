# SPDX-License-Identifier: Apache-2.0
"""troupe backup: the file that the daemon is told of, and how it exits."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import harness
import scripted

TROUPE = str(pathlib.Path(os.environ["TROUPE_BUILD"]) / "troupe")


def run(socket, *words, cwd=None):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([TROUPE, "-S", socket, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=cwd, timeout=harness.TIMEOUT_SECONDS)
    return done.returncode, done.stdout, done.stderr


class Scripted(unittest.TestCase):
    """Against a daemon that says what the test wants."""

    def check(self, file, told, answer=None, result=(0, "", ""), cwd=None):
        with scripted.Server(lambda server, method, params, reply: reply(answer)) as server:
            self.assertEqual(run(server.socket, "backup", file, cwd=cwd), result)
            self.assertEqual(server.told.get(timeout=scripted.TIMEOUT_SECONDS), ["backup", [told]])

    def test_the_file_is_where_the_command_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.realpath(folder)
            self.check("/a/b.db", "/a/b.db", cwd=folder)
            self.check("b.db", f"{here}/b.db", cwd=folder)
            self.check("../b.db", f"{here}/../b.db", cwd=folder)

    def test_refusals(self):
        for code, status in (("store", 7), ("denied", 5), ("bad-request", 2), ("unknown-method", 4)):
            self.check("/a", "/a", scripted.Error(code, "why not"), (status, "", f"troupe: backup: {code}: why not\n"))

    def test_usage(self):
        code, out, err = run("/nonexistent", "backup")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("FILE is missing", err)

    def test_a_folder_that_is_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            gone = pathlib.Path(folder, "gone")
            gone.mkdir()
            done = subprocess.run(["bash", "-c", 'rmdir "$1" && exec "$2" -S /nonexistent backup b.db', "bash", str(gone), TROUPE], cwd=gone,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (1, "troupe: backup: b.db: No such file or directory"))


NOTES = '''
    return { operations = {
        write = function(input, changes) changes.text = input end,
        read = function(input, note) return note and note.text end,
    } }
'''
MANIFEST = {"name": "notes", "module": "notes", "operations": {"write": {"type": "assignment"}, "read": {"type": "observation"}}}


class WithADaemon(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, **config):
        daemon = harness.Daemon(files={"notes.lua": NOTES}, config={"components": [MANIFEST], **config})
        self.addCleanup(daemon.close)
        return daemon

    def test_a_copy_is_a_store(self):
        daemon = self.start()
        for text in "old", "new":
            self.assertEqual(run(daemon.socket, "call", "--id", "milk", "notes", "write", text), (0, "null\n", ""))
            self.assertEqual(run(daemon.socket, "backup", "copy.db", cwd=self.folder), (0, "", ""))
        self.assertEqual(run(daemon.socket, "call", "--id", "milk", "notes", "write", "newest"), (0, "null\n", ""))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["copy.db"])
        self.assertEqual((self.folder / "copy.db").stat().st_mode & 0o777, 0o600)
        again = self.start(store={"path": str(self.folder / "copy.db")})
        self.assertEqual(run(again.socket, "call", "--id", "milk", "notes", "read"), (0, '"new"\n', ""))

    def test_what_cannot_be_written(self):
        daemon = self.start()
        (self.folder / "a folder").mkdir()
        for file, code, message in (("none/copy.db", 7, "backup: store: "), ("a folder", 2, "backup: bad-request: "),
                                    (str(daemon.directory / "troupe.db"), 2, "is the store itself")):
            status, out, err = run(daemon.socket, "backup", file, cwd=self.folder)
            self.assertEqual((status, out), (code, ""), err)
            self.assertIn(message, err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["a folder"])


if __name__ == "__main__":
    unittest.main()
