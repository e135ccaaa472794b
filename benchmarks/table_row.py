"""Measures one row of `model_table.py` in this process: clock, memory, warm-ups and rounds."""

from __future__ import annotations

import fcntl
import gc
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.backend import compiled
from tcw.compiler.measure.rounds import noise
from tcw.workbench.worker.guardian import children_cpu_seconds

FOLDER = Path(__file__).resolve().parent
WARM_UPS = 5

Row = dict[str, Any]
Call = Callable[[], object]


def spread(values: list[float]) -> float:
    """max(3 MAD, 1%) of the median, relative to it."""
    return max(3 * noise.spread(values) / median(values), 0.01)


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
    return time.process_time() + children_cpu_seconds()


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
    sys.path[:0] = [str(FOLDER.parent), str(FOLDER)]
    import torch
    from torch._inductor.utils import fresh_cache

    from benchmarks import table_models
    from tcw.compiler.measure.calls.runs import loss_of
    from tcw.compiler.measure.rounds.rounds import no_collection

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
