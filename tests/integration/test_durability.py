# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed, and its files are cut: what was acknowledged is there, and nothing is that was refused.

KILLS in the environment says how often it is killed under load; each kill comes when some answers have gone by.
"""

import os
import pathlib
import random
import shutil
import tempfile
import unittest

import harness
import ledger

KILLS = int(os.environ.get("KILLS", "5"))
CUTS = 6


class Kills(unittest.TestCase):
    def setUp(self):
        self.daemon = ledger.daemon()
        self.addCleanup(self.daemon.close)

    def test_nothing_that_was_acknowledged_is_lost(self):
        load, chance = ledger.Load(), random.Random(KILLS)
        with harness.Client(self.daemon.socket) as client:
            load.open(client)
        for _ in range(KILLS):
            with harness.Client(self.daemon.socket) as client:
                load.begin()
                for _ in range(chance.randrange(20, 400)):
                    load.step(client)
                self.daemon.kill()
                load.drain(client, ended=True)
            self.daemon.start_again()
        with harness.Client(self.daemon.socket) as client:
            load.check(self, client)
        self.assertTrue(load.acknowledged)


class Torn(unittest.TestCase):
    """The log that SQLite writes ahead, as it may be found after a power failure: cut somewhere, or with something behind it."""

    CHANGES = 30

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        with ledger.daemon() as daemon:
            with harness.Client(daemon.socket) as client:
                ledger.open_account(client, "one")
                for token in range(1, self.CHANGES + 1):
                    ledger.add(client, "one", token)
                daemon.kill()
            for name in "troupe.db", "troupe.db-wal":
                shutil.copy(daemon.directory / name, self.folder / name)
            daemon.start_again()
        self.log = (self.folder / "troupe.db-wal").read_bytes()

    def found_with(self, log):
        """How many changes a daemon finds that gets this log: the first ones, all of them whole."""
        with tempfile.TemporaryDirectory() as copy:
            store = pathlib.Path(copy) / "troupe.db"
            shutil.copy(self.folder / "troupe.db", store)
            pathlib.Path(f"{store}-wal").write_bytes(log)
            with ledger.daemon(config={"store": {"path": str(store)}}) as daemon, harness.Client(daemon.socket) as client:
                document = ledger.account(client, "one")
                if document is None:
                    ledger.open_account(client, "one")
                    return -1
                tokens = document.get("tokens", [])
                self.assertEqual(tokens, list(range(1, len(tokens) + 1)))
                self.assertEqual(document["version"], 1 + len(tokens))
                # and it goes on from there
                self.assertEqual(ledger.add(client, "one", 1000), len(tokens) + 1)
                return len(tokens)

    def test_what_is_whole_is_there(self):
        self.assertEqual(self.found_with(self.log), self.CHANGES)

    def test_what_is_behind_it_is_not_taken_for_a_change(self):
        chance = random.Random(2)
        self.assertEqual(self.found_with(self.log + chance.randbytes(10_000)), self.CHANGES)
        # the beginning of a frame that was about to be written
        self.assertEqual(self.found_with(self.log + self.log[32:32 + 2000]), self.CHANGES)

    def test_a_log_that_is_cut_is_as_if_it_had_ended_before(self):
        chance = random.Random(3)
        cuts = sorted(chance.randrange(len(self.log)) for _ in range(CUTS))
        found = [self.found_with(self.log[:cut]) for cut in cuts]
        self.assertEqual(found, sorted(found))
        self.assertLess(found[0], self.CHANGES)

    def test_a_byte_that_changed_ends_it(self):
        chance = random.Random(4)
        at = len(self.log) // 2 + chance.randrange(100)
        damaged = bytearray(self.log)
        damaged[at] ^= 0x55
        self.assertLess(self.found_with(bytes(damaged)), self.CHANGES)


class Contention(unittest.TestCase):
    """Many callers change one entity through two replicas: each change is made once, on what the one before has left."""

    CALLERS, EACH = 16, 25

    def test_increments_add_up(self):
        with ledger.daemon() as daemon, harness.Client(daemon.socket) as client:
            ledger.open_account(client, "one")
            callers = [harness.Client(daemon.socket) for _ in range(self.CALLERS)]
            for caller in callers:
                self.addCleanup(caller.close)
            tokens = iter(range(1, self.CALLERS * self.EACH + 1))
            requests = [(caller, caller.start("call", ledger.NAME, "add", {"token": next(tokens)}, {"id": "one"}))
                        for _ in range(self.EACH) for caller in callers]
            answers = [caller.finish(request) for caller, request in requests]
            every = list(range(1, self.CALLERS * self.EACH + 1))
            self.assertEqual(sorted(answers), every)
            document = ledger.account(client, "one")
            self.assertEqual(sorted(document["tokens"]), every)
            self.assertEqual(document["version"], len(every) + 1)


if __name__ == "__main__":
    unittest.main()
