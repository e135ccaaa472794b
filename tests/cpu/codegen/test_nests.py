"""Loop nests as C++ against eager: every form of nest, dtypes, tails, threads, instruction sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from tcw.compiler.codegen.choices import Ask
from tcw.compiler.codegen.cpp.isa import Isa, detect, runnable
from tcw.compiler.codegen.cpp.nests.phases import NestPhases
from tcw.compiler.loops.nest import Nest
from tcw.compiler.processor import feature_flags
from tests.cpu.codegen.nest_cases import FLOATS, INTEGERS, Case, floats, integers, mixed, windows
from tests.cpu.codegen.nests import CompiledProgram, compile_programs, digest, programs
from tests.cpu.codegen.units import each_isa
from tests.long import mostly_long

SOME = (torch.float32, torch.bfloat16)
NARROW = runnable(feature_flags())[1:]
"""The other instruction sets of this machine."""


def check(
    cases: dict[str, Case],
    isa: Isa | None = None,
    *,
    dynamic: bool = False,
    ask: Ask | None = None,
) -> None:
    """Compile all cases in one unit; each returns what eager does, with any number of threads."""
    found = [programs(fn, *inputs, dynamic=dynamic)[0] for fn, inputs in cases.values()]
    threads = torch.get_num_threads()
    try:
        made = compile_programs(found, isa or detect(), ask)
        for (name, (fn, inputs)), program in zip(cases.items(), made, strict=True):
            _check(name, fn(*inputs), inputs, program)
    finally:
        torch.set_num_threads(threads)


def _check(name: str, answer: Any, inputs: tuple[Any, ...], program: CompiledProgram) -> None:
    torch.set_num_threads(1)
    got = program.run(inputs)
    torch.set_num_threads(2)
    assert digest(got) == digest(program.run(inputs)), f"{name}: threads change the bits"
    expected = [leaf for leaf in pytree.tree_leaves(answer) if isinstance(leaf, torch.Tensor)]
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        low = theirs.dtype in (torch.bfloat16, torch.float16)
        close = {"rtol": 2e-2, "atol": 2e-2} if low else {"rtol": 1e-4, "atol": 2e-4}
        if not theirs.is_floating_point():
            close = {"rtol": 0, "atol": 0}
        torch.testing.assert_close(
            ours, theirs, equal_nan=True, **close, msg=lambda text: f"{name}: {text}"
        )


def _every(step: int, cases: dict[str, Case]) -> dict[str, Case]:
    """Each `step`-th case. Kinds alternate in twos and fours: an odd step meets all of them."""
    return dict(list(cases.items())[::step])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", mostly_long(FLOATS, SOME), ids=str)
def test_floats(dtype: torch.dtype) -> None:
    check(floats(dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: torch.dtype) -> None:
    check(integers(dtype))


def test_mixed() -> None:
    check(mixed())


@pytest.mark.parametrize("dtype", mostly_long(FLOATS, ()), ids=str)
def test_windows(dtype: torch.dtype) -> None:
    check(windows(dtype))


@pytest.mark.parametrize("dtype", mostly_long(SOME, SOME[1:]), ids=str)
def test_some_windows(dtype: torch.dtype) -> None:
    """`test_windows` has all (long)."""
    check(_every(3, windows(dtype)))


@pytest.mark.parametrize("dtype", mostly_long(FLOATS[:3], ()), ids=str)
@pytest.mark.parametrize("isa", each_isa(NARROW))
def test_windows_in_other_instruction_sets(isa: Isa, dtype: torch.dtype) -> None:
    check(windows(dtype), isa)


@pytest.mark.parametrize("isa", each_isa(NARROW))
def test_some_windows_in_other_instruction_sets(isa: Isa) -> None:
    check(_every(5, windows(torch.float32)), isa)


def test_windows_of_dynamic_sizes() -> None:
    check(_every(7, windows(torch.float32)), dynamic=True)


@pytest.mark.long
def test_all_windows_of_dynamic_sizes() -> None:
    check(windows(torch.float32), dynamic=True)


def all_forms() -> dict[str, Case]:
    return {**floats(torch.float32), **{f"{n}'": c for n, c in mixed().items()}}


def test_dynamic_sizes() -> None:
    """`test_choices.py` has all of them in float64, with other choices."""
    check(_every(3, all_forms()), dynamic=True)


@pytest.mark.long
def test_all_dynamic_sizes() -> None:
    check(all_forms(), dynamic=True)


@pytest.mark.parametrize("isa", each_isa(NARROW))
def test_other_instruction_sets(isa: Isa) -> None:
    check(all_forms(), isa)


def test_other_sizes_than_compiled_for() -> None:
    (program,) = programs(
        lambda x: torch.softmax(x * 2, -1).sum(0), torch.randn(6, 10), dynamic=True
    )
    (made,) = compile_programs([program])
    for shape in ((6, 10), (2, 3), (7, 1000), (300, 33), (40, 5000)):
        x = torch.randn(*shape)
        (got,) = made.run([a if isinstance(a, int) else x for a in _arguments(program, x)])
        torch.testing.assert_close(got, torch.softmax(x * 2, -1).sum(0), rtol=1e-4, atol=1e-5)


def _arguments(program: Any, x: torch.Tensor) -> list[Any]:
    """The graph's parameters for another x: its symbols are x's sizes in order."""
    sizes = iter(x.shape)
    return [
        x if p.startswith("arg") and p in _inputs(program) else next(sizes)
        for p in program.graph.parameters
    ]


def _inputs(program: Any) -> set[str]:
    return {name for name, value in program.graph.values().items() if hasattr(value, "constant")}


def test_columns_of_three_vectors_beside_a_sum_of_their_row() -> None:
    """One step has all columns, so the row's sum has as many partial ones: three, in some
    instruction set."""

    def function(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        length = x.square().sum(-1, keepdim=True)
        slope = (-x * (weight / length.clamp_min(1e-12))).sum(-1, keepdim=True)
        y = x + torch.where(length >= 1e-12, slope, 0.0) * weight
        return y, y.sum((0, 1)), x.sum((0, 1))

    check(
        {
            f"{columns} columns": (function, (torch.randn(2, 16, columns), torch.randn(columns)))
            for columns in (14, 28, 56)
        }
    )


def test_errors() -> None:
    cases = {
        "index": (lambda x, i: x[i] + 1, (torch.randn(50, 3), torch.tensor([3, 50, 2]))),
        "gather": (lambda x, i: x.gather(0, i), (torch.randn(40), torch.tensor([3, -41] * 20))),
        "bytes": (
            lambda x, i: x.gather(0, i),
            (torch.arange(40).to(torch.int8), torch.tensor([3, 40] * 20)),
        ),
        "division": (lambda x, y: x // y, (torch.arange(37), torch.arange(37) % 30)),
    }
    small = {
        "index": torch.tensor([3, 49, 2]),
        "gather": torch.tensor([3, 39] * 20),
        "bytes": torch.tensor([3, 39] * 20),
        "division": torch.ones(37, dtype=torch.int64),
    }
    found = [programs(fn, inputs[0], small[name])[0] for name, (fn, inputs) in cases.items()]
    made = compile_programs(found)
    for (name, (_, inputs)), program in zip(cases.items(), made, strict=True):
        program.run((inputs[0], small[name]))
        if program.kernels:
            with pytest.raises(ZeroDivisionError if name == "division" else IndexError):
                program.run(inputs)


def test_large_partial_results_ride_in_blocks_that_do_not_wait() -> None:
    """Gradients of a product with a matrix: 52 KB of sums ride along, each block with its total."""

    def gradients(g: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> Any:
        return g * y, (g * x).sum(0)

    case = gradients, (torch.randn(96, 13041), torch.randn(96, 13041), torch.randn(13041))
    (program,) = programs(gradients, *case[1])
    assert len([step for step in program.steps if isinstance(step, Nest)]) == 1
    check({"gradients": case})
    phases = NestPhases(detect())
    phases.add(program.steps[0])
    riding = next(phase for phase in phases.order if phase.riders)
    assert (riding.blocks, riding.totals, riding.turn) == (16, 16, None)
