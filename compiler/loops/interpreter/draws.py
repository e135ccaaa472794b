"""The meaning of a call of `DRAWS`: ATen's random numbers, from torch's generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Sizes = Sequence[int]


def _filled(fill: Callable[..., Any]) -> Callable[..., torch.Tensor]:
    def drawn(sizes: Sizes, strides: Sizes, dtype: str, *parameters: float) -> torch.Tensor:
        made = torch.empty_strided(sizes, strides, dtype=getattr(torch, dtype), device="cpu")
        fill(made, *parameters)
        return made

    return drawn


FILLS: dict[str, Callable[..., Any]] = {
    "uniform": torch.Tensor.uniform_,
    "normal": torch.Tensor.normal_,
    "bernoulli": torch.Tensor.bernoulli_,
    "exponential": torch.Tensor.exponential_,
    "geometric": torch.Tensor.geometric_,
    "cauchy": torch.Tensor.cauchy_,
    "log_normal": torch.Tensor.log_normal_,
    "integers": torch.Tensor.random_,
}
"""By name, `(tensor, *parameters)`: ATen's functions that fill a tensor."""

_filling = {name: _filled(fill) for name, fill in FILLS.items()}


def _slopes(x: torch.Tensor, lower: float, upper: float) -> torch.Tensor:
    noise = torch.empty_like(x)
    torch.ops.aten.rrelu_with_noise.default(x, noise, lower, upper, True)
    return noise


def _chances(p: torch.Tensor, sizes: Sizes, strides: Sizes, dtype: str) -> torch.Tensor:
    return _filling["uniform"](sizes, strides, dtype)


def _deviations(std: torch.Tensor, sizes: Sizes, strides: Sizes, dtype: str) -> torch.Tensor:
    return _filling["normal"](sizes, strides, dtype)


ATEN: dict[str, Callable[..., torch.Tensor]] = {
    **_filling,
    "slopes": _slopes,
    "chances": _chances,
    "deviations": _deviations,
}
"""By the name in `tcw.NAME.default`."""
