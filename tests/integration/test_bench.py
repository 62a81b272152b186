# SPDX-License-Identifier: Apache-2.0
"""troupe bench: what it asks, what it measures, and what ends it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import harness
import scripted

TROUPE = str(pathlib.Path(os.environ["TROUPE_BUILD"]) / "troupe")

ACTORS = {
    "counter.lua": """
        local Counter = require "troupe".actor "Counter"
        function Counter:init() self.n = 0 end
        function Counter.on:bump(by, last) self.n = self.n + by  self.last = last end
        function Counter.on:state() return { self.n, self.last } end
        function Counter.on:fail_at(n)
          self.n = self.n + 1
          if self.n == n then error("that is enough", 0) end
        end
    """,
}

QUANTILES = ["p50", "p90", "p99", "p99.9", "max"]


def start(socket, *words):
    return subprocess.Popen([TROUPE, "-S", socket, "bench", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=harness.TIMEOUT_SECONDS)
    return process.returncode, out, err


def bench(socket, *words):
    return finish(start(socket, *words))


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = harness.Daemon(files=ACTORS)
        cls.addClassCleanup(cls.daemon.close)

    def setUp(self):
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def done(self, *words):
        code, out, err = bench(self.daemon.socket, *words)
        self.assertEqual((code, err), (0, ""))
        return out

    def is_sound(self, found, answers, outstanding):
        """What is measured can be."""
        self.assertEqual((found["answers"], found["outstanding"]), (answers, outstanding))
        self.assertEqual(list(found["latency_us"]), QUANTILES)
        times = list(found["latency_us"].values())
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertLessEqual(times[-1], found["seconds"] * 1e6 + 1e-6)
        self.assertAlmostEqual(found["per_second"] * found["seconds"], answers, places=3)
        # so many at a time cannot be more than that
        self.assertLessEqual(found["per_second"] * times[0] * 1e-6, 2 * outstanding + 1e-6)
        bars = found["histogram"]
        self.assertEqual(sum(bar["count"] for bar in bars), answers)
        self.assertTrue(bars[0]["count"] and bars[-1]["count"])
        self.assertTrue(all(before["to_us"] == after["from_us"] for before, after in zip(bars, bars[1:])))
        self.assertTrue(bars[-1]["from_us"] <= times[-1] < bars[-1]["to_us"], (bars[-1], times))

    def test_ping(self):
        found = json.loads(self.done("-j", "-n", 500))
        self.assertEqual(found["operation"], "ping")
        self.assertNotIn("target", found)
        self.is_sound(found, 500, 1)
        self.assertEqual(self.client.request("list"), [])

    def test_many_at_a_time(self):
        self.is_sound(json.loads(self.done("-j", "-n", 5000, "-P", 64)), 5000, 64)
        self.is_sound(json.loads(self.done("-j", "-n", 3, "-P", 64)), 3, 64)

    def test_an_actor_is_asked_as_often_as_was_said(self):
        counter = self.client.request("spawn", "counter", [], {"publish": "c"})
        found = json.loads(self.done("-n", 777, "-P", 10, "-j", "c", "bump", 2, "-s", "5"))
        self.assertEqual((found["operation"], found["target"], found["handler"]), ("ask", "c", "bump"))
        self.is_sound(found, 777, 10)
        self.assertEqual(self.client.request("ask", counter, "state", []), [2 * 777, "5"])
        self.client.request("done", counter) if self.client.request("stop", counter) else None

    def test_for_people(self):
        lines = self.done("-n", 300, "-P", 2).splitlines()
        self.assertRegex(lines[0], r"\Aping: 300 answers in \d+\.\d{3} s, \d+ a second, 2 outstanding\Z")
        self.assertRegex(lines[2], r"\Ap50 \S+s   p90 \S+s   p99 \S+s   p99\.9 \S+s   max \S+s\Z")
        counts = [re.fullmatch(r" *[\d.]+[num]?s - +[\d.]+[num]?s \|(#*)\.?(?: (\d+))?", line).groups() for line in lines[4:]]
        self.assertEqual(sum(int(count or 0) for _, count in counts), 300)
        self.assertEqual(max(len(bar) for bar, _ in counts), 50)

    def test_what_fails_says_what_was_measured(self):
        self.client.request("spawn", "counter", [], {"publish": "failing"})
        code, out, err = bench(self.daemon.socket, "-j", "-n", 1000, "failing", "fail_at", 100)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"\Atroupe: bench: fault: .*that is enough")
        self.is_sound(json.loads(out), 99, 1)
        code, out, err = bench(self.daemon.socket, "nobody.here", "x")
        self.assertEqual((code, out), (4, ""))
        self.assertRegex(err, r"\Atroupe: bench: not-found: ")
        found = json.loads(bench(self.daemon.socket, "-j", "nobody.here", "x")[1])
        self.assertEqual((found["answers"], found["latency_us"], found["histogram"]), (0, dict.fromkeys(QUANTILES), []))

    def test_usage(self):
        for words in ["x"], ["-n", 0], ["-n", "10000001"], ["-P", 65537], ["-P", "x"], ["c", "x", "{"]:
            code, out, err = bench("/nonexistent", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertRegex(err, r"\Atroupe: bench: ")
        self.assertEqual(bench("/nonexistent")[:2], (3, ""))


class Ended(unittest.TestCase):
    """By what is not an answer, after five of them."""

    def after_five(self, then):
        """`then` is called once the command has had five answers and waits for the sixth."""
        pings = []

        def on(server, method, params, answer):
            pings.append(method)
            # one to see whether it is there, and five
            if len(pings) <= 6:
                answer("pong")
            else:
                then(server)
        return scripted.Server(on)

    def ended(self, *words, then):
        process = None

        def on_sixth(server):
            server.cancelled.put("now")
        with self.after_five(on_sixth) as server:
            process = start(server.socket, *words)
            self.assertEqual(server.cancelled.get(timeout=scripted.TIMEOUT_SECONDS), "now")
            then(process, server)
            return finish(process), server

    def test_an_interrupt(self):
        (code, out, err), _ = self.ended("-j", then=lambda process, server: process.send_signal(signal.SIGINT))
        self.assertEqual((code, err), (130, ""))
        self.assertEqual(json.loads(out)["answers"], 5)
        (code, out, err), _ = self.ended(then=lambda process, server: process.send_signal(signal.SIGTERM))
        self.assertEqual((code, err), (143, ""))
        self.assertTrue(out.startswith("ping: 5 answers in "), out)

    def test_the_daemon_goes_away(self):
        (code, out, err), server = self.ended("-j", then=lambda process, server: server.connections[0].shutdown(2))
        self.assertEqual((code, err), (3, f"troupe: bench: disconnected: the connection to the daemon at {server.socket} broke\n"))
        self.assertEqual(json.loads(out)["answers"], 5)


if __name__ == "__main__":
    unittest.main()
