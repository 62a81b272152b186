# SPDX-License-Identifier: Apache-2.0
"""The shells' completion: what `troupe complete` offers, and that bash, zsh and fish get it from there."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import scripted
import terminal

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])

ACTORS = {
    "till.lua": """
        local Till = require "troupe".actor "Till"
        function Till.on:enter(n) end
        function Till.on:total() return 0 end
        Till.on["$(touch owned)"] = function() end
        function Till.async:report() end
    """,
}


def environment():
    return {key: value for key, value in os.environ.items() if key not in ("TROUPE_SOCKET", "XDG_RUNTIME_DIR")}


def complete(*words):
    """(what it is, [what is offered])"""
    done = subprocess.run([BUILD / "troupe", "complete", "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment(), timeout=scripted.TIMEOUT_SECONDS)
    kind, *offered = done.stdout.splitlines() or [""]
    return kind, offered


def output(*words):
    return subprocess.run([BUILD / "troupe", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", output("help").split("\n\nOptions")[0], re.MULTILINE)


# Those of `troupe task`, which are commands too.
SUBCOMMANDS = [("task", "ls"), ("task", "show"), ("task", "retry"), ("task", "drop")]

GLOBALS = ["-S", "--user", "--system", "-j", "-t", "-h", "--help"]


class Tables(unittest.TestCase):
    """Nothing here is listed a second time: help, the manual and the completion say the same."""

    def test_every_command(self):
        self.assertEqual(complete(""), ("words", commands()))
        self.assertEqual(complete("s"), ("words", ["spawn", "send", "serve", "stop", "shutdown"]))
        self.assertEqual(complete("help", ""), ("words", commands()))
        self.assertEqual(complete("-j", "-t", "5", "--", "ver"), ("words", ["version"]))
        self.assertGreater(len(commands()), 10)

    def test_every_option_of_every_command(self):
        self.assertEqual(complete("-")[1], GLOBALS)
        for words in [(command,) for command in commands()] + SUBCOMMANDS:
            offered = complete(*words, "-")[1]
            own = [word for word in offered if word not in GLOBALS]
            told = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", output("help", *words).split("\n\nAn ARG")[0]))
            self.assertEqual(set(own), told - set(GLOBALS), words)

    def test_the_manual_has_all_of_them(self):
        page = (SOURCE / "man/troupe.1").read_text()
        sections = dict(re.findall(r"^\.It Cm ([a-z]+)(.*?)(?=^\.It Cm |^\.Ss )", page, re.MULTILINE | re.DOTALL))
        for command in commands():
            self.assertIn(command, sections)
            about = "".join(re.findall(rf"^\.It Cm {command}\b(.*?)(?=^\.It Cm |^\.Ss )", page, re.MULTILINE | re.DOTALL))
            for option in set(complete(command, "-")[1]) - set(GLOBALS):
                self.assertRegex(about, rf"Fl {re.escape(option[1:])}\b", command)
        for command, word in SUBCOMMANDS:
            about = re.search(rf"^\.It Cm {command} {word}\b(.*?)(?=^\.It Cm |^\.Ss )", page, re.MULTILINE | re.DOTALL)[1]
            for option in set(complete(command, word, "-")[1]) - set(GLOBALS):
                self.assertRegex(about, rf"Fl {re.escape(option[1:])}\b", command)
        for option in GLOBALS:
            self.assertRegex(page, rf"Fl {re.escape(option[1:])}\b")

    def test_values_of_options(self):
        self.assertEqual(complete("-S", ""), ("files", []))
        self.assertEqual(complete("ask", "-S", "/"), ("files", []))
        self.assertEqual(complete("spawn", "--name", ""), ("words", []))
        self.assertEqual(complete("-t", ""), ("words", []))
        self.assertEqual(complete("backup", ""), ("files", []))
        self.assertEqual(complete("backup", "-"), ("words", GLOBALS))

    def test_arguments(self):
        self.assertEqual(complete("ask", "x", "y", "--json", ""), ("files", []))
        self.assertEqual(complete("ask", "x", "y", "1", "--bin", ""), ("files", []))
        self.assertEqual(complete("ask", "x", "y", "-s", ""), ("words", []))
        self.assertEqual(complete("ask", "x", "y", "1", ""), ("words", []))
        self.assertEqual(complete("ask", "x", "y", "1", "--"), ("words", ["--json", "--bin"]))
        self.assertEqual(complete("ask", "x", "y", "1", "-s", "--bin", "-"), ("words", ["-s", "--json", "--bin"]))
        self.assertEqual(complete("ask", "x", "y", "--", "-"), ("words", ["-s", "--json", "--bin"]))

    def test_choices(self):
        self.assertEqual(complete("ls", ""), ("words", ["actors", "pools", "components"]))
        self.assertEqual(complete("ls", "p"), ("words", ["pools"]))
        self.assertEqual(complete("ls", "pools", ""), ("words", []))
        self.assertEqual(complete("events", "log", ""), ("words", ["lifecycle", "refused", "log", "trace", "task"]))

    def test_subcommands(self):
        words = [word for _, word in SUBCOMMANDS]
        self.assertEqual(complete("help", "task", ""), ("words", words))
        self.assertEqual(complete("help", "ask", ""), ("words", []))
        for before in [], ["-j"], ["-t", "5"]:
            self.assertEqual(complete("-S", "/nonexistent", "task", *before, ""), ("words", words))
        self.assertEqual(complete("-S", "/nonexistent", "task", "r"), ("words", ["retry"]))
        for before in ["--key", "k"], ["--"], ["media"]:
            self.assertEqual(complete("-S", "/nonexistent", "task", *before, ""), ("words", []))
        self.assertEqual(complete("task", "ls", ""), ("words", []))

    def test_what_cannot_be(self):
        for words in ["nothing", ""], ["ls", "cats", ""], ["ask", "--what", ""], ["spawn", "--heap", "much", ""], ["-t", "x", ""], []:
            self.assertEqual(complete(*words)[1], commands() if not words else [])


class WithActors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = harness.Daemon(files=ACTORS)
        cls.addClassCleanup(cls.daemon.close)
        with harness.Client(cls.daemon.socket) as client:
            cls.handles = [client.request("spawn", "till", [], {"detach": True, **more})
                           for more in ({"publish": "till.left"}, {"publish": "till.right"}, {})]


class FromTheDaemon(WithActors):
    def complete(self, *words):
        kind, offered = complete("-S", self.daemon.socket, *words)
        self.assertEqual(kind, "words")
        return sorted(offered)

    def test_targets(self):
        for command in "ask", "send", "done", "stop", "info":
            self.assertEqual(self.complete(command, ""), sorted([*self.handles, "till.left", "till.right"]))
        self.assertEqual(self.complete("ask", "till.l"), ["till.left"])
        self.assertEqual(self.complete("ask", self.handles[0][:20]), [self.handles[0]])
        self.assertEqual(self.complete("publish", "new", "till.r"), ["till.right"])

    def test_names(self):
        self.assertEqual(self.complete("find", ""), ["till.left", "till.right"])
        self.assertEqual(self.complete("unpublish", "till.r"), ["till.right"])
        self.assertEqual(self.complete("publish", ""), [])

    def test_handlers(self):
        """Those which a shell would see something in are not offered."""
        for target in "till.left", self.handles[2]:
            self.assertEqual(self.complete("ask", target, ""), ["enter", "report", "total"])
            self.assertEqual(self.complete("send", "--lines", target, "e"), ["enter"])
        self.assertEqual(self.complete("ask", "nobody", ""), [])

    def test_modules_that_run(self):
        self.assertEqual(set(self.complete("spawn", "")), {"till:Till"})

    def test_names_that_a_shell_would_run(self):
        names = ["good", "$(touch x)", "`x`", "a b", "a;b", "a&b", "a|b", "a>b", "*", "~root", "'", '"', "\\", "-x", "a\nb", "", "ü"]
        rows = [{"handle": scripted.HANDLE_TEXT, "published": name} for name in names]
        with scripted.Server(lambda server, method, params, answer: answer(rows)) as server:
            self.assertEqual(complete("-S", server.socket, "find", "")[1], ["good"])

    def test_tasks(self):
        tasks = [{"id": "01", "component": "a"}, {"id": "02", "component": "a"}]
        with scripted.Server(lambda server, method, params, answer: answer(tasks if method == "tasks" else [])) as server:
            for word in "show", "retry", "drop":
                self.assertEqual(complete("-S", server.socket, "task", word, "")[1], ["01", "02"])

    def test_no_daemon_is_no_names(self):
        self.assertEqual(complete("-S", "/nonexistent", "ask", ""), ("words", []))

    def test_a_daemon_that_does_not_answer_is_given_up(self):
        with scripted.Server(lambda server, method, params, answer: None) as server:
            self.assertEqual(complete("-S", server.socket, "ask", "")[1], [])


@unittest.skipUnless(terminal.AVAILABLE, "needs tmux")
class InATerminal(WithActors):
    """One line after another, typed into a shell."""

    def open(self, shell, *words, **files):
        """Runs it in a folder with these files and a receipt.json; its prompt has to be `% `."""
        if not shutil.which(shell):
            self.skipTest(f"there is no {shell}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in {"receipt.json": "", **files}.items():
            pathlib.Path(folder.name, name.replace("_", ".", 1)).write_text(text)
        self.screen = terminal.Terminal(f"cd {folder.name} && exec {shell} {' '.join(words)}", columns=200, HOME=folder.name,
                                        ZDOTDIR=folder.name, PATH=f"{BUILD}:{os.environ['PATH']}")
        self.addCleanup(self.screen.close)
        self.screen.wait_for(lambda text: text.strip() == "%")

    def becomes(self, line, expected):
        """Types it and presses Tab: then the line is that."""
        self.screen.type(line)
        self.screen.press("Tab")
        self.screen.wait_for(lambda text: expected(text) if callable(expected) else f"% {expected}" in text.splitlines())
        self.screen.press("C-u", "C-l")
        self.screen.wait_for(lambda text: text.strip() == "%")

    def completes(self):
        troupe = f"troupe -S {self.daemon.socket}"
        for line, expected in [
                ("troupe ver", "troupe version"),
                ("troupe spawn --if", "troupe spawn --if-absent"),
                ("troupe ls comp", "troupe ls components"),
                (f"{troupe} ask till.l", f"{troupe} ask till.left"),
                (f"{troupe} send till.left ent", f"{troupe} send till.left enter"),
                (f"{troupe} ask {self.handles[2][:20]}", f"{troupe} ask {self.handles[2]}"),
                (f"{troupe} ask {self.handles[2]} rep", f"{troupe} ask {self.handles[2]} report"),
                ("troupe ask x y --json rec", "troupe ask x y --json receipt.json"),
                (f"{troupe} ask till.", lambda text: re.search(r"(?m)^till\.left +till\.right", text))]:
            self.becomes(line, expected)

    def test_bash(self):
        script = ("PS1='% '\nbind 'set show-all-if-ambiguous on'\nbind 'set enable-bracketed-paste off'\n"
                  f"source {SOURCE}/completion/troupe.bash\n")
        self.open("bash", "--noprofile", "--rcfile", "_bashrc".replace("_", ".", 1), _bashrc=script)
        self.completes()
        # what stands before the cursor counts
        self.screen.type("troupe ver x")
        self.screen.press("Left", "Left", "Tab")
        self.screen.wait_for(lambda text: re.match(r"% troupe version  ?x$", text.splitlines()[0]))

    def test_zsh(self):
        script = f"PS1='%% '\nunsetopt prompt_sp auto_menu\nfpath=({SOURCE}/completion $fpath)\nautoload -U compinit\ncompinit -u -D\n"
        self.open("zsh", "-d", "-i", _zshrc=script)
        self.completes()


@unittest.skipUnless(shutil.which("fish"), "needs fish")
class Fish(WithActors):
    def complete(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {SOURCE}/completion/troupe.fish; complete -C {line!r}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**environment(), "PATH": f"{BUILD}:{os.environ['PATH']}"}, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.stderr, "")
        return sorted(done.stdout.splitlines())

    def test_it_completes(self):
        troupe = f"troupe -S {self.daemon.socket}"
        self.assertEqual(self.complete("troupe ver"), ["version"])
        self.assertEqual(self.complete("troupe spawn --if"), ["--if-absent"])
        self.assertEqual(self.complete(f"{troupe} ask till."), ["till.left", "till.right"])
        self.assertEqual(self.complete(f"{troupe} send till.left ent"), ["enter"])
        self.assertEqual(self.complete(f"{troupe} ask {self.handles[2][:20]}"), [self.handles[2]])


if __name__ == "__main__":
    unittest.main()
