"""Random programs on a GPU: our engine's results equal eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compiler.engine.backend import backend
from tests.cpu.engine.random_programs import PROGRAMS, SHAPES, Step, run
from tests.cpu.engine.test_random_graphs import RANDOM, inputs, moving_strides


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCW_STRICT", "1")


def on_gpu(shape: list[int], seed: int) -> list[torch.Tensor]:
    return [tensor.cuda() for tensor in inputs(shape, seed)]


def close(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert moving_strides(one) == moving_strides(other) or one.numel() < 2
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_forward(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    tensors = on_gpu(shape, seed)
    with torch.no_grad():
        compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=False)
        close(compiled(program, *tensors), run(program, *tensors))


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_backward(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    tensors = [tensor.requires_grad_() for tensor in on_gpu(shape, seed)]
    if not any(answer.requires_grad for answer in run(program, *tensors)):
        return

    def gradients(function: Any) -> list[torch.Tensor]:
        total = sum(o.float().square().sum() for o in function(program, *tensors))
        found = torch.autograd.grad(total, tensors, allow_unused=True)
        return [g for g in found if g is not None]

    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=False)
    for one, other in zip(gradients(compiled), gradients(run), strict=True):
        scale = float(other.abs().max() + 1)
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * scale)


@RANDOM
@given(program=PROGRAMS, shape=SHAPES, seed=st.integers(0, 9))
def test_dynamic_shapes(program: list[Step], shape: list[int], seed: int) -> None:
    torch._dynamo.reset()
    compiled: Any = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    for grown in (0, 2):
        tensors = on_gpu([size + grown if size > 1 else 1 for size in shape], seed)
        with torch.no_grad():
            close(compiled(program, *tensors), run(program, *tensors))
