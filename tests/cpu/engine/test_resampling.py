"""The gradient of a resampling is ATen's operation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import compiler.engine.compile as stages
from compiler.engine import resampling
from compiler.engine.backend import backend
from compiler.loops.graph import Call

SHAPES = {1: (2, 3, 11), 2: (2, 3, 7, 9), 3: (1, 2, 5, 4, 6)}


@pytest.mark.parametrize(
    ("mode", "rank", "operation"),
    [
        ("nearest", 2, "upsample_nearest2d_backward"),
        ("nearest-exact", 1, "_upsample_nearest_exact1d_backward"),
        ("linear", 1, "upsample_linear1d_backward"),
        ("bilinear", 2, "upsample_bilinear2d_backward"),
        ("bicubic", 2, "upsample_bicubic2d_backward"),
        ("trilinear", 3, "upsample_trilinear3d_backward"),
    ],
)
def test_the_gradient_is_one_call(
    mode: str, rank: int, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(SHAPES[rank]).requires_grad_()
    calls = []

    def lower(*arguments: Any) -> Any:
        graph = lowering(*arguments)
        calls.extend(node.target for node in graph.nodes if isinstance(node, Call))
        return graph

    def model(x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x.sin(), scale_factor=2.0, mode=mode) * 2

    lowering = stages.lower
    monkeypatch.setattr(stages, "lower", lower)
    torch._dynamo.reset()
    found, expected = torch.compile(model, backend=backend, dynamic=False)(x), model(x)
    torch.testing.assert_close(found, expected)
    down = torch.randn_like(expected)
    (ours,) = torch.autograd.grad(found, x, down)
    (eager,) = torch.autograd.grad(expected, x, down)
    torch.testing.assert_close(ours, eager)
    assert calls == [f"aten.{operation}.default"]


def test_torch_decomposes_as_before_afterwards() -> None:
    before = [dict(operation.py_kernels) for operation in resampling._overloads()]
    with resampling.resampling_whole([torch.zeros(1)]):
        assert not any(
            key in operation.py_kernels
            for operation in resampling._overloads()
            for key in resampling._BEFORE_AUTOGRAD
        )
    assert [dict(operation.py_kernels) for operation in resampling._overloads()] == before
