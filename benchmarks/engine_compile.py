"""CPU seconds of a first call: our engine against Inductor, cold and warm.

    python benchmarks/engine_compile.py [--pairs 5] [--only NAME] [--warm]

Each compile is a process of its own (CPU seconds of its children included). Cold: an empty kernel
cache on both sides, Inductor's precompiled header and its probes of the machine kept warm, by a
compile of something else before the clock starts; our engine gets the same treatment. Warm: the
second process on the same caches. Sides alternate; medians, and the spread of the ratio.
Target: cold at least 6 times less than Inductor, warm not more than Inductor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("inductor", "tcw")


def cpu_seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def compile_once(engine: str, name: str) -> float:
    """CPU seconds that the first call takes beyond an eager one."""
    sys.path.insert(0, str(ROOT))
    import torch

    from benchmarks.backend import backend
    from benchmarks.models import MODELS, run_once

    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.compile(lambda x: x.sin() + 1, backend=backend(engine))(torch.ones(3))
    torch._dynamo.reset()
    case = MODELS[name]
    function, inputs = case.make()
    before = cpu_seconds()
    run_once(function, inputs, case.train)
    eager = cpu_seconds() - before
    compiled = torch.compile(function, backend=backend(engine))
    before = cpu_seconds()
    run_once(compiled, inputs, case.train)
    return cpu_seconds() - before - eager


def run_child(engine: str, name: str, cache: str) -> float:
    environment = dict(
        os.environ, TORCHINDUCTOR_CACHE_DIR=f"{cache}/inductor", XDG_CACHE_HOME=f"{cache}/xdg"
    )
    done = subprocess.run(
        [sys.executable, __file__, "--child", engine, "--only", name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{engine}, {name}:\n{done.stderr[-4000:]}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def fresh(base: str) -> str:
    """A cache folder in which only the warm-up's kernel, header and probes are."""
    cache = tempfile.mkdtemp()
    shutil.copytree(base, cache, dirs_exist_ok=True, symlinks=True)
    return cache


def main() -> None:
    from models import MODELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", choices=ENGINES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(compile_once(arguments.child, arguments.only)))
        return
    base = tempfile.mkdtemp()
    for engine in ENGINES:
        run_child(engine, "add-mul, 8 elements", base)
    for kept in Path(base).rglob("fxgraph"), Path(base).rglob("aotautograd"):
        for folder in kept:
            shutil.rmtree(folder, ignore_errors=True)
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
