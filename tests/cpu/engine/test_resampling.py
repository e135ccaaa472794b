"""The gradient of a resampling is ATen's operation, or by whole factors a sum of neighbours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._dynamo.testing
from torch.nn import functional

import tcw.compiler.engine.compile as stages
from tcw.compiler.engine.backend import backend
from tcw.compiler.loops.graph import Call
from tcw.compiler.rewrites import resampling
from tests.long import mostly_long

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


NEIGHBOURS = [
    (mode, *sizes)
    for mode in ("nearest", "nearest-exact")
    for sizes in (((2, 3, 11), 3), ((2, 3, 7, 9), (1, 4)), ((1, 2, 5, 4, 6), 2))
]


@pytest.mark.parametrize(("mode", "shape", "factor"), mostly_long(NEIGHBOURS, NEIGHBOURS[1::2]))
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


SYMBOLIC = [
    ("nearest-exact", 3, None, "size"),
    ("bilinear", 2, True, "size"),
    ("bicubic", 2, False, "factor"),
    ("nearest", 2, None, "size"),
    ("linear", 1, False, "factor"),
]


@pytest.mark.parametrize(("mode", "rank", "aligned", "by"), mostly_long(SYMBOLIC, SYMBOLIC[:3]))
def test_symbolic_sizes(mode: str, rank: int, aligned: bool | None, by: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        sizes = [2 * size + 1 for size in x.shape[2:]]
        how: Any = {"size": sizes} if by == "size" else {"scale_factor": 1.5}
        return functional.interpolate(x.sin(), mode=mode, align_corners=aligned, **how) * 2

    compiles = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(model, backend=compiles, dynamic=True)
    for more in (0, 2):
        x = torch.randn(2, 3, *(size + more for size in SHAPES[rank][2:]), requires_grad=True)
        found, expected = compiled(x), model(x)
        torch.testing.assert_close(found, expected)
        down = torch.randn_like(expected)
        (ours,) = torch.autograd.grad(found, x, down)
        (eager,) = torch.autograd.grad(expected, x, down)
        torch.testing.assert_close(ours, eager)
    assert compiles.frame_count == 1


@pytest.mark.parametrize("packet", resampling.RESAMPLING)
def test_gradients_of_fake_tensors_have_the_strides_of_real_ones(packet: Any) -> None:
    operation = getattr(torch.ops.aten, f"{packet.__name__}_backward").default
    rank = int(packet.__name__[-2])
    aligned = [False] if "linear" in packet.__name__ or "cubic" in packet.__name__ else []
    sizes = [9, 10, 11][:rank]
    gradient = torch.randn(2, 3, *(2 * size for size in sizes))
    formats = {2: torch.channels_last, 3: torch.channels_last_3d}
    for one in (torch.contiguous_format, formats.get(rank, torch.contiguous_format)):
        laid = gradient.contiguous(memory_format=one)
        given = (laid, list(laid.shape[2:]), [2, 3, *sizes])
        real = operation(*given, *aligned, *([None] * rank))
        assert resampling._gradient_of(operation, *given).stride() == real.stride()


def test_torch_decomposes_as_before_afterwards() -> None:
    every = [*resampling._overloads(), *resampling._gradients()]
    before = [dict(operation.py_kernels) for operation in every]
    with resampling.resampling_whole([torch.zeros(1)]):
        assert not any(
            key in operation.py_kernels
            for operation in resampling._overloads()
            if operation._overloadname == "default"
            for key in resampling._BEFORE_AUTOGRAD
        )
    assert [dict(operation.py_kernels) for operation in every] == before
