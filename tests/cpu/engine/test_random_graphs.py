"""Random programs: our engine's results equal eager's."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tcw.compiler.engine.backend import backend
from tests.cpu.engine import random_checks as checks
from tests.cpu.engine import random_sizes
from tests.cpu.engine.random_programs import PROGRAMS, SHAPES, Step, run
from tests.cpu.engine.random_sizes import SizeStep

EXAMPLES = int(os.environ.get("TCW_RANDOM_GRAPHS", "4"))
"""The number of programs of each kind; tests/README.md has the command for a long run."""

SHRINK = (Phase.shrink,) if os.environ.get("TCW_SHRINK") else ()
"""Shrinking compiles hundreds of programs, so it is only done on request."""

RANDOM = settings(
    max_examples=EXAMPLES,
    derandomize="TCW_RANDOM_GRAPHS" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, *SHRINK),
)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_forward(program: list[Step], shape: list[int], seed: int) -> None:
    checks.forward(program, shape, seed)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_dynamic_backward(program: list[Step], shape: list[int], seed: int) -> None:
    checks.backward(program, shape, seed, dynamic=True)


@RANDOM
@given(program=random_sizes.PROGRAMS, rows=random_sizes.SIZES, trained=st.booleans())
def test_sizes_that_are_expressions(
    program: list[SizeStep], rows: list[int], trained: bool
) -> None:
    checks.sizes(program, rows, trained=trained)


CONSTANT = [
    Step(kind="reduce", name="half", pick=8, other=2, number=14, size=13),
    Step(kind="join", name="mean", pick=19, other=10, number=29, size=30),
    Step(kind="unary", name="half", pick=8, other=4, number=5, size=6),
]
"""Returns nothing that depends differentiably on its inputs."""


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
@example(program=CONSTANT, shape=[1], seed=3)
def test_backward(program: list[Step], shape: list[int], seed: int) -> None:
    checks.backward(program, shape, seed)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_dynamic_shapes(program: list[Step], shape: list[int], seed: int) -> None:
    checks.dynamic_shapes(program, shape, seed)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_mutated_inputs(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()

    def mutating(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        before = run(program, x, y)[-1]
        x.mul_(0.5).add_(1)
        after = run(program, x, y)[-1]
        y.copy_(x.mean(-1, keepdim=True))
        return before.sum() + after.sum() + y.sum()

    x, y, _ = checks.inputs(shape, seed)
    x2, y2 = x.clone(), y.clone()
    with torch.no_grad():
        wanted = mutating(x, y)
        compiled: Any = torch.compile(mutating, backend=backend, fullgraph=True, dynamic=False)
        found = compiled(x2, y2)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close([x2, y2], [x, y], rtol=1e-5, atol=1e-5)
