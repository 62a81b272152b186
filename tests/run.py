#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of one file, and reports as the test suite expects it.

Usage: run.py FILE [unittest's arguments]

The last line of the output is "N passed, N failed, N skipped", which tests/sum-results adds up; each case that was skipped is
named before it, with why. The exit status is 0, 1 where a case failed, and 77 (automake's "skipped") where all were skipped.

A case that does not end in time fails with the stacks of all threads, rather than holding up the suite for ever.
"""

import faulthandler
import importlib.util
import os
import pathlib
import signal
import sys
import unittest

CASE_SECONDS = 300


def heed_interrupts():
    """A shell that starts something in the background has it ignore interrupts, and so do all that it starts; the tests send some."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)



class Result(unittest.TextTestResult):
    """Counts what passed, and bounds the time of each case."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.passed = 0

    def startTest(self, test):
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        super().startTest(test)

    def stopTest(self, test):
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)

    def addSuccess(self, test):
        self.passed += 1
        super().addSuccess(test)

    def addExpectedFailure(self, test, err):
        self.passed += 1
        super().addExpectedFailure(test, err)


def main():
    heed_interrupts()
    file = pathlib.Path(sys.argv[1]).resolve()
    if importlib.util.find_spec("msgpack") is None:
        print(f"skipped: {file.name}: this Python has no msgpack\n0 passed, 0 failed, 1 skipped")
        return 77

    sys.path[:0] = [str(file.parent), str(pathlib.Path(__file__).resolve().parent / "integration")]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    runner = unittest.TextTestRunner(stream=sys.stdout, resultclass=Result, verbosity=2)
    result = unittest.main(module=file.stem, argv=sys.argv[1:], testRunner=runner, exit=False).result

    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    for test, why in result.skipped:
        print(f"skipped: {test.id()}: {why}")
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    if failed:
        return 1
    return 77 if result.skipped and not result.passed else 0


if __name__ == "__main__":
    sys.exit(main())
