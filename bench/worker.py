#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that answers its input: worker.py serve SOCKET COMPONENT, through a daemon; worker.py bare SOCKET, reached directly.

The same loop either way, with nothing but a MessagePack library.
"""

import socket
import sys

import msgpack


def work(connection):
    unpacker = msgpack.Unpacker()
    while data := connection.recv(1 << 18):
        unpacker.feed(data)
        for frame in unpacker:
            if frame[0] == 0:
                connection.sendall(msgpack.packb([1, frame[1], None, frame[3][1]]))


def main():
    kind, path = sys.argv[1:3]
    with socket.socket(socket.AF_UNIX) as own:
        if kind == "serve":
            own.connect(path)
            own.sendall(msgpack.packb([0, 1, "serve", [sys.argv[3], {"concurrency": 32}]]))
            own.recv(4096)
            print("ready", flush=True)
            work(own)
            return
        own.bind(path)
        own.listen()
        print("ready", flush=True)
        while True:
            work(own.accept()[0])


if __name__ == "__main__":
    main()
