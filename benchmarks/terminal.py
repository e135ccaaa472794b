"""`tcw open` in a pseudo-terminal of 120 by 40, for benchmarks of what it shows and when."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tcw.workbench.worker.guardian import cpu_seconds

TCW = [sys.executable, "-P", str(Path(__file__).resolve().parent.parent / "tcw" / "__main__.py")]
QUIET = 0.08
"""Seconds without output after which a frame is complete."""
Moment = tuple[float, float]
"""(seconds, CPU seconds) since the process started."""


class Terminal:
    """`tcw open` at the other end of a pseudo-terminal."""

    def __init__(self, path: Path) -> None:
        self.parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            [*TCW, "open", str(path)], stdin=child, stdout=child, stderr=child, env=environment
        )
        os.close(child)

    def opened(self, records: int, seconds: float = 60.0) -> tuple[Moment, Moment]:
        """When the first frame was shown, and when the timeline counted all records."""
        first: Moment | None = None
        seen = b""
        while time.monotonic() - self.start < seconds:
            if not select.select([self.parent], [], [], 0.05)[0]:
                continue
            seen += os.read(self.parent, 1 << 16)
            whole = f"/ {records:,} ".encode() in seen
            if whole or (first is None and b"help" in seen):
                now = time.monotonic() - self.start, cpu_seconds(self.process.pid)
                first = first or now
                if whole:
                    return first, now
        raise TimeoutError(f"{records} records")

    def wait(self, words: bytes, seconds: float = 60.0) -> float:
        """Read until `words` have arrived; returns how long that took."""
        start = time.monotonic()
        seen = b""
        while words not in seen:
            if time.monotonic() - start > seconds:
                raise TimeoutError(words.decode())
            if select.select([self.parent], [], [], 0.02)[0]:
                seen += os.read(self.parent, 1 << 16)
        return time.monotonic() - start

    def settle(self, quiet: float = QUIET) -> float:
        """Read until the output stops; returns the time of the last byte, 0 if there was none."""
        start, last = time.monotonic(), 0.0
        while select.select([self.parent], [], [], max(quiet, 0.4 if not last else quiet))[0]:
            os.read(self.parent, 1 << 16)
            last = time.monotonic() - start
        return last

    def key(self, key: bytes) -> float:
        os.write(self.parent, key)
        return self.settle()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.parent)
