"""Random programs: our engine's results equal eager's."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, example, given, note, settings
from hypothesis import strategies as st

from compiler.engine.backend import backend
from tests.cpu.engine.random_programs import PROGRAMS, SHAPES, Step, run

EXAMPLES = int(os.environ.get("TCW_RANDOM_GRAPHS", "10"))
"""The number of programs of each kind; CONTRIBUTING.md has the command for a long run."""

SHRINK = (Phase.shrink,) if os.environ.get("TCW_SHRINK") else ()
"""Shrinking compiles hundreds of programs, so it is only done on request."""

RANDOM = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="TCW_RANDOM_GRAPHS" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, *SHRINK),
)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


def inputs(shape: list[int], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    y = torch.randn([*shape[:-1], 1], generator=generator)
    return [
        x,
        y,
        torch.randn(shape[::-1], generator=generator).permute(*reversed(range(len(shape)))),
    ]


def moving_strides(tensor: torch.Tensor) -> list[int]:
    """The stride of a dimension of one element is meaningless."""
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1]


def close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        note(f"output {place}")
        assert moving_strides(one) == moving_strides(other) or one.numel() < 2
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_forward(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    given_tensors = inputs(shape, seed)
    with torch.no_grad():
        wanted = run(program, *given_tensors)
        compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=False)
        close(compiled(program, *given_tensors), wanted)


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
    torch._dynamo.reset()
    given_tensors = [t.requires_grad_() for t in inputs(shape, seed)]
    if not any(answer.requires_grad for answer in run(program, *given_tensors)):
        return

    def gradients(function: Any) -> list[torch.Tensor]:
        total = sum(o.float().square().sum() for o in function(program, *given_tensors))
        found = torch.autograd.grad(total, given_tensors, allow_unused=True)
        return [g for g in found if g is not None]

    wanted = gradients(run)
    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=False)
    for one, other in zip(gradients(compiled), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max() + 1))


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_dynamic_shapes(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    for grown in (0, 2):
        given_tensors = inputs([size + grown if size > 1 else 1 for size in shape], seed)
        with torch.no_grad():
            close(compiled(program, *given_tensors), run(program, *given_tensors))


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

    x, y, _ = inputs(shape, seed)
    x2, y2 = x.clone(), y.clone()
    with torch.no_grad():
        wanted = mutating(x, y)
        compiled: Any = torch.compile(mutating, backend=backend, fullgraph=True, dynamic=False)
        found = compiled(x2, y2)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close([x2, y2], [x, y], rtol=1e-5, atol=1e-5)
