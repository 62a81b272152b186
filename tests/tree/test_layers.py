# SPDX-License-Identifier: Apache-2.0
"""What the tree's files must hold to: includes only point down the layers, and every file is known to the makefile."""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])

# The folders that each layer may include, beside itself. script, store and io do not see each other.
BELOW = {
    "proto": set(),
    "client": {"proto"},
    "daemon/base": {"proto"},
    "daemon/core": {"proto", "daemon/base"},
    "daemon/script": {"proto", "daemon/base", "daemon/core"},
    "daemon/store": {"proto", "daemon/base", "daemon/core"},
    "daemon/io": {"proto", "daemon/base", "daemon/core"},
    "daemon/watch": {"proto", "daemon/base", "daemon/core"},
    "daemon/settings": {"proto", "daemon/base"},
    "daemon": {"proto", "daemon/base", "daemon/core", "daemon/script", "daemon/store", "daemon/io", "daemon/watch",
               "daemon/settings"},
    "bench": {"proto"},
}

# The libraries that a layer may use, as the beginnings of their headers' names.
LIBRARIES = {
    "event": {"daemon/io", "daemon"},
    "lua": {"daemon/script"},
    "lauxlib": {"daemon/script"},
    "sqlite3": {"daemon/store"},
    "msgpack": {"proto"},
    "jansson": {"client", "daemon/settings", "daemon"},
    "systemd": {"daemon/base", "daemon/io", "daemon"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(folder):
    """The layer that a folder is, or is part of: daemon/io/method is part of daemon/io."""
    parts = folder.split("/")
    for length in range(len(parts), 0, -1):
        if "/".join(parts[:length]) in BELOW:
            return "/".join(parts[:length])
    return None


def c_files():
    for top in ("proto", "client", "daemon", "bench"):
        for path in sorted((SOURCE / top).rglob("*.[ch]")):
            yield path, path.relative_to(SOURCE).as_posix()


class Layers(unittest.TestCase):
    def test_includes_point_down(self):
        wrong = []
        for path, name in c_files():
            layer = layer_of(os.path.dirname(name))
            self.assertIsNotNone(layer, f"{name} is in no layer")
            for kind, included in INCLUDE.findall(path.read_text()):
                if kind == '"' and included != "config.h":
                    other = layer_of(os.path.dirname(included))
                    if other is None or (other != layer and other not in BELOW[layer]):
                        wrong.append(f'{name} includes "{included}"')
        self.assertEqual(wrong, [])

    def test_libraries_stay_in_their_layer(self):
        wrong = []
        for path, name in c_files():
            layer = layer_of(os.path.dirname(name))
            for kind, included in INCLUDE.findall(path.read_text()):
                for library, layers in LIBRARIES.items():
                    if kind == "<" and re.match(rf"{library}\d*(/|\.h|$)|{library}[a-z]*\.h", included) and layer not in layers:
                        wrong.append(f"{name} includes <{included}>")
        self.assertEqual(wrong, [])

    def test_the_check_itself_sees_an_include_upwards(self):
        self.assertEqual(layer_of("daemon/io/method"), "daemon/io")
        self.assertNotIn("daemon/io", BELOW[layer_of("daemon/core")])
        self.assertEqual(INCLUDE.findall('# include "daemon/io/loop.h"\n'), [('"', "daemon/io/loop.h")])


class Makefile(unittest.TestCase):
    def test_every_source_is_named(self):
        makefile = (SOURCE / "Makefile.am").read_text()
        named = set(re.findall(r"[\w./-]+\.(?:[ch]|py|lua)\b", makefile))
        folders = ("proto", "client", "daemon", "bench", "tests", "examples")
        present = {path.relative_to(SOURCE).as_posix() for folder in folders for path in (SOURCE / folder).rglob("*")
                   if path.suffix in (".c", ".h", ".py", ".lua")}
        self.assertEqual(sorted(present - named), [], "not in Makefile.am, so not in the tarball")

    def test_every_source_says_its_licence(self):
        tag = "SPDX-License-" + "Identifier: Apache-2.0"
        missing = [path.relative_to(SOURCE).as_posix() for folder in ("proto", "client", "daemon", "bench", "tests", "examples")
                   for path in sorted((SOURCE / folder).rglob("*"))
                   if path.suffix in (".c", ".h", ".py", ".lua") and tag not in path.read_text()[:200]]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
