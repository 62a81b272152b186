# SPDX-License-Identifier: Apache-2.0
"""Entities of components in Lua: in the daemon, where they outlive it, and in programs, where the store is in memory."""

import pathlib
import tempfile
import unittest

import harness
import service

SHELF = """
local ops = {}
function ops.add(input, changes, context)
  for key, value in pairs(input) do changes[key] = value end
  return changes.id
end
function ops.count(input, entity, context)
  if not entity then return context.error "NONE" end
  entity.count = (entity.count or 0) + input
  return entity.count
end
function ops.look(input, entity) return entity end
function ops.drop(input, context) return context.entities:delete(input) end
function ops.find(input, context) return context.entities:list(input) end
return { operations = ops }
"""
OPERATIONS = {
    "add": {"type": "assignment"}, "count": {"type": "transition", "errors": ["NONE"]}, "look": {"type": "observation"}, "drop": {},
    "find": {},
}


class InTheDaemon(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(
            files={"shelf.lua": SHELF},
            config={"components": [{"name": "shelf", "module": "shelf", "replicas": 2, "concurrency": 8, "operations": OPERATIONS,
                                    "entity": {"properties": {"count": {"type": "integer"}, "tags": {"type": "array"},
                                                              "more": {"type": "object"}}}}]})
        self.addCleanup(lambda: self.daemon.close())
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(lambda: self.client.close())

    def call(self, operation, argument=None, **options):
        return self.client.request("call", "shelf", operation, argument, options)

    def test_they_outlive_the_daemon(self):
        given = {"title": "Odyssey", "tags": [], "more": {}, "year": -700, "weight": 0.5, "lent": None, "deep": [[1], {"a": [True]}]}
        self.assertEqual(self.call("add", {**given, "more": []}, id="one"), "one")
        self.assertEqual([self.call("count", 2, id="one") for _ in range(3)], [2, 4, 6])
        kept = {key: value for key, value in given.items() if value is not None}
        for end in ("kill", "stop"):
            self.client.close()
            getattr(self.daemon, end)()
            self.daemon.start_again()
            self.client = harness.Client(self.daemon.socket)
            found = self.call("look", id="one")
            self.assertEqual({key: found[key] for key in kept}, kept)
            self.assertEqual((found["id"], found["version"], found["count"]), ("one", 4, 6))
        self.assertIs(self.call("drop", "one"), True)
        self.assertIsNone(self.call("look", id="one"))
        with self.assertRaises(harness.Error) as raised:
            self.call("count", 1, id="one")
        self.assertEqual((raised.exception.code, raised.exception.data["error"]), ("refused", "NONE"))

    def test_no_change_of_many_is_lost(self):
        self.call("add", {"count": 0}, id="n")
        waiting = [self.client.start("call", "shelf", "count", 1, {"id": "n"}) for _ in range(400)]
        counts = sorted(self.client.finish(request) for request in waiting)
        self.assertEqual(counts, list(range(1, 401)))
        self.assertEqual(self.call("look", id="n")["version"], 401)

    def test_what_they_are_not(self):
        for given, path in (({"tags": {"a": 1}}, "/tags"), ({"count": 0.5}, "/count")):
            with self.assertRaises(harness.Error) as raised:
                self.call("add", given, id="bad")
            error = raised.exception
            self.assertEqual((error.code, error.ran, error.data["subject"], error.data["path"]), ("contract", "yes", "entity", path))
        self.assertIsNone(self.call("look", id="bad"))

    def test_found_by_their_fields(self):
        for number in range(6):
            self.call("add", {"count": number, "odd": number % 2 == 1}, id=f"e{number}")
        def found(**options):
            return [entity["id"] for entity in self.call("find", options)]
        self.assertEqual(found(where={"odd": True}), ["e1", "e3", "e5"])
        self.assertEqual(found(sort="count", after="e2", limit=2), ["e3", "e4"])
        self.assertEqual(found(where={"none": None}, limit=1), ["e0"])


class InPrograms(unittest.TestCase):
    def test_the_store_is_in_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "shelf.lua").write_text(SHELF)
            program = pathlib.Path(folder, "program.lua")
            program.write_text("""
                local troupe = require "troupe"
                troupe.main(function()
                  troupe.component { name = "shelf", module = "shelf", replicas = 2, operations = {
                    add = { type = "assignment" }, count = { type = "transition", errors = { "NONE" } }, look = { type = "observation" },
                    drop = {}, find = {} } }
                  local function call(operation, input, options)
                    return troupe.await(troupe.call("shelf", operation, input, options))
                  end
                  print(call("look", nil, { id = "one" }))
                  call("add", { title = "Iliad" }, { id = "one" })
                  call("count", 3, { id = "one" })
                  local one = call("look", nil, { id = "one" })
                  print(one.title, one.count, one.version, #call("find"))
                end)""")
            for _ in range(2):
                self.assertEqual(service.run("run", program), (0, "nil\nIliad\t3\t2\t1\n", ""))
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["program.lua", "shelf.lua"])


if __name__ == "__main__":
    unittest.main()
