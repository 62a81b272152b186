#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replica of the component `texts` (texts.json), four calls at a time: Python, and a MessagePack library."""

import concurrent.futures, os, socket, sys, threading
import msgpack

class Refused(Exception):
    """An error that the operation declares: its name, and data where there is some."""

def count(text, context):
    return len(text.split())

def longest(text, context):
    if not text.split():
        raise Refused("NO_WORDS", {"characters": len(text)})
    return {"word": max(text.split(), key=len), "by": context["instance"]}

def answer(msgid, operation, text, context):
    try:
        send([1, msgid, None, {"count": count, "longest": longest}[operation](text, context)])
    except Refused as error:
        send([1, msgid, error.args, None])
    except Exception as error:
        send([1, msgid, f"{type(error).__name__}: {error}", None])

def send(frame):
    with lock:
        daemon.sendall(msgpack.packb(frame))

lock = threading.Lock()
if "TROUPE_FD" in os.environ:  # the daemon has started this
    daemon = socket.socket(fileno=int(os.environ["TROUPE_FD"]))
else:
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(os.environ["TROUPE_SOCKET"])
send([0, 0, "serve", ["texts", {"concurrency": 4}]])
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for kind, msgid, *rest in msgpack.Unpacker(daemon.makefile("rb", buffering=0)):
        if kind == 0:  # a call; kind 2 says that nobody waits for one any more
            pool.submit(answer, msgid, *rest[1])
        elif kind == 1 and rest[0]:
            sys.exit(f"serve: {rest[0][1]}")
