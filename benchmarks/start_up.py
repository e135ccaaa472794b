"""How fast tcw starts: `tcw --help`, the first frame of `tcw open`, and a whole large trace.

    python benchmarks/start_up.py [megabytes]

Each row is a fresh process, for `tcw open` in a pseudo-terminal, timed from its start: until the
first frame is on the terminal, and until the whole trace is read and shown. Wall-clock and CPU
seconds, medians of five.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.terminal import TCW, Terminal  # noqa: E402
from tests.block_trace import block_trace, large_trace  # noqa: E402

RUNS = 5


def write(path: Path, megabytes: float) -> None:
    """Write a trace of at least this many megabytes; for 0, the block's own."""
    records = large_trace(int(megabytes * 1000)) if megabytes else block_trace()
    with path.open("wb") as stream:
        for record in records:
            stream.write(msgspec.json.encode(record) + b"\n")


def opened(path: Path, count: int) -> tuple[float, float, float, float]:
    """Seconds until the first frame and until the timeline counts all records; then the same in CPU
    seconds, which a busy machine affects less."""
    terminal = Terminal(path)
    (first, first_cpu), (whole, whole_cpu) = terminal.opened(count)
    terminal.close()
    return first, whole, first_cpu, whole_cpu


def helped() -> tuple[float, float]:
    """Seconds and CPU seconds of `tcw --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run([*TCW, "--help"], stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    large = float(sys.argv[1]) if len(sys.argv) > 1 else 50
    wall, cpu = map(statistics.median, zip(*(helped() for _ in range(RUNS)), strict=True))
    print(f"tcw --help  {wall:.2f} s ({cpu:.2f} CPU)\n\ntcw open")
    print(f"{'trace':>10} {'records':>9} {'first frame':>20} {'whole trace':>20}")
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in (0.0, large):
            path = Path(folder) / "trace.tcw"
            write(path, megabytes)
            size = path.stat().st_size / 1e6
            with path.open("rb") as stream:
                count = sum(1 for _ in stream)
            times = [opened(path, count) for _ in range(RUNS)]
            first, whole, first_cpu, whole_cpu = map(statistics.median, zip(*times, strict=True))
            shown = f"{first:.2f} s ({first_cpu:.2f} CPU)", f"{whole:.2f} s ({whole_cpu:.2f} CPU)"
            print(f"{size:>7.1f} MB {count:>9,} {shown[0]:>20} {shown[1]:>20}")


if __name__ == "__main__":
    main()
