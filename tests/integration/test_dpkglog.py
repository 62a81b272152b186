# SPDX-License-Identifier: Apache-2.0
"""The example that parses dpkg's log in a pool, fed from files by the command: each record says all that its line said, awk counts
the same, and on a terminal a bar shows how far it is."""

import collections
import json
import os
import pathlib
import random
import re
import subprocess
import unittest

import harness
import terminal

EXAMPLES = pathlib.Path(os.environ["TROUPE_SOURCE"]) / "examples"
TROUPE = str(harness.BUILD / "troupe")
OWN_LOG = pathlib.Path("/var/log/dpkg.log")

SLOW = """
local troupe = require "troupe"
local Slow = troupe.actor "Slow"
function Slow.async:parse(line)
  troupe.await(troupe.sleep(5))
  return #line
end
"""


def line_of(record):
    """The line that a record was made of."""
    if "unknown" in record:
        return record["unknown"]
    when = record["at"].replace("T", " ")
    if "text" in record:
        return f"{when} {record['action']} {record['text']}"
    whom = f"{record['package']}:{record['arch']}"
    if record["action"] == "status":
        return f"{when} status {record['state']} {whom} {record.get('version', '<none>')}"
    return f"{when} {record['action']} {whom} {record.get('was', '<none>')} {record.get('version', '<none>')}"


def made_up(count):
    """Lines of every form that dpkg writes, in no order."""
    dice, lines = random.Random(7), []
    for n in range(count):
        package = f"{dice.choice(['libc6', 'g++-12', 'python3.11', 'a'])}:{dice.choice(['amd64', 'all'])}"
        was, version = (dice.choice(["<none>", "1:2.3~rc1-4+deb12u1", "5.36.0-7"]) for _ in range(2))
        lines.append(f"2026-01-{n % 28 + 1:02} {n % 24:02}:00:{n % 60:02} " + dice.choice([
            f"install {package} {was} {version}", f"upgrade {package} {was} {version}", f"configure {package} {version} <none>",
            f"remove {package} {version} <none>", f"trigproc {package} {version} <none>", "startup archives unpack",
            f"status half-installed {package} {version}", f"status installed {package} {version}",
            "conffile /etc/a file.conf keep"]))
    return lines + ["", "what nobody writes"]


class Log(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon(path=[EXAMPLES], files={"slow_lines.lua": SLOW})
        self.addCleanup(self.daemon.close)
        self.environment = {**os.environ, "TROUPE_SOCKET": self.daemon.socket}
        self.path = self.daemon.directory / "log"

    def pool(self, actor="dpkglog", workers=2):
        with harness.Client(self.daemon.socket) as client:
            client.request("pool", "history", actor, [], {"workers": workers, "routing": "shared", "detach": True})

    def records(self, path):
        with open(path, "rb") as lines:
            done = subprocess.run([TROUPE, "ask", "-P", "64", "history", "parse", "--lines"], stdin=lines, stdout=subprocess.PIPE,
                                  check=True, text=True, env=self.environment, timeout=harness.TIMEOUT_SECONDS)
        return [json.loads(answer) for answer in done.stdout.splitlines()]

    def check(self, path):
        records = self.records(path)
        self.assertEqual(path.read_text().splitlines(), [line_of(record) for record in records])
        counted = subprocess.run(["awk", 'NF > 3 && $1 ~ /^[0-9]+-/ { n[$3 " " ($3 == "status" ? $4 : "")]++ } '
                                  'END { for (what in n) print n[what] " " what }', str(path)],
                                 check=True, stdout=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_SECONDS).stdout
        ours = collections.Counter(f"{record['action']} {record.get('state', '')}" for record in records if "action" in record)
        self.assertEqual(sorted(f"{count} {what}" for what, count in ours.items()), sorted(counted.splitlines()))

    def test_every_form_of_line(self):
        self.pool()
        self.path.write_text("".join(line + "\n" for line in made_up(5000)))
        self.check(self.path)

    @unittest.skipUnless(OWN_LOG.exists() and OWN_LOG.stat().st_size, f"this machine has no {OWN_LOG}")
    def test_the_log_of_this_machine(self):
        self.pool()
        self.path.write_bytes(OWN_LOG.read_bytes())  # which may grow meanwhile
        self.check(self.path)

    BAR = re.compile(r"^\[(#* *)\] +(\d+)% (\d+) lines$", re.MULTILINE)

    @unittest.skipUnless(terminal.AVAILABLE, "tmux is not installed")
    def test_a_bar_on_a_terminal(self):
        self.pool("slow_lines", workers=1)
        self.path.write_text("".join(f"{'x' * 20}\n" for _ in range(500)))  # 5 ms each at least
        for to in (">answers", "| tee answers >/dev/null"):
            script = f'{TROUPE} ask history parse --lines <"{self.path}" {to}; echo "exited with $?"; exec cat'
            with self.subTest(to), terminal.Terminal(script, TROUPE_SOCKET=self.daemon.socket) as screen:
                text = screen.wait_for(lambda text: self.BAR.search(text) and int(self.BAR.search(text)[2]) >= 50)
                bar, percent, lines = self.BAR.search(text).groups()
                self.assertEqual(24, len(bar))
                self.assertEqual(int(percent), int(lines) * 100 // 500)
                self.assertEqual(int(lines) * 24 // 500, bar.count("#"))
                text = screen.wait_for("exited with 0")
                self.assertNotIn("lines", text)
                self.assertEqual("20\n" * 500, (screen.directory / "answers").read_text())

    @unittest.skipUnless(terminal.AVAILABLE, "tmux is not installed")
    def test_the_bar_makes_way_for_answers_on_the_same_terminal(self):
        self.pool("slow_lines", workers=1)
        self.path.write_text("".join(f"{'x' * 20}\n" for _ in range(300)))
        script = f'{TROUPE} ask history parse --lines <"{self.path}"; echo "exited with $?"; exec cat'
        with terminal.Terminal(script, TROUPE_SOCKET=self.daemon.socket) as screen:
            text = screen.wait_for("exited with 0")
            self.assertEqual({"20", "exited with 0", ""}, set(text.splitlines()))

    @unittest.skipUnless(terminal.AVAILABLE, "tmux is not installed")
    def test_a_pipe_has_no_end_that_is_known(self):
        self.pool("slow_lines", workers=1)
        self.path.write_text("".join(f"{'x' * 20}\n" for _ in range(500)))
        script = f'cat "{self.path}" | {TROUPE} ask history parse --lines >answers; echo "exited with $?"; exec cat'
        with terminal.Terminal(script, TROUPE_SOCKET=self.daemon.socket) as screen:
            screen.wait_for(lambda text: re.search(r"^\d+ lines$", text, re.MULTILINE))
            screen.wait_for("exited with 0")


if __name__ == "__main__":
    unittest.main()
