# SPDX-License-Identifier: Apache-2.0
"""troupe top in a real terminal."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import threading
import unittest

import harness
import scripted
import terminal

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
TROUPE = str(BUILD / "troupe")
IS_BUILT_IN = "#define HAVE_NCURSES 1" in (BUILD / "config.h").read_text()

ACTORS = {
    "worker.lua": """
        local Worker = require "troupe".actor "Worker"
        function Worker.on:burn() while true do end end
        function Worker.on:add(n) return n + 1 end
    """,
}

# The modes of the terminal before and after, and what the command exited with.
SCRIPT = """
trap : INT # an interrupt is for the command alone
stty -g >before
{command}
echo "exited with $?"
stty -g >after
cmp before after && echo restored
echo '(the end)'
exec cat
"""


def without_a_terminal(*words, **options):
    done = subprocess.run([TROUPE, "-S", "/nonexistent", "top", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options)
    return done.returncode, done.stdout, done.stderr


class WithoutATerminal(unittest.TestCase):
    def test_it_says_what_programs_take(self):
        for words in [], ["-j"], ["--every", "2s"]:
            code, out, err = without_a_terminal(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertEqual(err.splitlines()[0], "troupe: top: it wants a terminal; for programs there is `troupe ls -j`")

    def on_a_terminal(self, kind):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal is to be had: {error}")
        with scripted.Server(lambda server, method, params, answer: answer([])) as server:
            done = subprocess.run([TROUPE, "-S", server.socket, "top"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "TERM": kind}, timeout=harness.TIMEOUT_SECONDS)
        os.close(ours)
        os.close(theirs)
        return done.returncode, done.stderr.splitlines()[0]

    @unittest.skipUnless(IS_BUILT_IN, "built without ncurses")
    def test_a_terminal_that_cannot_do_it(self):
        for kind in "dumb", "no-such-terminal":
            self.assertEqual(self.on_a_terminal(kind),
                             (2, f"troupe: top: a terminal of the type `{kind}` cannot do it; there is `troupe ls`"))

    @unittest.skipIf(IS_BUILT_IN, "built with ncurses")
    def test_a_program_that_was_built_without_it_says_so(self):
        code, message = self.on_a_terminal("xterm")
        self.assertEqual(code, 2)
        self.assertIn("built without ncurses", message)


@unittest.skipUnless(IS_BUILT_IN, "built without ncurses")
@unittest.skipUnless(terminal.AVAILABLE, "needs tmux")
class InATerminal(unittest.TestCase):
    def top(self, socket, *options, **size):
        command = " ".join([TROUPE, "-S", socket, "top", "--every", "100ms", *options])
        screen = terminal.Terminal(SCRIPT.format(command=command), **size)
        self.addCleanup(screen.close)
        return screen

    def has_ended(self, screen, code):
        """It has, with this code, and the terminal is as it was; what is on it."""
        text = screen.wait_for("(the end)")
        self.assertIn(f"exited with {code}\n", text)
        self.assertIn("restored\n", text)
        self.assertEqual((screen.shows("alternate_on"), screen.shows("cursor_flag")), ("0", "1"))
        return text


def rows_of(text):
    """The columns of each actor, by its name."""
    lines = text.splitlines()
    titles = re.split(r" {2,}", lines[2].strip())
    found = {}
    for line in lines[3:]:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) == len(titles):
            found[cells[0]] = dict(zip((title.rstrip("^v") for title in titles), cells))
    return found


class Actors(InATerminal):
    def setUp(self):
        self.daemon = harness.Daemon(files=ACTORS)
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def spawn(self, name):
        return self.client.request("spawn", "worker", [], {"name": name, "detach": True})

    def test_what_actors_do(self):
        burning, busy = self.spawn("burning"), self.spawn("busy")
        self.spawn("idle one")
        self.client.request("send", burning, "burn", [])
        for _ in range(3):
            self.client.request("send", burning, "add", [1])
        is_over = threading.Event()

        def ask():
            with harness.Client(self.daemon.socket) as client:
                while not is_over.is_set():
                    client.request("ask", busy, "add", [1])

        asking = threading.Thread(target=ask)
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(is_over.set)

        def is_all_there(text):
            rows = rows_of(text)
            return (len(rows) == 3 and rows["burning"]["CPU%"] != "-" and float(rows["burning"]["CPU%"]) > 5
                    and re.fullmatch(r"\d+(\.\d)?", rows["busy"]["MSGS/S"]) and float(rows["busy"]["MSGS/S"]) > 5)
        screen = self.top(self.daemon.socket)
        rows = rows_of(screen.wait_for(is_all_there))
        self.assertEqual((rows["burning"]["STATE"], rows["burning"]["HANDLER"], rows["burning"]["MAILBOX"]), ("running", "burn", "3"))
        self.assertEqual((rows["idle one"]["STATE"], rows["idle one"]["HANDLER"], rows["idle one"]["MAILBOX"]), ("idle", "-", "0"))
        self.assertEqual({row["ACTOR"] for row in rows.values()}, {"worker:Worker"})
        self.assertRegex(rows["idle one"]["HEAP"], r"\A\d+(\.\d)?K\Z")
        screen.wait_for(lambda text: re.match(r"actors 1-3 of 3   \d\S* messages/s   \d+% CPU   \S+ heap   ", text))
        # what comes and goes is seen
        self.client.request("stop", burning, {"kill": True})
        screen.wait_for(lambda text: "burning" not in rows_of(text))
        self.spawn("late")
        screen.wait_for(lambda text: "late" in rows_of(text))
        screen.press("q")
        self.has_ended(screen, 0)

    def test_workers_are_named_by_their_pool(self):
        pool = self.client.request("pool", "crew", "worker", [], {"workers": 2})
        screen = self.top(self.daemon.socket)
        rows = rows_of(screen.wait_for(lambda text: len(rows_of(text)) == 2))
        self.assertEqual({"crew.w-1", "crew.w-2"}, set(rows))
        killed = next(row["handle"] for row in self.client.request("list", {"kind": "pool"}) if row["name"] == "w-2")
        self.client.request("stop", killed, {"kill": True})
        screen.wait_for(lambda text: {"crew.w-1", "crew.w-2.1"} == set(rows_of(text)))
        self.client.request("stop", pool)
        screen.wait_for("no actors")
        screen.press("q")
        self.has_ended(screen, 0)

    def test_sorting(self):
        handles = {name: self.spawn(name) for name in ("a", "b", "c")}
        self.client.request("send", handles["b"], "burn", [])
        self.client.request("send", handles["b"], "add", [1])
        screen = self.top(self.daemon.socket)
        screen.wait_for(lambda text: "CPU%v" in text and list(rows_of(text)) == ["b", "a", "c"])
        screen.press("n")
        screen.wait_for(lambda text: "NAME^" in text and list(rows_of(text)) == ["a", "b", "c"])
        screen.press("n")
        screen.wait_for(lambda text: "NAMEv" in text and list(rows_of(text)) == ["c", "b", "a"])
        screen.press("m")
        screen.wait_for(lambda text: "MAILBOXv" in text and list(rows_of(text)) == ["b", "a", "c"])
        screen.press("m")
        screen.wait_for(lambda text: "MAILBOX^" in text and list(rows_of(text)) == ["a", "c", "b"])
        screen.press("s")
        screen.wait_for(lambda text: "STATE^" in text and list(rows_of(text)) == ["a", "c", "b"])
        screen.press("d")
        screen.wait_for(lambda text: "HANDLER^" in text and list(rows_of(text))[0] == "b")
        for key, title in ("a", "ACTOR^"), ("r", "MSGS/Sv"), ("h", "HEAPv"), ("c", "CPU%v"):
            screen.press(key)
            screen.wait_for(title)
        screen.press("q")
        self.has_ended(screen, 0)

    def test_more_than_there_is_room_for(self):
        for number in range(30):
            self.spawn(f"actor-{number:02}")
        screen = self.top(self.daemon.socket, rows=13)
        screen.press("n")
        screen.wait_for(lambda text: "actors 1-10 of 30 " in text and list(rows_of(text))[0] == "actor-00")
        for key, first in ("NPage", 11), ("NPage", 21), ("NPage", 21), ("Up", 20), ("PPage", 10), ("Home", 1), ("Down", 2), ("End", 21):
            screen.press(key)
            screen.wait_for(lambda text, first=first: f"actors {first}-{first + 9} of 30 " in text
                            and list(rows_of(text)) == [f"actor-{number:02}" for number in range(first - 1, first + 9)])
        # what is larger shows more, and stays full
        screen.resize(100, 23)
        screen.wait_for(lambda text: "actors 11-30 of 30 " in text and list(rows_of(text))[0] == "actor-10")
        screen.press("q")
        self.has_ended(screen, 0)

    def test_narrow_terminals(self):
        self.spawn("a name that is rather long for this, as names go")
        screen = self.top(self.daemon.socket, columns=120)
        screen.wait_for("a name that is rather long for this, as names go  worker:Worker")
        screen.resize(80, 10)
        screen.wait_for(lambda text: re.search(r"(?m)^a name that is.*~  worker:~", text) and "HANDLER" in text)
        screen.resize(60, 10)
        screen.wait_for(lambda text: "ACTOR" not in text and "HANDLER" not in text and "HEAP" in text and "CPU%v" in text)
        screen.resize(30, 10)
        screen.wait_for(lambda text: "MSGS/S" not in text and "STATE" in text and "CPU%v" in text)
        screen.resize(10, 5)
        screen.wait_for(lambda text: re.search(r"(?m)^a name t?h?~$", text) and "STATE" not in text)
        screen.resize(3, 2)
        screen.wait_for(lambda text: text.startswith("ac~\n"))
        screen.resize(100, 20)
        screen.wait_for(lambda text: "a name that is rather long" in text and "HANDLER" in text)
        screen.press("q")
        self.has_ended(screen, 0)

    def test_an_interrupt(self):
        for key in "C-c", "q":
            screen = self.top(self.daemon.socket)
            screen.wait_for("no actors")
            screen.press(key)
            self.has_ended(screen, 130 if key == "C-c" else 0)

    def test_a_signal(self):
        screen = self.top(self.daemon.socket)
        screen.wait_for("no actors")
        shell = int(screen.shows("pane_pid"))
        child = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0]
        os.kill(int(child), signal.SIGTERM)
        self.has_ended(screen, 143)

    def test_the_daemon_goes_away(self):
        self.spawn("x")
        screen = self.top(self.daemon.socket)
        screen.wait_for(lambda text: "x" in rows_of(text))
        self.client.close()
        self.daemon.process.send_signal(signal.SIGTERM)
        text = self.has_ended(screen, 3)
        said = f"troupe: top: disconnected: the connection to the daemon at {self.daemon.socket} broke"
        self.assertTrue(text.replace("\n", "").startswith(said), text)


class Scripted(InATerminal):
    ROW = {"handle": scripted.HANDLE_TEXT, "kind": "actor", "name": "", "actor": "a", "state": "idle", "mailbox": 0, "messages": 0,
           "cpu": 0, "heap": 2048}

    def test_names_do_nothing_to_the_terminal(self):
        names = ["\x1b]0;owned\x07x", "\x1b[2J\x1b[31mred", "\x9b31mc1", "turned\u202eround", "a\tb\rc\nd\x7f", "\x1b[?25h\x1b[?1049l", "wide 漢字 end",
                 "plain"]
        rows = [{**self.ROW, "handle": f"actor:{number:032x}", "name": name, "handler": name} for number, name in enumerate(names)]
        with scripted.Server(lambda server, method, params, answer: answer(rows)) as server:
            screen = self.top(server.socket)
            title = screen.shows("pane_title")
            screen.press("n")
            text = screen.wait_for(lambda text: "plain" in text and "NAME^" in text)
            for shown in "?]0;owned?x", "?[2J?[31mred", "?31mc1", "turned?round", "a?b?c?d?", "?[?25h?[?1049l", "wide 漢字 end", "plain":
                self.assertRegex(text, rf"(?m)^{re.escape(shown)} +a +idle +0 .* {re.escape(shown)}$")
            self.assertEqual((screen.shows("alternate_on"), screen.shows("cursor_flag"), screen.shows("pane_title")), ("1", "0", title))
            # columns are where they are; each of the two wide characters takes two
            self.assertEqual(len({line.index(" idle") + 2 * ("漢" in line) for line in text.splitlines() if " idle" in line}), 1)
            screen.press("q")
            self.has_ended(screen, 0)

    def test_in_a_locale_without_the_characters(self):
        rows = [{**self.ROW, "name": "größe 漢字!"}]
        with scripted.Server(lambda server, method, params, answer: answer(rows)) as server:
            command = f"LC_ALL=C {TROUPE} -S {server.socket} top"
            with terminal.Terminal(SCRIPT.format(command=command)) as screen:
                screen.wait_for("gr??e ??!  a")
                screen.press("q")
                self.has_ended(screen, 0)

    def test_who_may_not_is_told_so(self):
        def on(server, method, params, answer):
            raise scripted.Error("denied", "the role spawn is needed")
        with scripted.Server(on) as server:
            text = self.has_ended(self.top(server.socket), 5)
        self.assertTrue(text.startswith("troupe: top: denied: the role spawn is needed\n"), text)

    def test_an_actor_without_a_name_is_its_handles_beginning(self):
        with scripted.Server(lambda server, method, params, answer: answer([self.ROW])) as server:
            screen = self.top(server.socket)
            text = screen.wait_for("actor:00010203  a ")
            self.assertNotIn(scripted.HANDLE_TEXT[:15], text)
            screen.press("q")
            self.has_ended(screen, 0)

    def test_a_daemon_that_does_not_answer_leaves_the_keys_alive(self):
        def on(server, method, params, answer):
            if server.told.qsize() == 1:
                answer([self.ROW])
        with scripted.Server(on) as server:
            screen = self.top(server.socket)
            screen.wait_for("actor:00010203")
            screen.press("n")
            screen.wait_for("NAME^")
            screen.press("q")
            self.has_ended(screen, 0)


if __name__ == "__main__":
    unittest.main()
