"""Loop nests of our C++ emitter against Inductor's kernels on the same inputs.

    python benchmarks/generated_loops.py [--threads 1] [--only NAME] [--seconds 1]

Times only the code inside the compiled graphs, without guards and Dynamo, interleaved call by call;
each figure is the minimum over the rounds. Both sides allocate fresh outputs from torch's
allocator. Bytes are those that must move: inputs and outputs once.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor.compile_fx import compile_fx
from torch.utils import _pytree as pytree

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import timing  # noqa: E402
from benchmarks.kernel_cases import KERNELS, KernelCase  # noqa: E402
from tcw.compiler.loops.nest import Nest  # noqa: E402
from tcw.compiler.loops.sizes import evaluate  # noqa: E402
from tests.cpu.codegen.nests import compile_programs, programs  # noqa: E402


def ours(case: KernelCase, inputs: tuple[Any, ...]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """(a call that allocates its outputs, a call with preallocated outputs)."""
    (program,) = programs(case.function, *inputs)
    (made,) = compile_programs([program])
    state = made.state(inputs)
    fresh = {
        memory.name: (state.size(memory.size), state.memory[memory.name].dtype)
        for memory in program.memories.values()
    }
    steps = []
    for step in program.steps:
        if not isinstance(step, Nest):
            steps.append((lambda step=step: state.call(step), (), (), ()))
            continue
        kernel = made.kernels[step.name]
        names = kernel.function.pointers
        table = (ctypes.c_void_p * len(names))(*(state.memory[n].data_ptr() for n in names))
        sizes = (ctypes.c_long * max(len(kernel.function.sizes), 1))(
            *(state.sizes[n] for n in kernel.function.sizes)
        )
        space = torch.empty(evaluate(kernel.function.workspace_bytes, state.sizes) + 64)
        spots = [(place, name) for place, name in enumerate(names) if name in fresh]
        error = (ctypes.c_int * 8)()
        address = ctypes.c_void_p(space.data_ptr() + -space.data_ptr() % 64)
        arguments = (table, sizes, address, error)
        steps.append((kernel.entry, arguments, spots, (space, error)))

    def call() -> Any:
        memory = {name: torch.empty(size, dtype=dtype) for name, (size, dtype) in fresh.items()}
        for entry, arguments, spots, _ in steps:
            for place, name in spots:
                arguments[0][place] = memory[name].data_ptr()
            entry(*arguments)
        return memory

    own = [
        (
            entry,
            arguments and ((ctypes.c_void_p * len(arguments[0]))(*arguments[0]), *arguments[1:]),
        )
        for entry, arguments, _, _ in steps
    ]

    def again() -> Any:
        for entry, arguments in own:
            entry(*arguments)
        return state, steps

    return call, again


def inductor(case: KernelCase, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    """Inductor's compiled graph, called as Dynamo would after its guards."""
    found: dict[str, Any] = {}

    def backend(module: Any, example: Any) -> Any:
        compiled = compile_fx(module, example)

        def run(*args: Any) -> Any:
            found["call"], found["args"] = compiled, args
            return compiled(*args)

        return run

    torch._dynamo.reset()
    torch.compile(case.function, backend=backend)(*inputs)
    return lambda: found["call"](*found["args"])


def moved(case: KernelCase, inputs: tuple[Any, ...]) -> int:
    tensors = [*inputs, *pytree.tree_leaves(case.function(*inputs))]
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ratios = []
    print(
        f"{'case':36s} {'Inductor µs':>12s} {'ours µs':>9s} {'ratio':>6s} {'kept':>6s} {'GB/s':>5s}"
    )
    for name, case in KERNELS.items():
        if options.only not in name:
            continue
        torch.manual_seed(0)
        inputs = case.inputs()
        with torch.no_grad():
            call, again = ours(case, inputs)
            sides = {"inductor": inductor(case, inputs), "ours": call, "kept": again}
            times = timing.interleaved(sides, options.seconds, time.perf_counter)
            least = {side: min(found) for side, found in times.items()}
            rate = moved(case, inputs) / least["kept"] / 1e9
        ratios.append(least["inductor"] / least["ours"])
        kept = least["inductor"] / least["kept"]
        print(
            f"{name:36s} {least['inductor'] * 1e6:12.1f} {least['ours'] * 1e6:9.1f}"
            f" {ratios[-1]:6.2f} {kept:6.2f} {rate:5.0f}",
            flush=True,
        )
    print(f"geomean {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
