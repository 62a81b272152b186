# SPDX-License-Identifier: Apache-2.0
"""Neovim with nothing but its own functions: sockconnect(), rpcrequest() and rpcnotify(), and being called back.

The editor runs without a screen, and is told what to do through its standard input: its own API, which is MessagePack-RPC too.
"""

import unittest

import msgpack

import stock


class Editor:
    """A Neovim."""

    def __init__(self):
        self.driver = stock.Process(["nvim", "--headless", "--embed", "--clean", "-n"])
        self.unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")

    def api(self, function, *arguments):
        """Calls a function of its API; answers [error, result]."""
        self.driver.write(msgpack.packb([0, 1, function, arguments]))
        while True:
            for _, _, *outcome in self.unpacker:
                return outcome
            self.unpacker.feed(self.driver.read())

    def call(self, function, *arguments):
        """Calls a function of its script language."""
        return self.result("nvim_call_function", function, arguments)

    def call_from_lua(self, function, *arguments):
        """Calls a function of its Lua."""
        return self.result("nvim_exec_lua", f"return {function}(...)", arguments)

    def result(self, *request):
        error, result = self.api(*request)
        if error:
            raise stock.Refused(error)
        return result

    def run(self, script):
        """Runs a script; answers what it prints."""
        error, result = self.api("nvim_exec", script, True)
        if error:
            raise AssertionError(error)
        return result

    def close(self):
        self.driver.close()


class Neovim(stock.Conversations, unittest.TestCase):
    # A string that comes from outside is text to it, or a blob.
    bytes_are_text = True

    @classmethod
    def setUpClass(cls):
        stock.need("nvim")

    def connect(self):
        self.editor = Editor()
        self.addCleanup(self.editor.close)
        self.channel = self.editor.call("sockconnect", "pipe", self.daemon.socket, {"rpc": True})

    def request(self, method, *params):
        return self.editor.call("rpcrequest", self.channel, method, *params)

    def notify(self, method, *params):
        self.assertEqual(self.editor.call("rpcnotify", self.channel, method, *params), 1)

    def test_bytes(self):
        # A string of the script language ends at a NUL; one of its Lua does not.
        self.request = lambda method, *params: self.editor.call_from_lua("vim.rpcrequest", self.channel, method, *params)
        super().test_bytes()

    def text_of(self, error):
        _, text = error
        prefix, _, text = text.partition(":\n")
        self.assertRegex(prefix, rf"^Vim:Error invoking '\S+' on channel {self.channel}$")
        return text


if __name__ == "__main__":
    unittest.main()
