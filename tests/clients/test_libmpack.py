# SPDX-License-Identifier: Apache-2.0
"""libmpack's RPC session in C (libmpack-dev): its ids begin with 0, and it reads 32 levels of nesting."""

import shlex
import shutil
import subprocess
import tempfile
import unittest

import harness
import stock


class Libmpack(stock.Called, stock.Conversations, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stock.need("pkg-config", "cc")
        stock.need_success("libmpack-dev is not installed", "pkg-config", "--exists", "--print-errors", "mpack")
        folder = tempfile.mkdtemp(prefix="troupe-test-")
        cls.addClassCleanup(shutil.rmtree, folder)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "mpack"], check=True, stdout=subprocess.PIPE, text=True).stdout
        cls.program = f"{folder}/libmpack"
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-o", cls.program, stock.HERE / "libmpack.c",
                        *shlex.split(flags)], check=True, timeout=harness.TIMEOUT_SECONDS)

    @classmethod
    def command(cls, socket):
        return [cls.program, socket]


if __name__ == "__main__":
    unittest.main()
