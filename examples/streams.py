#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replica of the component of streams.json, without its module: streams that are held by the process that has opened them, while their
titles and holders are entities. Python, and a MessagePack library."""

import concurrent.futures, itertools, os, socket, sys, threading
import msgpack

COMPONENT = "media.streams"
streams = {}  # those that this process holds; what has to survive it is in the entities

class Refused(Exception):
    """An error that the operation declares."""

def create(input, context):
    streams[context["id"]] = itertools.count(1)
    return [{"id": context["id"], "instance": context["instance"]}, {"title": input["title"], "holder": context["instance"]}]

def listed(input, context):
    return context["entity"]

def finish(input, context):
    entity = context["entity"]
    if entity is None:
        raise Refused("NO_SUCH_STREAM")
    try:
        call("release", {"id": entity["id"]}, context, instance=entity["holder"])
    except Exception as gone:  # its holder may be gone, and the stream with it
        print(gone, file=sys.stderr)
    return [None, {"holder": None}]

def reopen(lost, context):
    """Whoever has room opens, one by one, what a replica had that has died; it may be begun more than once."""
    for entity in call("list", {}, context, where={"holder": lost["instance"]}):
        call("create", {"title": entity["title"]}, context, id=entity["id"])

def watch(input, context):
    if input["id"] not in streams:
        raise Refused("NOT_HELD")
    return next(streams[input["id"]])

def release(input, context):
    streams.pop(input["id"], None)

operations = {"create": create, "list": listed, "finish": finish, "reopen": reopen, "watch": watch, "release": release}

# What every such process has: answering, and calling on the same connection.

def send(frame):
    with lock:
        daemon.sendall(msgpack.packb(frame))

def call(operation, input, context, **options):
    """Another operation, as a part of the same trace."""
    msgid, answer = next(msgids), concurrent.futures.Future()
    answers[msgid] = answer
    send([0, msgid, "call", [COMPONENT, operation, input, {"trace": context["trace"], **options}]])
    return answer.result()

def answer(msgid, operation, input, context):
    try:
        send([1, msgid, None, operations[operation](input, context)])
    except Refused as error:
        send([1, msgid, list(error.args), None])
    except Exception as error:
        send([1, msgid, f"{type(error).__name__}: {error}", None])

lock, msgids, answers = threading.Lock(), itertools.count(1), {}
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(os.environ["TROUPE_SOCKET"])
send([0, 0, "serve", [COMPONENT, {"instance": sys.argv[1]} if sys.argv[1:] else {}]])
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for kind, msgid, *rest in msgpack.Unpacker(daemon.makefile("rb", buffering=0)):
        if kind == 0:  # a call; kind 2 says that nobody waits for one any more
            pool.submit(answer, msgid, *rest[1])
        elif msgid == 0 and rest[0]:
            sys.exit(f"serve: {rest[0][1]}")
        elif kind == 1 and msgid:
            pending = answers.pop(msgid)
            pending.set_exception(RuntimeError(rest[0][1])) if rest[0] else pending.set_result(rest[1])
