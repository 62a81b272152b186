# SPDX-License-Identifier: Apache-2.0
"""The clients in examples/, each of which has nothing but a MessagePack library of its language."""

import contextlib
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

import harness
import stock

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"
LINES_MAX = 30


def unread(sender):
    """Whether the other end has yet to read what was sent to it."""
    return struct.unpack("i", fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4)))[0] > 0


class Trickle:
    """A socket through which one connection reaches the daemon, and is sent the daemon's answers a byte at a time: each goes out when
    the one before it has been read."""

    def __init__(self, daemon):
        self.directory = tempfile.TemporaryDirectory(prefix="troupe-test-")
        self.socket = f"{self.directory.name}/socket"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket)
        self.listener.listen()
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.connect(daemon.socket)
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        with contextlib.suppress(OSError):
            self.client = self.listener.accept()[0]
            self.threads.append(threading.Thread(target=self.forward, args=(self.client, self.daemon, 65536), daemon=True))
            self.threads[1].start()
            self.forward(self.daemon, self.client, 1)

    @staticmethod
    def forward(source, target, size):
        with contextlib.suppress(OSError):
            while data := source.recv(size):
                target.sendall(data)
                while size == 1 and unread(target):
                    os.sched_yield()
            target.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for end in (self.listener, self.daemon):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(harness.TIMEOUT_SECONDS)
        for end in (self.listener, self.daemon, *([self.client] if hasattr(self, "client") else [])):
            end.close()
        self.directory.cleanup()


class ByHand:
    """What each of them does, as a mixin for a TestCase that has `program` and `command`."""

    environment = {}

    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES])
        self.addCleanup(self.daemon.close)

    def run_client(self, path, *arguments):
        return subprocess.run([*self.command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=harness.TIMEOUT_SECONDS, env={**os.environ, **self.environment, "TROUPE_SOCKET": path})

    def test_it_prints_three(self):
        done = self.run_client(self.daemon.socket)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("3\n", "", 0))

    def test_it_says_what_was_refused(self):
        done = self.run_client(self.daemon.socket, "nowhere")
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"spawn: not-found: there is no module `nowhere`; tried: .*\n\Z")
        self.assertNotEqual(done.returncode, 0)

    def test_answers_may_come_in_any_pieces(self):
        with Trickle(self.daemon) as trickle:
            done = self.run_client(trickle.socket)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("3\n", "", 0))

    def test_it_ends_where_the_daemon_does(self):
        with tempfile.TemporaryDirectory(prefix="troupe-test-") as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder}/socket")
            listener.listen()
            closing = threading.Thread(target=self.close_after_the_first_bytes, args=(listener,))
            closing.start()
            done = self.run_client(f"{folder}/socket")
            closing.join(harness.TIMEOUT_SECONDS)
        self.assertEqual(done.stdout, "")
        self.assertNotEqual(done.stderr, "")
        self.assertNotEqual(done.returncode, 0)

    @staticmethod
    def close_after_the_first_bytes(listener):
        with listener.accept()[0] as client:
            client.recv(65536)

    def test_it_is_short(self):
        lines = (EXAMPLES / self.program).read_text().splitlines()
        self.assertLessEqual(len(lines), LINES_MAX)
        self.assertLessEqual(max(map(len, lines)), 120)


class Python(ByHand, unittest.TestCase):
    program = "client.py"
    command = [sys.executable, EXAMPLES / program]


class Ruby(ByHand, unittest.TestCase):
    program = "client.rb"
    command = ["ruby", EXAMPLES / program]

    @classmethod
    def setUpClass(cls):
        stock.need("ruby")
        stock.need_success("ruby-msgpack is not installed", "ruby", "-e", "require 'msgpack'")


class Node(ByHand, unittest.TestCase):
    program = "client.js"
    command = ["node", EXAMPLES / program]

    @classmethod
    def setUpClass(cls):
        cls.environment = stock.npm(cls, "@msgpack/msgpack@3.1.2")


class Go(ByHand, unittest.TestCase):
    program = "client.go"

    @classmethod
    def setUpClass(cls):
        cls.command = [stock.go_program(cls, EXAMPLES / cls.program, "github.com/ugorji/go/codec")]


class Perl(ByHand, unittest.TestCase):
    program = "client.pl"
    command = ["perl", EXAMPLES / program]

    @classmethod
    def setUpClass(cls):
        stock.need("perl")
        stock.need_success("libdata-messagepack-stream-perl is not installed",
                           "perl", "-MData::MessagePack", "-MData::MessagePack::Stream", "-e", "1")


class Php(ByHand, unittest.TestCase):
    program = "client.php"
    command = ["php", EXAMPLES / program]

    @classmethod
    def setUpClass(cls):
        stock.need("php")
        stock.need_success("php-msgpack is not installed", "php", "-r", "exit(extension_loaded('msgpack') ? 0 : 1);")


if __name__ == "__main__":
    unittest.main()
