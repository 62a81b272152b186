# SPDX-License-Identifier: Apache-2.0
"""The troupe command against the real daemon."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import harness

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])

ACTORS = {
    "echo.lua": """
        local troupe = require "troupe"
        local Echo = troupe.actor "Echo"
        function Echo.on:say(...) return ... end
        function Echo.on:count(...) return select("#", ...) end
        function Echo.on:kind(x) return math.type(x) or type(x) end
        function Echo.on:all(...) return {...} end
        function Echo.on:me() return troupe.me() end
        function Echo.on:message() return { troupe.me().say } end
        function Echo.on:binary() return "a\\0\\xff" end
        function Echo.on:fail(x) error(x, 0) end
        function Echo.on:burn() while true do end end
        function Echo.async:forever() troupe.await(troupe.sleep(3600000)) end
    """,
    "sink.lua": """
        local troupe = require "troupe"
        local Sink = troupe.actor "Sink"
        function Sink:init(fault_at) self.count, self.in_order, self.fault_at = 0, true, fault_at end
        function Sink.on:line(text)
          self.count = self.count + 1
          self.in_order = self.in_order and text == tostring(self.count)
          if self.count == self.fault_at then error("that is enough", 0) end
        end
        function Sink.on:pair(a, b) self.count = self.count + a * b end
        function Sink.on:busy(seconds)
          local began = os.clock()
          while os.clock() - began < seconds do end
        end
        function Sink.on:state() return { self.count, self.in_order } end
        function Sink.async:slow(text) troupe.await(troupe.sleep(1)) self.count = self.count + 1 end
    """,
    "broken.lua": "this is not Lua",
    "stillborn.lua": """
        local Stillborn = require "troupe".actor "Stillborn"
        function Stillborn:init() error "not today" end
    """,
}


class WithDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = harness.Daemon(files=ACTORS)
        cls.addClassCleanup(cls.daemon.close)

    def command(self, *words):
        return [str(BUILD / "troupe"), "-S", self.daemon.socket, *map(str, words)]

    def troupe(self, *words, **options):
        """(exit code, standard output, standard error)"""
        options = {"text": True, "timeout": harness.TIMEOUT_SECONDS, **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
                   **options}
        done = subprocess.run(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        return done.returncode, done.stdout, done.stderr

    def done(self, *words, **options):
        code, out, err = self.troupe(*words, **options)
        self.assertEqual((code, err), (0, "" if options.get("text", True) else b""))
        return out

    def fails(self, exit, code, *words, **options):
        """It exits so and says this code; its whole message."""
        got, out, err = self.troupe(*words, **options)
        self.assertEqual(got, exit, err)
        self.assertRegex(err, rf"\Atroupe: [a-z]+: {code}: .")
        return err

    def spawn(self, *words):
        handle = self.done("spawn", *words)
        self.assertRegex(handle, r"\Aactor:[0-9a-f]{32}\n\Z")
        return handle.strip()


class Values(WithDaemon):
    def setUp(self):
        self.echo = self.spawn("echo")

    def say(self, *words, **options):
        return self.done("ask", self.echo, "say", *words, **options)

    def test_they_come_back_as_they_went(self):
        for text in ("17", "-5", "9223372036854775807", "-9223372036854775808", "2.5", "3.0", "1e+300", "-0.0", "true", "null",
                     '[1,[2,{"a":null}]]', '"ü\\n\\u0000"', '{"$bin":"AP8="}', '{"$float":"nan"}', '{"$float":"-inf"}', "[]", "{}"):
            self.assertEqual(self.say(text), text + "\n")

    def test_numbers_keep_their_kind(self):
        for text, kind in ("3", "integer"), ("3.0", "float"), ("1e2", "float"), ("007", "string"), ("-0", "integer"):
            self.assertEqual(self.done("-j", "ask", self.echo, "kind", text), f'"{kind}"\n')

    def test_strings_are_strings(self):
        self.assertEqual(self.done("ask", self.echo, "all", "-s", "5", "-s", "{x", "-s", "-s", "plain", "007", "+49", ".5", "a=b"),
                         '["5","{x","-s","plain","007","+49",".5","a=b"]\n')
        self.assertEqual(self.done("ask", self.echo, "count"), "0\n")
        self.assertEqual(self.done("ask", self.echo, "kind", "-s", ""), '"string"\n')

    def test_bytes(self):
        self.assertEqual(self.done("ask", self.echo, "binary"), '{"$bin":"YQD/"}\n')
        self.assertEqual(self.done("ask", "--raw", self.echo, "binary", text=False), b"a\0\xff")
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(range(256)) * 4000)
            file.flush()
            self.assertEqual(self.say("--bin", file.name, text=False)[:9], b'{"$bin":"')
            raw = self.done("ask", "--raw", self.echo, "say", "--bin", file.name, text=False)
            self.assertEqual(raw, bytes(range(256)) * 4000)

    def test_handles_and_messages(self):
        self.assertEqual(self.done("ask", self.echo, "me"), self.echo + "\n")
        self.assertEqual(self.done("ask", self.echo, "all", f'{{"$handle":"{self.echo}"}}'), f'[{{"$handle":"{self.echo}"}}]\n')
        self.assertEqual(self.say(f'{{"$handle":"{self.echo}"}}'), self.echo + "\n")
        self.assertEqual(self.done("ask", self.echo, "message"), f'[[{{"$handle":"{self.echo}"}},"say"]]\n')

    def test_what_nests_too_deep(self):
        self.fails(2, "not-sendable", "ask", self.echo, "say", "[" * 129 + "]" * 129)
        self.assertEqual(self.say("[" * 128 + "]" * 128), "[" * 128 + "]" * 128 + "\n")


class Failures(WithDaemon):
    def test_by_their_codes(self):
        echo = self.spawn("echo")
        self.fails(4, "not-found", "ask", "nobody.here", "say")
        self.fails(4, "not-found", "spawn", "no.such.module")
        self.fails(4, "load", "spawn", "broken")
        self.fails(1, "fault", "spawn", "stillborn")
        self.fails(4, "no-such-handler", "ask", echo, "nothing")
        self.fails(2, "bad-request", "ask", "a target with spaces", "x")
        self.fails(2, "bad-request", "spawn", "echo", "--publish", "/")
        self.fails(4, "not-running", "ask", "actor:" + "0" * 32, "say")
        self.fails(124, "timeout", "-t", "20ms", "ask", echo, "forever")
        self.fails(124, "timeout", "done", echo, "-t", 20)
        message = self.fails(1, "fault", "ask", echo, "fail", "it broke")
        self.assertIn("it broke", message.splitlines()[0])
        self.fails(4, "not-running", "ask", echo, "say")
        self.fails(1, "fault", "done", echo)

    def test_names(self):
        first, second = self.spawn("echo", "--publish", "names.echo"), self.spawn("echo")
        self.assertEqual(self.done("find", "names.echo"), first + "\n")
        self.fails(7, "taken", "publish", "names.echo", second)
        self.fails(7, "taken", "spawn", "echo", "--publish", "names.echo")
        self.assertEqual(self.spawn("echo", "--publish", "names.echo", "--if-absent"), first)
        self.assertEqual(self.done("unpublish", "names.echo"), "")
        self.fails(4, "not-found", "find", "names.echo")
        self.assertEqual(self.done("publish", "names.echo", second), "")
        self.assertEqual(self.done("ask", "names.echo", "me"), second + "\n")

    def test_stop_and_kill(self):
        echo, burning = self.spawn("echo"), self.spawn("echo")
        self.assertEqual(self.done("stop", echo), "")
        self.assertEqual(self.done("done", echo), "")
        self.done("send", burning, "burn")
        self.done("stop", burning, "--kill")
        self.fails(1, "killed", "done", burning)
        self.done("send", (late := self.spawn("echo")), "burn")
        self.done("stop", "--within", "10ms", late)
        self.fails(1, "killed", "done", late)

    def test_what_is_running(self):
        handle = self.spawn("echo", "--name", "look at me", "--publish", "look.at.me")
        rows = json.loads(self.done("ls", "-j"))
        row, = [row for row in rows if row["handle"] == handle]
        self.assertEqual((row["kind"], row["name"], row["published"], row["actor"]), ("actor", "look at me", "look.at.me", "echo:Echo"))
        self.assertRegex(self.done("ls", "actors"), rf"(?m)^{handle} +actor +look at me +look\.at\.me +\w+ +0 ")
        info = json.loads(self.done("info", "look.at.me", "-j"))
        self.assertEqual(info["handle"], handle)
        self.assertIn({"name": "forever", "async": True, "params": 0}, info["handlers"])
        self.assertRegex(self.done("info", handle), r"(?m)^mailbox_max +65536$")


class Interrupts(WithDaemon):
    def interrupted(self, process, number=signal.SIGINT):
        process.send_signal(number)
        out, err = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        return process.returncode, out, err

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), **{"stdin": subprocess.DEVNULL, **options}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def test_an_ask_is_taken_back(self):
        echo = self.spawn("echo")
        process = self.start("ask", echo, "forever")
        while json.loads(self.done("info", "-j", echo))["state"] != "waiting":
            pass
        code, out, err = self.interrupted(process)
        self.assertEqual((code, out), (130, ""))
        self.assertRegex(err, r"\Atroupe: ask: cancelled: ")

    def test_what_is_still_queued_never_runs(self):
        sink = self.spawn("sink")
        self.done("send", sink, "busy", 1)
        process = self.start("ask", sink, "line", "1")
        while json.loads(self.done("info", "-j", sink))["mailbox"] < 1:
            pass
        code, _, err = self.interrupted(process)
        self.assertEqual(code, 130, err)
        self.assertEqual(self.done("ask", sink, "state"), "[0,true]\n")

    def test_an_attached_actor_goes_with_the_command(self):
        process = self.start("spawn", "--attach", "echo")
        handle = process.stdout.readline().strip()
        self.assertEqual(self.done("ask", handle, "me"), handle + "\n")
        self.assertEqual(self.interrupted(process), (130, "", ""))
        self.assertEqual(self.done("done", handle), "")

    def test_an_attached_holder_of_the_name_stays(self):
        """It is not the command's, where another held the name."""
        handle = self.spawn("--publish", "held", "echo")
        process = self.start("spawn", "--attach", "--publish", "held", "--if-absent", "echo")
        self.assertEqual(process.stdout.readline().strip(), handle)
        self.assertEqual(self.interrupted(process), (130, "", ""))
        self.assertEqual(self.done("ask", handle, "me"), handle + "\n")
        self.done("stop", handle)

    def test_an_attached_actor_that_was_absent_goes(self):
        process = self.start("spawn", "--attach", "--publish", "absent", "--if-absent", "echo")
        handle = process.stdout.readline().strip()
        self.assertEqual(self.interrupted(process), (130, "", ""))
        self.assertEqual(self.done("done", handle), "")

    def test_a_detached_one_stays(self):
        handle = self.spawn("echo")
        self.assertEqual(self.done("ask", handle, "me"), handle + "\n")


class Lines(WithDaemon):
    def state(self, sink):
        # A mailbox of one has no room for the question while the last line is in it.
        while json.loads(self.done("info", sink, "-j"))["mailbox"]:
            pass
        return json.loads(self.done("ask", sink, "state"))

    def send_numbers(self, count, *words):
        sink = self.spawn("sink", *words)
        self.done("send", sink, "line", "--lines", input="".join(f"{i}\n" for i in range(1, count + 1)))
        self.assertEqual(self.state(sink), [count, True])

    def test_more_than_a_mailbox_holds_in_order(self):
        self.send_numbers(200_000)

    def test_small_mailboxes_are_not_overrun(self):
        for size in 1, 2, 3, 5, 16:
            self.send_numbers(300, "--mailbox", size)
        self.send_numbers(20_000, "--mailbox", 100)

    def test_handlers_that_wait_do_not_stop_the_flow(self):
        sink = self.spawn("sink", "--mailbox", 8)
        self.done("send", sink, "slow", "--lines", input="x\n" * 2000)
        self.done("stop", sink)
        self.done("done", sink)

    def test_the_line_that_is_refused_is_named(self):
        sink = self.spawn("sink", "--mailbox", 10, 500)
        code, out, err = self.troupe("send", sink, "line", "--lines", input="".join(f"{i}\n" for i in range(1, 100_000)))
        self.assertEqual(code, 4)
        line = int(re.match(r"troupe: send: not-running: line (\d+): ", err)[1])
        # the actor dies of line 500, and at most a mailbox was accepted behind it
        self.assertTrue(500 < line <= 511, err)

    def test_a_line_that_is_too_large_is_named(self):
        sink = self.spawn("sink")
        text = "1\n2\n" + "x" * (17 << 20) + "\n4\n"
        self.assertRegex(self.fails(2, "too-large", "send", sink, "line", "--lines", input=text), "line 3: ")
        self.assertEqual(self.state(sink), [2, True])

    def test_json_lines(self):
        sink = self.spawn("sink")
        self.done("send", sink, "pair", "--json-lines", input="[2,3]\n[4,5]\n[6,7]")
        self.assertEqual(self.state(sink)[0], 6 + 20 + 42)
        self.assertRegex(self.fails(2, "bad-request", "send", sink, "pair", "--json-lines", input="[1,1]\n{}\n"), "line 2: ")
        self.assertEqual(self.state(sink)[0], 6 + 20 + 42 + 1)

    def test_asks_in_flight(self):
        echo = self.spawn("echo")
        lines = "".join(f"line {i}\n" for i in range(20_000))
        expected = "".join(f'"line {i}"\n' for i in range(20_000))
        for parallel in 1, 7, 256:
            self.assertEqual(self.done("ask", echo, "say", "--lines", "-P", parallel, input=lines), expected)
        self.assertRegex(self.fails(4, "no-such-handler", "ask", echo, "nothing", "--lines", "-P", 4, input=lines), "line 1: ")


class TheEnd(unittest.TestCase):
    def test_shutdown(self):
        daemon = harness.Daemon(files=ACTORS)
        self.addCleanup(daemon.close)
        command = [str(BUILD / "troupe"), "-S", daemon.socket]
        subprocess.run([*command, "spawn", "echo"], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([*command, "shutdown"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(daemon.process.wait(harness.TIMEOUT_SECONDS), 0)


if __name__ == "__main__":
    unittest.main()
