# SPDX-License-Identifier: Apache-2.0
"""`subscribe` and `unsubscribe`: what happens in the daemon, told to whoever wants to know."""

import json
import os
import shutil
import socket
import subprocess
import sys
import unittest

import msgpack

import harness

MODULES = {
    "worker.lua": """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker:init(fails) if fails then error("no such luck") end end
function Worker.on:say(...) return ... end
function Worker.on:log(level, text) troupe.log(level, text) end
function Worker.on:flood(n) for i = 1, n do troupe.log("info", ("line %d "):format(i) .. ("x"):rep(1000)) end end
function Worker.on:break_it() error("it broke") end
function Worker.on:spin() while true do end end
function Worker.on:send_to(h) troupe.send(h.say, 1) end
function Worker.async:nap() troupe.await(troupe.sleep(3600000)) end
""",
    "once.lua": """
local troupe = require "troupe"
local Once = troupe.actor "Once"
function Once.on:leave() error("gone") end
""",
    "family.lua": """
local troupe = require "troupe"
local Child = troupe.actor "Child"
function Child.on:leave() error("gone") end
local Family = troupe.actor "Family"
function Family:init()
  self.supervisor = troupe.supervise({ { Child, name = "kid", publish = "kid" } }, { backoff = { min = 1, max = 1 } })
end
""",
}

EIGHT_DIGITS = "^[0-9a-f]{8}$"


class Events(unittest.TestCase):
    config = {"shutdown": {"grace": "100ms"}}

    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config=self.config)
        self.addCleanup(self.daemon.close)
        self.client = self.connect()
        self.request = self.client.request

    def connect(self, **hello):
        client = harness.Client(self.daemon.socket, **hello)
        self.addCleanup(client.close)
        return client

    def refusal(self, *request):
        with self.assertRaises(harness.Error) as refused:
            self.request(*request)
        self.error = refused.exception
        return self.error.code

    @staticmethod
    def notification(client):
        """The next notification, whatever else comes."""
        while not client.notifications:
            frame = client.receive()
            if frame is None:
                raise ConnectionError("the daemon closed the connection")
            if frame[0] == 2:
                client.notifications.append(frame)
            else:
                client.answers[frame[1]] = frame[2:]
        return client.notifications.popleft()

    def event(self, topic, client=None):
        """The next event, of which it is known that it is of this topic."""
        kind, method, params = self.notification(client or self.client)
        self.assertEqual((kind, method, params[0], len(params)), (2, "event", topic, 2))
        self.assertRegex(params[1]["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        return params[1]

    def me(self):
        return {"uid": os.getuid(), "pid": os.getpid()}


class Subscribing(Events):
    def test_what_is_no_subscription_is_refused_by_name(self):
        for params, name in ((["weather"], "lifecycle, trace, log, task, refused"), ([7], "lifecycle"), (["log", {"rate": 0}], "rate"),
                             (["log", {"method": ""}], "method"), (["log", {"method": 7}], "method"), (["log", {"params": {}}], "params"),
                             (["log", {"color": 1}], "color"), (["log", {"params": ["x" * (64 << 10)]}], "params")):
            with self.subTest(params):
                self.assertEqual(self.refusal("subscribe", *params), "bad-request")
                self.assertIn(name, self.error.message)
        self.assertEqual(self.refusal("unsubscribe", "weather"), "bad-request")
        self.request("spawn", "worker", [])
        self.assertFalse(self.client.notifications)

    def test_every_topic_may_be_subscribed_to(self):
        for topic in ("lifecycle", "trace", "log", "task", "refused"):
            self.assertIsNone(self.request("subscribe", topic))
            self.assertIsNone(self.request("subscribe", topic, None))
        self.request("spawn", "worker", [])
        self.assertEqual(self.event("lifecycle")["event"], "started")  # once, though asked for twice
        self.request("ping")
        self.assertFalse(self.client.notifications)

    def test_nothing_comes_after_the_answer_to_unsubscribe(self):
        self.request("subscribe", "lifecycle")
        self.request("subscribe", "refused")
        self.request("spawn", "worker", [])
        self.assertIsNone(self.request("unsubscribe", "lifecycle"))
        self.assertIsNone(self.request("unsubscribe", "lifecycle"))
        self.client.notifications.clear()
        self.request("spawn", "worker", [])
        self.client.notify("find", 7)
        self.assertEqual(self.event("refused")["code"], "bad-request")

    def test_the_method_and_its_params_are_the_clients_choice(self):
        self.request("subscribe", "lifecycle", {"method": "OnEvent"})
        self.request("spawn", "worker", [])
        frame = self.notification(self.client)
        self.assertEqual((frame[1], frame[2][0], frame[2][1]["event"]), ("OnEvent", "lifecycle", "started"))

        given = ["OnEvent", {"a": [1, None]}, msgpack.ExtType(1, b"0123456789abcdef")]
        self.request("subscribe", "lifecycle", {"method": b"nvim_call_function", "params": given})
        self.request("spawn", "worker", [])
        frame = self.notification(self.client)
        self.assertEqual(frame[:2], [2, "nvim_call_function"])
        self.assertEqual(frame[2][:-1], given)
        self.assertEqual((frame[2][-1][0], frame[2][-1][1]["event"]), ("lifecycle", "started"))

        self.request("subscribe", "lifecycle", {"params": []})
        self.request("spawn", "worker", [])
        frame = self.notification(self.client)
        self.assertEqual((frame[1], len(frame[2]), frame[2][0][0]), ("event", 1, "lifecycle"))

    def test_subscribing_as_a_notification_works_too(self):
        self.client.notify("subscribe", "lifecycle")
        self.request("spawn", "worker", [])
        self.assertEqual(self.event("lifecycle")["event"], "started")

    def test_it_is_the_same_for_typed_values_and_any_form_of_errors(self):
        typed, text = self.connect(values="typed"), self.connect(errors=None)
        text.send(msgpack.packb([0, 1, "subscribe", ["lifecycle"]]))
        self.assertEqual(text.receive(), [1, 1, None, None])
        for client in (self.client, typed):
            client.request("subscribe", "lifecycle")
        with self.assertRaises(harness.Error):
            self.request("spawn", "worker", [True])
        events = [self.event("lifecycle", client) for client in (self.client, typed, text)]
        self.assertEqual(events[0], events[1])
        self.assertEqual(events[0], events[2])
        self.assertEqual(events[0]["error"]["code"], "fault")

    def test_a_client_that_goes_is_told_nothing_more(self):
        for _ in range(20):
            other = self.connect()
            for topic in ("lifecycle", "log", "refused"):
                other.request("subscribe", topic)
            other.start("spawn", "worker", [])
            other.close()
        self.request("subscribe", "lifecycle")
        self.request("spawn", "worker", [], {"name": "mine"})
        while self.event("lifecycle")["name"] != "mine":
            pass


class Lifecycle(Events):
    config = {"limits": {"slow": "50ms"}, **Events.config}

    def setUp(self):
        super().setUp()
        self.request("subscribe", "lifecycle")

    def spawn(self, *args, **options):
        actor = self.request("spawn", "worker", list(args), options)
        event = self.event("lifecycle")
        self.assertEqual(event["event"], "started")
        return actor, event

    def test_one_that_starts_and_stops(self):
        actor, started = self.spawn(name="the one")
        self.assertEqual(started, {"time": started["time"], "event": "started", "handle": actor[6:14], "name": "the one", "actor": "worker:Worker",
                                   "by": self.me()})
        self.request("stop", actor)
        stopped = self.event("lifecycle")
        self.assertEqual(stopped, {**started, "time": stopped["time"], "event": "stopped"})

    def test_one_that_faults(self):
        actor, _ = self.spawn()
        with self.assertRaises(harness.Error):
            self.request("ask", actor, "break_it", [])
        event = self.event("lifecycle")
        self.assertEqual((event["event"], event["handle"]), ("faulted", actor[6:14]))
        self.assertNotIn("by", event)
        error = event["error"]
        self.assertEqual((error["code"], error["kind"], error["handler"]), ("fault", "error", "break_it"))
        self.assertIn("it broke", error["message"])
        self.assertIn("stack traceback", error["traceback"])

    def test_one_that_cannot_start(self):
        with self.assertRaises(harness.Error):
            self.request("spawn", "nowhere", [])
        event = self.event("lifecycle")
        self.assertEqual((event["event"], event["actor"], event["error"]["code"]), ("faulted", "nowhere", "not-found"))

    def test_one_that_is_killed_by_somebody_else(self):
        actor, _ = self.spawn()
        self.client.start("ask", actor, "spin", [])
        other = subprocess.run([sys.executable, "-c", KILL, self.daemon.socket, actor], check=True, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": os.path.dirname(harness.__file__)}, timeout=harness.TIMEOUT_SECONDS)
        while (event := self.event("lifecycle"))["event"] == "slow":
            pass
        self.assertEqual((event["event"], event["error"]["code"]), ("killed", "killed"))
        self.assertEqual(event["by"], {"uid": os.getuid(), "pid": int(other.stdout)})

    def test_a_slow_one_with_where_it_is(self):
        actor, _ = self.spawn()
        self.client.start("ask", actor, "spin", [])
        events = [self.event("lifecycle") for _ in range(3)]
        self.assertEqual([event["event"] for event in events], ["slow"] * 3)
        self.assertEqual({event["handler"] for event in events}, {"spin"})
        while "traceback" not in events[-1]:  # it was too busy to say
            events.append(self.event("lifecycle"))
        self.assertRegex(events[-1]["traceback"], r"^stack traceback:\n\t.*worker.lua:\d+: in ")
        for before, after in zip(events, events[1:]):
            self.assertGreater(after["running"], before["running"])
        self.assertGreaterEqual(events[2]["running"], 200)  # after 50, 100, 200 ms
        self.request("stop", actor, {"kill": True})

    def test_what_a_supervisor_starts_again(self):
        self.request("spawn", "family:Family", [])
        kid = next(event for event in iter(lambda: self.event("lifecycle"), None) if event["name"] == "kid")
        self.assertEqual(kid["event"], "started")
        self.assertNotIn("by", kid)  # no client did it
        self.assertNotIn("restarted", [event[2][1]["event"] for event in self.client.notifications])
        self.client.notify("send", "kid", "leave", [])
        events = []
        while not events or events[-1]["event"] != "restarted":
            event = self.event("lifecycle")
            if event["name"] == "kid":
                events.append(event)
        self.assertEqual([event["event"] for event in events], ["faulted", "started", "restarted"])
        self.assertEqual(events[1]["handle"], events[2]["handle"])
        self.assertNotEqual(events[0]["handle"], events[2]["handle"])

    def test_a_worker_that_is_replaced(self):
        pool = self.request("pool", "crew", "once:Once", [], {"workers": 1})
        started = self.event("lifecycle")
        self.assertEqual((started["event"], started["name"], started["actor"]), ("started", "w-1", "once:Once"))
        started = self.event("lifecycle")
        self.assertEqual((started["event"], started["name"]), ("started", "crew"))
        self.client.notify("send", pool, "leave", [])
        events = [self.event("lifecycle") for _ in range(3)]
        self.assertEqual([(event["event"], event["name"]) for event in events],
                         [("faulted", "w-1"), ("started", "w-1.1"), ("restarted", "w-1.1")])
        self.assertEqual(events[1]["handle"], events[2]["handle"])

    def pool(self, then=None, args=()):
        """Starts a pool, and ends it as `then` does; answers its own events, without those of its workers."""
        pool = None
        try:
            pool = self.request("pool", "crew", "worker", list(args), {"workers": 2})
            then(pool)
        except harness.Error as error:
            self.error = error
        events = []
        while not events or events[-1]["event"] == "started":
            event = self.event("lifecycle")
            if event["name"] == "crew":
                events.append(event)
        if pool:
            self.assertEqual({pool[5:13]}, {event["handle"] for event in events})
        return events

    def test_a_pool_itself(self):
        events = self.pool(then=lambda pool: self.request("stop", pool))
        self.assertEqual([("started", "worker:Worker", self.me()), ("stopped", "worker:Worker", self.me())],
                         [(event["event"], event["actor"], event["by"]) for event in events])
        events = self.pool(then=lambda pool: self.request("stop", pool, {"kill": True}))
        self.assertEqual(["started", "killed"], [event["event"] for event in events])
        self.assertEqual(("killed", self.me()), (events[1]["error"]["code"], events[1]["by"]))
        events = self.pool(args=[True])  # all first starts fail
        self.assertEqual(["faulted"], [event["event"] for event in events])
        self.assertEqual(("fault", self.error.message), (events[0]["error"]["code"], events[0]["error"]["message"]))

    def test_a_pool_that_never_was(self):
        self.spawn(publish="crew")
        self.assertEqual("taken", self.refusal("pool", "crew", "worker", []))
        self.request("ping")
        self.assertEqual([], [frame for frame in self.client.notifications if frame[2][1]["name"] == "crew"])

    def test_what_ends_with_the_daemon(self):
        actor, _ = self.spawn(detach=True)
        self.request("shutdown")
        event = self.event("lifecycle")
        self.assertEqual((event["event"], event["handle"]), ("stopped", actor[6:14]))
        self.daemon.wait()


KILL = """
import os, sys
import harness
with harness.Client(sys.argv[1]) as client:
    client.request("stop", sys.argv[2], {"kill": True})
print(os.getpid())
"""


class Configured(Events):
    config = {"actors": [{"actor": "once", "publish": "once"}], **Events.config}

    def test_a_configured_actor_that_is_started_again(self):
        self.request("subscribe", "lifecycle")
        self.client.notify("send", "once", "leave", [])
        events = [self.event("lifecycle") for _ in range(3)]
        while events[0]["event"] != "faulted":  # its first start may have been told too
            events = [*events[1:], self.event("lifecycle")]
        self.assertEqual([event["event"] for event in events], ["faulted", "started", "restarted"])
        self.assertEqual(events[1]["handle"], events[2]["handle"])


class Refused(Events):
    def setUp(self):
        super().setUp()
        self.request("subscribe", "refused")
        self.actor = self.request("spawn", "worker", [], {"name": "w", "mailbox": 1})

    def test_what_only_the_receiver_can_see(self):
        self.client.notify("send", self.actor, "nonsense", [])
        event = self.event("refused")
        self.assertEqual({key: event[key] for key in event if key != "time"}, {
            "code": "no-such-handler", "message": "worker:Worker has no handler `nonsense`", "target": self.actor[6:14],
            "handle": self.actor[6:14], "name": "w", "actor": "worker:Worker", "handler": "nonsense", "by": {"uid": os.getuid()}})

    def test_a_full_mailbox(self):
        self.client.start("ask", self.actor, "spin", [])
        while self.request("info", self.actor).get("handler") != "spin":
            pass
        self.request("send", self.actor, "say", [])
        self.client.notify("send", self.actor, "say", ["dropped"])
        event = self.event("refused")
        self.assertEqual((event["code"], event["target"], event["handler"], event["by"]),
                         ("mailbox-full", self.actor[6:14], "say", self.me()))
        self.assertEqual(self.refusal("send", self.actor, "say", []), "mailbox-full")  # answered, and dropped all the same
        self.assertEqual(self.event("refused")["code"], "mailbox-full")
        self.request("stop", self.actor, {"kill": True})

    def test_what_was_queued_when_the_actor_ended(self):
        def kill():
            self.client.start("ask", target, "spin", [])
            while self.request("info", target).get("handler") != "spin":
                pass
            self.request("send", target, "say", [1])
            self.request("send", target, "log", [2])
            self.request("stop", target, {"kill": True})

        def fault():
            # One piece, and so handed over together.
            self.client.send(b"".join(msgpack.packb([2, "send", [target, handler, []]]) for handler in ("break_it", "say", "log")))

        for end, code in ((kill, "killed"), (fault, "fault")):
            with self.subTest(code):
                target = self.request("spawn", "worker", [], {"name": "w"})
                end()
                events = [self.event("refused") for _ in range(2)]
                self.assertEqual([(event["code"], event["target"], event["name"], event["handler"]) for event in events],
                                 [(code, target[6:14], "w", "say"), (code, target[6:14], "w", "log")])
                self.assertEqual(events[0]["by"], {"uid": os.getuid()})

    def test_notifications_that_cannot_be_done(self):
        unknown = "actor:" + "0123456789abcdef" * 2
        for params, wanted in (
                (("send", "nobody", "h", []), {"code": "not-found", "target": "nobody", "handler": "h", "method": "send"}),
                (("send", unknown, "h", []), {"code": "not-running", "target": "01234567", "handler": "h", "method": "send"}),
                (("send", self.actor, "h", 7), {"code": "bad-request", "target": self.actor[6:14], "handler": "h", "method": "send"}),
                (("stop",), {"code": "bad-request", "method": "stop"}),
                (("send", "n" * 1000, "é" * 1000, 7), {"code": "bad-request", "target": "n" * 128, "handler": "é" * 64,
                                                       "method": "send"})):
            with self.subTest(params):
                self.client.notify(*params)
                event = self.event("refused")
                self.assertEqual({key: event[key] for key in event if key not in ("time", "message")}, {**wanted, "by": self.me()})
                self.assertNotIn(unknown[14:], str(event))
        self.client.send(msgpack.packb([2, "send", [self.actor, "say", [msgpack.ExtType(9, b"")]]]))
        event = self.event("refused")
        self.assertEqual((event["code"], event["method"], event["handler"]), ("not-sendable", "send", "say"))

    def test_a_send_of_lua_code_that_came_too_late(self):
        late = self.request("spawn", "worker", [], {"name": "late"})
        self.request("stop", late)
        self.request("done", late)
        self.request("ask", self.actor, "send_to", [msgpack.ExtType(1, bytes.fromhex(late[6:]))])
        event = self.event("refused")
        self.assertEqual((event["code"], event["target"], event["name"], event["handler"]), ("not-running", late[6:14], "late", "say"))

    def test_who_asked_is_answered_and_it_is_told_to_nobody(self):
        self.assertEqual(self.refusal("ask", self.actor, "nonsense", []), "no-such-handler")
        self.assertEqual(self.refusal("find", 7), "bad-request")
        self.client.notify("unknown", 1)
        self.client.notify("find", 7)
        self.assertEqual(self.event("refused")["method"], "find")


class Log(Events):
    def setUp(self):
        super().setUp()
        self.actor = self.request("spawn", "worker", [], {"name": "w"})
        self.request("subscribe", "log")

    def test_the_lines_are_those_of_the_log(self):
        self.request("ask", self.actor, "log", ["warning", "watch\nout\n"])
        self.request("ask", self.actor, "log", ["debug", "below the level"])
        self.request("ask", self.actor, "log", ["error", b"no \xff utf-8"])
        first, second = self.event("log"), self.event("log")
        self.assertEqual(first, {"time": first["time"], "level": "warning", "actor": "w", "handle": self.actor[6:14],
                                 "message": "watch\nout"})
        self.assertEqual((second["level"], second["message"]), ("error", b"no \xff utf-8"))

    def test_lines_about_a_connection_say_whose_it_is(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(self.daemon.socket)
            other.sendall(msgpack.packb([0, 1, "subscribe", ["lifecycle", {"params": ["x" * 60000]}]]))
            self.assertEqual(other.recv(100), msgpack.packb([1, 1, None, None]))
        self.request("ask", self.actor, "log", ["info", "done"])
        self.assertEqual(self.event("log")["message"], "done")  # a connection that goes is nothing to speak of

    def test_who_does_not_read_loses_lines_and_nothing_else(self):
        slow = self.connect()
        slow.request("subscribe", "log")
        self.request("unsubscribe", "log")
        for _ in range(20):
            self.request("ask", self.actor, "flood", [200])
        lines = []
        self.request("ask", self.actor, "log", ["info", "the last"])
        # It reads at last, and asks for lines until one of them says how many were left out.
        while not any("dropped" in line for line in lines):
            self.request("ask", self.actor, "log", ["info", "one more"])
            lines.append(self.event("log", slow))
        dropped = lines[-1]["dropped"]
        self.assertGreater(dropped, 0)
        self.assertNotIn("dropped", lines[0])
        # until then nothing is missing
        numbers = [int(line["message"].split()[1]) for line in lines[:-1] if line["message"].startswith("line ")]
        self.assertEqual(numbers, [1 + i % 200 for i in range(len(numbers))])
        self.assertLess(len(numbers), 20 * 200)


class Rate(Events):
    def test_a_count_of_what_was_left_out_is_in_the_next_event(self):
        actor = self.request("spawn", "worker", [])
        self.request("subscribe", "refused", {"rate": 1})
        self.request("subscribe", "log")
        sent = told = dropped = 0
        while not dropped:
            for _ in range(10):
                self.client.notify("send", actor, "nonsense", [])
            sent += 10
            self.request("ask", actor, "log", ["info", "behind them"])
            while (event := self.notification(self.client)[2])[0] == "refused":
                told += 1
                dropped = event[1].get("dropped", 0)
                last = event[1]
        # Told, left out and known of, and left out since.
        self.assertEqual(last["code"], "no-such-handler")
        self.assertLessEqual(told + dropped, sent)
        self.assertGreater(told + dropped, sent - 20)


STRANGER = 64200  # nobody's user

AS_A_STRANGER = """
import json, sys
import harness
with harness.Client(sys.argv[1]) as client:
    def told():
        while not client.notifications:
            client.notifications.append(client.receive())
        return client.notifications.popleft()[2][1]
    for topic in ("lifecycle", "log", "refused"):
        client.request("subscribe", topic)
    events = []
    for handler in ("one", "two"):
        client.notify("send", "nobody", handler, [])
        events.append(told())
        print(json.dumps(events), flush=True)
        sys.stdin.readline()
"""


@unittest.skipUnless(os.getuid() == 0, "only root can become another user")
class Roles(Events):
    def test_with_the_role_call_one_sees_what_concerns_oneself(self):
        os.chmod(self.daemon.directory, 0o755)
        os.chmod(self.daemon.socket, 0o666)
        # where the stranger can read it: the tree itself may be somebody's own
        shutil.copy(harness.__file__, self.daemon.directory)
        self.request("subscribe", "refused")
        with subprocess.Popen([sys.executable, "-c", AS_A_STRANGER, self.daemon.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              user=STRANGER, group=STRANGER, extra_groups=[], cwd=self.daemon.directory, text=True) as stranger:
            self.assertEqual([event["handler"] for event in json.loads(stranger.stdout.readline())], ["one"])
            # All of this concerns root alone.
            actor = self.request("spawn", "worker", [])
            self.request("ask", actor, "log", ["error", "mine"])
            self.client.notify("send", "nobody", "mine", [])
            self.assertEqual([self.event("refused")["handler"] for _ in range(2)], ["one", "mine"])
            stranger.stdin.write("\n")
            stranger.stdin.flush()
            told = json.loads(stranger.stdout.readline())
            stranger.communicate("\n", timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(stranger.returncode, 0)
        self.assertEqual([event["handler"] for event in told], ["one", "two"])
        self.assertEqual({event["by"]["uid"] for event in told}, {STRANGER})
        self.assertEqual(self.event("refused")["by"]["uid"], STRANGER)


if __name__ == "__main__":
    unittest.main()
