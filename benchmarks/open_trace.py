"""How fast `tcw open` shows a large trace, and how much memory it takes.

    python benchmarks/open_trace.py [megabytes]

Opens a synthetic trace (`traces.py`: one model of 5,000 operations, its steps, fusion pairs,
kernels and texts) five times, in a fresh process in a pseudo-terminal. Times are from the start of
the process to the first frame, and to the overview of the whole trace; CPU seconds are printed as
well, as a busy machine affects them less. Memory is the peak resident size (VmHWM): at that point,
and after source, graph, fusion, kernels, memory and picture were shown.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.terminal import Terminal  # noqa: E402

RUNS = 5


LOOKS = (b"source, graph", b"fusion dec", b"the kernels", b"memory plan", b"picture of")
"""Typed into the palette, one after the other."""


def peak(process: int) -> float:
    """Peak resident memory in megabytes (10^6 bytes)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    value = next(line for line in lines if line.startswith("VmHWM")).split()[1]
    return int(value) * 1024 / 1e6


def opened(path: Path, records: int) -> tuple[float, ...]:
    """(seconds to the first frame, seconds until everything is read and shown, CPU seconds; peak
    memory then, and after the large panes were shown)."""
    terminal = Terminal(path)
    (first, _), (whole, cpu) = terminal.opened(records)
    first_peak = peak(terminal.process.pid)
    for words in LOOKS:
        for key in (b":", *(bytes([letter]) for letter in words), b"\r"):
            terminal.key(key)
        terminal.settle(0.5)
    looked = peak(terminal.process.pid)
    terminal.close()
    return first, whole, cpu, first_peak, looked


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
    names = ("first frame", "whole trace shown", "processor", "memory", "memory, all looked at")
    print(f"tcw open, {size:.1f} MB, {count:,} records; medians and worst of {RUNS}")
    units = ("s", "s", "s", "MB", "MB")
    for name, values, unit in zip(names, zip(*runs, strict=True), units, strict=True):
        middle, worst = statistics.median(values), max(values)
        digits = 2 if unit == "s" else 0
        print(f"{name:>22}  {middle:7.{digits}f} {unit}  {worst:7.{digits}f} {unit}")


if __name__ == "__main__":
    main()
