"""The standard table: eager against compiled on five models, inference and training.

    python benchmarks/model_table.py                                        on a GPU machine
    python benchmarks/model_table.py --models bert,vit --tasks inference --json rows.jsonl
    python benchmarks/model_table.py --sides 'default,tcw,tcw reduce-overhead' --at-once 5
    python benchmarks/model_table.py --join rows.jsonl more.jsonl           the table of both runs
    python benchmarks/model_table.py --tiny --models bert                   small sizes, any machine

A row is a model and a task, measured in a separate process with empty caches. Eager and each side
(`default`, another mode of torch.compile, or a backend by name) run in alternating order: medians
of `--rounds` after five warm-ups, by CUDA events. A speedup is the median of the round-by-round
ratios, followed by its noise, max(3 MAD, 1%). Each side compiles into a separate cache folder. Its
compile seconds, wall and CPU (of all its processes), are those of its first calls beyond their run
time, after something else was compiled (so the compiler is imported and its processes run). With
`aot_eager` as the first side, they are without what only a process's first compile costs, and that
side's own are what torch's capture takes. Memory is what torch's allocator
reserves for one call beyond weights and inputs; with CUDA graphs that includes their pools.
Training is forward, loss and backward. With `--at-once`, several rows compile at the same time, and
each is timed when none compiles: their compile seconds are those of a busy machine.

A side below 1.0x names its cause: the first finding of `tcw profile` on that row, recorded in
another process, unless `--no-causes`. For `reduce-overhead` it concerns the kernels that its CUDA
graph replays, without the graph. `--json FILE` appends one line per row as soon as it is measured.
Rows that do not fit into `--seconds` are reported and left out, and `--join` combines runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_name("table_models.py")
TASKS = ("inference", "training")
PROFILE_SECONDS = 240
GRAPHS = "reduce-overhead"

Row = dict[str, Any]


def in_own_process(arguments: list[str], caches: str, seconds: float) -> Row:
    """The row that a child process measures, or why there is none."""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "TRITON_CACHE_DIR": f"{caches}/triton",
        "XDG_CACHE_HOME": f"{caches}/user",
        "TMPDIR": caches,
    }
    try:
        done = subprocess.run(
            [sys.executable, __file__, *arguments, "--child"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {seconds:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"model"')]
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or ["nothing on stderr"]
        return {"failed": f"the process ended with {done.returncode}: {said[-1][:200]}"}
    return dict(json.loads(lines[-1]))


def profile_command(row: Row, side: str, tiny: bool) -> list[str]:
    """The `tcw profile` command for one side of a row."""
    from benchmarks.table_models import MODELS

    choices = ", ".join(
        f"{name}=True"
        for name, wanted in (("training", row["task"] == "training"), ("tiny", tiny))
        if wanted
    )
    expression = f"{MODELS[row['model']][1].__name__}({choices})"
    options = ["--train" if row["task"] == "training" else "--no-grad"]
    if side.startswith("tcw"):
        options += ["--engine", "tcw"]
    elif side not in ("default", GRAPHS):  # a replay is one step: its kernels are default's
        options += ["--mode", side]
    return ["profile", str(FILE), "--model", expression, *options]


def cause(row: Row, side: str, tiny: bool) -> str:
    """The first finding of `tcw profile`, or why none is known."""
    command = [sys.executable, str(ROOT / "tcw" / "__main__.py"), *profile_command(row, side, tiny)]
    with tempfile.TemporaryDirectory(prefix="model-table-") as folder:
        trace = Path(folder) / "run.tcw"
        try:
            done = subprocess.run(
                [*command, "--quiet", "--trace", str(trace)],
                capture_output=True,
                text=True,
                timeout=PROFILE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not known: tcw profile was not done after {PROFILE_SECONDS} s"
        found = first_finding(trace) if trace.exists() else ""
    if found:
        return found
    said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
    return f"not known: tcw profile: {said[-1][:200]}"


def first_finding(trace: Path) -> str:
    """The first cause of a profile: what, where, and how much of a call."""
    from tcw.viewers.recording import Recording
    from tcw.viewers.summary.profile import profile_of

    profile = profile_of(Recording.open(trace))
    if profile is None:
        return ""
    if not profile.causes:
        return "no region lost more than the noise"
    first = profile.causes[0]
    if not first.lost:
        return "no region lost more than the noise"
    place = first.place
    where = f" ({Path(place.file).name}:{place.line})" if place is not None else ""
    return f"{first.title}{where}: {first.seconds * 1e6:+,.0f} µs a call"


def lost(row: Row) -> list[str]:
    """Sides that are slower than eager by more than the noise."""
    return [
        side
        for side, entry in row.get("sides", {}).items()
        if "speedup" in entry and entry["speedup"] < 1 / (1 + entry["noise"])
    ]


def make_rows(arguments: argparse.Namespace, wanted: list[tuple[str, str]]) -> Iterable[Row]:
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="model-table-") as lock:
        one = partial(make_row, arguments, began, lock.name if arguments.at_once > 1 else "")
        with ThreadPoolExecutor(arguments.at_once) as pool:
            for row in as_completed([pool.submit(one, name, task) for name, task in wanted]):
                yield row.result()


def make_row(arguments: argparse.Namespace, began: float, lock: str, name: str, task: str) -> Row:
    """One row, in a process of its own."""
    left = arguments.seconds - (time.monotonic() - began)
    if left < 30:
        return {"model": name, "task": task, "failed": "left out: the time was up"}
    caches = tempfile.mkdtemp(prefix="model-table-")
    options = ["--models", name, "--tasks", task, "--sides", arguments.sides]
    options += ["--rounds", str(arguments.rounds), *(["--tiny"] if arguments.tiny else [])]
    options += ["--lock", lock]
    try:
        row = {"model": name, "task": task} | in_own_process(
            options, caches, min(left, arguments.row_seconds)
        )
    finally:
        shutil.rmtree(caches, ignore_errors=True)
    for side in lost(row) if not arguments.no_causes else ():
        if arguments.seconds - (time.monotonic() - began) > 60:
            same = row["sides"].get("default", {}).get("cause", "") if side == GRAPHS else ""
            row["sides"][side]["cause"] = same or cause(row, side, arguments.tiny)
    return row


def joined(files: list[Path]) -> list[Row]:
    """The rows of several runs: for each model and task, the latest that was measured."""
    found: dict[tuple[str, str], Row] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            key = (row["model"], row["task"])
            if key not in found or "failed" not in row:
                found[key] = row
    return list(found.values())


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table, followed by the causes of slower sides."""
    from benchmarks.table_models import MODELS

    order = {key: number for number, key in enumerate((m, t) for m in MODELS for t in TASKS)}
    rows = sorted(rows, key=lambda row: order.get((row["model"], row["task"]), len(order)))
    sides = list(dict.fromkeys(side for row in rows for side in row.get("sides", {})))
    heads = ["model", "task", "eager ms", *sides, "compile s", "CPU s", "reserved MB"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    notes: list[str] = []
    for row in rows:
        title = row.get("title") or MODELS[row["model"]][0]
        if "failed" in row:
            lines.append(f"| {title} | {row['task']} | {row['failed']} |{' |' * (len(heads) - 3)}")
            continue
        entries = [row["sides"].get(side, {"failed": "not run"}) for side in sides]
        cells = [title, row["task"], _ms(row["eager"]), *map(_ratio, entries)]
        for name in ("compile_seconds", "compile_cpu_seconds"):
            cells.append(", ".join(_number(one.get(name)) for one in entries))
        peaks = [row["eager"], *entries]
        cells.append(", ".join(_number(peak.get("peak_bytes"), 1e6) for peak in peaks))
        lines.append(f"| {' | '.join(cells)} |")
        for side, entry in zip(sides, entries, strict=True):
            if entry.get("speedup", 1) < 1:
                why = entry.get("cause")
                if side not in lost(row):
                    why = "inside the noise"
                notes.append(f"- {title}, {row['task']}, {side}: {why or 'no cause was asked for'}")
        if row.get("note"):
            notes.append(f"- {title}, {row['task']}: {row['note']}")
    told = dict.fromkeys(
        f"{row['device']}, torch {row['torch']}, Python {row['python']}, {row['date']}; medians of "
        f"{row['rounds']} rounds"
        for row in rows
        if "device" in row
    )
    return "\n".join([*told, "", *lines, *(["", *notes] if notes else [])])


def line(row: Row) -> str:
    """A finished row as one line, for progress output."""
    if "failed" in row:
        return f"{row['model']} {row['task']}: {row['failed']}"
    sides = ", ".join(f"{side} {_ratio(entry)}" for side, entry in row["sides"].items())
    return f"{row['model']} {row['task']}: eager {_ms(row['eager'])}, {sides}"


def _ms(entry: Row) -> str:
    return f"{entry['ms']:.3g} ±{entry['spread']:.0%}" if "ms" in entry else entry["failed"]


def _ratio(entry: Row) -> str:
    if "ms" not in entry:
        return str(entry.get("failed", ""))
    figure = f"{entry['speedup']:.2f}x"
    if entry["speedup"] < 1 / (1 + entry["noise"]):
        figure = f"**{figure}**"
    return f"{entry['ms']:.3g} ({figure} ±{entry['noise']:.0%})"


def _number(value: float | None, unit: float = 1.0) -> str:
    if value is None:
        return "–"
    return f"{value / unit:,.0f}" if value / unit >= 100 else f"{value / unit:.3g}"


def _chosen(names: str, known: Iterable[str], what: str) -> list[str]:
    chosen = [name for name in names.split(",") if name]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.exit(f"--{what} {', '.join(unknown)}: there are {', '.join(known)}")
    return chosen


def main() -> None:
    sys.path.insert(0, str(ROOT))
    models = ("resnet", "bert", "gpt2", "vit", "llama")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(models))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--sides", default="default,reduce-overhead")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=900.0, help="for all rows together")
    parser.add_argument("--row-seconds", type=float, default=300.0, help="for one row")
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a try on any machine")
    parser.add_argument("--no-causes", action="store_true", help="no tcw profile of what lost")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON a row")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="measure nothing")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="rows that compile")
    parser.add_argument("--lock", default="", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.join:
        print(table(joined(arguments.join)))
        return
    chosen = _chosen(arguments.models, models, "models")
    tasks = _chosen(arguments.tasks, TASKS, "tasks")
    if arguments.child:
        from benchmarks.table_row import Turns, measure

        sides = [side for side in arguments.sides.split(",") if side]
        print(
            json.dumps(
                measure(
                    chosen[0],
                    tasks[0],
                    sides,
                    arguments.rounds,
                    arguments.tiny,
                    Turns(arguments.lock),
                )
            ),
            flush=True,
        )
        return
    rows: list[Row] = []
    for row in make_rows(arguments, [(name, task) for name in chosen for task in tasks]):
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
        if arguments.json:
            with arguments.json.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
