"""What recording costs a training program: CPU seconds of compiling, and of a step.

    python benchmarks/recording_steps.py [--only compile|step] [--pairs 5] [--steps 1000]

The program trains a small transformer block, compiled with Inductor, changing the batch size once.
Each run is a process of its own with one thread, plain or with TCW_RECORD; plain and recorded runs
alternate. Compiling, with an empty Inductor cache, is the two steps that compile: CPU seconds, with
the loading of tcw, in all, of the program's process, and of its children. Those are g++, which
recording leaves alone: what differs there is the machine's noise. A step, with a warm cache, is the
median CPU time of those that compile nothing: a busy machine spoils its wall time. Targets: at most
5% of compiling, and nothing measurable a step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.stages import in_child  # noqa: E402

COMPILING = (0, 1)
"""Steps that compile: the first, and that of the other batch size."""


def of_children() -> float:
    """CPU seconds of the children that this process waited for, g++ above all."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(steps: int) -> dict[str, float]:
    """Train in this process; CPU seconds of compiling, median CPU milliseconds of a step."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    process, children, times = 0.0, 0.0, []
    for step in range(steps):
        x = torch.randn(4 if step == 1 else 8, 16, 64)
        before, began = of_children(), time.process_time()
        compiled(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        took = time.process_time() - began
        if step in COMPILING:
            process += took
            children += of_children() - before
        elif step > 20:
            times.append(took)
    return {
        "compile": process + children,
        "process": process,
        "children": children,
        "step": statistics.median(times) * 1e3,
    }


def run_child(recorded: bool, steps: int, cache: str = "") -> dict[str, float]:
    """`cache`: Inductor's folder; an empty one without."""
    with tempfile.TemporaryDirectory() as folder:
        cache = cache or os.path.join(folder, "cache")
        environment = {"TORCHINDUCTOR_CACHE_DIR": cache}
        traces = Path(folder, "traces")
        if recorded:
            environment["TCW_RECORD"] = str(traces)
            environment["PYTHONPATH"] = str(ROOT / "workbench" / "start_up")
        options = ["--steps", str(steps)]
        result: dict[str, float] = in_child(__file__, options, environment)
        if recorded and not list(traces.glob("*.tcw")):
            sys.exit("nothing was recorded")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", choices=["compile", "step"])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(train(arguments.steps)))
        return
    print(
        "| what | plain | recorded | difference, median of pairs | spread |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as cache:
        if arguments.only != "step":
            found = in_turn(arguments.pairs, 30, "")
            print(row(found, "compile", "compiling, CPU s"))
            print(row(found, "process", "… of the program's process"))
            print(row(found, "children", "… of g++"), flush=True)
        if arguments.only != "compile":
            run_child(False, 30, cache)
            found = in_turn(arguments.pairs, arguments.steps, cache)
            print(row(found, "step", "a step, CPU ms"))


Runs = dict[bool, list[dict[str, float]]]
"""Figures of the runs, plain (False) and recorded (True)."""


def in_turn(pairs: int, steps: int, cache: str) -> Runs:
    runs: Runs = {False: [], True: []}
    for number in range(pairs):
        for recorded in (False, True) if number % 2 == 0 else (True, False):
            runs[recorded].append(run_child(recorded, steps, cache))
    return runs


def row(found: Runs, key: str, words: str) -> str:
    """A row of the table."""
    plain, with_it = ([run[key] for run in found[recorded]] for recorded in (False, True))
    differences = [after / before - 1 for before, after in zip(plain, with_it, strict=True)]
    return (
        f"| {words} | {statistics.median(plain):.2f} | {statistics.median(with_it):.2f} "
        f"| {statistics.median(differences):+.1%} "
        f"| {min(differences):+.1%} to {max(differences):+.1%} |"
    )


if __name__ == "__main__":
    main()
