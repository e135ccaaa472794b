"""The recorded nests of a kernel have the loops of its code."""

from __future__ import annotations

import importlib
import re

import pytest
import torch

from tcw.compiler.inductor.kernel_nests import NestMember, joined_nest
from tcw.compiler.trace.records import Kernel
from tcw.viewers.recording import Recording
from tcw.viewers.summary.code_faults import REALIZE, code_faults
from tests.cpu.inductor.models import Softmax, Transformer, Zoo, zoo_inputs
from tests.cpu.inductor.recorded import Recorded, record
from tests.inductor_loops import loops_in, nest_text
from tests.long import mostly_long

_CPP = re.compile(r" *for\(int64_t \w+=[^;]*; \w+<static_cast<int64_t>\((\d+)L\);")


@pytest.fixture(scope="module", params=mostly_long(("softmax", "transformer", "zoo"), ("zoo",)))
def recorded(request: pytest.FixtureRequest) -> Recorded:
    if request.param == "zoo":
        return record(Zoo(), *zoo_inputs())[0]
    if request.param == "softmax":
        return record(Softmax(), torch.ones(2, 8, 16))[0]
    return record(Transformer(2), torch.ones(2, 8, 32))[0]


def in_code(text: str) -> list[tuple[int, int]]:
    """(depth, size) of each loop of a C++ kernel."""
    open_: list[int] = []
    loops = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if match := _CPP.match(line):
            loops.append((len(open_), int(match[1])))
            open_.append(indent)
        elif line.startswith("}", indent) and open_ and indent == open_[-1]:
            open_.pop()
    return loops


def in_nests(kernel: Kernel) -> list[tuple[int, int]]:
    """The loops of one call of a kernel."""
    found = [
        (line.depth, int(line.size))
        for nest in kernel.nests
        for line in nest.lines
        if line.variable
    ]
    calls = max(1, len(kernel.steps))
    once = found[: len(found) // calls]
    assert found == once * calls
    return once


def test_the_nests_of_a_kernel_are_those_of_its_code(recorded: Recorded) -> None:
    kernels = [kernel for kernel in recorded.all(Kernel) if kernel.language == "cpp"]
    assert kernels
    for kernel in kernels:
        assert in_nests(kernel) == in_code(recorded.text(kernel.text)), kernel.name
        assert {node for nest in kernel.nests for node in nest.nodes} == set(kernel.nodes)


def member(text: str, reads: str = "", writes: str = "") -> NestMember:
    return NestMember(loops_in(text), frozenset(reads.split()), frozenset(writes.split()))


ROW = member("for q0 in 8:\n  reduce q1 in 4:\n    sum(x, 4*q0 + q1)\n", "x", "total")
INSIDE = member("for q0 in 8:\n  for q1 in 4:\n    y(4*q0 + q1)\n", "x", "y")
AFTER = member("for q0 in 8:\n  for q1 in 4:\n    z(4*q0 + q1)\n", "total", "z")
BELOW = member("for q0 in 8:\n  mean(q0)\n", "total", "mean")


def drawn(parts: list[list[NestMember]], shared: int) -> str:
    return nest_text(joined_nest(parts, shared))


def test_nodes_of_equal_loops_share_them() -> None:
    assert drawn([[ROW, INSIDE]], 0) == (
        "for p0 in 8:\n  reduce p1 in 4:\n    sum(x, 4*p0 + p1)\n    y(4*p0 + p1)\n"
    )


def test_what_reads_a_reduction_comes_after_its_loop() -> None:
    assert drawn([[ROW, AFTER]], 0) == (
        "for p0 in 8:\n  reduce p1 in 4:\n    sum(x, 4*p0 + p1)\n  for p1 in 4:\n    z(4*p0 + p1)\n"
    )
    assert drawn([[ROW, BELOW]], 0).endswith("    sum(x, 4*p0 + p1)\n  mean(p0)\n")


def test_parts_share_only_the_outer_loops() -> None:
    assert drawn([[INSIDE], [INSIDE]], 1).count("p0 in 8") == 1
    assert drawn([[INSIDE], [INSIDE]], 1).count("p1 in 4") == 2
    assert drawn([[INSIDE], [INSIDE]], 0).count("p0 in 8") == 2


def computed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = torch.cos(x) * 2
    return a.sum(1), a[:, ::4] + 1


def computed_once(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = torch.cos(x) * 2
    return a * x, a + 1


def test_a_value_that_two_nests_compute_is_found() -> None:
    """Two results of one loop keep the cosine in a register."""
    x = torch.ones(64, 4096)
    kinds = {one.kind for one in code_faults(Recording(record(computed, x)[0].records))}
    assert {"computed again", "no vectors"} <= kinds
    assert code_faults(Recording(record(computed_once, x)[0].records)) == ()


def test_the_setting_keeps_what_two_nests_computed() -> None:
    module, name = REALIZE.removesuffix(" = 1").rsplit(".", 1)
    with importlib.import_module(module).patch({name: 1}):
        found = code_faults(Recording(record(computed, torch.ones(64, 4096))[0].records))
    assert "computed again" not in {one.kind for one in found}
