"""Whether two runs of `tcw profile` rank the same: the largest losses and gains, false regressions.

    python benchmarks/profile_ranking.py [--runs 3] [--engine both] [--only NAME] [FILE …]

Each run is a separate process that compiles the model anew. Runs are compared in pairs:

    same order    the first five rows as printed
    same rows     the same five, in any order
    contradict    one is above another in one run, and below it in the other; ties do not count
    lost          rows called lost in a run
    unconfirmed   of those, rows that another run calls won, or finds within its noise
    false         of those, rows that another run calls won, or whose difference in the other run
                  deviates by more than the noise of both: not a real regression

On a busy machine a profile has no rows. `FILE`: models to use instead of the four. Prints the table
and writes nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("gpt", "llama_block", "resnet_block", "softmax_layernorm")
TOP = 5

Name = tuple[str, ...]
"""A row's identity in every run: label, phase, lines."""


@dataclass(frozen=True)
class Row:
    """One row of one run; times in seconds."""

    name: Name
    rank: int
    difference: float
    noise: float
    standing: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engine", choices=("inductor", "tcw", "both"), default="both")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    engines = ("inductor", "tcw") if arguments.engine == "both" else (arguments.engine,)
    sys.path.insert(0, str(ROOT))
    for file in arguments.files or [ROOT / "sample_models" / f"{model}.py" for model in MODELS]:
        if arguments.only not in file.stem:
            continue
        every = [run(file, arguments.engine, arguments.rounds) for _ in range(arguments.runs)]
        for engine in engines:
            show(file.stem, engine, [one[engine] for one in every if engine in one])


def run(file: Path, engine: str, rounds: int) -> dict[str, list[Row]]:
    """Engine -> all rows of one run, in printed order."""
    from tcw.viewers.recording import Recording
    from tcw.viewers.summary.profile import profiles_of

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "run.tcw"
        command = [
            sys.executable,
            str(ROOT / "tcw" / "__main__.py"),
            "profile",
            str(file),
            "--engine",
            engine,
        ]
        command += ["--engine", engine, "--rounds", str(rounds), "--trace", str(trace)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not trace.exists():
            print(f"{file.stem}: {done.stderr[-300:]}")
            return {}
        found = {}
        for profile in profiles_of(Recording.open(trace)):
            print(f"  {file.stem} {profile.engine}: load {load:.1f}, {profile.verdict.detail}")
            found[profile.engine] = [
                Row(
                    (row.label, row.phase, *(str(location.line) for location in row.locations)),
                    row.rank,
                    row.difference,
                    row.noise,
                    row.standing,
                )
                for row in profile.rows
            ]
        return found


def show(model: str, engine: str, runs: Sequence[Sequence[Row]]) -> None:
    """Print the first five rows of each run, and the comparison of each pair."""
    for number, rows in enumerate(runs, 1):
        words = (
            f"{row.rank}. {row.name[0]}:{','.join(row.name[2:4])} {row.difference * 1e6:+.1f}"
            for row in first(rows)
        )
        print(f"  run {number}: {'; '.join(words)}")
        for row in rows:
            if row.standing == "lost":
                noise = f"{row.difference * 1e6:+.1f} ±{row.noise * 1e6:.1f} µs"
                print(f"    called slower: {row.name[0]}:{','.join(row.name[2:4])} {noise}")
    pairs = list(combinations(runs, 2))
    same = sum([r.name for r in first(a)] == [r.name for r in first(b)] for a, b in pairs)
    rows = sum({r.name for r in first(a)} == {r.name for r in first(b)} for a, b in pairs)
    against = sum(contradict(a, b) for a, b in pairs)
    lost = sum(row.standing == "lost" for one in runs for row in one)
    pairs_of_runs = [(a, b) for a in runs for b in runs if a is not b]
    alone = {(id(a), row.name) for a, b in pairs_of_runs for row in unconfirmed(a, b)}
    false = {(id(a), row.name) for a, b in pairs_of_runs for row in refuted(a, b)}
    print(
        f"{model:18} {engine:9} {len(runs)} runs, {len(pairs)} pairs: same order {same}, "
        f"same rows {rows}, contradict {against}; lost {lost}, unconfirmed {len(alone)}, "
        f"false {len(false)}",
        flush=True,
    )


def first(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.rank][:TOP]


def contradict(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Whether two of either run's first five are in the opposite order."""
    places = [{row.name: row.rank for row in rows if row.rank} for rows in (one, other)]
    names = {row.name for rows in (one, other) for row in first(rows)}
    both = [name for name in names if all(name in place for place in places)]
    return any(
        places[0][a] < places[0][b] and places[1][a] > places[1][b] for a in both for b in both
    )


def unconfirmed(one: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    """Rows that are lost in the first run but not in the second."""
    lost = {row.name for row in other if row.standing == "lost"}
    return [row for row in one if row.standing == "lost" and row.name not in lost]


def refuted(one: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    """Unconfirmed rows that the second run contradicts."""
    known = {row.name: row for row in other}
    return [
        row
        for row in unconfirmed(one, other)
        if (there := known.get(row.name)) is not None
        and (
            there.standing == "won"
            or abs(row.difference - there.difference) > hypot(row.noise, there.noise)
        )
    ]


if __name__ == "__main__":
    main()
