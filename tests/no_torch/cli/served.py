"""`tcw serve` as a process of its own, and who belongs to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SECONDS = 60


class Served:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        """With its key."""
        self.site = address.partition("?")[0]
        self.origin = self.site.removesuffix("/")
        self.number = int(self.origin.rpartition(":")[2])
        """Its port."""

    async def token(self, session: Any) -> str:
        """That of a new page."""
        async with session.get(self.address) as answer:
            match = re.search(r'data-token="([^"]+)"', await answer.text())
        assert match is not None
        return match[1]

    async def workbench(self, session: Any, **headers: str) -> Any:
        """The web socket of a new page."""
        token = await self.token(session)
        return await session.ws_connect(
            f"{self.site}ws/{token}?width=100&height=30",
            headers={"Origin": self.origin, **headers},
        )

    def rest(self) -> str:
        """What it printed after its address. It has to have ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def family(self) -> set[int]:
        """The server and all that it started, at any depth."""
        found = {self.process.pid}
        parents = dict(_parents())
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def interrupt(self) -> int:
        """ctrl-c; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SECONDS)


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if words[0] != "Z":
                yield int(entry.name), int(words[1])


def until(holds: Callable[[], object]) -> bool:
    """Whether it holds before long."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def gone(numbers: set[int]) -> bool:
    """Whether none of these processes is left, before long."""
    return until(lambda: not numbers & {number for number, _ in _parents()})


START = """
import sys
sys.path.insert(0, {root!r})
from tcw.workbench.web import connections, server
{changes}
from tcw.workbench.cli import run
run(sys.argv[1:])
"""


@contextmanager
def served(*words: str, cache: Path, changes: str = "") -> Iterator[Served]:
    """`tcw serve`; `changes` are statements that set its limits otherwise."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
    start = START.format(root=str(ROOT), changes=changes)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", start, "serve", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        match = re.search(r"http://\S+", line)
        assert match is not None, line + process.stdout.read()
        yield Served(process, match[0])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
