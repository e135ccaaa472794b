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
import fcntl
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_name("table_models.py")
TASKS = ("inference", "training")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
WARM_UPS = 5
PROFILE_SECONDS = 240
GRAPHS = "reduce-overhead"

Row = dict[str, Any]
Call = Callable[[], object]


def spread(values: list[float]) -> float:
    """max(3 MAD, 1%) of the median, relative to it."""
    middle = median(values)
    return max(3 * median(abs(value - middle) for value in values) / middle, 0.01)


class Machine:
    """Clock and memory of the device that the models run on."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.cuda = torch.cuda.is_available()

    def seconds(self, call: Call) -> float:
        """Seconds of a call by CUDA events, or by the wall clock without a GPU."""
        if not self.cuda:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        cuda = self.torch.cuda
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        first.record()
        call()
        last.record()
        cuda.synchronize()
        return float(first.elapsed_time(last)) / 1e3

    def wall(self, call: Call) -> float:
        """Wall seconds until everything is done; CUDA events do not see compiling."""
        start = time.perf_counter()
        call()
        if self.cuda:
            self.torch.cuda.synchronize()
        return time.perf_counter() - start

    def cost(self, call: Call) -> tuple[float, float]:
        """(wall, CPU) seconds until everything is done; CPU of this process and its descendants."""
        before = cpu_seconds()
        wall = self.wall(call)
        return wall, cpu_seconds() - before

    def reserved(self) -> int:
        """Bytes that the allocator holds, after it has released unused memory."""
        if not self.cuda:
            return 0
        gc.collect()
        self.torch.cuda.empty_cache()
        return int(self.torch.cuda.memory_reserved())

    def most_reserved(self, call: Call) -> int | None:
        if not self.cuda:
            return None
        self.reserved()
        self.torch.cuda.reset_peak_memory_stats()
        call()
        self.torch.cuda.synchronize()
        return int(self.torch.cuda.max_memory_reserved())

    def name(self) -> str:
        if self.cuda:
            return str(self.torch.cuda.get_device_name())
        return platform.processor() or platform.machine()


def cpu_seconds() -> float:
    """CPU seconds of this process and its descendants, with those that they waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(path.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))

    def ours(number: int) -> bool:
        while number not in (0, 1, os.getpid()):
            number = parents.get(number, 0)
        return number == os.getpid()

    return sum(spent for number, spent in ticks.items() if ours(number)) / os.sysconf("SC_CLK_TCK")


def compiled(model: Any, side: str) -> Any:
    import torch

    if side in MODES:
        return torch.compile(model, mode=None if side == "default" else side)
    from benchmarks.backend import backend

    engine, _, mode = side.partition(" ")
    return torch.compile(model, backend=backend(engine), mode=mode or None)


class Turns:
    """Rows compile together, and are timed one at a time while none compiles."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a") if path else None  # noqa: SIM115
        self._lock(fcntl.LOCK_SH)

    def alone(self) -> None:
        """From here to the end of the process, no other row compiles or is timed."""
        self._lock(fcntl.LOCK_UN)
        self._lock(fcntl.LOCK_EX)

    def _lock(self, kind: int) -> None:
        if self.file is not None:
            fcntl.flock(self.file, kind)


def measure(name: str, task: str, sides: list[str], rounds: int, tiny: bool, turns: Turns) -> Row:
    """Measure one row in this process. A side that raises has its error instead."""
    sys.path[:0] = [str(ROOT), str(FILE.parent)]
    import torch
    from torch._inductor.utils import fresh_cache

    from benchmarks import table_models
    from compiler.measure.calls.runs import loss_of
    from compiler.measure.rounds.rounds import no_collection

    machine = Machine()
    title, make = table_models.MODELS[name]
    training = task == "training"
    row: Row = {
        "model": name,
        "title": title + (" (tiny)" if tiny else ""),
        "task": task,
        "device": machine.name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "rounds": rounds,
        "eager": {},
        "sides": {side: {} for side in sides},
    }
    with torch.device(table_models.DEVICE):
        for engine in dict.fromkeys(("default", *(s for s in sides if s.startswith("tcw")))):
            compiled(lambda x: x.sin() + 1, engine)(torch.ones(8))  # starts the compiler itself
            torch._dynamo.reset()
    model = make(training=training, tiny=tiny)
    positional, keyword = table_models.example_inputs()

    def call_of(run: Any) -> Call:
        def call() -> object:
            if not training:
                with torch.no_grad():
                    return run(*positional, **keyword)
            outputs = run(*positional, **keyword)
            loss_of(outputs).backward()
            return None

        return call

    def cleared(run: Any) -> Call:
        """Ready for a round: no gradients, and a CUDA graph's memory may be reused."""
        for parameter in model.parameters():
            parameter.grad = None
        torch.compiler.cudagraph_mark_step_begin()
        return call_of(run)

    def warmed(run: Any) -> list[tuple[float, float]]:
        return [machine.cost(cleared(run)) for _ in range(WARM_UPS)]

    runs: dict[str, Any] = {}
    first_calls: dict[str, list[tuple[float, float]]] = {}
    for side in ("eager", *sides):
        entry = row["eager"] if side == "eager" else row["sides"][side]
        model.zero_grad(set_to_none=True)
        before = machine.reserved()
        try:
            run = model if side == "eager" else compiled(model, side)
            with fresh_cache(delete=False):
                first_calls[side] = warmed(run)
            most = machine.most_reserved(cleared(run))
            entry["peak_bytes"] = None if most is None else most - before
            runs[side] = run
        except Exception as error:  # a failing side is reported; the others are measured
            entry["failed"] = words(error)
            del error
    if "eager" not in runs:
        return row
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    turns.alone()
    times: dict[str, list[float]] = {side: [] for side in runs}
    with no_collection():
        for number in range(rounds):
            for side in list(runs) if number % 2 == 0 else reversed(runs):
                times[side].append(machine.seconds(cleared(runs[side])))
    for side, seconds in times.items():
        entry = row["eager"] if side == "eager" else row["sides"][side]
        running = median(seconds)
        entry |= {"ms": running * 1e3, "spread": spread(seconds)}
        if side != "eager":
            ratios = [eager / own for eager, own in zip(times["eager"], seconds, strict=True)]
            entry |= {
                "speedup": median(ratios),
                "noise": spread(ratios),
                "compile_seconds": sum(max(0.0, wall - running) for wall, _ in first_calls[side]),
                "compile_cpu_seconds": sum(
                    max(0.0, cpu - first_calls[side][-1][1]) for _, cpu in first_calls[side]
                ),
            }
    if torch._dynamo.utils.counters["stats"]["unique_graphs"] != graphs:
        row["note"] = "recompiled during timing: the times mean nothing"
    return row


def words(error: Exception) -> str:
    """A short description of an error; running out of GPU memory is named."""
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    if type(error).__name__ == "OutOfMemoryError":
        return f"out of memory: {first[:160]}"
    return f"{type(error).__name__}: {first[:160]}"


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
    command = [sys.executable, str(ROOT / "tcw.py"), *profile_command(row, side, tiny)]
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
    from viewers.recording import Recording
    from viewers.summary.profile import profile_of

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
        cells.append(", ".join(_number(one.get("peak_bytes"), 1e6) for one in peaks))
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
