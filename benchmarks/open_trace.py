"""How fast `tcw open` shows a large trace, and how much memory it takes.

    python benchmarks/open_trace.py [megabytes]

A synthetic trace (`traces.py`: one model of 5,000 operations, its steps, fusion pairs, kernels and
texts) in a fresh process in a pseudo-terminal, five times; from the start of the process until the
first frame, and until the overview of the whole trace stands. Resident memory is read from
/proc when it stands, and its peak.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TCW = [sys.executable, "-P", str(ROOT / "tcw.py")]
RUNS = 5


def memory(process: int) -> tuple[float, float]:
    """Resident megabytes (10^6 bytes) now, and at the peak."""
    found = {}
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(value.split()[0]) * 1024 / 1e6
    return found["VmRSS"], found["VmHWM"]


def opened(path: Path, records: int) -> tuple[float, float, float, float]:
    """Seconds until the first frame and until everything is read and shown; resident and peak."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    start = time.monotonic()
    process = subprocess.Popen(
        [*TCW, "open", str(path)], stdin=child, stdout=child, stderr=child, env=environment
    )
    first = whole = 0.0
    seen = b""
    while not whole and time.monotonic() - start < 60:
        if not select.select([parent], [], [], 0.05)[0]:
            continue
        seen += os.read(parent, 1 << 16)
        now = time.monotonic() - start
        read = f"/ {records:,} ".encode() in seen
        if not first and (read or b"help" in seen):
            first = now
        if read:
            whole = now
    resident, peak = memory(process.pid)
    process.kill()
    process.wait()
    os.close(parent)
    os.close(child)
    return first, whole, resident, peak


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.tcw"
        subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / "traces.py"), str(path), str(megabytes)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with path.open("rb") as stream:
            count = sum(1 for _ in stream)
        runs = [opened(path, count) for _ in range(RUNS)]
        size = path.stat().st_size / 1e6
    names = ("first frame", "whole trace shown", "resident", "peak")
    print(f"tcw open, {size:.1f} MB, {count:,} records; medians and worst of {RUNS}")
    units = ("s", "s", "MB", "MB")
    for name, values, unit in zip(names, zip(*runs, strict=True), units, strict=True):
        middle, worst = statistics.median(values), max(values)
        digits = 2 if unit == "s" else 0
        print(f"{name:>18}  {middle:7.{digits}f} {unit}  {worst:7.{digits}f} {unit}")


if __name__ == "__main__":
    main()
