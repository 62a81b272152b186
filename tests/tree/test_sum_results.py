# SPDX-License-Identifier: Apache-2.0
"""tests/sum-results adds up what test programs report, and does not let a crash or an empty run pass."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SUM_RESULTS = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "tests" / "sum-results"


class SumResults(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = pathlib.Path(scratch.name)

    def ran(self, name, verdict, log):
        path = self.build / "tests" / name
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".log").write_text(log)
        path.with_suffix(".trs").write_text(f":test-result: {verdict}\n:global-test-result: {verdict}\n")

    def summed(self):
        done = subprocess.run([SUM_RESULTS, self.build], stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines(), done.returncode

    def test_cases_are_added(self):
        self.ran("unit", "PASS", "Running suite(s): x\n100%: Checks: 9, Failures: 0, Errors: 0")
        self.ran("python", "PASS", "ok\nskipped: a.B.c: no namespaces\n5 passed, 0 failed, 1 skipped\n")
        self.assertEqual(self.summed(), (["skipped: a.B.c: no namespaces", "14 passed, 0 failed, 1 skipped"], 0))

    def test_failed_cases_fail(self):
        self.ran("unit", "FAIL", "60%: Checks: 5, Failures: 1, Errors: 1\n")
        lines, status = self.summed()
        self.assertEqual((lines[-1], status), ("3 passed, 2 failed, 0 skipped", 1))
        self.assertEqual(lines[0], f"FAILED: {self.build}/tests/unit.log")

    def test_a_program_without_cases_counts_once(self):
        self.ran("a", "PASS", "fine\n")
        self.ran("b", "SKIP", "")
        self.assertEqual(self.summed(), ([f"skipped: {self.build}/tests/b", "1 passed, 0 failed, 1 skipped"], 0))

    def test_a_crash_fails_whatever_was_reported(self):
        self.ran("unit", "FAIL", "100%: Checks: 9, Failures: 0, Errors: 0\n==1==ERROR: LeakSanitizer\n")
        lines, status = self.summed()
        self.assertEqual((lines[-1], status), ("9 passed, 1 failed, 0 skipped", 1))

    def test_several_suites_in_one_program(self):
        self.ran("unit", "PASS", "100%: Checks: 2, Failures: 0, Errors: 0\n100%: Checks: 3, Failures: 0, Errors: 0\n")
        self.assertEqual(self.summed(), (["5 passed, 0 failed, 0 skipped"], 0))

    def test_nothing_run_is_no_success(self):
        (self.build / "tests").mkdir()
        self.assertEqual(self.summed(), (["0 passed, 0 failed, 0 skipped"], 1))


if __name__ == "__main__":
    unittest.main()
