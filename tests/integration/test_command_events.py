# SPDX-License-Identifier: Apache-2.0
"""`troupe events` and `troupe log`: what they subscribe to, what they print of it, and how they end."""

import json
import os
import pathlib
import queue
import select
import signal
import subprocess
import unittest

import msgpack

import harness
import scripted

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
TIME = "2026-11-30T20:51:10.9259Z"

# An event, and what people see of it.
LINES = [
    ("lifecycle", {"event": "started", "handle": "0d6a65fb", "name": "first", "actor": "w", "by": {"uid": 7, "pid": 77}},
     "20:51:10.925 started first[0d6a65fb] (uid 7, pid 77)\n"),
    ("lifecycle", {"event": "stopped", "handle": "0d6a65fb", "name": "first", "actor": "w"}, "20:51:10.925 stopped first[0d6a65fb]\n"),
    ("lifecycle", {"event": "killed", "handle": "0d6a65fb", "name": "first", "actor": "w", "by": {"uid": 7, "pid": 77},
                   "error": {"code": "killed", "message": "the actor was killed"}},
     "20:51:10.925 killed first[0d6a65fb] (uid 7, pid 77)\n"),
    ("lifecycle", {"event": "faulted", "handle": "0d6a65fb", "name": "first", "actor": "w",
                   "error": {"code": "fault", "message": "w.lua:6: it broke", "traceback": "stack traceback: ..."}},
     "20:51:10.925 faulted first[0d6a65fb]: fault: w.lua:6: it broke\n"),
    ("lifecycle", {"event": "slow", "handle": "0d6a65fb", "name": "first", "actor": "w", "handler": "spin", "running": 5012,
                   "traceback": "stack traceback:\n\tw.lua:7"},
     "20:51:10.925 slow first[0d6a65fb]: spin has been running for 5.012 s\n    stack traceback:\n    \tw.lua:7\n"),
    ("lifecycle", {"event": "slow", "handle": "0d6a65fb", "name": "first", "actor": "w", "running": 5012},
     "20:51:10.925 slow first[0d6a65fb]: its code has been running for 5.012 s\n"),
    ("lifecycle", {"event": "slot-given-up", "handle": "8d6a65fb", "name": "crew", "actor": "w", "slot": "w-3",
                   "error": {"code": "fault", "message": "no"}},
     "20:51:10.925 slot-given-up crew[8d6a65fb] slot w-3: fault: no\n"),
    ("refused", {"code": "mailbox-full", "message": "the mailbox is full", "target": "0d6a65fb", "handle": "0d6a65fb", "name": "first",
                 "actor": "w", "handler": "bump", "by": {"uid": 7}},
     "20:51:10.925 refused first[0d6a65fb].bump: mailbox-full: the mailbox is full (uid 7)\n"),
    ("refused", {"code": "not-found", "message": "nobody", "target": "nobody", "handler": "h", "method": "send", "by": {"uid": 7}},
     "20:51:10.925 refused nobody.h: not-found: nobody (uid 7)\n"),
    ("refused", {"code": "bad-request", "message": "no", "method": "find", "by": {"uid": 7}, "dropped": 12},
     "20:51:10.925 refused find: bad-request: no (uid 7)\n    (12 before this were left out)\n"),
    ("log", {"level": "warning", "actor": "first", "handle": "0d6a65fb", "message": "watch\nout"},
     "20:51:10.925 log warning: first[0d6a65fb]: watch\n    out\n"),
    ("lifecycle", {"event": "\x1b[31m", "handle": "0d6a65fb", "name": "n\u009b\x07", "actor": "w"},
     "20:51:10.925 \\x1b[31m n\\xc2\\x9b\\x07[0d6a65fb]\n"),
    ("task", {"unheard": "of"}, "20:51:10.925 task \n"),
    ("task", {"event": "accepted", "id": "0a", "component": "media.streams", "operation": "reopen", "attempt": 0},
     "20:51:10.925 accepted media.streams.reopen 0a\n"),
    ("task", {"event": "started", "id": "0a", "component": "media.streams", "operation": "reopen", "attempt": 1},
     "20:51:10.925 started media.streams.reopen 0a, attempt 1\n"),
    ("task", {"event": "parked", "id": "0a", "component": "c\x1b", "operation": "o", "attempt": 16,
              "cause": {"code": "fault", "message": "it broke", "ran": "yes"}, "dropped": 2},
     "20:51:10.925 parked c\\x1b.o 0a: fault: it broke, attempt 16\n    (2 before this were left out)\n"),
    ("trace", {"trace": "4bf92f3577b34da6a3ce929d0e0e4736", "span": "00f067aa0ba902b7", "component": "media.streams", "operation": "create",
               "instance": "left", "caller": {"uid": 7, "pid": 77}, "began": TIME, "queued": 0.012, "run": 1.2044, "outcome": "ok",
               "attempt": 1},
     "20:51:10.925 trace media.streams.create[left]: ok, 0.012 ms queued, 1.204 ms run (uid 7, pid 77)\n"),
    ("trace", {"trace": "4bf92f3577b34da6a3ce929d0e0e4736", "span": "00f067aa0ba902b7", "parent": "00f067aa0ba902b8", "component": "c\x1b",
               "operation": "o", "caller": {"uid": 7}, "began": TIME, "queued": 5000, "run": 0, "outcome": "abandoned",
               "message": "the call's time has passed", "attempt": 3, "new": 1},
     "20:51:10.925 trace c\\x1b.o: abandoned: the call's time has passed, 5000.000 ms queued, 0.000 ms run, attempt 3 (uid 7)\n"),
]
LOG_LINES = [
    ({"level": "info", "message": "ready"}, "20:51:10.925 info: ready\n"),
    ({"level": "error", "actor": "first", "handle": "0d6a65fb", "message": b"a\xffb \xc3\xa9", "trace": "t1", "peer_uid": 7, "peer_pid": 77},
     "20:51:10.925 error: first[0d6a65fb]: a\\xffb \u00e9 (uid 7, pid 77) (trace t1)\n"),
    ({"level": "info", "handle": "0d6a65fb", "message": "x"}, "20:51:10.925 info: [0d6a65fb]: x\n"),
]


class Commands(unittest.TestCase):
    def run_command(self, path, *words, stdout=subprocess.PIPE):
        command = subprocess.Popen([str(BUILD / "troupe"), "-S", path, *words], stdin=subprocess.DEVNULL, stdout=stdout,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"})
        self.addCleanup(command.wait)
        if command.stdout:
            self.addCleanup(command.stdout.close)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.kill)
        return command


class Following(Commands):
    """Against a daemon that says what the test wants."""

    def start(self, *words, topics, answer=None, **options):
        """Runs the command until it has subscribed to these topics, and was answered."""
        answered = queue.Queue()

        def on(server, method, params, reply):
            reply(answer)
            answered.put([method, params])

        self.server = scripted.Server(on)
        self.addCleanup(self.server.__exit__, None, None, None)
        command = self.run_command(self.server.socket, *words, **options)
        self.assertEqual([answered.get(timeout=scripted.TIMEOUT_SECONDS) for _ in topics], [["subscribe", [topic]] for topic in topics])
        return command

    def say(self, topic, event, **more):
        self.server.connections[0].sendall(msgpack.packb([2, "event", [topic, {"time": TIME, **event, **more}]]))

    def read(self, command, text):
        """Reads just so much, while the command goes on."""
        self.assertEqual("".join(command.stdout.readline() for _ in range(text.count("\n"))), text)

    def interrupt(self, command, number=signal.SIGINT):
        command.send_signal(number)
        self.assertEqual((*command.communicate(timeout=scripted.TIMEOUT_SECONDS), command.returncode), ("", "", 128 + number))

    def test_events_for_people_each_at_once(self):
        command = self.start("events", topics=["lifecycle", "refused", "trace", "task"])
        for topic, event, line in LINES:
            with self.subTest(line):
                self.say(topic, event)
                if topic != "log":
                    self.read(command, line)
        self.interrupt(command)

    def test_topics_of_ones_own_choosing(self):
        command = self.start("events", "log", "lifecycle", topics=["log", "lifecycle"])
        for topic, event, line in LINES:
            self.say(topic, event)
            if topic in ("log", "lifecycle"):
                self.read(command, line)
        self.interrupt(command, signal.SIGTERM)

    def test_events_for_programs(self):
        command = self.start("-j", "events", "refused", "lifecycle", topics=["refused", "lifecycle"])
        for topic, event, _ in LINES:
            if topic in ("refused", "lifecycle"):
                self.say(topic, event)
                told = {"topic": topic, "time": TIME, **event}
                self.read(command, json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n")
        self.server.connections[0].sendall(msgpack.packb([2, "event", ["refused", {}]]))
        self.read(command, '{"topic":"refused"}\n')
        self.interrupt(command)

    def test_the_log(self):
        command = self.start("log", topics=["log"])
        for event, line in LOG_LINES:
            self.say("log", event)
            self.read(command, line)
        self.interrupt(command)
        command = self.start("log", "-j", topics=["log"])
        self.say("log", LOG_LINES[0][0])
        self.read(command, '{"time":"%s","level":"info","message":"ready"}\n' % TIME)
        self.interrupt(command)

    def test_calls(self):
        command = self.start("trace", topics=["trace"])
        for topic, event, line in LINES:
            if topic == "trace":
                self.say("trace", event)
                self.read(command, line.replace(" trace ", " ").replace("\n", " (trace 4bf92f3577b34da6a3ce929d0e0e4736)\n"))
        self.interrupt(command)
        command = self.start("trace", "-j", topics=["trace"])
        self.say("trace", {"run": 1.5})
        self.read(command, '{"time":"%s","run":1.5}\n' % TIME)
        self.interrupt(command)

    def test_it_ends_when_the_daemon_does(self):
        command = self.start("log", topics=["log"])
        self.say("log", LOG_LINES[0][0])
        self.server.connections[0].shutdown(2)
        out, error = command.communicate(timeout=scripted.TIMEOUT_SECONDS)
        self.assertEqual((out, command.returncode), (LOG_LINES[0][1], 3))
        self.assertEqual(error, f"troupe: log: disconnected: the connection to the daemon at {self.server.socket} broke\n")

    def test_it_ends_when_nobody_reads_it(self):
        command = self.start("log", topics=["log"])
        command.stdout.close()
        self.say("log", LOG_LINES[0][0])
        self.assertEqual(command.wait(scripted.TIMEOUT_SECONDS), -signal.SIGPIPE)

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            command = self.start("log", topics=["log"], stdout=full)
        self.say("log", LOG_LINES[0][0])
        error = command.communicate(timeout=scripted.TIMEOUT_SECONDS)[1]
        self.assertEqual((command.returncode, error), (1, "troupe: log: No space left on device\n"))

    def test_a_refusal_ends_it(self):
        command = self.start("events", "log", topics=["log"], answer=scripted.Error("denied", "not you"))
        out, error = command.communicate(timeout=scripted.TIMEOUT_SECONDS)
        self.assertEqual((out, error, command.returncode), ("", "troupe: events: denied: not you\n", 5))

    def test_what_is_no_topic_is_a_mistake_of_usage(self):
        for words in (["events", "weather"], ["events", "lifecycle", "weather"], ["log", "lifecycle"], ["events", *["log"] * 6]):
            with self.subTest(words):
                command = self.run_command("/nowhere", *words)
                out, error = command.communicate(timeout=scripted.TIMEOUT_SECONDS)
                self.assertEqual((out, command.returncode), ("", 2))
                self.assertIn("usage: troupe " + words[0], error)


def span(number, parent=None, **more):
    return {"trace": "t", "span": f"{number:016x}", **({"parent": f"{parent:016x}"} if parent else {}), "component": "c", "operation": f"o{number}",
            "caller": {"uid": 7}, "began": TIME, "queued": 0, "run": 1, "outcome": "ok", "attempt": 1, **more}


class OneTrace(Commands):
    ID = "4bf92f3577b34da6a3ce929d0e0e4736"

    def trace(self, answer, *options):
        def on(server, method, params, reply):
            reply(answer)

        with scripted.Server(on) as server:
            command = self.run_command(server.socket, *options, "trace", self.ID)
            out, error = command.communicate(timeout=scripted.TIMEOUT_SECONDS)
            self.assertEqual(server.tell(), ["trace", [{"id": self.ID}]])
        return command.returncode, out, error

    def tree(self, *spans):
        code, out, error = self.trace(spans)
        self.assertEqual((code, error), (0, ""))
        lines = out.splitlines()
        for line in lines:
            self.assertRegex(line, r"^20:51:10\.925 ( {2})*c\.o\d+: ok, 0\.000 ms queued, 1\.000 ms run \(uid 7\)$")
        return [line[13:].split(":")[0] for line in lines]

    def test_who_was_called_stands_below(self):
        self.assertEqual(self.tree(span(1), span(2, 1), span(3, 2), span(4, 1), span(5)), ["c.o1", "  c.o2", "    c.o3", "  c.o4", "c.o5"])

    def test_whose_caller_is_not_there_stands_at_the_left(self):
        self.assertEqual(self.tree(span(2, 99), span(3, 2)), ["c.o2", "  c.o3"])
        # however its clock may have it
        self.assertEqual(self.tree(span(2, 1), span(1)), ["c.o1", "  c.o2"])

    def test_what_makes_no_tree_is_printed_all_the_same(self):
        self.assertEqual(self.tree(span(1, 2), span(2, 1), span(3, 3)), ["c.o3", "c.o1", "  c.o2"])
        deep = self.tree(*(span(i, i - 1) for i in range(1, 200)))
        self.assertEqual(sorted(int(line.strip()[3:]) for line in deep), list(range(1, 200)))

    def test_for_programs_it_is_one_array(self):
        spans = [span(1), span(2, 1)]
        code, out, error = self.trace(spans, "-j")
        self.assertEqual((code, error), (0, ""))
        self.assertEqual(out, json.dumps(spans, separators=(",", ":")) + "\n")

    def test_there_is_none(self):
        for options in ([], ["-j"]):
            self.assertEqual(self.trace([], *options), (4, "", "troupe: trace: not-found: no call of this trace is known here: "
                                                               "it may have ended too long ago, or not yet\n"))

    def test_what_is_wrong_is_told(self):
        self.assertEqual(self.trace(scripted.Error("bad-request", "no id")), (2, "", "troupe: trace: bad-request: no id\n"))
        code, out, error = self.trace(7)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("troupe: trace: ", error)


class WithDaemon(Commands):
    def setUp(self):
        self.daemon = harness.Daemon(files={"w.lua": 'local W = require "troupe".actor "W"\n'
                                                     'function W.on:log(text) require "troupe".log("error", text) end\n'})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def follow(self, *words, happen):
        """Has something happen again and again until the command has told of it, and answers what it printed."""
        command = self.run_command(self.daemon.socket, *words)
        while not select.select([command.stdout], [], [], 0.01)[0]:
            happen()
        return command, command.stdout.readline()

    def test_events_and_log_of_a_daemon(self):
        actor = self.client.request("spawn", "w", [], {"name": "writer"})
        command, line = self.follow("-j", "events", "refused", happen=lambda: self.client.notify("send", actor, "nothing", []))
        self.assertEqual({key: json.loads(line)[key] for key in ("topic", "code", "target", "name", "handler")},
                         {"topic": "refused", "code": "no-such-handler", "target": actor[6:14], "name": "writer", "handler": "nothing"})
        command.send_signal(signal.SIGINT)
        self.assertEqual(command.wait(harness.TIMEOUT_SECONDS), 130)
        command, line = self.follow("log", happen=lambda: self.client.request("ask", actor, "log", ["here it is"]))
        self.assertRegex(line, rf"^\d\d:\d\d:\d\d\.\d\d\d error: writer\[{actor[6:14]}\]: here it is\n$")
        self.client.request("shutdown")
        self.assertEqual(command.wait(harness.TIMEOUT_SECONDS), 3)


if __name__ == "__main__":
    unittest.main()
