# SPDX-License-Identifier: Apache-2.0
"""What of the standard library depends on where it is used: in the daemon, or in a program; and what is granted there."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import service

SPEAKS = """
local troupe = require "troupe"
local Speaker = troupe.actor "Speaker"
function Speaker.on:say() print("printed", 1) io.write("writ") io.write("ten ", 2, "\\nbegun") print("next") io.write("open") end
function Speaker.on:fail() io.write("failing") error "it broke" end
function Speaker.on:loop() local deep = function() while true do end end deep() end
troupe.main(function() troupe.await(troupe.ask(troupe.spawn(Speaker).say)) end)
"""

NATIVE = """
#include <lua.h>
static int answer(lua_State *L) { lua_pushinteger(L, 42); return 1; }
int luaopen_a_native(lua_State *L) { lua_pushcfunction(L, answer); return 1; }
"""


class StandardLibrary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def wait_for_log(self, daemon, client, text):
        """The log is written behind what happens."""
        while text not in daemon.log():
            client.request("ping")

    def test_what_is_printed_goes_to_standard_output_in_a_program(self):
        self.assertEqual(service.run("run", self.write("speaks.lua", SPEAKS)), (0, "printed\t1\nwritten 2\nbegunnext\nopen", ""))

    def test_what_is_printed_goes_to_the_log_in_the_daemon(self):
        with harness.Daemon(files={"speaks.lua": SPEAKS}) as daemon, harness.Client(daemon.socket) as client:
            speaker = client.request("spawn", "speaks", [], {"name": "ann"})
            self.assertIsNone(client.request("ask", speaker, "say", []))
            self.wait_for_log(daemon, client, '"open"')
            with self.assertRaises(harness.Error):
                client.request("ask", speaker, "fail", [])
            self.wait_for_log(daemon, client, '"failing"')
            lines = [json.loads(line) for line in daemon.log().splitlines()]
            said = [line["message"] for line in lines if line.get("actor") == "ann" and line["level"] == "info"]
            self.assertEqual(said, ["printed\t1", "written 2", "begun", "next", "open", "failing"])

    def test_a_slow_handler_is_logged_with_its_stack(self):
        with (harness.Daemon(files={"speaks.lua": SPEAKS}, config={"limits": {"slow": "50ms"}}) as daemon,
              harness.Client(daemon.socket) as client):
            speaker = client.request("spawn", "speaks", [])
            client.start("ask", speaker, "loop", [])
            self.wait_for_log(daemon, client, "in local 'deep'")
            self.assertIn("loop has been running for", daemon.log())
            client.request("stop", speaker, {"kill": True})

    def test_modules_written_in_c_are_to_be_granted(self):
        compiler = shutil.which("cc")
        if not compiler or not pathlib.Path("/usr/include/lua5.4/lua.h").exists():
            self.skipTest("no C compiler, or no headers of Lua 5.4")
        source = self.write("native.c", NATIVE)
        program = self.write("program.lua", "require 'troupe'.main(function() print(pcall(require, 'a.native')) "
                                            "print(require 'a.native'()) end)")
        (self.folder / "a").mkdir()
        subprocess.run([compiler, "-shared", "-fPIC", "-I/usr/include/lua5.4", "-o", self.folder / "a/native.so", source],
                       check=True, timeout=harness.TIMEOUT_SECONDS)
        code, output, errors = service.run("run", program)
        self.assertEqual((code, errors, output.splitlines()[1]), (0, "", "42"))
        config = self.write("trouped.json", json.dumps({"allow": ["files", "commands"]}))
        code, output, errors = service.run("-c", config, "run", program)
        self.assertEqual(code, 1)
        self.assertEqual(output, f"false\tthe module `a.native` is written in C ({self.folder}/a/native.so), which is not granted: "
                                 "it needs \"native\" in the configuration's \"allow\"\n")


if __name__ == "__main__":
    unittest.main()
