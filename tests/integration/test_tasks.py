# SPDX-License-Identifier: Apache-2.0
"""Tasks over the socket: accepted once they are on disk, run by whoever serves, listed, retried, dropped, told and counted."""

import os
import pathlib
import sys
import threading
import time
import unittest

import msgpack

import harness
from replica import Replica
from test_metrics import read

MANIFEST = {"name": "mill", "concurrency": 4, "attempts": 1, "operations": {
    "grind": {"type": "effect", "errors": ["EMPTY"], "input": {"type": "object"}, "output": {"type": "object"}},
    "twice": {"type": "effect"},
    "mark": {"type": "transition"},
    "seen": {"type": "observation"},
    "hold": {"stateful": True},
}}
DAYS = 86_400_000


class Tasks(unittest.TestCase):
    manifest = MANIFEST

    def setUp(self):
        self.daemon = harness.Daemon(config={"components": [self.manifest]})
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.runs, self.came = [], threading.Condition()

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def note(self, value, context):
        with self.came:
            self.runs.append((value, context))
            self.came.notify_all()
        if value.get("raise"):
            raise RuntimeError("the wheel broke")
        if value.get("refuse"):
            raise Replica.Refusal("EMPTY")
        return value.get("answer", {})

    def serve(self, **operations):
        replica = Replica(self.daemon.socket, "mill", {
            "grind": self.note, "twice": self.note, "hold": self.note, "seen": lambda value, context: context["entity"],
            "mark": lambda value, context: [self.note(value, context), value], **operations})
        self.addCleanup(replica.close)
        return replica

    def wait(self, count):
        with self.came:
            self.assertTrue(self.came.wait_for(lambda: len(self.runs) >= count, harness.TIMEOUT_SECONDS))
        return self.runs

    def task(self, operation="grind", value=None, **options):
        return self.client.request("task", "mill", operation, {} if value is None else value, options)

    def tasks(self, **options):
        return self.client.request("tasks", options)

    def until(self, count, **options):
        """Tasks, when there are so many."""
        while len(found := self.tasks(**options)) != count:
            pass
        return found

    def refuse(self, code, method, *params):
        with self.assertRaises(harness.Error) as caught:
            self.client.request(method, *params)
        self.assertEqual(code, caught.exception.code, caught.exception)
        return caught.exception


class Accepting(Tasks):
    def test_what_is_accepted_is_run(self):
        key = self.task(value={"n": 1})
        self.assertEqual([key], [task["id"] for task in self.tasks()])
        self.serve()
        (value, context), = self.wait(1)
        self.assertEqual(({"n": 1}, key, 1, "mill"), (value, context["task"], context["attempt"], context["component"]))
        self.assertEqual(os.getuid(), context["caller"]["uid"])
        self.until(0)
        self.client.request("call", "mill", "grind", {})
        self.assertNotIn("task", self.runs[-1][1])

    def test_what_is_kept_of_it(self):
        before = time.time() * 1000
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        key = self.task("mark", {"n": 1}, delay=DAYS, expires="1h", key="k", id="e", trace=trace)
        task, = self.tasks()
        self.assertEqual({"id": key, "component": "mill", "operation": "mark", "state": "waiting", "input": {"n": 1}, "key": "k",
                          "entity": "e", "delayed": True, "runs": 0, "depth": 1,
                          "caller": {"uid": os.getuid(), "gid": os.getgid(), "pid": os.getpid()}},
                         {name: value for name, value in task.items() if name not in ("created", "updated", "due", "expires", "trace")})
        self.assertIn("4bf92f3577b34da6a3ce929d0e0e4736", task["trace"])
        self.assertTrue(before + DAYS - 1 <= task["due"] <= time.time() * 1000 + DAYS + 1)
        self.assertTrue(before - 1 <= task["created"] <= time.time() * 1000 + 1)
        self.assertEqual(3_600_000, task["expires"] - task["due"])

    def test_an_input_that_is_no_json(self):
        value = {"bytes": b"\xff", "when": msgpack.Timestamp(7, 5), "n": {1: 2.0}}
        self.task("twice", value)
        typed = self.connect(values="typed")
        self.assertEqual(value, typed.request("tasks")[0]["input"])
        self.assertEqual({"bytes": b"\xff", "when": "1970-01-01T00:00:07.000000005Z", "n": {"1": 2.0}}, self.tasks()[0]["input"])

    def test_when_it_is_due(self):
        at = int(time.time()) * 1000 + DAYS
        moments = [at, float(at), msgpack.Timestamp.from_unix(at // 1000),
                   time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000)), time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(at // 1000))]
        for moment in moments:
            self.task(at=moment)
        self.assertEqual([at] * len(moments), [task["due"] for task in self.tasks()])
        for past in (0, -5, 1, "1970-01-01T00:00:00Z"):
            self.task("twice", at=past)
        self.serve()
        self.wait(4)
        self.assertEqual(len(moments), len(self.until(len(moments))))

    def test_one_of_a_key_waits(self):
        first = self.task(key="k", delay="1h")
        self.assertEqual(first, self.task(value={"other": 1}, key="k", delay="2h"))
        self.assertNotEqual(first, self.task("twice", key="k", delay="1h"))
        self.assertEqual(2, len(self.tasks()))

    def test_what_is_refused(self):
        for code, operation, value, options in (
                ("bad-request", "grind", {}, {"delay": 1, "at": 1}), ("bad-request", "grind", {}, {"expires": 1}),
                ("bad-request", "grind", {}, {"delay": 0}), ("bad-request", "grind", {}, {"at": "tomorrow"}),
                ("bad-request", "grind", {}, {"at": 1.5}), ("bad-request", "grind", {}, {"key": ""}),
                ("bad-request", "grind", {}, {"key": "x" * 257}), ("bad-request", "grind", {}, {"id": 3}),
                ("bad-request", "grind", {}, {"trace": "none"}), ("bad-request", "grind", {}, {"timeout": 1}),
                ("not-found", "none", {}, {}), ("contract", "grind", 7, {}), ("contract", "hold", {}, {}),
                ("contract", "hold", {}, {"instance": "a"}), ("contract", "grind", {}, {"instance": "a"})):
            with self.subTest(operation=operation, value=value, **options):
                error = self.refuse(code, "task", "mill", operation, value, options)
                self.assertEqual("no", error.data["ran"])
        self.assertEqual("request", error.data["subject"])
        self.refuse("not-found", "task", "nobody", "grind", {})
        self.assertEqual([], self.tasks())

    def test_it_outlives_the_daemon(self):
        keys = [self.task("twice", {"n": n}) for n in range(20)]
        self.client.close()
        self.daemon.kill()
        self.daemon.start_again()
        self.client = self.connect()
        self.assertEqual(keys, [task["id"] for task in self.tasks()])
        self.serve()
        self.assertEqual(sorted(keys), sorted(context["task"] for _, context in self.wait(20)))
        self.until(0)

    def test_a_task_changes_an_entity(self):
        self.serve()
        key = self.task("mark", {"n": 1})
        self.until(0)
        made = next(context["id"] for _, context in self.runs if context["task"] == key)
        self.task("mark", {"n": 2}, id=made)
        self.until(0)
        entity = self.client.request("call", "mill", "seen", {}, {"id": made})
        self.assertEqual((2, 2), (entity["n"], entity["version"]))


class Afterwards(Tasks):
    def park(self, value=None):
        key = self.task(value={"raise": True} if value is None else value)
        self.until(1, state="parked")
        return key

    def test_parked_with_all_that_is_known(self):
        self.serve()
        key = self.park()
        task, = self.tasks()
        self.assertEqual((key, "parked", 1, {"raise": True}), (task["id"], task["state"], task["runs"], task["input"]))
        self.assertEqual(("fault", "yes"), (task["cause"]["code"], task["cause"]["ran"]))
        self.assertIn("the wheel broke", task["cause"]["message"])

    def test_an_output_against_the_contract_parks_and_a_declared_error_ends(self):
        self.serve()
        self.park({"answer": 7})
        self.assertEqual("contract", self.tasks()[0]["cause"]["code"])
        self.task(value={"refuse": True})
        self.wait(2)
        self.until(1)

    def test_retry(self):
        self.serve()
        key = self.park()
        self.assertIsNone(self.client.request("task-retry", key))
        self.wait(2)
        self.until(1, state="parked")
        self.assertIsNone(self.client.request("task-drop", key))
        self.assertEqual([], self.tasks())
        for method in ("task-retry", "task-drop"):
            self.refuse("not-found", method, key)
            self.refuse("not-found", method, "none")
            self.refuse("bad-request", method, 7)
            self.refuse("bad-request", method)

    def test_retry_of_one_that_waits_is_due_now(self):
        key = self.task(delay=DAYS)
        self.serve()
        self.client.request("task-retry", key)
        self.assertEqual(key, self.wait(1)[0][1]["task"])
        self.until(0)

    def test_drop_of_one_that_waits(self):
        keep, drop = self.task(), self.task()
        self.client.request("task-drop", drop)
        self.assertEqual([keep], [task["id"] for task in self.tasks()])
        self.serve()
        self.wait(1)
        self.until(0)
        self.assertEqual([keep], [context["task"] for _, context in self.runs])

    def test_drop_of_one_that_runs(self):
        go = threading.Event()

        def wait(value, context):
            self.note({}, context)
            go.wait()
            raise RuntimeError("it is not tried again")
        self.serve(twice=wait)
        key = self.task("twice")
        self.wait(1)
        self.until(1, state="running")
        self.client.request("task-drop", key)
        go.set()
        self.assertEqual([], self.until(0))

    def test_which_are_listed(self):
        self.serve()
        self.park()
        waiting = self.task("twice", delay=DAYS)
        for options, count in (({}, 2), ({"state": "waiting"}, 1), ({"state": "running"}, 0), ({"component": "mill"}, 2),
                               ({"component": "other"}, 0), ({"component": "mill", "state": "parked"}, 1)):
            self.assertEqual(count, len(self.tasks(**options)), options)
        self.assertEqual(waiting, self.tasks(state="waiting")[0]["id"])
        for options in ({"state": "done"}, {"state": 1}, {"component": "a b"}, {"operation": "grind"}):
            self.refuse("bad-request", "tasks", options)

    def test_a_task_that_takes_time_is_not_taken_back(self):
        """Who cancels may come too late, and is told nothing that is not so."""
        sent = self.client.start("task", "mill", "grind", {})
        was_pending = self.client.request("cancel", sent)
        if was_pending:
            with self.assertRaises(harness.Error) as caught:
                self.client.finish(sent)
            self.assertEqual(("cancelled", "maybe"), (caught.exception.code, caught.exception.data["ran"]))
        else:
            self.client.finish(sent)

    def test_as_a_notification(self):
        self.client.notify("task", "mill", "grind", {})
        self.client.notify("task", "mill", "none", {})
        self.until(1)


class Told(Tasks):
    def events(self, watcher, key, last):
        told = []
        while not told or told[-1]["event"] != last:
            kind, method, (topic, event) = watcher.notifications.popleft() if watcher.notifications else watcher.receive()
            self.assertEqual((2, "event", "task"), (kind, method, topic))
            if event["id"] == key:
                told.append(event)
        return told

    def test_what_becomes_of_it(self):
        watcher = self.connect()
        watcher.request("subscribe", "task")
        self.serve()
        key = self.task()
        told = self.events(watcher, key, "finished")
        self.assertEqual({"accepted", "started", "finished"}, {event["event"] for event in told})
        self.assertEqual({"mill"}, {event["component"] for event in told})
        self.assertEqual({"grind"}, {event["operation"] for event in told})
        self.assertEqual(1, told[-1]["attempt"])
        self.assertTrue(all(event["time"].endswith("Z") for event in told))
        key = self.task(value={"raise": True})
        parked = self.events(watcher, key, "parked")[-1]
        self.assertEqual("fault", parked["cause"]["code"])
        self.assertIn("the wheel broke", parked["cause"]["message"])
        self.client.request("task-retry", key)
        self.events(watcher, key, "retried")
        self.events(watcher, key, "parked")
        self.client.request("task-drop", key)
        self.events(watcher, key, "dropped")

    def test_what_came_too_late(self):
        watcher = self.connect()
        watcher.request("subscribe", "task")
        key = self.task(delay=1, expires=1)
        self.events(watcher, key, "expired")
        self.until(0)
        self.assertEqual(1, read(self.client.request("metrics"))["troupe_component_tasks_expired_total", (("component", "mill"),)])

    def test_metrics(self):
        def counts():
            return {dict(labels)["state"]: value for (name, labels), value in read(self.client.request("metrics")).items()
                    if name == "troupe_component_tasks"}
        for _ in range(3):
            self.task(delay=DAYS)
        self.assertEqual({"waiting": 3, "running": 0, "parked": 0}, counts())
        self.serve()
        self.task(value={"raise": True})
        while counts() != {"waiting": 3, "running": 0, "parked": 1}:
            pass


class Rights(Tasks):
    def test_a_process_of_the_daemon_has_no_tasks(self):
        worker = """
import msgpack, os, socket, sys
connection = socket.socket(fileno=int(os.environ["TROUPE_FD"]))
frames = msgpack.Unpacker(connection.makefile("rb", buffering=0))
def request(msgid, method, params):
    connection.sendall(msgpack.packb([0, msgid, method, params]))
    return next(frames)[2]
request(0, "hello", [{"errors": "map"}])
found = [request(1, method, params)["code"] for method, params in
         (("task", ["mill", "grind", {}]), ("tasks", []), ("task-retry", ["x"]), ("task-drop", ["x"]), ("backup", ["/tmp/x"]))]
request(2, "serve", ["said"])
for frame in frames:
    if frame[0] == 0:
        connection.sendall(msgpack.packb([1, frame[1], None, found]))
"""
        path = pathlib.Path(self.daemon.directory) / "worker.py"
        path.write_text(worker)
        self.client.request("component", {"name": "said", "process": {"command": [sys.executable, str(path)]}, "operations": {"what": {}}})
        self.assertEqual(["denied"] * 5, self.client.request("call", "said", "what", None))


if __name__ == "__main__":
    unittest.main()
