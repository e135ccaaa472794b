"""CPU seconds of compiling the models of the standard table for a GPU, stage by stage: our engine.

    python benchmarks/gpu_compile.py --models gpt2,bert --tasks training
    python benchmarks/gpu_compile.py --models gpt2 --slowest 10          the kernels that take most

On a GPU the first call is measured, run and all. Without one, the graph that the CPU captures is
retargeted (compiler/gpu/retarget.py) and everything up to the machine code for `--arch` is made;
nothing runs. `capture` is TorchDynamo, AOTAutograd and the partition, `ours` the rest but for
retargeting. Each row is a process with empty caches in which something else was compiled before.
Kernels compile in threads, beside g++: their seconds are those of `kernels, g++`. `threads` has
those of each thread of the process that took any: many alike are a pool that waits by spinning.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.stages import Stages, in_child  # noqa: E402

FIRST = "TorchDynamo, first call"
CAPTURE = (FIRST, "AOTAutograd", "partition")
"""What torch captures with, which other engines pay, too."""
RETARGETING = "retargeting"
"""Only without a GPU: no part of a call on one."""
STAGES = (
    ("AOTAutograd", "tcw.compiler.engine.backend", "backend"),
    ("attention masks", "tcw.compiler.engine.backend", "attention_masks"),
    ("partition", "tcw.compiler.engine.backend", "partition"),
    ("between stages", "tcw.compiler.engine.backend", "compile_graph"),
    (RETARGETING, "tcw.compiler.gpu.retarget", "retarget"),
    ("layouts, products", "tcw.compiler.engine.compile", "rewrite"),
    ("cache key, lookup", "tcw.compiler.engine.compile", "compiled_graph"),
    ("lowering", "tcw.compiler.engine.compile", "lower"),
    ("fusion", "tcw.compiler.engine.compile", "fuse"),
    ("memory", "tcw.compiler.engine.compile", "plan"),
    ("codegen", "tcw.compiler.engine.targets", "Gpu.unit"),
    ("kernels, g++", "tcw.compiler.runtime.compiled", "_path"),
    ("loading", "tcw.compiler.runtime.compiled", "loaded_segments"),
)


class Nothing:
    """A compiled graph that stands for one that no GPU is there to run. The first one with a kernel
    ends the call; before it there are those that only enter a context."""

    _boxed_call = True

    def __init__(self, ends: bool) -> None:
        self.ends = ends

    def __call__(self, arguments: list[Any]) -> list[Any]:
        if self.ends:
            raise NotRun
        return []


class NotRun(Exception):
    """The compile is done; there is no GPU to run it."""


def for_another_machine(arch: str) -> None:
    """From here on, graphs compile for a GPU that is not there."""
    import torch
    from torch._functorch import config

    from tcw.compiler.engine import backend, compile, targets
    from tcw.compiler.gpu import retarget
    from tcw.compiler.gpu.architectures import ARCHITECTURES
    from tcw.compiler.runtime import compiled
    from tcw.compiler.runtime import graph_cache as cached

    real = compile.compile_graph

    def compile_graph(module: Any, inputs: Any, **about: Any) -> Any:
        return real(*retarget.retarget(module, inputs), **about)

    def load(artifact: Any, store: Any, *_: Any) -> Any:
        compiled._path(artifact, compiled.find_compiler(), store)
        return compiled.Compiled(Nothing(bool(artifact.device_kernels)), artifact, False)

    gpu = targets.Gpu(torch.device(retarget.DEVICE), ARCHITECTURES[arch])
    backend.compile_graph = compile_graph
    compile.target_of = lambda module, tuned=False: gpu  # type: ignore[assignment]
    cached.load = load  # type: ignore[assignment]
    config.force_non_lazy_backward_lowering = True


@contextmanager
def kernels_timed(found: list[tuple[float, str]]) -> Iterator[None]:
    """Notes the CPU seconds of each kernel, of its thread and without ptxas."""
    from tcw.compiler.runtime.gpu import binaries

    real = binaries.to_ptx

    def to_ptx(module: Any, kernel: Any, arch: str) -> Any:
        before = time.thread_time()
        try:
            return real(module, kernel, arch)
        finally:
            found.append((time.thread_time() - before, kernel.name))

    binaries.to_ptx = to_ptx
    try:
        yield
    finally:
        binaries.to_ptx = real


def threads() -> dict[str, float]:
    """CPU seconds of each thread, by number and name."""
    found = {}
    for path in Path("/proc/self/task").glob("*/stat"):
        head, _, tail = path.read_text().rpartition(")")
        fields = tail.split()
        spent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found[f"{path.parent.name} {head.partition('(')[2]}"] = spent
    return found


def measure(name: str, task: str, arch: str) -> dict[str, Any]:
    """One row, in this process."""
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    import torch

    from benchmarks import table_models
    from benchmarks.backend import backend
    from tcw.compiler.measure.calls.runs import loss_of

    training = task == "training"
    with torch.device(table_models.DEVICE):
        torch.compile(lambda x: x.sin() + 1, backend=backend("tcw"))(torch.ones(8))
    torch._dynamo.reset()
    cuda = torch.cuda.is_available()
    if not cuda:
        for_another_machine(arch)
    title, make = table_models.MODELS[name]
    model = make(training=training)
    positional, keyword = table_models.example_inputs()
    stages = Stages(FIRST, STAGES)
    run = torch.compile(model, backend=backend("tcw"))  # found now: it is patched
    kernels: list[tuple[float, str]] = []
    before, began = threads(), time.perf_counter()
    stages.start()
    with kernels_timed(kernels):
        try:
            if training:
                loss_of(run(*positional, **keyword)).backward()
            else:
                with torch.no_grad():
                    run(*positional, **keyword)
        except NotRun:
            pass
        if cuda:
            torch.cuda.synchronize()
    stages.turn()
    took = time.perf_counter() - began
    spent = {one: took - before.get(one, 0.0) for one, took in threads().items()}
    return {
        "title": f"{title}, {task}",
        "for": torch.cuda.get_device_name() if cuda else arch,
        "wall": took,
        "stages": stages.spent,
        "threads": sorted((round(s, 2) for s in spent.values() if s > 0.05), reverse=True),
        "kernels": sorted(kernels, reverse=True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="resnet,bert,gpt2,vit")
    parser.add_argument("--tasks", default="inference,training")
    parser.add_argument("--arch", default="sm_90", help="without a GPU: what to compile for")
    parser.add_argument("--slowest", type=int, default=0, help="this many kernels of each row")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.models, arguments.tasks, arguments.arch)))
        return
    for name in arguments.models.split(","):
        for task in arguments.tasks.split(","):
            print_row(name, task, arguments.arch, arguments.slowest)


def print_row(name: str, task: str, arch: str, slowest: int) -> None:
    """Measure a row in a process of its own."""
    options = ["--models", name, "--tasks", task, "--arch", arch]
    with tempfile.TemporaryDirectory(prefix="gpu-compile-") as caches:
        folders = {"TCW_CACHE_DIR": f"{caches}/tcw", "TRITON_CACHE_DIR": f"{caches}/triton"}
        try:
            row = in_child(__file__, options, folders)
        except SystemExit as failed:
            print(failed)
            return
    whole, kernels = sum(row["stages"].values()), row["kernels"]
    print(f"{row['title']}, {row['for']}: {whole:.1f} CPU s, {row['wall']:.1f} s")
    capture = sum(row["stages"][stage] for stage in CAPTURE)
    ours = whole - capture - row["stages"][RETARGETING]
    print(f"  capture {capture:.2f}, ours {ours:.2f}")
    for stage, seconds in row["stages"].items():
        print(f"  {stage:24} {seconds:6.2f}")
    print(f"  {len(kernels)} kernels without ptxas {sum(s for s, _ in kernels):6.2f}")
    print(f"  threads {' '.join(map(str, row['threads'][:24]))}")
    for seconds, kernel in kernels[:slowest]:
        print(f"    {seconds:.2f} {kernel}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
