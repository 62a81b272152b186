# SPDX-License-Identifier: Apache-2.0
"""A replica with nothing but a socket and a stock MessagePack: what a worker in any language would be."""

import socket
import threading

import msgpack


class Replica:
    """Serves a component from threads of its own: each operation is a function of (input, context) that answers the result.

    What it raises as Refusal is the error that it answers.
    """

    class Refusal(Exception):
        pass

    def __init__(self, path, component, operations, **options):
        self.operations = operations
        self.contexts = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lock = threading.Lock()
        self.frames = msgpack.Unpacker(self.socket.makefile("rb", buffering=0), strict_map_key=False)
        self.write([0, 1, "serve", [component, options]])
        answer = next(self.frames)
        assert answer[:3] == [1, 1, None], answer
        self.instance = answer[3]["instance"]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def write(self, frame):
        with self.lock:
            self.socket.sendall(msgpack.packb(frame))

    def run(self):
        for frame in self.frames:
            if frame[0] == 0:
                threading.Thread(target=self.answer, args=(frame[1], *frame[3]), daemon=True).start()

    def answer(self, msgid, operation, value, context):
        self.contexts.append(context)
        try:
            frame = [1, msgid, None, self.operations[operation](value, context)]
        except Replica.Refusal as refusal:
            frame = [1, msgid, list(refusal.args), None]
        except Exception as error:  # whatever it is, it is an answer
            frame = [1, msgid, f"{type(error).__name__}: {error}", None]
        try:
            self.write(frame)
        except OSError:
            pass  # it was closed meanwhile

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join()
        self.socket.close()
