"""Runs nests in Triton's interpreter, on the CPU, and compares them with the IR's own meaning.

    TRITON_INTERPRET=1 python -m tests.cpu.codegen.triton_interpreter float32 mixed

Triton decides at its import whether kernels are interpreted, so this is a process of its own: one
JSON line for each case, with its name and what is wrong ("" if nothing is).
"""

from __future__ import annotations

import json
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import prod
from typing import Any, TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from triton import language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from tcw.compiler.codegen.triton import ahead, vocabulary
from tcw.compiler.codegen.triton.kernel import TritonKernel
from tcw.compiler.codegen.triton.limits import Limits
from tcw.compiler.codegen.triton.nest_kernels import emit
from tcw.compiler.codegen.triton.together import following, launches
from tcw.compiler.codegen.triton.triton_unit import HEAD, launched, named
from tcw.compiler.codegen.unit import buffer_dtypes
from tcw.compiler.fusion.weights import GPU
from tcw.compiler.gpu.architectures import ARCHITECTURES
from tcw.compiler.loops.graph import Call, Input
from tcw.compiler.loops.interpreter.run_programs import run_program
from tcw.compiler.loops.interpreter.state import State
from tcw.compiler.loops.nest import Nest, Program
from tcw.compiler.loops.sizes import evaluate
from tests.cpu.codegen import nest_cases
from tests.cpu.codegen.nests import programs

Case = tuple[Callable[..., Any], tuple[Any, ...]]

_numbers = count()


def _quicken() -> None:
    """What the interpreter does for each operation and our kernels have no use for."""
    # it makes a table of all dtypes for each operand: a fifth of the time
    look_up, known = interpreter._get_np_dtype, dict[str, Any]()
    interpreter._get_np_dtype = lambda kind: (
        known.get(name := str(kind.scalar)) or known.setdefault(name, look_up(kind))
    )
    # it checks integers for overflow in int64, as kernels do that are compiled to be debugged
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


def _round() -> None:
    """The interpreter cuts float32 off to bfloat16; a GPU rounds to the nearest."""
    convert = interpreter._convert_float

    def converted(data: Any, source: Any, target: Any, mode: Any) -> Any:
        if (source, target) == (tl.float32, tl.bfloat16):
            rounded = torch.from_numpy(np.ascontiguousarray(data)).to(torch.bfloat16)
            return rounded.view(torch.int16).numpy().view(np.uint16)
        return convert(data, source, target, mode)

    interpreter._convert_float = converted


_quicken()
_round()


class Libdevice:
    """NVIDIA's functions by torch's: the interpreter cannot call them."""

    OTHERS: dict[str, Callable[..., Any]] = {
        "nearbyint": torch.round,
        "fmod": torch.fmod,
        "ilogb": lambda x: torch.frexp(x)[1] - 1,
        "ldexp": lambda x, exponent: torch.ldexp(x, exponent.to(torch.int32)),
    }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = self.OTHERS.get(name) or getattr(torch, name)

        def call(*arguments: Any) -> Any:
            first = next(a for a in arguments if isinstance(a, tl.tensor))
            kind = torch.from_numpy(first.handle.data).dtype
            tensors = [
                torch.from_numpy(a.handle.data)
                if isinstance(a, tl.tensor)
                else torch.tensor(a, dtype=kind)
                for a in arguments
            ]
            made = function(*tensors).to(kind).numpy()
            scalar = first.dtype.scalar
            shape = tl.block_type(scalar, list(made.shape)) if made.ndim else scalar
            return tl.tensor(TensorHandle(made, scalar), shape)

        return call


def interpreted(kernel: TritonKernel) -> Any:
    """The kernel as an interpreted function."""
    name = f"<kernel {next(_numbers)}>"
    text = HEAD + "".join(f"\n\n{vocabulary.function_text(need)}" for need in sorted(kernel.needs))
    text += "\n\n" + named(kernel, "kernel")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec", dont_inherit=True), names)
    names["libdevice"] = Libdevice()
    # it cannot run PTX; here a kernel begins when the one before it has ended
    names |= dict.fromkeys((ahead.WAIT, ahead.RELEASE), lambda: None)
    return names["kernel"]


def is_nest(step: object) -> TypeGuard[Nest]:
    return isinstance(step, Nest)


def run(program: Program, arguments: Sequence[Any], arch: str = "sm_90") -> list[Any]:
    """The outputs of a program whose nests are interpreted kernels."""
    limits = Limits(ARCHITECTURES[arch], program.graph.hints)
    dtypes = buffer_dtypes(program)
    state = State(program.graph, arguments, None)
    for memory in program.memories.values():
        if memory.name not in state.memory:
            state.allocate(memory.name, memory.dtype, memory.size)
    each = {step.name: emit(step, dtypes, limits) for step in program.steps if is_nest(step)}
    groups = launches(program, each, None, limits)
    follows = following(groups, program, None)
    made_ahead = ahead.launched_ahead(launched(groups, each), follows, limits)
    last = {group[-1].name: kernels for group, kernels in zip(groups, made_ahead, strict=True)}
    for step in program.steps:
        if isinstance(step, Call):
            state.call(step)
            continue
        if step.name not in last:
            continue
        made = last[step.name]
        space = torch.full((evaluate(made.workspace.bytes, state.sizes) + 128,), 113).to(
            torch.uint8
        )
        for kernel in made.kernels:
            buffers = []
            for name in kernel.pointers:
                place = made.workspace.places.get(name)
                if place is None:
                    buffers.append(state.memory[name])
                    continue
                dtype = getattr(torch, place[0])
                start = evaluate(place[1], state.sizes)
                rest = (len(space) - start) // dtype.itemsize * dtype.itemsize
                buffers.append(space[start : start + rest].view(dtype))
            grid = prod(-(-evaluate(size, state.sizes) // block) for size, block in kernel.grid)
            sizes = [state.sizes[size] for size in kernel.sizes]
            numbers = [number.value for number in kernel.numbers]
            interpreted(kernel)[(grid,)](*buffers, *sizes, *numbers)
    return state.outputs()


def wrong(fn: Callable[..., Any], inputs: tuple[Any, ...], *, dynamic: bool = False) -> str:
    """How a function's graphs differ from what the IR says; "" if they do not."""
    for number, program in enumerate(programs(fn, *inputs, dynamic=dynamic, machine=GPU)):
        arguments = list(_arguments(program, inputs if number == 0 else ()))
        copies = [_copy(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        expected = run_program(program, arguments)
        for got, want in zip(run(program, copies), expected, strict=True):
            if not isinstance(want, torch.Tensor):
                continue
            low = want.dtype in (torch.bfloat16, torch.float16)
            close = {"rtol": 2e-2, "atol": 2e-2} if low else {"rtol": 1e-4, "atol": 2e-5}
            try:
                torch.testing.assert_close(got, want, equal_nan=True, **close)
            except AssertionError as error:
                return str(error)
    return ""


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return made.copy_(tensor)


def _arguments(program: Program, given: tuple[Any, ...]) -> Iterator[Any]:
    """The function's own tensors where they are the graph's inputs, else random ones."""
    nodes = {node.name: node for node in program.graph.nodes if isinstance(node, Input)}
    left = [tensor.detach() for tensor in given if isinstance(tensor, torch.Tensor)]
    for name in program.graph.parameters:
        node = nodes.get(name)
        if node is None:
            yield program.graph.hints[name]
            continue
        sizes = [evaluate(size, program.graph.hints) for size in node.shape]
        strides = [evaluate(stride, program.graph.hints) for stride in node.strides]
        dtype = getattr(torch, node.dtype)
        own = next((t for t in left if t.dtype == dtype and list(t.shape) == sizes), None)
        if own is not None and given:
            left = [t for t in left if t is not own]
            yield own
            continue
        made = torch.empty_strided(sizes, strides, dtype=dtype)
        yield made.copy_(torch.randn(sizes) if dtype.is_floating_point else torch.ones(sizes))


def two_ways() -> dict[str, Case]:
    """Sums over rows and over columns in one nest, each of which needs the other's rows."""
    x = torch.randn(300, 130)
    return {
        "rows, then columns": (lambda x: (x * x.sum(1, keepdim=True)).sum(0), (x,)),
        "columns, then rows": (lambda x: (x * x.sum(0)).sum(1), (x,)),
        "both": (
            lambda x: (x * x.sum(0) + x.sum(1, keepdim=True), (x * x.sum(0)).sum(1), x.amax(0)),
            (x,),
        ),
        "middle": (
            lambda x: (x * x.sum(1, keepdim=True)).sum((0, 2)),
            (torch.randn(17, 130, 40),),
        ),
        "three": (
            lambda x: (x.sum((0, 2)), x * x.sum((0, 2), keepdim=True), x.sum(1)),
            (torch.randn(17, 30, 40),),
        ),
    }


def groups(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """A group norm of two groups as it is decomposed for a GPU, with a scale for each channel."""
    rows = x.flatten(1).unflatten(1, (2, -1))
    variance, mean = torch.var_mean(rows, 2, correction=0, keepdim=True)
    whole = ((rows - mean) * torch.rsqrt(variance + 1e-5)).view(x.shape)
    return whole * scale[:, None, None] + scale[:, None, None]


def moments() -> dict[str, Case]:
    """Means and variances in one pass: rows, columns and all elements, far from zero too."""
    wide, tall = torch.randn(3, 17001) + 100, torch.randn(2501, 37) * 3 - 5
    return {
        "rows": (lambda x: torch.var_mean(x, 1), (wide,)),
        "normalised rows": (
            lambda x: (x - x.mean(1, keepdim=True)) * x.var(1, keepdim=True).rsqrt(),
            (wide,),
        ),
        "columns": (lambda x: torch.var_mean(x, 0, correction=0), (tall,)),
        "normalised columns": (
            lambda x: F.batch_norm(x, None, None, None, None, training=True).relu(),
            (tall,),
        ),
        "all": (lambda x: torch.var_mean(x), (torch.randn(70001) + 2,)),
        "nan": (
            lambda x: torch.var_mean(x, 0),
            (torch.where(torch.arange(37) == 3, float("nan"), tall),),
        ),
        "columns beside rows": (
            lambda x: (x - x.sum(1, keepdim=True), torch.var_mean(x, 0)),
            (tall,),
        ),
        "of a scan": (lambda x: torch.var_mean(x.cumsum(1), 1), (wide / 100,)),
        "beside a reverse scan": (
            lambda x: (x.flip(1).cumsum(1).flip(1), torch.var_mean(x, 1)),
            (wide - 100,),
        ),
        "groups": (
            lambda x, y, w: (F.silu(groups(x, w)), groups(y, w)),
            (torch.randn(2, 6, 80, 81), torch.randn(5, 6, 4, 10), torch.randn(6)),
        ),
        "loss": (
            lambda x, i: F.cross_entropy(x, i),
            (torch.randn(3, 33000).to(torch.bfloat16), torch.arange(3)),
        ),
        "loss of many rows": (
            lambda x, i: F.cross_entropy(x, i),
            (torch.randn(280, 500), torch.arange(280)),
        ),
        "columns in turns": (
            lambda x: torch.var_mean(x, 0),
            (torch.randn(4096, 40) + 3,),
        ),
    }


def small() -> dict[str, Case]:
    """Kernels that share a launch."""
    first, second = torch.randn(7, 100), torch.randn(33, 20)
    return {
        "alike": (lambda x, y: (x.sin(), y.sin(), (x + 1).exp()), (first, second)),
        "rows": (lambda x, y: (x.softmax(-1), y.softmax(-1)), (first, torch.randn(9, 120))),
        "not alike": (lambda x, y: (x * 2, y.to(torch.bfloat16) + 1), (first, second)),
        "transposed": (
            lambda x, y: (x.mT.contiguous(), y.mT.contiguous() + 1),
            (torch.randn(2, 70, 300), torch.randn(40, 170)),
        ),
        "rounded on the way": (
            lambda x, y: (x.to(torch.bfloat16).float() * 2, y + 1),
            (first, second),
        ),
        "one after another": (lambda x, y: (x * 2, (x * 2).sum(0), y + 1), (first, second)),
        "columns of several sizes": (
            lambda x, y, z: (x.sum(0), y.sum(0), z.sum(0)),
            (torch.randn(4096, 64), torch.randn(3072, 128), torch.randn(4096, 16)),
        ),
        "layers of several widths": (
            lambda x, a, y, b: ((x * a) @ y * b,),
            (torch.randn(64, 32), torch.randn(32), torch.randn(32, 128), torch.randn(128)),
        ),
        "transposed in several sizes": (
            lambda x, y, z: (x.mT.contiguous(), y.mT.contiguous(), z.mT.contiguous()),
            (torch.randn(80, 144), torch.randn(160, 48), torch.randn(96, 208)),
        ),
    }


def chosen(name: str) -> dict[str, Case]:
    """Cases by a dtype's name, or `mixed`, `windows`, `dynamic`, `two ways`, `moments`, `small`;
    with `some ` before it, a third of them, as `_every` of test_nests.py."""
    if name.startswith("some "):
        return dict(list(chosen(name.removeprefix("some ")).items())[::3])
    if name == "mixed":
        return nest_cases.mixed()
    if name == "windows":
        return nest_cases.windows(torch.float32)
    if name == "dynamic":
        return nest_cases.floats(torch.float32)
    if name == "two ways":
        return two_ways()
    if name == "small":
        return small()
    if name == "moments":
        return moments()
    dtype = getattr(torch, name)
    make = nest_cases.floats if dtype.is_floating_point else nest_cases.integers
    return make(dtype)


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:]:
        torch.manual_seed(0)
        for case, (fn, inputs) in chosen(name).items():
            try:
                found = wrong(fn, inputs, dynamic=name.endswith("dynamic"))
            except Exception:
                found = traceback.format_exc()[-2000:]
            print(json.dumps([f"{name}: {case}", found]), flush=True)


if __name__ == "__main__":
    main()
