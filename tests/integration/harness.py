# SPDX-License-Identifier: Apache-2.0
"""A daemon for one test, and a client that speaks raw MessagePack-RPC to it.

The test listens and passes the socket on, as systemd would: whoever connects is served as soon as the daemon is up, so nothing here
sleeps, polls or tries again.

    with harness.Daemon(files={"echo.lua": "..."}) as daemon, harness.Client(daemon.socket) as client:
        client.request("ask", client.request("spawn", "echo", []), "say", ["hello"])
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import msgpack

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])

# Longer than anything takes on a busy machine with a sanitizer; what takes longer hangs.
TIMEOUT_SECONDS = 120

# Becomes the daemon: descriptor 3 is the socket, and the environment says for which process.
LAUNCHER = """
import os, sys
fd = int(sys.argv[1])
os.dup2(fd, 3)
if fd != 3:
    os.close(fd)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""

SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|Assertion .* failed")


def merged(base, changes):
    """A configuration with another one laid over it."""
    result = dict(base)
    for key, value in changes.items():
        both_maps = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both_maps else value
    return result


class Daemon:
    """A private trouped: its modules are `files` (name: text) and what is in the directories of `path`.

    close() ends it as a service manager would, and holds that it exits with 0 and that no sanitizer has reported.
    """

    def __init__(self, path=(), files=None, config=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        modules = self.directory / "lua"
        modules.mkdir()
        for name, text in (files or {}).items():
            (modules / name).write_text(text)
        base = {"path": [str(modules), *map(str, path)], "components": [], "log": {"format": "json"},
                "store": {"path": str(self.directory / "troupe.db")}}
        self.config = self.directory / "trouped.json"
        self.config.write_text(json.dumps(merged(base, config or {})))
        self.socket = str(self.directory / "troupe.sock")
        self.process = None
        self._start()

    def _start(self):
        with socket.socket(socket.AF_UNIX) as listener, open(self.directory / "stderr", "wb") as stderr:
            listener.bind(self.socket)
            listener.listen(1024)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCHER, str(listener.fileno()), str(BUILD / "trouped"), "-c", str(self.config)],
                pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        """All that it has written to its standard error so far."""
        return (self.directory / "stderr").read_text(errors="replace")

    def wait(self):
        """Waits for its end; answers its exit code."""
        return self.process.wait(TIMEOUT_SECONDS)

    def wait_until_up(self):
        """Waits until it serves, or has ended: before that a signal would end it like any program that is just starting."""
        try:
            with Client(self.socket, errors=None) as client:
                client.send(msgpack.packb([0, 0, "ping", []]))
                client.receive()
        except ConnectionError:
            self.wait()

    def kill(self):
        """Kills it; after this nobody listens."""
        self.process.kill()
        self.wait()
        os.unlink(self.socket)
        if SANITIZER_REPORT.search(self.log()):  # the next one has a log of its own
            raise AssertionError(f"the daemon was killed, and had reported:\n{self.log()}")

    def stop(self):
        """Ends it as a service manager would; after this nobody listens."""
        self.wait_until_up()
        self.process.send_signal(signal.SIGTERM)
        if (ended_with := self.wait()) != 0:
            raise AssertionError(f"the daemon exited with {ended_with}:\n{self.log()}")
        os.unlink(self.socket)

    def start_again(self):
        """Another one in the place of one that was killed, or stopped."""
        self._start()

    def close(self, exit_code=0):
        try:
            self.wait_until_up()
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            try:
                ended_with = self.wait()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"the daemon did not end:\n{self.log()}") from None
            if ended_with != exit_code or SANITIZER_REPORT.search(self.log()):
                raise AssertionError(f"the daemon exited with {ended_with}:\n{self.log()}")
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception, traceback):
        try:
            self.close()
        except AssertionError:
            # What the test itself found comes first, but the log explains it.
            if exception_type is None:
                raise
            sys.stderr.write(self.log() if self.directory.exists() else "")


class Error(Exception):
    """What the daemon answered instead of a result."""

    def __init__(self, data):
        self.data = data
        self.code, self.message, self.ran = data["code"], data["message"], data["ran"]
        super().__init__(f"{self.code}: {self.message} (ran: {self.ran})")


class Client:
    """A connection. `errors` None leaves it as a stock client has it: no hello, errors as pairs (which raise as they are)."""

    def __init__(self, path, errors="map", **hello):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_SECONDS)
        self.socket.connect(path)
        self.unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=1 << 30)
        self.answers = {}
        self.notifications = collections.deque()
        self.next_id = 0
        if errors or hello:
            self.hello = self.request("hello", {"client": "tests", **({"errors": errors} if errors else {}), **hello})

    def send(self, data):
        """Sends bytes as they are."""
        self.socket.sendall(data)

    def receive(self):
        """The next frame, or None where the daemon has closed the connection."""
        while True:
            for frame in self.unpacker:
                return frame
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.unpacker.feed(data)

    def frame(self, method, *params):
        """The id and the bytes of a request that is not sent yet."""
        self.next_id += 1
        return self.next_id, msgpack.packb([0, self.next_id, method, params])

    def start(self, method, *params):
        """Sends a request; answers its id."""
        request_id, data = self.frame(method, *params)
        self.send(data)
        return request_id

    def finish(self, request_id):
        """Waits for the answer to a request, whatever else comes before."""
        while request_id not in self.answers:
            frame = self.receive()
            if frame is None:
                raise ConnectionError(f"the daemon closed the connection; its log:\n{self.log()}")
            if frame[0] == 1:
                self.answers[frame[1]] = frame[2:]
            else:
                self.notifications.append(frame)
        error, result = self.answers.pop(request_id)
        if error is not None:
            raise Error(error) if isinstance(error, dict) else RuntimeError(error)
        return result

    def log(self):
        """What its daemon has logged, where that is a Daemon."""
        log = pathlib.Path(self.path).with_name("stderr")
        return log.read_text(errors="replace") if log.exists() else ""

    def request(self, method, *params):
        return self.finish(self.start(method, *params))

    def notify(self, method, *params):
        self.send(msgpack.packb([2, method, params]))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
