"""Kernels on one GPU: eager, Inductor, tuned Inductor and our engine, in turn.

    python benchmarks/gpu_kernels.py                          all cases
    python benchmarks/gpu_kernels.py --only softmax,rope
    python benchmarks/gpu_kernels.py --jobs 12                cases compile at the same time
    python benchmarks/gpu_kernels.py --sides inductor,tcw --seconds 300 --json rows.jsonl
    python benchmarks/gpu_kernels.py --sides tcw-tuned --tiles tiles.jsonl   what each tile takes
    python benchmarks/gpu_kernels.py --print rows.jsonl       the table of an earlier run

Device time by CUDA events, medians of `--rounds` in which every side runs once, with the launch
hidden behind a sleeping kernel and L2 overwritten before each call. `of copy` is the bytes that the
case must move over our time, relative to a copy of 512 MB measured in the same run. Each result is
compared with eager's first. With `--jobs`, processes share the GPU for compiling, and each has it
for itself while it measures, also while Inductor tunes.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

SIDES = ("eager", "inductor", "tuned", "tcw", "tcw-tuned")
TUNED = {"coordinate_descent_tuning": True, "combo_kernels": True, "max_autotune_pointwise": True}
TOLERANCE = {"torch.bfloat16": 3e-2, "torch.float16": 5e-3, "torch.float32": 2e-4}

Row = dict[str, Any]
Call = Callable[[], object]


class Clock:
    """Device time of a call."""

    def __init__(self, lock: Path | None = None) -> None:
        """`lock`: a file that other processes on this GPU lock, too."""
        import torch

        self.torch = torch
        self.lock = lock
        self._depth = 0
        self.flush = torch.zeros(64 << 20, device="cuda")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other process of this run measures. Inductor's measurements nest."""
        if self.lock is None or self._depth:
            yield
            return
        with self.lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._depth = 1
            try:
                yield
                self.torch.cuda.synchronize()
            finally:
                self._depth = 0

    def once(self, call: Call) -> float:
        """Microseconds."""
        cuda = self.torch.cuda
        self.flush.add_(1)
        cuda._sleep(1_500_000)
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def copy_gb(self) -> float:
        """GB/s of a copy of 512 MB, read and written."""
        source = self.torch.randn(128 << 20, device="cuda")
        target = self.torch.empty_like(source)
        took = min(self.once(lambda: target.copy_(source)) for _ in range(20))
        return 8 * source.numel() / took * 1e-3


def compiled(side: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a side runs it."""
    import torch

    if side == "eager":
        return function
    if side in ("tcw", "tcw-tuned"):
        from tcw.compiler.engine.backend import backend

        mode = "max-autotune-no-cudagraphs" if side == "tcw-tuned" else None
        ours = functools.partial(backend, mode=mode)
        return torch.compile(function, backend=ours, dynamic=False)
    options = TUNED if side == "tuned" else {}
    return torch.compile(function, dynamic=False, options=options)


def measured(case: Any, sides: list[str], rounds: int, clock: Clock) -> Row:
    """One row: microseconds of each side, or its error."""
    import torch

    torch.manual_seed(0)
    with clock.alone():
        inputs = case.inputs()
    calls: dict[str, Call] = {}
    row: Row = {"case": case.name, "bytes": case.bytes}
    expected: Any = None
    if "eager" not in sides:
        with clock.alone():
            expected = _call(case, case.function, inputs)()
    for side in sides:
        torch._dynamo.reset()
        try:
            call = _call(case, compiled(side, case.function), inputs)
            begin = time.process_time()
            result = call()
            row[f"{side} compile s"] = round(time.process_time() - begin, 2)
            with clock.alone():
                if side == "eager":
                    expected = result
                else:
                    wrong = _differs(result, expected)
                    if wrong:
                        row[f"{side} wrong"] = wrong
                for _ in range(3):
                    call()
            calls[side] = call
        except Exception as error:
            row[f"{side} error"] = f"{type(error).__name__}: {error}"[:300]
    times: dict[str, list[float]] = {side: [] for side in calls}
    with clock.alone():
        for _ in range(rounds):
            for side, call in calls.items():
                times[side].append(clock.once(call))
    for side, values in times.items():
        row[side] = round(median(values), 2)
        row[f"{side} spread"] = round((max(values) - min(values)) / 2, 2)
    return row


def tunes_alone(clock: Clock, tiles: Path | None) -> None:
    """What the compilers measure has the GPU for itself, as what we measure here. `tiles`: where
    to append what each of our tiles takes."""
    from torch._inductor.runtime.benchmarking import benchmarker

    from tcw.compiler.runtime.gpu.kernel_times import Timing

    def alone(measure: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **kwargs: Any) -> Any:
            with clock.alone():
                return measure(*args, **kwargs)

        return measured

    benchmarker.benchmark_gpu = alone(benchmarker.benchmark_gpu)  # type: ignore[method-assign]
    real = alone(Timing.measured)

    def noted(timing: Any, kernels: Any, *rest: Any) -> Any:
        found = real(timing, kernels, *rest)
        if tiles is not None:
            took = {kernel.tile.words: us for kernel, us in zip(kernels, found, strict=True)}
            title = kernels[0].body.split("\n")[2].strip(" #")
            with tiles.open("a") as file:
                file.write(
                    json.dumps({"kernel": title, "types": kernels[0].types, "us": took}) + "\n"
                )
        return found

    Timing.measured = noted  # type: ignore[method-assign]


def _call(case: Any, function: Callable[..., Any], inputs: Any) -> Call:
    import torch

    if not case.backward:

        def forward() -> object:
            with torch.no_grad():
                return function(*inputs)

        return forward
    output = function(*inputs)
    torch.manual_seed(1)
    gradient = torch.randn_like(output)
    leaves = [one for one in inputs if one.requires_grad]
    return lambda: torch.autograd.grad(output, leaves, gradient, retain_graph=True)


def _differs(result: Any, expected: Any) -> str:
    """How a result differs from eager's; "" if it is within the rounding of its dtype."""
    import torch

    pairs = (
        [(result, expected)]
        if isinstance(result, torch.Tensor)
        else zip(result, expected, strict=True)
    )
    for place, (one, other) in enumerate(pairs):
        wide, base = one.double(), other.double()
        scale = base.abs().max().item() or 1.0
        worst = (wide - base).abs().max().item() / scale
        limit = TOLERANCE.get(str(one.dtype), 2e-4)
        if not worst <= limit:
            return f"output {place}: {worst:.2g} of its largest element"
    return ""


RATIOS = (("inductor", "tcw"), ("tuned", "tcw-tuned"), ("tuned", "tcw"))


def table(rows: list[Row], copy: float) -> str:
    """The rows as Markdown, and their geometric means."""
    sides = [side for side in SIDES if any(side in row for row in rows)]
    pairs = [pair for pair in RATIOS if set(pair) <= set(sides)]
    names = ["case", *(f"{side} µs" for side in sides), *(f"{a}/{b}" for a, b in pairs)]
    lines = [f"| {' | '.join((*names, 'of copy'))} |", "|---" * (len(names) + 1) + "|"]
    ratios: dict[str, list[float]] = {}
    for row in rows:
        cells = [row["case"]]
        for side in sides:
            wrong = row.get(f"{side} wrong") or row.get(f"{side} error", "")[:60]
            cells.append(wrong or (f"{row[side]:.1f}" if side in row else "–"))
        for one, other in pairs:
            ratio = row[one] / row[other] if one in row and other in row else None
            cells.append("–" if ratio is None else f"{ratio:.2f}")
            if ratio is not None:
                ratios.setdefault(f"{one}/{other}", []).append(ratio)
        others = [row[side] for side in sides[:3] if side in row and not side.startswith("tcw")]
        if "tcw" in row:
            if others:
                ratios.setdefault("best other/tcw", []).append(min(others) / row["tcw"])
            ratios.setdefault("of copy", []).append(row["bytes"] / row["tcw"] * 1e-3 / copy)
            cells.append(f"{ratios['of copy'][-1]:.0%}")
        lines.append("| " + " | ".join(cells) + " |")
    words = [
        f"{name} {geometric_mean(values):.2f}"
        f" (worst {min(values):.2f}, {sum(value < 0.95 for value in values)} of {len(values)}"
        " below 0.95)"
        for name, values in ratios.items()
    ]
    return "\n".join((*lines, "", f"Geomean: {'; '.join(words)}. Copy: {copy:.0f} GB/s."))


def in_processes(jobs: int, lock: Path | None) -> list[Row]:
    """The rows of this command line's cases, each process measuring its part of them. `lock`: of
    other processes too."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        lock = lock or Path(folder) / "gpu"
        lock.touch()
        environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        running = []
        for number in range(jobs):
            own = ["--jobs", "1", "--part", f"{number}/{jobs}", "--lock", str(lock)]
            command = [sys.executable, __file__, *sys.argv[1:], *own]
            log = Path(folder) / f"{number}.log"
            with log.open("w") as file:
                running.append(
                    (subprocess.Popen(command, stdout=file, stderr=file, env=environment), log)
                )
        for process, log in running:
            process.wait()
            for line in log.read_text().splitlines():
                if line.startswith('{"case"'):
                    rows.append(json.loads(line))
                elif process.returncode:
                    print(line, flush=True)
    return rows


def in_turn(given: argparse.Namespace, clock: Clock, copy: float) -> Iterator[Row]:
    """The row of each case of a part of them."""
    import torch

    from benchmarks.gpu_cases import cases

    start = time.monotonic()
    parts = [part for part in given.only.split(",") if part]
    chosen = [case for case in cases() if not parts or any(part in case.name for part in parts)]
    part, count = map(int, given.part.split("/"))
    for case in chosen[part::count]:
        if time.monotonic() - start > given.seconds:
            print(f"not measured: {case.name} and what follows", flush=True)
            return
        yield {**measured(case, given.sides.split(","), given.rounds, clock), "copy": copy}
        torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="parts of case names, comma-separated")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after these")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the GPU")
    parser.add_argument("--part", default="0/1", help="`1/3`: every third case from the second on")
    parser.add_argument("--lock", type=Path, help="a file that processes on this GPU lock")
    parser.add_argument("--json", type=Path, help="append each row")
    parser.add_argument("--tiles", type=Path, help="append the µs of each tile that is measured")
    parser.add_argument("--print", type=Path, help="print the table of this file, measure nothing")
    given = parser.parse_args()
    if given.print:
        rows = [json.loads(line) for line in given.print.read_text().splitlines()]
        print(table(rows, rows[0]["copy"]))
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import torch

    from benchmarks.gpu_cases import cases

    if not torch.cuda.is_available():
        raise SystemExit("no GPU on this machine")
    if given.jobs > 1:
        rows = in_processes(given.jobs, given.lock)
        names = {case.name: place for place, case in enumerate(cases())}
        rows.sort(key=lambda row: names[row["case"]])
    else:
        clock = Clock(given.lock)
        tunes_alone(clock, given.tiles)
        with clock.alone():
            copy = clock.copy_gb()
        rows = []
        for row in in_turn(given, clock, copy):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if given.json:
                with given.json.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    name = torch.cuda.get_device_name()
    print(f"\n{time.strftime('%Y-%m-%d')}, {name}, torch {torch.__version__}\n")
    if rows:
        print(table(rows, max(row["copy"] for row in rows)))


if __name__ == "__main__":
    main()
