# SPDX-License-Identifier: Apache-2.0
"""The Transport of Node's Neovim client (npm: neovim): its first id is 2, and it knows extension types of Neovim's only."""

import unittest

import stock


class NpmNeovim(stock.Called, stock.Conversations, unittest.TestCase):
    # A number of JavaScript is a float.
    smallest, largest = -(2**53 - 1), 2**53 - 1

    @classmethod
    def setUpClass(cls):
        cls.environment = stock.npm(cls, "neovim@5.4.0")

    @classmethod
    def command(cls, socket):
        return ["node", stock.HERE / "npm_neovim.js", socket]


if __name__ == "__main__":
    unittest.main()
