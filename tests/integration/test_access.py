# SPDX-License-Identifier: Apache-2.0
"""Access: what the rules of the configuration grant to other users, by user, group and supplementary group, and the names they bound."""

import pwd
import unittest

import harness
import stranger

MODULES = {"worker.lua": """
    local Worker = require "troupe".actor "Worker"
    function Worker.on:echo(value) return value end
"""}

MEDIA, MUTED, MEMBER, OPERATOR, SERVER = 21001, 21002, 21003, 21004, 21005
CREW = 21100

RULES = [
    {"user": "no-such-user", "roles": ["operate"]},
    {"user": str(MEDIA), "roles": ["call", "spawn"], "names": ["media.*", "clock"]},
    {"user": "65534", "roles": ["operate"]},
    {"group": "65534", "roles": ["operate"]},
    {"user": str(MUTED), "roles": []},
    {"group": str(CREW), "roles": ["call", "serve"]},
    {"user": str(OPERATOR), "roles": ["operate"]},
    {"user": str(SERVER), "roles": ["call", "serve"], "names": ["media.*"]},
    {"user": "0", "roles": []},
    {"user": "daemon", "roles": ["spawn"]},
]

COMPONENTS = [{"name": "media.streams", "operations": {"list": {}}}, {"name": "other", "operations": {"list": {}}}]

ALL = ["call", "serve", "spawn", "operate"]


@unittest.skipUnless(stranger.is_possible, "only root can be somebody else")
class Access(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(files=MODULES, config={"access": RULES, "components": COMPONENTS})
        self.addCleanup(self.daemon.close)
        stranger.admit(self.daemon)
        self.client = harness.Client(self.daemon.socket)
        self.addCleanup(self.client.close)
        self.request = self.client.request

    def ask(self, *requests, **who):
        return stranger.ask(self.daemon, requests, **who)

    def roles(self, **who):
        return self.ask(**who)[0]["roles"]

    def test_who_has_which_roles(self):
        self.assertEqual(self.client.hello["you"]["roles"], ALL)
        self.assertEqual(self.roles(user=MEDIA), ["call", "spawn"])
        self.assertEqual(self.roles(user=MUTED), [])
        self.assertEqual(self.roles(user=OPERATOR), ALL)
        self.assertEqual(self.roles(user=21999), ["call"])
        # A group is the peer's own or a supplementary one, and the first rule that matches decides.
        self.assertEqual(self.roles(user=MEMBER, group=CREW), ["call", "serve"])
        self.assertEqual(self.roles(user=MEMBER, groups=[1, CREW]), ["call", "serve"])
        self.assertEqual(self.roles(user=MUTED, group=CREW), [])
        self.assertEqual(self.roles(user=OPERATOR, groups=[CREW]), ["call", "serve"])
        # Nobody is nobody, as a user and as a group.
        self.assertEqual(self.roles(user=65534, group=CREW), ["call"])
        self.assertEqual(self.roles(user=MEMBER, group=65534, groups=[65534]), ["call"])

    def test_by_name(self):
        self.assertEqual(self.roles(user=pwd.getpwnam("daemon").pw_uid), ["spawn"])

    def test_what_a_role_is_for(self):
        self.request("spawn", "worker", [], {"publish": "worker"})
        call = [("find", "worker"), ("ask", "worker", "echo", [1]), ("send", "worker", "echo", [1]), ("subscribe", "log")]
        spawn = [("spawn", "worker", []), ("list",), ("stop", "worker")]
        you, answers = self.ask(*call, *spawn, user=MUTED)
        self.assertEqual(answers, [f"denied: {request[0]} needs the role call" for request in call]
                         + [f"denied: {request[0]} needs the role spawn" for request in spawn])
        you, answers = self.ask(("ping",), ("find", "worker"), ("list",), user=pwd.getpwnam("daemon").pw_uid)
        self.assertEqual(answers, ["pong", "denied: find needs the role call", []])
        # The role operate reaches what others started.
        you, answers = self.ask(("stop", "worker"), ("shutdown",), user=OPERATOR)
        self.assertEqual(answers, [None, None])
        self.assertEqual(self.daemon.wait(), 0)

    def test_names(self):
        handle = self.request("spawn", "worker", [], {"publish": "other"})
        self.request("spawn", "worker", [], {"publish": "media.there"})
        self.request("spawn", "worker", [], {"publish": "clock"})

        def denied(method, name):
            return f"denied: {method}: access to the name {name} is not granted"

        expected = [
            (("ask", "media.there", "echo", [1]), 1),
            (("ask", "clock", "echo", [2]), 2),
            # A handle needs no name.
            (("ask", handle, "echo", [3]), 3),
            (("find", "media.nowhere"), None),
            (("find", "other"), denied("find", "other")),
            (("find", "media"), denied("find", "media")),
            (("find", "clock.x"), denied("find", "clock.x")),
            (("ask", "other", "echo", [1]), denied("ask", "other")),
            (("send", "other", "echo", [1]), denied("send", "other")),
            (("done", "other"), denied("done", "other")),
            # Whether anybody has such a name is not told.
            (("ask", "nowhere", "echo", [1]), denied("ask", "nowhere")),
            (("spawn", "worker", [], {"publish": "own"}), denied("spawn", "own")),
            (("spawn", "worker", [], {"publish": "other", "if_absent": True}), denied("spawn", "other")),
            (("pool", "own", "worker", []), denied("pool", "own")),
            (("pool", "media.crew", "worker", [], {"publish": "own"}), denied("pool", "own")),
            (("publish", "own", handle), denied("publish", "own")),
            (("component", {"name": "own", "operations": {"list": {}}}), denied("component", "own")),
            (("component", {"name": "media.mine", "operations": {"list": {}}}), None),
        ]
        you, answers = self.ask(*[request for request, answer in expected], user=MEDIA)
        self.assertEqual(answers, [answer for request, answer in expected])

    def test_names_that_are_granted_are_published(self):
        you, (spawned, pool, found) = self.ask(("spawn", "worker", [], {"publish": "media.one", "detach": True}),
                                               ("pool", "own", "worker", [], {"publish": "media.crew", "detach": True}),
                                               ("find", "media.crew"), user=MEDIA)
        self.assertEqual(self.request("find", "media.one"), spawned)
        self.assertEqual(found, pool)

    def test_names_of_components(self):
        expected = [
            (("serve", "media.streams", {"instance": "mine"}), {"instance": "mine"}),
            (("instances", "media.streams"), ["mine"]),
            (("withdraw", "media.streams"), None),
            (("call", "media.streams", "list", None, {"timeout": 1}), "timeout"),
            (("serve", "other"), "denied: serve: access to the name other is not granted"),
            (("instances", "other"), "denied: instances: access to the name other is not granted"),
            (("call", "other", "list", None), "denied: call: access to the name other is not granted"),
            # whether there is such a component is not told
            (("call", "nowhere", "list", None), "denied: call: access to the name nowhere is not granted"),
        ]
        you, answers = self.ask(*[request for request, answer in expected], user=SERVER)
        self.assertTrue(answers[3].startswith("timeout: "), answers[3])
        self.assertEqual([answer if answer != "timeout" else answers[3] for request, answer in expected], answers)

    def test_who_may_serve(self):
        you, answers = self.ask(("serve", "media.streams"), user=MEDIA)
        self.assertEqual(answers, ["denied: serve needs the role serve"])
        you, answers = self.ask(("serve", "other", {"instance": "theirs"}), ("call", "nowhere", "list", None), user=MEMBER, group=CREW)
        self.assertEqual(answers, [{"instance": "theirs"}, "not-found: there is no component nowhere"])
        you, answers = self.ask(("call", "other", "list", None), user=MUTED)
        self.assertEqual(answers, ["denied: call needs the role call"])

    def test_what_cannot_be_resolved_is_told(self):
        for told in ("access[0].user: there is no user no-such-user here: the rule matches nobody",
                     "access[2].user: the user 65534 is nobody, whom no rule matches",
                     "access[3].group: the group 65534 is nobody, whom no rule matches"):
            while f"{self.daemon.config}:1: {told}" not in self.daemon.log():  # which is written behind what happens
                self.request("ping")


if __name__ == "__main__":
    unittest.main()
