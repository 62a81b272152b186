# SPDX-License-Identifier: Apache-2.0
"""The session of Python's Neovim client (python3-pynvim): it names methods in bytes, and sends a notification before anything else."""

import sys
import unittest

import stock


class Pynvim(stock.Called, stock.Conversations, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stock.need_success("python3-pynvim is not installed", sys.executable, "-c", "import pynvim")

    @classmethod
    def command(cls, socket):
        return [sys.executable, stock.HERE / "pynvim_session.py", socket]

    def text_of(self, error):
        return error


if __name__ == "__main__":
    unittest.main()
