"""Every operation that the engine compiles, against Inductor and eager: a sweep for cliffs.

    python benchmarks/engine_sweep.py [--quick] [--only NAME] [--worse-than 0.9] [--threads 1]
                                      [--results FILE] [--again] [--seconds 0.3]
                                      [--jobs 14] [--seed 1] [--count 250] [--minutes 8]
                                      [--print]

Cases come from torch's op database (`growing.py` grows its samples to three sizes) and from
fused patterns (`fused_patterns.py`), in several dtypes and layouts, forward, and forward and
backward. The sides are called in turn through torch.compile, as a user calls them; each time is the
lower quartile of the rounds, in CPU time of the thread (wall time of several threads).

A fourth column, `torch`, is what guards, AOTAutograd's wrappers and autograd take in any compiled
call: the same function compiled by a backend that computes nothing. It is called after eager's
call, in turn, and eager's time is subtracted. Alone, in a loop, its code and tables would stay in
the processor's caches, which the kernels of a real call displace. Where ours is slower than eager,
but would not be without that, the summary counts the case as torch's own call; all others are our
kernels (or a library's call).

The results are lines of JSON in a file that git ignores, appended as they come: a sweep that was
interrupted goes on where it ended, and `--print` only prints. Before its rows, each run appends a
line with its command, the machine, the versions and the day. `docs/make_engine_sweep.py` makes
`docs/engine-sweep.md` from such files. `--only` selects names that contain it (or the whole key,
`pad float32 medium contiguous forward`); `--again` measures its cases anew, and with
`--worse-than 0.9` only those below this ratio of Inductor's time over ours, or slower than eager by
more than torch's own call. A case that ends its process is recorded as a crash of the side that was
first called last.

No case that stays a loop should be below 0.7 of Inductor. An operation that is an ATen call, such
as a special function, takes what eager takes: it is compared with eager.

The whole sweep takes hours on one core. `--jobs N` measures N cases at a time, each on cores of its
own (`--threads 2`: two). The order of the cases is random, and a seed's is always the same: a sweep
that `--count` or `--minutes` ends has measured a fair sample.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.backend import TORCH  # noqa: E402
from benchmarks.sweep_workers import Row, in_workers, measure, serve  # noqa: E402

RESULTS = ROOT / "benchmarks" / "engine_sweep.jsonl"
CHILD = "--child"
"""The option that starts the process that measures."""
KINDS = ("skipped", "failed", "crashed")
"""What a case without times is."""
EAGER = 0.95
"""Eager's time over ours below which a case is slower than eager."""
LARGE = 50e-6
"""Seconds of eager from which a case counts in the comparison with eager."""


def lines(results: Path) -> list[Row]:
    """The rows of a file, and the lines of the runs that measured them (`run`)."""
    if not results.exists():
        return []
    return [json.loads(text) for text in results.read_text().splitlines()]


def read(results: Path, threads: int) -> dict[str, Row]:
    """The last row of each case with this many threads."""
    return {
        row["case"]: row for row in lines(results) if "case" in row and row["threads"] == threads
    }


def described(threads: int) -> Row:
    """A run: its command, and what its times depend on."""
    import torch

    from tcw.compiler.processor import processor_name

    settings = [
        f"{name}={os.environ[name]}"
        for name in ("TCW_ISA", "ATEN_CPU_CAPABILITY")
        if name in os.environ
    ]
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    return {
        "run": " ".join([*settings, "engine_sweep.py", shlex.join(sys.argv[1:])]).rstrip(),
        "threads": threads,
        "machine": f"{processor_name()}, {len(os.sched_getaffinity(0))} cores",
        "versions": f"torch {torch.__version__}, {compiler.stdout.splitlines()[0]}",
        "day": datetime.date.today().isoformat(),
    }


def line(key: str, row: Row) -> str:
    eager, inductor, ours = (row[side] for side in ("eager", "inductor", "tcw"))
    torch = f"{row[TORCH] * 1e6:9.1f}" if TORCH in row else f"{'':9}"
    return (
        f"{key:56.56} {eager * 1e6:9.1f} {torch} {inductor * 1e6:9.1f} {ours * 1e6:9.1f}"
        f" {inductor / ours:8.2f} {eager / ours:7.2f}"
    )


def summary(rows: dict[str, Row]) -> list[str]:
    """What the sweep is judged by."""
    timed = [row for row in rows.values() if "tcw" in row]
    if not timed:
        return ["no case was measured"]
    against = [row["inductor"] / row["tcw"] for row in timed]
    eager = [row for row in timed if row["eager"] >= LARGE]
    kinds = {kind: sum(kind in row for row in rows.values()) for kind in KINDS}
    found = [
        f"{len(timed)} cases; {kinds['skipped']} skipped, {kinds['failed']} failed,"
        f" {kinds['crashed']} crashed",
        *(f"  skipped: {count:5}  {why}" for why, count in skipped(rows.values())),
        f"Inductor's time over ours: geomean {statistics.geometric_mean(against):.2f}, worst"
        f" {min(against):.2f}; below 0.9 {share(against, 0.9)}, below 0.7 {share(against, 0.7)}",
    ]
    if eager:
        ratios = [row["eager"] / row["tcw"] for row in eager]
        own = [
            ratio if slower_kernel(row) else 1.0 for ratio, row in zip(ratios, eager, strict=True)
        ]
        found += [
            f"eager's over ours, where eager takes {LARGE * 1e6:.0f} µs or more ({len(eager)}):"
            f" geomean {statistics.geometric_mean(ratios):.2f}, worst {min(ratios):.2f}; below"
            f" {EAGER:.2f} {share(ratios, EAGER)}",
            f"  of these slower than eager even without what torch's compiled call takes by"
            f" itself: {share(own, EAGER)}",
        ]
    return found


def against_inductor(case: tuple[str, Row]) -> float:
    """Inductor's time over ours, of a case that was measured."""
    return float(case[1]["inductor"] / case[1]["tcw"])


def behind(row: Row, limit: float) -> bool:
    """Whether Inductor's time over ours is below the limit, or the case counts against us in the
    comparison with eager."""
    if "tcw" not in row:
        return False
    slower = row["eager"] >= LARGE and slower_kernel(row)
    return slower or bool(row["inductor"] < limit * row["tcw"])


def slower_kernel(row: Row) -> bool:
    """Whether ours takes longer than eager although torch's own cost of the call is left out."""
    return bool(row["eager"] < EAGER * (row["tcw"] - row.get(TORCH, 0.0)))


def skipped(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Why cases have no times, most frequent reason first."""
    reasons = Counter(row["skipped"].split(": ")[0] for row in rows if "skipped" in row)
    return reasons.most_common()


def share(values: list[float], limit: float) -> str:
    count = sum(value < limit for value in values)
    return f"{count} ({count / len(values):.1%})"


def shuffled(chosen: list[Any], seed: int) -> list[Any]:
    """The cases in an order that is random, and always the same for a seed."""
    return sorted(chosen, key=lambda case: zlib.crc32(f"{seed} {case.key}".encode()))


def sweep(given: argparse.Namespace, chosen: list[Any]) -> None:
    """Measure the cases that have no row yet, and append their rows."""
    known = read(given.results, given.threads)
    left = [case.key for case in shuffled(chosen, given.seed) if case.key not in known]
    measured = sum("tcw" in known[case.key] for case in chosen if case.key in known)
    with given.results.open("a") as stream:
        if left:
            print(json.dumps(described(given.threads)), file=stream, flush=True)

        def found(key: str, row: Row) -> bool:
            nonlocal measured
            print(json.dumps({"case": key, "threads": given.threads, **row}), file=stream)
            stream.flush()
            if "tcw" in row:
                measured += 1
                print(line(key, row), flush=True)
            return given.count is None or measured < given.count

        in_workers(
            left,
            [sys.executable, *sys.argv, CHILD],
            jobs=given.jobs,
            threads=given.threads,
            until=time.monotonic() + 60 * given.minutes,
            found=found,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="f32, contiguous, medium, forward")
    parser.add_argument("--only", default="", help="names or keys that contain this")
    parser.add_argument("--worse-than", type=float, help="print measured cases below this ratio")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="measure known cases anew")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time, each on its cores")
    parser.add_argument("--seed", type=int, default=0, help="of the random order of the cases")
    parser.add_argument("--count", type=int, help="stop when this many have been measured")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    parser.add_argument(CHILD, action="store_true", dest="child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    from benchmarks.sweep_cases import cases

    chosen = [case for case in cases(given.quick) if given.only in case.key]
    if given.child:
        serve(
            {case.key: case for case in chosen},
            given.threads,
            lambda case, said: measure(case, given.seconds, given.threads, said),
        )
        return
    if given.again and given.worse_than is not None:
        known = read(given.results, given.threads)
        chosen = [case for case in chosen if behind(known.get(case.key, {}), given.worse_than)]
    if given.again:
        forget(given.results, {case.key for case in chosen}, given.threads)
    if not given.print:
        try:
            sweep(given, chosen)
        except ValueError as error:
            raise SystemExit(str(error)) from None
    rows = read(given.results, given.threads)
    rows = {case.key: rows[case.key] for case in chosen if case.key in rows}
    if given.worse_than is not None:
        print(
            f"{'microseconds a call':56} {'eager':>9} {TORCH:>9} {'inductor':>9} {'tcw':>9}"
            " inductor/  eager/"
        )
        timed = [(key, row) for key, row in rows.items() if "tcw" in row]
        for key, row in sorted(timed, key=against_inductor):
            if min(row["inductor"], row["eager"]) / row["tcw"] < given.worse_than:
                print(line(key, row))
        for key, row in rows.items():
            if "failed" in row or "crashed" in row:
                what = row.get("failed") or f"crash of {row.get('side', 'eager')}"
                print(f"{key:56.56} {what}: {row.get('error', '')}")
    print("\n".join(summary(rows)))


def forget(results: Path, keys: set[str], threads: int) -> None:
    """Remove the rows of these cases."""
    rows = lines(results)
    kept = [row for row in rows if row.get("case") not in keys or row["threads"] != threads]
    if len(kept) < len(rows):
        results.write_text("".join(f"{json.dumps(row)}\n" for row in kept))


if __name__ == "__main__":
    main()
