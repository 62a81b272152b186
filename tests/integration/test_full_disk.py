# SPDX-License-Identifier: Apache-2.0
"""A disk that is full: what cannot be written is refused with `store`, what was acknowledged is there, and it goes on when there is room."""

import contextlib
import errno
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

import harness
import ledger


class FullLoad(ledger.Load):
    """Counts what the store could not keep. Nothing else may happen."""

    def __init__(self):
        super().__init__()
        self.not_kept = 0

    def on_error(self, kind, token, error):
        if error["code"] != "store":
            super().on_error(kind, token, error)
        self.refused[kind].add(token)
        self.not_kept += 1


class FullDisk(unittest.TestCase):
    def until_refused(self, load, client):
        """Goes on until much was refused: not by chance at the end of what is under way."""
        before = load.not_kept
        while load.not_kept - before < 3 * load.OUTSTANDING:
            load.step(client)

    def until_kept(self, load, client):
        before = sum(map(len, load.acknowledged.values()))
        while sum(map(len, load.acknowledged.values())) - before < 3 * load.OUTSTANDING:
            load.step(client)

    def there_and_back(self, daemon, fill, empty):
        load = FullLoad()
        with harness.Client(daemon.socket) as client:
            load.open(client)
            load.begin()
            for _ in range(2):
                self.until_kept(load, client)
                fill()
                self.until_refused(load, client)
                # what is there can be read
                load.drain(client)
                self.assertEqual(ledger.account(client, load.accounts[0])["kind"], "account")
                empty()
            self.until_kept(load, client)
            load.drain(client)
            daemon.kill()
        daemon.start_again()
        with harness.Client(daemon.socket) as client:
            ledger.wait_until_no_task_is_left(client)
            load.check(self, client)

    def test_files_may_not_grow(self):
        """As under LimitFSIZE= of a service manager."""
        with ledger.daemon() as daemon:
            def limit(bytes_more):
                largest = max(path.stat().st_size for path in daemon.directory.iterdir() if path.is_file())
                soft = largest + bytes_more if bytes_more is not None else resource.RLIM_INFINITY
                resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))
            self.there_and_back(daemon, lambda: limit(1000), lambda: limit(None))

    def test_no_room(self):
        with self.small_disk() as disk:
            filler = disk / "filler"

            def fill():
                with open(filler, "wb", buffering=0) as file:
                    try:
                        while True:
                            file.write(bytes(4096))
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ENOSPC)
            with ledger.daemon(config={"store": {"path": str(disk / "troupe.db")}}) as daemon:
                self.there_and_back(daemon, fill, filler.unlink)

    @contextlib.contextmanager
    def small_disk(self):
        """A file system of its own, where the machine lets us have one."""
        with tempfile.TemporaryDirectory() as folder:
            if os.geteuid() != 0:
                self.skipTest("only root may mount a small file system")
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], stderr=subprocess.PIPE, text=True)
            if mounted.returncode != 0:
                self.skipTest(f"no small file system can be mounted here: {mounted.stderr.strip()}")
            try:
                yield pathlib.Path(folder)
            finally:
                subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    unittest.main()
