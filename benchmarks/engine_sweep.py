"""Every operation that the engine compiles, against Inductor and eager: a sweep for cliffs.

    python benchmarks/engine_sweep.py [--quick] [--only NAME] [--worse-than 0.9] [--threads 1]
                                      [--results FILE] [--again] [--seconds 0.3] [--part 2/16]

Cases come from torch's op database (`sweep_cases.py` grows its samples to three sizes) and from
fused patterns (`fused_patterns.py`), in several dtypes and layouts, forward, and forward and
backward. The three sides are called in turn through torch.compile, as a user calls them; each time
is the lower quartile of the rounds, in CPU time of the thread (wall time of several threads).

The results are lines of JSON in a file, appended as they come: a sweep that was interrupted goes on
where it ended, and `--worse-than` without new cases only prints. `--only` selects names that
contain it (or the whole key, `pad float32 medium contiguous forward`); `--again` measures its
cases anew. A case that ends the process is recorded as a crash. The whole sweep takes hours:
`--part 2/16` is the second of sixteen random parts, in random order, so that cores can share it
(each with its own results) and a sweep that is stopped has measured a fair sample.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import timing  # noqa: E402

RESULTS = ROOT / "benchmarks" / "engine_sweep.jsonl"
CHILD = "--child"
"""The option that starts the process that measures."""
A_CHILD = 100
"""Cases after which a new process is started, because compiled code stays in memory."""
MORE = 3
"""The exit code of a process that leaves cases to the next."""
SLOWEST = 0.3
"""Seconds of an eager call above which a case is not measured."""
PATIENCE = 180
"""Seconds after which a case is recorded as a crash."""
LARGE = 50e-6
"""Seconds of eager from which a case counts in the comparison with eager."""

Row = dict[str, Any]


def measure(case: Any, seconds: float, threads: int) -> Row:
    """The row of one case: seconds of each side, or why there are none."""
    import torch

    from benchmarks.backend import backend
    from benchmarks.sweep_cases import NoCase, called

    try:
        function, tensors = case.make()
        eager = partial(called, function, tensors, case.backward)
        eager()
        clock = timing.clock(threads)
        began = clock()
        eager()
        if clock() - began > SLOWEST:
            raise NoCase("slow in eager")
    except Exception as error:
        return {"skipped": f"{type(error).__name__}: {error}"[:200]}
    sides: dict[str, Callable[[], Any]] = {"eager": eager}
    for engine in ("inductor", "tcw"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend(engine), dynamic=False)
        sides[engine] = partial(called, compiled, tensors, case.backward)
        try:
            sides[engine]()
        except Exception as error:
            return {"failed": engine, "error": f"{type(error).__name__}: {error}"[:200]}
    times = timing.interleaved(sides, seconds, clock)
    return {side: timing.undisturbed(found) for side, found in times.items()}


def run_cases(cases: Sequence[Any], results: Path, seconds: float, threads: int) -> int:
    """Measure the cases in this process and append their rows."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    with results.open("a") as stream:
        for case in cases[:A_CHILD]:
            print(json.dumps({"case": case.key, "threads": threads, "begun": True}), file=stream)
            stream.flush()
            signal.alarm(PATIENCE)
            row = measure(case, seconds, threads)
            signal.alarm(0)
            print(json.dumps({"case": case.key, "threads": threads, **row}), file=stream)
            stream.flush()
            if "tcw" in row:
                print(line(case.key, row), flush=True)
    return MORE if len(cases) > A_CHILD else 0


def read(results: Path, threads: int) -> dict[str, Row]:
    """The last row of each case with this many threads."""
    found: dict[str, Row] = {}
    if results.exists():
        for text in results.read_text().splitlines():
            row = json.loads(text)
            if row["threads"] == threads:
                found[row["case"]] = row
    return found


def line(key: str, row: Row) -> str:
    eager, inductor, ours = (row[side] for side in ("eager", "inductor", "tcw"))
    return (
        f"{key:56.56} {eager * 1e6:9.1f} {inductor * 1e6:9.1f} {ours * 1e6:9.1f}"
        f" {inductor / ours:8.2f} {eager / ours:7.2f}"
    )


def summary(rows: dict[str, Row]) -> list[str]:
    """What the sweep is judged by."""
    timed = [row for row in rows.values() if "tcw" in row]
    if not timed:
        return ["no case was measured"]
    against = [row["inductor"] / row["tcw"] for row in timed]
    eager = [row["eager"] / row["tcw"] for row in timed if row["eager"] >= LARGE]
    kinds = {kind: sum(kind in row for row in rows.values()) for kind in ("skipped", "failed")}
    found = [
        f"{len(timed)} cases; {kinds['skipped']} skipped, {kinds['failed']} failed,"
        f" {sum('begun' in row for row in rows.values())} crashed",
        f"Inductor's time over ours: geomean {timing.geomean(against):.2f}, worst"
        f" {min(against):.2f}; below 0.9 {share(against, 0.9)}, below 0.7 {share(against, 0.7)}",
    ]
    if eager:
        found.append(
            f"eager's over ours, where eager takes {LARGE * 1e6:.0f} µs or more ({len(eager)}):"
            f" geomean {timing.geomean(eager):.2f}, worst {min(eager):.2f}; below 0.95"
            f" {share(eager, 0.95)}"
        )
    return found


def share(values: list[float], limit: float) -> str:
    count = sum(value < limit for value in values)
    return f"{count} ({count / len(values):.1%})"


def part(chosen: list[Any], asked: str) -> list[Any]:
    """The cases of `K/N`, the K-th of N parts, in an order that is random and always the same."""
    which, parts = (int(number) for number in asked.split("/"))
    if not 1 <= which <= parts:
        raise SystemExit(f"--part {asked}: it has to be from 1/{parts} to {parts}/{parts}")
    shuffled = sorted(chosen, key=lambda case: zlib.crc32(case.key.encode()))
    return shuffled[which - 1 :: parts]


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
    parser.add_argument("--part", metavar="K/N", help="one of N random parts of the cases")
    parser.add_argument(CHILD, action="store_true", dest="child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    from benchmarks.sweep_cases import cases

    chosen = [case for case in cases(given.quick) if given.only in case.key]
    if given.part:
        chosen = part(chosen, given.part)
    if given.child:
        known = read(given.results, given.threads)
        left = [case for case in chosen if case.key not in known]
        raise SystemExit(run_cases(left, given.results, given.seconds, given.threads))
    if given.again:
        forget(given.results, {case.key for case in chosen}, given.threads)
    environment = {**os.environ, **timing.SAME_ALLOCATOR, "TCW_STRICT": "1"}
    code = 0 if given.print else MORE
    while code:
        # a signal, SIGALRM included: the case that had begun is a crash, and the next are measured
        code = subprocess.run([sys.executable, *sys.argv, CHILD], env=environment).returncode
        if code not in (0, MORE) and code > 0:
            raise SystemExit(code)
    rows = read(given.results, given.threads)
    rows = {case.key: rows[case.key] for case in chosen if case.key in rows}
    if given.worse_than is not None:
        print(
            f"{'microseconds a call':56} {'eager':>9} {'inductor':>9} {'tcw':>9} inductor/ eager/"
        )
        timed = [(key, row) for key, row in rows.items() if "tcw" in row]
        for key, row in sorted(timed, key=lambda one: one[1]["inductor"] / one[1]["tcw"]):
            if min(row["inductor"], row["eager"]) / row["tcw"] < given.worse_than:
                print(line(key, row))
        for key, row in rows.items():
            if "failed" in row or "begun" in row:
                print(f"{key:56.56} {row.get('failed', 'crash')}: {row.get('error', '')}")
    print("\n".join(summary(rows)))


def forget(results: Path, keys: set[str], threads: int) -> None:
    """Remove the rows of these cases."""
    if not results.exists():
        return
    lines = results.read_text().splitlines()
    rows = [(text, json.loads(text)) for text in lines]
    kept = [text for text, row in rows if row["case"] not in keys or row["threads"] != threads]
    results.write_text("".join(f"{text}\n" for text in kept))


if __name__ == "__main__":
    main()
