# SPDX-License-Identifier: Apache-2.0
"""`trouped run`: what a program is given, when it ends, and with what it exits."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import harness
import service

FAULT, USAGE, CONFIGURATION, INTERRUPTED = 1, 64, 78, 130


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text('local troupe = require "troupe"\n' + text)
        return path

    def run_program(self, text, *arguments, options=()):
        return service.run(*options, "run", self.write("program.lua", text), *arguments)

    def start(self, text):
        """A program that goes on; its standard output is a pipe."""
        return subprocess.Popen([service.TROUPED, "run", str(self.write("program.lua", text))], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=service.environment())

    def end(self, process):
        output, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertIsNone(harness.SANITIZER_REPORT.search(errors), errors)
        return process.returncode, output

    def test_main_has_the_arguments(self):
        self.assertEqual(self.run_program("troupe.main(function(...) print(select('#', ...), ...) end)", "-x", "", "a b"),
                         (0, "3\t-x\t\ta b\n", ""))

    def test_a_fault_in_main(self):
        code, output, errors = self.run_program("local function inner() error 'it broke' end\n"
                                                "troupe.main(function() print 'before' inner() end)")
        self.assertEqual((code, output), (FAULT, "before\n"))
        self.assertRegex(errors, r"program\.lua:2: it broke\n")
        self.assertIn("stack traceback:", errors)
        self.assertIn("'inner'", errors)

    def test_main_is_no_actor(self):
        code, output, _ = self.run_program(
            "local A = troupe.actor 'A' function A.on:who() return { me = troupe.me(), who = troupe.whoami() } end\n"
            "troupe.main(function()\n"
            "  for _, name in ipairs { 'me', 'whoami' } do\n"
            "    local _, e = pcall(troupe[name]) print(e.code, e.kind, e)\n"
            "  end\n"
            "  local a = troupe.spawn(A)\n"
            "  local told = troupe.await(troupe.ask(a.who))\n"
            "  print(told.me == a, told.who.name, told.who.module, told.who.actor)\n"
            "end)")
        self.assertEqual((code, output), (0, "fault\terror\tme: only inside an actor\nfault\terror\twhoami: only inside an actor\n"
                                             "true\tprogram:A\tprogram\tA\n"))

    def test_what_nobody_awaited_is_told_with_its_line(self):
        code, _, errors = self.run_program(
            "local A = troupe.actor 'A' function A.on:forwards() return troupe.ask(troupe.me().none) end\n"
            "troupe.main(function()\n"
            "  local a = troupe.spawn(A)\n"
            "  troupe.ask(a.nothing)\n"
            "  pcall(troupe.await, troupe.ask(a.forwards))\n"
            "end)")
        self.assertEqual(code, 0)
        self.assertRegex(errors, r"a promise was rejected and nobody awaited it: program:A has no handler `nothing` \(it was made at "
                                 r"\S*program\.lua:5\)\n")
        self.assertNotIn("none", errors)

    def test_its_classes_are_loaded_where_their_instances_arrive(self):
        self.write("peer.lua", "local Peer = troupe.actor 'Peer' function Peer.on:get(t) return t.list[1]:get() end")
        self.assertEqual(self.run_program(
            "local Point = troupe.class 'Point'\n"
            "function Point:init(x) self.x = x end\n"
            "function Point:get() return self.x end\n"
            "troupe.main(function()\n"
            "  local peer = troupe.spawn 'peer'\n"
            "  print(troupe.await(troupe.ask(peer.get, { list = { Point.new(7) } })))\n"
            "end)"), (0, "7\n", ""))

    def test_its_top_level_runs_in_every_vm_that_needs_it(self):
        program = """print "top"
            local Worker = troupe.actor "Worker"
            troupe.main(function()
              for i = 1, 2 do
                local worker = troupe.spawn(Worker)
                troupe.stop(worker) troupe.await(troupe.done(worker))
              end
              print "main"
            end)"""
        self.assertEqual(self.run_program(program), (0, "top\ntop\ntop\nmain\n", ""))

    def test_an_unknown_global_of_main(self):
        code, output, errors = self.run_program("troupe.main(function() return nowhere end)")
        self.assertEqual((code, output), (FAULT, ""))
        self.assertRegex(errors, r"program\.lua:2: the global `nowhere` was never set\n")

    def test_a_file_without_main(self):
        code, output, errors = self.run_program("print 'top level'")
        self.assertEqual(code, USAGE)
        self.assertIn("main", errors)

    def test_a_file_that_does_not_load(self):
        code, _, errors = self.run_program("this is no Lua")
        self.assertEqual(code, FAULT)
        self.assertIn("program.lua:2:", errors)

    def test_it_ends_when_nothing_is_pending(self):
        program = """
            local Worker = troupe.actor "Worker"
            function Worker.on:say(text) print(text) end
            function Worker:close(reason) print(reason) end
            troupe.main(function()
              local worker = troupe.spawn(Worker)
              for i = 1, 3 do troupe.send(worker.say, i) end
            end)"""
        self.assertEqual(self.run_program(program), (0, "1\n2\n3\nsession\n", ""))

    def test_what_holds_it_open(self):
        worker = """
            local Worker = troupe.actor "Worker"
            function Worker.async:work() troupe.await(troupe.sleep(20)) print "worked" return 1 end
            """
        for pending, printed in (
                ("troupe.sleep(30)", "main\n"),
                ("local n, stop = 0 stop = troupe.every(1, function() n = n + 1 if n == 3 then print 'ticked' stop() end end)",
                 "main\nticked\n"),
                ("troupe.ask(troupe.spawn(Worker).work)", "main\nworked\n"),
                # the actor it waits for would never end by itself
                ("troupe.done(troupe.spawn(Worker))", "main\n"),
                ("troupe.done(troupe.spawn(Worker, troupe.options { detach = true }))", "main\n")):
            with self.subTest(pending=pending):
                self.assertEqual(self.run_program(f"{worker} troupe.main(function() {pending} print 'main' end)"), (0, printed, ""))

    def test_a_kill_closes_nothing(self):
        program = """
            local Worker = troupe.actor "Worker"
            function Worker.on:work()
              local closed <close> = setmetatable({}, { __close = function() print "closed" end })
              print "working"
              while true do pcall(error) end
            end
            troupe.main(function()
              local worker = troupe.spawn(Worker)
              troupe.send(worker.work)
              troupe.stop(worker, { within = 50 })
              print(pcall(troupe.await, troupe.done(worker)))
              troupe.send(worker.work)
            end)"""
        self.assertEqual(self.run_program(program), (0, "working\nfalse\tthe actor was killed\n", ""))

    def test_a_fault_that_nobody_is_told_of_is_logged(self):
        program = """
            local Brittle = troupe.actor "Brittle"
            function Brittle.on:touch() error("it broke", 0) end
            troupe.main(function(how)
              local brittle = troupe.spawn(Brittle)
              if how == "send" then troupe.send(brittle.touch) return end
              if how == "done" then troupe.send(brittle.touch) end
              print(pcall(troupe.await, how == "ask" and troupe.ask(brittle.touch) or troupe.done(brittle)))
            end)"""
        code, output, errors = self.run_program(program, "send")
        self.assertEqual((code, output), (0, ""))
        self.assertRegex(errors, r"warning: program:Brittle\[[0-9a-f]{8}\]: fault: it broke\n +stack traceback:\n")
        for how in ("ask", "done"):
            self.assertEqual(self.run_program(program, how), (0, "false\tit broke\n", ""))

    def test_so_it_is_while_the_program_goes_on(self):
        process = self.start("""
            local Brittle = troupe.actor "Brittle"
            function Brittle.on:touch() error("it broke", 0) end
            troupe.main(function() troupe.send(troupe.spawn(Brittle).touch) troupe.await(troupe.sleep("1d")) end)""")
        self.assertIn("fault: it broke", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process), (INTERRUPTED, ""))

    def test_a_supervised_sibling_that_does_not_stop_is_killed(self):
        config = self.folder / "trouped.json"
        config.write_text(json.dumps({"shutdown": {"grace": "50ms"}}))
        code, output, _ = self.run_program("""
            local Child = troupe.actor "Child"
            function Child.on:fail() error("it broke", 0) end
            function Child.on:loop() while true do end end
            local function ask(...) return troupe.await(troupe.ask(...)) end
            troupe.main(function()
              local sup = troupe.supervise({ { Child, name = "a" }, { Child, name = "b" } }, { strategy = "one-for-all" })
              local a, b = ask(sup.child, "a"), ask(sup.child, "b")
              troupe.send(b.loop)
              pcall(ask, a.fail)
              print(pcall(troupe.await, troupe.done(b)))
            end)""", options=["-c", config])
        self.assertEqual((code, output), (0, "false\tthe actor was killed\n"))

    def test_what_was_detached_is_ended_too(self):
        program = """
            local Worker = troupe.actor "Worker"
            function Worker:close(reason) print(reason) end
            troupe.main(function() troupe.spawn(Worker, troupe.options { detach = true }) end)"""
        self.assertEqual(self.run_program(program), (0, "shutdown\n", ""))

    def test_no_variable_of_the_environment_has_a_say(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "there.lua").write_text("return 'found'")
        (other / "init.lua").write_text("print 'init'")
        program = self.write("program.lua", "troupe.main(function() print(pcall(require, 'there')) end)")
        variables = {"LUA_PATH": f"{other}/?.lua", "LUA_CPATH": f"{other}/?.so", "LUA_INIT": f"@{other}/init.lua"}
        variables |= {name + "_5_4": value for name, value in variables.items()}
        code, output, _ = service.run("run", program, **variables)
        self.assertEqual(code, 0)
        self.assertRegex(output, "^false\tthere is no module `there`; tried: ")
        self.assertNotIn("other", output)

    def test_modules_beside_it_come_first(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "one.lua").write_text("return 'other'")
        (other / "two.lua").write_text("return 'other'")
        (self.folder / "one.lua").write_text("return 'own'")
        program = "local one, two = require 'one', require 'two'\ntroupe.main(function() print(one, two) end)"
        self.assertEqual(self.run_program(program, options=["-p", other]), (0, "own\tother\n", ""))

    def test_a_configuration_is_read_where_it_is_named(self):
        config = self.folder / "trouped.json"
        program = "troupe.main(function() print(pcall(os.execute, 'true')) end)"
        self.assertEqual(self.run_program(program), (0, "true\ttrue\texit\t0\n", ""))
        config.write_text(json.dumps({"limits": {"actors": 7}}))
        self.assertEqual(self.run_program(program, options=["-c", config]), (0, "true\ttrue\texit\t0\n", ""))
        config.write_text(json.dumps({"allow": ["files"]}))
        code, output, _ = self.run_program(program, options=["-c", config])
        self.assertEqual((code, output.split("\t")[0]), (0, "false"))
        config.write_text(json.dumps({"allow": "files"}))
        self.assertEqual(self.run_program(program, options=["-c", config])[0], CONFIGURATION)

    def test_an_interrupt_stops_all_orderly(self):
        process = self.start("""
            local Worker = troupe.actor "Worker"
            function Worker:close(reason) print(reason) end
            troupe.main(function()
              local worker = troupe.spawn(Worker)
              print "ready" io.stdout:flush()
              troupe.await(troupe.sleep("1d"))
            end)""")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process), (INTERRUPTED, "shutdown\n"))

    def test_an_interrupt_reaches_a_main_that_does_not_look(self):
        process = self.start("troupe.main(function() print 'ready' io.stdout:flush() while true do end end)")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process), (INTERRUPTED, ""))

    def test_a_second_interrupt_kills(self):
        process = self.start("""
            local Worker = troupe.actor "Worker"
            function Worker.on:work() print "working" io.stdout:flush() while true do end end
            function Worker:close() print "closing" io.stdout:flush() end
            troupe.main(function()
              local worker, idle = troupe.spawn(Worker), troupe.spawn(Worker)
              troupe.send(worker.work)
              troupe.await(troupe.sleep("1d"))
            end)""")
        self.assertEqual(process.stdout.readline(), "working\n")
        process.send_signal(signal.SIGINT)
        # the idle one has closed: the first interrupt was seen
        self.assertEqual(process.stdout.readline(), "closing\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end(process), (INTERRUPTED, ""))

    def test_another_signal_ends_it_alike(self):
        process = self.start("troupe.main(function() print 'ready' io.stdout:flush() troupe.await(troupe.sleep('1d')) end)")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process), (128 + signal.SIGTERM, ""))

    def test_a_link_gives_the_name_and_the_file_its_folder(self):
        (self.folder / "helper.lua").write_text("return 'found'")
        self.write("program.lua", "local helper = require 'helper'\ntroupe.main(function() print(helper) end)")
        links = self.folder / "links"
        links.mkdir()
        os.symlink(self.folder / "program.lua", links / "tool")
        self.assertEqual(service.run("run", links / "tool"), (0, "found\n", ""))


if __name__ == "__main__":
    unittest.main()
