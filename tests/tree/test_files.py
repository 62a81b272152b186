# SPDX-License-Identifier: Apache-2.0
"""What the tree's files must hold to: every one is known to the makefile, and says its licence. (Includes: tests/check-includes.)"""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
SUFFIXES = (".c", ".h", ".py", ".lua", ".go", ".js", ".php", ".pl", ".rb", ".vim")


class Makefile(unittest.TestCase):
    def test_every_source_and_page_is_named(self):
        makefile = (SOURCE / "Makefile.am").read_text()
        named = set(re.findall(r"[\w./-]+\.\w+\b", makefile))
        folders = ("proto", "client", "daemon", "bench", "tests", "examples")
        present = {path.relative_to(SOURCE).as_posix() for folder in folders for path in (SOURCE / folder).rglob("*")
                   if path.suffix in SUFFIXES} | {path.relative_to(SOURCE).as_posix() for path in (SOURCE / "docs").glob("*.md")}
        self.assertEqual(sorted(present - named), [], "not in Makefile.am, so not in the tarball")

    def test_every_source_says_its_licence(self):
        tag = "SPDX-License-" + "Identifier: Apache-2.0"
        missing = [path.relative_to(SOURCE).as_posix() for folder in ("proto", "client", "daemon", "bench", "tests", "examples")
                   for path in sorted((SOURCE / folder).rglob("*"))
                   if path.suffix in SUFFIXES and tag not in path.read_text()[:200]]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
