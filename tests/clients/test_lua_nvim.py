# SPDX-License-Identifier: Apache-2.0
"""The session of Lua's Neovim client (lua-nvim) on lua-mpack: its ids begin with 0, and an empty table is an empty array to it."""

import unittest

import stock


class LuaNvim(stock.Called, stock.Conversations, unittest.TestCase):
    # A number of Lua 5.1 is a float, and a string has no encoding.
    smallest, largest = -2**53, 2**53
    bytes_are_text = True
    # lua-mpack has a bug at these.
    packs_as_others = (-2**7 - 1, -2**15 - 1, -2**32 - 1)

    @classmethod
    def setUpClass(cls):
        stock.need("lua5.1")
        stock.need_success("lua-nvim is not installed", "lua5.1", "-e", "require 'nvim.session'")

    @classmethod
    def command(cls, socket):
        return ["lua5.1", stock.HERE / "lua_nvim.lua", socket]


if __name__ == "__main__":
    unittest.main()
