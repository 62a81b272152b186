#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spawns a counter (or the actor that is named), tells it twice, asks it once and prints 3; or what was refused."""
import os, socket, sys
import msgpack

daemon = socket.socket(socket.AF_UNIX)
daemon.connect(os.environ["TROUPE_SOCKET"])
answers = msgpack.Unpacker()

def request(msgid, method, *params):
    daemon.sendall(msgpack.packb([0, msgid, method, params]))
    while True:
        for _, answered, error, result in answers:
            if error:
                sys.exit(f"{method}: {error['code']}: {error['message']}")
            return result
        answers.feed(daemon.recv(65536) or sys.exit("the daemon closed the connection"))

request(0, "hello", {"errors": "map"})
counter = request(1, "spawn", sys.argv[1] if sys.argv[1:] else "counter", [])
request(2, "send", counter, "bump", [2])
request(3, "send", counter, "bump", [])
print(request(4, "ask", counter, "total", []))
