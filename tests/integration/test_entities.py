# SPDX-License-Identifier: Apache-2.0
"""Entities, as connections that call and serve see them: what an operation gets, what it changes, and what of that is kept."""

import threading
import time
import unittest

import harness
from replica import Replica

MANIFEST = {
    "name": "shelf", "concurrency": 8,
    "entity": {"properties": {"n": {"type": "integer"}, "title": {"type": ["string", "null"]}}},
    "operations": {
        "get": {"type": "observation"},
        "list": {"type": "observation", "scope": "entries"},
        "change": {"type": "transition", "errors": ["NO"], "output": {"type": ["integer", "object", "string", "null"]}},
        "add": {"type": "transition"},
        "fill": {"type": "assignment"},
        "plain": {},
    },
}
STORES = {"id", "version", "created", "updated"}


def add(value, context):
    n = context["entity"].get("n", 0) + 1
    return [n, {"n": n}]


def change(value, context):
    if value.get("raise"):
        raise RuntimeError("it broke")
    if value.get("refuse"):
        raise Replica.Refusal("NO")
    return value["answer"] if "answer" in value else [value.get("output"), value.get("changes")]


OPERATIONS = {
    "get": lambda value, context: context["entity"],
    "list": lambda value, context: context["entity"],
    "change": change,
    "add": add,
    "fill": lambda value, context: [context["id"], value],
    "plain": lambda value, context: sorted(context),
}


class Entities(unittest.TestCase):
    manifest = MANIFEST

    def setUp(self):
        self.daemon = harness.Daemon(config={"components": [self.manifest]})
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.replica = self.serve()

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def serve(self, operations=OPERATIONS, **options):
        replica = Replica(self.daemon.socket, self.manifest["name"], operations, **options)
        self.addCleanup(replica.close)
        return replica

    def call(self, operation, value=None, **options):
        return self.client.request("call", "shelf", operation, {} if value is None else value, options)

    def refuse(self, code, operation, value=None, **options):
        with self.assertRaises(harness.Error) as caught:
            self.call(operation, value, **options)
        self.assertEqual(code, caught.exception.code, caught.exception)
        return caught.exception

    def fields(self, key):
        """What is there, without what is the store's."""
        entity = self.call("get", id=key)
        return entity and {name: value for name, value in entity.items() if name not in STORES}


class WhatComesAndGoes(Entities):
    def test_a_document_as_it_goes_out(self):
        before = time.time() * 1000
        key = self.call("fill", {"title": "one", "n": 1})
        entity = self.call("get", id=key)
        self.assertEqual({"id": key, "version": 1, "title": "one", "n": 1},
                         {name: value for name, value in entity.items() if name not in ("created", "updated")})
        self.assertEqual(entity["created"], entity["updated"])
        self.assertTrue(before - 1 <= entity["created"] <= time.time() * 1000 + 1, entity)
        self.call("fill", {"n": 2}, id=key)
        after = self.call("get", id=key)
        self.assertEqual((2, entity["created"], "one", 2), (after["version"], after["created"], after["title"], after["n"]))
        self.assertGreaterEqual(after["updated"], after["created"])

    def test_an_observation(self):
        self.assertIsNone(self.call("get"))
        self.assertIsNone(self.call("get", id="nobody"))
        no_id, unknown = self.replica.contexts
        self.assertEqual((False, True, None), ("id" in no_id, "entity" in no_id, no_id["entity"]))
        self.assertEqual(("nobody", None), (unknown["id"], unknown["entity"]))

    def test_others_have_none(self):
        self.assertEqual(["attempt", "caller", "component", "instance", "trace"], self.call("plain"))
        self.assertEqual(["attempt", "caller", "component", "id", "instance", "trace"], self.call("plain", id="x"))

    def test_an_assignment_is_written_without_reading(self):
        key = self.call("fill", {"title": "a"}, id="given")
        self.assertEqual("given", key)
        self.call("fill", {"n": 3, "title": None}, id="given")
        self.assertEqual({"n": 3}, self.fields("given"))
        self.assertFalse(any("entity" in context for context in self.replica.contexts[:2]))
        self.assertEqual(["given", "given"], [context["id"] for context in self.replica.contexts[:2]])

    def test_ids_that_are_made_are_in_order_and_nobody_elses(self):
        keys = [self.call("fill", {"n": n}) for n in range(20)]
        self.assertEqual(20, len(set(keys)))
        self.assertTrue(all(len(key) == 32 and int(key, 16) >= 0 for key in keys), keys)

    def test_a_transition_makes_a_new_one(self):
        self.assertEqual("out", self.call("change", {"output": "out", "changes": {"title": "new"}}))
        context = self.replica.contexts[-1]
        self.assertEqual({"id": context["id"]}, context["entity"])
        self.assertEqual({"title": "new"}, self.fields(context["id"]))
        self.call("change", {})  # also where nothing was changed
        self.assertEqual({}, self.fields(self.replica.contexts[-1]["id"]))

    def test_changes_are_merged_and_a_nil_removes(self):
        key = self.call("fill", {"n": 1, "title": "t", "other": [1, {"a": None}]})
        self.call("change", {"changes": {"n": 5, "title": None}}, id=key)
        self.assertEqual({"n": 5, "other": [1, {"a": None}]}, self.fields(key))
        for nothing in (None, {}):
            self.call("change", {"changes": nothing}, id=key)
        self.assertEqual(2, self.call("get", id=key)["version"])

    def test_what_is_the_stores_is_not_changed_by_changes(self):
        key = self.call("fill", {"n": 1})
        before = self.call("get", id=key)
        self.call("change", {"changes": {"id": "other", "version": 7, "created": 0, "updated": 0, "n": 2}}, id=key)
        after = self.call("get", id=key)
        self.assertEqual((key, 2, before["created"], 2), (after["id"], after["version"], after["created"], after["n"]))

    def test_an_unknown_entity_is_nil_and_cannot_be_changed(self):
        self.assertEqual(7, self.call("change", {"output": 7}, id="nobody"))
        self.assertEqual([None], [context["entity"] for context in self.replica.contexts])
        error = self.refuse("contract", "change", {"changes": {"n": 1}}, id="nobody")
        self.assertEqual(("entity", "yes"), (error.data["subject"], error.data["ran"]))
        self.assertIsNone(self.fields("nobody"))

    def test_an_answer_that_is_no_pair(self):
        for answer in (None, 1, [], [1], [1, {}, 2], {"output": 1}, [1, 2], [1, [2]]):
            error = self.refuse("contract", "change", {"answer": answer})
            subject = "entity" if isinstance(answer, list) and len(answer) == 2 else "output"
            self.assertEqual((subject, "yes"), (error.data["subject"], error.data["ran"]), answer)

    def test_what_failed_has_changed_nothing(self):
        key = self.call("fill", {"n": 1})
        self.refuse("refused", "change", {"refuse": True}, id=key)
        self.refuse("fault", "change", {"raise": True}, id=key)
        error = self.refuse("contract", "change", {"output": 1.5, "changes": {"n": 2}}, id=key)
        self.assertEqual("output", error.data["subject"])
        error = self.refuse("contract", "change", {"changes": {"n": "two"}}, id=key)
        self.assertEqual(("entity", "/n", "yes"), (error.data["subject"], error.data["path"], error.data["ran"]))
        self.assertEqual((1, {"n": 1}), (self.call("get", id=key)["version"], self.fields(key)))

    def test_what_json_has_not_is_not_kept(self):
        for value, path in (({"x": b"bytes"}, "/x"), ({"x": [1, {"y": b""}]}, "/x/1/y"), ({"x": float("nan")}, "/x")):
            error = self.refuse("not-sendable", "fill", value)
            self.assertEqual((path, "yes"), (error.data["path"], error.data["ran"]))

    def test_what_is_asked_for_has_to_be_right(self):
        for operation, options in (("get", {"id": ""}), ("get", {"id": "x" * 257}), ("get", {"id": "a\nb"}), ("get", {"id": 7}),
                                   ("get", {"where": {}}), ("change", {"sort": "n"}), ("plain", {"limit": 1}), ("get", {"after": "a"}),
                                   ("list", {"where": [1]}), ("list", {"sort": 1}), ("list", {"limit": 0}), ("list", {"limit": -1}),
                                   ("list", {"limit": "3"}), ("list", {"after": ""}), ("list", {"after": 3})):
            with self.subTest(operation=operation, **options):
                self.refuse("bad-request", operation, **options)
        self.assertEqual([], self.replica.contexts)
        key = "é" * 128
        self.assertEqual(key, self.call("fill", {}, id=key))


class Lists(Entities):
    def titles(self, **options):
        return [entity["id"] for entity in self.call("list", **options)]

    def test_which_and_in_which_order(self):
        for key, fields in {"c": {"n": 1, "title": "x"}, "a": {"n": 3, "title": "y"}, "b": {"n": 2, "title": "x"}, "d": {"other": 1}}.items():
            self.call("fill", fields, id=key)
        self.assertEqual(["a", "b", "c", "d"], self.titles())
        self.assertEqual(["b", "c"], self.titles(where={"title": "x"}))
        self.assertEqual(["c"], self.titles(where={"title": "x", "n": 1}))
        self.assertEqual(["d"], self.titles(where={"title": None}))
        self.assertEqual(["b"], self.titles(where={"id": "b"}))
        self.assertEqual([], self.titles(where={"title": "X"}))
        self.assertEqual(["d", "c", "b", "a"], self.titles(sort="n"))
        self.assertEqual(["a", "b"], self.titles(limit=2))
        self.assertEqual(["c", "d"], self.titles(after="b"))
        self.assertEqual(["b", "a"], self.titles(sort="n", after="c"))
        self.assertEqual(["b"], self.titles(sort="n", after="c", limit=1))
        self.assertEqual(["b"], self.titles(where={"title": "x"}, limit=1))
        self.assertEqual(["a", "b", "c", "d"], self.titles(where=[]))  # as stock clients write an empty map
        self.refuse("not-found", "list", sort="n", after="nobody")
        self.assertEqual(["b", "c", "d"], self.titles(after="ab"))

    def test_pages_are_the_whole(self):
        keys = {self.call("fill", {"n": n % 3}) for n in range(30)}
        for options in ({}, {"sort": "n"}):
            seen, after = [], {}
            while page := self.titles(limit=7, **after, **options):
                seen += page
                after = {"after": page[-1]}
            self.assertEqual((30, keys), (len(seen), set(seen)), options)


class Contention(Entities):
    def test_no_increment_is_lost(self):
        key = self.call("fill", {"n": 0})
        self.serve()
        clients = [self.connect() for _ in range(4)]
        done = []

        def work(client):
            sent = [client.start("call", "shelf", "add", {}, {"id": key}) for _ in range(100)]
            done.extend(client.finish(each) for each in sent)
        threads = [threading.Thread(target=work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(done), list(range(1, 401)))
        self.assertEqual((400, 401), (self.fields(key)["n"], self.call("get", id=key)["version"]))

    def test_who_comes_too_late_is_run_again_with_what_is_there_then(self):
        key = self.call("fill", {"n": 0})
        entered, go, seen = threading.Event(), threading.Event(), []

        def slow(value, context):
            seen.append((context["attempt"], context["entity"]["n"]))
            if len(seen) == 1:
                entered.set()
                go.wait()
            return [context["entity"]["n"], {"title": "late"}]
        self.replica.close()
        self.serve({**OPERATIONS, "change": slow})
        sent = self.client.start("call", "shelf", "change", {}, {"id": key})
        entered.wait()
        other = self.connect()
        other.request("call", "shelf", "fill", {"n": 5}, {"id": key})
        go.set()
        self.assertEqual(5, self.client.finish(sent))
        self.assertEqual([(1, 0), (2, 5)], seen)
        self.assertEqual({"n": 5, "title": "late"}, self.fields(key))

    def test_who_is_always_too_late_is_told(self):
        key = self.call("fill", {"n": 0})
        other, runs = self.connect(), []

        def late(value, context):
            runs.append(context["attempt"])
            other.request("call", "shelf", "fill", {"n": len(runs)}, {"id": key})
            return [None, {"title": "never"}]
        self.replica.close()
        self.serve({**OPERATIONS, "change": late})
        error = self.refuse("conflict", "change", id=key)
        self.assertEqual(("yes", list(range(1, 17))), (error.data["ran"], runs))
        self.assertEqual({"n": 16}, self.fields(key))

    def test_what_was_answered_outlives_the_daemon(self):
        keys = [self.call("fill", {"n": n}) for n in range(50)]
        self.client.close()
        self.daemon.kill()
        self.daemon.start_again()
        self.client = self.connect()
        self.serve()
        self.assertEqual(list(range(50)), [self.fields(key)["n"] for key in keys])


if __name__ == "__main__":
    unittest.main()
