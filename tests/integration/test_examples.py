# SPDX-License-Identifier: Apache-2.0
"""The examples print what the documentation says: as programs, through the troupe command, and through a client of raw frames."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import msgpack

import harness

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
EXAMPLES = SOURCE / "examples"

# Between the starts of two asks that were sent together, on a machine that is busy otherwise, no more than this passes.
SLOW_MS = 1000
UNKNOWN_GLOBAL = ("the global `limit` was never set: values set in main exist in the program alone and belong in a module or in the "
                  "actor's fields")
TEXT = "the cat, the dog and the bird\nA dog is a dog\n\nno cat\n"


def run(*command, **options):
    """What a command prints; it must succeed, and say nothing on standard error."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=harness.TIMEOUT_SECONDS, **options)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{command} exited {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def counted(text):
    """The words of a text as [[word, count], …], the commonest first."""
    counts = collections.Counter(re.findall(r"[a-z]+", text.lower()))
    return [[word, count] for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


class AsPrograms(unittest.TestCase):
    def program(self, name, *arguments):
        return run(BUILD / "trouped", "run", EXAMPLES / f"{name}.lua", *arguments)

    def test_counter(self):
        self.assertEqual(self.program("counter"), "3\n")

    def test_squarers(self):
        self.assertEqual(self.program("squarers"), "1, 4, 9, 16\n")

    def test_words(self):
        self.assertEqual(self.program("words"), "four lines are 17 words, by the workers w-1 w-2\n")

    def test_cursors(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("one\n\nthree\n")
            file.flush()
            self.assertEqual(self.program("cursors", file.name), "1\tone\n2\t\n3\tthree\n3 lines, and then: NOT_HELD\n")

    def test_dpkglog(self):
        self.assertEqual(self.program("dpkglog"), "upgrade of perl-base from 5.36.0-6 to 5.36.0-7\n")

    def test_ledger(self):
        self.assertEqual(self.program("ledger"), "17\npetty cash: 2 entries\n")

    def test_slow(self):
        self.assertEqual(self.program("slow"), "start a, start b, end a, end b\n")

    def test_registry(self):
        self.assertEqual(self.program("registry"), "512 1 0 1 1\n")

    def test_boss(self):
        self.assertEqual(self.program("boss"), "1\n")

    def test_mover(self):
        self.assertEqual(self.program("mover"), "true 11 12\n")

    def test_sizer(self):
        self.assertEqual(self.program("sizer"), "5 5\n7 0\n")

    def test_sink(self):
        self.assertEqual(self.program("sink"), "a message may not carry a function: `handlers.onDone` is a function\n")

    def test_brittle(self):
        self.assertEqual(self.program("brittle"), "asked: it broke\ndone: it broke\n")

    def test_guard(self):
        self.assertRegex(self.program("guard"), rf"\A\S*/guard\.lua:7: {re.escape(UNKNOWN_GLOBAL)}\n\Z")

    def test_wordcount(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(TEXT)
            file.flush()
            printed = self.program("wordcount", file.name, 3)
        self.assertEqual([[line.split()[0], int(line.split()[1])] for line in printed.splitlines()], counted(TEXT)[:3])

    def test_wordcount_of_more_lines_than_a_mailbox_holds(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("one two\n" * 100_000)
            file.flush()
            self.assertEqual(self.program("wordcount", file.name, 1).split(), ["one", "100000"])


class ThroughTheCommand(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES])
        self.addCleanup(self.daemon.close)

    def troupe(self, *arguments, **options):
        return run(BUILD / "troupe", "-S", self.daemon.socket, *arguments, **options)

    def spawn(self, *arguments):
        return self.troupe("spawn", *arguments).strip()

    def test_counter(self):
        counter = self.spawn("counter")
        self.assertRegex(counter, r"^actor:[0-9a-f]{32}$")
        self.assertEqual(self.troupe("send", counter, "bump", 2), "")
        self.assertEqual(self.troupe("send", counter, "bump"), "")
        self.assertEqual(self.troupe("ask", counter, "total"), "3\n")

    def test_squarers(self):
        answers = [self.troupe("ask", self.spawn("squarers"), "square", i).strip() for i in range(1, 5)]
        self.assertEqual(", ".join(answers), "1, 4, 9, 16")

    def test_ledger(self):
        self.spawn("ledger", "--publish", "petty", "petty cash")
        self.troupe("send", "petty", "enter", 20, "float")
        self.troupe("send", "petty", "enter", -3, "stamps")
        self.assertEqual(self.troupe("ask", "petty", "balance"), "17\n")
        self.assertEqual(self.troupe("-j", "ask", "petty", "summary"), '"petty cash: 2 entries"\n')

    def test_slow(self):
        slow = self.spawn("slow", SLOW_MS)
        self.assertEqual(self.troupe("ask", slow, "work", "--lines", "-P", 2, input="a\nb\n"), "null\nnull\n")
        self.assertEqual(self.troupe("-j", "ask", slow, "history"), '"start a, start b, end a, end b"\n')

    def test_wordcount(self):
        self.spawn("wordcount", "--publish", "words")
        self.troupe("send", "words", "line", "--lines", input=TEXT)
        self.assertEqual(json.loads(self.troupe("-j", "ask", "words", "top", 3)), counted(TEXT)[:3])

    def test_client(self):
        lines = (EXAMPLES / "client.py").read_text().splitlines()
        self.assertLessEqual(len(lines), 25)
        environment = dict(os.environ, TROUPE_SOCKET=self.daemon.socket)
        self.assertEqual(run(sys.executable, EXAMPLES / "client.py", env=environment), "3\n")


class InC(unittest.TestCase):
    """The programs that are written with libtroupe."""

    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES])
        self.addCleanup(self.daemon.close)
        self.environment = dict(os.environ, TROUPE_SOCKET=self.daemon.socket)

    def troupe(self, *arguments, **options):
        return run(BUILD / "troupe", "-S", self.daemon.socket, *arguments, **options)

    def words(self, text):
        return run(BUILD / "examples/words", input=text, env=self.environment)

    def test_words(self):
        self.assertEqual(self.words(TEXT), "".join(f"{word} {count}\n" for word, count in counted(TEXT)[:3]))
        self.assertEqual(self.words("no newline"), "newline 1\nno 1\n")
        self.assertEqual(self.words(""), "")

    def test_words_of_more_lines_than_may_be_under_way(self):
        self.assertEqual(self.words("one two two\n" * 100_000 + "x" * 200_000), "two 200000\none 100000\n" + "x" * 65536 + " 3\n")

    def test_words_says_what_is_wrong(self):
        environment = dict(self.environment, TROUPE_SOCKET=self.daemon.socket + "-none")
        done = subprocess.run([BUILD / "examples/words"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "words: no daemon: No such file or directory\n"))

    def test_door(self):
        door = subprocess.Popen([BUILD / "examples/door"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.addCleanup(door.kill)
        self.assertEqual(door.stdout.readline(), "open\n")
        self.assertEqual(self.troupe("ask", "door", "knock", "anna"), '["come in","anna"]\n')
        refused = subprocess.run([BUILD / "troupe", "-S", self.daemon.socket, "ask", "door", "dance"], capture_output=True, text=True)
        self.assertEqual((refused.returncode, refused.stderr), (1, "troupe: ask: fault: this is a door: it can be knocked at\n"))
        self.daemon.kill()
        self.daemon.start_again()
        self.assertEqual(door.stdout.readline(), "open\n")
        self.assertEqual(self.troupe("ask", "door", "knock", "ben"), '["come in","ben"]\n')
        self.troupe("send", "door", "close")
        self.assertEqual(door.communicate(timeout=harness.TIMEOUT_SECONDS), ("", ""))
        self.assertEqual(door.returncode, 0)


class ThroughRawFrames(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES])
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def request(self, method, *params):
        return self.client.request(method, *params)

    def test_counter(self):
        counter = self.request("spawn", "counter", [])
        self.assertIsNone(self.request("send", counter, "bump", [2]))
        self.assertIsNone(self.request("send", counter, "bump", []))
        self.assertEqual(self.request("ask", counter, "total", []), 3)

    def test_squarers_asked_at_once(self):
        squarers = [self.request("spawn", "squarers", []) for _ in range(4)]
        asked = [self.client.start("ask", squarer, "square", [i + 1]) for i, squarer in enumerate(squarers)]
        self.assertEqual([self.client.finish(ask) for ask in asked], [1, 4, 9, 16])

    def test_ledger(self):
        ledger = self.request("spawn", "ledger", ["petty cash"])
        self.request("send", ledger, "enter", [20, "float"])
        self.request("send", ledger, "enter", [-3, "stamps"])
        self.assertEqual(self.request("ask", ledger, "balance", []), 17)
        self.assertEqual(self.request("ask", ledger, "summary", []), "petty cash: 2 entries")

    def test_slow(self):
        slow = self.request("spawn", "slow", [SLOW_MS])
        for ask in [self.client.start("ask", slow, "work", [name]) for name in ("a", "b")]:
            self.assertIsNone(self.client.finish(ask))
        self.assertEqual(self.request("ask", slow, "history", []), "start a, start b, end a, end b")

    def test_registry(self):
        first, second = (self.request("spawn", "registry", []) for _ in range(2))
        self.request("send", first, "add", ["a name"])
        self.assertEqual([self.request("ask", each, "count", []) for each in (first, second)], [1, 0])
        self.assertEqual([self.request("ask", each, "runs", []) for each in (first, second)], [1, 1])

    def test_boss(self):
        boss = self.request("spawn", "boss:Boss", [])
        self.assertEqual([self.request("ask", boss, "divide", [42, by]) for by in (3, 0, 7)], [14, None, 6])
        self.assertEqual(self.request("ask", boss, "replaced", []), 1)

    def test_mover(self):
        mover = self.request("spawn", "mover", [])
        with harness.Client(self.daemon.socket, values="typed") as typed:
            point = msgpack.ExtType(3, msgpack.packb(["mover:Point", {"x": 1, "y": 2}]))
            moved = typed.request("ask", mover, "move", [point, 10, 10])
            self.assertEqual((moved.code, msgpack.unpackb(moved.data)), (3, ["mover:Point", {"x": 11, "y": 12}]))
        self.assertEqual(self.request("ask", mover, "move", [point, 10, 10]), {"x": 11, "y": 12})

    def test_sizer(self):
        sizer = self.request("spawn", "sizer", [])
        self.assertEqual(self.request("ask", sizer, "size", [b"\0\1\2\3\4"]), 5)

    def test_sink(self):
        sink = self.request("spawn", "sink", [])
        self.assertEqual(self.request("ask", sink, "take", [{"name": "backup"}]), {"name": "backup"})

    def refusal(self, *request):
        with self.assertRaises(harness.Error) as refused:
            self.request(*request)
        return refused.exception

    def test_brittle(self):
        brittle = self.request("spawn", "brittle", [])
        asked = self.refusal("ask", brittle, "touch", [])
        self.assertEqual((asked.code, asked.message, asked.ran), ("fault", "it broke", "yes"))
        done = self.refusal("done", brittle)
        self.assertEqual((done.code, done.message), ("fault", "it broke"))

    def test_guard(self):
        fault = self.refusal("ask", self.request("spawn", "guard", []), "admits", [21])
        self.assertEqual(fault.code, "fault")
        # Lua shortens the path of a file in a deep folder
        self.assertRegex(fault.message, rf"\A\S*/guard\.lua:7: {re.escape(UNKNOWN_GLOBAL)}\Z")

    def test_wordcount(self):
        words = self.request("spawn", "wordcount", [])
        for line in TEXT.splitlines():
            self.request("send", words, "line", [line])
        self.assertEqual(self.request("ask", words, "top", [3]), counted(TEXT)[:3])


if __name__ == "__main__":
    unittest.main()
