"""`tcw` in a real terminal: tmux types the keys and reads the screen."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tcw.workbench import DOOR

SECONDS = 120.0
"""The most that a screen is waited for: a loaded machine is no failure."""
EVERY = 0.1
"""Seconds between two looks."""

_UNSET = [word for name in ("NO_COLOR", "COLUMNS", "LINES") for word in ("-u", name)]

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """One tmux server with one window, in which one command runs."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", os.devnull)

    def run(self, *words: str) -> str:
        done = subprocess.run((*self._tmux, *words), capture_output=True, text=True, timeout=60)
        return done.stdout

    @property
    def screen(self) -> str:
        return self.run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def type(self, words: str) -> None:
        self.run("send-keys", "-l", words)

    def until(self, words: str) -> str:
        """Wait for what this expression finds on the screen; returns the screen."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            screen = self.screen
            if re.search(words, screen):
                return screen
            if not screen and not self.run("list-panes"):
                pytest.fail(f"the terminal is gone; waited for {words!r}")
            time.sleep(EVERY)
        pytest.fail(f"{words!r} did not come in {SECONDS:.0f} s:\n{self.screen}")

    def at(self, key: str, words: str) -> str:
        """Press a key and wait for what it brings."""
        self.press(key)
        return self.until(words)


@contextmanager
def terminal(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], size: str = "150x45"
) -> Iterator[Terminal]:
    """`tcw` with these arguments, in `folder`; at its end the screen says `left with CODE`."""
    width, _, height = size.partition("x")
    command = shlex.join([sys.executable, DOOR, *arguments])
    setting = [f"{name}={value}" for name, value in environment.items()]
    words = shlex.join(["env", *_UNSET, "TERM=tmux-256color", *setting])
    # a socket's path may have 107 bytes at most
    one = Terminal(Path("/tmp") / f"tcw-{uuid.uuid4().hex[:12]}")
    one.run(
        "new-session", "-d", "-x", width, "-y", height, "-c", str(folder),
        f"{words} {command}; echo left with $?; sleep 300",
    )  # fmt: skip
    try:
        yield one
    finally:
        one.run("kill-server")
