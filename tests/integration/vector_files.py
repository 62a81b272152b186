# SPDX-License-Identifier: Apache-2.0
"""The files of proto/vectors, and values such that what is to be told apart is unequal."""

import base64
import json
import os
import pathlib
import struct

import msgpack

VECTORS = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "proto" / "vectors"

MESSAGE = 2
INSTANCE = 3

# Lua has no key that is a float without a fraction: it comes back as the integer.
KEYS_THAT_LUA_CHANGES = {"float keys"}


def load(name):
    return json.loads((VECTORS / name).read_text())


def data_of(digits):
    """Bytes as the vectors' README has them."""
    if isinstance(digits, str):
        return bytes.fromhex(digits)
    return b"".join(bytes.fromhex(item) if isinstance(item, str) else bytes.fromhex(item[0]) * item[1] for item in digits)


def encodings(case):
    return [data_of(case["hex"]), *map(data_of, case.get("also", []))]


def text_where_it_is_one(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def comparable(value, is_key=False):
    """A value such that what is to be told apart is unequal: 1 and 1.0 and True, 0.0 and -0.0; a NaN equals itself."""
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    if isinstance(value, bytes) and is_key:
        return comparable(text_where_it_is_one(value))
    if isinstance(value, Pairs):
        return ("map", sorted(((comparable(key, True), comparable(item)) for key, item in value.pairs), key=repr))
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, msgpack.ExtType) and value.code == MESSAGE:
        return ("message", msgpack.unpackb(value.data, raw=True))
    if isinstance(value, msgpack.ExtType) and value.code == INSTANCE:
        name, fields = unpack(value.data)
        return ("instance", name, comparable(fields or Pairs([])))
    return (type(value).__name__, value)


class Pairs:
    """A map as it is encoded."""

    def __init__(self, pairs):
        self.pairs = list(pairs)


def unpack(data):
    return msgpack.unpackb(data, strict_map_key=False, object_pairs_hook=Pairs, unicode_errors="surrogateescape")


def bytes_where_no_text(value):
    """A str that is no UTF-8 goes out as bin."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode(errors="surrogateescape")
    return value


def meant(value):
    """What JSON stands for that has nothing in it but what a plain connection may get."""
    if isinstance(value, list):
        return [meant(item) for item in value]
    if not isinstance(value, dict):
        return value
    for name, stands_for in (("$bin", base64.b64decode), ("$float", float), ("$map", lambda pairs: Pairs((meant(k), meant(v)) for k, v in pairs))):
        if set(value) == {name}:
            return stands_for(value[name])
    return Pairs((key, meant(item)) for key, item in value.items())
