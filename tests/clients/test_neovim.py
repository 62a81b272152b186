# SPDX-License-Identifier: Apache-2.0
"""Neovim with nothing but its own functions: sockconnect(), rpcrequest() and rpcnotify(), and being called back.

The editor runs without a screen, and is told what to do through its standard input: its own API, which is MessagePack-RPC too.
"""

import os
import pathlib
import unittest

import msgpack

import harness
import stock

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"


class Editor:
    """A Neovim."""

    def __init__(self, environment=None):
        self.driver = stock.Process(["nvim", "--headless", "--embed", "--clean", "-n"], environment)
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

    def evaluate(self, expression):
        return self.result("nvim_eval", expression)

    def run(self, script):
        """Runs a script; answers what it prints."""
        return self.result("nvim_exec", script, True)

    def close(self):
        self.driver.close()


class Neovim(stock.Called, stock.Conversations, unittest.TestCase):
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

    def chosen(self, name):
        self.editor.run(f"""
            let g:called = get(g:, "called", [])
            function! {name}(...)
                call add(g:called, ["{name}", a:000])
                return a:000
            endfunction
        """)
        return {"method": "nvim_call_function", "params": [name]}

    def expect(self, kind, name):
        # A function does not see whether who calls it waits for its answer.
        self.assertEqual(self.editor.call("wait", 1000 * harness.TIMEOUT_SECONDS, "!empty(g:called)", 1), 0)
        called, params = self.editor.evaluate("remove(g:called, 0)")
        self.assertEqual(called, name)
        return params

    def text_of(self, error):
        _, text = error
        prefix, _, text = text.partition(":\n")
        self.assertRegex(prefix, rf"^Vim:Error invoking '\S+' on channel {self.channel}$")
        return text

    def test_it_asks_without_blocking(self):
        with harness.Client(self.daemon.socket) as slow:
            self.assertIsNone(self.request("ask", slow.request("listen"), "question", [], {"reply": self.chosen("OnReply")}))
            _, request_id, *asked = slow.receive()
            self.assertEqual(asked, ["message", ["question"]])
            self.assertEqual(self.request("ping"), "pong")
            self.assertEqual(self.editor.evaluate("[6 * 7, g:called]"), [42, []])
            slow.send(msgpack.packb([1, request_id, None, "answer"]))
            self.assertEqual(self.expect("notification", "OnReply"), [None, "answer"])


class Example(unittest.TestCase):
    """examples/editor.vim"""

    @classmethod
    def setUpClass(cls):
        stock.need("nvim")

    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES])
        self.addCleanup(self.daemon.close)
        self.editor = Editor({"TROUPE_SOCKET": self.daemon.socket})
        self.addCleanup(self.editor.close)
        self.assertEqual(self.editor.run(f"source {EXAMPLES}/editor.vim"), "")

    def wait_for_message(self, text):
        waiting = self.editor.call("wait", 1000 * harness.TIMEOUT_SECONDS, f"execute('messages') =~# '{text}'", 1)
        self.assertEqual(waiting, 0, self.editor.evaluate("execute('messages')"))

    def test_it_tells_and_asks(self):
        self.editor.run("Bump 40\nBump\nBump 1\nTotal")
        self.wait_for_message("42")

    def test_it_is_asked(self):
        self.editor.call("setline", 1, ["one", "two"])
        with harness.Client(self.daemon.socket) as client:
            self.assertEqual(client.request("ask", "editor", "text", []), ["one", "two"])
            with self.assertRaises(harness.Error) as refused:
                client.request("ask", "editor", "txet", [])
            self.assertEqual((refused.exception.code, refused.exception.ran), ("fault", "yes"))
            self.assertIn("there is no handler txet", refused.exception.message)
            client.request("send", "editor", "say", ["good morning"])
            self.wait_for_message("good morning")


if __name__ == "__main__":
    unittest.main()
