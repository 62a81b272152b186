# SPDX-License-Identifier: Apache-2.0
"""What libtroupe promises as a file: its name, what it exports, and that troupe.h is fit for C and C++."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
LIBRARY = BUILD / "client/.libs/libtroupe.so.0"

PROGRAM = """
#include <troupe.h>

static void on_answer(struct troupe *t, int result, const struct troupe_value *answer, void *userdata) {}

int main(void) {
        struct troupe *t = 0;
        static struct troupe_ask_options options;
        struct troupe_value answer;
        char handle[TROUPE_HANDLE_SIZE];

        options.size = sizeof(options);
        if (troupe_connect(&t, 0, TROUPE_NONBLOCK) || troupe_spawn(t, "counter", 0, handle, "i", 1))
                return 1;
        if (troupe_ask(t, handle, "total", &options, &answer, 0) && troupe_error(t)->ran == TROUPE_RAN_NO)
                return troupe_value_type(&answer) == TROUPE_INT;
        return troupe_ask_async(t, handle, "total", 0, on_answer, 0, 0, "");
}
"""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declared():
    text = (SOURCE / "client/troupe.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"typedef[^;]*;", "", text)
    return set(re.findall(r"\b(troupe_\w+)\(", text))


PROTOTYPE = re.compile(r"^(typedef )?((?:const )?(?:struct \w+|int|void|char) ?\*?)\s*(troupe_\w+)\(([^;]*?)\);", re.MULTILINE | re.DOTALL)


def prototypes():
    """What the header declares, callbacks too: name to type and arguments."""
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / "client/troupe.h").read_text(), flags=re.DOTALL)
    return {name: ((typedef + kind).strip(), [" ".join(argument.split()) for argument in arguments.split(",")])
            for typedef, kind, name, arguments in PROTOTYPE.findall(text)}


class Manual(unittest.TestCase):
    def setUp(self):
        page = (SOURCE / "man/libtroupe.3").read_text()
        self.synopsis, self.description = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh DESCRIPTION\n(.*)", page, re.DOTALL | re.MULTILINE).groups()

    def test_the_synopsis_is_the_header(self):
        found = {name: (kind, re.findall(r'"(.*?)"', arguments))
                 for kind, name, arguments in re.findall(r"^\.Ft (.*)\n\.Fn (\w+)(.*)", self.synopsis, re.MULTILINE)}
        self.assertEqual(found, prototypes())
        self.assertEqual({name for name, (kind, _) in found.items() if not kind.startswith("typedef")}, declared())

    def test_every_function_is_described(self):
        described = set(re.findall(r"\bFn (\w+)", self.description))
        plain = {name for name in declared() if name.removesuffix("_async") not in declared() - {name}}
        self.assertEqual(plain - described, set())
        self.assertEqual(described - declared(), set())


class Libtroupe(unittest.TestCase):
    def compile(self, compiler, suffix, *flags, program=PROGRAM):
        if not shutil.which(compiler):
            self.skipTest(f"there is no {compiler}")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / f"program.{suffix}"
            source.write_text(program)
            subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-parameter",
                            f"-I{SOURCE}/client", "-c", source, "-o", f"{folder}/program.o"], check=True)
            return output("nm", "-u", f"{folder}/program.o").split()

    def test_the_map_lists_what_the_header_declares(self):
        listed = set(re.findall(r"^\s+(troupe_\w+);", (SOURCE / "client/libtroupe.map").read_text(), re.MULTILINE))
        self.assertEqual(listed, declared())

    def test_the_library_exports_just_that(self):
        lines = output("nm", "-D", "--defined-only", LIBRARY).splitlines()
        exported = {line.split()[2] for line in lines if " T " in line}
        self.assertEqual(exported, {f"{name}@@LIBTROUPE_0.1" for name in declared()})
        self.assertEqual([line for line in lines if " T " not in line and " A LIBTROUPE_0.1" not in line], [])

    def test_the_soname(self):
        self.assertIn("[libtroupe.so.0]", output("readelf", "-d", LIBRARY))

    def test_the_header_is_cpp(self):
        for standard in "c++11", "c++20":
            self.assertIn("troupe_ask_async", self.compile("c++", "cc", f"-std={standard}"))

    def test_the_header_is_c(self):
        self.assertIn("troupe_connect", self.compile("cc", "c", "-std=c99", "-Wstrict-prototypes"))

    def test_the_example_of_the_manual_is_c(self):
        page = (SOURCE / "man/libtroupe.3").read_text()
        example = re.search(r"^\.Bd -literal\n(.*?)^\.Ed", page, re.DOTALL | re.MULTILINE)[1]
        self.assertIn("troupe_ask", self.compile("cc", "c", "-std=c99", program=example.replace("\\e", "\\")))

    def test_the_header_needs_nothing_before_it(self):
        for compiler, language in ("cc", "c"), ("c++", "c++"):
            if shutil.which(compiler):
                subprocess.run([compiler, "-fsyntax-only", "-Werror", "-x", language, "-include",
                                SOURCE / "client/troupe.h", "/dev/null"], check=True)


if __name__ == "__main__":
    unittest.main()
