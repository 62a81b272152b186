# SPDX-License-Identifier: Apache-2.0
"""trouped's command line, --check, and the codes it exits with (sysexits.h)."""

import json
import os
import pathlib
import tempfile
import unittest

import service

USAGE, NO_INPUT, CANNOT_CREATE, CONFIGURATION = 64, 66, 73, 78


class CommandLine(unittest.TestCase):
    def test_version_and_help(self):
        code, output, errors = service.run("--version")
        self.assertEqual((code, errors), (0, ""))
        self.assertRegex(output, r"\Atrouped \d+\.\d+\.\d+\n\Z")
        code, output, errors = service.run("--help")
        self.assertEqual((code, errors), (0, ""))
        self.assertTrue(output.startswith("usage: trouped "))

    def test_usage(self):
        for arguments in (["--unknown"], ["-c"], ["start"], ["run"], ["--user", "run", "x"], ["-S", "x", "run", "x"]):
            with self.subTest(arguments=arguments):
                code, output, errors = service.run(*arguments)
                self.assertEqual((code, output), (USAGE, ""))
                self.assertTrue(errors.startswith("trouped: "), errors)

    def test_a_program_that_is_not_there(self):
        code, _, errors = service.run("run", "/nonexistent/program.lua")
        self.assertEqual((code, errors), (NO_INPUT, "trouped: run: /nonexistent/program.lua: No such file or directory\n"))

    def test_a_program_that_cannot_be_a_module(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "not a module.lua")
            program.write_text("")
            code, _, errors = service.run("run", program)
        self.assertEqual(code, NO_INPUT)
        self.assertIn("its name cannot be one", errors)

    def test_a_socket_that_cannot_be_made(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = service.run("-S", f"{folder}/{'x' * 120}")
        self.assertEqual(code, CANNOT_CREATE)
        self.assertIn("a socket's path has 1 to 107 bytes", errors)


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "trouped.json"

    def check(self, text):
        self.file.write_text(text)
        return service.run("--check", "-c", self.file)

    def test_a_file_without_mistakes(self):
        self.assertEqual(self.check("{}"), (0, f"{self.file}\n", ""))

    def test_mistakes_have_file_line_and_key(self):
        text = '{\n  "limits": {\n    "heap": "lots",\n    "heep": 1\n  },\n  "actors": [{"actor": "a",\n    "restart": 1}]\n}'
        expected = (f'trouped: {self.file}:3: limits.heap: must be a size: bytes, or text with K, M or G ("64M")\n'
                    f"trouped: {self.file}:4: limits.heep: unknown key\n"
                    f"trouped: {self.file}:7: actors[0].restart: must be one of: never, on-fault, always\n")
        self.assertEqual(self.check(text), (CONFIGURATION, "", expected))
        # and the daemon does not start with it
        code, _, errors = service.run("-c", self.file, "-S", self.folder / "socket")
        self.assertEqual((code, errors), (CONFIGURATION, expected))
        self.assertFalse((self.folder / "socket").exists())

    def test_what_is_no_json(self):
        code, _, errors = self.check('{"path": [\n}')
        self.assertEqual(code, CONFIGURATION)
        self.assertTrue(errors.startswith(f"trouped: {self.file}:2: "))

    def test_a_file_that_is_not_there(self):
        self.assertEqual(service.run("--check", "-c", self.file),
                         (CONFIGURATION, "", f"trouped: {self.file}: No such file or directory\n"))

    def test_what_is_not_built_yet(self):
        code, output, errors = self.check('{\n"metrics": {"path": "m.sock"}}')
        self.assertEqual((code, output), (0, f"{self.file}\n"))
        self.assertEqual(errors, f"trouped: {self.file}:2: metrics.path: without effect in this version\n")

    def test_a_group_that_is_missing(self):
        code, _, errors = self.check('{"socket":\n{"group": "no such group"}}')
        self.assertEqual((code, errors),
                         (CONFIGURATION, f"trouped: {self.file}:2: socket.group: there is no group no such group\n"))

    def test_a_users_own(self):
        folder = self.folder / "troupe"
        folder.mkdir()
        (folder / "trouped.json").write_text(json.dumps({"colour": 1}))
        code, _, errors = service.run("--user", "--check", XDG_CONFIG_HOME=str(self.folder))
        self.assertEqual((code, errors), (CONFIGURATION, f"trouped: {folder}/trouped.json:1: colour: unknown key\n"))

    def test_no_file_at_all(self):
        code, output, errors = service.run("--user", "--check", XDG_CONFIG_HOME=str(self.folder))
        self.assertEqual((code, output, errors), (0, "no configuration: the defaults\n", ""))

    def test_the_installed_sample(self):
        sample = json.loads(pathlib.Path(os.environ["TROUPE_SOURCE"], "conf/trouped.json").read_text())
        # its group may not be on this machine
        del sample["socket"]["group"]
        self.assertEqual(self.check(json.dumps(sample)), (0, f"{self.file}\n", ""))


if __name__ == "__main__":
    unittest.main()
