# SPDX-License-Identifier: Apache-2.0
"""Tasks that are accepted, each of them on disk when its caller hears so: beside jobs of beanstalkd and elements of a list of Redis."""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile

import harness

CALLERS = 64
TASKS = 5_000

# Nobody serves it: what is measured is that tasks are kept.
COMPONENT = {"name": "bench.tasks", "operations": {"keep": {}}}


def wait_until_up(server, path):
    """Until somebody listens there."""
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                connection.connect(path)
                return
        if server.poll() is not None:
            raise RuntimeError(f"{server.args[0]} did not start")


class Tasks:
    """Starts what is installed; each of them keeps what it has on the same file system. `measured` runs a measuring program."""

    def __init__(self, measured):
        self.measured, self.peers = measured, {}
        with contextlib.ExitStack() as stack:
            self.daemon = stack.enter_context(harness.Daemon(config={"components": [COMPONENT]}))
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="troupe-bench-")))
            self.start_peer(stack, "beanstalkd", lambda path: ["-l", f"unix:{path}", "-b", str(self.directory), "-f", "0"])
            self.start_peer(stack, "redis", lambda path: ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "yes",
                                                          "--appendfsync", "always", "--dir", str(self.directory)])
            self.stack = stack.pop_all()

    def start_peer(self, stack, name, arguments):
        program = shutil.which(name) or shutil.which(f"{name}-server")
        if not program:
            return
        path = str(self.directory / f"{name}.sock")
        server = stack.enter_context(subprocess.Popen([program, *arguments(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        stack.callback(server.terminate)
        wait_until_up(server, path)
        self.peers[name] = path

    def accepted(self, path, *what):
        return self.measured("tasks", path, CALLERS, TASKS, *what)

    def one_round(self):
        return {
            "tasks": self.accepted(self.daemon.socket, "task", COMPONENT["name"], "keep"),
            **{f"{name} tasks": self.accepted(path, name) for name, path in self.peers.items()},
        }

    def close(self):
        self.stack.close()
