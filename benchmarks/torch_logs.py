"""How soon `tcw explain LOGS` shows the logs of many ranks, and with how much memory.

    python benchmarks/torch_logs.py [--ranks 64] [--megabytes 1000] [--different] [--keep FOLDER]

Makes the logs from a real one (`tests/no_torch/torch_logs`): its compiles, again and again with
other frame numbers, for each rank with another process id. Two ranks differ from the others: one
has no last compile, one a graph break more. With `--different`, every rank differs: from a compile
of its own on, its graphs call another operation. Measures a fresh process: until its last line is
printed, CPU seconds and peak memory (ru_maxrss); then `tcw explain` of one log alone.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "tests" / "no_torch" / "torch_logs" / "torch-2.13.log.gz"
TCW = [sys.executable, "-P", str(ROOT / "tcw" / "__main__.py")]
FRAMES = 2
"""Frames of the log that is repeated."""
_START = re.compile(rb"(?m)^(?=V\d{4} )")
_FRAME = re.compile(rb'"frame_id": (\d+)')
_COMPILE = re.compile(rb'("compile_id": ")(\d+)/')
_CHECKSUM = re.compile(rb'"has_payload": "\w+"')


def entries() -> list[bytes]:
    return [part for part in _START.split(gzip.decompress(LOG.read_bytes())) if part]


def moved(entry: bytes, by: int, operation: bytes = b"relu") -> bytes:
    """The entry with its frame number raised, another operation in place of relu, and its checksum
    made right again."""
    header, newline, payload = entry.partition(b"\n")
    payload = payload.replace(b"torch.relu", b"torch." + operation)
    header = _FRAME.sub(lambda found: b'"frame_id": %d' % (int(found[1]) + by), header)
    header = _COMPILE.sub(lambda found: found[1] + b"%d/" % (int(found[2]) + by), header)
    payload = _COMPILE.sub(lambda found: found[1] + b"%d/" % (int(found[2]) + by), payload)
    if payload:
        plain = payload.removesuffix(b"\n")[1:].replace(b"\n\t", b"\n")
        checksum = hashlib.md5(plain, usedforsecurity=False).hexdigest().encode()
        header = _CHECKSUM.sub(b'"has_payload": "%s"' % checksum, header)
    return header + newline + payload


OPERATIONS = tuple(b"abs acos acosh asin asinh atan atanh ceil cos cosh".split())


def make(folder: Path, ranks: int, size: int, different: bool) -> int:
    """Write the logs; returns their bytes."""
    once = entries()
    copies = max(2, round(size / ranks / sum(map(len, once))))
    parts = [b"".join(moved(one, FRAMES * copy) for one in once) for copy in range(copies)]
    others = {
        (operation, copy): b"".join(moved(one, FRAMES * copy, operation) for one in once)
        for operation in (OPERATIONS if different else ())
        for copy in range(copies)
    }
    breaks = [one for one in once if b"dynamo_graph_break_reason" in one[:300]]
    total = 0
    for rank in range(ranks):
        mine = parts[:-1] if rank == ranks // 3 else parts
        mine = [*parts, moved(breaks[0], FRAMES * copies)] if rank == ranks // 2 else mine
        if different:
            own = OPERATIONS[rank % len(OPERATIONS)]
            first = rank // len(OPERATIONS) * copies // (ranks // len(OPERATIONS) + 1)
            mine = [*mine[:first], *(others[own, copy] for copy in range(first, copies))]
        body = re.sub(rb"(?m)^(V\S+ \S+) \d+ ", rb"\g<1> %d " % (4000 + rank), b"".join(mine))
        file = folder / f"dedicated_log_torch_trace_rank_{rank}_{rank:08x}.log"
        total += file.write_bytes(body)
    return total


def measured(*arguments: str) -> tuple[float, float, float, str]:
    """(seconds, CPU seconds, peak megabytes, what was printed)."""
    start = time.monotonic()
    with subprocess.Popen([*TCW, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - start
    if process.returncode:
        raise SystemExit(f"tcw {' '.join(arguments)} ended with {process.returncode}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--different", action="store_true", help="no two ranks say the same")
    parser.add_argument("--keep", type=Path, help="make the logs here, and leave them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        size = make(folder, given.ranks, int(given.megabytes * 1e6), given.different)
        one = str(sorted(folder.iterdir())[0])
        print(f"{given.ranks} ranks, {size / 1e6:,.0f} MB of logs")
        print(f"{'':>22}  {'seconds':>8}  {'CPU':>8}  {'memory':>8}")
        for name, what in (("all ranks", str(folder)), ("one rank", one)):
            took, cpu, peak, printed = measured("explain", what)
            print(f"{name:>22}  {took:7.2f}s  {cpu:7.2f}s  {peak:6.0f}MB")
            print(f"{'':>24}{printed.splitlines()[0]}")


if __name__ == "__main__":
    main()
