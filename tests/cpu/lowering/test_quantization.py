"""Fake quantisation: values, masks, gradients."""

from __future__ import annotations

import pytest
import torch

from tests.cpu.lowering.harness import lowered

VALUES = [
    -1e30,
    -7.0,
    -0.26,
    -0.25,
    0.0,
    0.05,
    0.124,
    0.125,
    3.3,
    12.7,
    1e30,
    torch.inf,
    -torch.inf,
]


def values() -> torch.Tensor:
    return torch.tensor([[*VALUES, torch.nan, 1.0, 2.0], [0.1 * i for i in range(16)]])


@pytest.mark.parametrize("scale", [0.05, 0.1, 3.7])
def test_per_tensor(scale: float) -> None:
    def quantized(x: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, scale, 3, -128, 127)

    lowered(quantized, values())
    lowered(quantized, values().requires_grad_())


@pytest.mark.parametrize("axis", [0, 1])
def test_per_channel(axis: int) -> None:
    x = values()
    scale = torch.linspace(0.03, 0.4, x.shape[axis])
    zero = torch.arange(x.shape[axis], dtype=torch.int32)

    def quantized(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
        return torch.fake_quantize_per_channel_affine(x, scale, zero, axis, 0, 255)

    lowered(quantized, x, scale, zero)
    lowered(quantized, x.requires_grad_(), scale, zero)


def test_what_stays_a_call() -> None:
    result = lowered(
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 15),
        values().double(),
        calls=None,
    )
    assert result.calls() == ["aten.fake_quantize_per_tensor_affine_cachemask.default"]
