# SPDX-License-Identifier: Apache-2.0
"""The units: systemd finds nothing to say of them, and runs them."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
BUILD = pathlib.Path(os.environ["TROUPE_BUILD"])
CONFIG = (BUILD / "config.h").read_text()
SANITIZED = "#define TR_SANITIZED 1" in CONFIG
LIBSYSTEMD = "#define HAVE_LIBSYSTEMD 1" in CONFIG
# Runs a real systemd in namespaces of its own; where there is none, whoever tests the service by hand has to.
PRIVATE_SYSTEMD = SOURCE.parent / "shared" / "tools" / "private-systemd"
# Without libsystemd a line of the log has no fields, and says itself of whom it is.
OF_WHOM_IT_IS = {
    True: "journalctl TROUPE_ACTOR='the counter' -o cat --no-pager | grep -q '^killed$'\n",
    False: "journalctl -u trouped.service -o cat --no-pager | grep -q '^the counter.*: killed$'\n",
}
NOT_TO_BE_HAD = 77
SECONDS = 240

# What happens inside, as root, with the installed tree under /out/root. Each line that matters says so, and the first that
# fails ends it.
INSIDE = r"""#!/bin/bash
set -euxo pipefail
cp -a /out/root/. /
ldconfig
prefix=$(cat /out/prefix)
systemd-sysusers "$prefix/lib/sysusers.d/troupe.conf"
systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/troupe.conf"
mkdir -p /etc/troupe/lua
cp /out/counter.lua /etc/troupe/lua/
echo '{"actors": [{"actor": "counter", "publish": "counter", "name": "the counter"}]}' >/etc/troupe/trouped.json
systemctl daemon-reload

systemctl start trouped.socket
[ "$(stat -c '%a %U %G' /run/troupe/troupe.sock)" = '660 root troupe' ]
[ "$(stat -c '%a %U %G' /run/troupe)" = '755 root root' ]
[ "$(systemctl is-active trouped.service)" = inactive ]

# whoever connects starts it, and is answered
[ "$(troupe --system ping)" = pong ]
# it is active when it is ready, which may be a moment later: this waits for it
systemctl start trouped.service
[ "$(systemctl is-active trouped.service)" = active ]
[ "$(systemctl show -p StatusErrno --value trouped.service)" = 0 ]
[ "$(ps -o user=,comm= -p "$(systemctl show -p MainPID --value trouped.service)")" = '_troupe  trouped' ]
troupe --system send counter bump 2
[ "$(troupe --system ask counter total)" = 2 ]
# more actors than there are threads in a usual unit
for i in $(seq 1 50); do troupe --system spawn counter >/dev/null; done

# members of the group may connect, others may not
useradd -m -G troupe member
useradd -m stranger
[ "$(runuser -u member -- troupe --system ping)" = pong ]
! runuser -u stranger -- troupe --system ping

# what has changed in the configuration is applied, and what is wrong with it is refused
main=$(systemctl show -p MainPID --value trouped.service)
configured='{"actor": "counter", "publish": "counter", "name": "the counter"}'
echo "{\"actors\": [$configured, {\"actor\": \"counter\", \"publish\": \"second\"}]}" >/etc/troupe/trouped.json
mkdir /etc/troupe/components.d
echo '{"name": "declared", "operations": {"run": {}}}' >/etc/troupe/components.d/declared.json
systemctl reload trouped.service
[ "$(troupe --system ask second total)" = 0 ]
[ "$(troupe --system ask counter total)" = 2 ]
troupe --system ls components | grep -q declared
echo '{"colour": 1}' >/etc/troupe/components.d/wrong.json
! systemctl reload trouped.service
[ "$(systemctl is-active trouped.service)" = active ]
[ "$(troupe --system ask counter total)" = 2 ]
rm /etc/troupe/components.d/wrong.json
systemctl kill -s HUP trouped.service
[ "$(systemctl show -p MainPID --value trouped.service)" = "$main" ]

# the log has its fields
troupe --system stop --kill counter
! troupe --system done counter
# the log has a thread of its own, which may write this a moment after the answer
until journalctl --sync; . /out/killed-is-in-the-journal; do :; done
journalctl -u trouped.service -o json --no-pager | grep -q '"MESSAGE":"ready"'
journalctl -u trouped.service -o cat --no-pager | grep -q '^reloaded$'
journalctl -u trouped.service -o cat --no-pager | grep -q 'wrong.json:1: /colour: is an unknown key'

# stopping is orderly, and leaves the socket to the next
main=$(systemctl show -p MainPID --value trouped.service)
systemctl stop trouped.service
[ "$(systemctl show -p Result --value trouped.service)" = success ]
! kill -0 "$main"
[ -S /run/troupe/troupe.sock ]
[ "$(troupe --system ask counter total)" = 0 ]

# a wrong configuration is not tried again and again
echo '{"colour": 1}' >/etc/troupe/trouped.json
! systemctl restart trouped.service
[ "$(systemctl show -p ExecMainStatus --value trouped.service)" = 78 ]
[ "$(systemctl show -p NRestarts --value trouped.service)" = 0 ]
echo all is well
"""


def make(*arguments):
    subprocess.run(["make", "-s", "-C", BUILD, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=SECONDS,
                   env={key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))})


class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_verify_prints_nothing(self):
        # the programs are where the build put them, not installed
        for unit in ("trouped.service", "trouped.socket"):
            text = (BUILD / "systemd" / unit if unit.endswith("service") else SOURCE / "systemd" / unit).read_text()
            text = re.sub(r"^(Exec\w+)=\S+", rf"\1={BUILD}/trouped", text, flags=re.MULTILINE)
            (self.folder / unit).write_text(text)
        sample = (SOURCE / "systemd/examples/troupe-worker@.service").read_text()
        (self.folder / "troupe-worker@left.service").write_text(
            sample.replace("/usr/local/lib/troupe/worker.py", f"{BUILD}/trouped"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, self.folder.iterdir())],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
    def test_little_is_exposed(self):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=4", BUILD / "systemd/trouped.service"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_setting_that_does_harm(self):
        text = (BUILD / "systemd/trouped.service").read_text()
        for setting in ("PrivateUsers", "RuntimeDirectory", "ConfigurationDirectory"):
            self.assertNotRegex(text, rf"(?m)^{setting}=")
        self.assertNotIn("@", re.sub(r"(?m)^SystemCallFilter=.*$", "", text))

    @unittest.skipIf(SANITIZED, "what a sanitizer does at the end is not allowed in the units' sandbox")
    @unittest.skipUnless(PRIVATE_SYSTEMD.exists(), "there is no private-systemd")
    def test_a_real_systemd_runs_them(self):
        prefix = re.search(r"^prefix = (.+)$", (BUILD / "Makefile").read_text(), re.MULTILINE)[1]
        make("install", f"DESTDIR={self.folder / 'root'}")
        (self.folder / "prefix").write_text(prefix)
        (self.folder / "killed-is-in-the-journal").write_text(OF_WHOM_IT_IS[LIBSYSTEMD])
        shutil.copy(SOURCE / "examples/counter.lua", self.folder)
        inside = self.folder / "inside"
        inside.write_text(INSIDE)
        inside.chmod(0o755)
        done = subprocess.run([PRIVATE_SYSTEMD, "-t", "120", "-o", self.folder, inside], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        if done.returncode == NOT_TO_BE_HAD:
            self.skipTest("there are no namespaces to be had")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
