"""What recording costs a training program: CPU seconds of compiling, and the time of a step.

    python benchmarks/recording_steps.py [--pairs 5] [--steps 300]

The program trains a small transformer block, compiled with Inductor, changing the batch size once.
Each run is a process of its own with an empty Inductor cache, plain or with TCW_RECORD; plain and
recorded runs alternate. Compiling is the two steps that compile: CPU seconds, children included,
with the loading of tcw. A step is the median of those that compile nothing. Targets: at most 5% of
compiling, and nothing measurable a step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILING = (0, 1)
"""Steps that compile: the first, and that of the other batch size."""


def cpu_seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def train(steps: int) -> dict[str, float]:
    """Train in this process; CPU seconds of compiling, median milliseconds of a step."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    compile_seconds, times = 0.0, []
    for step in range(steps):
        x = torch.randn(4 if step == 1 else 8, 16, 64)
        cpu, wall = cpu_seconds(), time.perf_counter()
        compiled(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step in COMPILING:
            compile_seconds += cpu_seconds() - cpu
        elif step > 20:
            times.append(time.perf_counter() - wall)
    return {"compile": compile_seconds, "step": statistics.median(times) * 1e3}


def run_child(recorded: bool, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "cache"))
        traces = Path(folder, "traces")
        if recorded:
            environment["TCW_RECORD"] = str(traces)
            environment["PYTHONPATH"] = str(ROOT / "workbench" / "start_up")
        done = subprocess.run(
            [sys.executable, __file__, "--child", "--steps", str(steps)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        if recorded:
            (trace,) = traces.glob("*.tcw")
            result["bytes"] = trace.stat().st_size
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(train(arguments.steps)))
        return
    run_child(False, arguments.steps)
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for number in range(arguments.pairs):
        for recorded in (False, True) if number % 2 == 0 else (True, False):
            found[recorded].append(run_child(recorded, arguments.steps))
    print(
        "| what | plain | recorded | difference, median of pairs | spread |\n|---|---|---|---|---|"
    )
    for key, words in (("compile", "compiling, CPU s"), ("step", "a step, ms")):
        plain, recorded_ = ([one[key] for one in found[which]] for which in (False, True))
        differences = [with_ / without - 1 for without, with_ in zip(plain, recorded_, strict=True)]
        print(
            f"| {words} | {statistics.median(plain):.2f} | {statistics.median(recorded_):.2f} "
            f"| {statistics.median(differences):+.1%} "
            f"| {min(differences):+.1%} to {max(differences):+.1%} |"
        )
    print(f"\ntrace: {found[True][-1]['bytes'] / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
