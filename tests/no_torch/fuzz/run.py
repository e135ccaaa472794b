"""Opens damaged traces one after the other, within bounds of memory and time:

    python -m tests.no_torch.fuzz.run FIRST COUNT [STEP]

A line of JSON for each trace that fails: its number, its damage, and the error. `damaged(number)`
makes that trace again.
"""

from __future__ import annotations

import gc
import json
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tcw.compiler.trace.reader import TraceError
from tests.no_torch.fuzz.damage import damaged
from tests.no_torch.fuzz.everything import open_everything

TIMES = 10
"""How many times the size of its file a trace may take in memory …"""
FLOOR = 64 << 20
"""… beside what any takes."""
SECONDS = 60
"""Of the processor; a trace takes well below one."""
LIMIT = 4 << 30
"""Address space: beyond it Python raises, before the machine suffers."""


def failure_of(number: int, folder: Path) -> dict[str, object] | None:
    """What goes wrong with trace `number`; None for nothing."""
    made = damaged(number)
    path = folder / "damaged.tcw"
    path.write_bytes(made.data)
    error = ""
    gc.collect()
    before = _begin_peak()
    try:
        with _within(SECONDS):
            open_everything(path, folder)
    except TraceError:
        pass  # told in words
    except BaseException:
        error = traceback.format_exc(limit=-6)
    used = _in_memory("VmHWM") - before
    if not error and used > TIMES * len(made.data) + FLOOR:
        error = f"{used >> 20} MB for a file of {len(made.data) / 1e6:.1f} MB"
    return {"number": number, "damage": made.said, "error": error} if error else None


def _begin_peak() -> int:
    """Bytes in memory now; the high-water mark starts here."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _in_memory("VmRSS")


def _in_memory(row: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == row:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"this kernel does not tell {row}")


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"not open after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main() -> None:
    first, count, *step = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    gc.freeze()  # the collections between traces do not visit what was imported
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(count):
            found = failure_of(first + turn * (step[0] if step else 1), Path(folder))
            if found is not None:
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
