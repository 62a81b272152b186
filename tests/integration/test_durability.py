# SPDX-License-Identifier: Apache-2.0
"""The daemon is killed, and its files are cut: what was acknowledged is there, and nothing is that was never accepted.

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
BACKUPS = 3
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
            ledger.wait_until_no_task_is_left(client)
            load.check(self, client)
        for kind in "add", "task":
            self.assertTrue(load.acknowledged[kind])

    def test_a_kill_while_tasks_are_picked_up_again(self):
        """Each daemon has only begun with what the ones before have left."""
        load = ledger.Load()
        with harness.Client(self.daemon.socket) as client:
            load.open(client)
            load.begin()
            for _ in range(300):
                load.step(client)
            self.daemon.kill()
            load.drain(client, ended=True)
        for number in range(KILLS):
            self.daemon.start_again()
            with harness.Client(self.daemon.socket) as client:
                for _ in range(number):
                    client.request("tasks")
                self.daemon.kill()
        self.daemon.start_again()
        with harness.Client(self.daemon.socket) as client:
            ledger.wait_until_no_task_is_left(client)
            load.check(self, client)


# Its first runs, as many as it is told, wait for what does not come.
HOLDER = """
local troupe = require "troupe"
local operations = {}
function operations.hold(input, changes, context)
  if context.attempt <= input.held then troupe.await(troupe.sleep(3600000)) end
  changes.attempt = context.attempt
end
function operations.read(input, entity, context) return entity end
return { operations = operations }
"""


class Running(unittest.TestCase):
    def setUp(self):
        manifest = {"name": "holder", "module": "holder", "attempts": 3,
                    "operations": {"hold": {"type": "assignment"}, "read": {"type": "observation"}}}
        self.daemon = harness.Daemon(files={"holder.lua": HOLDER}, config={"components": [manifest], "shutdown": {"grace": "100ms"}})
        self.addCleanup(self.daemon.close)

    def kill_while_it_runs(self, runs):
        """Waits until the run has begun, on disk, and ends it with the daemon."""
        with harness.Client(self.daemon.socket) as client:
            while [task["runs"] for task in client.request("tasks", {"state": "running"})] != [runs]:
                pass
        self.daemon.kill()
        self.daemon.start_again()

    def test_what_was_running_runs_again(self):
        with harness.Client(self.daemon.socket) as client:
            client.request("task", "holder", "hold", {"held": 2}, {"id": "one"})
        self.kill_while_it_runs(1)
        self.kill_while_it_runs(2)
        with harness.Client(self.daemon.socket) as client:
            ledger.wait_until_no_task_is_left(client, "holder")
            document = client.request("call", "holder", "read", None, {"id": "one"})
            self.assertEqual(document["attempt"], 3)

    def test_what_always_ends_the_daemon_is_parked(self):
        with harness.Client(self.daemon.socket) as client:
            task = client.request("task", "holder", "hold", {"held": 3}, {"id": "one"})
        for run in 1, 2, 3:
            self.kill_while_it_runs(run)
        with harness.Client(self.daemon.socket) as client:
            while not (listed := client.request("tasks", {"state": "parked"})):
                pass
            [parked] = listed
            self.assertEqual((parked["id"], parked["runs"], parked["input"]), (task, 3, {"held": 3}))
            self.assertTrue(parked["cause"])
            # a person has seen to it
            client.request("task-retry", task)
            self.kill_while_it_runs(1)
        with harness.Client(self.daemon.socket) as client:
            client.request("task-drop", task)


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


class Backups(unittest.TestCase):
    def test_one_that_is_taken_under_load_is_whole(self):
        load = ledger.Load()
        with ledger.daemon() as daemon, harness.Client(daemon.socket) as client, harness.Client(daemon.socket) as operator, \
                tempfile.TemporaryDirectory() as folder:
            load.open(client)
            load.begin()
            for number in range(BACKUPS):
                for _ in range(200):
                    load.step(client)
                before = {kind: set(tokens) for kind, tokens in load.acknowledged.items()}
                path = f"{folder}/backup-{number}"
                request = operator.start("backup", path)
                operator.socket.setblocking(False)
                while request not in operator.answers:
                    load.step(client)
                    self.look_for_answer(operator)
                operator.socket.settimeout(harness.TIMEOUT_SECONDS)
                self.assertIsNone(operator.finish(request))
                self.check_backup(load, before, path)
            load.drain(client)
            self.assertEqual(sorted(os.listdir(folder)), [f"backup-{number}" for number in range(BACKUPS)])
            ledger.wait_until_no_task_is_left(client)
            load.check(self, client)

    def look_for_answer(self, operator):
        try:
            frame = operator.receive()
        except BlockingIOError:
            return
        operator.answers[frame[1]] = frame[2:]

    def check_backup(self, load, before, path):
        """All that had been acknowledged when it was asked for; and a daemon can go on with it."""
        self.assertEqual(ledger.rows(path, "PRAGMA integrity_check"), [("ok",)])
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "troupe.db"
            shutil.copy(path, store)
            with ledger.daemon(config={"store": {"path": str(store)}}) as daemon, harness.Client(daemon.socket) as client:
                ledger.wait_until_no_task_is_left(client)
                there = ledger.Load()
                there.sent, there.acknowledged, there.refused, there.account_of = load.sent, before, load.refused, load.account_of
                there.check(self, client)

    def test_what_cannot_be_written(self):
        with ledger.daemon() as daemon, harness.Client(daemon.socket) as client:
            for path, code in (("backup", "bad-request"), ("/nowhere/at/all", "store")):
                with self.assertRaises(harness.Error) as caught:
                    client.request("backup", path)
                self.assertEqual(caught.exception.code, code)


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
