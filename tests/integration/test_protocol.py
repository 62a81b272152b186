# SPDX-License-Identifier: Apache-2.0
"""The methods of actors over the socket, against the whole daemon."""

import hashlib
import os
import socket
import unittest

import msgpack

import harness
import stranger

MODULES = {
    "worker.lua": """
local troupe = require "troupe"
local Worker = troupe.actor "Worker"
function Worker:init(n) self.n = n or 0 end
function Worker.on:bump(by) self.n = self.n + (by or 1) return self.n end
function Worker.on:say(...) return ... end
function Worker.on:break_it() error("it broke") end
function Worker.on:raise() error({ mine = troupe.me() }) end
function Worker.on:spin() while true do end end
function Worker.on:large(n) return string.rep("x", n) end
function Worker.on:child() return troupe.spawn(Worker) end
function Worker.async:nap(ms) troupe.await(troupe.sleep(ms)) return "woke" end
function Worker.async:wait_for(other) return troupe.await(troupe.done(other)) end
function Worker.on:shout(h) return h.shout end
""",
    "sleepy.lua": """
local troupe = require "troupe"
local Sleepy = troupe.actor "Sleepy"
function Sleepy:init() troupe.await(troupe.sleep(3600000)) end
function Sleepy.on:hello() return "hello" end
""",
    "two.lua": """
local troupe = require "troupe"
local A, B = troupe.actor "A", troupe.actor "B"
function A.on:name() return "A" end
function B.on:name() return "B" end
""",
    "wrong.lua": "this is no Lua",
}

UNKNOWN = "actor:" + "0" * 32


class Protocol(unittest.TestCase):
    # Some tests leave a handler in a long nap, which an orderly stop would sit through.
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

    def refusal(self, *request, client=None):
        """What the daemon says instead of a result, as code and ran."""
        with self.assertRaises(harness.Error) as refused:
            (client or self.client).request(*request)
        self.error = refused.exception
        return self.error.code, self.error.ran


class Hello(Protocol):
    config = {"limits": {"memory": "4G", "slow": "3s"}, **Protocol.config}

    def test_it_says_who_is_who(self):
        hello = self.client.hello
        self.assertEqual(hello["server"], "trouped")
        self.assertEqual(hello["protocol"], 1)
        self.assertEqual(hello["you"], {"uid": os.getuid(), "gid": os.getgid(), "pid": os.getpid(),
                                        "roles": ["call", "serve", "spawn", "operate"]})

    def test_it_tells_all_limits_as_the_configuration_names_them(self):
        self.assertEqual(self.client.hello["limits"], {
            "actors": 1024, "actors_per_user": 512, "connections": 4096, "connections_per_user": 1024, "requests": 65536,
            "frame": 16 << 20, "output": 64 << 20, "stalled": 30_000, "heap": 64 << 20, "heap_max": 1 << 30, "mailbox": 65536,
            "mailbox_bytes": 64 << 20, "async": 1024, "nesting": 128, "queue": 65536, "slow": 3000, "memory": 4 << 30})

    def test_a_protocol_that_is_not_known_is_refused_with_those_that_are(self):
        for protocol in (2, 0, -1, 2**40):
            self.assertEqual(self.refusal("hello", {"protocol": protocol}), ("bad-request", "no"))
            self.assertEqual(self.error.data["supported"], [1])

    def test_a_nil_is_no_option_whether_known_or_not(self):
        self.assertEqual(self.request("hello", {"timeout": None, "newer": None})["protocol"], 1)
        self.assertEqual(self.refusal("hello", {"newer": False})[0], "bad-request")

    def test_it_applies_to_what_is_received_after_it(self):
        client = self.connect(errors=None)
        client.send(b"".join(msgpack.packb([0, i, *rest]) for i, rest in enumerate([
            ("nonsense", []), ("hello", [{"errors": "text"}]), ("nonsense", []), ("hello", [{"errors": "map"}]), ("nonsense", [])])))
        answers = [client.receive()[2] for _ in range(5)]
        text = "unknown-method: there is no method nonsense (ran: no)"
        self.assertEqual(answers[0::2], [[1, text], text, {"code": "unknown-method", "message": "there is no method nonsense",
                                                           "ran": "no"}])

    def test_its_timeout_is_the_connections_default(self):
        actor = self.request("spawn", "worker", [])
        self.request("hello", {"timeout": "20ms"})
        self.assertEqual(self.refusal("ask", actor, "nap", [60_000])[0], "timeout")
        self.assertEqual(self.refusal("done", actor), ("timeout", "no"))
        self.assertEqual(self.request("ask", actor, "nap", [30], {"timeout": "1m"}), "woke")


class Spawning(Protocol):
    def test_the_handle_comes_once_init_has_returned(self):
        actor = self.request("spawn", "worker", [41], {"name": "the one", "heap": "1M", "mailbox": 10, "mailbox_bytes": 4096})
        self.assertRegex(actor, "^actor:[0-9a-f]{32}$")
        self.assertEqual(self.request("ask", actor, "bump", []), 42)
        info = self.request("info", actor)
        self.assertEqual({key: info[key] for key in ("handle", "kind", "name", "actor", "state")},
                         {"handle": actor, "kind": "actor", "name": "the one", "actor": "worker:Worker", "state": info["state"]})
        self.assertEqual((info["module"], info["heap_max"]), ("worker", 1 << 20))
        self.assertEqual(info["hash"], hashlib.sha256(MODULES["worker.lua"].encode()).hexdigest()[:32])
        again = self.request("info", self.request("spawn", "worker", []))
        self.assertEqual(again["hash"], info["hash"])

    def test_why_it_does_not_start(self):
        self.assertEqual(self.refusal("spawn", "nowhere", []), ("not-found", "no"))
        self.assertIn("nowhere.lua", self.error.message)
        self.assertEqual(self.refusal("spawn", "wrong", []), ("load", "no"))
        self.assertEqual(self.refusal("spawn", "two", [])[0], "not-found")
        self.assertEqual(self.refusal("spawn", "two:C", [])[0], "not-found")
        self.assertEqual(self.refusal("spawn", "worker", [1, 2]), ("fault", "yes"))
        self.assertEqual(self.request("ask", self.request("spawn", "two:B", []), "name", []), "B")

    def test_bad_options_are_refused_by_name(self):
        for options, name in (({"heap": 0}, "heap"), ({"heap": "2G"}, "heap"), ({"heap": 1000}, "heap"), ({"heap": 65535}, "heap"),
                              ({"heap": "1000000"}, "heap"), ({"heap": "1MB"}, "heap"), ({"heap": 1e6 + 0.5}, "heap"), ({"mailbox": -1}, "mailbox"), ({"async": "many"}, "async"),
                              ({"publish": "a/b"}, "publish"), ({"name": "a\nb"}, "name"), ({"detach": 1}, "detach"),
                              ({"if_absent": True}, "if_absent"), ({"color": "red"}, "color")):
            with self.subTest(options):
                self.assertEqual(self.refusal("spawn", "worker", [], options), ("bad-request", "no"))
                self.assertIn(name, self.error.message)
        self.assertEqual(self.request("ask", self.request("spawn", "worker", [], []), "bump", []), 1)
        # The smallest heap is enough to begin with; an integral float is an integer.
        self.request("spawn", "two:A", [], {"heap": 65536.0})

    def test_times_are_milliseconds_or_text_with_a_unit(self):
        worker = self.request("spawn", "worker", [])
        for timeout in (0, -1, 0.5, "1500", "1 s", "1S", "-1s", "0s", "", True, [1], float("nan")):
            with self.subTest(timeout):
                self.assertEqual(self.refusal("ask", worker, "bump", [], {"timeout": timeout}), ("bad-request", "no"))
                self.assertIn("timeout", self.error.message)
                self.assertEqual(self.refusal("hello", {"timeout": timeout}), ("bad-request", "no"))
                self.assertEqual(self.refusal("stop", worker, {"within": timeout}), ("bad-request", "no"))
        for timeout in (60000, 60000.0, "60000ms", "60s", "1m", "1h", "1d", b"60s", None, 2**62):
            with self.subTest(timeout):
                self.request("ask", worker, "bump", [], {"timeout": timeout})

    def test_a_name_is_held_once(self):
        first = self.request("spawn", "worker", [], {"publish": "shop.front"})
        # It is published already, whoever holds it.
        self.assertEqual(self.refusal("publish", "shop.front", first), ("taken", "no"))
        self.assertEqual(self.refusal("publish", "shop.front", self.request("spawn", "worker", [])), ("taken", "no"))
        self.assertEqual(self.refusal("spawn", "worker", [], {"publish": "shop.front"}), ("taken", "no"))
        self.assertEqual(self.request("spawn", "worker", [], {"publish": "shop.front", "if_absent": True}), first)
        self.assertEqual(self.request("find", "shop.front"), first)
        self.assertEqual(self.request("ask", "shop.front", "bump", []), 1)
        self.assertIsNone(self.request("unpublish", "shop.front"))
        self.assertIsNone(self.request("find", "shop.front"))
        self.assertEqual(self.refusal("ask", "shop.front", "bump", [])[0], "not-found")
        self.assertIsNone(self.request("publish", "shop.back", first))
        self.request("stop", "shop.back")
        self.request("done", first)
        self.assertIsNone(self.request("find", "shop.back"))

    def test_one_given_up_is_killed(self):
        starting = self.client.start("spawn", "sleepy", [], {"publish": "sleepy"})
        handle = self.request("find", "sleepy")
        self.assertTrue(self.request("cancel", starting))
        with self.assertRaises(harness.Error) as cancelled:
            self.client.finish(starting)
        self.assertEqual(cancelled.exception.code, "cancelled")
        self.assertEqual(self.refusal("done", handle)[0], "killed")

        self.request("hello", {"timeout": "20ms"})
        starting = self.client.start("spawn", "sleepy", [], {"publish": "sleepy"})
        handle = self.request("find", "sleepy")
        with self.assertRaises(harness.Error) as passed:
            self.client.finish(starting)
        self.assertEqual(passed.exception.code, "timeout")
        self.assertEqual(self.refusal("done", handle, {"timeout": "1m"})[0], "killed")


class Asking(Protocol):
    def setUp(self):
        super().setUp()
        self.actor = self.request("spawn", "worker", [])

    def test_targets_may_be_named_in_three_ways(self):
        typed = self.connect(values="typed")
        self.request("publish", "worker", self.actor)
        handle = typed.request("find", "worker")
        self.assertEqual(handle, msgpack.ExtType(1, bytes.fromhex(self.actor.removeprefix("actor:"))))
        for target in (self.actor, handle, "worker", b"worker"):
            with self.subTest(target):
                self.assertEqual(typed.request("ask", target, b"say", [5]), 5)

    def test_stock_clients_get_plain_values(self):
        self.assertEqual(self.request("ask", self.actor, "shout", [msgpack.ExtType(1, bytes(16))]), [UNKNOWN, "shout"])
        child = self.request("ask", self.actor, "child", [])
        self.assertRegex(child, "^actor:[0-9a-f]{32}$")
        self.assertEqual(self.request("ask", child, "bump", []), 1)

    def test_refusals(self):
        self.assertEqual(self.refusal("ask", self.actor, "nothing", []), ("no-such-handler", "no"))
        self.assertEqual(self.refusal("ask", UNKNOWN, "say", []), ("not-running", "no"))
        self.assertEqual(self.refusal("send", UNKNOWN, "say", []), ("not-running", "no"))
        self.assertEqual(self.refusal("ask", self.actor, "say", "x"), ("bad-request", "no"))
        self.assertEqual(self.refusal("ask", self.actor, "say", [], {"when": 1}), ("bad-request", "no"))
        self.assertIn("when", self.error.message)
        self.assertEqual(self.refusal("ask", self.actor, "say", [], {"timeout": "soon"}), ("bad-request", "no"))
        self.assertEqual(self.refusal("ask", "actor:nonsense", "say", []), ("bad-request", "no"))
        self.client.send(msgpack.packb([0, 999, "ask", [self.actor, "say", []]])[:-1] + b"\x91\x82\xa1k\x01\xa1k\x02")
        with self.assertRaises(harness.Error) as refused:
            self.client.finish(999)
        self.assertEqual((refused.exception.code, refused.exception.ran), ("not-sendable", "no"))
        self.assertEqual(self.request("ask", self.actor, "bump", []), 1)

    def test_a_fault_answers_all_that_is_owed(self):
        done = self.client.start("done", self.actor)
        napping = self.client.start("ask", self.actor, "nap", [60_000])
        breaking, break_it = self.client.frame("ask", self.actor, "break_it", [])
        queued, say = self.client.frame("ask", self.actor, "say", [1])
        self.client.send(break_it + say)  # at once, so that both are in the mailbox before either is looked at
        outcomes = []
        for request in (done, napping, breaking, queued):
            with self.assertRaises(harness.Error) as failed:
                self.client.finish(request)
            self.assertRegex(failed.exception.message, "it broke")
            outcomes.append((failed.exception.code, failed.exception.ran))
        self.assertEqual(outcomes[1:3], [("fault", "maybe"), ("fault", "yes")])
        self.assertEqual((outcomes[0][0], outcomes[3][0]), ("fault", "fault"))
        self.assertEqual(self.refusal("ask", self.actor, "say", [1]), ("not-running", "no"))
        self.assertEqual(self.refusal("send", self.actor, "say", [1]), ("not-running", "no"))
        self.assertEqual(self.refusal("done", self.actor)[0], "fault")

    def test_what_a_fault_carries_is_in_the_connections_form(self):
        self.assertEqual(self.refusal("ask", self.actor, "raise", []), ("fault", "yes"))
        self.assertEqual(self.error.data["value"], {"mine": self.actor})

    def test_an_answer_too_large_for_a_frame_is_refused(self):
        self.assertEqual(self.refusal("ask", self.actor, "large", [(16 << 20) + 1]), ("too-large", "yes"))
        self.assertEqual(len(self.request("ask", self.actor, "large", [(16 << 20) - 100])), (16 << 20) - 100)

    def test_cancel_and_deadline(self):
        napping = self.client.start("ask", self.actor, "nap", [60_000])
        self.request("ask", self.actor, "say", [])  # so it has begun
        self.assertTrue(self.request("cancel", napping))
        self.assertFalse(self.request("cancel", napping))
        with self.assertRaises(harness.Error) as cancelled:
            self.client.finish(napping)
        self.assertEqual((cancelled.exception.code, cancelled.exception.ran), ("cancelled", "maybe"))
        self.assertEqual(self.refusal("ask", self.actor, "nap", [60_000], {"timeout": 20})[0], "timeout")

        spinning = self.client.start("ask", self.actor, "spin", [])
        self.assertEqual(self.refusal("ask", self.actor, "bump", [], {"timeout": "20ms"}), ("timeout", "no"))
        self.request("stop", self.actor, {"kill": True})
        with self.assertRaises(harness.Error) as killed:
            self.client.finish(spinning)
        self.assertEqual((killed.exception.code, killed.exception.ran), ("killed", "maybe"))
        self.assertEqual(self.refusal("done", self.actor)[0], "killed")

    def test_stop_within_a_time(self):
        spinning = self.client.start("ask", self.actor, "spin", [])
        self.assertIsNone(self.request("stop", self.actor, {"within": "20ms"}))
        with self.assertRaises(harness.Error) as killed:
            self.client.finish(spinning)
        self.assertEqual(killed.exception.code, "killed")
        self.assertIsNone(self.request("stop", self.actor))
        self.assertIsNone(self.request("stop", UNKNOWN))


class Sessions(Protocol):
    def test_what_a_connection_started_ends_with_it(self):
        other = self.connect()
        mine = other.request("spawn", "worker", [])
        child = other.request("ask", mine, "child", [])
        detached = other.request("spawn", "worker", [], {"detach": True})
        moved = other.request("spawn", "worker", [])
        other.request("detach", moved)
        ends = [self.client.start("done", actor) for actor in (mine, child)]
        other.send(msgpack.packb([2, "send", [detached, "bump", [5]]]) * 1000)
        other.close()
        self.assertEqual([self.client.finish(end) for end in ends], [None, None])
        self.assertEqual(self.request("ask", detached, "bump", [1]), 5001)  # all that it had sent was served
        self.assertEqual(self.request("ask", moved, "bump", []), 1)

    def test_any_text_with_the_form_of_a_handle_is_one(self):
        for unknown in (UNKNOWN, "actor:" + "f" * 32, "pool:" + "0" * 32, "pool:" + "f" * 32):
            for request in (("ask", unknown, "bump", []), ("done", unknown), ("info", unknown)):
                self.assertEqual(self.refusal(*request), ("not-running", "no"))
            self.assertIsNone(self.request("stop", unknown))

    def test_what_cannot_fit_into_the_heap_is_a_fault_of_its_kind(self):
        for length in (40 << 20, 1 << 30, 1 << 40):
            actor = self.request("spawn", "worker", [])
            self.assertEqual(self.refusal("ask", actor, "large", [length]), ("fault", "yes"))
            self.assertEqual(self.error.data["kind"], "heap")

    def test_who_has_an_answer_finds_the_actor_at_rest(self):
        for _ in range(100):
            actor = self.request("spawn", "worker", [])
            self.assertEqual(self.request("info", actor)["state"], "idle")
            self.request("ask", actor, "bump", [])
            self.assertEqual(self.request("info", actor)["state"], "idle")
            self.request("stop", actor)

    def test_a_spawn_that_was_given_up_leaves_its_name_free(self):
        hurried = self.connect(timeout=5)
        for _ in range(30):
            self.assertEqual(self.refusal("spawn", "sleepy", [], {"publish": "held"}, client=hurried)[0], "timeout")
            self.assertIsNone(self.request("find", "held"))
            spawn = self.client.start("spawn", "sleepy", [], {"publish": "held"})
            self.assertTrue(self.request("cancel", spawn))
            self.assertIsNone(self.request("find", "held"))
            with self.assertRaises(harness.Error):
                self.client.finish(spawn)

    def test_list_and_info(self):
        actors = {self.request("spawn", "worker", [], {"publish": f"w{i}"}) for i in range(3)}
        self.assertEqual({entry["handle"] for entry in self.request("list")}, actors)
        self.assertEqual({entry["published"] for entry in self.request("list", {"kind": "actor"})}, {"w0", "w1", "w2"})
        self.assertEqual(self.request("list", {"kind": "pool"}), [])
        self.assertEqual(self.request("list", {"kind": "component"}), [])
        self.assertEqual(self.refusal("list", {"kind": "tree"})[0], "bad-request")
        info = self.request("info", "w0")
        self.assertEqual(info["faults"], 0)
        self.assertIn({"name": "nap", "async": True, "params": 1}, info["handlers"])
        self.assertEqual(self.refusal("info", UNKNOWN)[0], "not-running")
        self.assertEqual(self.refusal("info", "nobody")[0], "not-found")

    def test_a_peer_that_has_closed_its_writing_side_is_answered(self):
        actor = self.request("spawn", "worker", [])
        other = self.connect()
        asks = [other.start("ask", actor, "nap", [i + 1]) for i in range(20)]
        other.socket.shutdown(socket.SHUT_WR)
        self.assertEqual([other.finish(ask) for ask in asks], ["woke"] * 20)
        self.assertIsNone(other.receive())

    def test_shutdown(self):
        self.request("spawn", "worker", [])
        self.assertIsNone(self.request("shutdown"))
        self.assertEqual(self.daemon.wait(), 0)


@unittest.skipUnless(stranger.is_possible, "only root can be somebody else")
class Roles(Protocol):
    STRANGER = 12345

    def test_another_user_may_call_and_nothing_else(self):
        self.request("spawn", "worker", [], {"publish": "worker"})
        stranger.admit(self.daemon)
        requests = [("ping",), ("find", "worker"), ("ask", "worker", "bump", [1]), ("send", "worker", "bump", [1]), ("spawn", "worker", []),
                    ("stop", "worker"), ("stop", "worker", {"kill": True}), ("detach", "worker"), ("publish", "mine", "worker"),
                    ("unpublish", "worker"), ("list",), ("info", "worker"), ("metrics",), ("shutdown",)]
        you, answers = stranger.ask(self.daemon, requests, user=self.STRANGER)
        self.assertEqual((you["uid"], you["gid"], you["roles"]), (self.STRANGER, self.STRANGER, ["call"]))
        self.assertEqual(answers[:4], ["pong", self.request("find", "worker"), 1, None])
        self.assertEqual([answer.split(":")[0] for answer in answers[4:]], ["denied"] * 10)


if __name__ == "__main__":
    unittest.main()
