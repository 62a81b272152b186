# SPDX-License-Identifier: Apache-2.0
"""trouped as a service manager sees it: a process that tells a datagram socket what it does, and has a socket of its own.

    with service.Service("-S", path) as daemon:
        daemon.wait_for("READY=1")
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import harness

TROUPED = harness.BUILD / "trouped"


def environment(**changes):
    """This process's environment without what a service manager of the test's own may have put there."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("LISTEN_", "WATCHDOG_", "XDG_")) and key not in ("NOTIFY_SOCKET", "JOURNAL_STREAM")}
    return kept | changes


def store_in(folder):
    """A configuration that says nothing but where the store is: a daemon of a test does not take the machine's."""
    file = pathlib.Path(folder) / "store.json"
    file.write_text('{"components": [], "store": {"path": "troupe.db"}}')
    return file


def run(*arguments, **changes):
    """Runs trouped to its end; answers exit code, standard output, standard error."""
    done = subprocess.run([TROUPED, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, timeout=harness.TIMEOUT_SECONDS, env=environment(**changes))
    if harness.SANITIZER_REPORT.search(done.stderr):
        raise AssertionError(done.stderr)
    return done.returncode, done.stdout, done.stderr


class Service:
    """A running trouped. Leaving the block ends it, and holds that it exits with 0."""

    def __init__(self, *arguments, listener=None, before=None, **changes):
        """`listener`: a listening socket that is passed to it; `before`: called in the new process; `changes` of the environment."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-service-"))
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(self.folder / "notify"))
        self.notify.settimeout(harness.TIMEOUT_SECONDS)
        command = [str(TROUPED), *map(str, arguments)]
        if listener:
            command = [sys.executable, "-I", "-S", "-c", harness.LAUNCHER, str(listener.fileno()), *command]
        with open(self.folder / "stderr", "wb") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, pass_fds=[listener.fileno()] if listener else [],
                preexec_fn=before, env=environment(NOTIFY_SOCKET=str(self.folder / "notify"), **changes))

    def log(self):
        return (self.folder / "stderr").read_text(errors="replace")

    def told(self):
        """The next thing it tells."""
        return self.notify.recv(4096).decode()

    def wait_for(self, state):
        """Waits until it tells that; answers what it told before."""
        before = []
        while (told := self.told()) != state:
            before.append(told)
        return before

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        return self.process.wait(harness.TIMEOUT_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, exception_type, exception, traceback):
        try:
            if self.process.poll() is None:
                self.signal()
            code = self.wait()
            log = self.log()
            if exception_type is None and (code != 0 or harness.SANITIZER_REPORT.search(log)):
                raise AssertionError(f"trouped exited with {code}:\n{log}")
        finally:
            self.process.kill()
            self.process.wait()
            self.notify.close()
            shutil.rmtree(self.folder)
