# SPDX-License-Identifier: Apache-2.0
"""Components that connections serve and call, in raw frames: how each call ends, and what becomes of replicas that go."""

import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import unittest

import msgpack

import harness

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"

SHOP = {
    "name": "shop",
    "operations": {
        "sell": {"errors": ["SOLD_OUT"]},
        "count": {"input": {"type": "object", "properties": {"n": {"type": "integer"}}}, "output": {"type": "integer"}},
        "watch": {"stateful": True},
    },
}
TRACE = re.compile("00-[0-9a-f]{32}-[0-9a-f]{16}-01")


class Server(harness.Client):
    """A connection that answers what it is asked when the test says so."""

    def call(self):
        """The next call: its id, and (operation, input, context)."""
        while True:
            frame = self.notifications.popleft() if self.notifications else self.receive()
            if frame is None:
                raise ConnectionError("the daemon closed the connection")
            if frame[0] == 0:
                return frame[1], frame[3]
            self.heard.append(frame)

    heard = ()

    def serve(self, component="shop", **options):
        self.heard = []
        return self.request("serve", component, options)["instance"]

    def answer(self, msgid, result=None, error=None):
        self.send(msgpack.packb([1, msgid, error, result]))

    def next_notification(self):
        frame = self.notifications.popleft() if self.notifications else self.receive()
        assert frame[0] == 2, frame
        return frame[1:]


class Components(unittest.TestCase):
    config = {}
    manifest = SHOP

    def setUp(self):
        self.daemon = harness.Daemon(config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.assertIsNone(self.client.request("component", self.manifest))

    def connect(self, kind=harness.Client, **hello):
        client = kind(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def server(self, **options):
        server = self.connect(Server)
        server.serve(**options)
        return server

    def start(self, operation, value=None, **options):
        return self.client.start("call", "shop", operation, value, options)

    def finish(self, request_id):
        return self.client.finish(request_id)

    def failure(self, request_id):
        with self.assertRaises(harness.Error) as failed:
            self.finish(request_id)
        self.error = failed.exception
        return (self.error.code, self.error.ran)

    def refusal(self, *request, client=None):
        with self.assertRaises(harness.Error) as refused:
            (client or self.client).request(*request)
        self.error = refused.exception
        return (self.error.code, self.error.ran)

    def settle(self, client=None):
        """All that was sent before has been handled."""
        self.assertEqual((client or self.client).request("ping"), "pong")


class Ordinary(Components):
    def test_a_call_waits_until_somebody_serves(self):
        calls = [self.start("sell", n) for n in range(3)]
        self.settle()
        server = self.server(instance="till")
        for n, call in enumerate(calls):
            msgid, (operation, value, context) = server.call()
            self.assertEqual((operation, value), ("sell", n))
            self.assertEqual({key: context[key] for key in ("component", "instance", "attempt")},
                             {"component": "shop", "instance": "till", "attempt": 1})
            self.assertEqual(context["caller"], {"uid": os.geteuid(), "gid": os.getegid(), "pid": os.getpid()})
            self.assertRegex(context["trace"], TRACE)
            self.assertNotIn("timeout", context)
            server.answer(msgid, n * 2)
            self.assertEqual(self.finish(call), n * 2)

    def test_it_gets_no_more_at_a_time_than_it_said(self):
        server = self.server(concurrency=2)
        calls = [self.start("sell", n) for n in range(4)]
        first, second = server.call(), server.call()
        self.settle(server)
        self.assertFalse(server.notifications)
        server.answer(second[0], "b")
        self.assertEqual(self.finish(calls[1]), "b")
        self.assertEqual(server.call()[1][1], 2)
        server.answer(first[0], "a")
        self.assertEqual(server.call()[1][1], 3)
        self.assertEqual(self.finish(calls[0]), "a")

    def test_the_one_that_has_least_in_hand_gets_it_and_ties_rotate(self):
        servers = [self.server(instance=name, concurrency=10) for name in ("a", "b", "c")]
        for n in range(9):
            self.start("sell", n)
        got = []
        for server in servers:
            for _ in range(3):
                got.append(server.call()[1][1])
        self.assertEqual(sorted(got), list(range(9)))

    def test_a_replica_that_dies_hands_its_calls_on(self):
        call = self.start("sell")
        for attempt in (1, 2):
            server = self.server()
            self.assertEqual(server.call()[1][2]["attempt"], attempt)
            server.close()
        server = self.server()
        msgid, (_, _, context) = server.call()
        self.assertEqual(context["attempt"], 3)
        server.answer(msgid, "sold")
        self.assertEqual(self.finish(call), "sold")

    def test_three_deaths_are_undeliverable(self):
        call = self.start("sell")
        for _ in range(3):
            server = self.server()
            server.call()
            server.close()
        self.assertEqual(self.failure(call), ("undeliverable", "maybe"))

    def test_what_had_not_been_begun_is_first_in_the_queue_again(self):
        server = self.server(concurrency=1)
        calls = [self.start("sell", n) for n in range(3)]
        server.call()
        server.close()
        server = self.server(concurrency=3)
        got = [server.call() for _ in calls]
        self.assertEqual([(value, context["attempt"]) for _, (_, value, context) in got], [(0, 2), (1, 1), (2, 1)])

    def test_an_error_is_the_answer_and_it_is_not_run_again(self):
        server = self.server()
        for error, message in [("it broke", "it broke"), ([0, "it broke"], "it broke"), ({"message": "it broke"}, "it broke"),
                               ("NOT_DECLARED", "NOT_DECLARED")]:
            call = self.start("sell")
            server.answer(server.call()[0], error=error)
            self.assertEqual(self.failure(call), ("fault", "yes"))
            self.assertEqual((self.error.message, self.error.data["kind"], self.error.data["handler"]), (message, "error", "sell"))
        self.settle(server)
        self.assertFalse(server.notifications)

    def test_a_declared_error_is_a_refusal(self):
        server = self.server()
        for error, data in [("SOLD_OUT", None), (["SOLD_OUT"], None), (["SOLD_OUT", {"left": 0}], {"left": 0})]:
            call = self.start("sell")
            server.answer(server.call()[0], error=error)
            self.assertEqual(self.failure(call), ("refused", "yes"))
            self.assertEqual((self.error.data["error"], self.error.data.get("data")), ("SOLD_OUT", data))

    def test_contracts_are_held_before_and_after(self):
        server = self.server()
        call = self.start("count", {"n": "many"})
        self.assertEqual(self.failure(call), ("contract", "no"))
        self.assertEqual((self.error.data["subject"], self.error.data["path"]), ("input", "/n"))
        # An empty array satisfies an object, and is passed on as one.
        call = self.start("count", [])
        msgid, (_, value, _) = server.call()
        self.assertEqual(value, {})
        server.answer(msgid, "none")
        self.assertEqual(self.failure(call), ("contract", "yes"))
        self.assertEqual((self.error.data["subject"], self.error.data["path"]), ("output", ""))

    def test_requests_that_cannot_be(self):
        self.server(instance="till")
        self.assertEqual(self.refusal("call", "shop", "watch", None), ("contract", "no"))
        self.assertEqual(self.error.data["subject"], "request")
        self.assertEqual(self.refusal("call", "shop", "sell", None, {"instance": "till"}), ("contract", "no"))
        self.assertEqual(self.refusal("call", "shop", "sing", None), ("not-found", "no"))
        self.assertEqual(self.refusal("call", "nowhere", "sell", None), ("not-found", "no"))
        self.assertEqual(self.refusal("call", "shop", "sell", None, {"trace": "mine"}), ("bad-request", "no"))
        self.assertEqual(self.refusal("call", "shop", "sell", None, {"colour": "red"}), ("bad-request", "no"))

    def test_a_deadline_while_it_waits_and_while_it_runs(self):
        self.assertEqual(self.failure(self.start("sell", timeout=1)), ("timeout", "no"))
        server = self.server(concurrency=1)
        running, waiting = self.start("sell", 1, timeout=100), self.start("sell", 2, timeout=100)
        msgid, (_, value, context) = server.call()
        self.assertEqual(value, 1)
        self.assertTrue(1 <= context["timeout"] <= 100)
        self.assertEqual(self.failure(running), ("timeout", "maybe"))
        self.assertEqual(self.failure(waiting), ("timeout", "no"))
        self.assertEqual(server.next_notification(), ["cancel", [msgid]])
        # What comes late changes nothing, and the second never runs.
        server.answer(msgid, "late")
        server.answer(msgid, "later")
        call = self.start("sell", 3)
        self.assertEqual(server.call()[1][1], 3)
        del call

    def test_a_time_of_its_own_comes_before_the_connections_and_that_before_the_manifests(self):
        self.client.request("component", {"name": "slow", "operations": {"run": {"timeout": "1h"}}})
        server = self.connect(Server)
        server.serve("slow", concurrency=3)
        hurried = self.connect(timeout="30m")
        self.client.start("call", "slow", "run", 1)
        hurried.start("call", "slow", "run", 2)
        self.settle(hurried)
        hurried.start("call", "slow", "run", 3, {"timeout": "10m"})
        left = {}
        for _ in range(3):
            _, (_, value, context) = server.call()
            left[value] = context["timeout"]
        for value, minutes in [(1, 60), (2, 30), (3, 10)]:
            self.assertTrue((minutes - 5) * 60_000 < left[value] <= minutes * 60_000, left)

    def test_cancel_reaches_the_replica(self):
        server = self.server(concurrency=1)
        running, waiting = self.start("sell", 1), self.start("sell", 2)
        msgid, _ = server.call()
        self.assertTrue(self.client.request("cancel", waiting))
        self.assertTrue(self.client.request("cancel", running))
        self.assertEqual(self.failure(waiting), ("cancelled", "no"))
        self.assertEqual(self.failure(running), ("cancelled", "maybe"))
        self.assertEqual(server.next_notification(), ["cancel", [msgid]])

    def test_a_caller_that_goes_has_what_is_queued_dropped(self):
        server = self.server(concurrency=1)
        other = self.connect()
        other.start("call", "shop", "sell", "running")
        other.start("call", "shop", "sell", "queued")
        msgid, _ = server.call()
        self.settle(other)
        other.close()
        self.assertEqual(server.next_notification(), ["cancel", [msgid]])
        call = self.start("sell", "mine")
        server.answer(msgid, "to nobody")
        msgid, (_, value, _) = server.call()
        self.assertEqual(value, "mine")
        server.answer(msgid, "yours")
        self.assertEqual(self.finish(call), "yours")

    def test_some_serve_some_operations(self):
        counter = self.server(operations=["watch", "count"])
        calls = [self.start("sell"), self.start("count", {})]
        msgid, (operation, _, _) = counter.call()
        self.assertEqual(operation, "count")
        seller = self.server(operations=["watch", "sell"])
        self.assertEqual(seller.call()[1][0], "sell")
        counter.answer(msgid, 1)
        self.assertEqual(self.finish(calls[1]), 1)
        self.assertEqual(self.refusal("serve", "shop", {"operations": ["count"]}), ("not-found", "no"))
        self.assertEqual(self.refusal("serve", "shop", {"operations": ["watch", "sing"]}), ("not-found", "no"))


class Addressed(Components):
    def watch(self, instance, value=None, **options):
        return self.start("watch", value, instance=instance, **options)

    def test_it_goes_to_the_one_that_is_named_before_what_is_for_any(self):
        left, right = self.server(instance="left"), self.server(instance="right")
        self.assertEqual(sorted(self.client.request("instances", "shop")), ["left", "right"])
        first = self.watch("left", 1)
        msgid, _ = left.call()
        sells = [self.start("sell", n) for n in range(2)]
        right.call()
        second = self.watch("left", 2)
        left.answer(msgid, "seen")
        self.assertEqual(self.finish(first), "seen")
        msgid, (operation, value, context) = left.call()
        self.assertEqual((operation, value, context["instance"]), ("watch", 2, "left"))
        self.assertTrue(1 <= context["timeout"] <= 5000)
        left.answer(msgid, "again")
        self.assertEqual(self.finish(second), "again")
        self.assertEqual(left.call()[1][0], "sell")
        del sells

    def test_names_that_nobody_holds(self):
        self.assertEqual(self.failure(self.watch("left")), ("addressee", "no"))
        left = self.server(instance="left")
        held = self.watch("left", 1)
        queued = self.watch("left", 2)
        msgid, _ = left.call()
        withdrawn = left.start("withdraw", "shop")
        # It is stopping: what waits for it, and what comes now, is refused at once; what it holds is answered.
        self.assertEqual(self.failure(queued), ("addressee", "no"))
        self.assertEqual(self.failure(self.watch("left", 3)), ("addressee", "no"))
        self.assertEqual(self.client.request("instances", "shop"), [])
        left.answer(msgid, "seen")
        self.assertEqual(self.finish(held), "seen")
        self.assertIsNone(left.finish(withdrawn))
        self.assertFalse(left.notifications)
        # The connection may serve again, under the same name.
        self.assertEqual(left.serve(instance="left"), "left")
        last = self.watch("left", 4)
        self.assertEqual(left.call()[1][1], 4)
        del last

    def test_a_death_under_it(self):
        left = self.server(instance="left")
        begun, queued = self.watch("left", 1), self.watch("left", 2)
        left.call()
        left.close()
        self.assertEqual(self.failure(begun), ("abandoned", "maybe"))
        self.assertEqual(self.failure(queued), ("addressee", "no"))
        self.assertEqual(self.server(instance="left").request("ping"), "pong")

    def test_deadlines(self):
        left = self.server(instance="left")
        running, queued = self.watch("left", 1, timeout=100), self.watch("left", 2, timeout=100)
        msgid, _ = left.call()
        self.assertEqual(self.failure(running), ("abandoned", "maybe"))
        self.assertEqual(self.failure(queued), ("abandoned", "no"))
        self.assertEqual(left.next_notification(), ["cancel", [msgid]])
        left.answer(msgid, "late")
        call = self.watch("left", 3)
        self.assertEqual(left.call()[1][1], 3)
        del call

    def test_names_are_held_once(self):
        left = self.server(instance="left")
        other = self.connect(Server)
        self.assertEqual(self.refusal("serve", "shop", {"instance": "left"}, client=other), ("taken", "no"))
        self.assertEqual(self.refusal("serve", "shop", client=left), ("taken", "no"))
        generated = [other.serve()]
        other.request("withdraw", "shop")
        generated.append(other.serve())
        self.assertNotEqual(*generated)
        call = self.watch("left")
        left.call()
        # A name passes on when it is given up, though the one before still holds a call.
        withdrawn = left.start("withdraw", "shop")
        self.settle(left)
        right = self.server(instance="left")
        self.assertEqual(self.failure(self.watch("nobody")), ("addressee", "no"))
        mine = self.watch("left", "new")
        self.assertEqual(right.call()[1][1], "new")
        left.close()
        self.assertEqual(self.failure(call), ("abandoned", "maybe"))
        self.assertIn("left", self.client.request("instances", "shop"))
        del withdrawn, mine


class Queues(Components):
    manifest = {**SHOP, "queue": 3}

    def test_so_many_wait_and_no_more(self):
        server = self.server(concurrency=1)
        calls = [self.start("sell", n) for n in range(4)]
        self.assertEqual(self.refusal("call", "shop", "sell", 4), ("mailbox-full", "no"))
        for n, call in enumerate(calls):
            msgid, (_, value, _) = server.call()
            self.assertEqual(value, n)
            server.answer(msgid, n)
            self.assertEqual(self.finish(call), n)

    def test_a_connection_that_reads_nothing_leaves_them_queued_and_answers_before_it_reads_on(self):
        manifest = {"name": "bulk", "operations": {"take": {}}}
        self.client.request("component", manifest)
        server = self.connect(Server)
        server.serve("bulk", concurrency=100)
        large = b"x" * 500_000
        calls = [self.client.start("call", "bulk", "take", large) for _ in range(30)]
        # Nothing is read on the other side: some of it is in the socket, the last is not.
        self.assertTrue(self.client.request("cancel", calls[-1]))
        self.assertEqual(self.failure(calls.pop()), ("cancelled", "no"))
        for call in calls:
            msgid, (_, value, _) = server.call()
            self.assertEqual(len(value), len(large))
            server.answer(msgid, value)
            self.assertEqual(self.finish(call), large)


class Chains(Components):
    def test_a_chain_of_32_is_a_chain_and_one_of_33_a_loop(self):
        server = self.server(concurrency=100)
        caller = self.connect()
        requests = [self.start("sell", 1)]
        traces = []
        for depth in range(2, 34):
            _, (_, _, context) = server.call()
            traces.append(context["trace"])
            requests.append(caller.start("call", "shop", "sell", depth, {"trace": context["trace"]}))
        with self.assertRaises(harness.Error) as failed:
            caller.finish(requests[-1])
        self.assertEqual((failed.exception.code, failed.exception.ran), ("loop", "no"))
        self.assertEqual(len({trace.split("-")[1] for trace in traces}), 1)
        self.assertEqual(len({trace.split("-")[2] for trace in traces}), 32)


class Connections(Components):
    def test_one_serves_several_components_and_calls_itself(self):
        self.client.request("component", {"name": "mill", "operations": {"grind": {}}})
        both = self.connect(Server)
        both.serve("shop", instance="till")
        both.serve("mill", method="grind_it", params=["stone"])
        call = self.start("sell", "bread")
        sell, _ = both.call()
        nested = both.start("call", "mill", "grind", "corn")
        kind, grind, method, (stone, (operation, value, _)) = both.receive()
        self.assertEqual((kind, method, stone, operation, value), (0, "grind_it", "stone", "grind", "corn"))
        both.answer(grind, "flour")
        self.assertEqual(both.finish(nested), "flour")
        both.answer(sell, "sold")
        self.assertEqual(self.finish(call), "sold")

    def test_where_a_method_was_chosen_nothing_else_comes(self):
        server = self.connect(Server)
        server.request("serve", "shop", {"method": "mine"})
        call = self.start("sell")
        server.receive()
        self.assertTrue(self.client.request("cancel", call))
        self.settle(server)
        self.assertFalse(server.notifications)

    def test_a_client_that_closes_its_side_is_dead(self):
        server, other = self.server(concurrency=1), None
        call = self.start("sell")
        server.call()
        server.socket.shutdown(1)
        other = self.server()
        msgid, (_, _, context) = other.call()
        self.assertEqual(context["attempt"], 2)
        other.answer(msgid, "sold")
        self.assertEqual(self.finish(call), "sold")
        self.assertIsNone(server.receive())

    def test_replies_and_notifications(self):
        server = self.server()
        self.assertIsNone(self.client.request("call", "shop", "sell", 1, {"reply": {"method": "sold", "params": [7]}}))
        server.answer(server.call()[0], "tea")
        self.assertEqual(self.client.receive(), [2, "sold", [7, [None, "tea"]]])
        self.client.notify("call", "shop", "sell", 2)
        msgid, (_, value, _) = server.call()
        self.assertEqual(value, 2)
        server.answer(msgid, "dropped")
        self.settle(server)
        self.settle()
        self.assertFalse(self.client.notifications)

    def test_values_in_the_form_that_was_chosen(self):
        typed, stamp = self.connect(Server, values="typed"), msgpack.Timestamp(0, 0)
        typed.serve()
        call = self.start("sell", {1: stamp})
        msgid, (_, value, _) = typed.call()
        self.assertEqual(value, {1: stamp})
        typed.answer(msgid, {1: stamp})
        self.assertEqual(self.finish(call), {"1": "1970-01-01T00:00:00Z"})

    def test_they_are_listed(self):
        self.server(instance="till")
        listed = self.client.request("list", {"kind": "component"})
        self.assertEqual([(each["kind"], each["name"]) for each in listed], [("component", "shop"), ("replica", "till")])
        self.assertEqual(listed[1]["component"], "shop")
        info = self.client.request("info", "shop")
        self.assertEqual((info["kind"], sorted(each["name"] for each in info["operations"])),
                         ("component", ["count", "sell", "watch"]))
        self.assertEqual(self.client.request("info", info["handle"])["name"], "shop")

    def test_the_session_that_declared_it_ends_it(self):
        other = self.connect()
        other.request("component", {"name": "short", "operations": {"live": {}}})
        server = self.connect(Server)
        server.serve("short")
        call = self.client.start("call", "short", "live", None)
        msgid, _ = server.call()
        over = self.client.start("done", other.request("info", "short")["handle"])
        other.close()
        # What is in hand is answered first.
        server.answer(msgid, "lived")
        self.assertEqual(self.finish(call), "lived")
        self.assertIsNone(self.finish(over))
        self.assertEqual(self.refusal("call", "short", "live", None), ("not-found", "no"))
        self.assertEqual(self.refusal("withdraw", "short", client=server), ("not-found", "no"))


class Chaos(Components):
    """Connections that serve go at random, in the middle of what they do."""

    CALLS = 3000
    WINDOW = 200
    SERVERS = 5

    def new_server(self):
        server = self.server(concurrency=self.random.choice([1, 3, 50]))
        self.held[server] = []
        return server

    def step(self, server):
        """Takes some calls, answers some in any order, and now and then is gone."""
        self.settle(server)
        while server.notifications:
            _, msgid, _, (_, value, context) = server.notifications.popleft()
            self.assertLessEqual(context["attempt"], 3)
            self.begun[value] += 1
            self.held[server].append((msgid, value))
        self.random.shuffle(self.held[server])
        for _ in range(self.random.randint(0, len(self.held[server]))):
            msgid, value = self.held[server].pop()
            server.answer(msgid, value)
        if self.random.random() < 0.2:
            server.close()
            del self.held[server]
            self.new_server()

    def test_every_call_ends_in_one_way(self):
        self.random = random.Random(6)
        self.held, self.begun = {}, [0] * self.CALLS
        ended = collections.Counter()
        waiting = {}
        for _ in range(self.SERVERS):
            self.new_server()
        started = 0
        while started < self.CALLS or waiting:
            while started < self.CALLS and len(waiting) < self.WINDOW:
                waiting[self.start("sell", started)] = started
                started += 1
            for server in list(self.held):
                self.step(server)
            self.settle()
            for request_id in [each for each in waiting if each in self.client.answers]:
                value = waiting.pop(request_id)
                try:
                    self.assertEqual(self.finish(request_id), value)
                    ended["answered"] += 1
                except harness.Error as error:
                    self.assertEqual((error.code, error.ran), ("undeliverable", "maybe"))
                    ended[error.code] += 1
        self.assertEqual(sum(ended.values()), self.CALLS)
        self.assertLessEqual(max(self.begun), 3)
        self.assertGreater(ended["answered"], ended["undeliverable"])
        self.assertFalse(self.client.answers)
        info = self.client.request("info", "shop")
        self.assertEqual((info["mailbox"], info["messages"]), (0, self.CALLS))


class Worker(Components):
    """The example, as processes that are killed."""

    manifest = json.loads((EXAMPLES / "texts.json").read_text())

    def worker(self):
        worker = subprocess.Popen([sys.executable, EXAMPLES / "worker.py"], env={**os.environ, "TROUPE_SOCKET": self.daemon.socket},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def call(self, operation, text, **options):
        return self.client.request("call", "texts", operation, text, options)

    def wait_for_replicas(self, count):
        while len(self.client.request("instances", "texts")) != count:
            pass

    def test_it_answers_and_refuses(self):
        self.worker()
        self.assertEqual(self.call("count", "a b c"), 3)
        longest = self.call("longest", "one three two")
        self.assertEqual((longest["word"], [longest["by"]]), ("three", self.client.request("instances", "texts")))
        self.assertEqual(self.refusal("call", "texts", "longest", "  "), ("refused", "yes"))
        self.assertEqual((self.error.data["error"], self.error.data["data"]), ("NO_WORDS", {"characters": 2}))
        self.assertEqual(self.refusal("call", "texts", "count", 7), ("contract", "no"))

    def test_two_of_them_share_many_calls_and_one_is_killed(self):
        workers = [self.worker(), self.worker()]
        self.wait_for_replicas(2)
        calls = [self.client.start("call", "texts", "count", "word " * n) for n in range(500)]
        self.assertEqual(self.finish(calls[0]), 0)
        os.kill(workers[0].pid, signal.SIGKILL)
        self.assertEqual([self.finish(call) for call in calls[1:]], list(range(1, 500)))
        self.wait_for_replicas(1)


if __name__ == "__main__":
    unittest.main()
