# SPDX-License-Identifier: Apache-2.0
"""The manual pages are well formed, and the Lua library's has every function that the library has."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
PAGES = sorted((SOURCE / "man").iterdir())


def library_names():
    """What can be read off `require "troupe"`: written in C, in Lua, and values."""
    scripts = (SOURCE / "daemon/script").glob("*.c")
    names = set(re.findall(r'\{ "(\w+)", library_\w+ \}', "".join(path.read_text() for path in scripts)))
    names |= set(re.findall(r'\{ "(\w+)", tr_\w+_load \}', (SOURCE / "daemon/script/library.c").read_text()))
    return names | {"await", "null", "sleep"}


class Manuals(unittest.TestCase):
    @unittest.skipUnless(shutil.which("mandoc"), "needs mandoc")
    def test_they_are_well_formed(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, PAGES)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_lua_library_is_documented(self):
        page = (SOURCE / "man/troupe-lua.3").read_text()
        documented = set(re.findall(r"^\.It (?:Fn|Va) troupe\.(\w+)", page, re.MULTILINE))
        self.assertGreater(len(documented), 30)
        self.assertEqual(documented, library_names())

    def test_pages_that_are_referred_to_are_there(self):
        there = {tuple(path.name.rsplit(".", 1)) for path in PAGES}
        for path in PAGES:
            for name, section in re.findall(r"^\.Xr (\S+) (\d)", path.read_text(), re.MULTILINE):
                if name.startswith(("troupe", "libtroupe")):
                    self.assertIn((name, section), there, path.name)


if __name__ == "__main__":
    unittest.main()
