"""Tensors with the extreme values of each dtype, and the shapes and strides that operands may
have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from tests.cpu.lowering.harness import lowered

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.uint8)
NUMBERS = (*FLOATS, *INTEGERS)
DTYPES = (*NUMBERS, torch.bool)

Dtype = torch.dtype


def corners(dtype: Dtype) -> torch.Tensor:
    """Zeros of both signs, halves, infinities, NaN and extremes; for integers, the extremes."""
    if dtype is torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        small = [0, 1, 2, 3, 7, 31] + ([] if dtype is torch.uint8 else [-1, -2, -3, -8])
        return torch.tensor([*small, info.min, info.max], dtype=dtype)
    info = torch.finfo(dtype)
    numbers = [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0, 20.5]
    numbers += [-number for number in numbers]
    numbers += [float("inf"), float("-inf"), float("nan"), info.max, info.tiny, -0.7, 0.3, 1e-3]
    return torch.tensor(numbers, dtype=dtype)


def pairs(dtype: Dtype, other: Dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of extreme values, by broadcasting."""
    return corners(dtype)[:, None], corners(other or dtype)[None, :]


def grid(dtype: Dtype, *shape: int) -> torch.Tensor:
    """Random numbers of both signs; small integers."""
    generator = torch.Generator().manual_seed(17)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    low = 0 if dtype in (torch.uint8, torch.bool) else -4
    high = 2 if dtype is torch.bool else 5
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def forms(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensor in row-major order, with its dimensions reversed in memory, and with gaps."""
    backwards = list(reversed(range(tensor.dim())))
    gaps = torch.stack([tensor, tensor], -1)[..., 1]
    return [tensor, tensor.permute(backwards).contiguous().permute(backwards), gaps]


def check_each(
    function: Callable[..., Any], rows: Iterable[tuple[torch.Tensor, ...]], **options: Any
) -> None:
    """Compare `function` of every row of tensors with eager, all in one graph."""
    tensors = list(rows)
    widths = [len(row) for row in tensors]

    def all_rows(*flat: torch.Tensor) -> list[Any]:
        answers, at = [], 0
        for width in widths:
            answers.append(function(*flat[at : at + width]))
            at += width
        return answers

    lowered(all_rows, *(tensor for row in tensors for tensor in row), **options)
