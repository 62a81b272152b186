# SPDX-License-Identifier: Apache-2.0
"""The session of npm's msgpack5rpc, on msgpack5: it knows no extension type at all."""

import unittest

import stock


class NpmMsgpack5rpc(stock.Called, stock.Conversations, unittest.TestCase):
    # A number of JavaScript is a float.
    smallest, largest = -(2**53 - 1), 2**53 - 1

    @classmethod
    def setUpClass(cls):
        cls.environment = stock.npm(cls, "msgpack5rpc@1.1.0")

    @classmethod
    def command(cls, socket):
        return ["node", stock.HERE / "npm_msgpack5rpc.js", socket]


if __name__ == "__main__":
    unittest.main()
