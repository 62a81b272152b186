# SPDX-License-Identifier: Apache-2.0
"""Every block of the documentation does what the page shows: files are written, commands run, outputs compared.

Each page has a folder of its own with the examples in it, and a daemon with that folder on its path and its components.d for manifests.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import blocks
import harness

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
PAGES = ["README.md", "CONTRIBUTING.md"] + sorted(f"docs/{path.name}" for path in (SOURCE / "docs").glob("*.md"))

# Between two commands' outputs. Bash prints it without losing the status, which the next command may look at.
SEPARATOR = "\x1e"


class Page:
    """Runs one page's blocks."""

    def __init__(self, case, folder, socket):
        self.case = case
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        for name, target in (("troupe", BUILD / "troupe"), ("trouped", BUILD / "trouped"), ("python3", sys.executable)):
            (programs / name).symlink_to(target)
        self.environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", TROUPE_SOCKET=socket, LC_ALL="C.UTF-8")

    def do(self, block):
        if block.action == "file":
            self.write(block.argument, block.text)
        elif block.action == "same as":
            self.case.assertEqual(block.text, (SOURCE / block.argument).read_text(), f"{block.argument} is another")
            self.write(pathlib.Path(block.argument).name, block.text)
        elif block.action == "run":
            self.run(blocks.commands_of(block))
        else:
            self.case.assertTrue(block.language == "text" or (block.action == "not run" and block.argument),
                                 f"line {block.line}: a block that nobody runs, and no word why")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)

    def run(self, commands):
        script = "exec 2>&1\n" + "".join(
            f"{command.text}\nstatus=$?; printf '{SEPARATOR}'; (exit $status)\n" for command in commands)
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=120)
        outputs = done.stdout.split(SEPARATOR)[:-1]
        for command, output in zip(commands, outputs, strict=True):
            self.case.assertTrue(blocks.matches(command.output, output),
                                 f"$ {command.text}\nprinted:\n{output}\nand the page says:\n{command.output}")


class Pages(unittest.TestCase):
    """Has a test for each page, added below."""

    def run_page(self, name):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch, "page")
            shutil.copytree(SOURCE / "examples", folder)
            folder.chmod(0o755)
            for path in folder.iterdir():
                path.chmod(0o644)
            found = blocks.blocks_of((SOURCE / name).read_text())
            with contextlib.ExitStack() as stack:
                socket = ""
                if any(block.action == "run" for block in found):
                    (folder / "components.d").mkdir()
                    config = {"components": [str(folder / "components.d")]}
                    socket = stack.enter_context(harness.Daemon(path=[folder], config=config)).socket
                page = Page(self, folder, socket)
                for block in found:
                    with self.subTest(line=block.line):
                        page.do(block)


def add_pages():
    for name in PAGES:
        method = "test_" + name.replace("/", "_").removesuffix(".md").lower()
        setattr(Pages, method, lambda self, name=name: self.run_page(name))


add_pages()


class Runner(unittest.TestCase):
    """What would let a wrong page pass."""

    def test_a_wrong_output_is_seen(self):
        self.assertTrue(blocks.matches("actor:…\n", "actor:0123\n"))
        self.assertFalse(blocks.matches("3\n", "4\n"))
        self.assertFalse(blocks.matches("actor:…\n", "actor:0123\nmore\n"))
        self.assertFalse(blocks.matches("a.c\n", "abc\n"))

    def test_blocks_and_markers(self):
        found = blocks.blocks_of("text\n<!-- run -->\n```console\n$ one\n1\n$ two\n```\n\n```lua\nx\n```\n")
        self.assertEqual([(b.line, b.language, b.action) for b in found], [(3, "console", "run"), (9, "lua", "")])
        self.assertEqual([(c.text, c.output) for c in blocks.commands_of(found[0])], [("one", "1\n"), ("two", "")])

    def test_a_block_without_a_marker_fails(self):
        with tempfile.TemporaryDirectory() as scratch:
            page = Page(unittest.TestCase(), pathlib.Path(scratch), "")
            with self.assertRaises(AssertionError):
                page.do(blocks.Block(1, "lua", "", "", "x\n"))


if __name__ == "__main__":
    unittest.main()
