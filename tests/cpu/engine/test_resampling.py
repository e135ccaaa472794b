"""The gradient of a resampling is ATen's operation, or by whole factors a sum of neighbours."""

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
    calls = calls_of_training(monkeypatch, mode, torch.randn(SHAPES[rank]), 1.7)
    assert calls == [f"aten.{operation}.default"]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize(
    ("shape", "factor"), [((2, 3, 11), 3), ((2, 3, 7, 9), (1, 4)), ((1, 2, 5, 4, 6), 2)]
)
def test_neighbours_of_one_pixel_are_summed(
    mode: str, shape: tuple[int, ...], factor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for x in (torch.randn(shape), torch.randn(shape).bfloat16(), torch.randn(shape).double()):
        assert not calls_of_training(monkeypatch, mode, x, factor)
    if len(shape) == 4:
        x = torch.randn(shape).to(memory_format=torch.channels_last)
        assert not calls_of_training(monkeypatch, mode, x, factor)


def calls_of_training(
    monkeypatch: pytest.MonkeyPatch, mode: str, x: torch.Tensor, factor: Any
) -> list[str]:
    """The calls of a forward and its backward, whose results are compared with eager's."""
    calls: list[str] = []

    def lower(*arguments: Any) -> Any:
        graph = lowering(*arguments)
        calls.extend(node.target for node in graph.nodes if isinstance(node, Call))
        return graph

    def model(x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x.sin(), scale_factor=factor, mode=mode) * 2

    x = x.detach().requires_grad_()
    lowering = stages.lower
    with monkeypatch.context() as patched:
        patched.setattr(stages, "lower", lower)
        torch._dynamo.reset()
        found, expected = torch.compile(model, backend=backend, dynamic=False)(x), model(x)
        torch.testing.assert_close(found, expected)
        down = torch.randn_like(expected)
        (ours,) = torch.autograd.grad(found, x, down)
    (eager,) = torch.autograd.grad(expected, x, down)
    torch.testing.assert_close(ours, eager)
    return calls


def test_torch_decomposes_as_before_afterwards() -> None:
    before = [dict(operation.py_kernels) for operation in resampling._overloads()]
    with resampling.resampling_whole([torch.zeros(1)]):
        assert not any(
            key in operation.py_kernels
            for operation in resampling._overloads()
            for key in resampling._BEFORE_AUTOGRAD
        )
    assert [dict(operation.py_kernels) for operation in resampling._overloads()] == before
