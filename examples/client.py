#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spawns a counter, tells it twice and asks it once, through the socket named by TROUPE_SOCKET. Prints 3."""
import os, socket
import msgpack

daemon = socket.socket(socket.AF_UNIX)
daemon.connect(os.environ["TROUPE_SOCKET"])
answers = msgpack.Unpacker()

def request(msgid, method, *params):
    daemon.sendall(msgpack.packb([0, msgid, method, params]))
    while True:
        for _, answered, error, result in answers:
            if error:
                raise RuntimeError(f"{method}: {error['code']}: {error['message']}")
            return result
        answers.feed(daemon.recv(65536) or exit("the daemon closed the connection"))

request(0, "hello", {"errors": "map"})
counter = request(1, "spawn", "counter", [])
request(2, "send", counter, "bump", [2])
request(3, "send", counter, "bump", [])
print(request(4, "ask", counter, "total", []))
