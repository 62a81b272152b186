# SPDX-License-Identifier: Apache-2.0
"""A daemon's socket with a test behind it: it answers what the test says, when the test says so, and keeps what it was told.

    with scripted.Server(lambda server, method, params, answer: answer("pong")) as server:
        subprocess.run(["troupe", "-S", server.socket, "ping"])
"""

import queue
import shutil
import socket
import tempfile
import threading

import msgpack

TIMEOUT_SECONDS = 120
HANDLE = bytes(range(16))
HANDLE_TEXT = "actor:" + HANDLE.hex()


def typed(value):
    """What the protocol's extension types are in Python: a handle is its text."""
    if isinstance(value, msgpack.ExtType) and value.code == 1:
        return ("pool:" if value.data[0] & 0x80 else "actor:") + value.data.hex()
    if isinstance(value, (list, tuple)):
        return [typed(element) for element in value]
    if isinstance(value, dict):
        return {key: typed(element) for key, element in value.items()}
    return value


class Error(Exception):
    """Answered as the error of a request."""

    def __init__(self, code, message="no", ran="no", **more):
        super().__init__(code)
        self.value = {"code": code, "message": message, "ran": ran, **more}


class Server:
    """`on(server, method, params, answer)` is called for each request but hello; answer(value) or answer(Error(...)) may be
    called then, later, from any thread, or never. `told` is a queue of all [method, params], `cancelled` one of the params
    of the requests that were cancelled."""

    def __init__(self, on):
        self.on = on
        self.directory = tempfile.mkdtemp(prefix="troupe-test-")
        self.socket = self.directory + "/troupe.sock"
        self.told = queue.Queue()
        self.cancelled = queue.Queue()
        self.failure = None
        self.connections = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket)
        self.listener.listen()
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        for thread in self.threads:
            thread.join(TIMEOUT_SECONDS)
        shutil.rmtree(self.directory)
        if self.failure and not exception[0]:
            raise self.failure

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            self.threads.append(threading.Thread(target=self.serve, args=[connection], daemon=True))
            self.threads[-1].start()

    def serve(self, connection):
        unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape", max_buffer_size=1 << 30)
        pending = {}
        lock = threading.Lock()
        try:
            while data := connection.recv(1 << 16):
                unpacker.feed(data)
                for frame in unpacker:
                    self.frame(connection, lock, pending, typed(frame))
        except OSError:
            pass
        except Exception as failure:  # a test's own mistake must not hang the program that waits for an answer
            self.failure = failure
            connection.shutdown(socket.SHUT_RDWR)

    def frame(self, connection, lock, pending, frame):
        if frame[0] == 2:
            if frame[1] == "cancel":
                self.cancelled.put(pending.get(frame[2][0]))
            return
        _, number, method, params = frame

        def answer(value=None):
            failed = isinstance(value, Error)
            error, result = (value.value, None) if failed else (None, value)
            data = msgpack.packb([1, number, error, result], unicode_errors="surrogateescape")
            with lock:
                pending.pop(number, None)
                connection.sendall(data)

        if method == "hello":
            answer({"server": "scripted", "version": "0", "protocol": 1, "limits": {}})
            return
        pending[number] = params
        self.told.put([method, params])
        try:
            self.on(self, method, params, answer)
        except Error as error:
            answer(error)

    def tell(self):
        """The next [method, params] that came."""
        return self.told.get(timeout=TIMEOUT_SECONDS)


class Mailbox:
    """An actor's mailbox behind `send` and `ask`: it refuses what is too much, and its thread handles one at a time."""

    def __init__(self, size, knows_size=True, pace=None):
        self.size = size
        self.knows_size = knows_size
        self.pace = pace
        self.waiting = queue.Queue()
        self.held = 0
        self.lock = threading.Lock()
        self.handled = []
        self.refused = []
        self.most = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __call__(self, server, method, params, answer):
        if method == "info":
            if not self.knows_size:
                raise Error("denied", "spawn is needed")
            answer({"mailbox": 0, "mailbox_max": self.size, "mailbox_bytes_max": 1 << 20})
            return
        with self.lock:
            if self.held == self.size:
                self.refused.append([method, params])
                raise Error("mailbox-full", "the mailbox is full")
            self.held += 1
            self.most = max(self.most, self.held)
        if method == "send":
            answer(None)
            self.waiting.put((params, None))
        else:
            self.waiting.put((params, answer))

    def run(self):
        while item := self.waiting.get():
            if self.pace:
                self.pace()
            params, answer = item
            with self.lock:
                self.held -= 1
            if answer:
                try:
                    answer(Error("no-such-handler", f"no handler {params[1]}"))
                except OSError:
                    pass
            else:
                self.handled.append(params)

    def close(self):
        """All that was accepted is handled after this."""
        self.waiting.put(None)
        self.thread.join(TIMEOUT_SECONDS)
