#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Troupe beside its peers, prints a table, and writes JSON: run.py [--rounds N] [--json FILE]

One round measures every subject once, each for less than a second, so that what else happens on the machine meets the subject and
its peer alike. A row's ratio is the median of its rounds' ratios; its figures are medians too.

docs/performance.md describes the rows. A peer that is not installed is skipped, and the rows that need it say so.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests" / "integration"))

import actors  # noqa: E402
import components  # noqa: E402
import harness  # noqa: E402
import pools  # noqa: E402
import tasks  # noqa: E402

ROUND_TRIPS = 10_000
FLOODED_TRIPS = 20_000
SLOW_MAILBOX = 1000
ASKS = 500_000
SENDS = 1_000_000
REDIS_CALLS = 300_000
PATH = [SOURCE / "examples", SOURCE / "bench"]

REDIS_COUNTER = """#!lua name=bench
redis.register_function('bump', function(keys) return redis.call('INCR', keys[1]) end)
"""


def measured(program, *arguments):
    """What one of the measuring programs prints."""
    command = [str(BUILD / "bench" / program), *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


class Redis:
    """A private Redis with the counter as a function."""

    def __init__(self, directory):
        self.socket = str(pathlib.Path(directory) / "redis.sock")
        self.server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir", directory],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if not any("eady to accept connections" in line for line in self.server.stdout):
            raise RuntimeError("redis-server did not start")
        subprocess.run(["redis-cli", "-s", self.socket, "-x", "FUNCTION", "LOAD"], input=REDIS_COUNTER, text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def fcall(self, calls, depth, connections=1):
        """FCALLs of the counter, so many outstanding on each connection: per second, and the median latency."""
        command = ["redis-benchmark", "-s", self.socket, "-c", str(connections), "-P", str(depth), "-n", str(calls), "--csv",
                   "FCALL", "bump", "1", "counter"]
        header, *_, values = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()
        row = dict(zip(header.replace('"', "").split(","), values.replace('"', "").rsplit(",", header.count(","))))
        return {"per_second": float(row["rps"]), "p50_us": float(row["p50_latency_ms"]) * 1000}

    def close(self):
        self.server.terminate()
        self.server.wait()
        self.server.stdout.close()


class Row:
    """One line of the table: a subject's figure beside a peer's, and what the ratio is to reach (nothing: it explains another row).

    Without a peer it is the figure itself that is to reach something.
    """

    def __init__(self, name, figure, subject, peer=None, at_most=None, at_least=None):
        self.name, self.figure, self.subject, self.peer = name, figure, subject, peer
        self.at_most, self.at_least = at_most, at_least

    def judge(self, rounds):
        """The row's result, or why there is none, out of the rounds' measurements."""
        if self.peer and self.peer not in rounds[0]:
            return {"name": self.name, "skipped": f"{self.peer.split()[0]} is not installed"}
        ours = [r[self.subject][self.figure] for r in rounds]
        result = {"name": self.name, "figure": self.figure, "ours": statistics.median(ours)}
        judged = result["ours"]
        if self.peer:
            theirs = [r[self.peer][self.figure] for r in rounds]
            judged = statistics.median(a / b for a, b in zip(ours, theirs))
            result |= {"peer": self.peer, "theirs": statistics.median(theirs), "ratio": round(judged, 3)}
        if self.at_most is not None:
            result |= {"at_most": self.at_most, "reached": judged <= self.at_most}
        if self.at_least is not None:
            result |= {"at_least": self.at_least, "reached": judged >= self.at_least}
        return result


ROWS = [
    Row("ask-1-p50", "p50_us", "ask", "echo thread", at_most=1.1),
    Row("ask-1-p50-polling", "p50_us", "ask", "echo polling"),
    Row("ask-1-p50-parking", "p50_us", "ask", "echo parking"),
    Row("ask-1-p50-redis", "p50_us", "ask", "redis 1", at_most=1.0),
    Row("ask-1-p99", "p99_us", "ask", "echo raw", at_most=2.0),
    Row("flooded-p99", "p99_us", "ask flooded", "echo flooded", at_most=2.0),
    Row("ask-256", "per_second", "asks", "redis 256", at_least=4.0),
    Row("send", "per_second", "sends", "redis 256", at_least=5.2),
    Row("actor-ask", "per_second", "actor asks", at_least=500_000),
    Row("actor-send", "per_second", "actor sends", at_least=2_000_000),
    Row("transfer", "transfer_us", "transfer 64M", at_most=50),
    Row("transfer-size", "transfer_us", "transfer 64M", "transfer 1K", at_most=1.5),
    *(Row(f"pool-{routing}", "per_second", f"pool {routing}", at_least=1_000_000) for routing in pools.ROUTINGS),
    Row("pool-crowd", "per_second", "pool crowd", "redis crowd", at_least=3.0),
    Row("pool-work", "took_ms", "work 2 workers", "work 1 worker", at_most=0.55),
    Row("pool-shared-p99", "p99_us", "short shared", "short alone", at_most=2.0),
    Row("pool-in-turn-p99", "p99_us", "short in turn", "short alone in turn"),
    Row("call-lua", "p50_us", "call lua", "ask echo", at_most=1.5),
    Row("call-python", "per_second", "call python", "python bare", at_least=0.75),
    Row("call-python-1", "p50_us", "call python 1", "python bare 1", at_most=3.5),
    Row("tasks-beanstalkd", "per_second", "tasks", "beanstalkd tasks", at_least=1.0),
    Row("tasks-redis", "per_second", "tasks", "redis tasks", at_least=1.0),
    Row("spawn", "spawn_us", "crowd", "threads", at_most=1.5),
    Row("memory", "each_kib", "crowd", "threads", at_most=1.4),
    Row("idle", "wakes", "idle", at_most=0),
]


def asks_beside_a_flood(socket, counter, slow):
    """The flood has to be one: the mailbox is full for all of it, since its actor takes a message in a millisecond."""
    result = measured("flooded", "ask", FLOODED_TRIPS, socket, counter, slow)
    with harness.Client(socket) as client:
        info = client.request("info", slow)
    if info["mailbox"] < SLOW_MAILBOX / 2:
        raise RuntimeError(f"{info['actor']} was to be flooded, and is not")
    return result


def one_round(socket, counter, slow, driver, mover, pooled, calls, kept, redis):
    """Everything once; the names are those that rows speak of."""
    results = {
        "echo raw": measured("echo", "raw", ROUND_TRIPS),
        "echo thread": measured("echo", "thread", ROUND_TRIPS),
        "ask": measured("ask", socket, counter, ROUND_TRIPS),
        "echo polling": measured("echo", "polling", ROUND_TRIPS),
        "echo parking": measured("echo", "parking", ROUND_TRIPS),
        "echo flooded": measured("flooded", "echo", FLOODED_TRIPS),
        "ask flooded": asks_beside_a_flood(socket, counter, slow),
        "asks": measured("asks", socket, counter, 256, ASKS),
        "sends": measured("sends", socket, counter, SENDS),
        "actor asks": driver.asks(),
        "actor sends": driver.sends(),
        "transfer 1K": mover.transfers(1 << 10),
        "transfer 64M": mover.transfers(64 << 20),
        **pooled.measure(),
        "threads": measured("threads", actors.CROWD),
        "crowd": actors.crowd(PATH),
        **calls.one_round(),
        **kept.one_round(),
    }
    if redis:
        results["redis 1"] = redis.fcall(ROUND_TRIPS, 1)
        results["redis 256"] = redis.fcall(REDIS_CALLS, 256)
        results["redis crowd"] = redis.fcall(REDIS_CALLS, 32, connections=50)
    return results


def measure(rounds):
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        redis = None
        if shutil.which("redis-server") and shutil.which("redis-benchmark"):
            redis = stack.enter_context(contextlib.closing(Redis(directory)))
        daemon = stack.enter_context(harness.Daemon(path=PATH))
        spawn = [str(BUILD / "troupe"), "-S", daemon.socket, "spawn", "counter"]
        counter = subprocess.run(spawn, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        client = stack.enter_context(harness.Client(daemon.socket))
        slow = client.request("spawn", "sleeper", [], {"async": 1, "mailbox": SLOW_MAILBOX})
        driver, mover, pooled = actors.Driver(daemon), actors.Mover(daemon), pools.Pools(daemon, measured)
        calls = stack.enter_context(contextlib.closing(components.Calls(PATH)))
        kept = stack.enter_context(contextlib.closing(tasks.Tasks(measured)))
        idle = actors.idle(PATH)  # takes long, and does not vary
        return [one_round(daemon.socket, counter, slow, driver, mover, pooled, calls, kept, redis) | {"idle": idle} for _ in
                range(rounds)]


UNITS = {"us": ("us", 1), "ms": ("ms", 1), "kib": ("KiB", 1), "second": ("/s", 0), "wakes": ("", 0)}


def print_table(rows):
    print(f"{'row':18} {'troupe':>13} {'peer':>13}  {'beside':14} {'ratio':>6}  to reach")
    for row in rows:
        if "skipped" in row:
            print(f"{row['name']:18} skipped: {row['skipped']}")
            continue
        unit, digits = UNITS[row["figure"].rsplit("_", 1)[-1]]
        ours, theirs = (f"{row[side]:,.{digits}f}{unit}" if side in row else "" for side in ("ours", "theirs"))
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        reach = " ".join(f"{name.replace('_', ' ')} {row[name]:,}" for name in ("at_most", "at_least") if name in row)
        print(f"{row['name']:18} {ours:>13} {theirs:>13}  {row.get('peer', ''):14} "
              f"{ratio:>6}  {reach}{'' if row.get('reached', True) else '  NOT REACHED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    rounds = measure(arguments.rounds)
    rows = [row.judge(rounds) for row in ROWS]
    print_table(rows)
    if arguments.json:
        result = {"cpus": len(os.sched_getaffinity(0)), "rows": rows, "rounds": rounds}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
