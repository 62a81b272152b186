# SPDX-License-Identifier: Apache-2.0
"""Drives pynvim's session (see stock.py)."""

import sys

import msgpack
from pynvim.api.nvim import NvimError
from pynvim.msgpack_rpc import socket_session


def main():
    # This sends the notification nvim_set_client_info before anything else.
    session = socket_session(sys.argv[1])
    # pynvim's own: it takes the text out of the pair.
    session.error_wrapper = lambda error: NvimError(error[1])
    for line in sys.stdin:
        operation, *arguments = msgpack.unpackb(bytes.fromhex(line), strict_map_key=False)
        if operation == "request":
            try:
                # pynvim names some of its methods in bytes.
                answer = ["result", session.request(arguments[0].encode(), *arguments[1])]
            except NvimError as error:
                answer = ["error", error.args[0]]
        elif operation == "notify":
            session.request(arguments[0].encode(), *arguments[1], async_=True)
            answer = ["sent"]
        else:
            kind, method, params, *response = session.next_message()
            if response:
                response[0].send(params)
            answer = [kind, method, params]
        print(msgpack.packb(answer).hex(), flush=True)


main()
