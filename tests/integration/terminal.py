# SPDX-License-Identifier: Apache-2.0
"""A real terminal for one test: tmux, with a server of its own, and a shell in its only window.

    with terminal.Terminal("my-program; exec cat") as screen:
        screen.wait_for(lambda text: "ready" in text)
        screen.press("q")

Conditions are waited for by looking at the screen again and again; nothing sleeps.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

TIMEOUT_SECONDS = 120
AVAILABLE = bool(shutil.which("tmux"))


class Terminal:
    """`shell` is given a file with the script, in a directory of its own; the terminal is there for as long as it runs."""

    def __init__(self, script, columns=100, rows=20, shell=("sh",), **environment):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="troupe-test-"))
        path = self.directory / "script"
        path.write_text(script)
        self.environment = {key: value for key, value in os.environ.items() if key not in ("TMUX", "NO_COLOR")}
        self.environment |= {"LC_ALL": "C.UTF-8", "SHELL": "/bin/sh", **environment}
        try:
            self.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "-c", self.directory, *shell, path)
        except BaseException:
            self.close()
            raise

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-S", str(self.directory / "tmux"), *map(str, words)], env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=TIMEOUT_SECONDS)
        if done.returncode:
            raise RuntimeError(f"tmux {words}: {done.stderr}")
        return done.stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, condition):
        """Until `condition` of what is on the screen, or a text that has to be in it; answers what is on it then."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while True:
            text = self.text()
            if condition in text if isinstance(condition, str) else condition(text):
                return text
            if time.monotonic() > until:
                raise AssertionError(f"the screen never was as it should be:\n{text}")

    def press(self, *keys):
        """Keys by tmux's names for them ("C-c", "NPage")."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def shows(self, what):
        """What tmux knows of the terminal: "alternate_on", "cursor_flag", "pane_title"."""
        return self.tmux("display-message", "-p", f"#{{{what}}}").rstrip("\n")

    def close(self):
        try:
            self.tmux("kill-server")
        except RuntimeError:  # it has not begun, or has ended already
            pass
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
