# SPDX-License-Identifier: Apache-2.0
"""A component whose entities and tasks can be counted, and a load on it that knows what it was told.

Each change has a token of its own, and leaves it in an entity. So of a daemon that was killed it can be said which tokens have to be there
(those that were acknowledged), and which may not be (those that were refused, or that nobody ever sent).
"""

import contextlib
import itertools
import random
import sqlite3

import harness

NAME = "ledger"

MODULE = """
local operations = {}

-- An account, or the trace of a task that has run.
function operations.open(input, changes, context)
  changes.kind, changes.token, changes.attempt = input.kind, input.token, context.attempt
end

function operations.add(input, entity, context)
  if not entity then return context.error "NO_SUCH_ACCOUNT" end
  local tokens = entity.tokens or {}
  tokens[#tokens + 1] = input.token
  entity.tokens = tokens
  return #tokens
end

function operations.read(input, entity, context) return entity end

function operations.all(input, entities, context) return entities end

return { operations = operations }
"""

TOKEN = {"type": "object", "required": ["token"], "properties": {"token": {"type": "integer"}}}

MANIFEST = {
    "name": NAME, "module": "ledger", "replicas": 2, "concurrency": 4,
    "operations": {
        "open": {"type": "assignment", "input": {**TOKEN, "required": ["kind", "token"]}},
        "add": {"type": "transition", "input": TOKEN, "errors": ["NO_SUCH_ACCOUNT"], "output": {"type": "integer"}},
        "read": {"type": "observation"},
        "all": {"type": "observation", "scope": "entries", "output": {"type": "array"}},
    },
}

FILES = {"ledger.lua": MODULE}


def daemon(**options):
    return harness.Daemon(files={**FILES, **options.pop("files", {})},
                          config={"components": [MANIFEST, *options.pop("components", [])], **options.pop("config", {})}, **options)


def open_account(client, account):
    client.request("call", NAME, "open", {"kind": "account", "token": 0}, {"id": account})


def add(client, account, token):
    return client.request("call", NAME, "add", {"token": token}, {"id": account})


def account(client, name):
    return client.request("call", NAME, "read", None, {"id": name})


def wait_until_no_task_is_left(client, component=NAME):
    while client.request("tasks", {"component": component}):
        pass


def rows(path, sql):
    """What a person would find who opens the file."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchall()


class Load:
    """Changes of accounts, and tasks, from one connection at a time with many under way."""

    OUTSTANDING = 32

    def __init__(self, accounts=4, seed=1):
        self.chance, self.tokens = random.Random(seed), itertools.count(1)
        self.accounts = [f"account-{number}" for number in range(accounts)]
        self.sent, self.acknowledged, self.refused = ({kind: set() for kind in ("add", "task")} for _ in range(3))
        self.account_of = {}

    def open(self, client):
        for name in self.accounts:
            open_account(client, name)

    def send(self, client):
        """One more; now and then one that the contract refuses."""
        token, kind = next(self.tokens), self.chance.choice(["add", "task"])
        wrong = self.chance.random() < 0.05
        given = {"token": str(token) if wrong else token}
        if kind == "add":
            self.account_of[token] = self.chance.choice(self.accounts)
            request = client.start("call", NAME, "add", given, {"id": self.account_of[token]})
        else:
            request = client.start("task", NAME, "open", {"kind": "task", **given}, {"id": f"task-{token}"})
        self.sent[kind].add(token)
        if wrong:
            self.refused[kind].add(token)
        self.outstanding[request] = kind, token, wrong

    def take(self, frame):
        """What an answer says."""
        _, request, error, _ = frame
        kind, token, wrong = self.outstanding.pop(request)
        if wrong:
            if error["code"] != "contract":
                raise AssertionError(f"{kind} of what is no number was answered with {error}")
        elif error is None:
            self.acknowledged[kind].add(token)
        else:
            self.on_error(kind, token, error)

    def on_error(self, kind, token, error):
        raise AssertionError(f"{kind} {token}: {error}")

    def begin(self):
        self.outstanding = {}

    def step(self, client):
        """Sends as much as there is room for, and takes one answer."""
        while len(self.outstanding) < self.OUTSTANDING:
            self.send(client)
        self.take(client.receive())

    def drain(self, client, ended=False):
        """Takes the answers to all that is under way, or, of a daemon that has ended, those that it had sent."""
        while self.outstanding:
            frame = client.receive()
            if frame is None and ended:
                return
            self.take(frame)

    def check(self, test, client):
        """Once no task is left: what is there is what has to be."""
        found = {document["id"]: document for document in client.request("call", NAME, "all", None)}
        there = {"add": [], "task": []}
        for document in found.values():
            if document["kind"] == "task":
                test.assertEqual(document["id"], f"task-{document['token']}")
                there["task"].append(document["token"])
                continue
            tokens = document.get("tokens", [])
            there["add"] += tokens
            # it was opened once, and each change since is one version
            test.assertEqual(document["version"], 1 + len(tokens), document["id"])
            test.assertEqual({self.account_of[token] for token in tokens}, {document["id"]} if tokens else set())
        for kind, tokens in there.items():
            test.assertEqual(len(tokens), len(set(tokens)), f"{kind}: one was done twice")
            test.assertLessEqual(self.acknowledged[kind], set(tokens), f"{kind}: what was acknowledged is lost")
            test.assertLessEqual(set(tokens), self.sent[kind] - self.refused[kind], f"{kind}: something is there that was refused")
