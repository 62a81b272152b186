# SPDX-License-Identifier: Apache-2.0
"""troupe call and troupe serve, with a daemon: what goes to an operation, and any program as a replica."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import harness

TROUPE = str(pathlib.Path(os.environ["TROUPE_BUILD"]) / "troupe")

MANIFEST = {
    "name": "text.tools", "concurrency": 4,
    "operations": {
        "echo": {}, "count": {"input": {"type": "string"}, "output": {"type": "integer"}}, "fail": {}, "silent": {}, "env": {},
        "broken": {}, "die": {}, "wait": {}, "deaf": {}, "mine": {"stateful": True},
    },
}

COMMANDS = [
    "echo=cat", "count=wc -w", "fail=echo first >&2; echo 'the last words' >&2; exit 3", "silent=true",
    'env=printf \'["%s","%s","%s","%s"]\' "$TROUPE_COMPONENT" "$TROUPE_INSTANCE" "$TROUPE_OPERATION" "$TROUPE_ATTEMPT"',
    "broken=echo no json", "die=kill -9 $$", "deaf=exec <&-; echo 1", "mine=cat",
]


class Components(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(config={"components": [MANIFEST]})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def troupe(self, *words):
        done = subprocess.run([TROUPE, "-S", self.daemon.socket, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS)
        return done.returncode, done.stdout, done.stderr

    def serve(self, *words, stderr=subprocess.PIPE):
        server = subprocess.Popen([TROUPE, "-S", self.daemon.socket, "serve", *words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        return server, server.stdout.readline().strip()

    def gate(self):
        """A command that waits, and what opens it."""
        fifo = os.path.join(self.directory.name, "gate")
        os.mkfifo(fifo)
        return f"wait=read line < {fifo}; echo '\"'$line'\"'", fifo

    def test_what_goes_to_an_operation(self):
        self.serve("text.tools", *COMMANDS)
        for words, output in (
                (["a b"], '"a b"'), (["5"], "5"), (['{"a":[1]}'], '{"a":[1]}'), ([], "null"), (["-s", "5"], '"5"'),
                (["-s", "a=b"], '"a=b"'), (["--", "-5"], "-5"), (["name=bob"], '{"name":"bob"}'),
                (["name=a=b", "age:=5", "tags:=[1,2]", "empty="], '{"name":"a=b","age":5,"tags":[1,2],"empty":""}')):
            self.assertEqual(self.troupe("call", "text.tools", "echo", *words), (0, output + "\n", ""), words)
        self.assertEqual(self.troupe("call", "--raw", "text.tools", "echo", "a b"), (0, "a b", ""))

    def test_input_that_is_none(self):
        for words, message in (
                (["a=1", "b"], "`b` is neither name=TEXT nor name:=JSON"), (["a=1", "a:=2"], "`a:=2`: the input has that member already"),
                (["x", "y"], "`y` is one argument too many"), (["a:={"], "that is not JSON")):
            code, out, err = self.troupe("call", "text.tools", "echo", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(message, err)

    def test_any_program_is_a_replica(self):
        _, instance = self.serve("text.tools", *COMMANDS)
        self.assertRegex(instance, "^r-[0-9a-f]{16}$")
        self.assertEqual(self.troupe("call", "text.tools", "count", "one two three"), (0, "3\n", ""))
        self.assertEqual(self.troupe("call", "text.tools", "silent"), (0, "null\n", ""))
        self.assertEqual(self.troupe("call", "text.tools", "deaf", "x" * 100000), (0, "1\n", ""))
        self.assertEqual(json.loads(self.troupe("call", "text.tools", "env")[1]), ["text.tools", instance, "env", "1"])
        self.assertEqual(self.troupe("call", "--instance", instance, "text.tools", "mine", "7"), (0, "7\n", ""))
        large = json.dumps(["x" * 1000] * 100, separators=(",", ":"))
        self.assertEqual(self.troupe("call", "text.tools", "echo", large), (0, large + "\n", ""))

    def test_how_it_fails(self):
        server, _ = self.serve("text.tools", *COMMANDS)
        self.assertEqual(self.troupe("call", "text.tools", "fail"), (1, "", "troupe: call: fault: the last words\n"))
        code, _, err = self.troupe("call", "text.tools", "broken")
        self.assertEqual(code, 1)
        self.assertIn("fault: the command's output is no JSON", err)
        self.assertEqual(self.troupe("call", "text.tools", "die"), (1, "", "troupe: call: fault: the command was killed by signal 9\n"))
        code, _, err = self.troupe("call", "text.tools", "count", "5")
        self.assertEqual((code, err), (1, "troupe: call: contract: count: input is a number; a string is expected\n"))
        self.assertEqual(self.troupe("call", "text.tools", "mine")[0], 1)
        self.assertEqual(self.troupe("call", "--instance", "nobody", "text.tools", "mine")[0], 4)
        self.assertEqual(self.troupe("call", "text.tools", "none")[0], 4)
        self.assertEqual(self.troupe("call", "nowhere", "none")[0], 4)
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertIn("first\nthe last words\n", err)

    def test_an_interrupt_gives_the_name_up_and_finishes(self):
        wait, fifo = self.gate()
        server, instance = self.serve("--instance", "one", "text.tools", *COMMANDS, wait)
        self.assertEqual(instance, "one")
        held = self.client.start("call", "text.tools", "wait", None)
        while self.client.request("list", {"kind": "component"})[1]["mailbox"] != 1:
            pass
        server.send_signal(signal.SIGINT)
        while self.client.request("instances", "text.tools"):
            pass
        with open(fifo, "w") as gate:
            gate.write("open\n")
        self.assertEqual(self.client.finish(held), "open")
        self.assertEqual(server.wait(harness.TIMEOUT_SECONDS), 130)

    def test_a_call_that_is_taken_back_ends_its_process(self):
        wait, fifo = self.gate()
        server, _ = self.serve("text.tools", *COMMANDS, wait + "; echo never >&2")
        held = self.client.start("call", "text.tools", "wait", None)
        while self.client.request("list", {"kind": "component"})[1]["mailbox"] != 1:
            pass
        self.assertTrue(self.client.request("cancel", held))
        while self.client.request("list", {"kind": "component"})[1]["mailbox"] != 0:
            pass
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((out, err), ("", ""))

    def test_serve_is_refused(self):
        for words, code, message in (
                (["text.tools"], 2, "OPERATION=COMMAND is missing"), (["text.tools", "echo"], 2, "`echo` is not OPERATION=COMMAND"),
                (["text.tools", "echo=a", "echo=b"], 2, "echo has a command already"),
                (["nowhere", "a=b"], 4, "not-found"), (["text.tools", "echo=cat"], 4, "mine"),
                (["--instance", "a/b", "text.tools", "echo=cat"], 2, "instance")):
            done = self.troupe("serve", *words)
            self.assertEqual((done[0], done[1]), (code, ""), (words, done))
            self.assertIn(message, done[2])
        _, _ = self.serve("--instance", "one", "text.tools", *COMMANDS)
        self.assertEqual(self.troupe("serve", "--instance", "one", "text.tools", *COMMANDS)[0], 7)

    def test_listed(self):
        _, instance = self.serve("text.tools", *COMMANDS)
        code, out, err = self.troupe("ls", "components")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(len(out.splitlines()), 3, out)
        self.assertIn(instance, out)
        component, replica = json.loads(self.troupe("ls", "-j", "components")[1])
        self.assertEqual((component["kind"], component["name"], component["state"]), ("component", "text.tools", "running"))
        self.assertEqual((replica["kind"], replica["name"], replica["component"]), ("replica", instance, "text.tools"))
        self.assertEqual(json.loads(self.troupe("info", "-j", "text.tools")[1])["name"], "text.tools")


    def test_completed(self):
        def words(*line):
            out = self.troupe("complete", "--", "-S", self.daemon.socket, *line)[1].splitlines()
            self.assertEqual(out[0], "words")
            return out[1:]
        self.assertEqual(words("call", "t"), ["text.tools"])
        self.assertEqual(words("serve", ""), ["text.tools"])
        self.assertEqual(sorted(words("call", "text.tools", "e")), ["echo", "env"])
        self.assertIn("--instance", words("call", "-"))


if __name__ == "__main__":
    unittest.main()
