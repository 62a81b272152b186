# SPDX-License-Identifier: Apache-2.0
"""The troupe command against a scripted daemon: what it sends, what it prints, and with what it exits."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import threading
import unittest

import msgpack

import scripted
from scripted import HANDLE, HANDLE_TEXT, Error, Mailbox, Server

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
TROUPE = str(BUILD / "troupe")


def arguments(*words):
    return [TROUPE, *map(str, words)]


def environment(**changes):
    kept = {key: value for key, value in os.environ.items() if key not in ("TROUPE_SOCKET", "XDG_RUNTIME_DIR", "NO_COLOR")}
    return {**kept, **changes}


def troupe(*words, **options):
    """Runs it to its end: (exit code, standard output, standard error)."""
    options = {"text": True, "stdin": subprocess.DEVNULL, "env": environment(), "timeout": scripted.TIMEOUT_SECONDS, **options}
    if "input" in options:
        del options["stdin"]
    done = subprocess.run(arguments(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return done.returncode, done.stdout, done.stderr


def answering(value=None):
    def on(server, method, params, answer):
        answer(value)
    return Server(on)


def silent():
    return Server(lambda server, method, params, answer: None)


class Sent(unittest.TestCase):
    """What goes to the daemon."""

    def sent(self, *words, answer=None, **options):
        with answering(answer) as server:
            code, out, err = troupe("-S", server.socket, *words, **options)
            self.assertEqual((code, err), (0, ""), out)
            return server.tell(), out

    def test_ask(self):
        self.assertEqual(self.sent("ask", "ledger", "enter", 17, -5, "x", "-s", 5, '{"a":[null]}')[0],
                         ["ask", ["ledger", "enter", [17, -5, "x", "5", {"a": [None]}]]])
        self.assertEqual(self.sent("ask", HANDLE_TEXT, "total")[0], ["ask", [HANDLE_TEXT, "total", []]])
        self.assertEqual(self.sent("ask", "x", "y", "9223372036854775807", "-9223372036854775808")[0][1][2],
                         [9223372036854775807, -9223372036854775808])

    def test_arguments_from_files(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b'{"\xc3\xbc": [1.5, {"$bin": "AAH/"}]}\n')
            file.flush()
            expected = {"ü": [1.5, b"\0\1\xff"]}
            self.assertEqual(self.sent("ask", "x", "y", "--json", file.name)[0][1][2], [expected])
            self.assertEqual(self.sent("ask", "x", "y", 1, "--bin", file.name, 2)[0][1][2],
                             [1, b'{"\xc3\xbc": [1.5, {"$bin": "AAH/"}]}\n', 2])
            self.assertEqual(self.sent("ask", "x", "y", "--json", "-", input='"in"\n')[0][1][2], ["in"])
            self.assertEqual(self.sent("ask", "x", "y", file.name)[0][1][2], [file.name])

    def test_a_string_that_is_no_utf8_goes_byte_for_byte(self):
        self.assertEqual(self.sent("send", "x", "y", os.fsdecode(b"a\xff"))[0][1][2], ["a\udcff"])

    def test_spawn(self):
        handle = msgpack.ExtType(1, HANDLE)
        sent, out = self.sent("spawn", "counter:Counter", "--name", "left", "--publish=c.left", "--if-absent", "--heap", "2M",
                              "--mailbox", 10, 1, "--name", answer=handle)
        self.assertEqual(out, HANDLE_TEXT + "\n")
        self.assertEqual(sent, ["spawn", ["counter:Counter", [1, "--name"],
                                          {"name": "left", "publish": "c.left", "if_absent": True, "heap": 2 << 20, "mailbox": 10,
                                           "detach": True}]])
        self.assertEqual(self.sent("-j", "spawn", "counter", answer=handle)[1], f'"{HANDLE_TEXT}"\n')

    def test_the_methods_without_an_answer(self):
        for words, expected in [
                (["send", "x", "y", 1], ["send", ["x", "y", [1]]]),
                (["done", "x"], ["done", ["x", {}]]),
                (["stop", "x"], ["stop", ["x", {}]]),
                (["stop", "x", "--kill"], ["stop", ["x", {"kill": True}]]),
                (["stop", "--within", "2s", HANDLE_TEXT], ["stop", [HANDLE_TEXT, {"within": 2000}]]),
                (["publish", "n", "x"], ["publish", ["n", "x"]]),
                (["unpublish", "n"], ["unpublish", ["n"]]),
                (["reload"], ["reload", []]),
                (["shutdown"], ["shutdown", []])]:
            sent, out = self.sent(*words)
            self.assertEqual(sent, expected)
            self.assertEqual(out, "")

    def test_find_and_ping(self):
        self.assertEqual(self.sent("find", "n", answer=msgpack.ExtType(1, HANDLE)), (["find", ["n"]], HANDLE_TEXT + "\n"))
        self.assertEqual(self.sent("ping", answer="pong"), (["ping", []], "pong\n"))

    def test_ls(self):
        rows = [{"handle": HANDLE_TEXT, "kind": "actor", "name": "left", "state": "idle", "mailbox": 0, "messages": 12, "heap": 1536,
                 "actor": "counter:Counter"},
                {"handle": HANDLE_TEXT, "kind": "actor", "name": "x\x1b[2J\x9bm", "published": "c.right", "state": "running", "mailbox": 65536,
                 "messages": 1, "heap": 3 << 20, "actor": "counter:Counter"}]
        sent, out = self.sent("ls", answer=rows)
        self.assertEqual(sent, ["list", []])
        self.assertEqual(out.splitlines(), [
            "HANDLE                                  KIND   NAME     PUBLISHED  STATE    MAILBOX  MESSAGES  HEAP  ACTOR",
            f"{HANDLE_TEXT}  actor  left     -          idle           0        12  1.5K  counter:Counter",
            f"{HANDLE_TEXT}  actor  x?[2J?m  c.right    running    65536         1  3.0M  counter:Counter"])
        sent, out = self.sent("ls", "actors", "-j", answer=rows)
        self.assertEqual(sent, ["list", [{"kind": "actor"}]])
        self.assertEqual(out.count("\n"), 1)
        self.assertEqual(json.loads(out), rows)
        self.assertEqual(self.sent("ls", "pools", answer=[])[1].count("\n"), 1)

    def test_info(self):
        answer = {"handle": HANDLE_TEXT, "heap_max": 64 << 20,
                  "handlers": [{"name": "bump", "async": False, "params": 1}, {"name": "work", "async": True, "params": 0}]}
        sent, out = self.sent("info", "c", answer=answer)
        self.assertEqual(sent, ["info", ["c"]])
        self.assertEqual(out, f"handle    {HANDLE_TEXT}\nheap_max  64M\nhandlers  bump/1, async work/0\n")
        self.assertEqual(json.loads(self.sent("-j", "info", "c", answer=answer)[1]), answer)


class Printed(unittest.TestCase):
    """What an answer is printed as."""

    def printed(self, answer, *options, **more):
        with answering(answer) as server:
            code, out, err = troupe("-S", server.socket, *options, "ask", *more.pop("own", []), "x", "y", **more)
            self.assertEqual((code, err), (0, "") if more.get("text", True) else (0, b""))
            return out

    def test_json_without_spaces(self):
        for answer, text in [
                ([1, 4, 9, 16], "[1,4,9,16]"), (None, "null"), (17, "17"), (3.0, "3.0"), (-0.0, "-0.0"), (1e100, "1e+100"),
                (2**63 - 1, "9223372036854775807"), (-2**63, "-9223372036854775808"), ("a b", '"a b"'), ("ü\n", '"ü\\n"'),
                ({"a": {"b": [True]}}, '{"a":{"b":[true]}}'), (float("nan"), '{"$float":"nan"}'), ([float("-inf")], '[{"$float":"-inf"}]'),
                (b"\0\xff", '{"$bin":"AP8="}'), ([b""], '[{"$bin":""}]'), (0.1, "0.1"), ({1: 2}, '{"1":2}')]:
            self.assertEqual(self.printed(answer), text + "\n")
            self.assertEqual(self.printed(answer, "-j"), text + "\n")

    def test_handles(self):
        handle = msgpack.ExtType(1, HANDLE)
        message = msgpack.ExtType(2, msgpack.packb([HANDLE, "add"]))
        self.assertEqual(self.printed(handle), HANDLE_TEXT + "\n")
        self.assertEqual(self.printed(handle, "-j"), f'"{HANDLE_TEXT}"\n')
        self.assertEqual(self.printed([handle]), f'[{{"$handle":"{HANDLE_TEXT}"}}]\n')
        self.assertEqual(self.printed(message), f'[{{"$handle":"{HANDLE_TEXT}"}},"add"]\n')

    def test_raw(self):
        self.assertEqual(self.printed(b"\0\xff", own=["--raw"], text=False), b"\0\xff")
        self.assertEqual(self.printed("text", own=["--raw"]), "text")
        self.assertEqual(self.printed([1], own=["--raw"]), "[1]\n")
        self.assertEqual(self.printed("text", "-j", own=["--raw"]), '"text"\n')

    def on_terminal(self, answer, *words, **changes):
        """What comes out of a terminal."""
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal is to be had: {error}")
        with answering(answer) as server:
            process = subprocess.Popen(arguments("-S", server.socket, *words), stdin=subprocess.DEVNULL, stdout=theirs,
                                       env=environment(**changes))
            os.close(theirs)
            out = b""
            try:
                while data := os.read(ours, 4096):
                    out += data
            except OSError:  # the terminal's other end is gone
                pass
            self.assertEqual(process.wait(scripted.TIMEOUT_SECONDS), 0)
        os.close(ours)
        return out.decode()

    def test_a_terminal_gets_strings_bare(self):
        self.assertEqual(self.on_terminal("start a, end a", "ask", "x", "y"), "start a, end a\r\n")
        self.assertEqual(self.on_terminal("text", "-j", "ask", "x", "y"), '"text"\r\n')
        self.assertEqual(self.on_terminal(["text"], "ask", "x", "y"), '["text"]\r\n')

    def test_errors_that_actors_choose_do_nothing_to_a_terminal(self):
        """What is not a terminal gets them as they are."""
        error = Error("fault", "a\x1b[2J\x9bm\nb\tc", "yes", traceback="x.lua:1\x07")
        with answering(error) as server:
            ours, theirs = pty.openpty()
            done = subprocess.run(arguments("-S", server.socket, "ask", "x", "y"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=theirs, env=environment(), timeout=scripted.TIMEOUT_SECONDS)
            os.close(theirs)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(os.read(ours, 4096).decode(), "troupe: ask: fault: a?[2J?m\r\nb\tc\r\nx.lua:1?\r\n")
            os.close(ours)
            self.assertEqual(troupe("-S", server.socket, "ask", "x", "y")[2], "troupe: ask: fault: a\x1b[2J\x9bm\nb\tc\nx.lua:1\x07\n")

    def test_colours_only_on_a_terminal_and_without_no_color(self):
        self.assertIn("\x1b[1mHANDLE", self.on_terminal([], "ls"))
        self.assertNotIn("\x1b", self.on_terminal([], "ls", NO_COLOR="1"))
        self.assertIn("\x1b[1mHANDLE", self.on_terminal([], "ls", NO_COLOR=""))

    def test_standard_output_that_is_full(self):
        with answering(1) as server, open("/dev/full", "w") as full:
            done = subprocess.run(arguments("-S", server.socket, "ask", "x", "y"), stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "troupe: ask: No space left on device\n"))


class Errors(unittest.TestCase):
    def codes(self):
        """The table of the protocol's codes, as the C code has it: (code, exit code)."""
        text = (SOURCE / "proto/code.h").read_text()
        return [(code, int(exit)) for code, exit in re.findall(r'X\(\w+, "([a-z-]+)", \w+, \w+, (\d+)\)', text)]

    def test_each_code_is_named_and_has_its_exit_code(self):
        codes = self.codes()
        self.assertEqual(len(codes), 31)
        for code, exit in codes:
            if code == "disconnected":
                continue
            with answering(Error(code, "so it is")) as server:
                self.assertEqual(troupe("-S", server.socket, "ask", "x", "y"), (exit, "", f"troupe: ask: {code}: so it is\n"))

    def test_a_code_that_is_not_known_is_judged_by_ran(self):
        for ran, exit in ("no", 7), ("maybe", 1), ("yes", 1):
            with answering(Error("of-tomorrow", ran=ran)) as server:
                self.assertEqual(troupe("-S", server.socket, "done", "x")[0], exit)

    def test_a_traceback_is_shown(self):
        with answering(Error("fault", "it broke", "yes", traceback="stack traceback:\n\tx.lua:1")) as server:
            self.assertEqual(troupe("-S", server.socket, "ask", "x", "y")[2],
                             "troupe: ask: fault: it broke\nstack traceback:\n\tx.lua:1\n")

    def test_nobody_holds_the_name(self):
        with answering(None) as server:
            self.assertEqual(troupe("-S", server.socket, "find", "n"), (4, "", "troupe: find: not-found: nobody holds the name `n`\n"))

    def test_the_socket_that_was_tried_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/none.sock"
            said = f"troupe: ping: disconnected: no daemon answers at {path}: No such file or directory\n"
            self.assertEqual(troupe("-S", path, "ping"), (3, "", said))
            self.assertEqual(troupe("ping", env=environment(TROUPE_SOCKET=path)), (3, "", said))
            code, _, err = troupe("--user", "ping", env=environment(XDG_RUNTIME_DIR=folder))
            self.assertEqual(code, 3)
            self.assertIn(f"{folder}/troupe/troupe.sock", err)
            self.assertIn("/run/troupe/troupe.sock", troupe("--system", "ping", env=environment(TROUPE_SOCKET=path))[2] or
                          "/run/troupe/troupe.sock: one answers on this machine")
            code, _, err = troupe("ping", "-S", "/" + "x" * 200)
            self.assertEqual(code, 3)
            self.assertIn("/xxx", err)

    def test_where_the_daemon_is(self):
        with answering("pong") as server, tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/troupe")
            os.symlink(server.socket, folder + "/troupe/troupe.sock")
            user = environment(XDG_RUNTIME_DIR=folder)
            self.assertEqual(troupe("ping", env=user)[0], 0)
            self.assertEqual(troupe("--user", "ping", env=user)[0], 0)
            self.assertEqual(troupe("ping", env=environment(TROUPE_SOCKET=server.socket))[0], 0)
            self.assertEqual(troupe("ping", env={**user, "TROUPE_SOCKET": "/nonexistent"})[0], 3)
            self.assertEqual(troupe("-S", server.socket, "ping", env={**user, "TROUPE_SOCKET": "/nonexistent"})[0], 0)
            self.assertEqual(troupe("ping", "-S", server.socket)[0], 0)

    @unittest.skipIf(os.path.exists(f"/run/user/{os.getuid()}/troupe"), "a daemon of this user's own may be running")
    def test_the_users_own_without_a_variable(self):
        """As `trouped --user` has it: what a login makes; a relative directory does not count."""
        own = f"/run/user/{os.getuid()}/troupe/troupe.sock"
        said = f"troupe: ping: disconnected: no daemon answers at {own}: No such file or directory\n"
        self.assertEqual(troupe("--user", "ping"), (3, "", said))
        self.assertEqual(troupe("--user", "ping", env=environment(XDG_RUNTIME_DIR="run")), (3, "", said))
        if not os.path.exists("/run/troupe/troupe.sock"):
            self.assertIn(f"no daemon answers at {own} or /run/troupe/troupe.sock: ", troupe("ping")[2])

    def test_the_connection_breaks(self):
        def on(server, method, params, answer):
            server.connections[0].shutdown(2)
        with Server(on) as server:
            code, _, err = troupe("-S", server.socket, "ask", "x", "y")
            self.assertEqual((code, err), (3, f"troupe: ask: disconnected: the connection to the daemon at {server.socket} broke\n"))

    def test_usage(self):
        with silent() as server:
            for words in (["ask", "x"], ["ask", "x", "y", "{a:1}"], ["ask", "x", "y", "99999999999999999999"], ["nothing"], [], ["ask", "--what"],
                          ["-t", "soon", "ping"], ["ls", "cats"], ["ask", "-P", 2, "x", "y"], ["send", "x", "y", "--lines", 1],
                          ["ask", "x", "y", "-P", 70000, "--lines"], ["spawn", "--if-absent", "a"], ["help", "nothing"],
                          ["--user", "-S", server.socket, "ping"], ["--user", "ping", "--system"], ["ask", "x", "y", "-s"], ["-j", "--"],
                          ["ask", "x", "y", "--json", "/nonexistent"], ["send", "x", "y", "--lines", "--json-lines"]):
                code, out, err = troupe("-S", server.socket, *words)
                self.assertEqual((code, out), (2, ""), words)
                self.assertRegex(err, r"\Atroupe: ")
            self.assertTrue(server.told.empty())

    def test_a_choice_that_is_none_says_which_there_are(self):
        self.assertIn("`cats` is none of actors, pools, components\n", troupe("ls", "cats")[2])
        self.assertIn("`cats` is none of lifecycle, refused, log, trace, task\n", troupe("events", "log", "cats")[2])

    def test_an_argument_that_is_no_json_says_why_and_how_to_quote_it(self):
        for text, why in [
                ("{a:1}", "that is not JSON: string or '}' expected near 'a'"), ("[1,", "that is not JSON: "), ('"x', "that is not JSON: "),
                ('{"a":1,"a":2}', "that is not JSON: duplicate object key near '"), ("[99999999999999999999]", "a number does not fit in 64 bits"),
                ("-9223372036854775809", "a number does not fit in 64 bits"), ("1e999", "a number does not fit in 64 bits"),
                ('{"$float":"big"}', "what stands behind $float is none of nan, inf and -inf"),
                ('[{"$bin":"?"}]', "what stands behind $bin is not base64"),
                ('{"$handle":"actor:5"}', "what stands behind $handle is not the text of one"),
                ('{"$bin":5}', "what stands behind $bin, $float or $handle is no string")]:
            code, out, err = troupe("ask", "x", "y", text)
            self.assertEqual((code, out), (2, ""))
            self.assertTrue(err.startswith(f"troupe: ask: {text}: {why}"), err)
            self.assertTrue(err.splitlines()[0].endswith(f" (as a string: -s '{text}')"), err)
            # the same where it comes from a file
            code, out, err = troupe("ask", "x", "y", "--json", "-", input=text)
            self.assertEqual((code, out), (2, ""))
            self.assertTrue(err.startswith(f"troupe: ask: -: {why}"), err)
            # or is a line
            with answering() as server:
                code, out, err = troupe("-S", server.socket, "ask", "x", "y", "--json-lines", input=f"[{text}]\n")
            self.assertTrue(err.startswith(f"troupe: ask: bad-request: line 1: {why.split(' near')[0]}"), err)

    def test_where_options_stand(self):
        """The global ones too: on both sides of COMMAND, up to the first ARG or a `--`."""
        def sent(*words):
            with answering("x") as server:
                code, out, err = troupe(*(server.socket if word == "SOCK" else word for word in words))
                self.assertEqual((code, err), (0, ""))
                return server.tell()[1], out
        self.assertEqual(sent("-S", "SOCK", "ask", "t", "h"), (["t", "h", []], '"x"\n'))
        self.assertEqual(sent("ask", "-S", "SOCK", "--raw", "t", "h"), (["t", "h", []], "x"))
        self.assertEqual(sent("ask", "t", "-S", "SOCK", "h", "--raw", "a"), (["t", "h", ["a"]], "x"))
        self.assertEqual(sent("ask", "t", "h", "-SSOCK".replace("SOCK", ""), "SOCK", "-5", "-j", "--raw"), (["t", "h", [-5, "-j", "--raw"]], '"x"\n'))
        self.assertEqual(sent("-S", "SOCK", "--", "ask", "--", "-t", "-h", "--", "-s", "--"), (["-t", "-h", ["--", "--"]], '"x"\n'))
        self.assertEqual(sent("-S", "SOCK", "ask", "t", "h", "--", "-s", "-s", "--raw"), (["t", "h", ["-s", "--raw"]], '"x"\n'))
        self.assertEqual(sent("ask", "t", "h", "-S", "SOCK", "-t", "5s", "-j"), (["t", "h", []], '"x"\n'))

    def test_help_and_version_need_no_daemon(self):
        code, out, err = troupe("help")
        self.assertEqual((code, err), (0, ""))
        for name in re.findall(r"^  (\w+) ", out, re.MULTILINE):
            self.assertEqual(troupe("help", name)[0], 0)
            self.assertEqual(troupe(name, "--help"), troupe("help", name))
        self.assertEqual(troupe("--help"), troupe("help"))
        code, out, err = troupe("version")
        self.assertRegex(out, r"\A\d+\.\d+\.\d+\n\Z")
        self.assertEqual(troupe("--version"), troupe("version"))


class Interrupted(unittest.TestCase):
    def interrupt(self, server, *words, number=signal.SIGINT, before=lambda: None, **options):
        """Interrupts it once the daemon was told; (exit code, output, error)."""
        process = subprocess.Popen(arguments("-S", server.socket, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment(), **{"stdin": subprocess.DEVNULL, **options})
        before()
        server.tell()
        process.send_signal(number)
        return process

    def test_the_request_is_taken_back(self):
        answers = {}

        def on(server, method, params, answer):
            answers["ask"] = answer
        with Server(on) as server:
            process = self.interrupt(server, "ask", "x", "y", 1)
            self.assertEqual(server.cancelled.get(timeout=scripted.TIMEOUT_SECONDS), ["x", "y", [1]])
            answers["ask"](Error("cancelled", "the caller took it back", "no"))
            out, err = process.communicate(timeout=scripted.TIMEOUT_SECONDS)
            self.assertEqual((process.returncode, out, err), (130, "", "troupe: ask: cancelled: the caller took it back\n"))

    def test_a_daemon_that_says_nothing_to_it_is_not_waited_for(self):
        with silent() as server:
            process = self.interrupt(server, "done", "x", number=signal.SIGTERM)
            self.assertEqual(server.cancelled.get(timeout=scripted.TIMEOUT_SECONDS), ["x", {}])
            process.communicate(timeout=scripted.TIMEOUT_SECONDS)
            self.assertEqual(process.returncode, 143)

    def test_an_answer_that_was_faster_is_printed(self):
        def on(server, method, params, answer):
            server.answer = answer
        with Server(on) as server:
            process = self.interrupt(server, "ask", "x", "y")
            server.cancelled.get(timeout=scripted.TIMEOUT_SECONDS)
            server.answer(5)
            out, err = process.communicate(timeout=scripted.TIMEOUT_SECONDS)
            self.assertEqual((process.returncode, out, err), (0, "5\n", ""))

    def test_an_attached_actor_is_stopped(self):
        answers = {}

        def on(server, method, params, answer):
            answers[method] = answer
            if method == "spawn":
                answer(msgpack.ExtType(1, HANDLE))
            if method == "stop":
                answer(None)
                answers["done"](None)
        with Server(on) as server:
            process = self.interrupt(server, "spawn", "--attach", "x",
                                     before=lambda: self.assertEqual(server.tell(), ["spawn", ["x", [], {}]]))
            out, err = process.communicate(timeout=scripted.TIMEOUT_SECONDS)
            self.assertEqual((process.returncode, out, err), (130, HANDLE_TEXT + "\n", ""))
            self.assertEqual(server.tell(), ["stop", [HANDLE_TEXT, {}]])

    def test_attached_until_it_ends(self):
        for end, code in (None, 0), (Error("fault", "it broke"), 1), (Error("killed"), 1):
            def on(server, method, params, answer):
                answer(msgpack.ExtType(1, HANDLE) if method == "spawn" else end)
            with Server(on) as server:
                self.assertEqual(troupe("-S", server.socket, "spawn", "--attach", "x")[:2], (code, HANDLE_TEXT + "\n"))

    def test_asks_for_lines_are_taken_back(self):
        with silent() as server:
            ours, theirs = os.pipe()
            with os.fdopen(theirs, "w") as pipe:
                pipe.write("a\nb\n")
                pipe.flush()
                process = self.interrupt(server, "ask", "x", "y", "--lines", "-P", 5, stdin=ours, before=server.tell)
                os.close(ours)
                taken_back = [server.cancelled.get(timeout=scripted.TIMEOUT_SECONDS) for _ in range(2)]
                process.communicate(timeout=scripted.TIMEOUT_SECONDS)
        self.assertEqual(sorted(taken_back), [["x", "y", ["a"]], ["x", "y", ["b"]]])
        self.assertEqual(process.returncode, 130)


class SendLines(unittest.TestCase):
    def send(self, on, lines, *options, form="--lines", **more):
        with Server(on) as server:
            return troupe("-S", server.socket, "send", "x", "y", form, *options, input=lines, **more)

    def test_every_line_in_order(self):
        mailbox = Mailbox(65536)
        lines = [str(i) for i in range(5000)] + ["", " a ", "{x", "last"]
        self.assertEqual(self.send(mailbox, "\n".join(lines)), (0, "", ""))
        mailbox.close()
        self.assertEqual(mailbox.handled, [["x", "y", [line]] for line in lines])
        self.assertLessEqual(mailbox.most, 65536 // 2)

    def test_no_mailbox_is_overrun(self):
        lines = [str(i) for i in range(300)]
        for size in 1, 2, 3, 4, 5, 7, 10, 50:
            for knows_size in True, False:
                with self.subTest(size=size, knows_size=knows_size):
                    mailbox = Mailbox(size, knows_size)
                    self.assertEqual(self.send(mailbox, "\n".join(lines)), (0, "", ""))
                    mailbox.close()
                    self.assertEqual([params[2][0] for params in mailbox.handled], lines)
                    # a mark may be refused where one message is all that it holds, a line never
                    self.assertEqual([method for method, params in mailbox.refused if method == "send"], [])
                    if size > 1:
                        self.assertEqual(mailbox.refused, [])

    def test_an_actor_that_takes_its_time(self):
        turn = threading.Semaphore(0)
        mailbox = Mailbox(8, pace=turn.acquire)
        with Server(mailbox) as server:
            process = subprocess.Popen(arguments("-S", server.socket, "send", "x", "y", "--lines"), stdin=subprocess.PIPE, env=environment())
            process.stdin.write(b"x\n" * 1000)
            process.stdin.close()
            for _ in range(3000):
                turn.release()
            self.assertEqual(process.wait(scripted.TIMEOUT_SECONDS), 0)
            mailbox.close()
        self.assertEqual(len(mailbox.handled), 1000)
        self.assertEqual(mailbox.refused, [])

    def test_lines_arrive_as_they_are_written(self):
        with answering({}) as server:
            process = subprocess.Popen(arguments("-S", server.socket, "send", "x", "y", "--lines"), stdin=subprocess.PIPE, env=environment())
            self.assertEqual(server.tell()[0], "info")
            for line in "one", "two":
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()
                while (told := server.tell())[0] != "send":
                    pass
                self.assertEqual(told, ["send", ["x", "y", [line]]])
            process.stdin.close()
            self.assertEqual(process.wait(scripted.TIMEOUT_SECONDS), 0)

    def refusing(self, number, error):
        """Refuses that line, and takes all others; answers in the wrong order."""
        mailbox = {"mailbox_max": 65536, "mailbox_bytes_max": 64 << 20}
        held = []

        def on(server, method, params, answer):
            if method == "info":
                answer(mailbox)
            elif method == "send":
                held.append((answer, Error(error, "not this one") if int(params[2][0]) == number else None))
                if len(held) == 10:
                    for late, value in reversed(held):
                        late(value)
                    held.clear()
        return on

    def test_the_first_refusal_ends_it_with_its_number(self):
        lines = "".join(f"{i}\n" for i in range(1, 11))
        code, out, err = self.send(self.refusing(7, "mailbox-full"), lines)
        self.assertEqual((code, out), (7, ""))
        self.assertEqual(err, "troupe: send: mailbox-full: line 7: not this one\n"
                              "troupe: send: 3 lines behind it were on their way and were accepted\n")
        code, out, err = self.send(self.refusing(10, "not-running"), lines)
        self.assertEqual((code, err), (4, "troupe: send: not-running: line 10: not this one\n"))

    def test_a_target_that_is_not_there(self):
        def on(server, method, params, answer):
            raise Error("not-found", "nobody holds the name `x`")
        self.assertEqual(self.send(on, "a\nb\n"), (4, "", "troupe: send: not-found: line 1: nobody holds the name `x`\n"))
        self.assertEqual(self.send(on, ""), (0, "", ""))

    def test_json_lines(self):
        mailbox = Mailbox(100)
        self.assertEqual(self.send(mailbox, '[1,"a"]\n[]\n[{"$bin":"AA=="}]', form="--json-lines"), (0, "", ""))
        mailbox.close()
        self.assertEqual([params[2] for params in mailbox.handled], [[1, "a"], [], [b"\0"]])
        for bad in "{}", "[1", "", "[99999999999999999999]":
            mailbox = Mailbox(100)
            code, _, err = self.send(mailbox, f"[1]\n[2]\n{bad}\n[4]\n", form="--json-lines")
            mailbox.close()
            self.assertEqual(code, 2)
            self.assertRegex(err, r"\Atroupe: send: bad-request: line 3: ")
            self.assertEqual([params[2] for params in mailbox.handled], [[1], [2]])

    def test_a_large_line_goes_alone(self):
        mailbox = Mailbox(1000)
        large = "x" * (600 << 10)
        self.assertEqual(self.send(mailbox, "\n".join(["a", large, "b", "c", large])), (0, "", ""))
        mailbox.close()
        self.assertEqual([params[2][0] for params in mailbox.handled], ["a", large, "b", "c", large])

    def test_interrupted_between_lines(self):
        with answering({}) as server:
            process = subprocess.Popen(arguments("-S", server.socket, "send", "x", "y", "--lines"), stdin=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=environment())
            process.stdin.write("one\n")
            process.stdin.flush()
            while server.tell()[0] != "send":
                pass
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(scripted.TIMEOUT_SECONDS), 130)
            self.assertEqual(process.stderr.read(), "troupe: send: cancelled: interrupted behind line 1\n")
            process.stdin.close()
            process.stderr.close()


class AskLines(unittest.TestCase):
    def test_answers_in_the_order_of_the_lines(self):
        held = []
        most = []

        def on(server, method, params, answer):
            held.append((answer, params[2][0]))
            most.append(len(held))
            if len(held) == 4 or params[2][0] == "l10":
                for late, line in reversed(held):
                    late(line.upper())
                held.clear()
        lines = "".join(f"l{i}\n" for i in range(1, 11))
        with Server(on) as server:
            code, out, err = troupe("-S", server.socket, "ask", "x", "y", "--lines", "-P", 4, input=lines)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, "".join(f'"L{i}"\n' for i in range(1, 11)))
        self.assertEqual(max(most), 4)

    def test_one_at_a_time_unless_more_are_asked_for(self):
        held = []

        def on(server, method, params, answer):
            held.append(params)
            self.assertEqual(len(held), 1)
            held.clear()
            answer(params[2])
        with Server(on) as server:
            self.assertEqual(troupe("-S", server.socket, "ask", "x", "y", "--json-lines", input='[1,2]\n[]\n["a"]'),
                             (0, '[1,2]\n[]\n["a"]\n', ""))

    def test_the_first_failure_ends_it_with_its_number(self):
        def on(server, method, params, answer):
            line = params[2][0]
            answer(Error("fault", "it broke", "yes") if line == "c" else line)
        with Server(on) as server:
            for parallel in 1, 3, 100:
                self.assertEqual(troupe("-S", server.socket, "ask", "x", "y", "--lines", "-P", parallel, input="a\nb\nc\nd\ne\n"),
                                 (1, '"a"\n"b"\n', "troupe: ask: fault: line 3: it broke\n"))

    def test_a_line_that_is_no_json(self):
        with answering(0) as server:
            code, out, err = troupe("-S", server.socket, "ask", "x", "y", "--json-lines", "-P", 9, input="[1]\n[2]\n3\n[4]\n")
        self.assertEqual((code, out), (2, "0\n0\n"))
        self.assertEqual(err, "troupe: ask: bad-request: line 3: that is not a JSON array of arguments\n")

    def test_raw(self):
        with answering("text") as server:
            self.assertEqual(troupe("-S", server.socket, "ask", "--raw", "x", "y", "--lines", input="1\n2\n")[1], "text\ntext\n")

    def test_answers_are_out_before_the_next_line_comes(self):
        with Server(lambda server, method, params, answer: answer(params[2][0])) as server:
            process = subprocess.Popen(arguments("-S", server.socket, "ask", "x", "y", "--lines"), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, env=environment())
            for line in "a", "b":
                process.stdin.write(line + "\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), f'"{line}"\n')
            process.stdin.close()
            self.assertEqual(process.wait(scripted.TIMEOUT_SECONDS), 0)
            process.stdout.close()


if __name__ == "__main__":
    unittest.main()
