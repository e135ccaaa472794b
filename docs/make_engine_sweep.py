"""`docs/engine-sweep.md` from the rows of `benchmarks/engine_sweep.py`, a column for each file.

python benchmarks/engine_sweep.py --threads 2 --results benchmarks/sweep-two-threads.jsonl
python benchmarks/engine_sweep.py --results benchmarks/sweep-one-thread.jsonl
TCW_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 python benchmarks/engine_sweep.py \
    --results benchmarks/sweep-avx2.jsonl
python docs/make_engine_sweep.py benchmarks/sweep-*.jsonl
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.backend import TORCH  # noqa: E402
from benchmarks.engine_sweep import (  # noqa: E402
    EAGER,
    KINDS,
    LARGE,
    against_inductor,
    lines,
    read,
    share,
    slower_kernel,
)
from benchmarks.sweep_workers import Row  # noqa: E402

PAGE = ROOT / "docs" / "engine-sweep.md"
WORST = 20
"""Rows of each table of single cases."""
LIMITS = (0.95, 0.9, 0.7)
"""Inductor's time over ours below which cases are counted."""

HEAD = f"""# The engine's sweep

Every operation of torch's op database and a set of fused patterns, in several sizes, dtypes and
layouts, forward, and forward and backward: cases drawn at random, called in turn through
torch.compile. `Inductor/tcw` above 1 means that tcw is faster. [performance.md](performance.md) has
the targets. Written by `docs/make_engine_sweep.py`, which says how to make the rows and this page.

`{TORCH}` is the same function compiled by a backend that computes nothing: the time of guards,
AOTAutograd's wrappers and autograd in any compiled call. Where eager's time is below it, no engine
can be as fast as eager through torch.compile.
"""


class Sweep(NamedTuple):
    """The rows of one file."""

    name: str
    runs: list[Row]
    rows: dict[str, Row]

    @classmethod
    def of(cls, file: Path) -> Sweep:
        """Raises ValueError if the file has no rows, or rows of several numbers of threads."""
        every = lines(file)
        threads = {row["threads"] for row in every}
        if len(threads) != 1:
            raise ValueError(f"{file} has rows of {len(threads)} numbers of threads")
        runs = [row for row in every if "run" in row]
        count = threads.pop()
        name = "one thread" if count == 1 else f"{count} threads"
        if any("TCW_ISA=" in run["run"] for run in runs):
            name = f"{runs[0]['run'].partition('TCW_ISA=')[2].partition(' ')[0].upper()}, {name}"
        return cls(name, runs, read(file, count))

    @property
    def timed(self) -> dict[str, Row]:
        return {key: row for key, row in self.rows.items() if "tcw" in row}

    @property
    def with_eager(self) -> dict[str, Row]:
        """The cases that count in the comparison with eager."""
        return {key: row for key, row in self.timed.items() if row["eager"] >= LARGE}


def inductor(rows: dict[str, Row]) -> list[float]:
    return [against_inductor(case) for case in rows.items()]


def eager(rows: dict[str, Row]) -> list[float]:
    return [row["eager"] / row["tcw"] for row in rows.values()]


def beyond_torch(rows: dict[str, Row]) -> dict[str, Row]:
    """The cases that are slower than eager by more than what torch takes for any compiled call."""
    return {
        key: row
        for key, row in rows.items()
        if row["eager"] < EAGER * row["tcw"] and slower_kernel(row)
    }


def percent(count: int, total: int) -> str:
    return f"{count} ({count / total:.1%})"


FIGURES: list[tuple[str, Callable[[Sweep], str]]] = [
    ("cases", lambda sweep: f"{len(sweep.timed):,}"),
    (
        "Inductor/tcw, geometric mean",
        lambda sweep: f"{statistics.geometric_mean(inductor(sweep.timed)):.2f}",
    ),
    *(
        (
            f"… below {limit} of Inductor",
            lambda sweep, limit=limit: share(inductor(sweep.timed), limit),
        )
        for limit in LIMITS
    ),
    ("… worst", lambda sweep: f"{min(inductor(sweep.timed)):.2f}"),
    (f"cases of {LARGE * 1e6:.0f} µs or more in eager", lambda sweep: f"{len(sweep.with_eager):,}"),
    (
        "eager/tcw, geometric mean",
        lambda sweep: f"{statistics.geometric_mean(eager(sweep.with_eager)):.2f}",
    ),
    (f"… below {EAGER} of eager", lambda sweep: share(eager(sweep.with_eager), EAGER)),
    (
        f"… and slower by more than `{TORCH}`",
        lambda sweep: percent(len(beyond_torch(sweep.with_eager)), len(sweep.with_eager)),
    ),
]


def figures(sweeps: list[Sweep]) -> Iterator[str]:
    yield f"| | {' | '.join(sweep.name for sweep in sweeps)} |"
    yield "|---" * (len(sweeps) + 1) + "|"
    for label, figure in FIGURES:
        yield f"| {label} | {' | '.join(figure(sweep) for sweep in sweeps)} |"
    for kind in KINDS:
        counts = [sum(kind in row for row in sweep.rows.values()) for sweep in sweeps]
        if any(counts):
            yield f"| {kind} | {' | '.join(str(count) for count in counts)} |"


def groups(sweeps: list[Sweep]) -> Iterator[str]:
    """Inductor/tcw by what the key of a case ends in: dtype, size, layout, way."""
    yield f"| Inductor/tcw | {' | '.join(sweep.name for sweep in sweeps)} |"
    yield "|---" * (len(sweeps) + 1) + "|"
    for place in (-1, -3, -2, -4):
        values = dict.fromkeys(key.split(" ")[place] for sweep in sweeps for key in sweep.timed)
        for value in sorted(values):
            cells = []
            for sweep in sweeps:
                rows = {k: row for k, row in sweep.timed.items() if k.split(" ")[place] == value}
                mean = f"{statistics.geometric_mean(inductor(rows)):.2f}" if rows else "–"
                cells.append(f"{mean} of {len(rows):,}")
            yield f"| {value} | {' | '.join(cells)} |"


def table(cases: list[tuple[str, Row]]) -> Iterator[str]:
    """Single cases, microseconds a call."""
    yield f"| case | eager | {TORCH} | Inductor | tcw | Inductor/tcw | eager/tcw |"
    yield "|---|---|---|---|---|---|---|"
    for key, row in cases[:WORST]:
        times = [row.get(side, 0.0) * 1e6 for side in ("eager", TORCH, "inductor", "tcw")]
        yield (
            f"| {key} | {' | '.join(f'{time:,.0f}' for time in times)}"
            f" | {row['inductor'] / row['tcw']:.2f} | {row['eager'] / row['tcw']:.2f} |"
        )


def section(sweep: Sweep) -> Iterator[str]:
    """How the rows of a file were made, and the worst of them."""
    yield f"## {sweep.name[0].upper()}{sweep.name[1:]}"
    yield ""
    for run in sweep.runs:
        yield f"- `{run['run']}`: {run['machine']}, {run['versions']}, {run['day']}"
    yield ""
    yield "The worst against Inductor, microseconds a call:"
    yield ""
    yield from table(sorted(sweep.timed.items(), key=against_inductor))
    slower = beyond_torch(sweep.with_eager)
    if slower:
        yield ""
        yield f"The worst against eager, of {len(slower)} that lose by more than `{TORCH}`:"
        yield ""
        yield from table(sorted(slower.items(), key=lambda case: case[1]["eager"] / case[1]["tcw"]))
    yield ""


def page(sweeps: list[Sweep]) -> str:
    parts = [HEAD, "## Results", "", *figures(sweeps), ""]
    parts += ["By kind of case, geometric means:", "", *groups(sweeps), ""]
    parts += [text for sweep in sweeps for text in section(sweep)]
    return "\n".join(parts)


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    try:
        sweeps = [Sweep.of(Path(name)) for name in sys.argv[1:]]
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    PAGE.write_text(page(sweeps), encoding="utf-8")


if __name__ == "__main__":
    main()
