# SPDX-License-Identifier: Apache-2.0
"""Tasks that are for later: when they run, when they do not run any more, and what becomes of many that are late."""

import datetime
import signal
import time
import unittest

import harness
import ledger

# Those that are due while the daemon is stopped; so many of them a second run when it goes on.
LATE, RATE = 300, 100


def now_ms():
    return time.time_ns() // 1_000_000


def wait_until(ms):
    """It is about the clock."""
    while (left := ms - now_ms()) > 0:
        time.sleep(left / 1000)


def rfc3339(ms):
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Delayed(unittest.TestCase):
    def setUp(self):
        self.daemon = ledger.daemon()
        self.addCleanup(self.daemon.close)
        self.connect()

    def connect(self):
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def task(self, token, **options):
        return self.client.request("task", ledger.NAME, "open", {"kind": "task", "token": token}, {"id": f"task-{token}", **options})

    def refusal(self, **options):
        with self.assertRaises(harness.Error) as caught:
            self.task(0, **options)
        self.assertEqual(caught.exception.ran, "no")
        return caught.exception.code

    def wait_for(self, task):
        """Until it is over, and gone."""
        while self.listed(task):
            pass

    def document(self, token):
        return ledger.account(self.client, f"task-{token}")

    def listed(self, task):
        return next((row for row in self.client.request("tasks") if row["id"] == task), None)

    def test_a_delay_is_waited_for(self):
        accepted = now_ms()
        task = self.task(1, delay=1000)
        row = self.listed(task)
        self.assertEqual((row["state"], row["delayed"], row["runs"]), ("waiting", True, 0))
        self.assertLessEqual(accepted + 1000, row["due"])
        self.wait_for(task)
        self.assertGreaterEqual(self.document(1)["created"], row["due"])

    def test_what_is_due_does_not_wait_for_it(self):
        later, now = self.task(1, delay="1h"), self.task(2)
        self.wait_for(now)
        self.assertEqual(self.listed(later)["state"], "waiting")
        self.assertEqual([self.document(1), self.document(2)["attempt"]], [None, 1])

    def test_at_a_time(self):
        for token, form in enumerate((lambda ms: ms, rfc3339)):
            at = now_ms() + 1000
            task = self.task(token, at=form(at))
            self.assertEqual(self.listed(task)["due"], at)
            self.wait_for(task)
            self.assertGreaterEqual(self.document(token)["created"], at)

    def test_at_a_time_that_has_passed_it_runs_now(self):
        task = self.task(1, at=now_ms() - 3_600_000)
        self.wait_for(task)
        self.assertEqual(self.document(1)["attempt"], 1)

    def test_what_is_refused(self):
        at = now_ms() + 1000
        for options in {"delay": 1, "at": at}, {"expires": 10}, {"delay": -1}, {"delay": "soon"}, {"at": "tomorrow"}, {"at": "2026-13-01T00:00:00Z"}:
            self.assertEqual(self.refusal(**options), "bad-request", options)
        self.assertEqual(self.client.request("tasks"), [])

    def test_a_daemon_that_is_killed_keeps_it(self):
        tasks = [self.task(token, delay=500) for token in range(3)]
        due = self.listed(tasks[0])["due"]
        self.daemon.kill()
        self.daemon.start_again()
        self.connect()
        ledger.wait_until_no_task_is_left(self.client)
        for token in range(3):
            self.assertEqual(self.document(token)["attempt"], 1)
            self.assertGreaterEqual(self.document(token)["created"], due)

    def test_what_is_too_late_is_dropped(self):
        gone, kept = self.task(1, delay="2s", expires=1), self.task(2, delay="2s", expires="1h")
        due = self.listed(gone)["due"]
        self.daemon.kill()
        wait_until(due + 2)
        self.daemon.start_again()
        self.connect()
        ledger.wait_until_no_task_is_left(self.client)
        self.assertIsNone(self.document(1))
        self.assertEqual(self.document(2)["attempt"], 1)
        self.assertIsNone(self.listed(kept))
        while f"the task {gone} of open was not run in time" not in self.daemon.log():
            pass

    def test_one_of_the_same_key_is_the_same_while_it_waits(self):
        first = self.task(1, delay="1h", key="k")
        self.assertEqual(self.task(2, delay=1, key="k"), first)
        self.assertNotEqual(self.task(3, key="other"), first)
        self.client.request("task-retry", first)
        self.wait_for(first)
        self.assertEqual([self.document(1)["token"], self.document(2)], [1, None])
        self.assertNotEqual(self.task(4, key="k"), first)

    def test_it_can_be_dropped_and_brought_forward(self):
        dropped, forward = self.task(1, delay="1h"), self.task(2, delay="1h")
        self.client.request("task-drop", dropped)
        self.client.request("task-retry", forward)
        self.wait_for(forward)
        self.assertEqual(self.client.request("tasks"), [])
        self.assertIsNone(self.document(1))

    def test_many_that_are_late_do_not_come_all_at_once(self):
        """The whole daemon is stopped, as on a machine that sleeps, and goes on when all are late."""
        at = now_ms() + 2000
        asked = [self.client.start("task", ledger.NAME, "open", {"kind": "task", "token": token}, {"id": f"task-{token}", "at": at})
                 for token in range(LATE)]
        for request in asked:
            self.client.finish(request)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            self.assertLess(now_ms(), at, "the machine is too slow for this test")
            wait_until(at + 1500)
            goes_on = now_ms()
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        ledger.wait_until_no_task_is_left(self.client)
        ran = [document["created"] for document in self.client.request("call", ledger.NAME, "all", None)]
        self.assertEqual(len(ran), LATE)
        self.assertGreaterEqual(max(ran) - goes_on, (LATE // RATE - 1) * 1000)


if __name__ == "__main__":
    unittest.main()
