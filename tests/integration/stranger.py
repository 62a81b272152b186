# SPDX-License-Identifier: Apache-2.0
"""Requests of somebody else: a process of another user, which only root can start.

    stranger.admit(daemon)
    you, answers = stranger.ask(daemon, [("ping",), ("find", "worker")], user=12345)
"""

import json
import os
import shutil
import subprocess
import sys

import harness

SCRIPT = """
import json, sys
import harness
with harness.Client(sys.argv[1]) as client:
    def attempt(*request):
        try:
            return client.request(*request)
        except harness.Error as error:
            return error.code + ": " + error.message
    print(json.dumps([client.hello["you"], [attempt(*request) for request in json.loads(sys.argv[2])]]))
"""

is_possible = os.getuid() == 0


def admit(daemon):
    """Everybody may connect to a harness.Daemon."""
    os.chmod(daemon.directory, 0o755)
    os.chmod(daemon.socket, 0o666)
    # where the stranger can read it: the tree itself may be somebody's own
    shutil.copy(harness.__file__, daemon.directory)


def ask(daemon, requests, user, group=None, groups=()):
    """What `hello` says of somebody, and the answers to his requests; of an error "code: message"."""
    printed = subprocess.run([sys.executable, "-c", SCRIPT, daemon.socket, json.dumps(requests)], check=True, stdout=subprocess.PIPE,
                             user=user, group=user if group is None else group, extra_groups=list(groups), cwd=daemon.directory,
                             timeout=harness.TIMEOUT_SECONDS).stdout
    you, answers = json.loads(printed)
    return you, answers
