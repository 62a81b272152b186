# SPDX-License-Identifier: Apache-2.0
"""What actors do among each other, and what they cost while they do nothing: measured in daemons of their own."""

import pathlib
import re
import time

import harness

ASKS = 200_000
SENDS = 500 * 4096
TRANSFERS = 20_000
CROWD = 1000
IDLE_SECONDS = 10
# After the last turn of any actor the watch for slow handlers looks once more, an eighth of `limits.slow` (5 s) later.
SETTLE_SECONDS = 2


def private_kib(pid):
    """What of a process's memory no other process shares."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(map(int, re.findall(r"^Private_(?:Clean|Dirty): *(\d+)", rollup, re.MULTILINE)))


def context_switches(pid):
    """How often any of a process's threads has stopped running so far."""
    return sum(int(count) for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")
               for count in re.findall(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.MULTILINE))


class Driver:
    """The actor that does what is measured, and a connection to it."""

    def __init__(self, daemon):
        self.client = harness.Client(daemon.socket)
        self.handle = self.client.request("spawn", "actors", [])

    def seconds(self, handler, count):
        """How long it takes, and what it answers. The round trip over the socket is far below what is measured."""
        began = time.perf_counter()
        answer = self.client.request("ask", self.handle, handler, [count])
        return time.perf_counter() - began, answer

    def asks(self):
        return {"per_second": ASKS / self.seconds("ask", ASKS)[0]}

    def sends(self):
        took, handled = self.seconds("send", SENDS)
        if handled != SENDS:
            raise RuntimeError(f"{handled} of {SENDS} sends were handled")
        return {"per_second": SENDS / took}


class Mover:
    """Two actors that hand one buffer to each other, and a connection to the first."""

    def __init__(self, daemon):
        self.client = harness.Client(daemon.socket)
        self.handle = self.client.request("spawn", "transfers", [], {"heap": "256M", "mailbox_bytes": "256M"})

    def transfers(self, size):
        """How long one transfer of a buffer takes, the message that it is in included."""
        self.client.request("ask", self.handle, "make", [size])
        began = time.perf_counter()
        length = self.client.request("ask", self.handle, "move", [TRANSFERS // 2])
        took = time.perf_counter() - began
        if length != size:
            raise RuntimeError(f"{length} of {size} bytes are left")
        return {"transfer_us": took * 1e6 / TRANSFERS}


def crowd(path):
    """A thousand actors that have nothing to do."""
    with harness.Daemon(path=path) as daemon:
        driver = Driver(daemon)
        driver.seconds("spawn", 1)
        before = private_kib(daemon.pid)
        took, _ = driver.seconds("spawn", CROWD)
        return {"spawn_us": took * 1e6 / CROWD, "each_kib": (private_kib(daemon.pid) - before) / CROWD}


def idle(path):
    """How often a daemon with a thousand actors wakes up when nobody asks it for anything."""
    with harness.Daemon(path=path) as daemon:
        driver = Driver(daemon)
        driver.seconds("spawn", CROWD)
        time.sleep(SETTLE_SECONDS)
        before = context_switches(daemon.pid)
        time.sleep(IDLE_SECONDS)
        return {"wakes": context_switches(daemon.pid) - before}
