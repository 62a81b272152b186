# SPDX-License-Identifier: Apache-2.0
"""Components whose replicas are Lua modules, in programs that `trouped run` runs: what they get, what their calls come to, their life."""

import collections
import json
import os
import pathlib
import tempfile
import unittest

import harness
import service

# In front of every program: the component `c`, of the module `c`, and what its calls come to in one text.
PROGRAM = """
local troupe = require "troupe"
local function outcome(...)
  local ok, e = pcall(troupe.await, troupe.call(...))
  if ok then return e end
  return e.code .. "/" .. e.ran
end
local function declare(manifest)
  manifest.name, manifest.module = manifest.name or "c", manifest.module or "c"
  troupe.component(manifest)
end
troupe.main(function(...)
%s
end)
"""


class Components(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / f"{name}.lua"
        path.write_text('local troupe = require "troupe"\n' + text)
        return path

    def run_program(self, module, main, *arguments, options=()):
        """Runs a program that has that module; answers exit code, standard output, standard error."""
        self.write("c", module)
        program = self.folder / "program.lua"
        program.write_text(PROGRAM % main)
        return service.run(*options, "run", program, *arguments)

    def expect(self, module, main, printed, *arguments, options=()):
        self.assertEqual(self.run_program(module, main, *arguments, options=options), (0, printed, ""))


class Declaring(Components):
    def test_a_manifest_that_is_wrong_says_where(self):
        for manifest, said in (("5", "component: 5 is not a manifest"),
                               ("{ name = 'c', operations = print }", "a message may not carry a function: `operations` is a function"),
                               ("{ name = 'c', module = 'c' }", "component: the manifest at /operations is missing"),
                               ("{ name = 'c', module = 'c', operations = { one = { kind = 1 } } }",
                                "component: the manifest at /operations/one/kind "),
                               ("{ name = 'c', module = 'c', replica = 1, operations = { one = {} } }",
                                "component: the manifest at /replica ")):
            with self.subTest(manifest=manifest):
                code, output, errors = self.run_program(
                    "return { operations = {} }", f"local _, e = pcall(troupe.component, {manifest}) print(e.code, e)")
                self.assertEqual((code, errors), (0, ""))
                self.assertRegex(output, "^(bad-request|not-sendable)\t")
                self.assertIn(said, output)

    def test_a_name_is_taken_once(self):
        self.expect("return { operations = { one = print } }",
                    "declare { operations = { one = {} } }\n"
                    "local _, e = pcall(declare, { operations = { one = {} } }) print(e.code, e.ran)", "taken\tno\n")

    def test_not_at_the_top_level_of_a_file(self):
        self.write("top", "troupe.component { name = 'c', module = 'c', operations = { one = {} } }")
        code, output, _ = self.run_program("return { operations = { one = print } }", "print(pcall(require, 'top'))")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"component: not at the top level of a file \(\S*top\.lua\)")

    def test_not_in_the_daemon(self):
        actor = ('local troupe = require "troupe"\nlocal A = troupe.actor "A"\n'
                 'function A.on:declare() troupe.component { name = "c", module = "c", operations = { one = {} } } end\n')
        with harness.Daemon(files={"a.lua": actor}) as daemon, harness.Client(daemon.socket) as client:
            with self.assertRaises(harness.Error) as raised:
                client.request("ask", client.request("spawn", "a", []), "declare", [])
            self.assertIn("component: only in a program", raised.exception.message)

    def test_a_program_may_be_its_own_component(self):
        program = self.write("both", """
            troupe.main(function()
              troupe.component { name = "both", module = "both", operations = { twice = {} } }
              print(troupe.await(troupe.call("both", "twice", 21)))
            end)
            return { operations = { twice = function(n) return 2 * n end } }""")
        self.assertEqual(service.run("run", program), (0, "42\n", ""))

    def test_a_call_that_is_pending_holds_a_program_open(self):
        self.expect("return { operations = { slow = function() troupe.await(troupe.sleep(20)) print 'answered' end } }",
                    "declare { operations = { slow = {} } } troupe.call('c', 'slow') print 'main'", "main\nanswered\n")


class Starting(Components):
    def test_a_module_without_an_operation_of_the_manifest(self):
        code, output, errors = self.run_program(
            "return { operations = { one = print } }",
            "declare { operations = { one = {}, two = {} } } print(outcome('c', 'one', nil, { timeout = 50 }))")
        self.assertEqual((code, output), (0, "timeout/no\n"))
        self.assertRegex(errors, "warning: .*: load: the module `c` has no operation `two`, which the manifest of c has")

    def test_a_failing_init_is_tried_again_and_calls_wait(self):
        marker = self.folder / "tried"
        code, output, errors = self.run_program(
            f"""local function init()
                  local file = io.open("{marker}")
                  if file then return end
                  io.open("{marker}", "w"):close()
                  error("not yet", 0)
                end
                return {{ operations = {{ one = function(input, context) return context.attempt end }}, init = init }}""",
            "declare { operations = { one = {} } } print(outcome('c', 'one'))")
        self.assertEqual((code, output), (0, "1\n"))
        self.assertRegex(errors, "warning: .*: fault: not yet; ")

    def test_a_module_that_is_nowhere(self):
        code, output, errors = self.run_program("", "declare { module = 'none', operations = { one = {} } }\n"
                                                    "print(outcome('c', 'one', nil, { timeout = 50 }))")
        self.assertEqual((code, output), (0, "timeout/no\n"))
        self.assertIn("there is no module `none`; tried: ", errors)

    def test_its_life_in_order(self):
        module = """
            local function note(...)
              troupe.send(troupe.find "journal", "note", table.concat({ ... }, " "))
            end
            local function named(context)
              for _, name in ipairs(troupe.instances "c") do
                if name == context.instance then return "held" end
              end
              return "not held"
            end
            local operations = {}
            function operations.work(input, context)
              note("work", context.state.from)
              return troupe.me()
            end
            return { operations = operations,
              init = function(context)
                troupe.await(troupe.sleep(5))
                context.state.from = "init"
                note("init", named(context), context.args.port, context.index)
              end,
              ready = function(context) note("ready", named(context)) end,
              dispose = function(context)
                note("dispose", named(context), troupe.await(context.call("other", "echo", "calls")))
              end }"""
        self.write("other", "return { operations = { echo = function(input) return input end } }")
        self.write("journal", """
            local Journal = troupe.actor "Journal"
            function Journal:init() self.lines = {} end
            function Journal.on:note(line) self.lines[#self.lines + 1] = line end
            function Journal.on:lines() return self.lines end""")
        code, output, _ = self.run_program(module, """
            local journal = troupe.spawn("journal", troupe.options { publish = "journal" })
            declare { name = "other", module = "other", operations = { echo = {} } }
            declare { replicas = { { instance = "left", args = { port = "/dev/ttyS0" } } }, operations = { work = {} } }
            local replica = outcome("c", "work")
            troupe.stop(replica)
            troupe.await(troupe.done(replica))
            local lines = troupe.await(troupe.ask(journal.lines))
            print(table.concat(lines, ", ", 1, 4)) -- another one follows""")
        self.assertEqual((code, output),
                         (0, "init not held /dev/ttyS0 0, ready held, work init, dispose not held calls\n"))


class Calling(Components):
    def test_the_context(self):
        self.expect("""
            local operations = {}
            function operations.look(input, context)
              local chain = troupe.await(context.call("c", "trace"))
              return { context.component, context.operation, context.instance, context.index, context.attempt,
                type(context.args), math.type(context.caller.uid), math.type(context.caller.gid), context.caller.pid > 0,
                chain:sub(1, 36) == context.trace:sub(1, 36), chain == context.trace, type(context.log) }
            end
            function operations.trace(input, context) return context.trace end
            return { operations = operations }""",
                    "declare { concurrency = 2, replicas = { { instance = 'one' } }, operations = { look = {}, trace = {} } }\n"
                    "print(table.unpack((outcome('c', 'look'))))",
                    "c\tlook\tone\t0\t1\tnil\tinteger\tinteger\ttrue\ttrue\tfalse\tfunction\n")

    def test_state_is_each_replicas_own_and_dies_with_it(self):
        code, output, _ = self.run_program("""
            local operations = {}
            function operations.count(input, context)
              context.state.n = (context.state.n or 0) + 1
              return context.state.n
            end
            operations["end"] = function(input, context) troupe.stop(troupe.me()) end
            return { operations = operations }""", """
            declare { replicas = { { instance = "left" }, { instance = "right" } },
              operations = { count = { stateful = true }, ["end"] = { stateful = true } } }
            while #troupe.instances "c" < 2 do troupe.await(troupe.sleep(1)) end
            local function count(name) return outcome("c", "count", nil, { instance = name }) end
            print(count "left", count "left", count "right")
            outcome("c", "end", nil, { instance = "left" })
            local again repeat troupe.await(troupe.sleep(5)) again = count "left" until again ~= "addressee/no"
            print(again, count "right")""")
        self.assertEqual((code, output), (0, "1\t2\t1\n1\t2\n"))

    def test_errors(self):
        self.expect("""
            local operations = {}
            function operations.refuse(input, context) return context.error("NO_SUCH_STREAM", { id = input }) end
            function operations.other(input, context) return context.error("OTHER") end
            function operations.raise() error("it broke", 0) end
            return { operations = operations }""", """
            declare { operations = { refuse = { errors = { "NO_SUCH_STREAM" } }, other = { errors = { "NO_SUCH_STREAM" } }, raise = {} } }
            local _, e = pcall(troupe.await, troupe.call("c", "refuse", 5))
            print(e.code, e.ran, e.error, e.data.id)
            _, e = pcall(troupe.await, troupe.call("c", "other"))
            print(e.code, e.ran, e.subject)
            _, e = pcall(troupe.await, troupe.call("c", "raise"))
            print(e.code, e.ran, e.kind, e.message, e.handler, e.traceback ~= nil)""",
                    "refused\tyes\tNO_SUCH_STREAM\t5\ncontract\tyes\terror\nfault\tyes\terror\tit broke\traise\ttrue\n")

    def test_contracts(self):
        self.expect("""
            local operations = {}
            function operations.make(input) return input.result end
            return { operations = operations }""", """
            declare { operations = { make = { output = { type = "object", properties = { list = { type = "array" } } },
              input = { type = "object", required = { "result" } } } } }
            local function breach(input)
              local _, e = pcall(troupe.await, troupe.call("c", "make", input))
              print(e.code, e.ran, e.subject, e.path)
            end
            breach {}
            breach { result = 5 }
            breach { result = { list = { x = 1 } } }
            print(next(outcome("c", "make", { result = { list = {} } }).list), next(outcome("c", "make", { result = {} })))""",
                    "contract\tno\tinput\t\ncontract\tyes\toutput\t\ncontract\tyes\toutput\t/list\nnil\tnil\n")

    def test_a_stateful_operation_wants_a_name_and_others_none(self):
        self.expect("return { operations = { held = function(input, context) return context.instance end, free = print } }", """
            declare { replicas = { { instance = "left" }, { instance = "right" } },
              operations = { held = { stateful = true }, free = {} } }
            while #troupe.instances "c" < 2 do troupe.await(troupe.sleep(1)) end
            local _, e = pcall(troupe.await, troupe.call("c", "held")) print(e.code, e.ran, e.subject)
            _, e = pcall(troupe.await, troupe.call("c", "free", nil, { instance = "left" })) print(e.code, e.ran, e.subject)
            print(outcome("c", "held", nil, { instance = "left" }), outcome("c", "held", nil, { instance = "right" }),
              outcome("c", "held", nil, { instance = "middle" }))""",
                    "contract\tno\trequest\ncontract\tno\trequest\nleft\tright\taddressee/no\n")

    def test_an_addressed_call_past_its_time(self):
        self.write("gate", "local Gate = troupe.actor 'Gate'")
        self.expect("""
            local operations, ran = {}, 0
            function operations.hold(input, context)
              while not troupe.find "gate" do troupe.await(troupe.sleep(1)) end
              ran = ran + 1
            end
            function operations.ran() return ran end
            return { operations = operations }""", """
            declare { replicas = { { instance = "one" } }, operations = { hold = { stateful = true }, ran = {} } }
            while #troupe.instances "c" < 1 do troupe.await(troupe.sleep(1)) end
            local function hold(ms)
              local _, e = pcall(troupe.await, troupe.call("c", "hold", nil, { instance = "one", timeout = ms }))
              return e
            end
            local ms, first = 20 -- until it has begun before its time is over
            repeat
              first = hold(ms)
              ms = 2 * ms
            until first.ran == "maybe"
            local second = hold(20)
            print(first.code, first.ran, second.code, second.ran)
            troupe.spawn("gate", troupe.options { publish = "gate" })
            print(outcome("c", "ran"))""", "abandoned\tmaybe\tabandoned\tno\n1\n")

    def test_a_chain_is_32_deep_at_most(self):
        self.expect("""
            local operations = {}
            function operations.deep(input, context)
              local ok, e = pcall(troupe.await, context.call("c", "deep", input + 1))
              return ok and e or { input, e.code, e.ran }
            end
            return { operations = operations }""",
                    "declare { concurrency = 64, operations = { deep = {} } } print(table.unpack((outcome('c', 'deep', 1))))",
                    "32\tloop\tno\n")

    def test_as_many_at_once_as_the_manifest_says(self):
        for concurrency, most in ((None, 1), (3, 3)):
            with self.subTest(concurrency=concurrency):
                self.expect("""
                    local operations, now, most = {}, 0, 0
                    function operations.count(together)
                      now = now + 1
                      most = math.max(now, most)
                      while most < together do troupe.await(troupe.sleep(1)) end
                      troupe.await(troupe.sleep(1))
                      now = now - 1
                    end
                    function operations.most() return most end
                    return { operations = operations }""", f"""
                    declare {{ concurrency = {concurrency or "nil"}, operations = {{ count = {{}}, most = {{}} }} }}
                    local all = {{}}
                    for i = 1, 9 do all[i] = troupe.call("c", "count", {most}) end
                    troupe.await(troupe.all(all))
                    print(outcome("c", "most"))""", f"{most}\n")


class Ending(Components):
    def test_a_death_is_not_the_answer(self):
        """By its heap, and by a kill; the third death is the last."""
        module = """
            local operations = {}
            local function grow() local t = {} while true do t[#t + 1] = { t } end end
            function operations.heap(input, context)
              if context.attempt <= input then pcall(grow) end
              return context.attempt
            end
            function operations.kill(input, context)
              if context.attempt <= input then
                troupe.stop(troupe.me(), { within = 1 })
                while true do end
              end
              return context.attempt
            end
            return { operations = operations }"""
        code, output, errors = self.run_program(module, """
            declare { heap = "1M", operations = { heap = {}, kill = {} } }
            print(outcome("c", "heap", 1), outcome("c", "kill", 1), outcome("c", "kill", 3))""")
        self.assertEqual((code, output), (0, "2\t2\tundeliverable/maybe\n"))
        self.assertIn("the heap ceiling of 1M was reached", errors)

    def test_an_addressed_call_is_abandoned_with_its_replica(self):
        self.write("gate", "local Gate = troupe.actor 'Gate'")
        code, output, _ = self.run_program("""
            local operations = {}
            function operations.die()
              while not troupe.find "gate" do troupe.await(troupe.sleep(1)) end
              troupe.stop(troupe.me(), { within = 1 })
              while true do end
            end
            return { operations = operations }""", """
            declare { replicas = { { instance = "one" } }, operations = { die = { stateful = true } } }
            while #troupe.instances "c" < 1 do troupe.await(troupe.sleep(1)) end
            local first = troupe.call("c", "die", nil, { instance = "one" })
            local second = troupe.call("c", "die", nil, { instance = "one" })
            troupe.spawn("gate", troupe.options { publish = "gate" })
            for _, p in ipairs { first, second } do
              local _, e = pcall(troupe.await, p)
              print(e.code, e.ran)
            end""")
        self.assertEqual((code, output), (0, "abandoned\tmaybe\naddressee\tno\n"))

    def test_one_that_stops_gives_its_name_up_and_finishes_what_it_has(self):
        self.write("gate", "local Gate = troupe.actor 'Gate'")
        self.expect("""
            local operations = {}
            function operations.work(input, context)
              troupe.stop(troupe.me())
              while not troupe.find "gate" do troupe.await(troupe.sleep(1)) end
              return "finished"
            end
            operations.touch = print
            return { operations = operations }""", """
            declare { concurrency = 2, replicas = { { instance = "one" } },
              operations = { work = { stateful = true }, touch = { stateful = true } } }
            while #troupe.instances "c" < 1 do troupe.await(troupe.sleep(1)) end
            local work = troupe.call("c", "work", nil, { instance = "one" })
            while #troupe.instances "c" > 0 do troupe.await(troupe.sleep(1)) end
            print(outcome("c", "touch", nil, { instance = "one" }))
            troupe.spawn("gate", troupe.options { publish = "gate" })
            print(troupe.await(work))""", "addressee/no\nfinished\n")

    def test_an_input_that_does_not_fit_is_refused_and_the_replica_lives_on(self):
        self.expect("""
            local operations, n = {}, 0
            function operations.take(input) n = n + 1 return n end
            return { operations = operations }""", """
            declare { heap = "1M", operations = { take = {} } }
            local large = {}
            for i = 1, 20000 do large[i] = "text " .. i end
            print(outcome("c", "take"), outcome("c", "take", large), outcome("c", "take"))""", "1\ttoo-large/no\t2\n")

    def test_who_gives_up_is_answered_and_what_was_queued_never_runs(self):
        self.write("gate", "local Gate = troupe.actor 'Gate'")
        self.expect("""
            local operations, ran = {}, 0
            function operations.hold()
              troupe.publish("held", troupe.me())
              while not troupe.find "gate" do troupe.await(troupe.sleep(1)) end
            end
            function operations.count() ran = ran + 1 end
            function operations.ran() return ran end
            return { operations = operations }""", """
            declare { operations = { hold = {}, count = {}, ran = {} } }
            local hold, queued = troupe.call("c", "hold"), troupe.call("c", "count")
            while not troupe.find "held" do troupe.await(troupe.sleep(1)) end
            for _, p in ipairs { queued, hold } do
              local _, e = pcall(troupe.await, troupe.timeout(p, 5))
              print(e.code, e.ran)
            end
            troupe.spawn("gate", troupe.options { publish = "gate" })
            print(outcome("c", "ran"))""", "timeout\tno\ntimeout\tmaybe\n0\n")

    def test_a_fault_of_its_own_loop_ends_a_replica(self):
        """What `every` calls is no operation: nobody is there to hear of it."""
        code, output, errors = self.run_program("""
            local operations = {}
            function operations.start() troupe.every(1, function() error("a tick", 0) end) end
            function operations.me() return troupe.me() end
            return { operations = operations }""", """
            declare { operations = { start = {}, me = {} } }
            local before = outcome("c", "me")
            outcome("c", "start")
            local _, e = pcall(troupe.await, troupe.done(before))
            print(e.code, e.message, outcome("c", "me") ~= before)""")
        self.assertEqual((code, output), (0, "fault\ta tick\ttrue\n"))


class Reaching(Components):
    def test_a_module_has_what_its_manifest_grants(self):
        config = self.folder / "trouped.json"
        config.write_text(json.dumps({"allow": []}))
        self.expect("""
            local function try(f, ...) local ok, e = pcall(f, ...) return ok and "granted" or e.code end
            return { operations = { try = function()
              return { try(io.open, "/dev/null"), try(os.execute, "true") }
            end } }""", """
            declare { operations = { try = {} } }
            declare { name = "d", allow = { "files" }, operations = { try = {} } }
            declare { name = "e", allow = { "commands" }, operations = { try = {} } }
            for _, name in ipairs { "c", "d", "e" } do print(table.unpack((outcome(name, "try")))) end""",
                    "denied\tdenied\ngranted\tdenied\ndenied\tgranted\n", options=["-c", config])

    def test_a_replica_knows_itself_and_takes_no_messages(self):
        self.expect("""
            return { operations = { who = function()
              local who = troupe.whoami()
              return { who.name, who.module, who.component, who.instance, tostring(troupe.me()):match "^one " ~= nil }
            end, me = function() return troupe.me() end } }""", """
            declare { replicas = { { instance = "one" } }, operations = { who = {}, me = {} } }
            print(table.unpack((outcome("c", "who"))))
            local _, e = pcall(troupe.await, troupe.ask(outcome("c", "me"), "who"))
            print(e.code, e.message)""",
                    "one\tc\tc\tone\ttrue\nno-such-handler\ta replica of c has no handlers: it is called by its component\n")


MODULE = """
local troupe = require "troupe"
local operations = {}
function operations.who(input, context) return context.caller end
function operations.back(input) return input end
function operations.error(input, context) return context.error("NO", input) end
function operations.raise() error("it broke", 0) end
function operations.print() return print end
function operations.die(input, context)
  if context.attempt == 1 then troupe.stop(troupe.me(), { within = 1 }) while true do end end
  return context.attempt
end
return { operations = operations }
"""

CALLER = """
local troupe = require "troupe"
local Caller = troupe.actor "Caller"
function Caller.on:call(...) return troupe.call(...) end
function Caller.on:names(component) return #troupe.instances(component) end
"""


class InTheDaemon(unittest.TestCase):
    def setUp(self):
        manifest = {"name": "c", "module": "c", "operations": {
            "who": {}, "back": {}, "error": {"errors": ["NO"]}, "raise": {}, "print": {}, "die": {}}}
        self.daemon = harness.Daemon(files={"c.lua": MODULE, "caller.lua": CALLER}, config={"components": [manifest]})
        self.addCleanup(self.daemon.close)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def call(self, operation, argument=None, options=None):
        return self.client.request("call", "c", operation, argument, options)

    def test_a_client_calls(self):
        self.assertEqual(self.call("who"), {"uid": os.getuid(), "gid": os.getgid(), "pid": os.getpid()})
        for value in (None, True, -5, 0.5, "text", b"bytes", [1, [2]], {"a": {"b": []}}):
            self.assertEqual(self.call("back", value), value)
        self.assertEqual(self.call("die"), 2)

    def test_what_it_hears_of_failures(self):
        for operation, code, ran, more in (("error", "refused", "yes", {"error": "NO", "data": 5}),
                                           ("raise", "fault", "yes", {"kind": "error", "handler": "raise", "actor": "c"}),
                                           ("print", "not-sendable", "yes", {})):
            with self.subTest(operation=operation), self.assertRaises(harness.Error) as raised:
                self.call(operation, 5)
            self.assertEqual((raised.exception.code, raised.exception.ran), (code, ran))
            self.assertEqual({key: raised.exception.data[key] for key in more}, more)

    def test_an_actor_calls(self):
        caller = self.client.request("spawn", "caller", [])
        self.assertEqual(self.client.request("ask", caller, "call", ["c", "back", {"a": [1]}]), {"a": [1]})
        self.assertEqual(self.client.request("ask", caller, "names", ["c"]), 1)
        who = self.client.request("ask", caller, "call", ["c", "who"])
        self.assertEqual((who["uid"], who["pid"]), (os.getuid(), os.getpid()))

    def test_a_dispose_that_does_not_end_has_the_grace(self):
        module = ('local troupe = require "troupe"\n'
                  'return { operations = { me = function() return troupe.me() end },\n'
                  '         dispose = function() print "dispose" while true do end end }\n')
        manifest = {"name": "d", "module": "d", "operations": {"me": {}}}
        with harness.Daemon(files={"d.lua": module}, config={"components": [manifest], "shutdown": {"grace": "2s"}}) as daemon, \
                harness.Client(daemon.socket) as client:
            replica = client.request("call", "d", "me", None)
            client.request("stop", replica)
            with self.assertRaises(harness.Error) as raised:
                client.request("done", replica)
            self.assertEqual(raised.exception.code, "killed")
            self.assertIn('"message":"dispose"', daemon.log())
            # the one that follows is killed at the end

    def test_a_changed_module_takes_over_under_load(self):
        """Two replicas are replaced, twice, while 16 calls are always on their way: each of them is answered."""
        text = ('return {{ operations = {{ version = function() return {0} end }},\n'
                '         init = function(context) require("troupe").await(require("troupe").sleep(10)) end }}\n')
        manifest = {"name": "v", "module": "v", "replicas": 2, "concurrency": 4, "operations": {"version": {}}}
        with harness.Daemon(files={"v.lua": text.format(1)}, config={"components": [manifest]}) as daemon, \
                harness.Client(daemon.socket) as client:
            pending = collections.deque(client.start("call", "v", "version", None) for _ in range(16))
            seen, version, row, reloads = collections.Counter(), 1, 0, []
            while row < 200:  # so many answers in a row are the last version's
                answer = client.finish(pending.popleft())
                seen[answer] += 1
                pending.append(client.start("call", "v", "version", None))
                row = row + 1 if answer == 3 else 0
                if version < 3 and answer == version and seen[answer] >= 100:
                    version += 1
                    (daemon.directory / "lua" / "v.lua").write_text(text.format(version))
                    reloads.append(client.start("reload"))
            for request in pending:
                self.assertEqual(client.finish(request), 3)
            for request in reloads:
                client.finish(request)
            self.assertGreaterEqual(min(seen[version] for version in (1, 2)), 100)

    def test_what_is_said_of_a_replica(self):
        self.call("back")
        replica, = self.client.request("list", {"kind": "component"})[1:]
        self.assertEqual((replica["kind"], replica["component"], replica["module"]), ("replica", "c", "c"))
        self.assertRegex(replica["hash"], "^[0-9a-f]{32}$")


if __name__ == "__main__":
    unittest.main()
