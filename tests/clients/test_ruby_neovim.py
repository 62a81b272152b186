# SPDX-License-Identifier: Apache-2.0
"""The session of Ruby's Neovim client (ruby-neovim): of an error it looks at the second element only."""

import unittest

import stock


class RubyNeovim(stock.Called, stock.Conversations, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stock.need("ruby")
        stock.need_success("ruby-neovim is not installed", "ruby", "-e", "require 'neovim'")

    @classmethod
    def command(cls, socket):
        return ["ruby", stock.HERE / "ruby_neovim.rb", socket]

    def text_of(self, error):
        return error


if __name__ == "__main__":
    unittest.main()
