"""CPU seconds of compiling: our engine against Inductor, cold and warm.

    python benchmarks/engine_compile.py [--pairs 5] [--only NAME] [--imports] [--where]

Each measurement is a separate process, in which torch, TorchDynamo, AOTAutograd (by a compile with
the backend `aot_eager`) and the engine are imported and nothing is compiled yet. The clock counts
CPU seconds of the process and its children from the first call on. The time of a later call, which
does the same work without compiling, is subtracted. Garbage from the imports is collected before
the clock starts, so that no collection falls on one side by chance.

Cold: the caches contain what a machine pays for once and keeps, from compiling something else in
another process: Inductor's precompiled header and its instruction set probes, and our launcher.
Warm: the next process on the same caches, which finds every graph there. Sides alternate; the table
has medians, and the spread of the ratio. `--imports` also prints the import time of each engine,
which no other figure includes. `--where` prints where our engine's cold first call spends its time
instead. Target: cold at least 6 times less than Inductor, warm not more than
Inductor.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.stages import cpu_seconds, in_child  # noqa: E402

ENGINES = ("inductor", "tcw")
PRIME = "prime"


def imported(engine: str) -> float:
    """Import everything that compiling needs; returns the CPU seconds of the engine's own part."""
    import torch

    from benchmarks.backend import backend

    torch.set_num_threads(1)
    torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
    torch._dynamo.reset()
    before = cpu_seconds()
    if engine == "inductor":
        import torch._inductor.compile_fx
    else:
        backend(engine)
    return cpu_seconds() - before


def prime(engine: str) -> float:
    """Fill an empty cache with what a machine keeps: header, probes, launcher."""
    import_seconds = imported(engine)
    import torch

    from benchmarks.backend import backend

    torch.compile(lambda x: x.sin() + 1, backend=backend(engine))(torch.ones(3))
    return import_seconds


def compile_once(engine: str, name: str) -> float:
    """CPU seconds of the first call beyond those of a later call."""
    imported(engine)
    import torch

    from benchmarks.backend import backend
    from benchmarks.models import MODELS, run_once

    torch.manual_seed(0)
    case = MODELS[name]
    function, inputs = case.make()
    run_once(function, inputs, case.train)  # eager's own first-call work: libraries, their tables
    compiled = torch.compile(function, backend=backend(engine))
    gc.collect()
    seconds = []
    for _ in range(3):
        before = cpu_seconds()
        run_once(compiled, inputs, case.train)
        seconds.append(cpu_seconds() - before)
    return seconds[0] - min(seconds[1:])


STAGES = (
    ("AOTAutograd", "tcw.compiler.engine.backend", "backend"),
    ("between stages, records", "tcw.compiler.engine.backend", "compile_graph"),
    ("cache key, lookup", "tcw.compiler.engine.compile", "compiled_graph"),
    ("lowering", "tcw.compiler.engine.compile", "lower"),
    ("fusion", "tcw.compiler.engine.compile", "fuse"),
    ("memory", "tcw.compiler.engine.compile", "plan"),
    ("codegen", "tcw.compiler.engine.targets", "Cpu.unit"),
    ("g++", "tcw.compiler.runtime.compiled", "library"),
    ("loading", "tcw.compiler.runtime.compiled", "load_unit"),
)
"""Stage -> the function that runs it, with the stages below it taken off."""


def stages_of(name: str) -> dict[str, float]:
    """CPU seconds of each stage of our first call."""
    imported("tcw")
    from benchmarks.stages import Stages

    stages = Stages("TorchDynamo, first call", STAGES)
    import torch

    from benchmarks.backend import backend
    from benchmarks.models import MODELS, run_once

    torch.manual_seed(0)
    function, inputs = MODELS[name].make()
    run_once(function, inputs, MODELS[name].train)
    compiled = torch.compile(function, backend=backend("tcw"))
    gc.collect()
    stages.start()
    run_once(compiled, inputs, MODELS[name].train)
    stages.turn()
    return stages.spent


def run_child(engine: str, name: str, cache: str, *options: str) -> Any:
    """What a process that measures one first call prints: seconds, or those of its stages."""
    caches = {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "XDG_CACHE_HOME": f"{cache}/xdg"}
    return in_child(__file__, [engine, "--only", name, *options], caches)


def fresh(base: str) -> str:
    """A new cache folder with what a machine keeps."""
    cache = tempfile.mkdtemp()
    shutil.copytree(base, cache, dirs_exist_ok=True, symlinks=True)
    return cache


def main() -> None:
    from models import MODELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--imports", action="store_true")
    parser.add_argument("--where", action="store_true", help="our stages, cold")
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        if arguments.where:
            print(json.dumps(stages_of(arguments.only)))
            return
        primes = arguments.only == PRIME
        seconds = (
            prime(arguments.child) if primes else compile_once(arguments.child, arguments.only)
        )
        print(json.dumps(seconds))
        return
    base = tempfile.mkdtemp()
    for engine in ENGINES:
        seconds = run_child(engine, PRIME, base)
        if arguments.imports:
            print(f"{engine}: importing it takes {seconds:.2f} CPU seconds")
    if arguments.where:
        for name in (name for name in MODELS if arguments.only in name):
            runs = [run_child("tcw", name, fresh(base), "--where") for _ in range(arguments.pairs)]
            spent = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
            print(f"{name}: {sum(spent.values()):.3f} CPU seconds")
            for stage, seconds in spent.items():
                print(f"  {stage:26} {seconds:.3f}")
        return
    print(
        f"{'first call, CPU seconds':30} {'inductor':>9} {'tcw':>7} {'ratio':>7}  spread"
        f"      {'warm: inductor':>15} {'tcw':>7} {'ratio':>7}"
    )
    for name in MODELS:
        if arguments.only and arguments.only not in name:
            continue
        cold: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        warm: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for number in range(arguments.pairs):
            for engine in ENGINES if number % 2 == 0 else reversed(ENGINES):
                cache = fresh(base)
                cold[engine].append(run_child(engine, name, cache))
                warm[engine].append(run_child(engine, name, cache))
                shutil.rmtree(cache, ignore_errors=True)
        ratios = [a / b for a, b in zip(cold["inductor"], cold["tcw"], strict=True)]
        middle = {e: (statistics.median(cold[e]), statistics.median(warm[e])) for e in ENGINES}
        print(
            f"{name:30} {middle['inductor'][0]:9.2f} {middle['tcw'][0]:7.2f} "
            f"{statistics.median(ratios):6.1f}x  {min(ratios):.1f}-{max(ratios):.1f}"
            f"   {middle['inductor'][1]:15.2f} {middle['tcw'][1]:7.2f} "
            f"{middle['inductor'][1] / middle['tcw'][1]:6.1f}x",
            flush=True,
        )
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
