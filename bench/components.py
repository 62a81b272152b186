# SPDX-License-Identifier: Apache-2.0
"""What calls of operations cost: of a Lua replica beside an ask of the same work, of a Python worker beside the same worker without a daemon."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import harness

BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
WORKER = SOURCE / "bench" / "worker.py"

CALLS = 10_000
PYTHON_CALLS = 20_000
OUTSTANDING = 32

COMPONENTS = [
    {"name": "bench.parrots", "module": "parrots", "operations": {"echo": {}}},
    {"name": "bench.worker", "concurrency": OUTSTANDING, "operations": {"echo": {}}},
]


def measured(socket, depth, count, *what):
    command = [str(BUILD / "bench" / "calls"), socket, str(depth), str(count), *what]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def start(stack, *arguments):
    """A worker that is ready."""
    worker = stack.enter_context(subprocess.Popen([sys.executable, str(WORKER), *arguments], stdout=subprocess.PIPE, text=True))
    stack.callback(worker.kill)
    if worker.stdout.readline() != "ready\n":
        raise RuntimeError("the worker did not start")


class Calls:
    def __init__(self, path):
        with contextlib.ExitStack() as stack:
            self.daemon = stack.enter_context(harness.Daemon(path=path, config={"components": COMPONENTS}))
            with harness.Client(self.daemon.socket) as client:
                self.parrot = client.request("spawn", "parrot", [], {"detach": True})
                self.parrot = "actor:" + self.parrot.data.hex() if hasattr(self.parrot, "data") else self.parrot
            self.bare = str(pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "bare.sock")
            start(stack, "serve", self.daemon.socket, "bench.worker")
            start(stack, "bare", self.bare)
            self.stack = stack.pop_all()

    def one_round(self):
        through, lua = ("call", "bench.worker", "echo"), ("call", "bench.parrots", "echo")
        return {
            "ask echo": measured(self.daemon.socket, 1, CALLS, "ask", self.parrot, "echo"),
            "call lua": measured(self.daemon.socket, 1, CALLS, *lua),
            "python bare": measured(self.bare, OUTSTANDING, PYTHON_CALLS, "bare"),
            "call python": measured(self.daemon.socket, OUTSTANDING, PYTHON_CALLS, *through),
            "python bare 1": measured(self.bare, 1, CALLS, "bare"),
            "call python 1": measured(self.daemon.socket, 1, CALLS, *through),
        }

    def close(self):
        self.stack.close()
