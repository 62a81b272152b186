# SPDX-License-Identifier: Apache-2.0
"""troupe task, with its ls, show, retry and drop: what goes to the daemon, what is printed, and how it exits."""

import json
import os
import pathlib
import subprocess
import unittest

import harness
import scripted

TROUPE = str(pathlib.Path(os.environ["TROUPE_BUILD"]) / "troupe")

CAUSE = {"code": "fault", "message": "it\x1b broke", "ran": "yes", "traceback": "stack traceback:\n\tw.lua:7"}
TASKS = [
    {"id": "0a", "component": "media.streams", "operation": "reopen", "state": "parked", "input": {"instance": "left"}, "key": "k",
     "entity": "e", "due": 1893456000000, "expires": 1893456001000, "delayed": True, "runs": 16, "created": 1893455999999, "updated": 1893456000001,
     "cause": CAUSE, "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "depth": 2, "caller": {"uid": 7, "gid": 8, "pid": 77}},
    {"id": "0b", "component": "mail", "operation": "send", "state": "waiting", "input": None, "due": 1893456000000, "delayed": False,
     "runs": 0, "created": 1893456000000, "updated": 1893456000000, "trace": "t", "depth": 1, "caller": {"uid": 7, "gid": 8, "pid": 77}},
]
LISTED = """\
TASK  COMPONENT      OPERATION  STATE    RUNS  DUE                  KEY  CAUSE
0a    media.streams  reopen     parked     16  2030-01-01 00:00:00  k    fault: it? broke
0b    mail           send       waiting     0  2030-01-01 00:00:00  -    -
"""
SHOWN = """\
id         0a
component  media.streams
operation  reopen
state      parked
input      {"instance":"left"}
key        k
entity     e
due        2030-01-01 00:00:00
expires    2030-01-01 00:00:01
delayed    true
runs       16
created    2029-12-31 23:59:59
updated    2030-01-01 00:00:00
cause      fault: it? broke
           stack traceback:
           \tw.lua:7
trace      00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
depth      2
caller     {"uid":7,"gid":8,"pid":77}
"""


def run(socket, *words):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([TROUPE, "-S", socket, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}, timeout=harness.TIMEOUT_SECONDS)
    return done.returncode, done.stdout, done.stderr


class Scripted(unittest.TestCase):
    """Against a daemon that says what the test wants."""

    def check(self, words, told, answer=None, result=(0, "", "")):
        """What the command tells the daemon, and what it makes of the answer."""
        with scripted.Server(lambda server, method, params, reply: reply(answer)) as server:
            self.assertEqual(run(server.socket, *words), result, words)
            self.assertEqual(server.told.get(timeout=scripted.TIMEOUT_SECONDS), told, words)
            self.assertTrue(server.told.empty())


class Leaving(Scripted):
    def check_task(self, words, params):
        self.check(["task", *words], ["task", params], "0c", (0, "0c\n", ""))

    def test_what_goes_to_the_daemon(self):
        self.check_task(["mail", "send"], ["mail", "send", None, {}])
        self.check_task(["mail", "send", "to=bob", "size:=5"], ["mail", "send", {"to": "bob", "size": 5}, {}])
        self.check_task(["mail", "send", "-5"], ["mail", "send", -5, {}])
        self.check_task(["mail", "send", "--delay", "1m", "--expires", "5", "--key", "k", "--id", "e", "--trace", "t", "x"],
                        ["mail", "send", "x", {"delay": 60000, "expires": 5, "key": "k", "id": "e", "trace": "t"}])
        # where words are is no matter, and the names of the subcommands are names of components where they cannot be those
        self.check_task(["--key=k", "ls", "show", "x"], ["ls", "show", "x", {"key": "k"}])
        self.check_task(["--", "drop", "it"], ["drop", "it", None, {}])
        self.check_task(["mail", "ls"], ["mail", "ls", None, {}])

    def test_points_in_time(self):
        for text in "1893456000000", "2030-01-01T00:00:00Z", "2030-01-01T01:30:00.0+01:30":
            self.check_task(["--at", text, "mail", "send"], ["mail", "send", None, {"at": 1893456000000}])
        for text in "", "x", "0", "-5", "2030-01-01", "2030-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "5s":
            code, out, err = run("/nonexistent", "task", "--at", text, "mail", "send")
            self.assertEqual((code, out), (2, ""), text)
            self.assertIn(f"troupe: task: --at {text}: that is not a point in time", err)

    def test_as_json(self):
        self.check(["-j", "task", "mail", "send"], ["task", ["mail", "send", None, {}]], "0c", (0, '"0c"\n', ""))

    def test_refusals(self):
        for code, status in (("bad-request", 2), ("not-found", 4), ("contract", 1), ("store", 7), ("loop", 7), ("denied", 5), ("unknown-method", 4)):
            self.check(["task", "mail", "send"], ["task", ["mail", "send", None, {}]], scripted.Error(code, "why not"),
                       (status, "", f"troupe: task: {code}: why not\n"))

    def test_usage(self):
        for words, message in (([], "COMPONENT is missing"), (["mail"], "OPERATION is missing"), (["--delay", "0", "a", "b"], "that is not a time"),
                               (["mail", "send", "1", "2"], "one argument too many"), (["--state", "parked", "ls"], "there is no option --state")):
            code, out, err = run("/nonexistent", "task", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(message, err)
            self.assertIn("usage: troupe task [--delay", err)


class Kept(Scripted):
    """The subcommands."""

    def test_listed(self):
        everything = ["tasks", [{"component": None, "state": None}]]
        self.check(["task", "ls"], everything, TASKS, (0, LISTED, ""))
        self.check(["task", "ls"], everything, [], (0, "TASK  COMPONENT  OPERATION  STATE  RUNS  DUE  KEY  CAUSE\n", ""))
        self.check(["task", "-j", "ls", "--component", "mail", "--state=waiting"], ["tasks", [{"component": "mail", "state": "waiting"}]],
                   TASKS[1:], (0, json.dumps(TASKS[1:], separators=(",", ":")) + "\n", ""))

    def test_shown(self):
        self.check(["task", "show", "0a"], ["tasks", [{"component": None, "state": None}]], TASKS, (0, SHOWN, ""))
        self.check(["task", "show", "-j", "0b"], ["tasks", [{"component": None, "state": None}]], TASKS,
                   (0, json.dumps(TASKS[1], separators=(",", ":")) + "\n", ""))
        for id in "0", "0c", "0a0":
            self.check(["task", "show", id], ["tasks", [{"component": None, "state": None}]], TASKS,
                       (4, "", "troupe: task show: not-found: there is no such task (any more)\n"))

    def test_retried_and_dropped(self):
        for word in "retry", "drop":
            self.check(["task", word, "0a"], [f"task-{word}", ["0a"]])
            self.check(["task", word, "0c"], [f"task-{word}", ["0c"]], scripted.Error("not-found", "no task 0c"),
                       (4, "", f"troupe: task {word}: not-found: no task 0c\n"))

    def test_what_is_no_list(self):
        for answer in 5, {"id": "0a"}, [5]:
            with scripted.Server(lambda server, method, params, reply, answer=answer: reply(answer)) as server:
                self.assertNotEqual(run(server.socket, "task", "ls")[0], 0)
                self.assertNotEqual(run(server.socket, "task", "show", "0a")[0], 0)

    def test_usage(self):
        for words, message in ((["ls", "x"], "`x` is one argument too many"), (["show"], "TASK is missing"), (["retry", "a", "b"], "too many"),
                               (["drop", "--key", "k"], "there is no option --key")):
            code, out, err = run("/nonexistent", "task", *words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(f"troupe: task {words[0]}: ", err)
            self.assertIn(message, err)
            self.assertIn(f"usage: troupe task {words[0]} ", err)
        self.assertEqual(run("/nonexistent", "help", "task", "cats")[0], 2)
        self.assertEqual(run("/nonexistent", "help", "task", "ls"), run("/nonexistent", "task", "ls", "--help"))


LETTERS = """
    return { operations = {
        send = function(input, context)
            if not input.to:find("@") then error("no such address: " .. input.to) end
            require "troupe".await(context.entities:put(input.to, { text = input.text }))
        end,
        read = function(input, letter) return letter and letter.text end,
    } }
"""
MANIFEST = {
    "name": "letters", "module": "letters", "attempts": 1,
    "operations": {
        "send": {"type": "effect", "input": {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}},
        "read": {"type": "observation"},
    },
}


class WithADaemon(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files={"letters.lua": LETTERS}, config={"components": [MANIFEST]})
        self.addCleanup(self.daemon.close)

    def troupe(self, *words):
        """What it prints."""
        code, out, err = run(self.daemon.socket, *words)
        self.assertEqual((code, err), (0, ""), words)
        return out

    def leave(self, *words):
        out = self.troupe("task", *words)
        self.assertRegex(out, r"\A[0-9a-f]{32}\n\Z")
        return out.strip()

    def tasks(self, *words):
        return json.loads(self.troupe("-j", "task", "ls", *words))

    def until(self, *words):
        """Waits until `ls` with these words has no task, or (a state) has one."""
        while bool(self.tasks(*words)) != bool(words):
            pass

    def test_one_is_run(self):
        self.leave("letters", "send", "to=ann@example.org", "text=hello")
        self.until()
        self.assertEqual(self.troupe("call", "--id", "ann@example.org", "letters", "read"), '"hello"\n')

    def test_one_that_waits(self):
        id = self.leave("--delay", "1h", "--key", "k", "--trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "letters", "send",
                        "to=bob@example.org", "text=later")
        self.assertEqual(self.leave("--key", "k", "--at", "2030-01-01T00:00:00Z", "letters", "send", "to=x"), id)
        other = self.leave("--at", "2199-01-01T00:00:00Z", "--expires", "1h", "letters", "send", "to=eve@example.org")
        one, two = self.tasks()
        self.assertEqual((one["id"], one["state"], one["runs"], one["key"], one["input"], one["component"], one["operation"]),
                         (id, "waiting", 0, "k", {"to": "bob@example.org", "text": "later"}, "letters", "send"))
        self.assertIn("4bf92f3577b34da6a3ce929d0e0e4736", one["trace"])
        self.assertEqual((two["id"], two["due"], two["expires"]), (other, 7226582400000, 7226586000000))
        self.assertIn("2199-01-01 00:00:00", self.troupe("task", "ls"))
        self.assertIn("\nexpires    2199-01-01 01:00:00\n", self.troupe("task", "show", other))
        self.assertEqual(self.troupe("task", "drop", other), "")
        self.assertEqual([task["id"] for task in self.tasks()], [id])
        self.assertEqual(self.troupe("task", "retry", id), "")
        self.until()
        self.assertEqual(self.troupe("call", "--id", "bob@example.org", "letters", "read"), '"later"\n')
        for words in ("show", id), ("retry", id), ("drop", other):
            self.assertEqual(run(self.daemon.socket, "task", *words)[0], 4)

    def test_one_that_is_parked(self):
        id = self.leave("letters", "send", "to=nobody")
        self.until("--state", "parked")
        self.assertEqual(self.tasks("--state", "waiting"), [])
        self.assertEqual([task["id"] for task in self.tasks("--component", "letters")], [id])
        self.assertEqual(self.tasks("--component", "nobody.else"), [])
        listed = self.troupe("task", "ls", "--state", "parked").splitlines()[1]
        self.assertRegex(listed, rf"^{id}  letters    send       parked     1  .*  -    fault: .*no such address: nobody$")
        shown = self.troupe("task", "show", id)
        self.assertRegex(shown, "\ncause      fault: .*no such address: nobody\n           stack traceback:\n")
        self.assertIn(f"uid\":{os.getuid()}", shown)
        self.troupe("task", "retry", id)
        self.until("--state", "parked")
        self.troupe("task", "drop", id)
        self.until()

    def test_what_is_refused(self):
        for words, code, message in (
                (["--delay", "5", "--at", "2030-01-01T00:00:00Z", "letters", "send", "to=x"], 2, "bad-request"),
                (["--expires", "5", "letters", "send", "to=x"], 2, "bad-request"), (["letters", "send"], 1, "contract"),
                (["letters", "none"], 4, "not-found"), (["nobody", "none"], 4, "not-found"), (["ls", "--state", "lost"], 2, "bad-request"),
                (["--trace", "x", "letters", "send", "to=x"], 2, "bad-request")):
            status, out, err = run(self.daemon.socket, "task", *words)
            self.assertEqual((status, out), (code, ""), (words, err))
            self.assertIn(f": {message}: ", err)
        self.assertEqual(self.tasks(), [])


if __name__ == "__main__":
    unittest.main()
