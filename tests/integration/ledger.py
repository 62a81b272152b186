# SPDX-License-Identifier: Apache-2.0
"""A component whose entities can be counted, and a load on it that knows what it was told.

Each change has a token of its own, and leaves it in an entity. So of a daemon that was killed it can be said which tokens have to be there
(those that were acknowledged), and which may not be (those that were refused, or that nobody ever sent).
"""

import itertools
import random

import harness

NAME = "ledger"

MODULE = """
local operations = {}

function operations.open(input, changes, context)
  changes.kind = input.kind
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
        "open": {"type": "assignment", "input": {"type": "object", "required": ["kind"]}},
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
    client.request("call", NAME, "open", {"kind": "account"}, {"id": account})


def add(client, account, token):
    return client.request("call", NAME, "add", {"token": token}, {"id": account})


def account(client, name):
    return client.request("call", NAME, "read", None, {"id": name})


class Load:
    """Changes of accounts, from one connection at a time with many under way."""

    OUTSTANDING = 32

    def __init__(self, accounts=4, seed=1):
        self.chance, self.tokens = random.Random(seed), itertools.count(1)
        self.accounts = [f"account-{number}" for number in range(accounts)]
        self.sent, self.acknowledged, self.refused = set(), set(), set()
        self.account_of = {}

    def open(self, client):
        for name in self.accounts:
            open_account(client, name)

    def send(self, client):
        """One more; now and then one that the contract refuses."""
        token = next(self.tokens)
        wrong = self.chance.random() < 0.05
        self.account_of[token] = self.chance.choice(self.accounts)
        request = client.start("call", NAME, "add", {"token": str(token) if wrong else token}, {"id": self.account_of[token]})
        self.sent.add(token)
        if wrong:
            self.refused.add(token)
        self.outstanding[request] = token, wrong

    def take(self, frame):
        """What an answer says."""
        _, request, error, _ = frame
        token, wrong = self.outstanding.pop(request)
        if wrong:
            if error["code"] != "contract":
                raise AssertionError(f"what is no number was answered with {error}")
        elif error is None:
            self.acknowledged.add(token)
        else:
            self.on_error(token, error)

    def on_error(self, token, error):
        raise AssertionError(f"{token}: {error}")

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
        """What is there is what has to be."""
        there = []
        for document in client.request("call", NAME, "all", None):
            tokens = document.get("tokens", [])
            there += tokens
            # it was opened once, and each change since is one version
            test.assertEqual(document["version"], 1 + len(tokens), document["id"])
            test.assertLessEqual({self.account_of[token] for token in tokens}, {document["id"]})
        test.assertEqual(len(there), len(set(there)), "one was done twice")
        test.assertLessEqual(self.acknowledged, set(there), "what was acknowledged is lost")
        test.assertLessEqual(set(there), self.sent - self.refused, "something is there that was refused")
