# SPDX-License-Identifier: Apache-2.0
"""Go's net/rpc with the codec of golang-github-ugorji-go-codec-dev: an error must be text, and a notification ends the client."""

import unittest

import harness
import stock


class GoNetRpc(stock.Conversations, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = stock.go_program(cls, stock.HERE / "net_rpc.go", "github.com/ugorji/go/codec")

    @classmethod
    def command(cls, socket):
        return [cls.program, socket]

    def connect(self):
        super().connect()
        self.request("hello", {"errors": "text"})

    def text_of(self, error):
        return error

    def test_what_another_is_told_does_not_reach_it(self):
        with harness.Client(self.daemon.socket) as other:
            other.request("subscribe", "lifecycle")
            counter = self.request("spawn", "counter", [])
            self.assertEqual(other.receive()[:2], [2, "event"])
            self.assertEqual(self.request("ask", counter, "total", []), 0)


if __name__ == "__main__":
    unittest.main()
